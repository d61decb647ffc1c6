//! `Prc` and `Parc`: counted pointers, and the weak ones that go with them.

use std::borrow::Cow;
use std::fmt;
use std::marker::PhantomData;
use std::mem::{needs_drop, offset_of};
use std::num::NonZeroUsize;
use std::ops::Deref;
use std::panic::{RefUnwindSafe, UnwindSafe};
use std::ptr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use durum_format::types::Type;

use super::as_target::as_target;
use super::count_word::{CountWord, NUMBER_MAX};
use super::counts::{Tally, committed_strong};
use super::drop_glue::DropGlue;
use super::handle_impls::handles;
use super::journal::{Journal, current_tx};
use super::layout::{WORD, structure};
use super::pool_type::PoolType;
use super::psafe::{PSafe, name_of};
use super::reading::Reading;
use super::typed_tx::{TypedTx, give_up};
use super::values::{PClone, Root};
use super::waiting::Pause;
use crate::described::{Described, Walk};

/// Who counts: one thread ([`Local`]) or several ([`Shared`]).
pub trait Counting: Copy + fmt::Debug + 'static {
    #[doc(hidden)]
    const SHARED: bool;
    #[doc(hidden)]
    const NAME: &'static str;
    #[doc(hidden)]
    type Threads<T>;
}

/// References of one thread at a time: those of [`Prc`].
#[derive(Clone, Copy, Debug)]
pub enum Local {}

/// References of any threads: those of [`Parc`].
#[derive(Clone, Copy, Debug)]
pub enum Shared {}

/// Named so that an error message says what to do.
#[doc(hidden)]
#[allow(non_camel_case_types)]
#[derive(Debug)]
pub struct Prc_serves_one_thread__use_Parc<T>(PhantomData<(*mut (), T)>);

impl Counting for Local {
    const SHARED: bool = false;
    const NAME: &'static str = "Prc";
    type Threads<T> = Prc_serves_one_thread__use_Parc<T>;
}

impl Counting for Shared {
    const SHARED: bool = true;
    const NAME: &'static str = "Parc";
    /// Both `Send` and `Sync` if `T` is both.
    type Threads<T> = PhantomData<Arc<PhantomData<T>>>;
}

/// A pointer to an object that is freed when the last such pointer is dropped, used by one thread (Corundum Table 1).
pub type Prc<T, P> = Counted<T, P, Local>;

/// The same, used by any threads: reached through a [`PMutex`](super::PMutex), from the root, or from a [`VWeak`].
pub type Parc<T, P> = Counted<T, P, Shared>;

/// A counted pointer to an object in the pool: [`Prc`] or [`Parc`].
///
/// The counts are brought up to date when the transaction commits. Cycles stay when the last pointer into them goes;
/// [`gc`](crate::gc) frees them while the pool is closed.
#[repr(transparent)]
pub struct Counted<T: PSafe, P: PoolType, K: Counting> {
    address: NonZeroUsize,
    _object: PhantomData<(*mut T, P, K)>,
}

/// A pointer that does not keep the value alive, which may lie in the pool. `K` is inferred from what it was made of.
#[repr(transparent)]
pub struct PWeak<T: PSafe, P: PoolType, K: Counting = Shared> {
    address: NonZeroUsize,
    _object: PhantomData<(*mut T, P, K)>,
}

/// A pointer from volatile memory into the pool, the only one there is (Corundum §3.4). It keeps nothing alive, not
/// even the pool.
pub struct VWeak<T: PSafe, P: PoolType, K: Counting = Shared> {
    address: usize,
    /// The number that the object is known by, and the opening in which it is.
    number: u64,
    serial: u64,
    /// The thread that may promote it, if the object is one thread's.
    thread: usize,
    _object: PhantomData<(*mut T, P, K)>,
}

