//! The plot: a dot for each row and side, on a logarithmic axis of nanoseconds.

use super::short;
use super::svg::Svg;
use crate::measure::Spread;
use crate::measured::{Column, Measured};
use crate::side::Role;

const LABELS: f64 = 110.0;
const AXIS: f64 = 640.0;
const FIGURES: f64 = 250.0;
const WIDTH: f64 = LABELS + AXIS + FIGURES;
const TOP: f64 = 86.0;
const BOTTOM: f64 = 24.0;
/// Height of a row's first line, and of each further engine's.
const LINE: f64 = 22.0;
const NEXT_LINE: f64 = 15.0;

const PEERS: [&str; 4] = ["#d1600a", "#b08900", "#8a5a2b", "#d9738a"];
const ENGINES: [&str; 4] = ["#1763a6", "#7a3e9d", "#1d8a5a", "#a61c4f"];
const LIMIT: &str = "#444444";
const RIVAL: &str = "#b0483c";
const VOLATILE: &str = "#9a9a9a";

/// The whole file.
pub fn format(all: &[Measured]) -> String {
    let axis = Axis::around(all);
    let names = Names::of(all);
    let height_of = |measured: &Measured| LINE + NEXT_LINE * (count(measured).max(1) - 1) as f64;
    let height = TOP + BOTTOM + all.iter().map(height_of).sum::<f64>();
    let mut svg = Svg::new(WIDTH, height);
    legend(&mut svg, all, &names);
    grid(&mut svg, &axis, height);
    let mut y = TOP;
    for (index, measured) in all.iter().enumerate() {
        if index % 2 == 0 {
            svg.rect(0.0, y, WIDTH, height_of(measured), "#0000000a");
        }
        row(&mut svg, &axis, &names, measured, y);
        y += height_of(measured);
    }
    svg.finish()
}

fn count(measured: &Measured) -> usize {
    measured.roles(Role::Engine).count()
}

/// The engines and peers of all rows, in the order of their colours.
struct Names {
    engines: Vec<String>,
    peers: Vec<String>,
}

impl Names {
    fn of(all: &[Measured]) -> Names {
        let with = |role: Role| {
            let mut names: Vec<String> = Vec::new();
            for column in all.iter().flat_map(|measured| measured.roles(role)) {
                if !names.contains(&column.side) {
                    names.push(column.side.clone());
                }
            }
            names
        };
        Names {
            engines: with(Role::Engine),
            peers: with(Role::Peer),
        }
    }

    fn color(&self, column: &Column) -> &'static str {
        let chosen = |colors: [&'static str; 4], names: &[String]| {
            let place = names.iter().position(|name| *name == column.side);
            colors[place.unwrap_or(0) % colors.len()]
        };
        match column.role {
            Role::Peer => chosen(PEERS, &self.peers),
            Role::Engine => chosen(ENGINES, &self.engines),
            Role::Rival => RIVAL,
            Role::Limit | Role::Bound => LIMIT,
            Role::Volatile => VOLATILE,
        }
    }
}

fn legend(svg: &mut Svg, all: &[Measured], names: &Names) {
    svg.text(
        14.0,
        24.0,
        "start",
        "#000000",
        "font-size=\"15\" font-weight=\"bold\"",
        "Time per operation, ns",
    );
    svg.text(
        190.0,
        24.0,
        "start",
        "#666666",
        "",
        "dot: median; line: fastest to slowest round",
    );
    let (mut x, mut y) = (14.0, 44.0);
    let mut told: Vec<&str> = Vec::new();
    for column in all.iter().flat_map(|measured| &measured.columns) {
        if told.contains(&column.side.as_str()) {
            continue;
        }
        told.push(&column.side);
        let name = match column.role {
            Role::Peer => format!("{} (peer)", column.side),
            Role::Rival => format!("{} (after its paper)", column.side),
            Role::Engine => format!("durum, {}", column.side),
            Role::Limit => format!("{} (limit: no atomicity)", column.side),
            Role::Bound => format!("{} (the least with a log)", column.side),
            Role::Volatile => format!("{} (not durable)", column.side),
        };
        let width = 32.0 + 6.6 * name.len() as f64;
        if x + width > WIDTH {
            (x, y) = (14.0, y + 16.0);
        }
        svg.mark(column.role, x + 5.0, y, names.color(column));
        svg.text(x + 15.0, y + 4.0, "start", "#000000", "", &name);
        x += width;
    }
}

