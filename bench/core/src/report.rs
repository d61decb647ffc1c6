//! What a run leaves behind: a table on the terminal, and beside each other a CSV, a description and a plot.

pub mod csv;
pub mod machine;
pub mod plot;
pub mod table;

/// A number with about three significant digits, short enough for a table.
pub fn short(value: f64) -> String {
    match value.abs() {
        _ if !value.is_finite() => "-".to_owned(),
        v if v >= 1e6 => format!("{:.2}M", value / 1e6),
        v if v >= 1e5 => format!("{:.0}k", value / 1e3),
        v if v >= 1e4 => format!("{:.1}k", value / 1e3),
        v if v >= 100.0 => format!("{value:.0}"),
        v if v >= 10.0 => format!("{value:.1}"),
        _ => format!("{value:.2}"),
    }
}
