//! Swaps of elements of an array ("SPS").

use durum::{Error, Tx};

use crate::store;

#[repr(C)]
pub struct Array {
    pub elements: [u64; 1000],
}
durum::describe!(Array as "structures.array" { elements });

unsafe fn at(array: *mut Array, index: usize) -> *mut u64 {
    unsafe { (&raw mut (*array).elements).cast::<u64>().add(index % 1000) }
}

pub unsafe fn fill(array: *mut Array, tx: &Tx) -> Result<(), Error> {
    for index in 0..1000 {
        unsafe { store(tx, at(array, index), index as u64)? };
    }
    Ok(())
}

pub unsafe fn swap(array: *mut Array, tx: &Tx, left: usize, right: usize) -> Result<(), Error> {
    unsafe {
        let (left, right) = (at(array, left), at(array, right));
        let value = *left;
        store(tx, left, *right)?;
        store(tx, right, value)
    }
}
