//! The programs of examples/rust on libpmemobj. `c/programs/programs.h` tells what each function does.

use std::path::Path;

use super::{PeerError, Walk, c_path, check, last_error};

mod ffi;

super::handle!(
    /// The linked list, used at its head.
    Stack,
    RawStack,
    peer_stack_close
);
super::handle!(
    /// The key-value store for text.
    Store,
    RawStore,
    peer_store_close
);
super::handle!(
    /// The word count.
    Words,
    RawWords,
    peer_words_close
);

/// Pairs of texts, one behind the other: the key and the value of each, of lengths that are multiples of 8.
#[derive(Clone, Copy, Debug)]
pub struct Texts<'a> {
    text: &'a str,
    key_len: usize,
    value_len: usize,
}

impl<'a> Texts<'a> {
    /// The pairs in a text.
    ///
    /// # Panics
    /// If it does not consist of whole pairs.
    pub fn new(text: &'a str, key_len: usize, value_len: usize) -> Self {
        assert!(text.len().is_multiple_of(key_len + value_len));
        Texts {
            text,
            key_len,
            value_len,
        }
    }

    fn raw(&self) -> ffi::RawTexts {
        ffi::RawTexts {
            text: self.text.as_ptr().cast(),
            key_len: self.key_len,
            value_len: self.value_len,
            count: self.text.len() / (self.key_len + self.value_len),
        }
    }
}

impl Stack {
    /// Creates a pool file with an empty list.
    pub fn open(path: &Path, pool_size: usize) -> Result<Self, PeerError> {
        let path = c_path(path)?;
        // SAFETY: the path is a C string.
        Stack::from_raw(unsafe { ffi::peer_stack_open(path.as_ptr(), pool_size) })
    }

    /// Pushes each value in a transaction of its own.
    pub fn push(&mut self, values: &[u64]) -> Result<(), PeerError> {
        // SAFETY: the handle is open; `values` has the length that is passed.
        check(unsafe { ffi::peer_stack_push(self.raw, values.as_ptr(), values.len()) })
    }

    /// Walks the list.
    pub fn sum(&mut self) -> Walk {
        // SAFETY: the handle is open.
        unsafe { ffi::peer_stack_sum(self.raw) }
    }

    /// Pops `count` values in a transaction each; their sum.
    pub fn pop(&mut self, count: usize) -> Result<u64, PeerError> {
        let mut sum = 0;
        // SAFETY: the handle is open; `sum` is valid for the call.
        check(unsafe { ffi::peer_stack_pop(self.raw, count, &raw mut sum) })?;
        Ok(sum)
    }
}

impl Store {
    /// Creates a pool file with an empty store.
    pub fn open(path: &Path, pool_size: usize) -> Result<Self, PeerError> {
        let path = c_path(path)?;
        // SAFETY: the path is a C string.
        Store::from_raw(unsafe { ffi::peer_store_open(path.as_ptr(), pool_size) })
    }

    /// Puts each value in a transaction of its own.
    pub fn put(&mut self, texts: Texts<'_>) -> Result<(), PeerError> {
        // SAFETY: the handle is open; the texts are there for the call.
        check(unsafe { ffi::peer_store_put(self.raw, &texts.raw()) })
    }

    /// Adds each value to the one that is there, in a transaction of its own.
    pub fn append(&mut self, texts: Texts<'_>) -> Result<(), PeerError> {
        // SAFETY: as in `put`.
        check(unsafe { ffi::peer_store_append(self.raw, &texts.raw()) })
    }

    /// Sum of the words of the values of the keys that are there.
    pub fn read(&self, texts: Texts<'_>) -> u64 {
        // SAFETY: as in `put`.
        unsafe { ffi::peer_store_read(self.raw, &texts.raw()) }
    }

    /// Deletes each key in a transaction of its own; how many were there.
    pub fn delete(&mut self, texts: Texts<'_>) -> Result<u64, PeerError> {
        let mut found = 0;
        // SAFETY: as in `put`; `found` is valid for the call.
        check(unsafe { ffi::peer_store_delete(self.raw, &texts.raw(), &raw mut found) })?;
        Ok(found)
    }

    /// Walks the store.
    pub fn walk(&mut self) -> Walk {
        // SAFETY: the handle is open.
        unsafe { ffi::peer_store_walk(self.raw) }
    }
}

// SAFETY: its lanes are locked, each by itself, and libpmemobj's transactions are their threads' own.
unsafe impl Send for Words {}
// SAFETY: as above; what is not locked takes `&mut self`.
unsafe impl Sync for Words {}

impl Words {
    /// Creates a pool file without any text.
    pub fn open(path: &Path, pool_size: usize) -> Result<Self, PeerError> {
        let path = c_path(path)?;
        // SAFETY: the path is a C string.
        Words::from_raw(unsafe { ffi::peer_words_open(path.as_ptr(), pool_size) })
    }

    /// Brings an ASCII text to the lanes, a transaction for each chunk.
    pub fn bring(&mut self, text: &str) -> Result<(), PeerError> {
        // SAFETY: the handle is open; the text has the length that is passed.
        check(unsafe { ffi::peer_words_bring(self.raw, text.as_ptr().cast(), text.len()) })
    }

    /// Counts what is in the lanes of one of several threads, two transactions for each chunk.
    pub fn count(&self, thread: usize, threads: usize) -> Result<(), PeerError> {
        assert!(threads > 0);
        // SAFETY: the handle is open; lanes are locked while they are used.
        check(unsafe { ffi::peer_words_count(self.raw, thread, threads) })
    }

    /// Walks all words.
    pub fn walk(&mut self) -> Walk {
        // SAFETY: the handle is open.
        unsafe { ffi::peer_words_walk(self.raw) }
    }
}
