//! Contents in colours. Only what stands between characters is added: it is the printed text that is painted, not the
//! values, so that a line is the same with colours and without.

use std::io::{self, Write};
use std::ops::Range;

use anstyle::{AnsiColor, Style};

use crate::color::{ASIDE, BAD};

const TYPE: Style = AnsiColor::Cyan.on_default();
const NAME: Style = AnsiColor::Blue.on_default();
const TEXT: Style = AnsiColor::Green.on_default();
const NUMBER: Style = AnsiColor::Yellow.on_default();

/// What stands in brackets where a value is missing.
const NOTES: [&str; 5] = [
    "(hidden)",
    "(gone)",
    "(volatile)",
    "(cycle)",
    "(not followed)",
];
/// Before addresses.
const BEFORE_ADDRESSES: [&str; 4] = ["-> ", "~> ", " at ", " to "];

/// Paints each line that is written and hands it on. The last one goes with [`Write::flush`] if it has no end.
pub(super) struct Highlighted<'o> {
    out: &'o mut dyn Write,
    line: Vec<u8>,
}

impl<'o> Highlighted<'o> {
    pub(super) fn new(out: &'o mut dyn Write) -> Self {
        let line = Vec::new();
        Self { out, line }
    }

    fn hand_on(&mut self) -> io::Result<()> {
        let line = std::mem::take(&mut self.line);
        match std::str::from_utf8(&line) {
            Ok(line) => self.out.write_all(painted(line).as_bytes()),
            Err(_) => self.out.write_all(&line),
        }
    }
}

impl Write for Highlighted<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        for part in bytes.split_inclusive(|byte| *byte == b'\n') {
            self.line.extend_from_slice(part);
            if part.ends_with(b"\n") {
                self.hand_on()?;
            }
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.hand_on()?;
        self.out.flush()
    }
}

/// A line with its colours.
fn painted(line: &str) -> String {
    let mut out = String::with_capacity(line.len() * 2);
    let mut at = 0;
    while at < line.len() {
        let (range, style) = token(line, at);
        let text = &line[range.clone()];
        match style {
            Some(style) => {
                out += &format!("{}{text}{}", style.render(), style.render_reset());
            }
            None => out += text,
        }
        at = range.end;
    }
    out
}

/// What begins here, which is one character at least.
fn token(line: &str, at: usize) -> (Range<usize>, Option<Style>) {
    let rest = &line[at..];
    let Some(first) = rest.chars().next() else {
        return (at..line.len(), None);
    };
    let before = line[..at].chars().next_back();
    let is_inside = before.is_some_and(|before| before.is_alphanumeric() || before == '_');
    let (length, style) = match first {
        '"' => (quoted(rest), Some(TEXT)),
        // An apostrophe has a letter before it.
        '\'' if !is_inside => (quoted(rest), Some(TEXT)),
        '(' => match NOTES.iter().find(|note| rest.starts_with(**note)) {
            Some(note) => (Some(note.len()), Some(ASIDE)),
            None => (None, None),
        },
        '-' if !is_inside && rest[1..].starts_with(|next: char| next.is_ascii_digit()) => {
            (number(&rest[1..]).map(|length| length + 1), Some(NUMBER))
        }
        _ if first.is_ascii_digit() && !is_inside => {
            let is_address = at == 0 || BEFORE_ADDRESSES.iter().any(|it| line[..at].ends_with(it));
            let style = match is_address && rest.starts_with("0x") {
                true => ASIDE,
                false => NUMBER,
            };
            (number(rest), Some(style))
        }
        _ if (first.is_alphabetic() || first == '_') && !is_inside => {
            let (length, style) = word(rest);
            // Behind a number stands its unit.
            let mut before = line[..at].chars().rev();
            let is_unit =
                before.next() == Some(' ') && before.next().is_some_and(|it| it.is_ascii_digit());
            (length, style.filter(|style| !is_unit || *style != NAME))
        }
        _ => (None, None),
    };
    match length {
        Some(length) => (at..at + length, style),
        None => (at..at + first.len_utf8(), None),
    }
}

/// The length of a text in quotes; `None` where its end is missing.
fn quoted(text: &str) -> Option<usize> {
    let mut characters = text.char_indices();
    let (_, quote) = characters.next()?;
    let mut is_escaped = false;
    for (at, character) in characters {
        match character {
            _ if is_escaped => is_escaped = false,
            '\\' => is_escaped = true,
            _ if character == quote => return Some(at + 1),
            _ => {}
        }
    }
    None
}

/// The length of a number: `20,000`, `0x1f`, `1.5e-7`.
fn number(text: &str) -> Option<usize> {
    let bytes = text.as_bytes();
    let is_digit = |at: usize| bytes.get(at).is_some_and(u8::is_ascii_digit);
    let is_hex = text.starts_with("0x");
    let mut at = 0;
    while let Some(byte) = bytes.get(at) {
        let belongs = match byte {
            b'.' | b',' => is_digit(at + 1),
            b'-' => !is_hex && at > 0 && bytes[at - 1] == b'e' && is_digit(at + 1),
            byte => byte.is_ascii_alphanumeric(),
        };
        if !belongs {
            break;
        }
        at += 1;
    }
    Some(at)
}

