//! The benchmark rows on libpmemobj, and puts on LevelDB and LMDB ([`kv`]), for the harness in `durum-bench-core`.
//!
//! The C sources in `c/` do the work: one file per workload, since libpmemobj's interface is made of C macros, and one
//! for each other library. This crate gives each handle an owner. `c/peer.h` tells what each function does.

use std::ffi::{CStr, CString, NulError, c_char};
use std::ops::Range;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

mod ffi;
pub mod kv;
pub mod programs;
pub mod sensors;

pub use ffi::{Op, Scan, Walk};

/// What a library said when it refused, behind its version.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PeerError(String);

impl PeerError {
    fn of(version: &str, text: &str) -> PeerError {
        PeerError(format!("{version}: {text}"))
    }
}

impl std::fmt::Display for PeerError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for PeerError {}

impl From<NulError> for PeerError {
    fn from(error: NulError) -> Self {
        PeerError(error.to_string())
    }
}

/// Name and version of libpmemobj, e.g. `libpmemobj, interface 2.4`.
pub fn version() -> String {
    // SAFETY: returns a C string that lives as long as the process.
    unsafe { text_at(ffi::peer_version()) }
}

fn last_error() -> PeerError {
    // SAFETY: returns a C string that stays until the next error of this thread.
    let text = unsafe { text_at(ffi::peer_error()) };
    PeerError::of(&version(), &text)
}

/// # Safety
/// `text` is a C string.
unsafe fn text_at(text: *const c_char) -> String {
    // SAFETY: as the caller promises.
    let text = unsafe { CStr::from_ptr(text) };
    text.to_string_lossy().into_owned()
}

fn check(result: i32) -> Result<(), PeerError> {
    if result == 0 {
        Ok(())
    } else {
        Err(last_error())
    }
}

fn c_path(path: &Path) -> Result<CString, PeerError> {
    Ok(CString::new(path.as_os_str().as_bytes())?)
}

