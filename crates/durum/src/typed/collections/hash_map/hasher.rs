//! The hash function of maps in a pool.
//!
//! Its values are stored: a map that was written by one build of a program is read by the next. So it is our own, and
//! what it makes of given bytes never changes. It multiplies to 128 bits and folds the halves, once for each word (as
//! wyhash does).

use std::hash::{BuildHasher, Hash, Hasher, RandomState};

/// From the digits of pi, odd: nothing about it is special.
const MULTIPLIER: u64 = 0x2438_6a31_8d31_319d;
const FINAL_MULTIPLIER: u64 = 0x13c6_ef37_2fe9_4f83;

/// The hash of a key under a map's seed.
#[inline]
pub(super) fn hash_of<Q: Hash + ?Sized>(seed: u64, key: &Q) -> u64 {
    let mut hasher = SeededHasher { state: seed };
    key.hash(&mut hasher);
    hasher.finish()
}

/// A seed that nobody guesses, another one for each table: copying one map into another in the order of the first's
/// table would otherwise crowd the second.
#[cold]
pub(super) fn fresh_seed() -> u64 {
    RandomState::new().hash_one(0)
}

#[derive(Debug)]
struct SeededHasher {
    state: u64,
}

#[inline]
fn fold(a: u64, b: u64) -> u64 {
    let product = u128::from(a) * u128::from(b);
    product as u64 ^ (product >> 64) as u64
}

impl Hasher for SeededHasher {
    #[inline]
    fn write(&mut self, bytes: &[u8]) {
        let (words, rest) = bytes.as_chunks::<8>();
        words
            .iter()
            .for_each(|word| self.write_u64(u64::from_le_bytes(*word)));
        // The length tells a short rest from one with zeros.
        let mut last = [0; 8];
        last[..rest.len()].copy_from_slice(rest);
        last[7] = rest.len() as u8;
        self.write_u64(u64::from_le_bytes(last));
    }

    #[inline]
    fn write_u64(&mut self, word: u64) {
        self.state = fold(self.state ^ word, MULTIPLIER).wrapping_add(self.state.rotate_left(23));
    }

    #[inline]
    fn write_u8(&mut self, value: u8) {
        self.write_u64(value.into());
    }

    #[inline]
    fn write_u16(&mut self, value: u16) {
        self.write_u64(value.into());
    }

    #[inline]
    fn write_u32(&mut self, value: u32) {
        self.write_u64(value.into());
    }

    #[inline]
    fn write_u128(&mut self, value: u128) {
        self.write_u64(value as u64);
        self.write_u64((value >> 64) as u64);
    }

    #[inline]
    fn write_usize(&mut self, value: usize) {
        self.write_u64(value as u64);
    }

    #[inline]
    fn finish(&self) -> u64 {
        fold(self.state ^ MULTIPLIER, FINAL_MULTIPLIER)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// If this fails, maps in existing pools cannot be read any more.
    #[test]
    fn hashes_never_change() {
        assert_eq!(hash_of(1, &7u64), HASHES[0]);
        assert_eq!(hash_of(1, &7u32), HASHES[0]);
        assert_eq!(hash_of(2, &7u64), HASHES[1]);
        let mut hasher = SeededHasher { state: 3 };
        hasher.write(b"persistent memory");
        assert_eq!(hasher.finish(), HASHES[2]);
    }

    const HASHES: [u64; 3] = [
        0x7966_222b_27d1_3979,
        0x55f3_eb76_29ce_ab79,
        0x3b64_77a7_be93_13b2,
    ];

    #[test]
    fn all_bits_depend_on_all_bytes() {
        let hash = |text: &str| hash_of(5, text);
        for at in 0..20 {
            let mut bytes = [b'a'; 20];
            bytes[at] = b'b';
            let other = str::from_utf8(&bytes).unwrap();
            let changed = (hash(other) ^ hash("aaaaaaaaaaaaaaaaaaaa")).count_ones();
            assert!((12..=52).contains(&changed), "byte {at}: {changed} bits");
        }
    }
}
