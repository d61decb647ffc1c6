//! The table of programs that are normalized to their plain form.

use super::{align, short};
use crate::measured::{Column, Measured};
use crate::side::Role;

const HEADERS: [&str; 10] = [
    "row", "side", "domain", "ns", "/plain", "of plain", "/flush1", "fences", "lines", "syncs",
];

/// A line for each row and side: nanoseconds, time as a multiple of the plain program's, rate in percent of it, and
/// counts, each for one piece of work.
pub fn format(all: &[Measured]) -> String {
    let mut lines = vec![HEADERS.map(str::to_owned).to_vec()];
    for measured in all {
        for (index, column) in measured.columns.iter().enumerate() {
            let row = if index == 0 { measured.row.name } else { "" };
            lines.push(line(row, column, measured));
        }
    }
    align(&lines)
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
