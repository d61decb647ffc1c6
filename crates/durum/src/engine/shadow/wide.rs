//! What is for some processors only: lines handled as a whole, by AVX-512. On others nobody gets a [`Wide`].

pub(super) use imp::Wide;

/// What [`Wide::run`] does. A closure would not do: it is a function of its own, which nothing has inlined, and then it
/// is compiled for any processor.
pub(super) trait Work {
    type Result;

    /// To be inlined always, and with it what it calls.
    fn work(self, wide: Wide) -> Self::Result;
}

#[cfg(not(all(target_arch = "x86_64", not(miri))))]
mod imp {
    use super::Work;
    use crate::announced::{Announced, SomeObjects};

    /// Nobody has it.
    #[derive(Clone, Copy, Debug)]
    pub(in super::super) enum Wide {}

    impl Wide {
        pub(in super::super) fn find() -> Option<Self> {
            None
        }

        pub(in super::super) fn run<W: Work>(self, _work: W) -> W::Result {
            match self {}
        }

        pub(in super::super) fn push_lines(
            self,
            _record: &mut Vec<u64>,
            _announced: &Announced,
            _home: SomeObjects,
        ) {
            match self {}
        }

        pub(in super::super) unsafe fn store_words(
            self,
            _home: *mut u64,
            _mask: u8,
            _words: &[u64],
        ) {
            match self {}
        }

        pub(in super::super) unsafe fn store_word(self, _home: *mut u64, _word: u64) {
            match self {}
        }

        pub(in super::super) unsafe fn store_part(self, _home: *mut u8, _bytes: &[u8]) {
            match self {}
        }
    }
}

#[cfg(all(target_arch = "x86_64", not(miri)))]
mod imp {
    use std::arch::x86_64::{
        __m512i, _mm_cvtsi128_si64, _mm512_castsi512_si128, _mm512_cmpeq_epi64_mask,
        _mm512_mask_cmpeq_epi64_mask, _mm512_maskz_compress_epi64, _mm512_maskz_loadu_epi8,
        _mm512_maskz_loadu_epi64, _mm512_maskz_mov_epi64, _mm512_movepi8_mask, _mm512_movm_epi8,
        _mm512_set1_epi64, _mm512_storeu_si512,
    };

    use std::ops::Range;

    use durum_format::record::{Operation, PART_WORDS, part_head, words_head};
    use durum_persist::line::LINE;
    use durum_persist::{line, wide};

    use super::super::compare;
    use super::Work;
    use crate::announced::{Announced, AnnouncedLine, SomeObjects, lines_of_object};

    /// Evidence that the processor has what the functions here need.
    #[derive(Clone, Copy, Debug)]
    pub(in super::super) struct Wide(());

    impl Wide {
        #[inline(always)]
        pub(in super::super) fn find() -> Option<Self> {
            wide::is_there().then_some(Self(()))
        }

        /// Does `work`, compiled for such a processor as far as it is inlined: one function, because what a call puts
        /// aside are stores, and of these only some hundred fit behind the last commit's fence.
        #[inline(always)]
        pub(in super::super) fn run<W: Work>(self, work: W) -> W::Result {
            // SAFETY: the processor has it, as `self` shows.
            unsafe { run(self, work) }
        }

        /// As [`compare::push_lines`].
        #[inline(always)]
        pub(in super::super) fn push_lines(
            self,
            record: &mut Vec<u64>,
            announced: &Announced,
            home: SomeObjects,
        ) {
            // SAFETY: the processor has it, as `self` shows.
            unsafe { push_lines(record, announced, home) }
        }

        /// As [`line::store_words`], by a line. Not where somebody records stores.
        ///
        /// # Safety
        /// As there.
        #[inline(always)]
        pub(in super::super) unsafe fn store_words(self, home: *mut u64, mask: u8, words: &[u64]) {
            // SAFETY: the processor has it; the rest as the caller promises.
            unsafe {
                match words.first_chunk() {
                    Some(words) => wide::spread_words(home, words, mask),
                    // Behind the record lies the next one, which was stored and written back just now: a load that
                    // reaches there would wait until the media have it.
                    None => line::store_words(home, mask, words),
                }
            }
        }

        /// As [`line::store_u64`]. Not where somebody records stores.
        ///
        /// # Safety
        /// As there.
        #[inline(always)]
        pub(in super::super) unsafe fn store_word(self, home: *mut u64, word: u64) {
            // SAFETY: as the caller promises.
            unsafe { wide::store_word(home, word) };
        }

