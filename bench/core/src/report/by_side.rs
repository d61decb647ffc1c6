//! The table of a suite with several peers: a line for each row and side, with the times within which most operations
//! were done.

use super::short;
use super::table::Table;
use crate::measure::Spread;
use crate::measured::{Column, Measured};
use crate::side::Role;

const BEFORE: [(&str, &str); 5] = [
    ("row", ""),
    ("side", ""),
    ("per second", "operations"),
    ("\u{b5}s", "per operation"),
    ("min-max", "\u{b5}s"),
];
const BEHIND: [(&str, &str); 7] = [
    ("syncs", "per operation"),
    ("p50", "\u{b5}s"),
    ("p99", "\u{b5}s"),
    ("p99.9", "\u{b5}s"),
    ("p99.99", "\u{b5}s"),
    ("max", "\u{b5}s"),
    ("scaling", "of one thread"),
];

/// One line for each row and side. Columns such as `/overwrite` are this side's time as a multiple of that side's; the
/// last ones are syncs per operation, microseconds, and the rate as a multiple of the rate with one thread.
pub fn format(all: &[Measured]) -> Table {
    let references: Vec<&str> = [Role::Limit, Role::Engine]
        .iter()
        .flat_map(|role| all.first().into_iter().flat_map(|first| first.roles(*role)))
        .map(|column| column.side.as_str())
        .collect();
    let named = |(name, unit): (&str, &'static str)| (name.to_owned(), unit);
    let heads = BEFORE.into_iter().map(named);
    let heads = heads
        .chain(references.iter().map(|name| (format!("/{name}"), "")))
        .chain(BEHIND.into_iter().map(named));
    let mut table = Table::new(heads);
    for measured in all {
        for (index, column) in measured.columns.iter().enumerate() {
            let row = if index == 0 { measured.row.name } else { "" };
            table.lines.push(line(row, column, measured, &references));
        }
    }
    table
}

fn line(row: &str, column: &Column, measured: &Measured, references: &[&str]) -> Vec<String> {
    let micros = |ns: f64| short(ns / 1e3);
    let Spread { median, min, max } = column.ns();
    let mut cells = vec![
        row.to_owned(),
        column.side.clone(),
        short(1e9 / median),
        micros(median),
        format!("{}-{}", micros(min), micros(max)),
    ];
    cells.extend(references.iter().map(|name| {
        let other = measured.columns.iter().find(|other| other.side == **name);
        let ratio = other.and_then(|other| column.ratio_to(other));
        ratio
            .filter(|_| column.side != **name)
            .map_or(String::new(), |ratio| short(ratio.median))
    }));
    cells.push(short(column.median(|sample| sample.syncs)));
    let percentiles = column.percentiles([0.5, 0.99, 0.999, 0.9999, 1.0]);
    cells.extend(percentiles.map(|ns| ns.map_or(String::new(), micros)));
    cells.push(column.scaling().map_or(String::new(), short));
    cells
}
