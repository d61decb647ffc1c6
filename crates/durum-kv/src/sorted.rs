//! Finding a key in a sorted row without looking at the keys.
//!
//! For each key a *head* is kept: its next eight bytes behind what all keys of the row begin with. Most searches
//! compare heads only, which lie side by side, and look at one key in the end. With a comparator of the program's own,
//! heads say nothing and keys are compared.

use std::cmp::Ordering;
use std::ops::{Deref, Range};

use arrayvec::ArrayVec;

use crate::comparator::{Keys, common};
use crate::heads::count;

/// Common beginnings are used up to this length.
const PREFIX_MAX: usize = 47;

/// The heads of a row, where the row wants them.
pub(crate) trait Heads: Default + Deref<Target = [u64]> + Extend<u64> {
    fn insert(&mut self, index: usize, head: u64);
    fn remove(&mut self, index: usize);
    fn truncate(&mut self, len: usize);
}

macro_rules! heads {
    ($([$($parameters:tt)*] $row:ty;)*) => { $(
        impl<$($parameters)*> Heads for $row {
            fn insert(&mut self, index: usize, head: u64) {
                self.insert(index, head);
            }

            fn remove(&mut self, index: usize) {
                self.remove(index);
            }

            fn truncate(&mut self, len: usize) {
                self.truncate(len);
            }
        }
    )* };
}

heads! {
    [] Vec<u64>;
    [const N: usize] ArrayVec<u64, N>;
}

/// A row's search order. The keys themselves lie elsewhere: calls give a function that finds them.
#[derive(Clone, Debug, Default)]
#[repr(C)]
pub(crate) struct Sorted<H> {
    prefix: Prefix,
    /// The head of each key, ascending; all 0 where the order is not that of bytes.
    heads: H,
}

/// All keys of a row begin with `bytes[..skip]`.
#[derive(Clone, Debug)]
#[repr(C)]
struct Prefix {
    bytes: [u8; PREFIX_MAX],
    skip: u8,
}

impl Default for Prefix {
    fn default() -> Self {
        Self {
            bytes: [0; PREFIX_MAX],
            skip: 0,
        }
    }
}

impl Prefix {
    #[inline(always)]
    fn bytes(&self) -> &[u8] {
        &self.bytes[..usize::from(self.skip).min(PREFIX_MAX)]
    }
}

/// The eight bytes from `skip` on, the first one highest, zeros where the key has ended.
#[inline]
fn head(key: &[u8], skip: usize) -> u64 {
    let rest = key.get(skip..).unwrap_or_default();
    match rest.first_chunk::<8>() {
        Some(bytes) => u64::from_be_bytes(*bytes),
        None => {
            let mut bytes = [0; 8];
            bytes[..rest.len()].copy_from_slice(rest);
            u64::from_be_bytes(bytes)
        }
    }
}

/// Where the key is among those that [`Sorted::narrow`] has left, or where it belongs.
#[inline]
pub(crate) fn find_among<'k>(
    Range { start, end }: Range<usize>,
    keys: &Keys,
    key: &[u8],
    key_at: impl Fn(usize) -> &'k [u8],
) -> Result<usize, usize> {
    let (mut from, mut to) = (start, end);
    while from < to {
        let middle = from + (to - from) / 2;
        match keys.compare(key_at(middle), key) {
            Ordering::Less => from = middle + 1,
            Ordering::Equal => return Ok(middle),
            Ordering::Greater => to = middle,
        }
    }
    Err(from)
}

