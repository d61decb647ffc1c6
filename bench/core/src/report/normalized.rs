//! The table of programs that are normalized to their plain form.

use super::short;
use super::table::Table;
use crate::measured::{Column, Measured};
use crate::side::Role;

const HEADS: [(&str, &str); 10] = [
    ("row", ""),
    ("side", ""),
    ("domain", ""),
    ("ns", "per piece of work"),
    ("/plain", "times its time"),
    ("of plain", "of its rate"),
    ("/flush1", "times its time"),
    ("fences", "per piece"),
    ("lines", "per piece"),
    ("syncs", "per piece"),
];

/// A line for each row and side: nanoseconds, time as a multiple of the plain program's, rate in percent of it, and
/// counts, each for one piece of work.
pub fn format(all: &[Measured]) -> Table {
    let mut table = Table::new(HEADS);
    for measured in all {
        for (index, column) in measured.columns.iter().enumerate() {
            let row = if index == 0 { measured.row.name } else { "" };
            table.lines.push(line(row, column, measured));
        }
    }
    table
}

fn line(row: &str, column: &Column, measured: &Measured) -> Vec<String> {
    let ratio = |role| {
        let other = measured.role(role)?;
        let ratio = column.ratio_to(other).map(|ratio| ratio.median);
        ratio.filter(|_| column.side != other.side)
    };
    let plain = ratio(Role::Peer);
    let cell = |value: Option<f64>| value.map_or(String::new(), short);
    let count = |of: fn(&crate::measure::Sample) -> f64| match column.median(of) {
        0.0 => "0".to_owned(),
        count => short(count),
    };
    vec![
        row.to_owned(),
        column.side.clone(),
        column.domain.clone(),
        short(column.ns().median),
        cell(plain),
        plain.map_or(String::new(), |ratio| format!("{:.1} %", 100.0 / ratio)),
        cell(ratio(Role::Limit)),
        count(|sample| sample.fences),
        count(|sample| sample.write_backs),
        count(|sample| sample.syncs),
    ]
}
