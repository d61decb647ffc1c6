//! The table of a suite with one peer: a line for each row and side of ours, the peer beside it.

use super::short;
use super::table::Table;
use crate::measured::{Column, Measured};
use crate::side::Role;

const HEADS: [(&str, &str); 12] = [
    ("row", ""),
    ("engine", ""),
    ("ns", "per operation"),
    ("min-max", "ns"),
    ("peer ns", "per operation"),
    ("min-max", "ns"),
    ("speedup", "peer / ours"),
    ("floor_ratio", "ours / limit"),
    ("fences", "per operation"),
    ("lines", "per operation"),
    ("bytes", "per operation"),
    ("amplification", "of lines"),
];

/// One line for each row and side of ours. `fences`, `lines` (written back or stored past the cache) and `bytes` are
/// per operation; `amplification` is how many lines more than the limit the side has written, in percent of the
/// limit's.
pub fn format(all: &[Measured]) -> Table {
    let mut table = Table::new(HEADS);
    for measured in all {
        let (peer, limit) = (measured.role(Role::Peer), measured.role(Role::Limit));
        let ours = measured
            .columns
            .iter()
            .filter(|column| column.role != Role::Peer);
        for (index, column) in ours.enumerate() {
            let first = index == 0;
            let range = |spread: crate::measure::Spread| {
                format!("{}-{}", short(spread.min), short(spread.max))
            };
            let peer_ns = peer.map(|peer| peer.ns()).filter(|_| first);
            let speedup = peer.and_then(|peer| peer.ratio_to(column));
            let floor_ratio = limit
                .and_then(|limit| column.ratio_to(limit))
                .filter(|_| matches!(column.role, Role::Engine | Role::Rival | Role::Bound));
            let amplification = limit
                .filter(|_| column.role == Role::Engine)
                .and_then(|limit| amplification(column, limit));
            table.lines.push(vec![
                if first {
                    measured.row.name.to_owned()
                } else {
                    String::new()
                },
                column.side.clone(),
                short(column.ns().median),
                range(column.ns()),
                peer_ns.map_or(String::new(), |ns| short(ns.median)),
                peer_ns.map_or(String::new(), range),
                speedup.map_or(String::new(), |ratio| short(ratio.median)),
                floor_ratio.map_or(String::new(), |ratio| short(ratio.median)),
                short(column.median(|sample| sample.fences)),
                short(column.median(|sample| sample.write_backs)),
                short(column.median(|sample| sample.bytes)),
                amplification.map_or(String::new(), |percent| format!("{percent:.0} %")),
            ]);
        }
    }
    table
}

/// How many lines more than the limit a side has written, in percent of the limit's; `None` where that writes none.
pub fn amplification(column: &Column, limit: &Column) -> Option<f64> {
    let lines = |column: &Column| column.median(|sample| sample.write_backs);
    (lines(limit) > 0.0).then(|| 100.0 * (lines(column) / lines(limit) - 1.0))
}