// SAFETY: it gives access on the thread only that it comes from.
unsafe impl<T: PSafe, P: PoolType> Send for VWeak<T, P, Local> {}
// SAFETY: it gives access on the thread only that it comes from.
unsafe impl<T: PSafe, P: PoolType> Sync for VWeak<T, P, Local> {}
// SAFETY: it gives access within a transaction only, to a `Parc` of that thread, whose value threads may share.
unsafe impl<T: PSafe<Threads: Send + Sync>, P: PoolType> Send for VWeak<T, P, Shared> {}
// SAFETY: it gives access within a transaction only, to a `Parc` of that thread, whose value threads may share.
unsafe impl<T: PSafe<Threads: Send + Sync>, P: PoolType> Sync for VWeak<T, P, Shared> {}

/// What a counted pointer points to.
#[repr(C)]
struct Object<T, P> {
    tally: Tally,
    value: T,
    _pool: PhantomData<P>,
}

// SAFETY: the compiler measures size and offsets.
unsafe impl<T: PSafe, P: PoolType> Described for Object<T, P> {
    fn name() -> Option<Cow<'static, str>> {
        Some(Cow::Owned(format!("counted {}", name_of::<T>())))
    }

    fn layout(walk: &mut Walk) -> Type<String> {
        walk.note(&Self::GLUE);
        structure!(name_of::<Self>(), {
            strong in tally: WORD,
            weak in tally: WORD,
            value: T::layout(walk),
        })
    }
}

impl<T: PSafe, P: PoolType> Object<T, P> {
    const GLUE: DropGlue = DropGlue {
        binding: P::binding,
        describe: <Self as Described>::description,
        drop_value: Self::drop_value,
        value: (offset_of!(Self, value), size_of::<T>()),
    };

    /// Pointers to an object come into volatile hands, or go.
    #[inline]
    fn count<K: Counting>(tx: &TypedTx, address: usize, strong: i64, weak: i64) {
        tx.count(address, &Self::GLUE, K::SHARED, strong, weak);
        tx.gain(strong + weak);
    }

    unsafe fn drop_value(address: usize) {
        if needs_drop::<T>() {
            // SAFETY: as the caller promises.
            unsafe { current_tx::<P>().drop_value::<T>(address + offset_of!(Self, value)) };
        }
    }
}

impl<T: PSafe, P: PoolType, K: Counting> Counted<T, P, K> {
    /// Allocates an object with `value` and a count of one. It exists when the transaction has committed, if something
    /// in the pool points to it by then.
    #[inline]
    pub fn new(value: T, j: &Journal<P>) -> Self {
        const { T::POOL.assert_fits(P::ID) };
        let tx = j.tx();
        let (size, align) = (size_of::<Object<T, P>>(), align_of::<Object<T, P>>());
        let address = tx.allocate::<Object<T, P>>(size, align);
        // SAFETY: just allocated for such an object.
        unsafe {
            ptr::with_exposed_provenance_mut::<Tally>(address).write(Tally { strong: 0, weak: 0 });
            tx.put_in(address + offset_of!(Object<T, P>, value), value);
            tx.binding().words.at::<CountWord>(address).begin();
        }
        tx.count_fresh(address, &Object::<T, P>::GLUE, K::SHARED);
        tx.gain(1);
        Self::from_address(address)
    }

    /// Another pointer to the same object.
    #[inline]
    pub fn pclone(&self, j: &Journal<P>) -> Self {
        Object::<T, P>::count::<K>(j.tx(), self.address.get(), 1, 0);
        Self::from_address(self.address.get())
    }

    /// A weak pointer that may lie in the pool.
    #[inline]
    pub fn downgrade(&self, j: &Journal<P>) -> PWeak<T, P, K> {
        Object::<T, P>::count::<K>(j.tx(), self.address.get(), 0, 1);
        PWeak {
            address: self.address,
            _object: PhantomData,
        }
    }

    /// A weak pointer for volatile memory.
    #[inline]
    pub fn demote(&self) -> VWeak<T, P, K> {
        let binding = P::binding();
        // SAFETY: an object of the open pool.
        let word = unsafe { binding.words.at::<CountWord>(self.address.get()) };
        VWeak {
            address: self.address.get(),
            number: number_of(word),
            serial: binding.serial(),
            thread: if K::SHARED { 0 } else { this_thread() },
            _object: PhantomData,
        }
    }

