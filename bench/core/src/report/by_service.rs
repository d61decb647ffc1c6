//! The table of the suite of the service: each engine in a store of the process's own, and beside it in one of a
//! service, where a transaction has to cost the same.

use super::short;
use super::table::Table;
use crate::measured::{Column, Measured};
use crate::side::Role;

const HEADS: [(&str, &str); 14] = [
    ("row", ""),
    ("engine", ""),
    ("ns", "per operation"),
    ("served ns", "per operation"),
    ("served / own", ""),
    ("min-max", ""),
    ("peer ns", "per operation"),
    ("peer / served", ""),
    ("fences", "per operation"),
    ("lines", "per operation"),
    ("bytes", "per operation"),
    ("syncs", "per operation"),
    ("counts", ""),
    ("scaling", "of one thread"),
];

/// What the name of a side ends with whose store is a service's.
const SERVED: &str = "_served";

/// Counts per operation that differ by less are equal: now and then a log grows.
const TOLERANCE: f64 = 1e-3;

/// One line for each row and engine. Counts are per operation; the last column is the rate of the served side as a
/// multiple of the rate with one thread.
pub fn format(all: &[Measured]) -> Table {
    let mut table = Table::new(HEADS);
    for measured in all {
        let engines = measured
            .columns
            .iter()
            .filter(|own| own.role == Role::Engine && !own.side.ends_with(SERVED));
        for (index, own) in engines.enumerate() {
            let row = if index == 0 { measured.row.name } else { "" };
            table.lines.push(line(row, own, measured));
        }
    }
    table
}

fn line(row: &str, own: &Column, measured: &Measured) -> Vec<String> {
    let name = format!("{}{SERVED}", own.side);
    let served = measured.columns.iter().find(|column| column.side == name);
    let peer = measured.role(Role::Peer);
    let cell = |value: Option<f64>| value.map_or(String::new(), short);
    let ratio = served.and_then(|served| served.ratio_to(own));
    let per_peer = served.and_then(|served| peer?.ratio_to(served));
    vec![
        row.to_owned(),
        own.side.clone(),
        short(own.ns().median),
        cell(served.map(|served| served.ns().median)),
        ratio.map_or(String::new(), |ratio| format!("{:.3}", ratio.median)),
        ratio.map_or(String::new(), |ratio| {
            format!("{:.3}-{:.3}", ratio.min, ratio.max)
        }),
        cell(peer.map(|peer| peer.ns().median)),
        cell(per_peer.map(|ratio| ratio.median)),
        short(own.median(|sample| sample.fences)),
        short(own.median(|sample| sample.write_backs)),
        short(own.median(|sample| sample.bytes)),
        short(own.median(|sample| sample.syncs)),
        served.map_or(String::new(), |served| compared(own, served)),
        cell(served.and_then(Column::scaling)),
    ]
}

/// Whether the counts of a transaction are the same, or which are not.
fn compared(own: &Column, served: &Column) -> String {
    let counts = |column: &Column| {
        [
            ("fences", column.median(|sample| sample.fences)),
            ("lines", column.median(|sample| sample.write_backs)),
            ("bytes", column.median(|sample| sample.bytes)),
            ("syncs", column.median(|sample| sample.syncs)),
        ]
    };
    let differ: Vec<&str> = (counts(own).into_iter().zip(counts(served)))
        .filter(|((_, own), (_, served))| (own - served).abs() > TOLERANCE * own.max(1.0))
        .map(|((name, _), _)| name)
        .collect();
    match differ[..] {
        [] => "equal".to_owned(),
        _ => format!("other {}", differ.join(", ")),
    }
}
