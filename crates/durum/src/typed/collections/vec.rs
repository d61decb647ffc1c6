//! `PVec`: elements in a row.

mod iter;
mod traits;

use std::marker::PhantomData;
use std::mem::needs_drop;
use std::ops::{Bound, RangeBounds};
use std::ptr;
use std::slice::{self, SliceIndex};

pub use self::iter::IterMut;
use self::traits::Row;
use crate::typed::journal::{Journal, current_tx, current_tx_unless};
use crate::typed::pool_type::PoolType;
use crate::typed::psafe::PSafe;
use crate::typed::typed_tx::TypedTx;
use crate::typed::values::PClone;

/// A vector in the pool.
///
/// Indexing to write (`v[3] = x`), [`PVec::get_mut`] and [`PVec::iter_mut`] announce the elements that they give; a
/// slice that is borrowed to write as a whole (`v.sort()`) is announced as a whole.
#[repr(C)]
pub struct PVec<T: PSafe, P: PoolType> {
    /// Address of the elements; 0 if there is no room for any. Room beyond `len` is zero where elements have pointers.
    buffer: usize,
    capacity: usize,
    len: usize,
    _elements: PhantomData<(*mut T, P)>,
}

impl<T: PSafe, P: PoolType> PVec<T, P> {
    const IS_EMPTY_TYPE: bool = size_of::<T>() == 0;

    /// An empty vector, which has allocated nothing.
    pub const fn new() -> Self {
        const { T::POOL.assert_fits(P::ID) };
        Self {
            buffer: 0,
            capacity: if Self::IS_EMPTY_TYPE { usize::MAX } else { 0 },
            len: 0,
            _elements: PhantomData,
        }
    }

    /// An empty vector with room for `capacity` elements.
    pub fn with_capacity(capacity: usize, j: &Journal<P>) -> Self {
        let mut made = Self::new();
        made.reserve(capacity, j);
        made
    }

    /// The number of elements that there is room for.
    pub fn capacity(&self) -> usize {
        self.capacity
    }

    /// The elements.
    pub fn as_slice(&self) -> &[T] {
        self
    }

    fn address(&self, at: usize) -> usize {
        self.buffer + at * size_of::<T>()
    }

    fn start(&self) -> *mut T {
        match self.buffer {
            0 => ptr::dangling_mut(),
            buffer => ptr::with_exposed_provenance_mut(buffer),
        }
    }

    /// Makes room for `additional` more elements.
    ///
    /// # Panics
    /// If that is more than memory has. If the pool cannot grow, the transaction returns the error.
    pub fn reserve(&mut self, additional: usize, j: &Journal<P>) {
        if additional > self.capacity - self.len {
            self.grow(additional, j.tx());
        }
    }

    #[cold]
    fn grow(&mut self, additional: usize, tx: &TypedTx) {
        let wanted = self.len.checked_add(additional);
        let wanted = wanted.map(|wanted| wanted.max(self.capacity.saturating_mul(2)).max(4));
        self.take_room(wanted, tx);
    }

    /// Makes room for `additional` more elements and no others.
    pub fn reserve_exact(&mut self, additional: usize, j: &Journal<P>) {
        if additional > self.capacity - self.len {
            self.take_room(self.len.checked_add(additional), j.tx());
        }
    }

    /// Gives back the room beyond the elements.
    pub fn shrink_to_fit(&mut self, j: &Journal<P>) {
        if Self::IS_EMPTY_TYPE || self.capacity == self.len {
            return;
        }
        match self.len {
            0 => *self = Self::new(),
            len => self.take_room(Some(len), j.tx()),
        }
    }

    fn take_room(&mut self, wanted: Option<usize>, tx: &TypedTx) {
        let bytes = wanted.and_then(|wanted| wanted.checked_mul(size_of::<T>()));
        let Some(bytes) = bytes.filter(|bytes| *bytes <= isize::MAX as usize) else {
            panic!("a vector of that many elements has no room in memory");
        };
        let buffer = tx.allocate::<Row<T>>(bytes, align_of::<T>());
        let used = self.len * size_of::<T>();
        Self::close_ranges(tx, self.buffer, self.len);
        tx.reset_words::<T>(buffer, used);
        let target = ptr::with_exposed_provenance_mut::<u8>(buffer);
        // SAFETY: just allocated, and longer than what is moved there.
        unsafe {
            target.copy_from_nonoverlapping(self.start().cast(), used);
            if T::POINTERS {
                target.add(used).write_bytes(0, bytes - used);
            }
        }
        match self.buffer {
            // One owner more in the hands of whoever has the vector.
            0 => tx.gain(1),
            old => tx.free(old),
        }
        self.buffer = buffer;
        self.capacity = bytes / size_of::<T>();
    }

