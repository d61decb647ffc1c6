//! CRC-32C, fast for the few dozen bytes of a log entry as well as for pages.
//!
//! Small inputs are folded eight bytes at a time by the processor's CRC instruction, in line: on the commit path an
//! entry has 20 bytes of header and often 8 of data, and a call into the general routine would cost more than the sum.
//! Longer ones go to the `crc32c` crate, which runs several streams at once, and long ones to `crc-fast`, which folds
//! by carry-less multiplication.

use zerocopy::IntoBytes;

/// From this many bytes on the general routine is as fast: measured, 8 bytes take 3 ns in line and 12 ns there, 64 take
/// 8 and 13, 128 to 512 the same, 4096 take 510 and 220.
#[cfg(target_arch = "x86_64")]
const SMALL_BYTES: usize = 128;

/// For the words of a record up to here: the call and what it puts aside cost a commit more than several streams gain.
#[cfg(target_arch = "x86_64")]
const SMALL_RECORD_WORDS: usize = 40;

/// From this many bytes on carry-less multiplication pays: measured, 256 bytes take 34 ns by the CRC instruction and 32
/// ns by folding, 512 take 94 and 52, 4096 take 282 and 90.
const LARGE_BYTES: usize = 512;

/// Appends `bytes`, of which there are many enough for a call.
fn append(value: u32, bytes: &[u8]) -> u32 {
    if bytes.len() < LARGE_BYTES {
        return crc32c::crc32c_append(value, bytes);
    }
    // SAFETY: a row of bytes.
    unsafe { __durum_crc32c_folded(value, bytes.as_ptr(), bytes.len()) }
}

/// By carry-less multiplication. It brings tables for sums of all kinds, three quarters of a megabyte: code that only
/// completes sections is linked with [`__durum_crc32c_streamed`] in its place (`compiler/driver/code.ld`).
///
/// # Safety
/// There are `length` bytes.
#[unsafe(no_mangle)]
#[inline(never)]
unsafe extern "C" fn __durum_crc32c_folded(value: u32, bytes: *const u8, length: usize) -> u32 {
    let state = u64::from(!value);
    let mut digest =
        crc_fast::Digest::new_with_init_state(crc_fast::CrcAlgorithm::Crc32Iscsi, state);
    // SAFETY: as the caller promises.
    digest.update(unsafe { std::slice::from_raw_parts(bytes, length) });
    digest.finalize() as u32
}

/// The same sum by the processor's CRC instruction.
///
/// # Safety
/// As for [`__durum_crc32c_folded`].
#[unsafe(no_mangle)]
unsafe extern "C" fn __durum_crc32c_streamed(value: u32, bytes: *const u8, length: usize) -> u32 {
    // SAFETY: as the caller promises.
    crc32c::crc32c_append(value, unsafe { std::slice::from_raw_parts(bytes, length) })
}

/// CRC-32C of `bytes`.
pub fn crc32c(bytes: &[u8]) -> u32 {
    let mut crc = Crc::new();
    crc.update(bytes);
    crc.value()
}

/// A CRC-32C in the making.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Crc {
    /// The value so far, with the final inversion already done (the value of the bytes seen).
    value: u32,
}

impl Default for Crc {
    fn default() -> Self {
        Self::new()
    }
}

impl Crc {
    /// The CRC of nothing.
    pub const fn new() -> Self {
        Self { value: 0 }
    }

    /// Goes on from the CRC of what came before.
    pub const fn resume(value: u32) -> Self {
        Self { value }
    }

    /// Appends `bytes`.
    #[inline]
    pub fn update(&mut self, bytes: &[u8]) {
        #[cfg(target_arch = "x86_64")]
        if bytes.len() < SMALL_BYTES && std::arch::is_x86_feature_detected!("sse4.2") {
            // SAFETY: the instruction set that the function needs was just found.
            self.value = !unsafe { small::fold(!self.value, bytes) };
            return;
        }
        self.value = append(self.value, bytes);
    }

    /// Appends an offset, half a word and words, of which a few may lie elsewhere: a record in its place.
    #[inline(always)]
    pub(crate) fn update_record(&mut self, offset: u64, half: u32, head: &[u64], words: &[u64]) {
        #[cfg(target_arch = "x86_64")]
        if words.len() < SMALL_RECORD_WORDS && std::arch::is_x86_feature_detected!("sse4.2") {
            // SAFETY: the instruction set that the function needs was just found.
            self.value = !unsafe { small::fold_record(!self.value, offset, half, head, words) };
            return;
        }
        self.update(&offset.to_le_bytes());
        self.update_words(half, head, words);
    }

    /// Appends half a word and words: what is in registers, and what lies in its place. No load of it meets two stores,
    /// and so waits for those before, which may be held up by a fence.
    #[inline(always)]
    pub(crate) fn update_words(&mut self, half: u32, head: &[u64], words: &[u64]) {
        #[cfg(target_arch = "x86_64")]
        if words.len() < SMALL_RECORD_WORDS && std::arch::is_x86_feature_detected!("sse4.2") {
            // SAFETY: the instruction set that the function needs was just found.
            self.value = !unsafe { small::fold_words(!self.value, half, head, words) };
            return;
        }
        self.update(&half.to_le_bytes());
        self.update(head.as_bytes());
        self.update(words.as_bytes());
    }

    /// The CRC of everything appended.
    pub const fn value(self) -> u32 {
        self.value
    }
}

