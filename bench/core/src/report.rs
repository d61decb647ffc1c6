//! What a run leaves behind: a table on the terminal, and beside each other a CSV, a description and a plot.

pub mod bars;
pub mod by_engine;
pub mod by_service;
pub mod by_side;
pub mod csv;
pub mod machine;
pub mod normalized;
pub mod plot;
mod svg;

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

/// Columns side by side, the first two on the left, numbers on the right. All lines have as many cells.
pub(crate) fn align<L: AsRef<[String]>>(lines: &[L]) -> String {
    let columns = lines.first().map_or(0, |line| line.as_ref().len());
    let width = |column: usize| {
        let cells = lines
            .iter()
            .map(|line| line.as_ref()[column].chars().count());
        cells.max().unwrap_or(0)
    };
    let widths: Vec<usize> = (0..columns).map(width).collect();
    let mut text = String::new();
    for line in lines {
        let cell = |(column, width): (usize, &usize)| {
            let cell = &line.as_ref()[column];
            if column < 2 {
                format!("{cell:<width$}")
            } else {
                format!("{cell:>width$}")
            }
        };
        let cells: Vec<String> = widths.iter().enumerate().map(cell).collect();
        text.push_str(cells.join("  ").trim_end());
        text.push('\n');
    }
    text
}
