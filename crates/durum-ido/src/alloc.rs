//! Memory of the heap.
//!
//! In a section nothing of it costs a fence: its records tell what it has taken and freed ([`crate::memory`]). Outside,
//! and where more was taken than a record has room for, bits of bitmaps are made durable by themselves. They are
//! independent of each other: a crash leaves something taken that nothing leads to, at worst.

use durum::{Freed, Pool, StoreError};
use durum_persist::line;

use crate::fatal::{OrFatal, fatal};
use crate::heap::{self, Heap};
use crate::lines::Lines;
use crate::memory::{Memory, TAKEN_MAX};
use crate::reach;
use crate::record;
use crate::slots;
use crate::thread::{self, Thread};
use crate::types::{AllocatedType, ObjectType};

/// As of `malloc`.
const ALIGN: usize = 16;

/// What new memory holds.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Contents {
    /// Anything.
    Any,
    Zeros,
    /// A copy of as many bytes from there; the rest is anything.
    Copy(*const u8, usize),
}

/// `size` bytes, filled. Null, and `ENOMEM`, where there is no room. Durably taken with the next record of the thread's
/// section, or when this returns.
///
/// # Safety
/// As for [`ObjectType::of`].
pub(crate) unsafe fn allocate(
    size: usize,
    contents: Contents,
    ty: *const AllocatedType,
) -> *mut u8 {
    let size = size.max(1);
    let heap = heap::current();
    // SAFETY: as the caller promises.
    let ty = unsafe { ObjectType::of(&heap.pool, ty, size) };
    allocate_in(heap, size, contents, ty)
}

fn allocate_in(heap: &Heap, size: usize, contents: Contents, ty: ObjectType) -> *mut u8 {
    let made = with_thread(|thread| {
        thread.is_stale = true;
        let is_in_section = thread.depth > 0;
        let (memory, lines) = memory_of(thread);
        take(&heap.pool, memory, lines, size, contents, ty, is_in_section)
    });
    match made {
        Ok(made) => made,
        Err(error) if is_full(&error) => {
            // SAFETY: the thread's own.
            unsafe { *libc::__errno_location() = libc::ENOMEM };
            std::ptr::null_mut()
        }
        Err(error) => fatal!("taking {size} bytes of the heap: {error}"),
    }
}

fn take(
    pool: &Pool,
    memory: &mut Memory,
    lines: &mut Lines,
    size: usize,
    contents: Contents,
    ty: ObjectType,
    is_told: bool,
) -> durum::Result<*mut u8> {
    let is_blank = ty.has_pointers && matches!(contents, Contents::Any);
    let (layout, oldest) = ((size, ALIGN), thread::oldest_under_way);
    let again = is_told.then(|| memory.take_again(pool, ty.id, layout, is_blank, oldest));
    let taking = memory.taking.get_or_insert_with(|| pool.taking());
    let made = match again.flatten() {
        Some(made) => made,
        None => pool.take(taking, ty.id, layout, is_blank, |start, size| {
            // SAFETY: in a puddle of the heap that is open.
            unsafe { lines.add(start, size) };
        })?,
    };
    let is_full = taking.words() > TAKEN_MAX;
    // Small objects lie side by side, so there may be something behind.
    let whole = match ty.has_pointers {
        true => size.next_multiple_of(ALIGN),
        false => size,
    };
    // SAFETY: was just taken; the source is the caller's.
    unsafe {
        match contents {
            Contents::Any if is_blank => memory.blank.push((made.expose_provenance(), whole)),
            Contents::Any => {}
            Contents::Zeros => line::zero(made, whole),
            Contents::Copy(source, len) => {
                let len = len.min(size);
                line::copy(made, source, len);
                if ty.has_pointers {
                    line::zero(made.add(len), whole - len);
                }
            }
        }
        if !matches!(contents, Contents::Any) {
            lines.add(made.expose_provenance(), whole);
        }
    }
    if !is_told || is_full {
        record::settle_taken(memory, lines);
    }
    Ok(made)
}

fn is_full(error: &durum::Error) -> bool {
    matches!(
        error,
        durum::Error::Store(StoreError::StorageFull { .. } | StoreError::AddressesExhausted { .. })
            | durum::Error::ObjectSize { .. }
    )
}

