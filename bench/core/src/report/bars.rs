//! A plot with a bar for each row and side, on a logarithmic axis: the median, from the fastest to the slowest round,
//! and across the bars of a row where its limit is.

use plotters::coord::types::RangedCoordf64;
use plotters::prelude::*;

use super::sheet::{Area, Drawn, LEFT, Words, bold, duration, left, right, sheet, time, tone_of};
use super::short;
use super::tones::{GRID, INK, LIMIT, PAPER, SOFT};
use crate::measure::Spread;
use crate::measured::{Column, Measured};
use crate::side::Role;

/// The side that is no contestant but what others are to reach.
pub const GOAL: &str = "limit";

/// Heights: of a bar with what is around it, and of the line with the row's name.
const BAR: f64 = 17.0;
const NAME: f64 = 26.0;
const LABELS: u32 = 190;
const FIGURES: u32 = 170;
const AXIS: u32 = 28;
/// Of a character of a figure, at most.
const CHARACTER: i32 = 7;
/// Between a bar and its figure.
const BEHIND: i32 = 7;

/// What bars are as long as.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Length {
    /// Nanoseconds for an operation.
    Time,
    /// The time as a multiple of the plain program's, which is the first peer.
    TimesPlain,
}

impl Length {
    fn of(self, column: &Column, measured: &Measured) -> Option<Spread> {
        let spread = match self {
            Length::Time => column.ns(),
            Length::TimesPlain => column.ratio_to(measured.role(Role::Peer)?)?,
        };
        (spread.median.is_finite() && spread.min > 0.0).then_some(spread)
    }

    fn mark(self, value: f64) -> String {
        match self {
            Length::Time => time(value),
            Length::TimesPlain => format!("{value}\u{d7}"),
        }
    }

    fn how(self) -> &'static str {
        match self {
            Length::Time => {
                "Time for an operation, on a logarithmic axis: shorter is faster. Thin lines: fastest to slowest round."
            }
            Length::TimesPlain => {
                "Time as a multiple of the plain program's, on a logarithmic axis: shorter is faster. Thin lines: \
                 fastest to slowest round."
            }
        }
    }

    /// The time, and what it is a multiple of.
    fn figure(self, column: &Column, measured: &Measured) -> String {
        let other = match self {
            Length::Time => measured.role(Role::Limit),
            Length::TimesPlain => measured.role(Role::Peer),
        };
        let other = other.filter(|other| other.side != column.side);
        let ratio = other.and_then(|other| Some((column.ratio_to(other)?.median, other)));
        let ratio = ratio.map(|(ratio, other)| format!(", {}\u{d7} {}", short(ratio), other.side));
        duration(column.ns().median) + &ratio.unwrap_or_default()
    }

    /// Whole powers of ten below, the longest bar above.
    fn range(self, all: &[Measured]) -> (f64, f64) {
        let lengths = all.iter().flat_map(|measured| {
            let columns = measured.columns.iter();
            columns.filter_map(move |column| self.of(column, measured))
        });
        let range = Spread::of(lengths.flat_map(|spread| [spread.min, spread.max]));
        let (min, max) = range.map_or((1.0, 10.0), |range| (range.min, range.max));
        let first = match self {
            Length::Time => 10f64.powf((min / 1.5).log10().floor()),
            Length::TimesPlain => (min / 1.5).min(0.5),
        };
        (first, max.max(first * 10.0) * 1.05)
    }
}

/// The whole file.
pub fn format(title: &str, length: Length, all: &[Measured], caption: &[String]) -> String {
    let height = all.iter().map(height_of).sum::<f64>();
    let words = Words {
        title,
        how: length.how(),
        legend: legend(all),
        caption,
        told: told(all),
    };
    sheet(&words, height as u32 + 2 * AXIS, |area| {
        draw(area, length, all, height)
    })
}

fn height_of(measured: &Measured) -> f64 {
    NAME + BAR * measured.columns.len() as f64
}

