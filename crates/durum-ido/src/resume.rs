//! What a crash has interrupted is completed by the code that was interrupted.
//!
//! A thread for each section takes its locks, waits until all others have theirs, and goes on as its record says;
//! then its callers do, one after the other, until it holds no lock any more. It records in the slot of the thread
//! that was interrupted, so that it can be interrupted in turn.

use std::ffi::c_void;
use std::ops::Range;
use std::ptr::NonNull;
use std::sync::Barrier;

use durum::{InterruptedSections, SectionPuddle, Store};
use durum_format::section::{Code, FrameLink, Head, LockKind, Record, Slot as Recorded, State};

use crate::code::{self, Function};
use crate::fatal::fatal;
use crate::locks::claims;
use crate::names;
use crate::open_error::{OpenError, refuse};
use crate::program;
use crate::reach;
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
    locks: Vec<usize>,
    /// How many regions are open that no lock guards.
    unguarded: u32,
    free: u16,
    /// The callers, from the outermost one on.
    frames: Vec<(FrameLink, Place)>,
}

/// Takes over what the clients of a store have left that were in sections in this pool.
pub(crate) fn take_over(store: &Store, pool: &str) -> durum::Result<Vec<InterruptedSections>> {
    let clients = store.interrupted()?.into_iter();
    let of_pool = clients.filter(|left| left.pools.iter().any(|name| name == pool));
    of_pool.map(|left| store.take_over(left.client)).collect()
}

/// What was recorded of the sections that were taken over, of a store with these addresses.
///
/// # Errors
/// A section that this program cannot complete.
pub(crate) fn read(
    interrupted: &[InterruptedSections],
    store: Range<u64>,
) -> Result<Vec<Section>, OpenError> {
    let puddles = interrupted.iter().flat_map(InterruptedSections::puddles);
    let mut sections = Vec::new();
    for puddle in puddles {
        read_puddle(puddle, &store, &mut sections)?;
    }
    Ok(sections)
}

/// The store is told that all sections have ended, which gives their puddles back.
pub(crate) fn done(interrupted: Vec<InterruptedSections>) -> Result<(), OpenError> {
    for sections in interrupted {
        sections.done()?;
    }
    Ok(())
}

fn read_puddle(
    puddle: &SectionPuddle,
    store: &Range<u64>,
    sections: &mut Vec<Section>,
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
        if let State::InSection(record) = state {
            sections.push(section(slot, &record)?);
        }
    }
    Ok(())
}

fn section(mut slot: Slot, record: &Record<'_>) -> Result<Section, OpenError> {
    if record.redo().len() + record.bits().len() > 0 {
        return Err(later(
            "words to be written again, or bits that it has taken",
        ));
    }
    slot.sequence = record.sequence;
    let top = record.stack.unwrap_or_default();
    let (mut frames, mut next) = (Vec::new(), top.frame);
    for frame in record.frames() {
        let place = place(frame.code, frame.live_ins())?;
        frames.extend(next.map(|link| (link, place)));
        next = frame.stack.frame;
    }
    frames.reverse();
    let (mut locks, mut unguarded) = (Vec::new(), 0);
    for lock in record.locks() {
        match lock.kind() {
            LockKind::At(address) => locks.push(address as usize),
            LockKind::Named(name) => match names::unguarded_of(name) {
                Some(count) => unguarded = count,
                None => locks.push(place_of(name)?),
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

fn later(what: &str) -> OpenError {
    OpenError::Refused(format!(
        "a section has recorded {what}, which this version does not: run the program of the version that has left it"
    ))
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

/// Completes sections; all have ended, durably, when this returns.
pub(crate) fn run(sections: Vec<Section>) {
    claims::enter(
        sections
            .iter()
            .flat_map(|section| section.locks.iter().copied()),
    );
    let all_have_locks = Barrier::new(sections.len());
    std::thread::scope(|scope| {
        for section in sections {
            let all_have_locks = &all_have_locks;
            scope.spawn(move || {
                durum_persist::record::join_thread();
                let (place, frames) = section.enter();
                all_have_locks.wait();
                go_on(place, frames);
            });
        }
    });
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
    fn enter(self) -> (Place, Vec<(FrameLink, Place)>) {
        // SAFETY: the thread's own, and no compiled code runs on it yet.
        let thread = unsafe { &mut *thread::current() };
        let (base, size) = self.slot.stack();
        let links = self.frames.iter().map(|(link, _)| *link).collect();
        thread.stack = Stack::recorded(base, size, self.free, links);
        thread.slot = Some(self.slot);
        for address in &self.locks {
            thread.held.add(*address, claims::mode(*address), true);
        }
        thread.unguarded = self.unguarded;
        thread.depth = self.locks.len() as u32 + self.unguarded;
        thread.is_published = true;
        thread.is_resuming = 1;
        (self.place, self.frames)
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
