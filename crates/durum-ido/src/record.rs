//! Records: how a thread's section goes on.
//!
//! ```text
//! make     write back what was stored            the region before has ended
//!          fence                                 unless the record tells of all that was stored
//!          the record, write back, fence         the next region has begun
//! ```
//!
//! Whoever finds a record stores what it tells of. So it tells of nothing where others may have stored there since:
//! where it lets a lock go, or where they see what the region stores.

use std::ptr::{self, NonNull};

use durum::Freed;
use durum_format::section::{
    BANK_WORDS, Code, Lock, RECORD_HEAD_WORDS, RecordWriter, SlotSalt, Written,
};
use durum_persist::{Site, line};

use crate::code::Region;
use crate::fatal::fatal;
use crate::lines::Lines;
use crate::memory::{self, Memory};
use crate::names;
use crate::reach;
use crate::sites::{
    BITS_FENCE, IDLE_FENCE, IDLE_WRITE, OWNED_FENCE, RECORD_FENCE, RECORD_WRITE, STORES_FENCE,
    TAKEN_FENCE, TELL_AGAIN, TELL_NOTHING,
};
use crate::slots::Slot;
use crate::stack::{Stack, make_lasting};
use crate::thread::{self, Thread};

/// Makes what the section has stored durable, and then a record with these live-ins, in which the lock `releasing` is
/// not (0: all are).
///
/// # Safety
/// As many words as the region has.
pub(crate) unsafe fn make(
    thread: &mut Thread,
    region: &Region,
    words: *const u64,
    releasing: usize,
) {
    if !thread.ensure_slot() || thread.early.has_frames() {
        no_slot(thread);
    }
    let hands_over = std::mem::replace(&mut thread.hands_over, region.hands_over());
    let hands_over = (hands_over || region.hands_over() || releasing != 0)
        && !durum_persist::record::leaves_out(TELL_NOTHING);
    // SAFETY: as the caller promises.
    let live_ins = unsafe { std::slice::from_raw_parts(words, region.words.into()) };
    let has_locals = thread.stack.needs_fence(region, live_ins);
    let may_tell = !hands_over && !has_locals;
    let is_told = may_tell && thread.lines.repeats().is_some();
    if !is_told {
        if has_locals {
            // ORDER: durable before the record; else a crash finds that and other locals.
            thread.stack.write_back(true, &mut thread.lines);
        }
        make_stores_durable(&mut thread.lines);
    }
    thread.releasing = releasing;
    let Some(slot) = &thread.slot else {
        no_slot(thread);
    };
    let Some(code) = Code::from_word(region.code) else {
        fatal!("a region has no code");
    };
    let mut bank = next_bank(slot);
    // SAFETY: the thread's own, and the record before lies in the other bank.
    let bank = unsafe { bank.as_mut() };
    let live_ins = bank.get_mut(RECORD_HEAD_WORDS..RECORD_HEAD_WORDS + usize::from(region.words));
    // A bank without room for them is refused below.
    let live_ins = live_ins.unwrap_or_default();
    // SAFETY: as the caller promises; compiled code does not know the bank.
    unsafe { ptr::copy_nonoverlapping(words, live_ins.as_mut_ptr(), live_ins.len()) };
    make_lasting(live_ins, region, &thread.early);
    let mut record =
        RecordWriter::new(bank, slot.sequence + 1, code).live_ins_in_place(region.words.into());
    for lock in thread.held.iter() {
        // One that is let go for the first of several times is held: the region begins with that.
        if lock.address != thread.releasing || lock.count > 1 {
            let name = named(lock.address);
            record = (0..lock.count).fold(record, |record, _| record.lock(name));
        }
    }
    if thread.unguarded > 0 {
        record = match names::unguarded(thread.unguarded) {
            Some(regions) => record.lock(regions),
            None => fatal!("{code}: durum_durable_begin is nested too deeply for a record"),
        };
    }
    if let Some(top) = thread.stack.in_use() {
        record = record.stack(top);
    }
    if let Some(repeats) = thread.lines.repeats() {
        // SAFETY: what was stored is mapped.
        record = unsafe { repeats.tell(record) };
    }
    let Some(written) = slot.memory.tell(record).finish(&slot.salt) else {
        let words = region.words;
        fatal!("{code}: {words} words of live-ins, or the locks, are too many for a record");
    };
    // ORDER: what the record tells of is durable with it, and so are frames, which have checksums; else the next record
    // is found, which does not tell of it.
    thread.stack.write_back(has_locals, &mut thread.lines);
    thread.lines.drain();
    // ORDER: the record is durable before the region stores anything; else a crash finds what was stored and goes on
    // with the region before, whose reads have changed.
    publish(thread, written, RECORD_WRITE, RECORD_FENCE);
    if !thread.is_published {
        thread.note_published(memory::epoch());
    }
    thread.is_stale = false;
    thread.region.begin(region.words);
    thread.stack.note_recorded();
    if let Some(slot) = &mut thread.slot {
        // ORDER: behind the record, which tells of them; durable with the region's stores, before another record does
        // not.
        let lines = &mut thread.lines;
        slot.memory
            .fill_blank(|start, size| add(lines, start, size));
        slot.memory.set_bits(|word| add_word(lines, word));
        slot.memory.note_told();
    }
}

