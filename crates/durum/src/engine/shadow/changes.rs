//! What a transaction has changed of the lines that it announced, as entries of a record.
//!
//! Words that are as they were are left out, so announcing a whole structure costs no more log than announcing its
//! fields that change. Of words that are announced in part only the announced bytes are taken: the others may be
//! another thread's.

use std::mem::MaybeUninit;

use durum_format::record::{Operation, push_part, push_words};

use crate::announced::{Announced, AnnouncedLine, runs};

/// Appends what differs from what it was. What has no old contents counts as changed.
///
/// The caller announced these lines, so nobody else changes these bytes.
pub(super) fn push_lines(record: &mut Vec<u64>, announced: &Announced) {
    for line in announced.lines() {
        push_line(record, &line);
    }
    for (address, mask) in announced.object_lines() {
        push_line(record, &fresh_line(address, mask));
    }
}

/// What a line of a fresh object is: nothing of it was kept.
#[inline(always)]
fn fresh_line(address: usize, mask: u64) -> AnnouncedLine<'static> {
    static NOTHING: [MaybeUninit<u64>; 8] = [MaybeUninit::uninit(); 8];
    AnnouncedLine {
        address,
        mask,
        saved: 0,
        old: &NOTHING,
    }
}

#[inline]
fn push_line(record: &mut Vec<u64>, line: &AnnouncedLine<'_>) {
    let whole = whole_words(line.mask);
    let known = whole & whole_words(line.saved);
    let mut selected = whole;
    let mut now = [0; 8];
    let mut rest = whole;
    while rest != 0 {
        let index = rest.trailing_zeros() as usize;
        let bit = rest & rest.wrapping_neg();
        rest ^= bit;
        // SAFETY: a word of a line in a mapped puddle, announced by this thread. What is known was saved.
        unsafe {
            now[index] = ((line.address + 8 * index) as *const u64).read();
            if known & bit != 0 && now[index] == line.old[index].assume_init() {
                selected ^= bit;
            }
        }
    }
    if selected != 0 {
        let address = line.address as u64;
        push_words(record, Operation::Store, address, selected, &now);
    }
    push_parts(record, line, line.mask & !spread(whole));
}

/// Appends the bytes that `mask` selects, of words that are announced in part.
#[inline]
fn push_parts(record: &mut Vec<u64>, line: &AnnouncedLine<'_>, mask: u64) {
    for (from, len) in runs(mask) {
        let mut first = from;
        // No entry of more than one word, so that its bytes fit a register.
        while first < from + len {
            let ones = (8 - first % 8).min(from + len - first);
            let of_part = (!0 >> (64 - ones)) << first;
            // SAFETY: announced bytes of one word, fewer than eight; those of `old` were saved where it is read.
            unsafe {
                let now = bytes_of_word((line.address as *const u8).add(first), ones);
                let is_known = line.saved & of_part == of_part;
                if !is_known
                    || now != bytes_of_word(line.old.as_ptr().cast::<u8>().add(first), ones)
                {
                    push_part(record, (line.address + first) as u64, ones, now);
                }
            }
            first += ones;
        }
    }
}

/// The `len` bytes at `source`, at least 1 and at most 7, the lowest first. Two loads that overlap, instead of a call.
///
/// # Safety
/// They are readable.
#[inline(always)]
unsafe fn bytes_of_word(source: *const u8, len: usize) -> u64 {
    // SAFETY: as the caller promises.
    unsafe {
        let four =
            |at: usize| u64::from(u32::from_le(source.add(at).cast::<u32>().read_unaligned()));
        let two =
            |at: usize| u64::from(u16::from_le(source.add(at).cast::<u16>().read_unaligned()));
        match len {
            4.. => four(0) | four(len - 4) << (8 * (len - 4)),
            2.. => two(0) | two(len - 2) << (8 * (len - 2)),
            _ => u64::from(source.read()),
        }
    }
}

/// Bit n: all eight bytes of word n are in the mask.
#[inline]
pub(super) fn whole_words(mask: u64) -> u8 {
    let mut all = mask & mask >> 4 & 0x0f0f_0f0f_0f0f_0f0f;
    all &= all >> 2;
    all &= all >> 1;
    // Bit 0 of each byte is left; the product gathers them in the upper byte.
    ((all & 0x0101_0101_0101_0101).wrapping_mul(0x0102_0408_1020_4080) >> 56) as u8
}

/// The bytes of the words that `words` selects.
#[inline]
fn spread(words: u8) -> u64 {
    // Bit n goes to bit 8n: copies of all bits seven apart, of which each byte keeps one; then each of these bits fills
    // its byte.
    let apart = u64::from(words & 0x7f).wrapping_mul(0x0002_0408_1020_4081) & 0x0101_0101_0101_0101;
    (apart | u64::from(words >> 7) << 56).wrapping_mul(0xff)
}