    /// Whether both point to the same object.
    pub fn ptr_eq(&self, other: &Self) -> bool {
        self.address == other.address
    }

    /// The pointers to the object, with those that the running transaction has made. A last one that was dropped while
    /// another thread's transaction used the object counts until a later transaction commits.
    pub fn strong_count(&self, j: &Journal<P>) -> u64 {
        // SAFETY: this is a reference to it.
        unsafe { j.tx().strong_count(self.address.get()) }
    }

    /// The value's address, where C code finds it.
    pub fn as_ptr(&self) -> *const T {
        ptr::with_exposed_provenance(self.address.get() + offset_of!(Object<T, P>, value))
    }

    #[inline(always)]
    fn from_address(address: usize) -> Self {
        Self {
            // As in `Pbox`.
            address: NonZeroUsize::new(address).unwrap_or(NonZeroUsize::MIN),
            _object: PhantomData,
        }
    }
}

/// Different for threads that run at the same time.
#[inline]
fn this_thread() -> usize {
    thread_local! {
        static HERE: u8 = const { 0 };
    }
    HERE.with(|here| ptr::from_ref(here).addr())
}

/// The number that an object is known by; drawn at the first question.
#[inline]
fn number_of(word: &CountWord) -> u64 {
    word.number().unwrap_or_else(|| draw_number(word))
}

#[cold]
fn draw_number(word: &CountWord) -> u64 {
    /// 2^48 objects are enough for any process.
    static NUMBERS: AtomicU64 = AtomicU64::new(1);
    word.name(NUMBERS.fetch_add(1, Ordering::Relaxed) & NUMBER_MAX)
}

/// A strong pointer to an object of which a weak one is at hand, if it has a value. `number`: how a `VWeak` knows it.
#[inline]
fn revive<T: PSafe, P: PoolType, K: Counting>(
    tx: &TypedTx,
    address: usize,
    number: Option<u64>,
) -> Option<Counted<T, P, K>> {
    // SAFETY: in the space of the open pool, as somebody had a pointer to an object there.
    let word = unsafe { tx.binding().words.at::<CountWord>(address) };
    let is_new_pin = K::SHARED && !tx.held(address).is_pinned();
    if is_new_pin {
        let mut pause = Pause::default();
        // SAFETY: asked while the object is pinned.
        let strong = || unsafe { tx.strong_count(address) };
        let is_alive = word
            .pin_alive(number, strong, || pause.wait())
            .unwrap_or_else(|_| {
                give_up("more than 16,000 transactions use one object at the same time")
            });
        if !is_alive {
            return None;
        }
        tx.note_pinned(address, &Object::<T, P>::GLUE);
    } else if number.is_some_and(|number| !word.is_named(number)) {
        return None;
    }
    // SAFETY: pinned before, or of this thread alone and kept by a weak pointer or known by its number.
    if !is_new_pin && unsafe { tx.strong_count(address) } == 0 {
        return None;
    }
    Object::<T, P>::count::<K>(tx, address, 1, 0);
    Some(Counted::from_address(address))
}

impl<T: PSafe, P: PoolType, K: Counting> PWeak<T, P, K> {
    /// A strong pointer, if the object has one still.
    #[inline]
    pub fn upgrade(&self, j: &Journal<P>) -> Option<Counted<T, P, K>> {
        revive(j.tx(), self.address.get(), None)
    }

    /// The value, if the object has one still, in a pool that is open for reading only.
    #[inline]
    pub fn read<'a>(&'a self, _reading: &'a Reading<P>) -> Option<&'a T> {
        let address = self.address.get();
        let value = address + offset_of!(Object<T, P>, value);
        // SAFETY: this pointer keeps the object. Nobody changes a count while the pool is only read.
        let is_alive = unsafe { committed_strong(address) } != 0;
        // SAFETY: it has a value, and keeps it as long. Whoever has this pointer could have a strong one.
        is_alive.then(|| unsafe { &*ptr::with_exposed_provenance(value) })
    }

