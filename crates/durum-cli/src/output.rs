//! How numbers and tables are printed.

use std::io::{self, Write};
use std::time::Duration;

use serde_json::Value;

use durum::Domain;
use durum_format::content::printable;

use crate::color;

/// A size in bytes for people: `4.0 MiB`.
pub(crate) fn size(bytes: u64) -> String {
    const UNITS: [&str; 5] = ["KiB", "MiB", "GiB", "TiB", "PiB"];
    if bytes < 1024 {
        return format!("{bytes} B");
    }
    let mut value = bytes as f64 / 1024.0;
    let mut unit = 0;
    // 1023.95 would be printed as 1024.0.
    while value >= 1023.95 && unit + 1 < UNITS.len() {
        value /= 1024.0;
        unit += 1;
    }
    format!("{value:.1} {}", UNITS[unit])
}

/// A number with a comma before each third digit.
pub(crate) fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// A time for people: `310 µs`, `4.2 ms`, `1.3 s`.
pub(crate) fn time(duration: Duration) -> String {
    let seconds = duration.as_secs_f64();
    match seconds {
        _ if seconds < 0.000_999_5 => format!("{:.0} µs", seconds * 1e6),
        _ if seconds < 0.999_5 => format!("{:.1} ms", seconds * 1e3),
        _ => format!("{seconds:.1} s"),
    }
}

/// `1 puddle`, `2 puddles`, `3 entries`, `4 passes`.
pub(crate) fn count(number: u64, thing: &str) -> String {
    let number_text = grouped(number);
    match (number, thing.strip_suffix('y')) {
        (1, _) => format!("{number_text} {thing}"),
        (_, Some(stem)) => format!("{number_text} {stem}ies"),
        _ if thing.ends_with('s') => format!("{number_text} {thing}es"),
        _ => format!("{number_text} {thing}s"),
    }
}

/// A word as a shell takes it, where it has more in it than letters of names and paths.
pub(crate) fn quoted(word: &str) -> String {
    let is_plain = |char: char| char.is_ascii_alphanumeric() || "_-./:+=@,".contains(char);
    let word = printable(word);
    match !word.is_empty() && word.chars().all(is_plain) {
        true => word,
        false => format!("'{}'", word.replace('\'', "'\\''")),
    }
}

/// Says that not all was shown.
pub(crate) fn more(all: u64, shown: usize, out: &mut dyn Write) -> io::Result<()> {
    match all - shown as u64 {
        0 => Ok(()),
        more => writeln!(out, "… {} more (--objects)", grouped(more)),
    }
}

/// Names with commas between them.
pub(crate) fn list<N: AsRef<str>>(names: impl IntoIterator<Item = N>) -> String {
    let names: Vec<N> = names.into_iter().collect();
    let names: Vec<&str> = names.iter().map(N::as_ref).collect();
    names.join(", ")
}

/// Milliseconds, for JSON.
pub(crate) fn millis(duration: Duration) -> f64 {
    (duration.as_secs_f64() * 1e6).round() / 1e3
}

/// The name of a domain in commands and in JSON.
pub(crate) fn domain_name(domain: Domain) -> &'static str {
    match domain {
        Domain::Dax => "dax",
        Domain::Dram => "dram",
        Domain::File => "file",
        Domain::Emulated(_) => "emulated",
        _ => "unknown",
    }
}

/// What a durable write survives in a domain.
pub(crate) fn survives(domain: Domain) -> &'static str {
    match domain {
        Domain::Dax => "persistent memory: survives power loss",
        Domain::Dram => "memory: survives the death of the process, not of the machine",
        Domain::File => "a disk: survives power loss",
        _ => "as its medium does",
    }
}

/// Prints a JSON value, on several lines.
pub(crate) fn json(out: &mut dyn Write, value: &Value) -> io::Result<()> {
    writeln!(out, "{value:#}")
}

/// The first row of a table, from names with bars between them.
pub(crate) fn heading(names: &str) -> Vec<Vec<String>> {
    vec![names.split('|').map(String::from).collect()]
}

/// Prints rows in columns; the first row is the heading. Columns of `right` (by index) are aligned to the right. Names
/// that a store has chosen do nothing to a terminal.
pub(crate) fn table(out: &mut dyn Write, rows: &[Vec<String>], right: &[usize]) -> io::Result<()> {
    let rows = rows.iter();
    let rows = rows.map(|row| row.iter().map(|cell| printable(cell)).collect::<Vec<_>>());
    let rows: Vec<_> = rows.collect();
    let columns = rows.iter().map(Vec::len).max().unwrap_or(0);
    let width = |column: usize| {
        let cells = rows.iter().filter_map(|row| row.get(column));
        cells.map(|cell| cell.chars().count()).max().unwrap_or(0)
    };
    let widths: Vec<usize> = (0..columns).map(width).collect();
    for (at, row) in rows.iter().enumerate() {
        let mut line = String::new();
        for (column, cell) in row.iter().enumerate() {
            if column > 0 {
                line.push_str("  ");
            }
            let width = widths[column];
            line += &if right.contains(&column) {
                format!("{cell:>width$}")
            } else {
                format!("{cell:<width$}")
            };
        }
        match (at, line.trim_end()) {
            (0, heading) => writeln!(out, "{}", color::out(color::HEADING, heading))?,
            (_, line) => writeln!(out, "{line}")?,
        }
    }
    Ok(())
}

/// Prints names and values below each other.
pub(crate) fn facts(out: &mut dyn Write, facts: &[(&str, String)]) -> io::Result<()> {
    let width = facts.iter().map(|(name, _)| name.len()).max().unwrap_or(0);
    for (name, value) in facts {
        writeln!(out, "{:<width$}  {value}", color::out(color::HEADING, name))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_numbers_and_times_are_short() {
        assert_eq!(size(1023), "1023 B");
        assert_eq!(size(2 << 20), "2.0 MiB");
        assert_eq!(size((1 << 20) - 1), "1.0 MiB");
        assert_eq!(grouped(7), "7");
        assert_eq!(grouped(1234567), "1,234,567");
        assert_eq!(time(Duration::from_micros(999)), "999 µs");
        assert_eq!(time(Duration::from_nanos(999_900)), "1.0 ms");
        assert_eq!(time(Duration::from_millis(1300)), "1.3 s");
        assert_eq!(count(1, "pool"), "1 pool");
    }

    #[test]
    fn tables_are_aligned_without_blanks_at_the_end() {
        let mut out = Vec::new();
        let rows = [vec!["name", "size"], vec!["a", "12"]];
        let rows = rows.map(|row| row.into_iter().map(String::from).collect::<Vec<_>>());
        table(&mut out, &rows, &[1]).unwrap();
        assert_eq!(String::from_utf8(out).unwrap(), "name  size\na       12\n");
    }
}
