//! Write-backs and streamed copies at every alignment and length around a line.

mod common;

use std::collections::BTreeSet;

use common::*;
use durum_persist::line::{self, LINE};
use durum_persist::record::EventKind;
use durum_persist::simulate::Rules;
use durum_persist::{count, domain};

/// The lines of a range, counted the slow way.
fn lines_of(addr: usize, len: usize) -> Vec<usize> {
    let mut lines: Vec<_> = (addr..addr + len).map(|byte| byte / LINE).collect();
    lines.dedup();
    lines
}

#[repr(align(64))]
struct Buffer([u8; 512]);

#[repr(align(64))]
struct Words([u64; 264]);

#[test]
fn a_write_back_touches_exactly_the_lines_of_its_range() {
    let buffer = Buffer([0; 512]);
    let base = buffer.0.as_ptr();
    for start in 0..2 * LINE {
        for len in 0..=3 * LINE + 1 {
            let before = count::thread_counters();
            // SAFETY: inside the buffer.
            unsafe { line::write_back(base.add(start), len, DATA) };
            let cost = count::thread_counters() - before;
            let expected = lines_of(start, len).len() as u64;
            assert_eq!(
                (cost.write_backs, cost.bytes_written),
                (expected, len as u64),
                "{len} bytes at {start}"
            );
            assert_eq!(line::lines_touched(start, len) as u64, expected);
        }
    }
}

#[test]
fn the_lines_recorded_are_the_lines_of_the_range() {
    let trace = record_mapped(|map| {
        for start in 0..LINE {
            for len in 1..=2 * LINE + 1 {
                // SAFETY: inside the mapping.
                unsafe { line::write_back(map.byte(start), len, DATA) };
            }
        }
    });
    let mut events = trace.events().iter();
    for start in 0..LINE {
        for len in 1..=2 * LINE + 1 {
            let EventKind::WriteBack { offset, lines, .. } = events.next().unwrap().kind else {
                panic!()
            };
            let recorded: Vec<_> = (0..lines as usize)
                .map(|index| offset as usize / LINE + index)
                .collect();
            assert_eq!(recorded, lines_of(start, len), "{len} bytes at {start}");
        }
    }
}

#[test]
fn a_streamed_copy_equals_a_copy_and_counts_its_lines() {
    let source: Vec<u8> = (0..400).map(|index| (index * 7 + 1) as u8).collect();
    let mut target = Buffer([0; 512]);
    for start in 0..LINE {
        for source_start in [0, 1, 8, 13] {
            for len in (0..=2 * LINE + 2).chain([200, 320]) {
                target.0.fill(0);
                let bytes = &source[source_start..source_start + len];
                let before = count::thread_counters();
                // SAFETY: inside the buffers, which do not overlap.
                unsafe {
                    line::copy_streaming(
                        target.0.as_mut_ptr().add(start),
                        bytes.as_ptr(),
                        len,
                        DATA,
                    )
                };
                line::fence(DATA);
                let cost = count::thread_counters() - before;
                assert_eq!(&target.0[start..start + len], bytes);
                assert!(
                    target.0[..start]
                        .iter()
                        .chain(&target.0[start + len..])
                        .all(|byte| *byte == 0)
                );
                let lines = lines_of(start, len);
                let whole = lines
                    .iter()
                    .filter(|line| *line * LINE >= start && (*line + 1) * LINE <= start + len);
                let streamed = whole.count() as u64;
                assert_eq!(cost.streamed_lines, streamed, "{len} bytes at {start}");
                assert_eq!(
                    cost.write_backs,
                    lines.len() as u64 - streamed,
                    "{len} bytes at {start}"
                );
                assert_eq!((cost.bytes_written, cost.fences), (len as u64, 1));
            }
        }
    }
}