/// Bytes have changed.
fn add(lines: &mut Lines, start: usize, size: usize) {
    // SAFETY: in a puddle of the heap that is open.
    unsafe { lines.add(start, size) };
}

/// A word of a bitmap has changed.
fn add_word(lines: &mut Lines, word: usize) {
    add(lines, word, 8);
}

/// Whether the thread has taken anything that no record tells of.
#[inline]
pub(crate) fn has_taken(thread: &Thread) -> bool {
    (thread.slot.as_ref()).is_some_and(|slot| slot.memory.has_taken())
}

/// What the thread has taken, and no record tells of, is so durably when this returns; or will be with the record that
/// its section has ended, if that has recorded anything.
#[inline]
pub(crate) fn settle(thread: &mut Thread) {
    if let Some(slot) = &mut thread.slot
        && slot.memory.has_taken()
    {
        settle_taken(&mut slot.memory, &mut thread.lines);
        if slot.memory.has_again() && !thread.is_published {
            settle_again(thread);
        }
    }
}

/// The last record is that of a section that has ended, and says that something was freed which was taken again:
/// another one takes its place.
#[cold]
fn settle_again(thread: &mut Thread) {
    if !durum_persist::record::leaves_out(TELL_AGAIN) {
        publish_idle(thread, Memory::tell_before);
    }
    if let Some(slot) = &mut thread.slot {
        slot.memory.note_told();
    }
}

/// What was taken is so durably when this returns, by its bits alone: a crash leaves it taken, whatever leads there.
/// What was taken again is not: a record has to tell of that.
pub(crate) fn settle_taken(memory: &mut Memory, lines: &mut Lines) {
    memory.fill_blank(|start, size| add(lines, start, size));
    if lines.drain() {
        // ORDER: headers, and what was written there, are durable before the bits are; else a crash finds an extent
        // without a header.
        line::fence(TAKEN_FENCE);
    }
    memory.set_bits(|word| add_word(lines, word));
    if lines.drain() {
        // ORDER: the bits are durable before anything leads there; else somebody else takes it after a crash.
        line::fence(BITS_FENCE);
    }
}

/// What was freed is free durably when this returns, by its bits alone: no section is under way that could need it.
pub(crate) fn settle_freed<'f>(freed: impl IntoIterator<Item = &'f Freed>, lines: &mut Lines) {
    freed
        .into_iter()
        .for_each(|freed| add_word(lines, freed.clear()));
    if lines.drain() {
        // ORDER: the bits are durable before anybody takes what they stand for; else they could lose it by a crash.
        line::fence(BITS_FENCE);
    }
}

/// Makes the frame of a call, whose place this gives. Durable with the next record.
///
/// # Safety
/// As many words as the region has.
pub(crate) unsafe fn push_frame(thread: &mut Thread, region: &Region, words: *const u64) -> usize {
    // The heap's from now on, where there is one.
    thread.next_stack();
    // SAFETY: as the caller promises.
    unsafe {
        match &thread.slot {
            Some(slot) => (thread.stack).push_frame(region, words, &slot.salt, &thread.early),
            // Nothing is recorded as long as it is there.
            None => {
                let (none, salt) = (Stack::default(), SlotSalt::new(0, 0));
                thread.early.push_frame(region, words, &salt, &none)
            }
        }
    }
}