    /// Another weak pointer to the same object.
    #[inline]
    pub fn pclone(&self, j: &Journal<P>) -> Self {
        Object::<T, P>::count::<K>(j.tx(), self.address.get(), 0, 1);
        Self {
            address: self.address,
            _object: PhantomData,
        }
    }
}

impl<T: PSafe, P: PoolType, K: Counting> VWeak<T, P, K> {
    /// A strong pointer, if the object has one still and the pool has not been closed since. An object of another
    /// thread's transaction is there when that one has committed. That of a [`Prc`] is there on the thread that called
    /// `demote`, and on no other.
    #[inline]
    pub fn promote(&self, j: &Journal<P>) -> Option<Counted<T, P, K>> {
        let tx = j.tx();
        if self.serial != tx.open().serial || !K::SHARED && self.thread != this_thread() {
            return None;
        }
        revive(tx, self.address, Some(self.number))
    }

    /// Whether both point to the same object.
    pub fn ptr_eq(&self, other: &Self) -> bool {
        (self.address, self.number, self.serial) == (other.address, other.number, other.serial)
    }
}

impl<T: PSafe, P: PoolType, K: Counting> Clone for VWeak<T, P, K> {
    fn clone(&self) -> Self {
        Self { ..*self }
    }
}

impl<T: PSafe, P: PoolType, K: Counting> Drop for Counted<T, P, K> {
    #[inline]
    fn drop(&mut self) {
        Object::<T, P>::count::<K>(current_tx::<P>(), self.address.get(), -1, 0);
    }
}

impl<T: PSafe, P: PoolType, K: Counting> Drop for PWeak<T, P, K> {
    #[inline]
    fn drop(&mut self) {
        Object::<T, P>::count::<K>(current_tx::<P>(), self.address.get(), 0, -1);
    }
}

impl<T: PSafe, P: PoolType, K: Counting> Deref for Counted<T, P, K> {
    type Target = T;

    #[inline(always)]
    fn deref(&self) -> &T {
        // SAFETY: the object lives as long as there is a pointer to it, and its value is never changed but through
        // cells.
        unsafe { &*self.as_ptr() }
    }
}

handles! {
    [T: PSafe, P: PoolType, K: Counting] Counted<T, P, K>: format!("{}<{}>", K::NAME, name_of::<T>()),
        |walk| walk.pointer_to::<Object<T, P>>(), Threads: K::Threads<T::Threads>;
    [T: PSafe, P: PoolType, K: Counting] PWeak<T, P, K>: format!("weak {}<{}>", K::NAME, name_of::<T>()),
        |walk| walk.weak_to::<Object<T, P>>(), Threads: K::Threads<T::Threads>;
}

impl<T: PSafe, P: PoolType, K: Counting> PClone<P> for Counted<T, P, K> {
    fn pclone(&self, j: &Journal<P>) -> Self {
        Self::pclone(self, j)
    }
}

impl<T: PSafe, P: PoolType, K: Counting> PClone<P> for PWeak<T, P, K> {
    fn pclone(&self, j: &Journal<P>) -> Self {
        Self::pclone(self, j)
    }
}

impl<T: Root<P>, P: PoolType, K: Counting> Root<P> for Counted<T, P, K> {
    fn init(j: &Journal<P>) -> Self {
        Self::new(T::init(j), j)
    }
}

impl<T: PSafe, P: PoolType, K: Counting> UnwindSafe for VWeak<T, P, K> {}
impl<T: PSafe, P: PoolType, K: Counting> RefUnwindSafe for VWeak<T, P, K> {}

impl<T: PSafe, P: PoolType, K: Counting> fmt::Debug for PWeak<T, P, K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("(PWeak)")
    }
}

impl<T: PSafe, P: PoolType, K: Counting> fmt::Debug for VWeak<T, P, K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("(VWeak)")
    }
}

as_target! {
    [T: PSafe, P: PoolType, K: Counting] Counted<T, P, K>, to T: Debug Display PartialEq Eq PartialOrd Ord Hash;
}
