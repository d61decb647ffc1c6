//! What the operations work on: a pool with vectors of objects of several sizes.

use durum::typed::*;

durum::pool!(pub P);

/// Operations in a transaction, if they are small.
pub const BATCH: usize = 1000;

/// Operations in a transaction on objects of this type: so many that they stay in the second-level cache.
pub const fn batch_of<T>() -> usize {
    let fit = (256 << 10) / size_of::<T>();
    if fit < BATCH { fit } else { BATCH }
}

pub type Objects<T> = PRefCell<PVec<Pbox<T, P>, P>, P>;

#[derive(PSafe, Root)]
#[repr(C)]
pub struct Desk {
    pub words: Objects<u64>,
    pub quarters: Objects<Block<256>>,
    pub integers: Objects<i32>,
    pub kilobytes: Objects<Block<1024>>,
    pub pages: Objects<Block<4096>>,
    pub large: Objects<Block<32768>>,
    pub local: PRefCell<Option<Prc<u64, P>>, P>,
    pub shared: PMutex<Option<Parc<u64, P>>, P>,
}

#[derive(PSafe, Clone, Copy)]
#[repr(C)]
pub struct Block<const N: usize> {
    pub bytes: [u8; N],
}

impl<const N: usize> Default for Block<N> {
    fn default() -> Self {
        Self { bytes: [7; N] }
    }
}

/// Has so many objects in a vector.
pub fn fill<T: PSafe + Default>(objects: &Objects<T>, count: usize) {
    while objects.borrow().len() < count {
        P::transaction(|j| {
            let mut objects = objects.borrow_mut(j);
            for _ in 0..BATCH.min(count - objects.len()) {
                objects.push(Pbox::new(T::default(), j), j);
            }
        })
        .expect("there is room");
    }
}

pub fn empty<T: PSafe>(objects: &Objects<T>) {
    P::transaction(|j| objects.borrow_mut(j).clear()).expect("objects are freed");
}
