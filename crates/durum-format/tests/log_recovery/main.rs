//! What recovery does: the decision table tried exhaustively, the order of replay, seals, grants, chains.

mod chains;
#[path = "../common/mod.rs"]
mod common;
mod decision;
mod order;
mod seals;

use std::collections::BTreeMap;
use std::convert::Infallible;

use durum_format::crc::Crc;
use durum_format::home::Answer;
use durum_format::log::{self, LogArea, ParsedLog, Plan, Write};

use common::LogWriter;

fn no_chain<'a>(_: u64) -> Result<LogArea<'a>, Infallible> {
    panic!("the log has no chain")
}

/// Home memory, byte by byte.
type Home = BTreeMap<u64, u8>;

fn append(home: &Home, target: u64, len: u64, crc: &mut Crc) -> Result<Answer, Infallible> {
    for address in target..target + len {
        crc.update(&[home.get(&address).copied().unwrap_or(0)]);
    }
    Ok(Answer::Seen)
}

/// What is done with a log whose home is there.
fn plan<'a>(log: &ParsedLog<'a>, home: &Home) -> Plan<'a> {
    let sealed = log::sealed(log, |at, len, crc| append(home, at, len, crc)).unwrap();
    log::plan::<Infallible>(log, sealed.unwrap(), |_, _| true).unwrap()
}

fn put(home: &mut Home, target: u64, data: &[u8]) {
    home.extend((target..).zip(data.iter().copied()));
}

const UNDO_A: u64 = 0x2000_4000_1000;
const UNDO_B: u64 = 0x2000_4000_2000;
const REDO_A: u64 = 0x2000_4000_3000;
const REDO_B: u64 = 0x2000_4000_4000;
const FRESH: u64 = 0x2000_4000_5000;

fn plan_of(writer: &LogWriter, home: &Home) -> Vec<(char, u64, Vec<u8>)> {
    let log = log::parse(writer.area(), no_chain).unwrap();
    let plan = plan(&log, home);
    plan.writes()
        .iter()
        .map(|write| match *write {
            Write::Copy { target, data } => ('c', target, data.to_vec()),
            Write::SetBits { target, mask } => ('s', target, mask.to_le_bytes().to_vec()),
            Write::ClearBits { target, mask } => ('x', target, mask.to_le_bytes().to_vec()),
        })
        .collect()
}
