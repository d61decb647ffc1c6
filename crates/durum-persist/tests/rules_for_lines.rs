//! The fault model of mapped memory, rule by rule: each test lists exactly the states that a crash may leave.
//! Dropping a rule from the simulator makes its test fail, in one direction or the other.

mod common;

use std::collections::BTreeSet;

use common::*;
use durum_persist::line;
use durum_persist::simulate::Rules;

#[test]
fn a_store_may_or_may_not_survive() {
    assert_eq!(values(|map| map.store(0, 1)), [0, 1]);
}

#[test]
fn a_write_back_without_a_fence_promises_nothing() {
    let protocol = |map: &Mapped| {
        map.store(0, 1);
        map.write_back(0, DATA);
    };
    assert_eq!(values(protocol), [0, 1]);
}

#[test]
fn a_fence_without_a_write_back_promises_nothing() {
    let protocol = |map: &Mapped| {
        map.store(0, 1);
        line::fence(DATA);
    };
    assert_eq!(values(protocol), [0, 1]);
}

#[test]
fn after_write_back_and_fence_only_the_new_value_is_left() {
    assert_eq!(values(|map| map.persist(0, 1, DATA)), [1]);
}

#[test]
fn a_fence_of_another_thread_completes_nothing() {
    let protocol = |map: &Mapped| {
        map.store(0, 1);
        map.write_back(0, DATA);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                durum_persist::record::join_thread();
                line::fence(DATA);
            });
        });
    };
    assert_eq!(values(protocol), [0, 1]);
}

#[test]
fn a_thread_may_make_another_threads_store_durable() {
    let protocol = |map: &Mapped| {
        map.store(0, 1);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                map.write_back(0, DATA);
                line::fence(DATA);
            });
        });
    };
    assert_eq!(values(protocol), [1]);
}

#[test]
fn a_fence_completes_the_version_that_was_written_back_and_not_a_later_one() {
    let protocol = |map: &Mapped| {
        map.store(0, 1);
        map.write_back(0, DATA);
        map.store(0, 2);
        line::fence(DATA);
    };
    assert_eq!(values(protocol), [1, 2]);
}

#[test]
fn any_version_since_the_durable_one_may_be_left() {
    let protocol = |map: &Mapped| {
        map.persist(0, 1, DATA);
        map.store(0, 2);
        map.store(0, 3);
    };
    assert_eq!(values(protocol), [1, 2, 3]);
}

#[test]
fn a_write_back_is_of_the_whole_line() {
    let trace = record_mapped(|map| {
        map.store(0, 1);
        map.store(7, 2);
        map.store(8, 3); // on the next line
        map.write_back(0, DATA);
        line::fence(DATA);
    });
    let states = states_at_end(&trace, Rules::Lines, words([0, 7, 8]));
    assert_eq!(states, BTreeSet::from([[1, 2, 0], [1, 2, 3]]));
}

#[test]
fn words_of_a_line_tear_apart() {
    let trace = record_mapped(|map| {
        map.store(0, 1);
        map.store(1, 2);
    });
    let states = states_at_end(&trace, Rules::Lines, words([0, 1]));
    assert_eq!(states, BTreeSet::from([[0, 0], [0, 2], [1, 0], [1, 2]]));
}

#[test]
fn a_word_does_not_tear_and_an_unaligned_one_does() {
    let trace = record_mapped(|map| map.copy(4, &[0xff; 8]));
    let states = states_at_end(&trace, Rules::Lines, words([0, 1]));
    let (high, low) = (0xffff_ffff_0000_0000, 0xffff_ffff);
    assert_eq!(
        states,
        BTreeSet::from([[0, 0], [0, low], [high, 0], [high, low]])
    );
}

#[test]
fn zeroing_is_a_store() {
    let protocol = |map: &Mapped| {
        map.persist(0, 1, DATA);
        // SAFETY: inside the mapping.
        unsafe { line::zero(map.byte(0), 64) };
    };
    assert_eq!(values(protocol), [0, 1]);
}