    /// Prepares the room in `[from, to)` for being written to, where there are no elements, or those that are about to
    /// move.
    fn prepare(&self, tx: &TypedTx, from: usize, to: usize) {
        let bytes = (to - from) * size_of::<T>();
        if bytes > 0 {
            Self::close_ranges(tx, self.buffer, self.len);
            tx.announce(self.address(from), bytes);
            tx.reset_words::<T>(self.address(from), bytes);
        }
    }

    /// The open ranges of all elements end: one may be of several in a row, and must neither count elements that are
    /// moved out of it nor overlap another one.
    fn close_ranges(tx: &TypedTx, start: usize, len: usize) {
        if T::OWNERS {
            tx.close_ranges(start, len * size_of::<T>());
        }
    }

    /// Where elements have been, pointers must not stay.
    fn wipe(&self, from: usize, to: usize) {
        if T::POINTERS && to > from {
            // SAFETY: announced room of the vector, without elements.
            unsafe {
                self.start()
                    .add(from)
                    .cast::<u8>()
                    .write_bytes(0, (to - from) * size_of::<T>())
            };
        }
    }

    /// Appends an element.
    #[inline]
    pub fn push(&mut self, value: T, j: &Journal<P>) {
        let tx = j.tx();
        if self.len == self.capacity {
            self.grow(1, tx);
        }
        self.prepare(tx, self.len, self.len + 1);
        if Self::IS_EMPTY_TYPE {
            std::mem::forget(value);
        } else {
            // SAFETY: announced room without an element.
            unsafe { tx.put_in(self.address(self.len), value) };
        }
        self.len += 1;
    }

    /// Takes the last element out.
    pub fn pop(&mut self) -> Option<T> {
        match self.len {
            0 => None,
            len => Some(self.remove(len - 1)),
        }
    }

    /// Inserts an element before the one at `at`, which moves on with all behind it.
    ///
    /// # Panics
    /// If `at` is greater than the length.
    #[track_caller]
    pub fn insert(&mut self, at: usize, value: T, j: &Journal<P>) {
        let (tx, len) = (j.tx(), self.len);
        assert!(at <= len, "insertion at {at} of a vector of {len} elements");
        if len == self.capacity {
            self.grow(1, tx);
        }
        self.prepare(tx, at, len + 1);
        // SAFETY: announced; there is room for one more.
        unsafe {
            let place = self.start().add(at);
            place.copy_to(place.add(1), len - at);
            if Self::IS_EMPTY_TYPE {
                std::mem::forget(value);
            } else {
                tx.put_in(self.address(at), value);
            }
        }
        self.len += 1;
    }

    /// Takes an element out; those behind it move on.
    ///
    /// # Panics
    /// If there is none at `at`.
    #[track_caller]
    pub fn remove(&mut self, at: usize) -> T {
        let len = self.len;
        assert!(at < len, "removal at {at} of a vector of {len} elements");
        if Self::IS_EMPTY_TYPE {
            self.len -= 1;
            // SAFETY: an element, of which nothing is stored.
            return unsafe { self.start().read() };
        }
        let tx = current_tx::<P>();
        if at + 1 < len || T::POINTERS {
            self.prepare(tx, at, len);
        }
        // SAFETY: an element, whose place is taken by the next one.
        unsafe {
            let place = self.start().add(at);
            let value = tx.take_out(self.address(at));
            place.copy_from(place.add(1), len - at - 1);
            self.len -= 1;
            self.wipe(self.len, len);
            value
        }
    }

    /// Takes an element out, and puts the last one in its place.
    ///
    /// # Panics
    /// If there is none at `at`.
    #[track_caller]
    pub fn swap_remove(&mut self, at: usize) -> T {
        let last = self.len.wrapping_sub(1);
        self.swap(at, last);
        self.remove(last)
    }

    /// Exchanges two elements.
    ///
    /// # Panics
    /// If there is none at `a` or `b`.
    #[track_caller]
    pub fn swap(&mut self, a: usize, b: usize) {
        let len = self.len;
        assert!(
            a < len && b < len,
            "exchange of {a} and {b} in a vector of {len} elements"
        );
        if Self::IS_EMPTY_TYPE || a == b {
            return;
        }
        let tx = current_tx::<P>();
        self.prepare(tx, a, a + 1);
        self.prepare(tx, b, b + 1);
        // SAFETY: two elements of the vector, both announced.
        unsafe { ptr::swap(self.start().add(a), self.start().add(b)) };
    }

