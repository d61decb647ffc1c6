//! The declarations of `c/programs/programs.h`, in its order.

use std::ffi::{c_char, c_int};

use crate::ffi::{Walk, opaque};

opaque!(RawStack RawStore RawWords);

/// Pairs of texts, one behind the other.
#[repr(C)]
pub struct RawTexts {
    pub text: *const c_char,
    pub key_len: usize,
    pub value_len: usize,
    pub count: usize,
}

unsafe extern "C" {
    pub fn peer_stack_open(path: *const c_char, pool_size: usize) -> *mut RawStack;
    pub fn peer_stack_close(stack: *mut RawStack);
    pub fn peer_stack_push(stack: *mut RawStack, values: *const u64, count: usize) -> c_int;
    pub fn peer_stack_sum(stack: *mut RawStack) -> Walk;
    pub fn peer_stack_pop(stack: *mut RawStack, count: usize, sum: *mut u64) -> c_int;

    pub fn peer_store_open(path: *const c_char, pool_size: usize) -> *mut RawStore;
    pub fn peer_store_close(store: *mut RawStore);
    pub fn peer_store_put(store: *mut RawStore, texts: *const RawTexts) -> c_int;
    pub fn peer_store_append(store: *mut RawStore, texts: *const RawTexts) -> c_int;
    pub fn peer_store_read(store: *mut RawStore, texts: *const RawTexts) -> u64;
    pub fn peer_store_delete(
        store: *mut RawStore,
        texts: *const RawTexts,
        found: *mut u64,
    ) -> c_int;
    pub fn peer_store_walk(store: *mut RawStore) -> Walk;

    pub fn peer_words_open(path: *const c_char, pool_size: usize) -> *mut RawWords;
    pub fn peer_words_close(words: *mut RawWords);
    pub fn peer_words_bring(words: *mut RawWords, text: *const c_char, len: usize) -> c_int;
    pub fn peer_words_count(words: *mut RawWords, thread: usize, threads: usize) -> c_int;
    pub fn peer_words_walk(words: *mut RawWords) -> Walk;
}
