//! `Pbox`: the one pointer to an object.

use std::marker::PhantomData;
use std::mem::{ManuallyDrop, needs_drop};
use std::num::NonZeroUsize;
use std::ops::{Deref, DerefMut};
use std::ptr;

use super::as_target::as_target;
use super::handle_impls::handles;
use super::journal::{Journal, current_tx};
use super::pool_type::PoolType;
use super::psafe::{PSafe, name_of};
use super::typed_tx::{QueuedDrop, TypedTx};
use super::values::{PClone, Root};

/// The only pointer to an object in the pool, as `Box` is (Corundum Table 1). The object is freed when it is dropped.
///
/// Writing through it (`DerefMut`) announces the whole object to the transaction, once.
#[repr(transparent)]
pub struct Pbox<T: PSafe, P: PoolType> {
    address: NonZeroUsize,
    /// One thread's: a reference to it, were it shared, would let another thread see what is not committed.
    _object: PhantomData<(*mut T, P)>,
}

impl<T: PSafe, P: PoolType> Pbox<T, P> {
    /// Allocates an object and moves `value` there. It exists when the transaction has committed, if something in the
    /// pool points to it by then.
    #[inline]
    pub fn new(value: T, j: &Journal<P>) -> Self {
        const { T::POOL.assert_fits(P::ID) };
        let tx = j.tx();
        let address = tx.allocate::<T>(size_of::<T>(), align_of::<T>());
        // SAFETY: just allocated for a `T`.
        unsafe { tx.put_in(address, value) };
        tx.gain(1);
        Self::from_address(address)
    }

    /// Moves the value out, and frees the object.
    pub fn into_inner(self, j: &Journal<P>) -> T {
        let (tx, this) = (j.tx(), ManuallyDrop::new(self));
        let address = this.address.get();
        // SAFETY: the only pointer to the value, and not dropped.
        let value = unsafe { tx.take_out(address) };
        tx.gain(-1);
        tx.free(address);
        value
    }

    /// The object's address, where C code finds it.
    pub fn as_ptr(&self) -> *const T {
        ptr::with_exposed_provenance(self.address.get())
    }

    fn from_address(address: usize) -> Self {
        Self {
            // An allocation never lies at 0; if it did, `Option` could not tell.
            address: NonZeroUsize::new(address).unwrap_or(NonZeroUsize::MIN),
            _object: PhantomData,
        }
    }
}

/// Drops the value at an address, with the handles in it.
unsafe fn drop_object<T: PSafe>(tx: &TypedTx, address: usize, _: usize) {
    // SAFETY: whoever put it off was its only owner.
    unsafe { tx.drop_value::<T>(address) };
    tx.free(address);
}

impl<T: PSafe, P: PoolType> Drop for Pbox<T, P> {
    #[inline]
    fn drop(&mut self) {
        let tx = current_tx::<P>();
        tx.gain(-1);
        if needs_drop::<T>() {
            tx.queue_drop(QueuedDrop {
                address: self.address.get(),
                extent: 0,
                drop: drop_object::<T>,
            });
        } else {
            tx.free(self.address.get());
        }
    }
}

impl<T: PSafe, P: PoolType> Deref for Pbox<T, P> {
    type Target = T;

    #[inline(always)]
    fn deref(&self) -> &T {
        // SAFETY: the object lives as long as its only pointer, and nobody changes it while that is borrowed.
        unsafe { &*self.as_ptr() }
    }
}

impl<T: PSafe, P: PoolType> DerefMut for Pbox<T, P> {
    #[inline]
    fn deref_mut(&mut self) -> &mut T {
        let value = ptr::with_exposed_provenance_mut(self.address.get());
        current_tx::<P>().open_to_changes(value);
        // SAFETY: the object lives as long as its only pointer, to which there is one `&mut`, in a transaction only.
        unsafe { &mut *value }
    }
}

handles! {
    [T: PSafe, P: PoolType] Pbox<T, P>: format!("Pbox<{}>", name_of::<T>()),
        |walk| walk.pointer_to::<T>(), Threads: PhantomData<T::Threads>;
}

impl<T: Root<P>, P: PoolType> Root<P> for Pbox<T, P> {
    fn init(j: &Journal<P>) -> Self {
        Self::new(T::init(j), j)
    }
}

impl<T: PSafe + PClone<P>, P: PoolType> PClone<P> for Pbox<T, P> {
    /// A new object with a copy of the value.
    fn pclone(&self, j: &Journal<P>) -> Self {
        Self::new((**self).pclone(j), j)
    }
}

as_target! {
    [T: PSafe, P: PoolType] Pbox<T, P>, to T: Debug Display PartialEq Eq PartialOrd Ord Hash;
}