/// Declares an owner of a C handle: created by an opening function, closed on drop.
macro_rules! handle {
    ($(#[$doc:meta])* $name:ident, $raw:ident, $close:ident) => {
        $(#[$doc])*
        pub struct $name {
            // INVARIANT: a handle that the opening function of this type returned, not null, not closed.
            raw: *mut ffi::$raw,
        }

        impl $name {
            fn from_raw(raw: *mut ffi::$raw) -> Result<Self, PeerError> {
                if raw.is_null() { Err(last_error()) } else { Ok($name { raw }) }
            }
        }

        impl Drop for $name {
            fn drop(&mut self) {
                // SAFETY: the invariant of `raw`; nobody uses it after this.
                unsafe { ffi::$close(self.raw) }
            }
        }
    };
}
use handle;

handle!(
    /// Single operations: floor, empty transaction, add, alloc, free, deref, chase.
    Cells,
    RawCells,
    peer_cells_close
);
handle!(
    /// An array of integers, changed by swaps.
    Swap,
    RawSwap,
    peer_swap_close
);
handle!(
    /// An array of floating-point numbers.
    Array,
    RawArray,
    peer_array_close
);
handle!(
    /// A singly linked list with head and tail.
    List,
    RawList,
    peer_list_close
);
handle!(
    /// A B-tree of order 8.
    Tree,
    RawTree,
    peer_tree_close
);
handle!(
    /// A chained hash map.
    Map,
    RawMap,
    peer_map_close
);
handle!(
    /// A map from numbers to numbers.
    Numbers,
    RawNumbers,
    peer_numbers_close
);

/// Which map from numbers to numbers, as in `enum peer_numbers_kind`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NumbersKind {
    /// The binary search tree, whose keys are compared as signed numbers.
    Bst = 0,
    /// The hash map.
    Hash = 1,
    /// The B+tree.
    BPlus = 2,
    /// The sorted linked list.
    Sorted = 3,
    /// The red-black tree.
    RedBlack = 4,
    /// The hash map with 2,048 buckets.
    Fixed = 5,
}

impl Cells {
    /// Creates a pool file with an area of `area_size` bytes (a power of two) and a ring in which node i points to node
    /// `next[i]`.
    pub fn open(
        path: &Path,
        pool_size: usize,
        area_size: usize,
        objects_max: usize,
        next: &[u32],
    ) -> Result<Self, PeerError> {
        assert!(area_size.is_power_of_two());
        let path = c_path(path)?;
        // SAFETY: the path is a C string, `next` a slice of the length that is passed.
        let raw = unsafe {
            ffi::peer_cells_open(
                path.as_ptr(),
                pool_size,
                area_size,
                objects_max,
                next.as_ptr(),
                next.len(),
            )
        };
        Cells::from_raw(raw)
    }

    /// The first `len` bytes of the area.
    pub fn area(&self, len: usize) -> &[u8] {
        // SAFETY: the area is part of the mapped pool while the handle lives, and changes only through `&mut self`.
        unsafe { std::slice::from_raw_parts(ffi::peer_cells_area(self.raw), len) }
    }

    /// Stores 8 bytes and makes them durable, `count` times.
    pub fn floor(&mut self, stride: usize, count: usize) -> Result<(), PeerError> {
        // SAFETY: the handle is open.
        check(unsafe { ffi::peer_cells_floor(self.raw, stride, count) })
    }

    /// `count` empty transactions.
    pub fn tx_empty(&mut self, count: usize) -> Result<(), PeerError> {
        // SAFETY: the handle is open.
        check(unsafe { ffi::peer_cells_tx_empty(self.raw, count) })
    }

    /// Snapshots and overwrites `image.len()` bytes, `count` times.
    pub fn add(&mut self, stride: usize, image: &[u8], count: usize) -> Result<(), PeerError> {
        assert!(image.len() >= 8 && image.len() <= stride);
        // SAFETY: the handle is open; `image` has the length that is passed, and fits between two strides.
        check(unsafe { ffi::peer_cells_add(self.raw, image.len(), stride, image.as_ptr(), count) })
    }

    /// Allocates `count` objects of `image.len()` bytes.
    pub fn alloc(&mut self, image: &[u8], count: usize) -> Result<(), PeerError> {
        assert!(image.len() >= 8);
        // SAFETY: the handle is open; `image` has the length that is passed.
        check(unsafe { ffi::peer_cells_alloc(self.raw, image.len(), image.as_ptr(), count) })
    }

    /// Sum over all allocated objects of first word ^ last word << 32.
    pub fn objects_sum(&self) -> u64 {
        // SAFETY: the handle is open.
        unsafe { ffi::peer_cells_objects_sum(self.raw) }
    }

    /// Frees `count` objects.
    pub fn free(&mut self, count: usize) -> Result<(), PeerError> {
        // SAFETY: the handle is open.
        check(unsafe { ffi::peer_cells_free(self.raw, count) })
    }

    /// Reads `count` times through one stored pointer.
    pub fn deref(&mut self, count: usize) -> u64 {
        // SAFETY: the handle is open.
        unsafe { ffi::peer_cells_deref(self.raw, count) }
    }

    /// Follows `steps` pointers of the ring.
    pub fn chase(&mut self, steps: usize) -> u64 {
        // SAFETY: the handle is open.
        unsafe { ffi::peer_cells_chase(self.raw, steps) }
    }
}

impl Swap {
    /// Creates a pool file with `count` integers; integer i is i.
    pub fn open(path: &Path, pool_size: usize, count: usize) -> Result<Self, PeerError> {
        let path = c_path(path)?;
        // SAFETY: the path is a C string.
        Swap::from_raw(unsafe { ffi::peer_swap_open(path.as_ptr(), pool_size, count) })
    }

    /// The first `count` integers.
    pub fn values(&self, count: usize) -> &[u64] {
        // SAFETY: the array is part of the mapped pool while the handle lives, and changes only through `&mut self`.
        unsafe { std::slice::from_raw_parts(ffi::peer_swap_values(self.raw), count) }
    }

    /// Swaps all pairs, `per_tx` in each transaction.
    pub fn run(&mut self, pairs: &[[u32; 2]], per_tx: usize) -> Result<(), PeerError> {
        // SAFETY: the handle is open; `pairs` holds twice as many indices as it has elements.
        check(unsafe { ffi::peer_swap_run(self.raw, pairs.as_ptr().cast(), pairs.len(), per_tx) })
    }
}

// SAFETY: libpmemobj's pools may be used from any thread, and who calls `euler` has the part of the array alone.
unsafe impl Sync for Array {}

impl Array {
    /// Creates a pool file with `count` numbers; number i is i.
    pub fn open(path: &Path, pool_size: usize, count: usize) -> Result<Self, PeerError> {
        let path = c_path(path)?;
        // SAFETY: the path is a C string.
        Array::from_raw(unsafe { ffi::peer_array_open(path.as_ptr(), pool_size, count) })
    }

    /// Replaces each number x of a part of the array, which no other thread uses, by cos(x) + sin(x), `per_tx` in each
    /// transaction.
    pub fn euler(&self, part: Range<usize>, per_tx: usize) -> Result<(), PeerError> {
        // SAFETY: the handle is open; the caller has the part, which lies within the array.
        check(unsafe { ffi::peer_array_euler(self.raw, part.start, part.end, per_tx) })
    }

    /// The first `count` numbers.
    pub fn numbers(&self, count: usize) -> &[f64] {
        // SAFETY: the array is part of the mapped pool while the handle lives; nobody changes it meanwhile.
        unsafe { std::slice::from_raw_parts(ffi::peer_array_numbers(self.raw), count) }
    }
}

impl List {
    /// Creates a pool file with an empty list.
    pub fn open(path: &Path, pool_size: usize) -> Result<Self, PeerError> {
        let path = c_path(path)?;
        // SAFETY: the path is a C string.
        List::from_raw(unsafe { ffi::peer_list_open(path.as_ptr(), pool_size) })
    }

    /// Appends each value in a transaction of its own.
    pub fn append(&mut self, values: &[u64]) -> Result<(), PeerError> {
        // SAFETY: the handle is open; `values` has the length that is passed.
        check(unsafe { ffi::peer_list_append(self.raw, values.as_ptr(), values.len()) })
    }

    /// Walks the list.
    pub fn sum(&mut self) -> Walk {
        // SAFETY: the handle is open.
        unsafe { ffi::peer_list_sum(self.raw) }
    }

    /// Pops `count` values in a transaction each; their sum.
    pub fn pop(&mut self, count: usize) -> Result<u64, PeerError> {
        let mut sum = 0;
        // SAFETY: the handle is open; `sum` is valid for the call.
        check(unsafe { ffi::peer_list_pop(self.raw, count, &raw mut sum) })?;
        Ok(sum)
    }
}

impl Tree {
    /// Creates a pool file with an empty tree.
    pub fn open(path: &Path, pool_size: usize) -> Result<Self, PeerError> {
        let path = c_path(path)?;
        // SAFETY: the path is a C string.
        Tree::from_raw(unsafe { ffi::peer_tree_open(path.as_ptr(), pool_size) })
    }

    /// Inserts each entry in a transaction of its own.
    pub fn insert(&mut self, entries: &[Op]) -> Result<(), PeerError> {
        // SAFETY: the handle is open; `entries` has the length that is passed.
        check(unsafe { ffi::peer_tree_insert(self.raw, entries.as_ptr(), entries.len()) })
    }

    /// Sum of the values of the keys that are there.
    pub fn lookup(&self, keys: &[u64]) -> u64 {
        // SAFETY: the handle is open; `keys` has the length that is passed.
        unsafe { ffi::peer_tree_lookup(self.raw, keys.as_ptr(), keys.len()) }
    }

    /// Deletes each key in a transaction of its own; how many were there.
    pub fn delete(&mut self, keys: &[u64]) -> Result<u64, PeerError> {
        let mut found = 0;
        // SAFETY: the handle is open; `keys` has the length that is passed; `found` is valid for the call.
        check(unsafe {
            ffi::peer_tree_delete(self.raw, keys.as_ptr(), keys.len(), &raw mut found)
        })?;
        Ok(found)
    }

    /// Scans and insertions, each in a transaction of its own; the sum of the values that were read.
    pub fn serve(&mut self, requests: &[Scan]) -> Result<u64, PeerError> {
        let mut sum = 0;
        // SAFETY: the handle is open; `requests` has the length that is passed; `sum` is valid for the call.
        check(unsafe {
            ffi::peer_tree_serve(self.raw, requests.as_ptr(), requests.len(), &raw mut sum)
        })?;
        Ok(sum)
    }

    /// Walks the tree in key order.
    pub fn walk(&mut self) -> Walk {
        // SAFETY: the handle is open.
        unsafe { ffi::peer_tree_walk(self.raw) }
    }
}

impl Map {
    /// Creates a pool file with an empty map of `1 << bucket_bits` buckets.
    pub fn open(path: &Path, pool_size: usize, bucket_bits: u32) -> Result<Self, PeerError> {
        let path = c_path(path)?;
        // SAFETY: the path is a C string.
        Map::from_raw(unsafe { ffi::peer_map_open(path.as_ptr(), pool_size, bucket_bits) })
    }

    /// Inserts each entry, whose key is not there, in a transaction of its own.
    pub fn load(&mut self, entries: &[Op]) -> Result<(), PeerError> {
        // SAFETY: the handle is open; `entries` has the length that is passed.
        check(unsafe { ffi::peer_map_load(self.raw, entries.as_ptr(), entries.len()) })
    }

    /// The digest of the key's value; 0 if it is not there.
    pub fn read(&self, key: u64) -> u64 {
        let (op, mut sum) = (Op { key, value: 0 }, 0);
        // SAFETY: the handle is open; one operation, a read; `sum` is valid for the call. A read does not fail.
        unsafe { ffi::peer_map_run(self.raw, &raw const op, 1, &raw mut sum) };
        sum
    }

    /// Reads and updates; the sum of the digests of what was read.
    pub fn run(&mut self, ops: &[Op]) -> Result<u64, PeerError> {
        let mut sum = 0;
        // SAFETY: the handle is open; `ops` has the length that is passed; `sum` is valid for the call.
        check(unsafe { ffi::peer_map_run(self.raw, ops.as_ptr(), ops.len(), &raw mut sum) })?;
        Ok(sum)
    }

    /// Walks the map.
    pub fn walk(&mut self) -> Walk {
        // SAFETY: the handle is open.
        unsafe { ffi::peer_map_walk(self.raw) }
    }
}

impl Numbers {
    /// Creates a pool file with an empty map.
    pub fn open(path: &Path, pool_size: usize, kind: NumbersKind) -> Result<Self, PeerError> {
        let path = c_path(path)?;
        // SAFETY: the path is a C string, and the kind one of the header's.
        Numbers::from_raw(unsafe { ffi::peer_numbers_open(path.as_ptr(), pool_size, kind as _) })
    }

    /// Inserts each entry in a transaction of its own.
    pub fn insert(&mut self, entries: &[Op]) -> Result<(), PeerError> {
        // SAFETY: the handle is open; `entries` has the length that is passed.
        check(unsafe { ffi::peer_numbers_insert(self.raw, entries.as_ptr(), entries.len()) })
    }

    /// Sum of the values of the keys that are there.
    pub fn find(&self, keys: &[u64]) -> u64 {
        // SAFETY: the handle is open; `keys` has the length that is passed.
        unsafe { ffi::peer_numbers_find(self.raw, keys.as_ptr(), keys.len()) }
    }

    /// Removes each key in a transaction of its own; how many were there.
    pub fn remove(&mut self, keys: &[u64]) -> Result<u64, PeerError> {
        let mut found = 0;
        // SAFETY: the handle is open; `keys` has the length that is passed; `found` is valid for the call.
        check(unsafe {
            ffi::peer_numbers_remove(self.raw, keys.as_ptr(), keys.len(), &raw mut found)
        })?;
        Ok(found)
    }

    /// Walks the map.
    pub fn walk(&mut self) -> Walk {
        // SAFETY: the handle is open.
        unsafe { ffi::peer_numbers_walk(self.raw) }
    }
}