        /// Stores fewer than 64 bytes, at once where they are an aligned word. Not where somebody records stores.
        ///
        /// # Safety
        /// As for [`line::copy`].
        #[inline(always)]
        pub(in super::super) unsafe fn store_part(self, home: *mut u8, bytes: &[u8]) {
            // SAFETY: the processor has it; the rest as the caller promises.
            unsafe { wide::copy_bytes(home, bytes.as_ptr(), (1 << bytes.len()) - 1) };
        }
    }

    #[target_feature(enable = "avx512f,avx512bw,bmi1,bmi2,popcnt")]
    #[inline]
    fn run<W: Work>(wide: Wide, work: W) -> W::Result {
        work.work(wide)
    }

    /// The most words that the entries of one line take: of each of its words every other byte is announced, which
    /// makes four entries.
    const LINE_WORDS_MAX: usize = 8 * 4 * PART_WORDS;

    #[target_feature(enable = "avx512f,avx512bw,bmi1,bmi2,popcnt")]
    // Not in line: what it has in wide registers would take others from those who have words only.
    #[inline(never)]
    fn push_lines(record: &mut Vec<u64>, announced: &Announced, home: SomeObjects) {
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
        for object in announced.objects(home) {
            match (object.start | object.end).is_multiple_of(8) {
                true => push_words_of(record, object),
                false => {
                    for (address, mask) in lines_of_object(object) {
                        push_object_line(record, &compare::fresh_line(address, mask));
                    }
                }
            }
        }
    }

    /// A fresh object that consists of whole words.
    #[target_feature(enable = "avx512f,avx512bw,bmi1,bmi2,popcnt")]
    #[inline]
    fn push_words_of(record: &mut Vec<u64>, object: &Range<usize>) {
        let mut start = object.start;
        while start < object.end {
            if record.capacity() - record.len() < LINE_WORDS_MAX {
                grow(record);
            }
            let end = object.end.min((start | (LINE - 1)) + 1);
            let (first, count) = (start % LINE / 8, (end - start) / 8);
            let ones = 0xff_u8 >> (8 - count);
            let head = words_head(
                Operation::Store,
                (start & !(LINE - 1)) as u64,
                ones << first,
            );
            // SAFETY: words of an object in a mapped puddle, which only this thread knows; the others are not read.
            // There is room as above.
            unsafe {
                let words = _mm512_maskz_loadu_epi64(ones, start as *const i64);
                push(record, head, count, |place| {
                    _mm512_storeu_si512(place.cast(), words);
                });
            }
            start = end;
        }
    }

    /// A line of a fresh object.
    #[target_feature(enable = "avx512f,avx512bw,bmi1,bmi2,popcnt")]
    #[inline]
    fn push_object_line(record: &mut Vec<u64>, line: &AnnouncedLine<'_>) {
        if record.capacity() - record.len() < LINE_WORDS_MAX {
            grow(record);
        }
        let whole = compare::whole_words(line.mask);
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
            compare::push_parts(record, line, line.mask & !compare::spread(whole));
        }
    }

    #[cold]
    fn grow(record: &mut Vec<u64>) {
        record.reserve(LINE_WORDS_MAX.max(record.len()));
    }

    /// Words of which only the bytes in `parts` are announced. There is room for the line.
    #[target_feature(enable = "avx512f,avx512bw,bmi1,bmi2,popcnt")]
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
                compare::push_parts(record, line, part);
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
    use super::super::compare;
    use super::*;
    use crate::announced::{Announced, SomeObjects};

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
            // Now and then an object of whole words, which has whole lines.
            let mut object = None;
            if random(4) == 0 {
                let at = from + 8 * random(8);
                let len = 8 * (1 + random((from + 192 - at) / 8));
                announced.insert_object(start + at, len, false);
                object = Some((at, len));
            }
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
                    announced.insert_object(start + *at, *len, false);
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
            for (at, len) in bytes.iter().chain(&object) {
                if random(3) > 0 {
                    // SAFETY: inside the array.
                    unsafe { base.add(at + random(*len)).write(random(256) as u8) };
                }
            }
            let mut narrow = Vec::new();
            compare::push_lines(&mut narrow, &announced, SomeObjects::default());
            if let Some(wide) = Wide::find() {
                // Room that ends anywhere.
                let mut found = Vec::with_capacity(random(200));
                wide.push_lines(&mut found, &announced, SomeObjects::default());
                assert_eq!(narrow, found);
            }
        }
    }
}