#[test]
fn setting_and_clearing_bits_are_stores() {
    let protocol = |map: &Mapped| {
        map.persist(0, 0b0110, DATA);
        // SAFETY: a word of the mapping.
        assert_eq!(unsafe { line::fetch_or_u64(map.word(0), 0b1000) }, 0b0110);
        // SAFETY: a word of the mapping.
        assert_eq!(unsafe { line::fetch_and_u64(map.word(0), !0b0010) }, 0b1110);
        assert_eq!(map.load(0), 0b1100);
    };
    assert_eq!(values(protocol), [0b0110, 0b1100, 0b1110]);
}

#[test]
fn a_streamed_range_needs_this_threads_fence() {
    let bytes = [1; 64];
    let one = u64::from_ne_bytes([1; 8]);
    assert_eq!(values(|map| map.stream(0, &bytes)), [0, one]);
    let other_thread = |map: &Mapped| {
        map.stream(0, &bytes);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                durum_persist::record::join_thread();
                line::fence(DATA);
            });
        });
    };
    assert_eq!(values(other_thread), [0, one]);
    // Nor does it help that the other thread writes the line back.
    let written_back = |map: &Mapped| {
        map.stream(0, &bytes);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                durum_persist::record::join_thread();
                map.write_back(0, DATA);
                line::fence(DATA);
            });
        });
    };
    assert_eq!(values(written_back), [0, one]);
    let fenced = |map: &Mapped| {
        map.stream(0, &bytes);
        line::fence(DATA);
    };
    assert_eq!(values(fenced), [one]);
}

#[test]
fn the_ragged_ends_of_a_streamed_range_are_durable_with_it() {
    let trace = record_mapped(|map| {
        map.stream(56, &[1; 8 + 64 + 8]);
        line::fence(DATA);
    });
    let one = u64::from_ne_bytes([1; 8]);
    let states = states_at_end(&trace, Rules::Lines, words([6, 7, 8, 15, 16, 17]));
    assert_eq!(states, BTreeSet::from([[0, one, one, one, one, 0]]));
}

#[test]
fn a_sync_covers_file_writes_and_not_stores() {
    let trace = record_mapped(|map| {
        map.store(0, 1);
        map.file.write_all_at(&2u64.to_ne_bytes(), 8).unwrap();
        map.file.sync(DATA).unwrap();
    });
    let states = states_at_end(&trace, Rules::Lines, words([0, 1]));
    assert_eq!(states, BTreeSet::from([[0, 2], [1, 2]]));
}

#[test]
fn a_file_write_tears_at_words_until_it_is_synced() {
    let trace = record_mapped(|map| map.file.write_all_at(&[1; 16], 0).unwrap());
    let one = u64::from_ne_bytes([1; 8]);
    let states = states_at_end(&trace, Rules::Lines, words([0, 1]));
    assert_eq!(
        states,
        BTreeSet::from([[0, 0], [0, one], [one, 0], [one, one]])
    );
}

#[test]
fn a_fence_of_a_write_back_covers_a_file_write_to_the_line() {
    let trace = record_mapped(|map| {
        map.file.write_all_at(&1u64.to_ne_bytes(), 0).unwrap();
        map.write_back(0, DATA);
        line::fence(DATA);
    });
    assert_eq!(
        states_at_end(&trace, Rules::Lines, words([0])),
        BTreeSet::from([[1]])
    );
}

#[test]
fn a_store_after_the_file_write_stays_uncertain_after_the_sync() {
    let trace = record_mapped(|map| {
        map.store(0, 1);
        map.file.write_all_at(&2u64.to_ne_bytes(), 0).unwrap();
        map.store(0, 3);
        map.file.sync(DATA).unwrap();
    });
    assert_eq!(
        states_at_end(&trace, Rules::Lines, words([0])),
        BTreeSet::from([[2], [3]])
    );
}
