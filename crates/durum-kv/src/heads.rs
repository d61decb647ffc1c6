//! Comparing a head with those of a row: how many are smaller, and how many equal. Several at once, where the processor
//! can.

/// Rows up to this length are gone through from end to end. A row of a leaf is not in the cache, mostly: its lines come
/// at the same time then, and not one after the other, as when each comparison says where to look next.
const SHORT: usize = 64;

/// How many heads are smaller, and how many equal.
#[inline]
pub(crate) fn count(heads: &[u64], head: u64) -> (usize, usize) {
    if heads.len() > SHORT {
        let below = heads.partition_point(|&other| other < head);
        let behind = heads[below..].iter();
        // Mostly none or one is equal.
        return (below, behind.take_while(|&&other| other == head).count());
    }
    #[cfg(all(target_arch = "x86_64", not(miri)))]
    if durum_persist::wide::is_there() {
        // SAFETY: the processor has what the function needs.
        return unsafe { count_wide(heads, head) };
    }
    let count = |is: fn(&u64, &u64) -> bool| {
        let found = heads.iter().map(|other| usize::from(is(other, &head)));
        found.sum()
    };
    (count(u64::lt), count(u64::eq))
}

/// The same, eight at once.
#[cfg(all(target_arch = "x86_64", not(miri)))]
#[target_feature(enable = "avx512f,avx512bw,popcnt")]
fn count_wide(heads: &[u64], head: u64) -> (usize, usize) {
    use std::arch::x86_64::{
        _mm512_mask_cmpeq_epu64_mask, _mm512_mask_cmplt_epu64_mask, _mm512_maskz_loadu_epi64,
        _mm512_set1_epi64,
    };
    let wanted = _mm512_set1_epi64(head as i64);
    let (mut below, mut equal) = (0, 0);
    for eight in heads.chunks(8) {
        let mask = 0xff >> (8 - eight.len());
        // SAFETY: what the mask leaves out is not read.
        let found = unsafe { _mm512_maskz_loadu_epi64(mask, eight.as_ptr().cast()) };
        below += _mm512_mask_cmplt_epu64_mask(mask, found, wanted).count_ones();
        equal += _mm512_mask_cmpeq_epu64_mask(mask, found, wanted).count_ones();
    }
    (below as usize, equal as usize)
}
