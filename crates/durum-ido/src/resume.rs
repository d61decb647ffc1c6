//! What a crash has interrupted is completed by the code that was interrupted.
//!
//! A thread for each section takes its locks, waits until all others have theirs, and goes on as its record says;
//! then its callers do, one after the other, until it holds no lock any more. It records in the slot of the thread
//! that was interrupted, so that it can be interrupted in turn.

use std::collections::BTreeMap;
use std::ffi::c_void;
use std::ops::Range;
use std::ptr::{self, NonNull};
use std::sync::{Barrier, Mutex, PoisonError};

use durum::primitive::locked;
use durum::{Freed, InterruptedSections, Pool, SectionPuddle, Store};
use durum_format::section::{
    Bits, BitsChange, Code, FrameLink, Head, LockKind, Record, Slot as Recorded, State,
};
use durum_persist::line;

use crate::alloc;
use crate::code::{self, Function};
use crate::fatal::fatal;
use crate::heap;
use crate::lines::Lines;
use crate::locks::claims;
use crate::memory;
use crate::names;
use crate::open_error::{OpenError, refuse};
use crate::program;
use crate::reach;
use crate::sites::TAKEN_FENCE;
use crate::slots::Slot;
use crate::stack::Stack;
use crate::thread;

/// Words of what a function returns: room for any type.
const RESULT_WORDS: usize = 512;

/// How a function goes on.
#[derive(Debug)]
struct Place {
    function: &'static Function,
    code: Code,
    words: Vec<u64>,
}

/// A section that was interrupted.
#[derive(Debug)]
pub(crate) struct Section {
    slot: Slot,
    place: Place,
    /// With how often it holds them.
    locks: BTreeMap<usize, u32>,
    /// How many regions are open that no lock guards.
    unguarded: u32,
    free: u16,
    /// The callers, from the outermost one on, with the first word behind what lies below each frame.
    frames: Vec<(FrameLink, u16, Place)>,
}

/// What was left.
#[derive(Debug, Default)]
pub(crate) struct Left {
    sections: Vec<Section>,
    /// By threads that were in none.
    freed: Vec<Freed>,
}

/// Whose sections are taken over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Whose {
    /// Those of this build.
    Ours,
    /// Those of others as well, which may be in the same functions.
    Anybodys,
}

/// Takes over what the clients of a store have left that were in sections in this pool.
pub(crate) fn take_over(
    store: &Store,
    pool: &str,
    whose: Whose,
) -> durum::Result<Vec<InterruptedSections>> {
    let clients = store.interrupted()?.into_iter();
    let of_pool = clients.filter(|left| left.pools.iter().any(|name| name == pool));
    let wanted = of_pool.filter(|left| {
        whose == Whose::Anybodys || left.first.is_some_and(|code| code::find(code).is_some())
    });
    wanted.map(|left| store.take_over(left)).collect()
}

/// What was recorded of the sections that were taken over, of a store with these addresses, and of this pool's memory.
///
/// # Errors
/// A section that this program cannot complete.
pub(crate) fn read(
    interrupted: &[InterruptedSections],
    store: Range<u64>,
    pool: &Pool,
) -> Result<Left, OpenError> {
    let mut left = Left::default();
    for sections in interrupted {
        for puddle in sections.puddles() {
            let read = read_puddle(puddle, &store, pool, &mut left);
            read.map_err(|error| with_builds(error, sections))?;
        }
    }
    Ok(left)
}

/// Tells which program has left sections, where it has said so, and which one cannot complete them.
fn with_builds(error: OpenError, sections: &InterruptedSections) -> OpenError {
    match (error, &sections.left().program) {
        (OpenError::Refused(reason), Some(program)) => {
            let build = program::build();
            OpenError::Refused(format!(
                "{reason} (it was {program}; this is build {build})"
            ))
        }
        (error, _) => error,
    }
}

/// The store is told that all sections have ended, which gives their puddles back. What they have freed is free.
pub(crate) fn done(
    interrupted: Vec<InterruptedSections>,
    freed: Vec<Freed>,
) -> Result<(), OpenError> {
    alloc::end_interrupted(freed, || {
        for sections in interrupted {
            sections.done()?;
        }
        Ok(())
    })
}