/// The section has ended: what it has stored is durable, and that it is over.
#[inline]
pub(crate) fn end(thread: &mut Thread) {
    if !thread.is_published {
        return end_word(thread);
    }
    idle(thread);
}

/// A record that the thread is in no section, and what it has freed: durable when this returns.
pub(crate) fn idle(thread: &mut Thread) {
    if let Some(slot) = &mut thread.slot
        && slot.memory.has_freed()
    {
        let oldest = thread::oldest_under_way();
        // ORDER: durable with the stores, before the record that does not tell of them any more.
        slot.memory
            .clear_bits(oldest, |word| add_word(&mut thread.lines, word));
    }
    make_stores_durable(&mut thread.lines);
    if let Some(slot) = &mut thread.slot {
        slot.memory.note_told();
    }
    publish_idle(thread, Memory::tell);
    thread.region.end();
    thread.stack.note_idle();
    thread.note_ended();
}

/// A record that the thread is in no section, durable when this returns.
fn publish_idle(
    thread: &mut Thread,
    tell: impl for<'a> FnOnce(&Memory, RecordWriter<'a>) -> RecordWriter<'a>,
) {
    let Some(slot) = &thread.slot else {
        no_slot(thread);
    };
    let mut bank = next_bank(slot);
    // SAFETY: the thread's own, and the record before lies in the other bank.
    let bank = unsafe { bank.as_mut() };
    let record = RecordWriter::idle(bank, slot.sequence + 1);
    let Some(written) = tell(&slot.memory, record).finish(&slot.salt) else {
        fatal!("a thread has made more records than there are numbers");
    };
    // ORDER: durable before the lock is free; else a crash finds a claim to a lock that another section has taken
    // since, and does again what that one builds upon.
    publish(thread, written, IDLE_WRITE, IDLE_FENCE);
}

/// In front of a word that needs no record: what it may link is durable when this returns.
#[inline]
pub(crate) fn begin_word(thread: &mut Thread, region: &Region) {
    thread.is_word = true;
    thread.region.begin(region.words);
    if thread.lines.drain() {
        // ORDER: what was written before is durable before the word that leads there; else a crash finds the word, and
        // not what it leads to.
        line::fence(OWNED_FENCE);
    }
}

/// What a section has stored that has no record is durable when this returns: a word, or a lock that was made.
#[inline]
fn end_word(thread: &mut Thread) {
    thread.is_word = false;
    thread.region.end();
    if thread.lines.drain() {
        // ORDER: durable before the lock is free; else whoever takes it next builds on what a crash takes back.
        line::fence(STORES_FENCE);
    }
}

/// Lines are durable when this returns.
fn make_stores_durable(lines: &mut Lines) {
    if lines.drain() {
        // ORDER: what a region has stored is durable before the record that says that it has ended; else a crash
        // finds the record and not the stores, which nobody does again.
        line::fence(STORES_FENCE);
    }
}

fn publish(thread: &mut Thread, written: Written, write: Site, fence: Site) {
    let Some(slot) = &mut thread.slot else {
        return;
    };
    // SAFETY: inside the bank.
    // ORDER: as the callers say, both.
    unsafe { line::write_back(next_bank(slot).cast().as_ptr(), written.bytes, write) };
    // ORDER: the record is durable before the next one is begun, which overwrites the one before; else a crash finds
    // none.
    line::fence(fence);
    slot.sequence += 1;
}

fn next_bank(slot: &Slot) -> NonNull<[u64; BANK_WORDS]> {
    slot.bank(slot.sequence + 1)
}

/// How a record names a lock.
fn named(address: usize) -> Lock {
    let named = match reach::holds(address) {
        true => Lock::at(address as u64),
        false => names::name_of(address),
    };
    match named {
        Some(lock) => lock,
        None => fatal!(
            "the lock at {address:#x} is held by a section that stores, and lies neither in the heap nor in a global variable: nobody could take it again after a crash; put it into an object of nv_malloc or nv_root, beside what it guards"
        ),
    }
}

#[cold]
fn no_slot(thread: &Thread) -> ! {
    match reach::opening() {
        0 => {
            fatal!("a section stores, and no heap is open: set DURUM_HEAP, or call nv_open before")
        }
        _ if thread.early.has_frames() => fatal!(
            "a section stores that was begun before the heap was open, or in a call from then: call nv_open before, in a function that has no sections itself"
        ),
        _ => fatal!("a thread has no place for its records"),
    }
}