/// The same by whole lines, where the processor can.
#[cfg(all(target_arch = "x86_64", not(miri)))]
pub(super) mod wide {
    use std::arch::x86_64::{
        __m512i, _mm_cvtsi128_si64, _mm512_castsi512_si128, _mm512_cmpeq_epi64_mask,
        _mm512_mask_cmpeq_epi64_mask, _mm512_maskz_compress_epi64, _mm512_maskz_loadu_epi8,
        _mm512_maskz_loadu_epi64, _mm512_maskz_mov_epi64, _mm512_movepi8_mask, _mm512_movm_epi8,
        _mm512_set1_epi64, _mm512_storeu_si512,
    };

    use durum_format::record::{PART_WORDS, part_head, words_head};

    use super::*;

    /// The most words that the entries of one line take: of each of its words every other byte is announced, which
    /// makes four entries.
    const LINE_WORDS_MAX: usize = 8 * 4 * PART_WORDS;

    #[target_feature(enable = "avx512f,avx512bw,popcnt")]
    #[inline]
    pub(in super::super) fn push_lines(record: &mut Vec<u64>, announced: &Announced) {
        let all = _mm512_set1_epi64(-1);
        for line in announced.lines() {
            if record.capacity() - record.len() < LINE_WORDS_MAX {
                grow(record);
            }
            let first = line.mask.trailing_zeros() & 56;
            if line.mask == 0xff << first {
                push_one(record, &line, first as usize / 8);
                continue;
            }
            // Bit n of these: all bytes of word n.
            let whole = _mm512_cmpeq_epi64_mask(_mm512_movm_epi8(line.mask), all);
            let known = whole & _mm512_cmpeq_epi64_mask(_mm512_movm_epi8(line.saved), all);
            // SAFETY: announced bytes of a line in a mapped puddle, and of what was kept of it; the others are not
            // read.
            let (now, old) = unsafe {
                (
                    _mm512_maskz_loadu_epi8(line.mask, line.address as *const i8),
                    _mm512_maskz_loadu_epi8(line.saved, line.old.as_ptr().cast()),
                )
            };
            let selected = whole & !_mm512_mask_cmpeq_epi64_mask(known, now, old);
            if selected != 0 {
                let head = words_head(Operation::Store, line.address as u64, selected);
                let words = _mm512_maskz_compress_epi64(selected, now);
                // SAFETY: there is room for the entries of a line, and for eight words more than are counted here.
                unsafe {
                    push(record, head, selected.count_ones() as usize, |place| {
                        _mm512_storeu_si512(place.cast(), words);
                    });
                }
            }
            let parts = line.mask & !_mm512_movepi8_mask(_mm512_maskz_mov_epi64(whole, all));
            if parts != 0 {
                push_parts_of(record, &line, parts, now, old);
            }
        }
        for (address, mask) in announced.object_lines() {
            push_object_line(record, &fresh_line(address, mask));
        }
    }

    /// A line of a fresh object.
    #[target_feature(enable = "avx512f,avx512bw,popcnt")]
    #[inline]
    fn push_object_line(record: &mut Vec<u64>, line: &AnnouncedLine<'_>) {
        if record.capacity() - record.len() < LINE_WORDS_MAX {
            grow(record);
        }
        let whole = whole_words(line.mask);
        if whole != 0 {
            let head = words_head(Operation::Store, line.address as u64, whole);
            // SAFETY: bytes of an object in a mapped puddle, which only this thread knows; the others are not read.
            // There is room as above.
            unsafe {
                let now = _mm512_maskz_loadu_epi64(whole, line.address as *const i64);
                let words = _mm512_maskz_compress_epi64(whole, now);
                push(record, head, whole.count_ones() as usize, |place| {
                    _mm512_storeu_si512(place.cast(), words);
                });
            }
        }
        if line.mask.count_ones() != 8 * whole.count_ones() {
            super::push_parts(record, line, line.mask & !spread(whole));
        }
    }

    #[cold]
    fn grow(record: &mut Vec<u64>) {
        record.reserve(LINE_WORDS_MAX.max(record.len()));
    }

    /// Words of which only the bytes in `parts` are announced. There is room for the line.
    #[target_feature(enable = "avx512f,avx512bw,popcnt")]
    #[inline]
    fn push_parts_of(
        record: &mut Vec<u64>,
        line: &AnnouncedLine<'_>,
        mut parts: u64,
        now: __m512i,
        old: __m512i,
    ) {
        while parts != 0 {
            let first = parts.trailing_zeros();
            let part = parts & 0xff << (first & 56);
            parts ^= part;
            let ones = part >> first;
            if ones & (ones + 1) != 0 {
                // Bytes with others between them.
                super::push_parts(record, line, part);
                continue;
            }
            // What is not announced is zero in both.
            let bytes_in = |words| {
                let word = _mm512_maskz_compress_epi64(1 << (first / 8), words);
                _mm_cvtsi128_si64(_mm512_castsi512_si128(word)) as u64 >> (first % 8 * 8)
            };
            let bytes = bytes_in(now);
            if line.saved & part != part || bytes != bytes_in(old) {
                let target = line.address as u64 + u64::from(first);
                let [head, second] = part_head(target, part.count_ones() as usize);
                // SAFETY: there is room, as the caller says.
                unsafe {
                    push(record, head, 2, |place| {
                        place.write(second);
                        place.add(1).write(bytes.to_le());
                    });
                }
            }
        }
    }

