//! What plots are drawn with.

use std::fmt::Write;

use crate::side::Role;

/// SVG text under construction. Writing to a string cannot fail.
pub(super) struct Svg(String);

impl Svg {
    /// A white page.
    pub(super) fn new(width: f64, height: f64) -> Svg {
        let mut svg = Svg(format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width} {height}\" width=\"{width}\" height=\"{height}\" \
             font-family=\"DejaVu Sans, Arial, sans-serif\" font-size=\"11\">\n"
        ));
        svg.rect(0.0, 0.0, width, height, "#ffffff");
        svg
    }

    /// The whole file.
    pub(super) fn finish(mut self) -> String {
        self.0.push_str("</svg>\n");
        self.0
    }

    pub(super) fn rect(&mut self, x: f64, y: f64, width: f64, height: f64, fill: &str) {
        let _ = writeln!(
            self.0,
            "<rect x=\"{x:.1}\" y=\"{y:.1}\" width=\"{width:.1}\" height=\"{height:.1}\" fill=\"{fill}\"/>"
        );
    }

    pub(super) fn line(&mut self, x1: f64, y1: f64, x2: f64, y2: f64, color: &str, width: f64) {
        let _ = writeln!(
            self.0,
            "<line x1=\"{x1:.1}\" y1=\"{y1:.1}\" x2=\"{x2:.1}\" y2=\"{y2:.1}\" stroke=\"{color}\" stroke-width=\"{width}\"/>"
        );
    }

    pub(super) fn text(
        &mut self,
        x: f64,
        y: f64,
        anchor: &str,
        color: &str,
        style: &str,
        text: &str,
    ) {
        let _ = writeln!(
            self.0,
            "<text x=\"{x:.1}\" y=\"{y:.1}\" text-anchor=\"{anchor}\" fill=\"{color}\" {style}>{text}</text>"
        );
    }

    /// Limits are hollow, peers square, so that the plot can be read without colours.
    pub(super) fn mark(&mut self, role: Role, x: f64, y: f64, color: &str) {
        let _ = match role {
            Role::Peer | Role::Rival => {
                let (x, y) = (x - 4.5, y - 4.5);
                writeln!(
                    self.0,
                    "<rect x=\"{x:.1}\" y=\"{y:.1}\" width=\"9\" height=\"9\" fill=\"{color}\"/>"
                )
            }
            Role::Engine => writeln!(
                self.0,
                "<circle cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"5.2\" fill=\"{color}\"/>"
            ),
            Role::Limit | Role::Bound | Role::Volatile => writeln!(
                self.0,
                "<circle cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"4\" fill=\"#ffffff\" stroke=\"{color}\" stroke-width=\"2\"/>"
            ),
        };
    }
}