/// The CRC of two words and a half (the checked part of an entry header) and then `data`, going on from `value`.
#[inline]
pub(crate) fn header_and_data(value: u32, words: [u64; 2], half: u32, data: &[u8]) -> u32 {
    #[cfg(target_arch = "x86_64")]
    if std::arch::is_x86_feature_detected!("sse4.2") {
        let (near, far) = if data.len() < SMALL_BYTES {
            (data, [].as_slice())
        } else {
            ([].as_slice(), data)
        };
        // SAFETY: the instruction set that the function needs was just found.
        let value = !unsafe { small::fold_entry(!value, words, half, near) };
        return if far.is_empty() {
            value
        } else {
            append(value, far)
        };
    }
    let mut header = [0; 20];
    header[..8].copy_from_slice(&words[0].to_le_bytes());
    header[8..16].copy_from_slice(&words[1].to_le_bytes());
    header[16..].copy_from_slice(&half.to_le_bytes());
    append(append(value, &header), data)
}

#[cfg(target_arch = "x86_64")]
mod small {
    use std::arch::x86_64::{_mm_crc32_u8, _mm_crc32_u32, _mm_crc32_u64};

    /// Folds `bytes` into the raw (not inverted) CRC state.
    #[target_feature(enable = "sse4.2")]
    #[inline]
    pub(super) fn fold(state: u32, bytes: &[u8]) -> u32 {
        let (words, mut rest) = bytes.as_chunks::<8>();
        let mut state = u64::from(state);
        for word in words {
            state = _mm_crc32_u64(state, u64::from_le_bytes(*word));
        }
        let mut state = state as u32;
        if let Some((half, tail)) = rest.split_first_chunk::<4>() {
            state = _mm_crc32_u32(state, u32::from_le_bytes(*half));
            rest = tail;
        }
        for &byte in rest {
            state = _mm_crc32_u8(state, byte);
        }
        state
    }

    /// Folds an offset, half a word and words into the raw state.
    #[target_feature(enable = "sse4.2")]
    #[inline]
    pub(super) fn fold_record(
        state: u32,
        offset: u64,
        half: u32,
        head: &[u64],
        words: &[u64],
    ) -> u32 {
        let state = _mm_crc32_u64(u64::from(state), offset);
        fold_words(state as u32, half, head, words)
    }

    /// Folds half a word and words into the raw state.
    #[target_feature(enable = "sse4.2")]
    #[inline]
    pub(super) fn fold_words(state: u32, half: u32, head: &[u64], words: &[u64]) -> u32 {
        let mut state = u64::from(_mm_crc32_u32(state, half));
        for word in head {
            state = _mm_crc32_u64(state, *word);
        }
        for word in words {
            state = _mm_crc32_u64(state, *word);
        }
        state as u32
    }

    /// Folds the 20 checked bytes of an entry header and then `data` into the raw state.
    #[target_feature(enable = "sse4.2")]
    #[inline]
    pub(super) fn fold_entry(state: u32, words: [u64; 2], half: u32, data: &[u8]) -> u32 {
        let state = _mm_crc32_u64(_mm_crc32_u64(u64::from(state), words[0]), words[1]);
        fold(_mm_crc32_u32(state as u32, half), data)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// One bit at a time, from the definition: polynomial 0x1EDC6F41 reflected.
    fn naive(bytes: &[u8]) -> u32 {
        let mut state = !0u32;
        for &byte in bytes {
            state ^= u32::from(byte);
            for _ in 0..8 {
                state = if state & 1 == 1 {
                    state >> 1 ^ 0x82f6_3b78
                } else {
                    state >> 1
                };
            }
        }
        !state
    }

    #[test]
    fn all_paths_agree_with_the_definition_at_every_length_and_split() {
        assert_eq!(crc32c(b"123456789"), 0xe306_9283);
        let bytes: Vec<u8> = (0..5000u32)
            .map(|i| (i.wrapping_mul(2_654_435_761) >> 13) as u8)
            .collect();
        for len in (0..260).chain([511, 512, 513, 600, 767, 1024, 1025, 2047, 4096, 5000]) {
            assert_eq!(crc32c(&bytes[..len]), naive(&bytes[..len]), "length {len}");
            let mut crc = Crc::new();
            crc.update(&bytes[..len / 3]);
            crc.update(&bytes[len / 3..len]);
            assert_eq!(
                crc.value(),
                naive(&bytes[..len]),
                "length {len} in two parts"
            );
            // SAFETY: a row of bytes.
            let streamed = unsafe { __durum_crc32c_streamed(0, bytes.as_ptr(), len) };
            assert_eq!(streamed, naive(&bytes[..len]), "length {len}, streamed");
        }
    }

    #[test]
    fn header_and_data_is_the_crc_of_their_bytes() {
        let bytes: Vec<u8> = (0..5000u32).map(|i| (i * 7) as u8).collect();
        let word = |at: usize| u64::from_le_bytes(bytes[at..at + 8].try_into().unwrap());
        let half = u32::from_le_bytes(bytes[32..36].try_into().unwrap());
        for len in [0, 1, 7, 8, 9, 64, 127, 128, 129, 364, 511, 512, 513, 4096] {
            let whole = header_and_data(
                crc32c(&bytes[..16]),
                [word(16), word(24)],
                half,
                &bytes[36..36 + len],
            );
            assert_eq!(whole, naive(&bytes[..36 + len]), "data of {len} bytes");
        }
    }
}
