//! What a transaction does to memory of the pool: it announces, moves values in and out, allocates and frees.

use std::mem::needs_drop;
use std::ptr;
use std::sync::atomic::{AtomicU64, Ordering};

use super::{LOOKS, RECENT, TypedTx};
use crate::described::Described;
use crate::opened::Announce;
use crate::typed::open_ranges::OpenRange;
use crate::typed::psafe::PSafe;

impl TypedTx {
    /// Whether an address lies where the pool's objects do: not on the stack, not on the volatile heap.
    #[inline(always)]
    pub(in crate::typed) fn holds(&self, address: usize) -> bool {
        self.binding().words.hold(address)
    }

    /// Announces a change of persistent memory to the core.
    #[inline]
    pub(in crate::typed) fn announce(&self, address: usize, len: usize) {
        let start = ptr::with_exposed_provenance(address);
        // SAFETY: the caller is alone with the range until the transaction has ended: cells are of one thread, or
        // locked.
        if let Err(error) = unsafe { self.core().add_bytes(start, len, Announce::Backup) } {
            self.fail(error);
        }
    }

    /// Prepares a value for being changed through `&mut` until the transaction ends. Its old contents come back if the
    /// transaction does not commit, and handles that move in and out are counted. Returns whether the value lies in the
    /// pool; for any other there is nothing to do.
    ///
    /// The caller makes no reference to the value before this: counting reads the value, after which an older `&mut`
    /// may not be used.
    #[inline]
    pub(in crate::typed) fn open_to_changes<T: PSafe>(&self, value: *mut T) -> bool {
        // Counting reads by address, so the pointer is exposed. It is the last one that the address stands for, and
        // stays good.
        let (address, len) = (value.expose_provenance(), size_of::<T>());
        if !self.holds(address) {
            return false;
        }
        self.reset_words::<T>(address, len);
        // The tag says whether the type has handles: for one without, the range was announced but not opened. A length
        // of more bits would make the tag of another range.
        let fits = len < 1 << 15;
        let tag = address as u64 | (len as u64) << 48 | u64::from(T::OWNERS) << 63;
        let slot = &self.recent[(address >> 4) % RECENT];
        if fits && slot.get() == (tag, self.id.get()) {
            return true;
        }
        self.announce(address, len);
        if T::OWNERS {
            self.open_range::<T>(address, len);
        }
        if fits {
            slot.set((tag, self.id.get()));
        }
        true
    }

    /// The same for values in a row.
    pub(in crate::typed) fn open_row_to_changes<T: PSafe>(&self, start: *mut T, len: usize) {
        let (address, bytes) = (start.expose_provenance(), len * size_of::<T>());
        if self.holds(address) {
            self.reset_words::<T>(address, bytes);
            self.announce(address, bytes);
            if T::OWNERS {
                self.open_range::<T>(address, bytes);
            }
        }
    }

    #[inline]
    fn open_range<T: PSafe>(&self, start: usize, bytes: usize) {
        unsafe fn owners<T: PSafe>(start: usize, end: usize) -> i64 {
            let (mut at, mut owners) = (start, 0);
            while at < end {
                // SAFETY: values lie there while the range is open. One by one: others may hold references to what lies
                // beside.
                owners += unsafe { &*ptr::with_exposed_provenance::<T>(at) }.owners();
                at += size_of::<T>();
            }
            owners
        }
        // Nothing is in no room, and ranges are told apart by where they lie.
        if bytes == 0 {
            return;
        }
        let range = OpenRange {
            start,
            end: start + bytes,
            owners: owners::<T>,
        };
        self.note(LOOKS);
        // SAFETY: the values lie there; before they are moved or freed, `close_ranges` is called.
        if let Some(change) = unsafe { self.open_ranges.borrow_mut().open(range) } {
            // SAFETY: the values lie there. Counted here, where the type is known: for a handle that is a comparison.
            self.gain(change + unsafe { owners::<T>(start, start + bytes) });
        }
    }