impl<H: Heads> Sorted<H> {
    /// The order of `len` keys, which ascend.
    pub(crate) fn of<'k>(keys: &Keys, len: usize, key_at: impl Fn(usize) -> &'k [u8]) -> Self {
        let mut sorted = Self::default();
        if len > 0 {
            // What the first and the last begin with, all between them begin with.
            let (first, last) = (key_at(0), key_at(len - 1));
            sorted.begin_with(keys, &first[..common(first, last)]);
        }
        sorted.fill(keys, len, key_at);
        sorted
    }

    fn begin_with(&mut self, keys: &Keys, prefix: &[u8]) {
        let skip = match keys {
            Keys::Bytewise => prefix.len().min(PREFIX_MAX),
            Keys::Custom(_) => 0,
        };
        self.prefix.bytes[..skip].copy_from_slice(&prefix[..skip]);
        self.prefix.skip = skip as u8;
    }

    fn fill<'k>(&mut self, keys: &Keys, len: usize, key_at: impl Fn(usize) -> &'k [u8]) {
        let skip = usize::from(self.prefix.skip);
        self.heads.truncate(0);
        self.heads.extend((0..len).map(|index| match keys {
            Keys::Bytewise => head(key_at(index), skip),
            Keys::Custom(_) => 0,
        }));
    }

    /// Where the key is, or where it belongs.
    #[inline]
    pub(crate) fn find<'k>(
        &self,
        keys: &Keys,
        key: &[u8],
        key_at: impl Fn(usize) -> &'k [u8],
    ) -> Result<usize, usize> {
        find_among(self.narrow(keys, key), keys, key, key_at)
    }

    /// Among which of them the key is, if it is there: no key is looked at for that.
    #[inline]
    pub(crate) fn narrow(&self, keys: &Keys, key: &[u8]) -> Range<usize> {
        let len = self.heads.len();
        let Keys::Bytewise = keys else {
            return 0..len;
        };
        let prefix = self.prefix.bytes();
        let begin = &key[..prefix.len().min(key.len())];
        match begin.cmp(prefix) {
            Ordering::Less => return 0..0,
            Ordering::Greater => return len..len,
            Ordering::Equal => {}
        }
        let head = head(key, prefix.len());
        let (below, equal) = count(&self.heads, head);
        below..below + equal
    }

    /// Enters a key at `index`. `key_at` finds those that were there before, by their indices before.
    pub(crate) fn insert<'k>(
        &mut self,
        keys: &Keys,
        index: usize,
        key: &[u8],
        key_at: impl Fn(usize) -> &'k [u8],
    ) {
        if let Keys::Custom(_) = keys {
            self.heads.insert(index, 0);
            return;
        }
        if self.heads.is_empty() {
            // The end of a key tells it from its neighbours.
            self.begin_with(keys, &key[..key.len().saturating_sub(8)]);
        } else if !key.starts_with(self.prefix.bytes()) {
            let len = self.heads.len();
            self.prefix.skip = common(self.prefix.bytes(), key) as u8;
            self.fill(keys, len, key_at);
        }
        let head = head(key, usize::from(self.prefix.skip));
        self.heads.insert(index, head);
    }

    pub(crate) fn remove(&mut self, index: usize) {
        self.heads.remove(index);
    }

    /// Takes off what is at `index` and behind.
    pub(crate) fn truncate(&mut self, index: usize) {
        self.heads.truncate(index);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use proptest::prelude::*;

    use super::*;
    use crate::comparator::Comparator;

    struct Reverse;

    impl Comparator for Reverse {
        fn compare(&self, a: &[u8], b: &[u8]) -> Ordering {
            b.cmp(a)
        }

        fn name(&self) -> &str {
            "reverse"
        }
    }

    fn key() -> impl Strategy<Value = Vec<u8>> {
        let byte = prop_oneof![Just(0u8), Just(b'a'), Just(b'b'), Just(0xff)];
        (0..3usize, prop::collection::vec(byte, 0..12)).prop_map(|(prefix, mut rest)| {
            let mut key = b"a common beginning that is longer than what is kept of one"
                [..[0, 20, 58][prefix]]
                .to_vec();
            key.append(&mut rest);
            key
        })
    }

    proptest! {
        #[test]
        fn keys_are_found_as_by_comparing_them(
            inserted in prop::collection::vec(key(), 0..60),
            removed in prop::collection::vec(any::<prop::sample::Index>(), 0..10),
            asked in prop::collection::vec(key(), 0..20),
            is_reverse in any::<bool>(),
        ) {
            let keys = match is_reverse {
                true => Keys::Custom(Arc::new(Reverse)),
                false => Keys::Bytewise,
            };
            let mut row: Vec<Vec<u8>> = Vec::new();
            let mut sorted = Sorted::<Vec<u64>>::default();
            for key in &inserted {
                if let Err(index) = sorted.find(&keys, key, |index| &row[index]) {
                    sorted.insert(&keys, index, key, |index| &row[index]);
                    row.insert(index, key.clone());
                }
            }
            for index in removed {
                if !row.is_empty() {
                    let index = index.index(row.len());
                    row.remove(index);
                    sorted.remove(index);
                }
            }
            prop_assert_eq!(sorted.heads.len(), row.len());
            prop_assert!(row.is_sorted_by(|a, b| keys.compare(a, b).is_lt()));
            let fresh = Sorted::<Vec<u64>>::of(&keys, row.len(), |index| &row[index]);
            for key in asked.iter().chain(&inserted) {
                let expected = row.binary_search_by(|other| keys.compare(other, key));
                prop_assert_eq!(sorted.find(&keys, key, |index| &row[index]), expected);
                prop_assert_eq!(fresh.find(&keys, key, |index| &row[index]), expected);
            }
        }
    }
}
