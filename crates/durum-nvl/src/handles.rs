//! Which heaps are open, and the handles that programs have of them.
//!
//! A handle is a number and no address: a place in a table that is never freed, and the number of the opening. So
//! whatever a program passes is looked up and never followed, and one that was closed, or that nobody gave, is told by
//! name.
//!
//! Who looks a heap up is [`Guard`], and whoever closes one waits for them: [`in_use`](crate::in_use) tells how they
//! never miss each other.

use std::cell::Cell;
use std::collections::VecDeque;
use std::ops::Range;
use std::path::PathBuf;
use std::ptr;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use durum::Pool;

use crate::fatal::{Location, fatal};
use crate::heap::{HEAPS_MAX, Heap};
use crate::in_use::{Place, Presence};
use crate::open_error;
use crate::presence;
use crate::primitive::locked;

/// What programs have of an open heap, `nvl_heap_t` of nvl.h. Nothing lies at its address.
#[derive(Debug)]
#[repr(C)]
pub struct Handle {
    nothing: [u8; 0],
}

/// The upper bits of each handle. No pointer of a program has them, so that a collection takes none for one.
const MARK: usize = 0x4e56 << 48;
const INDEX_BITS: u32 = HEAPS_MAX.trailing_zeros();

/// An open heap's place.
struct Slot {
    place: Place<Heap>,
    /// Addresses that its store has taken.
    addresses: [AtomicUsize; 2],
}

static SLOTS: [Slot; HEAPS_MAX] = [const {
    Slot {
        place: Place::new(),
        addresses: [AtomicUsize::new(0), AtomicUsize::new(0)],
    }
}; HEAPS_MAX];
/// No heap is at this index or behind it.
static END: AtomicUsize = AtomicUsize::new(0);
/// How many heaps were opened.
static OPENED: AtomicUsize = AtomicUsize::new(0);
/// Looking up makes a fence. Till the first heap is open nobody finds one.
static IS_FENCED: AtomicBool = AtomicBool::new(true);

/// What is remembered of a heap that was closed.
struct Closed {
    handle: usize,
    path: PathBuf,
    /// `FILE:LINE`, where that is known.
    place: Option<String>,
    addresses: Range<usize>,
}

/// The latest of them.
static CLOSED: Mutex<VecDeque<Closed>> = Mutex::new(VecDeque::new());
const CLOSED_MAX: usize = 64;

/// A free place, and the handle of the heap that will be there. While heaps are locked against opening and closing.
pub(crate) fn reserve() -> Option<(usize, usize)> {
    let index = SLOTS.iter().position(|slot| slot.place.is_free())?;
    let number = OPENED.fetch_add(1, Ordering::Relaxed) + 1;
    // As many openings as 42 bits can count take longer than any process lasts.
    Some((index, MARK | number << INDEX_BITS | index))
}

/// Lets others find a heap, which is freed by nobody until [`forget`] gives it back.
pub(crate) fn publish(index: usize, heap: *mut Heap) -> *mut Handle {
    // SAFETY: the caller's, who has just made it.
    let open = unsafe { &*heap };
    IS_FENCED.store(!durum::asymmetric::can_fence_all(), Ordering::Relaxed);
    let slot = &SLOTS[index];
    let Range { start, end } = open.addresses();
    slot.addresses[0].store(start, Ordering::Relaxed);
    slot.addresses[1].store(end, Ordering::Relaxed);
    slot.place.publish(open.handle, open.pool.key(), heap);
    END.fetch_max(index + 1, Ordering::AcqRel);
    ptr::without_provenance_mut(open.handle)
}

/// Lets nobody find an open heap any more, and waits until nobody uses it. While heaps are locked against opening and
/// closing.
pub(crate) fn forget(handle: *mut Handle, at: Location) -> *mut Heap {
    let Some(slot) = slot_of(handle.addr()) else {
        refuse(handle.addr(), at);
    };
    let index = handle.addr() % HEAPS_MAX;
    let heap = slot.place.heap();
    // SAFETY: open, and only this function ends that, whose caller holds the lock.
    let open = unsafe { &*heap };
    // Before: whoever does not find the heap any more is told where it was closed.
    let mut closed = locked(&CLOSED);
    if closed.len() == CLOSED_MAX {
        closed.pop_front();
    }
    closed.push_back(Closed {
        handle: open.handle,
        path: open.path.clone(),
        place: at.place(),
        addresses: open.addresses(),
    });
    drop(closed);
    slot.place.hide();
    open.forget_objects();
    // In a forked child there are no others, only what they have left; nor is anything of the heap left there.
    if !open.is_of_parent() {
        let is_fenced = IS_FENCED.load(Ordering::Relaxed);
        presence::wait_for_others(1 << index, is_fenced, |began| {
            fatal!(
                at,
                "the heap {open} is closed while another thread is in a transaction on it{began}; wait for that thread first"
            )
        });
    }
    slot.addresses[1].store(0, Ordering::Relaxed);
    slot.addresses[0].store(0, Ordering::Relaxed);
    slot.place.clear();
    heap
}

fn slot_of(handle: usize) -> Option<&'static Slot> {
    let slot = &SLOTS[handle % HEAPS_MAX];
    (handle != 0 && slot.place.has_handle(handle)).then_some(slot)
}