const COLUMNS: [(&str, f64); 4] = [
    ("durum", 60.0),
    ("best peer", 118.0),
    ("speedup", 180.0),
    ("/ limit", 240.0),
];

fn grid(svg: &mut Svg, axis: &Axis, height: f64) {
    for decade in axis.first..=axis.last {
        let x = axis.x(10f64.powi(decade));
        svg.line(x, TOP - 6.0, x, height - BOTTOM + 4.0, "#dddddd", 1.0);
        let label = match decade {
            6.. => format!("{} ms", 10f64.powi(decade - 6)),
            3..6 => format!("{} µs", 10f64.powi(decade - 3)),
            _ => format!("{} ns", 10f64.powi(decade)),
        };
        svg.text(x, TOP - 11.0, "middle", "#666666", "", &label);
        svg.text(x, height - 6.0, "middle", "#666666", "", &label);
    }
    for (name, x) in COLUMNS {
        svg.text(LABELS + AXIS + x, TOP - 11.0, "end", "#666666", "", name);
    }
}

fn row(svg: &mut Svg, axis: &Axis, names: &Names, measured: &Measured, y: f64) {
    let middle = y + LINE / 2.0;
    svg.text(
        LABELS - 8.0,
        middle + 4.0,
        "end",
        "#000000",
        "",
        measured.row.name,
    );
    let peer = measured.fastest_peer();
    let limit = measured.role(Role::Limit);
    let others = measured
        .columns
        .iter()
        .filter(|column| column.role != Role::Engine);
    let ours: Vec<&Column> = measured.roles(Role::Engine).collect();
    for (line, column) in ours.iter().enumerate() {
        let y = middle + NEXT_LINE * line as f64;
        if let Some(peer) = peer {
            let (from, to) = (axis.x(column.ns().median), axis.x(peer.ns().median));
            svg.line(
                from,
                y,
                to,
                if line == 0 { y } else { middle },
                "#c9c9c9",
                2.0,
            );
        }
    }
    for column in others {
        dot(svg, axis, column, middle, names.color(column));
    }
    for (line, column) in ours.iter().enumerate() {
        let y = middle + NEXT_LINE * line as f64;
        dot(svg, axis, column, y, names.color(column));
        let figures = [
            Some(column.ns()),
            peer.filter(|_| line == 0).map(Column::ns),
            peer.and_then(|peer| peer.ratio_to(column)),
            limit.and_then(|limit| column.ratio_to(limit)),
        ];
        for (place, ((_, x), figure)) in COLUMNS.iter().zip(figures).enumerate() {
            let Some(Spread { median, .. }) = figure else {
                continue;
            };
            let (text, style) = match place {
                2 | 3 => (
                    format!("{}×", short(median)),
                    if place == 2 {
                        "font-weight=\"bold\""
                    } else {
                        ""
                    },
                ),
                _ => (short(median), ""),
            };
            let color = if place == 2 && median < 1.0 {
                "#c00000"
            } else {
                "#000000"
            };
            svg.text(LABELS + AXIS + x, y + 4.0, "end", color, style, &text);
        }
    }
}

fn dot(svg: &mut Svg, axis: &Axis, column: &Column, y: f64, color: &str) {
    let Spread { median, min, max } = column.ns();
    svg.line(axis.x(min), y, axis.x(max), y, color, 1.5);
    svg.mark(column.role, axis.x(median), y, color);
}

/// A logarithmic axis over whole decades.
struct Axis {
    first: i32,
    last: i32,
}

impl Axis {
    fn around(all: &[Measured]) -> Axis {
        let times = all
            .iter()
            .flat_map(|measured| &measured.columns)
            .flat_map(|column| {
                let Spread { min, max, .. } = column.ns();
                [min, max]
            });
        let range = Spread::of(times.filter(|ns| *ns > 0.0));
        let (min, max) = range.map_or((1.0, 10.0), |range| (range.min, range.max));
        let first = min.log10().floor() as i32;
        Axis {
            first,
            last: (max.log10().ceil() as i32).max(first + 1),
        }
    }

    fn x(&self, ns: f64) -> f64 {
        let share = (ns.log10() - f64::from(self.first)) / f64::from(self.last - self.first);
        LABELS + 6.0 + (AXIS - 30.0) * share.clamp(0.0, 1.0)
    }
}
