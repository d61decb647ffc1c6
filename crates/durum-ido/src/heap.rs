//! The heap that is open: a store with one pool.

use std::path::PathBuf;
use std::ptr;
use std::sync::Mutex;
use std::sync::atomic::{AtomicPtr, Ordering};

use durum::primitive::locked;
use durum::{Pool, Store};
use durum_persist::line::LINE;

use crate::fatal::{OrFatal, fatal};
use crate::layout::HeapRoot;
use crate::types::{AllocatedType, ObjectType, UNKNOWN};
use crate::{reach, thread};

/// What this version makes and opens.
pub(crate) const VERSION: u64 = 1;

/// An open heap.
#[derive(Debug)]
pub(crate) struct Heap {
    pub(crate) pool: Pool,
    pub(crate) root: *mut HeapRoot,
    pub(crate) store: Store,
}

// SAFETY: the root object is in the pool, and changed by one thread at a time.
unsafe impl Send for Heap {}
// SAFETY: the same.
unsafe impl Sync for Heap {}

/// Null while none is open. It is read at each allocation, behind a fence of the media, so no lock guards it: an atomic
/// exchange would wait for that fence.
static HEAP: AtomicPtr<Heap> = AtomicPtr::new(ptr::null_mut());

/// Its threads and their sections use it from now on.
pub(crate) fn publish(heap: Heap) {
    let before = HEAP.swap(Box::into_raw(Box::new(heap)), Ordering::AcqRel);
    debug_assert!(before.is_null(), "one heap at a time is open");
}

/// Whether one is open. For threads that may see one that another thread closes again, as it could not be completed.
pub(crate) fn is_open() -> bool {
    !HEAP.load(Ordering::Acquire).is_null()
}

/// The path of the heap that is open, as long as nobody closes it.
pub(crate) fn path() -> Option<PathBuf> {
    open_heap().map(|heap| heap.store.info().path.clone())
}

/// Nobody uses it any more.
///
/// # Errors
/// What the store says.
///
/// # Safety
/// So it is: no reference to it is left.
pub(crate) unsafe fn close() -> durum::Result<()> {
    let heap = HEAP.swap(ptr::null_mut(), Ordering::AcqRel);
    reach::close();
    thread::tell_of_store();
    if heap.is_null() {
        return Ok(());
    }
    // SAFETY: from `publish`, and nobody's any more, as the caller promises.
    let Heap { pool, store, .. } = *unsafe { Box::from_raw(heap) };
    drop(pool);
    store.close()
}

/// The heap that is open, as long as nobody closes it.
#[inline]
fn open_heap() -> Option<&'static Heap> {
    // SAFETY: null, or from `publish`; no thread uses it any more when it is closed.
    unsafe { HEAP.load(Ordering::Acquire).as_ref() }
}

/// The same. Without one the program ends.
#[inline]
pub(crate) fn current() -> &'static Heap {
    match open_heap() {
        Some(heap) => heap,
        None => fatal!(
            "no heap is open: set DURUM_HEAP, or call nv_open in a function that has no sections and uses no variable that lasts"
        ),
    }
}

/// The program's root: `size` bytes from the begin of a line on, made now, of zeros, if there is none. The program ends
/// if the heap has one of another size, or of another type where both are known.
///
/// # Safety
/// As for [`ObjectType::of`].
pub(crate) unsafe fn root(size: usize, ty: *const AllocatedType) -> *mut u8 {
    static MAKING: Mutex<()> = Mutex::new(());
    let _one_at_a_time = locked(&MAKING);
    let heap = current();
    let place = heap.root;
    // SAFETY: the root object, which is changed here only.
    let (root, found) = unsafe { ((*place).root, (*place).size) };
    // SAFETY: as the caller promises.
    let ty = unsafe { ObjectType::of(&heap.pool, ty, size) };
    if !root.is_null() {
        if found != size as u64 {
            fatal!(
                "the root of the heap has {found} bytes, and the program wants {size}: it is another program's, or an earlier one's"
            );
        }
        check_type(heap, root, ty);
        return ptr::with_exposed_provenance_mut(root.addr());
    }
    let made = heap.pool.transaction(|tx| {
        let made = tx.alloc_bytes(&heap.pool, ty.id, size.max(1), LINE)?;
        // SAFETY: was just allocated.
        unsafe { durum_persist::line::zero(made, size.max(1)) };
        // SAFETY: the root object.
        unsafe {
            tx.set(&raw mut (*place).root, made)?;
            tx.set(&raw mut (*place).size, size as u64)?;
        }
        Ok::<_, durum::Error>(made)
    });
    match made {
        Ok(made) => made,
        Err(error) => fatal!("making the root of the heap: {error}"),
    }
}

fn check_type(heap: &Heap, root: *mut u8, wanted: ObjectType) {
    // SAFETY: the root object leads to an object of the heap.
    let found = unsafe { heap.pool.object_at(root) };
    let Some(found) = found.or_fatal("looking at the root of the heap") else {
        fatal!("the root of the heap leads to no object: the heap is damaged");
    };
    if wanted.id != UNKNOWN && found.type_id != UNKNOWN && wanted.id != found.type_id {
        fatal!(
            "the root of the heap has another type than in this program: run the one that has made it, or make a new heap"
        );
    }
}