#[test]
fn streamed_words_begin_a_line_and_zeros_end_it() {
    let source: Vec<u64> = (1..=208).collect();
    let mut target = Words([7; 264]);
    for len in (0..=40).chain([127, 128, 129, 135, 136, 200]) {
        // The source may begin at any word, the target at a line.
        for (start, from) in [0, 8, 16, 56]
            .map(|start| (0..8).map(move |from| (start, from)))
            .into_iter()
            .flatten()
        {
            target.0.fill(7);
            let words = &source[from..from + len];
            let before = count::thread_counters();
            // SAFETY: whole lines inside the buffer; the two do not overlap.
            unsafe {
                let target = target.0.as_mut_ptr().add(start);
                line::stream_words(target, words.as_ptr(), len, DATA);
            }
            line::fence(DATA);
            let cost = count::thread_counters() - before;
            let end = start + len.next_multiple_of(LINE / 8);
            assert!(target.0[..start].iter().all(|word| *word == 7));
            assert_eq!(&target.0[start..start + len], words);
            assert!(target.0[start + len..end].iter().all(|word| *word == 0));
            assert!(target.0[end..].iter().all(|word| *word == 7));
            let lines = len.div_ceil(LINE / 8);
            assert_eq!((cost.streamed_lines, cost.write_backs), (lines as u64, 0));
            assert_eq!((cost.bytes_written, cost.fences), (8 * len as u64, 1));
        }
    }
    assert!(source.iter().copied().eq(1..=208));
}

#[test]
fn streamed_words_are_recorded_as_whole_lines() {
    let ones = [u64::MAX; 9];
    let trace = record_mapped(|map| {
        map.persist(15, 5, DATA);
        // SAFETY: whole lines of the mapping.
        unsafe { line::stream_words(map.word(0), ones.as_ptr(), ones.len(), DATA) };
        line::fence(DATA);
    });
    let states = states_at_end(&trace, Rules::Lines, words([0, 8, 9, 15, 16]));
    assert_eq!(states, BTreeSet::from([[u64::MAX, u64::MAX, 0, 0, 0]]));
}

#[test]
fn a_streamed_copy_is_recorded_like_a_copy_that_was_written_back() {
    let bytes: Vec<u8> = (1..=255).collect();
    for (start, len) in [
        (0, 64),
        (0, 63),
        (1, 63),
        (1, 64),
        (60, 8),
        (5, 130),
        (64, 128),
        (7, 255),
    ] {
        let trace = record_mapped(|map| {
            map.stream(start, &bytes[..len]);
            line::fence(DATA);
        });
        let states = states_at_end(&trace, durum_persist::simulate::Rules::Lines, |dir| {
            std::fs::read(dir.join("data")).unwrap()[start..start + len].to_vec()
        });
        assert_eq!(
            states,
            [bytes[..len].to_vec()].into(),
            "{len} bytes at {start}"
        );
    }
}

/// One test, since the instruction and the delays belong to the whole process; counts in other tests do not depend on
/// them.
#[test]
fn every_instruction_of_this_machine_works_and_delays_are_at_least_as_long_as_asked() {
    let best = line::instruction();
    let mut word = Buffer([0; 512]);
    let mut write_back_and_fence = |lines: usize| {
        // SAFETY: inside the buffer, at its start, which is aligned.
        unsafe { line::store_u64(word.0.as_mut_ptr().cast(), 1) };
        let start = std::time::Instant::now();
        // SAFETY: inside the buffer.
        unsafe { line::write_back(word.0.as_ptr(), lines * LINE, DATA) };
        line::fence(DATA);
        start.elapsed().as_nanos() as u64
    };
    let here: &[line::Instruction] = if cfg!(target_arch = "x86_64") {
        &[line::Instruction::Clflush, line::Instruction::None, best]
    } else {
        &[line::Instruction::DcCvac, line::Instruction::None, best]
    };
    for instruction in here {
        line::dangerous_set_instruction(*instruction);
        assert_eq!(line::instruction(), *instruction);
        write_back_and_fence(3);
    }
    let foreign = if cfg!(target_arch = "x86_64") {
        line::Instruction::DcCvap
    } else {
        line::Instruction::Clwb
    };
    std::panic::catch_unwind(|| line::dangerous_set_instruction(foreign))
        .expect_err("cannot be executed here");

    let delays = domain::Delays {
        write_back_ns: 20_000,
        fence_ns: 50_000,
        sync_ns: 300_000,
    };
    domain::emulate(Some(delays));
    let before = count::thread_counters();
    assert!((0..10).all(|_| write_back_and_fence(3) >= 3 * 20_000 + 50_000));
    let cost = count::thread_counters() - before;
    assert_eq!(
        (cost.write_backs, cost.fences),
        (30, 10),
        "delays change no count"
    );
    let dir = fresh_dir();
    let start = std::time::Instant::now();
    durum_persist::file::sync_dir(dir.path(), DATA).unwrap();
    assert!(start.elapsed().as_nanos() >= 300_000);
    domain::emulate(None);
    let undelayed = (0..100).map(|_| write_back_and_fence(3)).min().unwrap();
    assert!(
        undelayed < 100_000,
        "{undelayed} ns although the delays were ended"
    );
}