fn read_puddle(
    puddle: &SectionPuddle,
    store: &Range<u64>,
    pool: &Pool,
    left: &mut Left,
) -> Result<(), OpenError> {
    let (heap, size) = puddle.heap();
    // SAFETY: mapped, and nobody writes there yet.
    let bytes = unsafe { NonNull::slice_from_raw_parts(heap, size).as_ref() };
    // One that is not whole has no slots, or the store would have refused it.
    let Ok(head) = Head::parse(bytes, puddle.size()) else {
        return Ok(());
    };
    for number in 0..head.slots {
        let slot = Slot::of(puddle, &head, number, reach::opening());
        // SAFETY: the same.
        let bytes = unsafe { slot.bytes().as_ref() };
        let Some(recorded) = Recorded::of(number, slot.salt, bytes, store.clone()) else {
            continue;
        };
        let state = recorded.current();
        let state = state.map_err(|damage| OpenError::Refused(damage.to_string()))?;
        match state {
            State::Unused => {}
            State::Idle(idle) => left.freed.extend(freed(pool, idle.bits())?),
            State::InSection(record) => left.sections.push(section(slot, &record, pool)?),
        }
    }
    Ok(())
}

/// What records say is freed. Recovery has seen to it that it is taken yet, and to all else that they say of words.
fn freed(pool: &Pool, bits: impl Iterator<Item = Bits>) -> durum::Result<Vec<Freed>> {
    let freed = bits.filter(|bits| bits.change == BitsChange::Freed);
    let freed = freed.filter_map(|bits| pool.freed_by_record(bits).transpose());
    freed.collect()
}

/// What a record says is taken and to be of zeros is so, durably when this returns: the region that it begins has
/// stored there already, in part, and does so again.
fn fill_blank(pool: &Pool, bits: impl Iterator<Item = Bits>) -> durum::Result<()> {
    let mut lines = Lines::default();
    for bits in bits.filter(|bits| bits.change == BitsChange::TakenBlank) {
        for (start, size) in pool.taken_by_record(bits)? {
            // SAFETY: an object of the pool, which only the section knows.
            unsafe {
                line::zero(ptr::with_exposed_provenance_mut(start), size);
                lines.add(start, size);
            }
        }
    }
    if lines.drain() {
        // ORDER: durable before the section makes another record, which does not tell of it.
        line::fence(TAKEN_FENCE);
    }
    Ok(())
}

fn section(mut slot: Slot, record: &Record<'_>, pool: &Pool) -> Result<Section, OpenError> {
    slot.sequence = record.sequence;
    fill_blank(pool, record.bits())?;
    for freed in freed(pool, record.bits())? {
        slot.memory.free(freed);
    }
    let top = record.stack.unwrap_or_default();
    let (mut frames, mut next) = (Vec::new(), top.frame);
    for frame in record.frames() {
        let place = place(frame.code, frame.live_ins())?;
        frames.extend(next.map(|link| (link, frame.stack.free, place)));
        next = frame.stack.frame;
    }
    frames.reverse();
    let (mut locks, mut unguarded) = (BTreeMap::new(), 0);
    for lock in record.locks() {
        match lock.kind() {
            LockKind::At(address) => *locks.entry(address as usize).or_insert(0) += 1,
            LockKind::Named(name) => match names::unguarded_of(name) {
                Some(count) => unguarded = count,
                None => *locks.entry(place_of(name)?).or_insert(0) += 1,
            },
        }
    }
    if locks.is_empty() && unguarded == 0 {
        let code = record.code;
        return refuse(format!(
            "a section goes on at {code}, and holds nothing: the record is damaged, or forged: keep the heap as it is"
        ));
    }
    Ok(Section {
        place: place(record.code, record.live_ins())?,
        locks,
        unguarded,
        free: top.free,
        frames,
        slot,
    })
}

fn place_of(name: u64) -> Result<usize, OpenError> {
    names::place_of(name).ok_or_else(|| {
        OpenError::Refused(format!(
            "a section holds a lock of the program by the name {name:#018x}, and this program has no such variable: it was changed since; run the one that was interrupted"
        ))
    })
}

