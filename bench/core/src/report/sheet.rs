//! A sheet that plots are drawn on: words above, the caption below, and what makes an SVG of it that readers of all
//! kinds can use.

use std::fmt::Write;

use plotters::coord::Shift;
use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};

use super::html::{escape, without_controls};
use super::short;
use super::tones::{self, INK, PAPER, SOFT, Tone};
use crate::side::Role;

pub(super) type Area<'s> = DrawingArea<SVGBackend<'s>, Shift>;
pub(super) type Drawn = Result<(), Box<dyn std::error::Error>>;

pub(super) const WIDTH: u32 = 1000;
/// Of the margin at the left of words.
pub(super) const LEFT: i32 = 14;
/// Above what is drawn: title, what it shows, legend.
const TOP: u32 = 84;
const LINE: u32 = 16;

/// What stands around a plot.
pub(super) struct Words<'w> {
    /// In large letters.
    pub(super) title: &'w str,
    /// How to read it.
    pub(super) how: &'w str,
    /// Names with their colours.
    pub(super) legend: Vec<(String, Tone)>,
    /// Machine, commit and load, a line each.
    pub(super) caption: &'w [String],
    /// For those who do not see it: all figures.
    pub(super) told: String,
}

/// Draws a sheet with room of that height, and returns the SVG.
pub(super) fn sheet(
    words: &Words<'_>,
    height: u32,
    draw: impl FnOnce(&Area<'_>) -> Drawn,
) -> String {
    let mut svg = String::new();
    let below = LINE * words.caption.len() as u32 + 12;
    let area = SVGBackend::with_string(&mut svg, (WIDTH, TOP + height + below)).into_drawing_area();
    let drawn = on(&area, words, height, draw);
    drop(area);
    // Only a file could fail.
    drawn.expect("a string takes all that is drawn");
    finished(&svg, words)
}

fn on(
    area: &Area<'_>,
    words: &Words<'_>,
    height: u32,
    draw: impl FnOnce(&Area<'_>) -> Drawn,
) -> Drawn {
    area.fill(&PAPER.color())?;
    let place = |y: u32| (LEFT, y as i32);
    area.draw(&Text::new(words.title, place(22), bold(17.0, INK)))?;
    area.draw(&Text::new(words.how, place(43), left(13.0, SOFT)))?;
    let mut x = LEFT;
    for (name, tone) in &words.legend {
        area.draw(&Rectangle::new(
            [(x, 59), (x + 11, 70)],
            tone.color().filled(),
        ))?;
        area.draw(&Text::new(name.as_str(), (x + 17, 65), left(13.0, INK)))?;
        x += 36 + 8 * name.chars().count() as i32;
    }
    let (_, rest) = area.split_vertically(TOP);
    let (middle, _) = rest.split_vertically(height);
    draw(&middle)?;
    for (line, text) in words.caption.iter().enumerate() {
        let y = TOP + height + LINE * line as u32 + 10;
        area.draw(&Text::new(text.as_str(), place(y), left(12.0, SOFT)))?;
    }
    area.present()?;
    Ok(())
}

/// Adds to the library's SVG what it does not write: a name and a description, and the colours of a dark page.
fn finished(svg: &str, words: &Words<'_>) -> String {
    // The library escapes what has a meaning, and leaves what no SVG may hold.
    let svg = without_controls(svg);
    let (begin, rest) = svg.split_once(">\n").unwrap_or((&svg, ""));
    let mut text = begin.to_owned();
    // Writing to a string cannot fail.
    let _ = write!(
        text,
        " role=\"img\" aria-label=\"{title}\">\n<title>{title}</title>\n<desc>{told}</desc>\n<style>\n{style}</style>\n{rest}",
        title = escape(words.title),
        told = escape(&words.told),
        style = tones::style(),
    );
    text
}

/// Letters of about so many pixels: the library makes them smaller than it is told.
fn letters(size: f64, tone: Tone, at: HPos, style: FontStyle) -> TextStyle<'static> {
    let family = FontFamily::Name("system-ui, Segoe UI, DejaVu Sans, Helvetica, Arial, sans-serif");
    let font = FontDesc::new(family, size * 1.24, style);
    let color = tone.color().to_backend_color();
    TextStyle {
        color,
        ..TextStyle::from(font)
    }
    .pos(Pos::new(at, VPos::Center))
}

pub(super) fn left(size: f64, tone: Tone) -> TextStyle<'static> {
    letters(size, tone, HPos::Left, FontStyle::Normal)
}

pub(super) fn right(size: f64, tone: Tone) -> TextStyle<'static> {
    letters(size, tone, HPos::Right, FontStyle::Normal)
}

pub(super) fn bold(size: f64, tone: Tone) -> TextStyle<'static> {
    letters(size, tone, HPos::Left, FontStyle::Bold)
}

/// The colour of sides of which the role matters, and not which one it is.
pub(super) fn tone_of(role: Role) -> Tone {
    match role {
        Role::Engine => tones::ENGINE,
        Role::Peer => tones::PEER,
        Role::Rival => tones::RIVAL,
        Role::Bound => tones::BOUND,
        Role::Volatile => tones::VOLATILE,
        Role::Limit => tones::LIMIT,
    }
}

/// A figure, with about three significant digits.
pub(super) fn duration(ns: f64) -> String {
    match ns {
        _ if ns >= 1e9 => format!("{} s", short(ns / 1e9)),
        _ if ns >= 1e6 => format!("{} ms", short(ns / 1e6)),
        _ if ns >= 1e4 => format!("{} \u{b5}s", short(ns / 1e3)),
        _ => format!("{} ns", short(ns)),
    }
}

/// A mark of an axis of nanoseconds.
pub(super) fn time(ns: f64) -> String {
    match ns {
        _ if ns >= 0.999e9 => format!("{} s", ns / 1e9),
        _ if ns >= 0.999e6 => format!("{} ms", ns / 1e6),
        _ if ns >= 0.999e3 => format!("{} \u{b5}s", ns / 1e3),
        _ => format!("{ns} ns"),
    }
}
