//! The plot of latencies, where each operation was timed: for each row, within which time which share of the operations
//! was done, a line for each side. Beyond 99 % the shares are as far from each other as 90 from 99.

use plotters::prelude::*;

use super::sheet::{Area, Drawn, WIDTH, Words, bold, duration, left, right, sheet, time};
use super::tones::{GRID, INK, LIMIT, LINES, SOFT, Tone, VOLATILE};
use crate::measure::Spread;
use crate::measured::{Column, Measured};
use crate::side::Role;

const SHARES: [f64; 5] = [0.5, 0.9, 0.99, 0.999, 0.9999];
const COLUMNS: usize = 2;
const HEIGHT: u32 = 260;
const LABELS: u32 = 62;
const AXIS: u32 = 28;

/// How far right a share lies.
fn nines(share: f64) -> f64 {
    -(1.0 - share).log10()
}

fn share_of(nines: f64) -> String {
    format!("{} %", short_percent(100.0 - 100.0 * 10f64.powf(-nines)))
}

fn short_percent(percent: f64) -> String {
    let text = format!("{percent:.3}");
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

/// The points of a side: shares of so many operations that at least one is beyond them.
fn points(column: &Column) -> Vec<(f64, f64)> {
    let count: usize = column.samples.iter().map(|one| one.latencies.len()).sum();
    let each = SHARES.iter().zip(column.percentiles(SHARES));
    let told = each.filter(|(share, _)| (1.0 - **share) * count as f64 >= 1.0);
    told.filter_map(|(share, ns)| Some((nines(*share), ns.filter(|ns| *ns > 0.0)?)))
        .collect()
}

fn is_drawn(column: &&Column) -> bool {
    !points(column).is_empty()
}

/// The whole file; `None` where no operation was timed by itself.
pub fn format(title: &str, all: &[Measured], caption: &[String]) -> Option<String> {
    let is_timed = |measured: &&Measured| measured.columns.iter().any(|column| is_drawn(&column));
    let timed: Vec<&Measured> = all.iter().filter(is_timed).collect();
    if timed.is_empty() {
        return None;
    }
    let names = Names::of(&timed);
    let words = Words {
        title,
        how: "Time within which a share of the operations of all rounds was done, on a logarithmic axis: lower is faster. Lines \
              begin at 50 %.",
        legend: names.legend(),
        caption,
        told: told(&timed),
    };
    let lines = timed.len().div_ceil(COLUMNS);
    let drawn = sheet(&words, HEIGHT * lines as u32, |area| {
        let places = area.split_evenly((lines, COLUMNS));
        (timed.iter().zip(&places)).try_for_each(|(measured, place)| draw(place, measured, &names))
    });
    Some(drawn)
}

fn told(timed: &[&Measured]) -> String {
    let mut text = String::new();
    for measured in timed {
        text += &format!("{}: ", measured.row.name);
        for column in measured.columns.iter().filter(is_drawn) {
            let points = points(column).into_iter();
            let points: Vec<String> = points
                .map(|(nines, ns)| format!("{} in {}", share_of(nines), duration(ns)))
                .collect();
            text += &format!("{} {}; ", column.side, points.join(", "));
        }
    }
    text
}

/// The sides with their colours. Limits and plain memory have the same in all plots.
struct Names(Vec<(String, Tone)>);

impl Names {
    fn of(timed: &[&Measured]) -> Names {
        let mut names: Vec<(String, Tone)> = Vec::new();
        let mut lines = LINES.iter().cycle();
        let columns = timed.iter().flat_map(|measured| &measured.columns);
        for column in columns.filter(is_drawn) {
            if names.iter().any(|(name, _)| *name == column.side) {
                continue;
            }
            let tone = match column.role {
                Role::Limit => LIMIT,
                Role::Volatile => VOLATILE,
                _ => *lines.next().unwrap_or(&INK),
            };
            names.push((column.side.clone(), tone));
        }
        Names(names)
    }

    fn legend(&self) -> Vec<(String, Tone)> {
        self.0.clone()
    }

    fn tone(&self, column: &Column) -> Tone {
        let found = self.0.iter().find(|(name, _)| *name == column.side);
        found.map_or(INK, |(_, tone)| *tone)
    }
}

fn draw(area: &Area<'_>, measured: &Measured, names: &Names) -> Drawn {
    let each: Vec<(&Column, Vec<(f64, f64)>)> = measured
        .columns
        .iter()
        .map(|column| (column, points(column)))
        .collect();
    let times = each.iter().flat_map(|(_, points)| points);
    let Some(Spread { min, max, .. }) = Spread::of(times.map(|(_, ns)| *ns)) else {
        return Ok(());
    };
    let first = 10f64.powf(min.log10().floor());
    let last = 10f64.powf(max.log10().ceil()).max(first * 10.0);
    let begin = (LABELS as i32, 12);
    area.draw(&Text::new(measured.row.name, begin, bold(13.0, INK)))?;
    let mut chart = ChartBuilder::on(area)
        .margin_top(26)
        .margin_right(34)
        .margin_bottom(8)
        .x_label_area_size(AXIS)
        .y_label_area_size(LABELS)
        .build_cartesian_2d(nines(SHARES[0])..4.0, (first..last).log_scale())?;
    let decades = (last / first).log10().round() as usize;
    chart
        .configure_mesh()
        .x_max_light_lines(0)
        .y_max_light_lines(0)
        .x_labels(4)
        .y_labels(decades + 1)
        .bold_line_style(GRID.color())
        .axis_style(SOFT.color())
        .x_label_style(left(12.0, SOFT))
        .y_label_style(right(12.0, SOFT))
        .x_label_formatter(&|nines| share_of(*nines))
        .y_label_formatter(&|ns| time(*ns))
        .draw()?;
    for (column, points) in each {
        let color = names.tone(column).color();
        let marks = points
            .iter()
            .map(|point| Circle::new(*point, 3, color.filled()));
        chart.draw_series(marks)?;
        chart.draw_series(LineSeries::new(points, color.stroke_width(2)))?;
    }
    debug_assert!(area.dim_in_pixel().0 <= WIDTH);
    Ok(())
}