fn place(code: Code, words: impl Iterator<Item = u64>) -> Result<Place, OpenError> {
    let Some(function) = code::find(code) else {
        return Err(OpenError::Refused(format!(
            "a section goes on at {code}, and this program has no such code: it was changed since; run the one that was interrupted"
        )));
    };
    let mut words: Vec<u64> = words.collect();
    // The record is the media's word for it.
    let region = function.region(code.region());
    let Some(region) = region.filter(|region| usize::from(region.words) == words.len()) else {
        return Err(OpenError::Refused(format!(
            "a section goes on at {code} with {} words, and {function} has no such region: the record is damaged, or forged: keep the heap as it is",
            words.len()
        )));
    };
    if !program::make_absolute(region, &mut words) {
        return Err(OpenError::Refused(format!(
            "a section of {function} has recorded an address in its program, and this is another build of it: run the one that was interrupted"
        )));
    }
    Ok(Place {
        function,
        code,
        words,
    })
}

/// Completes sections; all have ended, durably, when this returns. What they have freed, which is taken yet.
pub(crate) fn run(Left { sections, freed }: Left) -> Vec<Freed> {
    let (freed, epoch) = (Mutex::new(freed), memory::epoch());
    claims::enter(
        sections
            .iter()
            .flat_map(|section| section.locks.keys().copied()),
    );
    let all_have_locks = Barrier::new(sections.len());
    std::thread::scope(|scope| {
        for section in sections {
            let (all_have_locks, freed) = (&all_have_locks, &freed);
            scope.spawn(move || {
                durum_persist::record::join_thread();
                let (place, frames) = section.enter(epoch);
                all_have_locks.wait();
                go_on(place, frames);
                locked(freed).extend(freed_by_this_thread());
            });
        }
    });
    freed.into_inner().unwrap_or_else(PoisonError::into_inner)
}

fn freed_by_this_thread() -> Vec<Freed> {
    // SAFETY: the thread's own, and no compiled code runs on it any more.
    let slot = unsafe { &mut (*thread::current()).slot };
    let memory = slot.as_mut().map(|slot| std::mem::take(&mut slot.memory));
    let mut memory = memory.unwrap_or_default();
    if let Some(taking) = memory.taking.take() {
        heap::current().pool.end_taking(taking);
    }
    memory.into_freed().collect()
}

impl Place {
    fn resume(&self, result: &mut [u64; RESULT_WORDS]) {
        let region = u32::from(self.code.region());
        let words: *const c_void = self.words.as_ptr().cast();
        // SAFETY: the code whose record, or whose frame, this is, with what it has recorded there.
        unsafe {
            let result = result.as_mut_ptr().cast();
            (self.function.resume)(words, region, result, self.function.code);
        }
    }
}

impl Section {
    /// The calling thread is where the interrupted one was.
    fn enter(self, epoch: u64) -> (Place, Vec<(FrameLink, Place)>) {
        // SAFETY: the thread's own, and no compiled code runs on it yet.
        let thread = unsafe { &mut *thread::current() };
        let (base, size) = self.slot.stack();
        let links = self.frames.iter().map(|(link, below, _)| (*link, *below));
        let links: Vec<_> = links.collect();
        thread.stack = Stack::recorded(base, size, self.free, &links);
        thread.slot = Some(self.slot);
        for (address, count) in &self.locks {
            let mode = claims::mode(*address);
            thread.held.add_claimed(*address, mode, *count);
        }
        thread.unguarded = self.unguarded;
        thread.depth = self.locks.values().sum::<u32>() + self.unguarded;
        thread.note_published(epoch);
        thread.is_resuming = 1;
        let callers = self.frames.into_iter();
        (
            self.place,
            callers.map(|(link, _, place)| (link, place)).collect(),
        )
    }
}

/// Goes on where the record says, and then where callers do, until the section has ended.
fn go_on(place: Place, mut frames: Vec<(FrameLink, Place)>) {
    let mut result = [0; RESULT_WORDS];
    place.resume(&mut result);
    loop {
        // SAFETY: the thread's own, and no compiled code runs on it just now.
        let thread = unsafe { &mut *thread::current() };
        if thread.depth == 0 {
            return;
        }
        let (Some(link), Some((caller, place))) = (thread.stack.pop_frame(), frames.pop()) else {
            fatal!("{}: a section does not end", place.function);
        };
        if link != caller {
            fatal!(
                "{}: a call does not come back to its caller",
                place.function
            );
        }
        thread.is_stale = true;
        place.resume(&mut result);
    }
}
