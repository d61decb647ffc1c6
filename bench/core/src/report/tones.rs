//! The colours of plots, each for a light and for a dark page.
//!
//! Plots are drawn in the light ones. A style sheet in each of them says what becomes of these on a dark page: a colour
//! that stands at an element counts for less than one in a style sheet.

use plotters::style::RGBColor;

/// A colour.
#[derive(Clone, Copy, Debug)]
pub(super) struct Tone {
    light: (u8, u8, u8),
    dark: &'static str,
}

const fn tone(light: (u8, u8, u8), dark: &'static str) -> Tone {
    Tone { light, dark }
}

pub(super) const PAPER: Tone = tone((0xff, 0xff, 0xff), "#0d1117");
pub(super) const INK: Tone = tone((0x1b, 0x1f, 0x24), "#e6edf3");
pub(super) const SOFT: Tone = tone((0x59, 0x63, 0x6e), "#9aa4af");
pub(super) const GRID: Tone = tone((0xe4, 0xe8, 0xec), "#252c35");
/// Of limits, which nothing else looks like.
pub(super) const LIMIT: Tone = tone((0xc6, 0x28, 0x28), "#ff6b68");
pub(super) const ENGINE: Tone = tone((0x2a, 0x6f, 0xc9), "#4a90e8");
pub(super) const PEER: Tone = tone((0xdd, 0x6b, 0x33), "#e27a45");
pub(super) const RIVAL: Tone = tone((0x1a, 0x9c, 0x73), "#27a981");
pub(super) const BOUND: Tone = tone((0x7a, 0x5c, 0xc4), "#957ae0");
pub(super) const VOLATILE: Tone = tone((0xb4, 0xbc, 0xc5), "#57606a");

/// Of lines that have to be told from each other; the first ones are told best.
pub(super) const LINES: [Tone; 8] = [
    ENGINE,
    PEER,
    RIVAL,
    BOUND,
    tone((0x8a, 0x63, 0x00), "#d4a72c"),
    tone((0xb8, 0x3b, 0x8c), "#e38cc3"),
    tone((0x0e, 0x7c, 0x92), "#4cc2d6"),
    tone((0x6e, 0x4b, 0x32), "#c69c80"),
];

impl Tone {
    /// What it is drawn in.
    pub(super) fn color(self) -> RGBColor {
        let (red, green, blue) = self.light;
        RGBColor(red, green, blue)
    }

    /// As the library writes it.
    fn written(self) -> String {
        let (red, green, blue) = self.light;
        format!("#{red:02X}{green:02X}{blue:02X}")
    }
}

fn all() -> impl Iterator<Item = Tone> {
    let named = [PAPER, INK, SOFT, GRID, LIMIT, VOLATILE];
    named.into_iter().chain(LINES)
}

/// The style sheet of a plot.
pub(super) fn style() -> String {
    let mut style = "@media (prefers-color-scheme: dark) {\n".to_owned();
    for tone in all() {
        let (light, dark) = (tone.written(), tone.dark);
        style += &format!(
            "[fill=\"{light}\"] {{ fill: {dark} }} [stroke=\"{light}\"] {{ stroke: {dark} }}\n"
        );
    }
    style + "}\n"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_colour_has_its_own_on_a_dark_page() {
        let mut light: Vec<String> = all().map(Tone::written).collect();
        let mut dark: Vec<&str> = all().map(|tone| tone.dark).collect();
        let count = light.len();
        for colours in [&mut light.iter().map(String::as_str).collect(), &mut dark] {
            let colours: &mut Vec<&str> = colours;
            colours.sort_unstable();
            colours.dedup();
            assert_eq!(colours.len(), count);
        }
        light.dedup();
        assert_eq!(light.len(), count);
    }
}
