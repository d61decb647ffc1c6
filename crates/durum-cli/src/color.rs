//! Colours, where people read.
//!
//! Whether a stream has them is decided once: by `--color`, else by NO_COLOR, CLICOLOR_FORCE and CLICOLOR, else by
//! whether it is a terminal. JSON, and data that other programs read, never have any.

use std::ffi::OsString;
use std::fmt::{self, Display};
use std::io::{stderr, stdout};
use std::sync::atomic::{AtomicBool, Ordering};

use anstream::{AutoStream, ColorChoice};
use anstyle::{AnsiColor, Style};
use clap::ValueEnum;

/// What stands above columns and before facts.
pub(crate) const HEADING: Style = Style::new().bold();
/// What is as it should be.
pub(crate) const GOOD: Style = AnsiColor::Green.on_default();
/// What somebody should look at.
pub(crate) const WARNING: Style = AnsiColor::Yellow.on_default().bold();
/// What went wrong.
pub(crate) const BAD: Style = AnsiColor::Red.on_default().bold();
/// What can be passed over.
pub(crate) const ASIDE: Style = Style::new().dimmed();

static OUT: AtomicBool = AtomicBool::new(false);
static ERR: AtomicBool = AtomicBool::new(false);

/// Decides for both streams; before this there are no colours.
pub(crate) fn choose(asked: clap::ColorChoice) {
    let choice = match asked {
        clap::ColorChoice::Auto => ColorChoice::Auto,
        clap::ColorChoice::Always => ColorChoice::Always,
        clap::ColorChoice::Never => ColorChoice::Never,
    };
    // Help and messages about arguments ask for it.
    choice.write_global();
    let is_on = |choice| choice != ColorChoice::Never;
    OUT.store(is_on(AutoStream::choice(&stdout())), Ordering::Relaxed);
    ERR.store(is_on(AutoStream::choice(&stderr())), Ordering::Relaxed);
}

/// What `--color` says among arguments that were not understood.
pub(crate) fn asked_in(arguments: &[OsString]) -> clap::ColorChoice {
    let mut arguments = arguments
        .iter()
        .skip(1)
        .map(|argument| argument.to_string_lossy())
        .take_while(|argument| argument != "--");
    let mut asked = None;
    while let Some(argument) = arguments.next() {
        match argument.strip_prefix("--color") {
            Some("") => asked = arguments.next(),
            Some(rest) => asked = rest.strip_prefix('=').map(|value| value.to_owned().into()),
            None => {}
        }
    }
    let asked = asked.and_then(|asked| clap::ColorChoice::from_str(&asked, false).ok());
    asked.unwrap_or(clap::ColorChoice::Auto)
}

/// Whether the output has colours.
pub(crate) fn is_on() -> bool {
    OUT.load(Ordering::Relaxed)
}

/// A text with its style.
pub(crate) struct Painted<T> {
    text: T,
    style: Style,
}

impl<T: Display> Display for Painted<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // The text keeps the width that it is printed with.
        write!(f, "{}", self.style.render())?;
        self.text.fmt(f)?;
        write!(f, "{}", self.style.render_reset())
    }
}

/// For the output.
pub(crate) fn out<T: Display>(style: Style, text: T) -> Painted<T> {
    painted(is_on(), style, text)
}

/// For messages.
pub(crate) fn err<T: Display>(style: Style, text: T) -> Painted<T> {
    painted(ERR.load(Ordering::Relaxed), style, text)
}

fn painted<T: Display>(is_on: bool, style: Style, text: T) -> Painted<T> {
    let style = if is_on { style } else { Style::new() };
    Painted { text, style }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_asked_for_is_found_among_arguments_that_are_not_understood() {
        let asked = |line: &str| {
            let arguments: Vec<OsString> = line.split(' ').map(OsString::from).collect();
            asked_in(&arguments)
        };
        assert_eq!(
            asked("durum --color always --what"),
            clap::ColorChoice::Always
        );
        assert_eq!(
            asked("durum ls --color=never --what"),
            clap::ColorChoice::Never
        );
        assert_eq!(
            asked("durum --what -- --color always"),
            clap::ColorChoice::Auto
        );
        for line in [
            "durum",
            "durum --color",
            "durum --color=red",
            "durum --colors always",
        ] {
            assert_eq!(asked(line), clap::ColorChoice::Auto, "{line}");
        }
    }

    #[test]
    fn a_painted_text_keeps_its_width() {
        assert_eq!(format!("[{:<4}]", painted(false, BAD, "a")), "[a   ]");
        assert_eq!(
            format!("[{:>4}]", painted(true, ASIDE, "a")),
            "[\u{1b}[2m   a\u{1b}[0m]"
        );
    }
}