    /// Values in a range are about to be moved or freed: their open ranges end.
    #[inline]
    pub(in crate::typed) fn close_ranges(&self, start: usize, len: usize) {
        let closed = self.open_ranges.borrow_mut().close(start, start + len);
        if let Some(change) = closed {
            self.gain(change);
            self.forget_recent();
        }
    }

    /// What was announced may hold other values now: nothing is taken as prepared before.
    fn forget_recent(&self) {
        self.recent.iter().for_each(|slot| slot.set((0, 0)));
    }

    /// The value at `address` goes into volatile hands, and nothing stays there.
    ///
    /// # Safety
    /// There is a value, which nobody uses after this.
    pub(in crate::typed) unsafe fn take_out<T: PSafe>(&self, address: usize) -> T {
        if T::OWNERS {
            self.close_ranges(address, size_of::<T>());
        }
        // SAFETY: as the caller promises.
        let value = unsafe { ptr::with_exposed_provenance::<T>(address).read() };
        if T::OWNERS {
            self.gain(value.owners());
        }
        value
    }

    /// Resets the words of the cells in `len` bytes that hold `T`s, or will. The bytes are this transaction's alone, so
    /// no guard of these cells lives: what the words say is left of guards that were forgotten, or of earlier cells
    /// there.
    #[inline]
    pub(in crate::typed) fn reset_words<T: PSafe>(&self, address: usize, len: usize) {
        if !T::WORDS {
            return;
        }
        for at in (address..address + len).step_by(size_of::<u64>()) {
            // SAFETY: in the space of the open pool.
            let word: &AtomicU64 = unsafe { self.binding().words.at(at) };
            if word.load(Ordering::Relaxed) != 0 {
                self.reset_word(word);
            }
        }
    }

    #[cold]
    fn reset_word(&self, word: &AtomicU64) {
        // Unlocked at the end, it would be somebody else's by then.
        self.locked
            .borrow_mut()
            .retain(|locked| !ptr::addr_eq(locked.as_ptr(), word));
        word.store(0, Ordering::Relaxed);
    }

    /// Stores a value in memory of the pool where none is, and which is announced or fresh.
    ///
    /// # Safety
    /// The memory may be written to.
    #[inline]
    pub(in crate::typed) unsafe fn put_in<T: PSafe>(&self, address: usize, value: T) {
        if T::OWNERS {
            self.gain(-value.owners());
        }
        self.reset_words::<T>(address, size_of::<T>());
        // SAFETY: as the caller promises.
        unsafe { ptr::with_exposed_provenance_mut::<T>(address).write(value) };
    }

    /// Drops a value in the pool, in place. Its memory is not freed.
    ///
    /// # Safety
    /// There is a value, which nobody uses after this.
    #[inline]
    pub(in crate::typed) unsafe fn drop_value<T: PSafe>(&self, address: usize) {
        if T::OWNERS {
            self.close_ranges(address, size_of::<T>());
        }
        if needs_drop::<T>() {
            let value = ptr::with_exposed_provenance_mut::<T>(address);
            // SAFETY: as the caller promises.
            unsafe {
                self.gain((*value).owners());
                value.drop_in_place();
            }
        }
    }

    /// Allocates memory of the described type.
    #[inline]
    pub(in crate::typed) fn allocate<T: Described>(&self, size: usize, align: usize) -> usize {
        let pool = &self.open().pool;
        let made = pool.ensure_described(T::description()).and_then(|type_id| {
            match size == size_of::<T>() {
                true => self.core().alloc_lone(pool, type_id, size, align),
                false => self.core().alloc_bytes(pool, type_id, size, align),
            }
        });
        match made {
            Ok(object) => object.expose_provenance(),
            Err(error) => self.fail(error),
        }
    }

    /// Frees memory whose contents were dropped or moved away.
    pub(in crate::typed) fn free(&self, address: usize) {
        // SAFETY: there was one owner, which is gone, or no reference is left.
        if let Err(error) = unsafe {
            self.core()
                .free(ptr::with_exposed_provenance_mut::<u8>(address))
        } {
            self.fail_later(error);
        }
    }
}