fn legend(all: &[Measured]) -> Vec<(String, super::tones::Tone)> {
    let limit = all.iter().find_map(|measured| measured.role(Role::Limit));
    let limit = match limit {
        Some(limit) if limit.side == GOAL => "the limit that this project has set",
        _ => "the limit: no atomicity",
    };
    let roles = [
        (Role::Engine, "durum"),
        (Role::Peer, "others"),
        (Role::Rival, "after a paper"),
        (Role::Bound, "the least with a log"),
        (Role::Volatile, "not durable"),
        (Role::Limit, limit),
    ];
    let took_part =
        |(role, _): &(Role, &str)| all.iter().any(|measured| measured.role(*role).is_some());
    let entry = |(role, name): (Role, &str)| (name.to_owned(), tone_of(role));
    roles.into_iter().filter(took_part).map(entry).collect()
}

/// All figures, as words.
fn told(all: &[Measured]) -> String {
    let mut text = String::new();
    for measured in all {
        let sides = measured.columns.iter();
        let sides: Vec<String> = sides
            .map(|column| format!("{} {}", column.side, duration(column.ns().median)))
            .collect();
        text += &format!("{}: {}. ", measured.row.name, sides.join(", "));
    }
    text
}

type Chart<'a, 's> = ChartContext<
    'a,
    SVGBackend<'s>,
    Cartesian2d<plotters::coord::combinators::LogCoord<f64>, RangedCoordf64>,
>;

fn draw(area: &Area<'_>, length: Length, all: &[Measured], height: f64) -> Drawn {
    let (first, last) = length.range(all);
    let mut chart = ChartBuilder::on(area)
        .margin_left(LABELS)
        .margin_right(FIGURES)
        .top_x_label_area_size(AXIS)
        .x_label_area_size(AXIS)
        .build_cartesian_2d((first..last).log_scale(), 0.0..height)?;
    // So many that there is a mark at each power of ten, and none between.
    let decades = (last / first).log10().floor().max(1.0) as usize + 1;
    chart
        .configure_mesh()
        .disable_y_mesh()
        .disable_y_axis()
        .x_max_light_lines(0)
        .x_labels(decades)
        .bold_line_style(GRID.color())
        .axis_style(SOFT.color())
        .x_label_style(left(12.0, SOFT))
        .x_label_formatter(&|value| length.mark(*value))
        .draw()?;
    let mut y = height;
    for measured in all {
        row(&mut chart, length, measured, first, y)?;
        y -= height_of(measured);
    }
    Ok(())
}

fn row(
    chart: &mut Chart<'_, '_>,
    length: Length,
    measured: &Measured,
    first: f64,
    top: f64,
) -> Drawn {
    let name = match length {
        Length::Time => measured.row.name.to_owned(),
        Length::TimesPlain => {
            let domain = measured.columns.last().map_or("", |last| &last.domain);
            format!("{}, {domain}", measured.row.name)
        }
    };
    let begin = LEFT - LABELS as i32;
    let place = EmptyElement::at((first, top - NAME * 0.62));
    let behind = begin + 9 * name.chars().count() as i32 + 12;
    chart.draw_series([place
        + Text::new(name, (begin, 0), bold(13.0, INK))
        + Text::new(measured.row.one_op, (behind, 0), left(11.5, SOFT))])?;
    let limit = measured.role(Role::Limit);
    let at = limit.and_then(|limit| length.of(limit, measured));
    let at = at.map(|spread| spread.median);
    for (index, column) in measured.columns.iter().enumerate() {
        let middle = top - NAME - BAR * (index as f64 + 0.5);
        let name = Text::new(column.side.clone(), (-8, 0), right(12.0, INK));
        chart.draw_series([EmptyElement::at((first, middle)) + name])?;
        if let Some(spread) = length.of(column, measured) {
            bar(chart, column, spread, first, middle)?;
            let text = length.figure(column, measured);
            figure(chart, text, spread.max, at, middle)?;
        }
    }
    if let Some(at) = at {
        let line = [top - NAME, top - height_of(measured)].map(|y| (at, y));
        chart.draw_series([PathElement::new(line, LIMIT.color().stroke_width(2))])?;
    }
    Ok(())
}

fn bar(
    chart: &mut Chart<'_, '_>,
    column: &Column,
    length: Spread,
    first: f64,
    middle: f64,
) -> Drawn {
    let (bottom, top) = (middle - BAR * 0.38, middle + BAR * 0.38);
    let corners = |inset: f64| [(first, bottom + inset), (length.median, top - inset)];
    let color = tone_of(column.role).color();
    chart.draw_series([Rectangle::new(corners(0.0), color.filled())])?;
    if column.role == Role::Limit {
        // Hollow: it is no contestant.
        chart.draw_series([Rectangle::new(corners(2.0), PAPER.color().filled())])?;
    }
    let spread = [(length.min, middle), (length.max, middle)];
    chart.draw_series([PathElement::new(spread, INK.color().stroke_width(1))])?;
    Ok(())
}