/// A name and what it is: that of a type stands before its parts, that of a field before a colon.
fn word(text: &str) -> (Option<usize>, Option<Style>) {
    let is_part = |character: char| character.is_alphanumeric() || character == '_';
    let mut length = text.find(|it| !is_part(it)).unwrap_or(text.len());
    let mut is_path = false;
    loop {
        let rest = &text[length..];
        if let Some(next) = rest
            .strip_prefix("::")
            .filter(|next| next.starts_with(is_part))
        {
            is_path = true;
            length += 2 + next.find(|it| !is_part(it)).unwrap_or(next.len());
        } else if let Some(arguments) = bracketed(rest) {
            is_path = true;
            length += arguments;
        } else {
            break;
        }
    }
    let (word, rest) = text.split_at(length);
    let style = match word {
        "null" | "None" => Some(ASIDE),
        "true" | "false" => Some(NUMBER),
        "invalid" if rest.starts_with(": ") => Some(BAD),
        _ if rest.starts_with(": ") => Some(NAME),
        _ if rest.starts_with(" {") || rest.starts_with('(') => Some(TYPE),
        _ if rest.starts_with(" at 0x") || is_path => Some(TYPE),
        _ => None,
    };
    (Some(length), style)
}

/// The length of arguments in angle brackets.
fn bracketed(text: &str) -> Option<usize> {
    if !text.starts_with('<') {
        return None;
    }
    let mut depth = 0;
    for (at, character) in text.char_indices() {
        match character {
            '<' => depth += 1,
            '>' if depth == 1 => return Some(at + 1),
            '>' => depth -= 1,
            '"' => return None,
            _ => {}
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The line with the colours as letters in braces.
    fn marked(line: &str) -> String {
        let mut text = painted(line);
        for (style, letter) in [
            (TYPE, 'T'),
            (NAME, 'N'),
            (TEXT, 'S'),
            (NUMBER, '#'),
            (ASIDE, '-'),
            (BAD, '!'),
        ] {
            text = text.replace(&style.render().to_string(), &format!("{{{letter}"));
        }
        text.replace(&Style::new().bold().render_reset().to_string(), "}")
    }

    #[test]
    fn names_types_and_values_are_told_apart() {
        for (line, expected) in [
            (
                "root: Queue { tasks: map of 20,000 { 2203: Task { name: \"job \\\"7\\\": {\", worker: None } } }",
                "{Nroot}: {TQueue} { {Ntasks}: map of {#20,000} { {#2203}: {TTask} { {Nname}: {S\"job \\\"7\\\": {\"}, \
                 {Nworker}: {-None} } } }",
            ),
            (
                "    state: State::Busy(-1.5e-7, 'x', true), at: -> durum::map<int, std::less<void> > at 0x20aec4c43040",
                "    {Nstate}: {TState::Busy}({#-1.5e-7}, {S'x'}, {#true}), {Nat}: -> {Tdurum::map<int, std::less<void> >} at \
                 {-0x20aec4c43040}",
            ),
            (
                "raw: 0x00ff, next: -> 0x2000 (free memory), gone: ~> (gone), it: (invalid: the tag's value is 7)",
                "{Nraw}: {#0x00ff}, {Nnext}: -> {-0x2000} (free memory), {Ngone}: ~> {-(gone)}, {Nit}: ({!invalid}: the tag's value \
                 is {#7})",
            ),
            (
                "0x20aec4c43040, 64 B: word { }",
                "{-0x20aec4c43040}, {#64} B: {Tword} { }",
            ),
        ] {
            assert_eq!(marked(line), expected);
        }
    }

    #[test]
    fn without_its_colours_a_line_is_what_it_was() {
        let pieces = [
            "\"", "'", "\\", "(", ")", "{", "}", "<", ">", "::", ": ", " ", "-", "->", "0x", "7",
            ",", ".", "e", "Ä", "…", "a", "(gone)", "null", "\n",
        ];
        let mut state = 7_u64;
        for _ in 0..20_000 {
            let mut line = String::new();
            for _ in 0..12 {
                state = state
                    .wrapping_mul(6_364_136_223_846_793_005)
                    .wrapping_add(1);
                line += pieces[(state >> 33) as usize % pieces.len()];
            }
            let mut out = Vec::new();
            let mut highlighted = Highlighted::new(&mut out);
            highlighted.write_all(line.as_bytes()).unwrap();
            highlighted.flush().unwrap();
            let out = String::from_utf8(out).unwrap();
            assert_eq!(anstream::adapter::strip_str(&out).to_string(), line);
        }
    }
}
