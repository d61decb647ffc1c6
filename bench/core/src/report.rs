//! What a run leaves behind: tables on the terminal, and beside each other a CSV, a description, plots and a page.
//!
//! [`bars`] and [`percentiles`] draw with the library plotters; `sheet` has what stands around each plot.

pub mod bars;
pub mod by_engine;
pub mod by_service;
pub mod by_side;
pub mod csv;
pub mod files;
mod html;
pub mod machine;
pub mod normalized;
pub mod page;
pub mod percentiles;
mod sheet;
pub mod table;
mod tones;

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
