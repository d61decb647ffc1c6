//! The limbo: references that a transaction dropped but could not count off.
//!
//! When the last reference to an object goes while another transaction has the object pinned, or is about to commit its
//! counts, the reference moves to a list of the pool, in the same transaction. A later one drops it from there: any
//! that commits something about counts, or the next opening. Of an object's type that takes what the program knows when
//! it has used the type; where it never does, `durum gc` drops the reference.

use std::borrow::Cow;
use std::mem::offset_of;
use std::ptr;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use durum_format::types::{Field, Primitive, Type};

use super::count_word::CountWord;
use super::counts::{Counts, Glue, Pause};
use super::open::Base;
use super::running::Running;
use crate::described::{Described, Walk};
use crate::error::Result;

/// What the threads share about a pool's limbo.
#[derive(Debug, Default)]
pub(crate) struct Limbo {
    is_held: AtomicBool,
    len: AtomicUsize,
}

/// A reference in the limbo.
#[repr(C)]
#[derive(Debug)]
pub(super) struct Lost {
    /// Address of the next one, or 0.
    next: usize,
    object: usize,
    /// Type of the object.
    type_id: u64,
    /// 1 for a weak reference.
    is_weak: u64,
}

// SAFETY: measured.
unsafe impl Described for Lost {
    fn name() -> Option<Cow<'static, str>> {
        Some(Cow::Borrowed("durum lost reference"))
    }

    fn layout(walk: &mut Walk) -> Type<String> {
        let word = || Type::Primitive(Primitive::U64);
        let fields = vec![
            Field::new(
                "next",
                offset_of!(Self, next) as u64,
                walk.pointer_to::<Self>(),
            ),
            Field::new(
                "object",
                offset_of!(Self, object) as u64,
                Type::pointer_to_any(),
            ),
            Field::new("type_id", offset_of!(Self, type_id) as u64, word()),
            Field::new("is_weak", offset_of!(Self, is_weak) as u64, word()),
        ];
        let (size, align) = (size_of::<Self>() as u64, align_of::<Self>() as u64);
        Type::structure("durum lost reference", size, align, fields)
    }
}

impl Limbo {
    /// The references in it.
    #[inline]
    pub(crate) fn len(&self) -> usize {
        self.len.load(Ordering::Relaxed)
    }

    pub(crate) fn set_len(&self, len: usize) {
        self.len.store(len, Ordering::Relaxed);
    }

    fn try_hold(&self) -> bool {
        !self.is_held.swap(true, Ordering::Acquire)
    }

    pub(super) fn give_back(&self, change: isize) {
        let len = self.len().wrapping_add_signed(change);
        self.set_len(len);
        // ORDER (of threads): the list is seen by whoever holds it next.
        self.is_held.store(false, Ordering::Release);
    }
}

/// Address of the word that says where the list begins.
fn head(running: &Running) -> usize {
    running.open().root + offset_of!(Base, limbo)
}

fn read(address: usize) -> usize {
    // SAFETY: a link of the list, which this thread holds.
    unsafe { ptr::with_exposed_provenance::<usize>(address).read() }
}

fn write(running: &Running, address: usize, link: usize) {
    running.announce(address, size_of::<usize>());
    // SAFETY: as in `read`.
    unsafe { ptr::with_exposed_provenance_mut::<usize>(address).write(link) };
}

/// Moves references to the limbo, which is the transaction's from now on.
pub(super) fn put(
    running: &Running,
    object: usize,
    glue: &Glue,
    strong: i64,
    weak: i64,
) -> Result<()> {
    hold(running);
    let pool = &running.open().pool;
    let lost_type = pool.ensure_described(Lost::description())?;
    let type_id = (glue.describe)().id();
    let references = (0..strong).map(|_| 0).chain((0..weak).map(|_| 1));
    for is_weak in references {
        let made =
            running
                .tx()
                .alloc_bytes(pool, lost_type, size_of::<Lost>(), align_of::<Lost>())?;
        let lost = Lost {
            next: read(head(running)),
            object,
            type_id,
            is_weak,
        };
        // SAFETY: just allocated.
        unsafe { made.cast::<Lost>().write(lost) };
        write(running, head(running), made.expose_provenance());
        running.counts.borrow_mut().limbo_change += 1;
    }
    Ok(())
}

/// Waits for the limbo. Whoever has it is about to end its transaction, and waits for nobody.
fn hold(running: &Running) {
    if running.counts.borrow().has_limbo {
        return;
    }
    let mut pause = Pause::default();
    while !running.open().limbo.try_hold() {
        pause.wait();
    }
    note_held(running);
}

/// The limbo is the transaction's until its end.
fn note_held(running: &Running) {
    running.note_counted();
    running.counts.borrow_mut().has_limbo = true;
}

/// So many references are looked at in one transaction.
const SOME: usize = 64;

/// Drops references from the limbo, as part of a transaction that is about to commit: those that nobody hinders any
/// more.
pub(super) fn drop_some(running: &Running) {
    let has_limbo = running.counts.borrow().has_limbo;
    if !has_limbo {
        if !running.open().limbo.try_hold() {
            return;
        }
        note_held(running);
    }
    let mut link = head(running);
    let mut left = SOME;
    while left > 0 {
        let at = read(link);
        if at == 0 {
            return;
        }
        // SAFETY: a reference of the list.
        let lost = unsafe { ptr::with_exposed_provenance::<Lost>(at).read() };
        let glue = running.open().glue.find(running.binding(), lost.type_id);
        // SAFETY: the reference keeps the object in the pool.
        let word = unsafe { running.binding().words.at::<CountWord>(lost.object) };
        // What this transaction has pinned or locked itself hinders nobody.
        let own = Counts::held(running, lost.object);
        match glue {
            Some(glue) if !word.is_held_by_others(own) => {
                write(running, link, lost.next);
                running.free(at);
                running.counts.borrow_mut().limbo_change -= 1;
                let (strong, weak) = if lost.is_weak == 0 { (-1, 0) } else { (0, -1) };
                Counts::add(running, lost.object, glue, true, strong, weak);
            }
            _ => link = at + offset_of!(Lost, next),
        }
        // Those that wait for a type which the program may never use must not keep it from the others.
        left -= usize::from(glue.is_some());
    }
}

/// The references in the limbo of a pool that is just being opened.
pub(super) fn count(root: usize) -> usize {
    let mut link = root + offset_of!(Base, limbo);
    let mut count = 0;
    loop {
        link = match read(link) {
            0 => return count,
            at => at + offset_of!(Lost, next),
        };
        count += 1;
    }
}
