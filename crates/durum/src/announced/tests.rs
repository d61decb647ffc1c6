//! Sets of bytes, and words beside them, against models.

use super::*;

#[test]
fn behaves_like_a_set_of_bytes() {
    let base = 0x2000_0000_0000usize;
    let mut state = 3u64;
    let mut random = move |below: usize| {
        state = state
            .wrapping_mul(6364136223846793005)
            .wrapping_add(1442695040888963407);
        (state >> 33) as usize % below
    };
    let mut announced = Announced::default();
    for round in 0..400 {
        let has_objects = round % 2 == 1;
        announced.clear();
        assert!(announced.is_empty());
        let mut model = vec![false; 8192];
        for _ in 0..1 + random(60) {
            let len = if random(4) == 0 {
                1 + random(1500)
            } else {
                1 + random(100)
            };
            let start = random(model.len() - len);
            let wanted = &mut model[start..start + len];
            assert_eq!(
                announced.overlaps(base + start, len),
                wanted.iter().any(|byte| *byte)
            );
            let covered = wanted.iter().all(|byte| *byte);
            // `covers` may miss a range that only several intervals cover together; it never claims too much.
            assert!(!announced.covers(base + start, len) || covered);
            wanted.fill(true);
            match has_objects && random(4) == 0 {
                true if random(3) == 0 => announced.insert_neighbour(base + start, len),
                true => announced.insert_object(base + start, len, false),
                false => announced.insert(base + start, len),
            }
            assert!(
                announced.covers(base + start, len),
                "what was just added is covered"
            );
        }
        let mut bytes = vec![false; model.len()];
        for (address, mask) in announced.object_lines(SomeObjects::default()) {
            for (first, ones) in runs(mask) {
                bytes[address + first - base..][..ones].fill(true);
            }
        }
        for line in announced.lines() {
            for (first, ones) in runs(line.mask) {
                bytes[line.address + first - base..][..ones].fill(true);
            }
        }
        for range in announced.large().iter() {
            bytes[range.start - base..range.end - base].fill(true);
        }
        assert_eq!(bytes, model, "exactly the announced bytes");
        announced.for_each_gap(base, model.len(), |gap| {
            let gap = &mut bytes[gap.start - base..gap.end - base];
            assert!(
                !gap.contains(&true),
                "gaps hold nothing announced, and nothing twice"
            );
            gap.fill(true);
        });
        assert!(bytes.iter().all(|seen| *seen), "the others are gaps");
        if has_objects {
            continue;
        }
        let mut seen = vec![0u32; model.len() / LINE];
        announced.for_each(true, |start, len| {
            for number in lines_of(start - base, start - base + len) {
                seen[number] += 1;
            }
        });
        for (number, count) in seen.iter().enumerate() {
            let wanted = model[number * LINE..(number + 1) * LINE]
                .iter()
                .any(|byte| *byte);
            assert_eq!(*count > 0, wanted);
        }
        let mut bytes = vec![false; model.len()];
        announced.for_each(false, |start, len| {
            bytes[start - base..start - base + len].fill(true)
        });
        assert_eq!(bytes, model, "exactly the announced bytes");
    }
}

#[test]
fn words_alone_stay_in_their_order_and_go_to_lines_with_what_they_were_first() {
    let mut memory = [7u64; 1024];
    let start = memory.as_mut_ptr().expose_provenance();
    let mut announced = Announced::default();
    assert!(announced.insert_word(start, 7) && announced.words().is_empty());
    announced.want_words(true, &(0..0), true);
    announced.clear();
    for value in 8..1008 {
        for at in [0, 64, 1] {
            assert!(announced.insert_word(start + 8 * at, memory[at]));
            memory[at] = value;
        }
    }
    let words = announced.words();
    assert_eq!(words[..3].iter().map(|word| word.old()).sum::<u64>(), 21);
    assert!(words.len() <= 64, "they came again and again");
    assert!(!announced.is_empty());
    // SAFETY: bytes of `memory`.
    unsafe { announced.insert_saving(start + 8, 12) };
    assert!(announced.words().is_empty());
    let old = |announced: &Announced, at: usize| {
        let mut lines = announced.lines();
        let line = lines.find(|line| line.address == (start + 8 * at) & !63)?;
        let index = (start / 8 + at) % 8;
        // SAFETY: what was kept is initialized.
        (line.saved >> (8 * index) & 0xff == 0xff).then(|| unsafe { line.old[index].assume_init() })
    };
    assert_eq!([0, 1, 64].map(|at| old(&announced, at)), [Some(7); 3]);
    assert!(announced.covers(start, 16) && announced.covers(start + 16, 4));
    assert!(!announced.covers(start + 16, 5));
    assert!(announced.insert_word(start + 24, 9));
    assert!(announced.words().is_empty() && old(&announced, 3) == Some(9));
    announced.clear();
    for number in 0..5000 {
        announced.insert_word(start + 8 * (number % 1024), number as u64);
    }
    assert!(announced.words().len() == 4096, "no transaction keeps more");
    let nothing = |_, _, _| ();
    assert!(
        !announced.insert_few(start, 12, nothing),
        "in steps that call"
    );
    announced.clear();
    assert!(announced.insert_few(start, 12, nothing) && announced.insert_word(start + 64, 7));
    assert!(announced.words().is_empty() && announced.covers(start + 64, 8));
}