/// Frees an object; null is allowed. In a section that becomes true when it has ended.
pub(crate) fn free(object: *mut u8) {
    if object.is_null() {
        return;
    }
    check(object, "nv_free");
    let freed = heap::current().pool.free_by_record(object);
    let freed = freed.or_fatal("nv_free");
    with_thread(|thread| {
        thread.is_stale = true;
        if thread.depth == 0 && thread::oldest_under_way() == u64::MAX {
            free_now(vec![freed], thread);
        } else {
            memory_of(thread).0.free(freed);
            end_section(thread);
        }
    });
}

/// No section is under way that could need it.
fn free_now(freed: Vec<Freed>, thread: &mut Thread) {
    record::settle_freed(&freed, &mut thread.lines);
    heap::current().pool.give_back(freed);
}

/// The same contents in `size` bytes elsewhere; the old object is freed. Null, and `ENOMEM`, where there is no room:
/// the old one is as it was.
///
/// Its type is the old one, where nobody tells another.
///
/// # Safety
/// Null, or an object that nobody else uses; as for [`ObjectType::of`].
pub(crate) unsafe fn reallocate(object: *mut u8, size: usize, ty: *const AllocatedType) -> *mut u8 {
    if object.is_null() {
        // SAFETY: as the caller promises.
        return unsafe { allocate(size, Contents::Any, ty) };
    }
    check(object, "nv_realloc");
    // SAFETY: as the caller promises.
    let found = unsafe { heap::current().pool.object_at(object) };
    let Some(extent) = found.or_fatal("nv_realloc") else {
        fatal!("nv_realloc({object:p}): no object begins there");
    };
    let contents = Contents::Copy(object, extent.len);
    let heap = heap::current();
    // SAFETY: as the caller promises.
    let mut ty = unsafe { ObjectType::of(&heap.pool, ty, size) };
    if ty == ObjectType::UNKNOWN && size >= extent.len {
        ty = ObjectType::of_object(extent.type_id);
    }
    let made = allocate_in(heap, size, contents, ty);
    if !made.is_null() {
        free(object);
    }
    made
}

fn check(object: *mut u8, function: &str) {
    if !reach::holds(object.addr()) {
        fatal!("{function}({object:p}): does not lie in the heap; what malloc gave takes free");
    }
}

/// What is left to be done with the memory of a thread's section, if that has ended.
#[inline]
pub(crate) fn end_section(thread: &mut Thread) {
    if thread.depth == 0
        && let Some(slot) = &mut thread.slot
    {
        let is_told = !slot.memory.is_untold();
        if !is_told || slot.memory.has_cleared() {
            give_back(thread);
        }
    }
}

#[cold]
fn give_back(thread: &mut Thread) {
    if thread
        .slot
        .as_ref()
        .is_some_and(|slot| slot.memory.is_untold())
    {
        // A section that has recorded nothing else.
        record::idle(thread);
    }
    let heap = heap::current();
    if let Some(slot) = &mut thread.slot {
        heap.pool.give_back(slot.memory.take_cleared());
        slot.memory.free_unused(heap.pool.empty_slabs());
    }
}

/// The heap is closed, and no section is under way: what was freed is free. Durable when this returns.
pub(crate) fn close() {
    let left = slots::close().into_iter().map(|slot| slot.memory);
    with_thread(|thread| {
        let own = thread.slot.as_mut();
        let own = own.filter(|slot| slot.opening == reach::opening());
        let own = own.map(|slot| std::mem::take(&mut slot.memory));
        let freed: Vec<Freed> = left.chain(own).flat_map(Memory::into_freed).collect();
        record::settle_freed(&freed, &mut thread.lines);
    });
}

/// The sections that were interrupted have ended, and `done` makes their records go, durably: what they have freed is
/// free.
pub(crate) fn end_interrupted<E>(
    freed: Vec<Freed>,
    done: impl FnOnce() -> Result<(), E>,
) -> Result<(), E> {
    // ORDER: before the records go, which tell of it.
    with_thread(|thread| record::settle_freed(&freed, &mut thread.lines));
    done()?;
    heap::current().pool.give_back(freed);
    Ok(())
}

/// What a thread has taken and freed, while a heap is open, and the lines that it has written.
fn memory_of(thread: &mut Thread) -> (&mut Memory, &mut Lines) {
    thread.ensure_slot();
    match thread {
        Thread {
            slot: Some(slot),
            lines,
            ..
        } => (&mut slot.memory, lines),
        _ => fatal!("a thread has no place for its records"),
    }
}

fn with_thread<R>(body: impl FnOnce(&mut Thread) -> R) -> R {
    // SAFETY: the thread's own, and no one here has another reference to it.
    body(unsafe { &mut *thread::current() })
}
