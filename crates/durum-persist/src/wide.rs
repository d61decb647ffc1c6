//! Whole cache lines in one register, where the processor has AVX-512: lines are copied by a mask of their bytes or
//! words, without a branch on it.

#[cfg(all(target_arch = "x86_64", not(miri)))]
use std::arch::x86_64::{
    _mm512_loadu_si512, _mm512_mask_storeu_epi8, _mm512_mask_storeu_epi64,
    _mm512_maskz_expand_epi64, _mm512_maskz_loadu_epi8,
};

#[cfg(all(target_arch = "x86_64", not(miri)))]
use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};

/// Whether the functions here, and others for AVX-512 F and BW, BMI 1 and 2, and POPCNT, may be called.
#[cfg(all(target_arch = "x86_64", not(miri)))]
#[inline(always)]
pub fn is_there() -> bool {
    // 0: nobody has looked yet. All questions in one word, because this is asked for each line.
    match KNOWN.load(Ordering::Relaxed) {
        0 => look(),
        known => known == THERE,
    }
}

#[cfg(all(target_arch = "x86_64", not(miri)))]
static KNOWN: AtomicU8 = AtomicU8::new(0);
#[cfg(all(target_arch = "x86_64", not(miri)))]
const THERE: u8 = 1;
#[cfg(all(target_arch = "x86_64", not(miri)))]
const MISSING: u8 = 2;

#[cfg(all(target_arch = "x86_64", not(miri)))]
#[cold]
fn look() -> bool {
    let is_there = std::arch::is_x86_feature_detected!("avx512f")
        && std::arch::is_x86_feature_detected!("avx512bw")
        && std::arch::is_x86_feature_detected!("bmi1")
        && std::arch::is_x86_feature_detected!("bmi2")
        && std::arch::is_x86_feature_detected!("popcnt");
    let known = if is_there { THERE } else { MISSING };
    KNOWN.store(known, Ordering::Relaxed);
    is_there
}

/// Never, on other processors.
#[cfg(not(all(target_arch = "x86_64", not(miri))))]
#[inline(always)]
pub fn is_there() -> bool {
    false
}

/// Copies the bytes that `mask` selects of 64.
///
/// # Safety
/// [`is_there`]; these bytes are readable at `source` and writable at `target`, and nobody changes them meanwhile.
#[cfg(all(target_arch = "x86_64", not(miri)))]
#[target_feature(enable = "avx512f,avx512bw")]
#[inline]
pub unsafe fn copy_bytes(target: *mut u8, source: *const u8, mask: u64) {
    // SAFETY: what the mask leaves out is not accessed; the rest as the caller promises.
    unsafe {
        let bytes = _mm512_maskz_loadu_epi8(mask, source.cast());
        _mm512_mask_storeu_epi8(target.cast(), mask, bytes);
    }
}

/// Stores the first of `words` to those of eight places that `mask` selects, one for each, and each at once.
///
/// All of `words` are loaded: if some were stored a moment ago, that takes until they are in the cache.
///
/// # Safety
/// [`is_there`]; the places are aligned and writable.
#[cfg(all(target_arch = "x86_64", not(miri)))]
#[target_feature(enable = "avx512f,avx512bw")]
#[inline]
pub unsafe fn spread_words(target: *mut u64, words: &[u64; 8], mask: u8) {
    // SAFETY: the places of the mask are aligned and writable, as this function demands; others are not accessed.
    unsafe {
        let words = _mm512_maskz_expand_epi64(mask, _mm512_loadu_si512(words.as_ptr().cast()));
        _mm512_mask_storeu_epi64(target.cast(), mask, words);
    }
}

/// Stores a word at once, as [`line::store_u64`](crate::line::store_u64) does.
///
/// # Safety
/// As there; nobody records stores.
#[cfg(all(target_arch = "x86_64", not(miri)))]
#[inline(always)]
pub unsafe fn store_word(target: *mut u64, word: u64) {
    // SAFETY: as the caller promises.
    unsafe { AtomicU64::from_ptr(target) }.store(word, Ordering::Release);
}

/// # Safety
/// Never called.
#[cfg(not(all(target_arch = "x86_64", not(miri))))]
pub unsafe fn copy_bytes(_: *mut u8, _: *const u8, _: u64) {}

/// # Safety
/// Never called.
#[cfg(not(all(target_arch = "x86_64", not(miri))))]
pub unsafe fn spread_words(_: *mut u64, _: &[u64; 8], _: u8) {}

/// Stores are made by these only where nobody records them, so no simulated crash sees them: this shows that they are
/// the ones that are recorded.
#[cfg(test)]
mod tests {
    use super::*;
    use crate::line;

    #[repr(C, align(64))]
    #[derive(Clone, Copy, PartialEq, Debug)]
    struct Line([u64; 8]);

    #[test]
    fn words_go_where_they_go_one_by_one() {
        let words: [u64; 8] = std::array::from_fn(|index| 100 + index as u64);
        for mask in 1..=255u8 {
            let [mut one, mut other] = [Line([7; 8]); 2];
            // SAFETY: lines of this test; `spread_words` only where it may be called.
            unsafe {
                line::store_words(one.0.as_mut_ptr(), mask, &words);
                match is_there() {
                    true => spread_words(other.0.as_mut_ptr(), &words, mask),
                    false => line::store_words(other.0.as_mut_ptr(), mask, &words),
                }
            }
            assert_eq!(one, other, "{mask:#x}");
        }
    }

    #[test]
    fn bytes_are_copied_and_no_others() {
        if !is_there() {
            return;
        }
        let source: [u8; 64] = std::array::from_fn(|index| index as u8 + 1);
        let masks = (0..64).flat_map(|bit| {
            [
                1 << bit,
                !0 << bit,
                !0 >> bit,
                0x8421_0f0f_00ff_0001u64.rotate_left(bit),
            ]
        });
        for mask in masks {
            let mut target = [200; 64];
            // SAFETY: 64 bytes of this test on both sides.
            unsafe { copy_bytes(target.as_mut_ptr(), source.as_ptr(), mask) };
            for (index, byte) in target.into_iter().enumerate() {
                let expected = if mask >> index & 1 == 1 {
                    source[index]
                } else {
                    200
                };
                assert_eq!(byte, expected, "{mask:#x}");
            }
        }
    }
}