/// What the program's own code puts into the array is there for the engine, and nothing else gets in.
#[test]
fn the_window_takes_words_of_its_addresses() {
    let mut memory = [7u64; 1024];
    let start = memory.as_mut_ptr().expose_provenance();
    let mut announced = Announced::default();
    let window = announced.window().clone();
    // SAFETY: words of `memory`.
    let add = |at: usize| unsafe { window.add(at) };
    assert!(!add(start), "closed at first");
    announced.want_words(true, &(start..start + 4096), true);
    assert!(!add(start), "not in the middle of a transaction");
    announced.clear();
    assert!(add(start) && add(start) && add(start + 4088));
    for outside in [
        start - 8,
        start + 1,
        start + 4,
        start + 7,
        start + 4096,
        0,
        usize::MAX - 7,
    ] {
        assert!(!add(outside), "{:#x}", outside.wrapping_sub(start));
    }
    let words = |announced: &Announced| -> Vec<(usize, u64)> {
        let words = announced.words().iter();
        words
            .map(|word| ((word.address() - start) / 8, word.old()))
            .collect()
    };
    assert_eq!(words(&announced), [(0, 7), (511, 7)]);
    // Several words, if all of them are and there is room.
    // SAFETY: words of `memory`.
    let add_words = |at: usize, count| unsafe { window.add_words(at, count) };
    assert!(!add_words(start + 4072, 4) && !add_words(start + 4, 2) && !add_words(start - 8, 2));
    assert!(!add_words(usize::MAX - 7, 2) && !add_words(start - 1, 2));
    assert!(add_words(start + 4080, 2) && add_words(start + 80, 3));
    assert_eq!(
        words(&announced)[2..],
        [510, 511, 10, 11, 12].map(|at| (at, 7))
    );
    announced.clear();
    assert!(add(start) && add(start + 4088));
    // Where the array is full the long way makes it larger.
    let taken = (1..400).take_while(|at| add(start + 8 * at)).count();
    assert!(taken < 399);
    assert!(announced.insert_word(start + 8 * (taken + 1), 8) && add(start + 8 * (taken + 2)));
    assert_eq!(words(&announced).len(), 2 + taken + 2);
    assert_eq!(
        words(&announced)[2 + taken..],
        [(taken + 1, 8), (taken + 2, 7)]
    );
    announced.settle();
    assert!(!add(start + 8) && announced.covers(start + 8 * taken, 24));
    announced.clear();
    assert!(announced.is_empty() && window.is_empty() && add(start));
    announced.close_window();
    announced.clear();
    assert!(
        !add(start) && announced.insert_word(start, 7),
        "by the long way only"
    );
    // Again and again.
    announced.want_words(true, &(start..start + 4096), true);
    for number in 0..1000 {
        announced.clear();
        let at = number % 512;
        assert!(
            add(start + 8 * at) && words(&announced) == [(at, 7)],
            "{number}"
        );
    }
    announced.want_words(false, &(start..start + 4096), true);
    announced.clear();
    assert!(!add(start), "the engine cannot do with words");
}

#[test]
fn a_repeated_small_range_is_covered_exactly() {
    let mut announced = Announced::default();
    announced.insert(0x1003, 10);
    assert!(announced.covers(0x1003, 10));
    assert!(announced.covers(0x1005, 3));
    assert!(!announced.covers(0x1002, 3));
    assert!(!announced.covers(0x100c, 2));
    announced.insert(0x100d, 100);
    assert!(announced.covers(0x1003, 110));
}

#[test]
fn words_of_a_large_range_are_known_without_a_search_once_one_of_them_was_looked_for() {
    let memory = [7u64; 256];
    let start = memory.as_ptr().expose_provenance();
    let mut announced = Announced::default();
    announced.insert_beside(start, 1024);
    announced.insert_beside(start + 1040, 1000);
    assert!(!announced.insert_word(start + 16, 7), "nobody has looked");
    // SAFETY: words of `memory`.
    unsafe { announced.insert_saving(start + 8, 8) };
    assert!(announced.insert_word(start + 16, 7) && announced.insert_word(start + 1016, 7));
    assert!(!announced.insert_word(start + 1024, 7) && !announced.insert_word(start + 1040, 7));
    assert_eq!(
        announced.lines().len(),
        0,
        "nothing is kept of a large range"
    );
    // SAFETY: words of `memory`.
    unsafe { announced.insert_saving(start + 1020, 8) };
    assert!(
        !announced.insert_word(start + 16, 7),
        "that was another range"
    );
    announced.clear();
    assert!(announced.insert_word(start + 16, 7));
    assert_eq!(announced.lines().len(), 1, "another transaction's");
}

#[test]
fn two_large_ranges_that_share_a_line_write_it_back_twice_at_most_once_each() {
    let mut announced = Announced::default();
    announced.insert(0x1000, 600);
    announced.insert(0x1000 + 600, 600);
    let mut visits = 0;
    announced.for_each(true, |_, _| visits += 1);
    assert_eq!(visits, 1, "touching intervals merge");
}