/// Tells what is wrong with a handle of no open heap.
#[cold]
pub(crate) fn refuse(handle: usize, at: Location) -> ! {
    if handle == 0 {
        fatal!(at, "the heap is NULL{}", open_error::latest());
    }
    if let Some(known) = locked(&CLOSED).iter().find(|known| known.handle == handle) {
        fatal!(at, "the heap {known} before; open it again");
    }
    let number = (handle & !MARK) >> INDEX_BITS;
    if handle & MARK == MARK && (1..=OPENED.load(Ordering::Relaxed)).contains(&number) {
        fatal!(at, "a heap is used that was closed before; open it again");
    }
    fatal!(
        at,
        "{handle:#x} is no heap: those are what nvl_open and nvl_create give"
    )
}

impl std::fmt::Display for Closed {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "\"{}\" was closed", self.path.display())?;
        match &self.place {
            Some(place) => write!(f, " at {place}"),
            None => Ok(()),
        }
    }
}

/// Which closed heaps an address may have been in that is in no open one: a clause for a message, or nothing.
#[cold]
pub(crate) fn was_in(address: usize) -> String {
    let mut heaps = String::new();
    for known in locked(&CLOSED)
        .iter()
        .filter(|it| it.addresses.contains(&address))
    {
        let more = format!("; the heap {known}");
        if !heaps.contains(&more) {
            heaps.push_str(&more);
        }
    }
    heaps
}

/// Below this the address of a member, too, says that its pointer is null.
const NULL_END: usize = 4096;

/// Tells that an address is in no open heap.
#[cold]
pub(crate) fn in_no_heap(what: &str, address: usize, at: Location) -> ! {
    if address < NULL_END {
        fatal!(at, "{what} at {address:#x}: the pointer is null");
    }
    fatal!(
        at,
        "{what} at {address:#x}, which is in no open heap{}",
        was_in(address)
    )
}

/// Addresses of the stores of open heaps.
pub(crate) fn open_addresses() -> impl Iterator<Item = Range<usize>> {
    let end = END.load(Ordering::Acquire);
    SLOTS[..end].iter().filter_map(|slot| {
        let [start, end] = &slot.addresses;
        let range = start.load(Ordering::Relaxed)..end.load(Ordering::Relaxed);
        (!range.is_empty()).then_some(range)
    })
}

/// The open heaps. While heaps are locked against opening and closing.
pub(crate) fn open_heaps() -> impl Iterator<Item = &'static Heap> {
    SLOTS.iter().filter_map(|slot| {
        // SAFETY: null or an open heap, which nobody closes meanwhile.
        unsafe { slot.place.heap().as_ref() }
    })
}

/// A thread in a function of the runtime. What it looks up stays open as long as this is there.
pub(crate) struct Guard {
    presence: &'static Presence,
    /// What it has looked up.
    found: Cell<u64>,
}

impl Guard {
    #[inline]
    pub(crate) fn enter() -> Self {
        Self {
            presence: presence::of_thread(),
            found: Cell::new(0),
        }
    }

    /// The open heap that an address lies in.
    #[inline]
    pub(crate) fn holding(&self, address: usize) -> Option<&Heap> {
        let heap = self.glance(address);
        self.only(heap.map_or(0, Heap::bit));
        heap
    }

    /// The same for a function that waits for nobody: until it ends, no heap is closed.
    #[inline]
    pub(crate) fn glance(&self, address: usize) -> Option<&Heap> {
        self.announce();
        let pool = Pool::key_at(address)?;
        let mut slots = SLOTS[..END.load(Ordering::Acquire)].iter();
        let slot = slots.find(|slot| slot.place.has_pool(pool))?;
        // SAFETY: the table had it when this thread's word said so, so who closes it waits until the word does not.
        unsafe { slot.place.heap().as_ref() }
    }

    /// The heap of a handle, or the end of the program.
    #[inline]
    pub(crate) fn heap(&self, handle: *const Handle, at: Location) -> &Heap {
        let handle = handle.addr();
        self.announce();
        let slot = slot_of(handle).unwrap_or_else(|| refuse(handle, at));
        // SAFETY: as in `glance`.
        let heap = unsafe { slot.place.heap().as_ref() };
        self.only(1 << (handle % HEAPS_MAX));
        heap.unwrap_or_else(|| refuse(handle, at))
    }

    /// Before the table is read.
    #[inline]
    fn announce(&self) {
        self.presence.announce(IS_FENCED.load(Ordering::Relaxed));
    }

    /// The function uses these heaps, beside those that it has found before.
    #[inline]
    fn only(&self, heaps: u64) {
        let found = self.found.get() | heaps;
        self.found.set(found);
        self.presence.only(found);
    }

    /// Keeps these heaps open until the transaction of the thread has ended, which begins, or is open already.
    pub(crate) fn keep_for_transaction(&self, heaps: u64, at: Location) {
        self.presence.begin(heaps, at.parts());
    }

    /// Keeps a heap open until [`presence::drop_kept`].
    ///
    /// # Safety
    /// Nobody uses it behind that.
    pub(crate) unsafe fn keep(&self, heap: &Heap) -> &'static Heap {
        self.presence.keep(heap.bit());
        // SAFETY: as the caller promises.
        unsafe { &*ptr::from_ref(heap) }
    }
}

impl Drop for Guard {
    #[inline]
    fn drop(&mut self) {
        self.presence.leave();
    }
}
