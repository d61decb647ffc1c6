//! The data structures of the rows, written once for all sides in Rust.
//!
//! They see memory through two traits. What a side does behind them (nothing, write-backs, a transaction) is the only
//! difference between sides, so a row compares durability and not data structures. The C sources of the peers follow
//! these files function by function.

use durum::Described;

use crate::error::Result;
use crate::inputs::{Op, Walk};

// Three macros for the structures below whose nodes are edited, and looked at while they are. A node is never referred
// to from `edit` and `see` at the same time.

/// Reads a node as the update sees it.
macro_rules! see {
    ($update:expr, $node:expr) => {
        // SAFETY: a node of the structure, by the contract of who asks; no reference from `edit` to it is alive.
        unsafe { &*$update.view($node) }
    };
}

/// Makes a node ready to be changed.
macro_rules! edit {
    ($update:expr, $node:expr) => {{
        // SAFETY: a node of the structure, by the contract of who asks.
        let place = unsafe { $update.edit($node)? };
        // SAFETY: valid until the update ends; no other reference to it is alive.
        unsafe { &mut *place }
    }};
}

/// Tells the update which part of an edited node was changed.
macro_rules! changed {
    ($update:expr, $slice:expr) => {{
        let slice = &$slice;
        // SAFETY: part of a node that was edited or allocated.
        unsafe { $update.changed(slice.as_ptr(), slice.len()) }
    }};
}

pub mod hash;
pub mod list;
pub mod map;
pub mod numbers;
pub mod redblack;
pub mod sorted;
pub mod tree;

/// Memory that a data structure lives in.
pub trait Memory {
    /// What a failed update says.
    type Error;
    /// The running update.
    type Update<'u>: Update<Error = Self::Error>;

    /// The root object, zeroed when the memory is new.
    fn root<T: Stored>(&mut self) -> Result<*mut T>;

    /// A zeroed array that stays as long as the memory, outside of any update.
    fn zeroed_array<T: Stored>(&mut self, count: usize) -> Result<*mut T>;

    /// Runs one update; on return it has happened and is as durable as the side makes things.
    fn update<R>(
        &mut self,
        body: impl FnOnce(&mut Self::Update<'_>) -> std::result::Result<R, Self::Error>,
    ) -> Result<R>;
}

/// A running update. An object is changed in one of two ways, and an update uses only one of them on the same bytes:
/// [`store`](Update::store) for a lone field, [`edit`](Update::edit) for an object that changes in several places.
pub trait Update {
    /// What a failed operation says.
    type Error;

    /// A new object with arbitrary contents, to be filled in place.
    fn alloc<T: Stored>(&mut self) -> std::result::Result<*mut T, Self::Error>;

    /// Gives an object back. Pending changes to it are dropped.
    ///
    /// # Safety
    /// `object` came from `alloc` of the same type, and nothing uses it any more.
    unsafe fn free<T: Stored>(&mut self, object: *mut T) -> std::result::Result<(), Self::Error>;

    /// A new array, zeroed, to be filled in place.
    fn alloc_zeroed<T: Stored>(&mut self, count: usize)
    -> std::result::Result<*mut T, Self::Error>;

    /// Gives an array back.
    ///
    /// # Safety
    /// It came from `alloc_zeroed` of the same type and number, and nothing uses it any more.
    unsafe fn free_array<T: Stored>(
        &mut self,
        first: *mut T,
        count: usize,
    ) -> std::result::Result<(), Self::Error>;

    /// Replaces one field. Reads of this update may see the old value or the new one.
    ///
    /// # Safety
    /// `field` is valid, and outside of any object that this update edits.
    unsafe fn store<T: Stored>(
        &mut self,
        field: *mut T,
        value: T,
    ) -> std::result::Result<(), Self::Error>;

    /// The object, or a working copy of it, to be changed in place until the update ends. It does not
    /// move meanwhile; the same object gives the same place again.
    ///
    /// # Safety
    /// `object` is valid.
    unsafe fn edit<T: Stored>(
        &mut self,
        object: *mut T,
    ) -> std::result::Result<*mut T, Self::Error>;

    /// Where this update sees the object: its working copy, where there is one.
    ///
    /// # Safety
    /// `object` is valid.
    unsafe fn view<T: Stored>(&self, object: *mut T) -> *const T;

    /// Tells that `count` elements from `first` on, inside what `edit` returned, were changed.
    ///
    /// # Safety
    /// The range lies in an object that this update edits or allocated.
    unsafe fn changed<T>(&mut self, first: *const T, count: usize);
}

/// A type that persistent memory can hold: plain data, pointers included, with a descriptor.
pub trait Stored: Copy + Described {}

impl<T: Copy + Described> Stored for T {}

/// A structure that threads use in turns: one of them changes it, or any number of them read.
///
/// # Safety
/// Any thread may use it, and several may read at the same time.
pub unsafe trait InTurns {
    /// Transactions of an update.
    const STEPS: usize;
    /// Inserts each entry; the keys are not there yet.
    fn load(&mut self, entries: &[Op]) -> Result<()>;
    /// One transaction of an update that replaces the value of a key.
    fn update(&mut self, step: usize, op: &Op) -> Result<()>;
    /// The value of a key, in the map its digest; 0 if it is not there.
    fn read(&self, key: u64) -> u64;
    /// Walks the structure.
    fn walk(&mut self) -> Walk;
}

/// A structure of which there are two copies at a constant distance.
pub trait InCopies: InTurns {
    /// [`InTurns::read`], in what lies `distance` bytes behind the structure.
    fn read_at(&self, key: u64, distance: usize) -> u64;
}

/// What lies `distance` bytes behind an object.
#[inline]
fn copy_of<T>(object: *const T, distance: usize) -> *const T {
    std::ptr::with_exposed_provenance(object.expose_provenance() + distance)
}
