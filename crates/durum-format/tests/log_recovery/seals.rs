//! What a seal vouches for.

use std::convert::Infallible;

use durum_format::home::Answer;
use durum_format::log::{self, EntryFlags, PlanError};

use crate::common::LogWriter;
use crate::{FRESH, Home, REDO_A, append, no_chain, plan_of, put};

/// A seal is as good as the memory it vouches for: any byte of it changed, and the transaction has not committed.
#[test]
fn a_seal_over_memory_that_differs_in_any_byte_does_not_commit() {
    let mut writer = LogWriter::new(2048);
    writer.redo(REDO_A, b"deferred");
    let (first, second) = ([5u8; 24], [6u8; 9]);
    writer.seal(EntryFlags::NONE, &[(FRESH, &first), (FRESH + 512, &second)]);
    let mut home = Home::new();
    put(&mut home, FRESH, &first);
    put(&mut home, FRESH + 512, &second);
    assert_eq!(plan_of(&writer, &home).len(), 1);
    for address in home.keys().copied().collect::<Vec<_>>() {
        let mut changed = home.clone();
        *changed.get_mut(&address).unwrap() ^= 0x10;
        assert!(plan_of(&writer, &changed).is_empty(), "{address:#x}");
    }
}

/// The contents' checksum carries log id and generation: memory that still matches an older seal proves nothing.
#[test]
fn a_seal_vouches_in_its_own_generation_only() {
    let sealed = |generation| {
        let mut writer = LogWriter::at_generation(2048, generation);
        writer.seal(EntryFlags::NONE, &[(FRESH, &[5; 8])]);
        let log = log::parse(writer.area(), no_chain).unwrap();
        log.seal.unwrap().contents
    };
    assert_ne!(sealed(21), sealed(22));
}

#[test]
fn a_seal_over_memory_that_cannot_be_read_is_an_error_and_no_decision() {
    let mut writer = LogWriter::new(2048);
    writer.seal(EntryFlags::NONE, &[(FRESH, &[5; 8])]);
    let log = log::parse(writer.area(), no_chain).unwrap();
    let refused = log::sealed(&log, |_, _, _| Err("no such puddle"));
    assert_eq!(
        refused.unwrap_err(),
        PlanError::Contents {
            target: FRESH,
            len: 8,
            source: "no such puddle"
        }
    );
}

#[test]
fn a_seal_over_memory_that_comes_later_waits_and_one_over_what_was_given_up_does_not_hold() {
    let mut home = Home::new();
    put(&mut home, FRESH, &[5; 8]);
    put(&mut home, FRESH + 64, &[6; 8]);
    let mut writer = LogWriter::new(2048);
    writer.seal(EntryFlags::NONE, &[(FRESH, &[5; 8]), (FRESH + 64, &[6; 8])]);
    let log = log::parse(writer.area(), no_chain).unwrap();
    for at in [FRESH, FRESH + 64] {
        for (answer, expected) in [
            (Answer::Seen, Some(true)),
            (Answer::Waits, None),
            (Answer::GivenUp, Some(false)),
        ] {
            let found = log::sealed(&log, |target, len, crc| match target == at {
                true if answer != Answer::Seen => Ok(answer),
                _ => append(&home, target, len, crc),
            });
            assert_eq!(found.unwrap(), expected, "{answer:?} at {at:#x}");
        }
    }
    // Of two, what is given up decides: what waits would not change it.
    let mixed = log::sealed(&log, |target, _, _| -> Result<_, Infallible> {
        Ok(match target == FRESH {
            true => Answer::Waits,
            false => Answer::GivenUp,
        })
    });
    assert_eq!(mixed.unwrap(), Some(false));
}