    /// A line of which one word was announced. Words are mostly stored one by one, and one by one they are at hand
    /// before they have left for the cache, which may be only after the last commit's fence.
    #[inline(always)]
    fn push_one(record: &mut Vec<u64>, line: &AnnouncedLine<'_>, index: usize) {
        // SAFETY: a word of a line in a mapped puddle, announced by this thread. It was saved as a whole, if at all.
        // There is room as above.
        unsafe {
            let now = ((line.address + 8 * index) as *const u64).read();
            if line.saved != line.mask || now != line.old[index].assume_init() {
                let head = words_head(Operation::Store, line.address as u64, 1 << index);
                push(record, head, 1, |place| place.write(now.to_le()));
            }
        }
    }

    /// Appends an entry of `count` words, which `write` writes.
    ///
    /// # Safety
    /// There is room for it, and for what `write` writes.
    #[inline(always)]
    unsafe fn push(record: &mut Vec<u64>, head: u64, count: usize, write: impl FnOnce(*mut u64)) {
        let len = record.len();
        debug_assert!(record.capacity() - len > count);
        // SAFETY: as the caller promises.
        unsafe {
            let place = record.as_mut_ptr().add(len);
            place.write(head);
            write(place.add(1));
            record.set_len(len + 1 + count);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_and_their_bytes() {
        for words in 0..=255 {
            let expected = (0..8)
                .filter(|bit| words >> bit & 1 == 1)
                .fold(0, |mask, bit| mask | 0xff << (8 * bit));
            assert_eq!(spread(words), expected);
            assert_eq!(whole_words(expected), words);
            for bit in 0..64 {
                assert_eq!(
                    whole_words(expected & !(1 << bit)),
                    words & !(1 << (bit / 8))
                );
            }
        }
    }

    #[test]
    fn both_ways_find_the_same() {
        let mut state = 5u64;
        let mut random = move |below: usize| {
            state = state
                .wrapping_mul(6364136223846793005)
                .wrapping_add(1442695040888963407);
            (state >> 33) as usize % below
        };
        for _ in 0..2000 {
            let mut memory = [[0u64; 8]; 4];
            let start = memory.as_ptr().addr();
            // Lines begin where memory is aligned to them; the first and the last one may be cut off.
            let from = start.next_multiple_of(64) - start;
            let mut announced = Announced::default();
            let mut bytes: Vec<(usize, usize)> = Vec::new();
            for _ in 0..1 + random(6) {
                let at = from + random(128);
                bytes.push((at, 1 + random(start + 256 - (start + at)).min(60)));
            }
            let base = memory.as_mut_ptr().cast::<u8>();
            for (at, len) in &mut bytes {
                let address = (start + *at).next_multiple_of(8);
                if random(3) == 0 && address + 8 <= start + 256 {
                    (*at, *len) = (address - start, 8);
                    // SAFETY: inside the array.
                    let old = unsafe { base.add(*at).cast::<u64>().read() };
                    if announced.insert_word(address, old) {
                        continue;
                    }
                }
                if random(8) == 0 && !announced.overlaps(start + *at, *len) {
                    announced.insert_object(start + *at, *len);
                    continue;
                }
                // SAFETY: inside the array.
                unsafe { announced.insert_saving(base.add(*at).expose_provenance(), *len) };
            }
            // Bytes with others between them: many entries for a word.
            if random(2) == 0 {
                for at in (0..192).filter(|_| random(2) == 0).collect::<Vec<_>>() {
                    bytes.push((at, 1));
                    // SAFETY: inside the array.
                    unsafe { announced.insert_saving(base.add(at).expose_provenance(), 1) };
                }
            }
            for (at, len) in &bytes {
                if random(3) > 0 {
                    // SAFETY: inside the array.
                    unsafe { base.add(at + random(*len)).write(random(256) as u8) };
                }
            }
            let mut narrow = Vec::new();
            push_lines(&mut narrow, &announced);
            #[cfg(all(target_arch = "x86_64", not(miri)))]
            if durum_persist::wide::is_there() {
                // Room that ends anywhere.
                let mut wide = Vec::with_capacity(random(200));
                // SAFETY: the processor has what the function needs.
                unsafe { wide::push_lines(&mut wide, &announced) };
                assert_eq!(narrow, wide);
            }
        }
    }
}