    /// Drops the elements from `len` on.
    pub fn truncate(&mut self, len: usize) {
        if len >= self.len || Self::IS_EMPTY_TYPE {
            self.len = self.len.min(len);
            return;
        }
        let (tx, holds_any) = (current_tx::<P>(), needs_drop::<T>() || T::POINTERS);
        if holds_any {
            self.prepare(tx, len, self.len);
        }
        let old = std::mem::replace(&mut self.len, len);
        if holds_any {
            for at in len..old {
                // SAFETY: an element that the vector has given up.
                unsafe { tx.drop_value::<T>(self.address(at)) };
            }
            self.wipe(len, old);
        }
    }

    /// Drops all elements. The room stays.
    pub fn clear(&mut self) {
        self.truncate(0);
    }

    /// Keeps the elements for which `keep` is true.
    pub fn retain(&mut self, mut keep: impl FnMut(&T) -> bool) {
        let mut at = 0;
        let mut kept = 0;
        while at < self.len {
            if keep(&self[at]) {
                if kept != at {
                    self.swap(kept, at);
                }
                kept += 1;
            }
            at += 1;
        }
        self.truncate(kept);
    }

    /// Drops all elements but the first of those in a row that are equal.
    pub fn dedup(&mut self)
    where
        T: PartialEq,
    {
        self.dedup_by(|a, b| a == b);
    }

    /// Drops all elements but the first of those in a row that have the same key.
    pub fn dedup_by_key<K: PartialEq>(&mut self, mut key: impl FnMut(&T) -> K) {
        self.dedup_by(|a, b| key(a) == key(b));
    }

    /// Drops the elements of which `same` says that they are as the last one that was kept, which it gets behind the
    /// other.
    pub fn dedup_by(&mut self, mut same: impl FnMut(&T, &T) -> bool) {
        let mut kept = 0;
        for at in 1..self.len {
            if !same(&self[at], &self[kept]) {
                kept += 1;
                self.swap(kept, at);
            }
        }
        self.truncate(kept + 1);
    }

    /// Drops elements from the end, or appends copies of `value`, until there are `len`.
    pub fn resize(&mut self, len: usize, value: T, j: &Journal<P>)
    where
        T: PClone<P>,
    {
        if len <= self.len {
            return self.truncate(len);
        }
        self.resize_with(len - 1, || value.pclone(j), j);
        self.push(value, j);
    }

    /// Drops elements from the end, or appends what `make` gives, until there are `len`.
    pub fn resize_with(&mut self, len: usize, make: impl FnMut() -> T, j: &Journal<P>) {
        self.truncate(len);
        let more = len - self.len;
        self.extend(std::iter::repeat_with(make).take(more), j);
    }

    /// Moves all elements of another vector to the end of this one.
    pub fn append(&mut self, other: &mut Self, j: &Journal<P>) {
        self.extend(other.drain(..), j);
    }

    /// Takes the elements in a range out; those behind it move on. All at once, also those that the iterator is not
    /// asked for.
    ///
    /// # Panics
    /// If the range begins behind its end, or ends behind the last element.
    #[track_caller]
    pub fn drain(&mut self, range: impl RangeBounds<usize>) -> std::vec::IntoIter<T> {
        let old = self.len;
        let from = match range.start_bound() {
            Bound::Included(at) => *at,
            Bound::Excluded(at) => at.saturating_add(1),
            Bound::Unbounded => 0,
        };
        let to = match range.end_bound() {
            Bound::Included(at) => at.saturating_add(1),
            Bound::Excluded(at) => *at,
            Bound::Unbounded => old,
        };
        assert!(
            from <= to && to <= old,
            "drain of {from}..{to} of a vector of {old} elements"
        );
        if from == to || Self::IS_EMPTY_TYPE {
            self.len -= to - from;
            // SAFETY: elements of which nothing is stored.
            let taken = (from..to).map(|_| unsafe { self.start().read() });
            return taken.collect::<Vec<T>>().into_iter();
        }
        let tx = current_tx::<P>();
        self.prepare(tx, from, old);
        // SAFETY: elements, whose places are taken by those behind them.
        let taken = (from..to).map(|at| unsafe { tx.take_out(self.address(at)) });
        let taken: Vec<T> = taken.collect();
        // SAFETY: announced; as many elements lie there.
        unsafe {
            self.start()
                .add(from)
                .copy_from(self.start().add(to), old - to);
        }
        self.len -= to - from;
        self.wipe(self.len, old);
        taken.into_iter()
    }

