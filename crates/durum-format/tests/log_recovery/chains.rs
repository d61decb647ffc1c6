//! Logs that go on in other puddles.

use std::cell::RefCell;
use std::convert::Infallible;

use durum_format::log::{self, Damage, EntryFlags, LogArea, ParseError, Plan, Write};

use crate::common::{LogWriter, uuid};
use crate::{Home, REDO_A, UNDO_A, UNDO_B, no_chain, plan};

/// A log over three puddles is one log: order, count and seal go across.
#[test]
fn a_chained_log_is_read_as_one() {
    let mut head = LogWriter::new(256);
    head.undo(UNDO_A, &[1; 8]);
    head.chain(0x4000_0000);
    let mut middle = head.continuation(256);
    middle.undo(UNDO_B, &[2; 8]);
    middle.chain(0x6000_0000);
    let mut last = middle.continuation(256);
    last.redo(REDO_A, &[3; 8]);
    last.seal(EntryFlags::NONE, &[]);
    let chain = |address| -> Result<LogArea<'_>, &str> {
        match address {
            0x4000_0000 => Ok(middle.area()),
            0x6000_0000 => Ok(last.area()),
            _ => Err("no such puddle"),
        }
    };
    let log = log::parse(head.area(), chain).unwrap();
    assert_eq!(log.chain, [0x4000_0000, 0x6000_0000]);
    let places: Vec<_> = log
        .entries
        .iter()
        .map(|entry| (entry.area, entry.offset))
        .collect();
    assert_eq!(places, [(0, 0), (0, 64), (1, 0), (1, 64), (2, 0), (2, 32)]);
    let found = plan(&log, &Home::new());
    assert_eq!(
        found,
        Plan::RollForward(vec![Write::Copy {
            target: REDO_A,
            data: &[3; 8]
        }])
    );

    // Before the seal was durable the same log rolls back, across puddles.
    let mut unsealed = last.clone();
    let end = unsealed.at;
    unsealed.entries()[32..end].fill(0);
    let log = log::parse(head.area(), |address| -> Result<_, Infallible> {
        Ok(if address == 0x4000_0000 {
            middle.area()
        } else {
            unsealed.area()
        })
    })
    .unwrap();
    let found = plan(&log, &Home::new());
    let targets: Vec<u64> = found.writes().iter().map(|write| write.range().0).collect();
    assert_eq!(targets, [UNDO_B, UNDO_A]);
}

#[test]
fn chains_that_loop_lead_nowhere_or_to_other_logs_are_refused() {
    let mut head = LogWriter::new(256);
    head.chain(0x4000_0000);
    let mut looping = head.continuation(256);
    looping.chain(0x4000_0000);
    let asked = RefCell::new(0);
    let refused = log::parse(head.area(), |_| {
        *asked.borrow_mut() += 1;
        Ok::<_, Infallible>(looping.area())
    })
    .unwrap_err();
    assert_eq!(asked.into_inner(), 1, "a puddle is read once");
    assert_eq!(
        refused,
        ParseError::Damage(Damage::ChainLoop {
            address: 0x4000_0000
        })
    );

    let refused =
        log::parse(head.area(), |_| -> Result<LogArea<'_>, _> { Err("gone") }).unwrap_err();
    assert_eq!(
        refused,
        ParseError::Chain {
            address: 0x4000_0000,
            source: "gone"
        }
    );

    let refused = log::parse(head.area(), |_| Ok::<_, Infallible>(head.area())).unwrap_err();
    assert!(matches!(
        refused,
        ParseError::Damage(Damage::ForeignChain { .. })
    ));

    let other = durum_format::log::LogHeader {
        log_id: 5,
        capacity: 256,
        owner: uuid(0x20),
        is_continuation: true,
    };
    let mut foreign = head.continuation(256);
    foreign.heap[..64].copy_from_slice(&other.encode());
    let refused = log::parse(head.area(), |_| Ok::<_, Infallible>(foreign.area())).unwrap_err();
    assert!(matches!(
        refused,
        ParseError::Damage(Damage::ForeignChain { found: 5, .. })
    ));
}

/// The chain entry itself was durable and is damaged: nothing behind it in its puddle says so, the unreached puddle
/// does.
#[test]
fn a_damaged_chain_entry_is_found_by_the_puddle_that_it_led_to() {
    let mut head = LogWriter::new(256);
    head.undo(UNDO_A, &[1; 8]);
    let (chain, _) = head.chain(0x4000_0000);
    let mut next = head.continuation(256);
    let before = log::parse(head.area(), |_| Ok::<_, Infallible>(next.area())).unwrap();
    assert_eq!(before.end, (1, 0));
    next.undo(UNDO_B, &[2; 8]);
    head.entries()[chain] ^= 1;
    let log = log::parse(head.area(), no_chain).unwrap();
    assert_eq!(log.entries.len(), 1);
    assert_eq!(
        log.check_unreached(&next.area()),
        Err(Damage::LostEntry {
            area: 1,
            stop: 0,
            found: 0
        })
    );
    // A spare puddle with entries of older generations is no sign of damage.
    let mut older = LogWriter {
        generation: 0,
        ..next.clone()
    };
    older.at = 0;
    older.heap[2048..].fill(0);
    older.undo(UNDO_B, &[2; 8]);
    assert_eq!(log.check_unreached(&older.area()), Ok(()));
}
