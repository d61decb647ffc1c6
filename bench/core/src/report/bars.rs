//! The plot of programs that are normalized to their plain form: a bar for each side, as long as its time as a multiple
//! of the plain program's, on a logarithmic axis, and behind it what it consists of.

use super::short;
use super::svg::Svg;
use crate::measured::{Column, Measured};
use crate::side::Role;

const LABELS: f64 = 190.0;
const AXIS: f64 = 500.0;
const FIGURES: f64 = 340.0;
const WIDTH: f64 = LABELS + AXIS + FIGURES;
const TOP: f64 = 70.0;
const BOTTOM: f64 = 24.0;
const LINE: f64 = 17.0;
const GAP: f64 = 10.0;
/// Where the axis begins.
const FIRST: f64 = 0.5;

const COLUMNS: [(&str, f64); 5] = [
    ("ns", 60.0),
    ("/ plain", 120.0),
    ("fences", 190.0),
    ("lines", 260.0),
    ("syncs", 325.0),
];

/// The whole file. What one piece of work is, which nanoseconds and counts are of, the description of the suite says.
pub fn format(title: &str, all: &[Measured]) -> String {
    let height_of = |measured: &Measured| GAP + LINE * measured.columns.len() as f64;
    let height = TOP + BOTTOM + all.iter().map(height_of).sum::<f64>();
    let last = all
        .iter()
        .flat_map(|measured| {
            measured
                .columns
                .iter()
                .filter_map(|column| times_plain(column, measured))
        })
        .fold(2.0, f64::max);
    let x = |ratio: f64| {
        let share = (ratio / FIRST).ln() / (last * 1.2 / FIRST).ln();
        LABELS + AXIS * share.clamp(0.0, 1.0)
    };
    let mut svg = Svg::new(WIDTH, height);
    let bold = "font-size=\"15\" font-weight=\"bold\"";
    svg.text(14.0, 24.0, "start", "#000000", bold, title);
    let mut mark = 1.0;
    while mark < last * 1.2 {
        let at = x(mark);
        svg.line(
            at,
            TOP - 6.0,
            at,
            height - BOTTOM + 4.0,
            if mark == 1.0 { "#888888" } else { "#dddddd" },
            1.0,
        );
        let label = format!("{mark}\u{d7}");
        svg.text(at, TOP - 11.0, "middle", "#666666", "", &label);
        mark *= 10.0;
    }
    for (name, at) in COLUMNS {
        svg.text(LABELS + AXIS + at, TOP - 11.0, "end", "#666666", "", name);
    }
    let mut y = TOP;
    for measured in all {
        let domain = measured.columns.last().map_or("", |last| &last.domain);
        let name = format!("{}, {domain}", measured.row.name);
        svg.text(14.0, y + LINE - 5.0, "start", "#000000", "", &name);
        for column in &measured.columns {
            bar(&mut svg, column, measured, y, &x);
            y += LINE;
        }
        y += GAP;
    }
    svg.finish()
}

fn times_plain(column: &Column, measured: &Measured) -> Option<f64> {
    let plain = measured.role(Role::Peer)?;
    Some(column.ratio_to(plain)?.median)
}

fn bar(svg: &mut Svg, column: &Column, measured: &Measured, y: f64, x: &dyn Fn(f64) -> f64) {
    let color = match column.role {
        Role::Peer | Role::Rival | Role::Volatile => "#9a9a9a",
        Role::Limit | Role::Bound => "#444444",
        Role::Engine => "#1763a6",
    };
    let middle = y + LINE - 5.0;
    svg.text(LABELS - 8.0, middle, "end", "#000000", "", &column.side);
    let ratio = times_plain(column, measured);
    if let Some(ratio) = ratio {
        svg.rect(LABELS, y + 2.0, x(ratio) - LABELS, LINE - 4.0, color);
    }
    let figures = [
        Some(column.ns().median),
        ratio,
        Some(column.median(|sample| sample.fences)),
        Some(column.median(|sample| sample.write_backs)),
        Some(column.median(|sample| sample.syncs)),
    ];
    for ((_, at), figure) in COLUMNS.iter().zip(figures) {
        if let Some(figure) = figure.filter(|figure| *figure > 0.0) {
            let at = LABELS + AXIS + at;
            svg.text(at, middle, "end", "#000000", "", &short(figure));
        }
    }
}