    /// Moves the elements from `at` on to a vector of their own.
    ///
    /// # Panics
    /// If `at` is greater than the length; as [`PVec::reserve`].
    #[track_caller]
    pub fn split_off(&mut self, at: usize, j: &Journal<P>) -> Self {
        let (tx, old) = (j.tx(), self.len);
        assert!(at <= old, "split at {at} of a vector of {old} elements");
        let mut tail = Self::new();
        if at == old || Self::IS_EMPTY_TYPE {
            (self.len, tail.len) = (at, old - at);
            return tail;
        }
        tail.reserve_exact(old - at, j);
        match T::POINTERS {
            true => self.prepare(tx, at, old),
            false => Self::close_ranges(tx, self.buffer, old),
        }
        tx.reset_words::<T>(tail.buffer, (old - at) * size_of::<T>());
        // SAFETY: as many elements, and fresh room for them.
        unsafe {
            tail.start()
                .copy_from_nonoverlapping(self.start().add(at), old - at);
        }
        (self.len, tail.len) = (at, old - at);
        self.wipe(at, old);
        tail
    }

    /// Appends what an iterator gives.
    pub fn extend(&mut self, values: impl IntoIterator<Item = T>, j: &Journal<P>) {
        let (values, tx) = (values.into_iter(), j.tx());
        let expected = values.size_hint().0;
        self.reserve(expected, j);
        // At once: one by one, each would be an entry of the log.
        let prepared = self.len + expected;
        self.prepare(tx, self.len, prepared);
        for value in values {
            if self.len >= prepared || Self::IS_EMPTY_TYPE {
                self.push(value, j);
                continue;
            }
            // SAFETY: announced room without an element; nobody else has had the vector since.
            unsafe { tx.put_in(self.address(self.len), value) };
            self.len += 1;
        }
    }

    /// Appends copies of a slice's elements.
    pub fn extend_from_slice(&mut self, values: &[T], j: &Journal<P>)
    where
        T: Copy,
    {
        self.reserve(values.len(), j);
        let (from, to) = (self.len, self.len + values.len());
        self.prepare(j.tx(), from, to);
        // SAFETY: announced room for as many; what can be copied owns nothing.
        unsafe {
            self.start()
                .add(from)
                .copy_from_nonoverlapping(values.as_ptr(), values.len())
        };
        self.len = to;
    }

    /// The element or the elements at `at`, to be changed, if they are there.
    pub fn get_mut<I: SliceIndex<[T]>>(&mut self, at: I) -> Option<&mut I::Output> {
        let (start, len) = (self.buffer, self.len);
        let found: *mut I::Output = self.slice_mut().get_mut(at)?;
        Self::open_to_changes(found, start, len);
        // SAFETY: borrowed as the vector is.
        Some(unsafe { &mut *found })
    }

    /// The elements, not announced.
    fn slice_mut(&mut self) -> &mut [T] {
        // SAFETY: so many elements lie there, borrowed as the vector is.
        unsafe { slice::from_raw_parts_mut(self.start(), self.len) }
    }

    /// Announces an element or several in a row, of the vector of `all_len` that begins at `all`. References to them
    /// are made afterwards ([`TypedTx::open_to_changes`]).
    #[inline]
    fn open_to_changes<E: ?Sized>(elements: *mut E, all: usize, all_len: usize) {
        // As the open ranges that end here are read by address, too.
        let first = elements.cast::<T>();
        first.expose_provenance();
        // SAFETY: elements of the vector.
        let bytes = size_of_val(unsafe { &*elements });
        match bytes.checked_div(size_of::<T>()) {
            None | Some(0) => {}
            Some(1) => {
                current_tx::<P>().open_to_changes(first);
            }
            Some(len) => {
                Self::close_ranges(current_tx::<P>(), all, all_len);
                current_tx::<P>().open_row_to_changes(first, len);
            }
        }
    }

    /// The last element, to be changed.
    pub fn last_mut(&mut self) -> Option<&mut T> {
        self.get_mut(self.len.wrapping_sub(1))
    }

    /// The first element, to be changed.
    pub fn first_mut(&mut self) -> Option<&mut T> {
        self.get_mut(0)
    }

    /// The elements, to be changed. Each is announced when the iterator comes to it.
    pub fn iter_mut(&mut self) -> IterMut<'_, T> {
        // Elements without a size are no memory to change.
        let nothing_changes = Self::IS_EMPTY_TYPE || self.len == 0;
        IterMut {
            elements: self.slice_mut().iter_mut(),
            tx: current_tx_unless::<P>(nothing_changes),
        }
    }
}