/// What a side took, behind its bar. The line of the limit, which lies at a place of its own, crosses no figure.
fn figure(
    chart: &mut Chart<'_, '_>,
    text: String,
    mut end: f64,
    limit: Option<f64>,
    middle: f64,
) -> Drawn {
    let x = |value: f64| chart.backend_coord(&(value, middle)).0;
    let width = CHARACTER * text.chars().count() as i32;
    if let Some(at) = limit.filter(|at| (x(end)..x(end) + BEHIND + width).contains(&x(*at))) {
        end = at;
    }
    let text = Text::new(text, (BEHIND, 0), left(11.5, INK));
    chart.draw_series([EmptyElement::at((end, middle)) + text])?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::measure::Sample;
    use crate::workload::Row;

    /// A row of the plain program, the limit, and one of ours, which take so many nanoseconds in two rounds.
    fn row(name: &'static str, sides: &[(&str, Role, [f64; 2])]) -> Measured {
        let column = |(side, role, ns): &(&str, Role, [f64; 2])| Column {
            side: (*side).to_owned(),
            role: *role,
            domain: "dram".to_owned(),
            samples: ns
                .map(|ns| Sample {
                    ns,
                    ..Sample::default()
                })
                .to_vec(),
        };
        Measured {
            suite: "nvlc",
            row: Row { name, one_op: "" },
            columns: sides.iter().map(column).collect(),
        }
    }

    /// How long the bars of this colour are.
    fn lengths(svg: &str, tone: Role) -> Vec<i32> {
        let RGBColor(red, green, blue) = tone_of(tone).color();
        let fill = format!("fill=\"#{red:02X}{green:02X}{blue:02X}\"");
        let bars = svg
            .lines()
            .filter(|line| line.starts_with("<rect") && line.contains(&fill));
        // Those of the legend are 11 pixels long.
        let width = |line: &str| {
            line.split("width=\"")
                .nth(1)?
                .split('"')
                .next()?
                .parse()
                .ok()
        };
        bars.filter_map(width)
            .filter(|width| *width != 11)
            .collect()
    }

    #[test]
    fn bars_are_as_long_as_times_on_a_logarithmic_axis() {
        let all = [row(
            "hash",
            &[
                ("plain", Role::Peer, [100.0, 100.0]),
                ("nvlc", Role::Engine, [1000.0, 1000.0]),
                ("flush1", Role::Limit, [10_000.0, 10_000.0]),
            ],
        )];
        let svg = format("title", Length::Time, &all, &[]);
        let ours = lengths(&svg, Role::Engine);
        let [plain, limit] = [Role::Peer, Role::Limit].map(|role| lengths(&svg, role));
        assert_eq!((plain.len(), ours.len(), limit.len()), (1, 1, 1));
        // Each is ten times the one before: as much longer.
        let more = (ours[0] - plain[0], limit[0] - ours[0]);
        assert!(more.0 > 50 && (more.0 - more.1).abs() <= 1, "{more:?}");
        assert!(svg.contains("\n1000 ns, 0.10\u{d7} flush1\n"), "{svg}");
    }

    #[test]
    fn times_of_the_plain_program_are_taken_round_by_round() {
        let sides = [
            ("plain", Role::Peer, [100.0, 400.0]),
            ("nvlc", Role::Engine, [200.0, 800.0]),
        ];
        let alone = [("nvlc", Role::Engine, [200.0, 800.0])];
        let all = [row("hash", &sides), row("list", &alone)];
        let svg = format("title", Length::TimesPlain, &all, &[]);
        // Without a plain program there is no bar, only a name.
        assert_eq!(lengths(&svg, Role::Engine).len(), 1);
        assert!(svg.contains("\nhash, dram\n") && svg.contains("\nlist, dram\n"));
        assert!(svg.contains("\n1\u{d7}\n") && svg.contains("\n500 ns, 2.00\u{d7} plain\n"));
    }
}
