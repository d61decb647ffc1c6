//! The declarations of `c/peer.h`, in its order.

use std::ffi::{c_char, c_int, c_uint};

/// One key-value operation: a read where `value` is 0, else an update (or an entry to insert).
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Op {
    /// The key.
    pub key: u64,
    /// The new value, or 0.
    pub value: u64,
}

/// A scan of `length` entries from a key on or, where that is 0, an insertion.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Scan {
    /// The key.
    pub key: u64,
    /// The value of the entry that is inserted.
    pub value: u64,
    /// How many entries are read, or 0.
    pub length: u64,
}

/// What a walk over a whole structure found.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Walk {
    /// Number of elements.
    pub count: u64,
    /// Sum of values (list), of key xor value (tree), of key xor digest of the value (map).
    pub sum: u64,
    /// 1 where the keys ascend strictly.
    pub sorted: u64,
}

macro_rules! opaque {
    ($($name:ident)*) => { $(
        #[repr(C)]
        pub struct $name { _private: [u8; 0] }
    )* };
}
pub(crate) use opaque;

opaque!(RawCells RawSwap RawArray RawList RawTree RawMap RawNumbers);

unsafe extern "C" {
    pub fn peer_version() -> *const c_char;
    pub fn peer_error() -> *const c_char;

    pub fn peer_cells_open(
        path: *const c_char,
        pool_size: usize,
        area_size: usize,
        objects_max: usize,
        next: *const u32,
        nodes: usize,
    ) -> *mut RawCells;
    pub fn peer_cells_close(cells: *mut RawCells);
    pub fn peer_cells_area(cells: *const RawCells) -> *const u8;
    pub fn peer_cells_floor(cells: *mut RawCells, stride: usize, count: usize) -> c_int;
    pub fn peer_cells_tx_empty(cells: *mut RawCells, count: usize) -> c_int;
    pub fn peer_cells_add(
        cells: *mut RawCells,
        len: usize,
        stride: usize,
        image: *const u8,
        count: usize,
    ) -> c_int;
    pub fn peer_cells_alloc(
        cells: *mut RawCells,
        len: usize,
        image: *const u8,
        count: usize,
    ) -> c_int;
    pub fn peer_cells_objects_sum(cells: *const RawCells) -> u64;
    pub fn peer_cells_free(cells: *mut RawCells, count: usize) -> c_int;
    pub fn peer_cells_deref(cells: *mut RawCells, count: usize) -> u64;
    pub fn peer_cells_chase(cells: *mut RawCells, steps: usize) -> u64;

    pub fn peer_swap_open(path: *const c_char, pool_size: usize, count: usize) -> *mut RawSwap;
    pub fn peer_swap_close(swap: *mut RawSwap);
    pub fn peer_swap_values(swap: *const RawSwap) -> *const u64;
    pub fn peer_swap_run(
        swap: *mut RawSwap,
        pairs: *const u32,
        count: usize,
        per_tx: usize,
    ) -> c_int;

    pub fn peer_list_open(path: *const c_char, pool_size: usize) -> *mut RawList;
    pub fn peer_list_close(list: *mut RawList);
    pub fn peer_list_append(list: *mut RawList, values: *const u64, count: usize) -> c_int;
    pub fn peer_list_sum(list: *mut RawList) -> Walk;
    pub fn peer_list_pop(list: *mut RawList, count: usize, sum: *mut u64) -> c_int;

    pub fn peer_tree_open(path: *const c_char, pool_size: usize) -> *mut RawTree;
    pub fn peer_tree_close(tree: *mut RawTree);
    pub fn peer_tree_insert(tree: *mut RawTree, entries: *const Op, count: usize) -> c_int;
    pub fn peer_tree_lookup(tree: *mut RawTree, keys: *const u64, count: usize) -> u64;
    pub fn peer_tree_delete(
        tree: *mut RawTree,
        keys: *const u64,
        count: usize,
        found: *mut u64,
    ) -> c_int;
    pub fn peer_tree_serve(
        tree: *mut RawTree,
        requests: *const Scan,
        count: usize,
        sum: *mut u64,
    ) -> c_int;
    pub fn peer_tree_walk(tree: *mut RawTree) -> Walk;

    pub fn peer_array_open(path: *const c_char, pool_size: usize, count: usize) -> *mut RawArray;
    pub fn peer_array_close(array: *mut RawArray);
    pub fn peer_array_numbers(array: *const RawArray) -> *const f64;
    pub fn peer_array_euler(array: *mut RawArray, first: usize, end: usize, per_tx: usize)
    -> c_int;

    pub fn peer_map_open(path: *const c_char, pool_size: usize, bucket_bits: c_uint)
    -> *mut RawMap;
    pub fn peer_map_close(map: *mut RawMap);
    pub fn peer_map_load(map: *mut RawMap, entries: *const Op, count: usize) -> c_int;
    pub fn peer_map_run(map: *mut RawMap, ops: *const Op, count: usize, sum: *mut u64) -> c_int;
    pub fn peer_map_walk(map: *mut RawMap) -> Walk;

    pub fn peer_numbers_open(
        path: *const c_char,
        pool_size: usize,
        kind: c_uint,
    ) -> *mut RawNumbers;
    pub fn peer_numbers_close(numbers: *mut RawNumbers);
    pub fn peer_numbers_insert(numbers: *mut RawNumbers, entries: *const Op, count: usize)
    -> c_int;
    pub fn peer_numbers_find(numbers: *mut RawNumbers, keys: *const u64, count: usize) -> u64;
    pub fn peer_numbers_remove(
        numbers: *mut RawNumbers,
        keys: *const u64,
        count: usize,
        found: *mut u64,
    ) -> c_int;
    pub fn peer_numbers_walk(numbers: *mut RawNumbers) -> Walk;
}
