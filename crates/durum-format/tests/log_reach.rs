//! How far a log was ever used: what lies behind that is not there.

mod common;

use std::convert::Infallible;

use common::{LogWriter, flips};
use durum_format::Fault;
use durum_format::log::{self, LOG_AREA_OFFSET, LogArea, REACH_OFFSET};

#[test]
fn no_entry_is_read_behind_the_reach_of_a_log() {
    let mut writer = LogWriter::at_generation(512, 3);
    writer.undo(0x2000_4000_1000, &[1; 8]);
    let first = writer.at;
    writer.undo(0x2000_4000_1008, &[2; 64]);
    let read_with = |bytes: Option<u64>| {
        let mut writer = writer.clone();
        if let Some(bytes) = bytes {
            writer.reach(bytes, false);
        }
        let none = |_| -> Result<LogArea<'_>, Infallible> { panic!("the log has no chain") };
        log::parse(writer.area(), none).unwrap().entries.len()
    };
    assert_eq!(read_with(None), 2, "nothing is said");
    assert_eq!(read_with(Some(512)), 2);
    assert_eq!(read_with(Some(first as u64 + 128)), 2);
    // The second lies across the reach: no fence made it durable.
    assert_eq!(read_with(Some(first as u64 + 64)), 1);
    assert_eq!(read_with(Some(first as u64)), 1);
    assert_eq!(read_with(Some(0)), 0);
}

#[test]
fn no_chain_entry_is_read_where_the_reach_says_that_there_is_none() {
    let mut writer = LogWriter::at_generation(512, 3);
    writer.undo(0x2000_4000_1000, &[1; 8]);
    writer.chain(0x2000_4020_0000);
    let continuation = writer.continuation(512);
    let chain = |is_chained| {
        let mut writer = writer.clone();
        writer.reach(512, is_chained);
        let next = |_| -> Result<LogArea<'_>, Infallible> { Ok(continuation.area()) };
        let log = log::parse(writer.area(), next).unwrap();
        (log.entries.len(), log.chain.len())
    };
    assert_eq!(chain(true), (2, 1));
    assert_eq!(chain(false), (1, 0), "no fence made it durable");
}

#[test]
fn a_reach_that_no_writer_makes_is_refused() {
    let mut writer = LogWriter::at_generation(256, 1);
    assert!(writer.area().may_be_chained(), "nothing is said");
    writer.reach(256, false);
    assert!(!writer.area().may_be_chained());
    let head = LOG_AREA_OFFSET as usize;
    let length = |writer: &LogWriter| {
        let heap = &writer.heap;
        LogArea::length_in(&heap[..head], heap.len() as u64).unwrap()
    };
    assert_eq!(length(&writer), Some(LOG_AREA_OFFSET + 256));
    writer.reach(64, true);
    assert!(writer.area().may_be_chained());
    assert_eq!(length(&writer), Some(LOG_AREA_OFFSET + 64));
    writer.reach(320, false);
    let refused = LogArea::parse(&writer.heap).unwrap_err();
    assert_eq!(refused.fault(), Fault::Damaged, "longer than the area");
    writer.reach(256, false);
    let word = writer.heap[REACH_OFFSET as usize..][..8].to_vec();
    for (_, changed) in flips(&word) {
        writer.heap[REACH_OFFSET as usize..][..8].copy_from_slice(&changed);
        let refused = LogArea::parse(&writer.heap).unwrap_err();
        assert_eq!(refused.fault(), Fault::Damaged);
    }
}
