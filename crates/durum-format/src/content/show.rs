//! Contents as text for people: in one line where that is short, else one line for each part.

use std::collections::HashSet;
use std::fmt::{self, Write};

use super::{Content, List, ListKind, Look, Shown, Target, printable};
use crate::types::Strength;

/// The longest line that is made of several parts.
const WIDTH: usize = 100;
/// Spaces of a level.
const INDENT: usize = 4;

impl fmt::Display for Look {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut named = HashSet::new();
        names(&self.content, &mut named);
        let printer = Printer {
            shown: &self.shown,
            named,
            is_key: false,
        };
        let mut out = String::new();
        printer.write(&self.content, 0, 0, &mut out);
        f.write_str(&out)
    }
}

impl Content {
    /// What it is called as the key of a map, in brackets.
    pub(super) fn as_key(&self) -> String {
        let printer = Printer {
            shown: &Shown::new(),
            named: HashSet::new(),
            is_key: true,
        };
        let mut line = Line::of(usize::MAX);
        let _ = printer.inline(self, &mut line);
        line.text
    }
}

/// A number with a mark between each three digits.
fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut out = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

/// A line that may not become longer than some width.
struct Line {
    text: String,
    room: usize,
}

impl Line {
    fn of(room: usize) -> Self {
        Self {
            text: String::new(),
            room,
        }
    }
}

impl Write for Line {
    fn write_str(&mut self, part: &str) -> fmt::Result {
        self.text.push_str(part);
        match self.text.len() <= self.room {
            true => Ok(()),
            false => Err(fmt::Error),
        }
    }
}

struct Printer<'l> {
    shown: &'l Shown,
    /// Names of types that are printed.
    named: HashSet<String>,
    is_key: bool,
}

/// Adds the names of types that are printed for a content.
fn names(content: &Content, found: &mut HashSet<String>) {
    match content {
        Content::Struct { name, fields } | Content::Case { name, fields, .. } => {
            found.insert(name.clone());
            fields.iter().for_each(|(_, it)| names(it, found));
        }
        Content::List(list) => list.elements.iter().for_each(|(_, it)| names(it, found)),
        Content::Map { entries, .. } => entries.iter().for_each(|(key, value)| {
            names(key, found);
            names(value, found);
        }),
        Content::Told { shown, .. } => names(shown, found),
        Content::Pointer { target, .. } => match target {
            Target::Here { content } => names(content, found),
            Target::Elsewhere { type_name, .. } => {
                found.insert(type_name.clone());
            }
            Target::There { .. } | Target::Other(_) => {}
        },
        _ => {}
    }
}

/// A content that has parts, as it is printed: what stands before them, the parts, and what stands behind.
struct Parts<'c> {
    open: String,
    parts: Vec<Part<'c>>,
    close: &'static str,
}

enum Part<'c> {
    Plain(&'c Content),
    Named(String, &'c Content),
    Entry(&'c Content, &'c Content),
    /// So many elements in a row that are alike.
    Run(&'c Content, u64),
    Note(String),
}

impl Printer<'_> {
    /// Writes in several lines what does not fit one. `used` columns of the line are taken.
    fn write(&self, content: &Content, indent: usize, used: usize, out: &mut String) {
        let content = meant(content);
        let mut line = Line::of(WIDTH.saturating_sub(used));
        if self.inline(content, &mut line).is_ok() {
            out.push_str(&line.text);
            return;
        }
        // Where a pointer stands, what it leads to follows in the same line.
        if let Content::Pointer {
            target: Target::Here { content },
            ..
        } = content
        {
            out.push_str("-> ");
            self.write(content, indent, used + 3, out);
            return;
        }
        let Some(Parts { open, parts, close }) = self.parts(content) else {
            let mut line = Line::of(usize::MAX);
            let _ = self.inline(content, &mut line);
            out.push_str(&line.text);
            return;
        };
        out.push_str(&open);
        let inner = indent + INDENT;
        let (are_small, mut column) = (are_small(content), WIDTH);
        for part in parts {
            if let (true, Some(item)) = (are_small, self.small(&part)) {
                column += 1 + item.len();
                if column <= WIDTH {
                    out.push(' ');
                } else {
                    let _ = write!(out, "\n{:inner$}", "");
                    column = inner + item.len();
                }
                out.push_str(&item);
                continue;
            }
            let start = out.len();
            let _ = write!(out, "\n{:inner$}", "");
            let used = |out: &String| out.len() - start - 1;
            match part {
                Part::Plain(content) => self.write(content, inner, used(out), out),
                Part::Named(name, content) => {
                    let _ = write!(out, "{name}: ");
                    self.write(content, inner, used(out), out);
                }
                Part::Entry(key, value) => {
                    self.write(key, inner, used(out), out);
                    out.push_str(": ");
                    self.write(value, inner, used(out), out);
                }
                Part::Run(content, times) => {
                    self.write(content, inner, used(out), out);
                    let _ = write!(out, " × {}", grouped(times));
                }
                Part::Note(note) => {
                    out.push_str(&note);
                    continue;
                }
            }
            out.push(',');
        }
        let _ = write!(out, "\n{:indent$}{close}", "");
    }

    /// One of many elements that share a line.
    fn small(&self, part: &Part<'_>) -> Option<String> {
        let mut item = Line::of(usize::MAX);
        let written = match part {
            Part::Plain(content) => self.inline(content, &mut item),
            Part::Named(name, content) => {
                write!(item, "{name}: ").and_then(|()| self.inline(content, &mut item))
            }
            Part::Run(content, times) => self
                .inline(content, &mut item)
                .and_then(|()| write!(item, " × {}", grouped(*times))),
            Part::Entry(..) | Part::Note(_) => return None,
        };
        written.ok().map(|()| item.text + ",")
    }

    fn inline(&self, content: &Content, line: &mut Line) -> fmt::Result {
        match meant(content) {
            Content::Unsigned(number) => write!(line, "{number}"),
            // What is large may be an address or bits: both are read by their digits in base 16.
            Content::Word(number) if *number > u64::from(u32::MAX) => write!(line, "{number:#x}"),
            Content::Word(number) => write!(line, "{number}"),
            Content::Untyped { size, content } if !matches!(&**content, Content::List(_)) => {
                if !matches!(&**content, Content::Text { .. } | Content::Bytes { .. }) {
                    return self.inline(content, line);
                }
                write!(line, "{} bytes of no type: ", grouped(*size))?;
                self.inline(content, line)
            }
            Content::Signed(number) => write!(line, "{number}"),
            Content::Float(number) => write!(line, "{number:?}"),
            Content::Single(number) => write!(line, "{number:?}"),
            Content::Bool(value) => write!(line, "{value}"),
            Content::Char(char) => write!(line, "{char:?}"),
            Content::Text { text, omitted } => {
                write!(line, "{text:?}")?;
                self.more_bytes(*omitted, line)
            }
            Content::Bytes { bytes, omitted } => {
                let all = bytes.len() as u64 + omitted;
                if bytes.iter().all(|byte| *byte == 0) {
                    let (all, plural) = (grouped(all), if all == 1 { "" } else { "s" });
                    return write!(line, "{all} byte{plural} of zero");
                }
                line.write_str("0x")?;
                for byte in bytes {
                    write!(line, "{byte:02x}")?;
                }
                self.more_bytes(*omitted, line)
            }
            Content::Pointer {
                address,
                strength,
                target,
            } => {
                let arrow = match strength {
                    Strength::Strong => "->",
                    Strength::Weak => "~>",
                };
                write!(line, "{arrow} ")?;
                match target {
                    Target::Here { content } => self.inline(content, line),
                    Target::Elsewhere {
                        start,
                        type_name,
                        part,
                    } => match self.shown.get(start) {
                        Some(path) => write!(line, "{}{}", printable(path), printable(part)),
                        None => {
                            write!(
                                line,
                                "{} at {start:#x}{}",
                                printable(type_name),
                                printable(part)
                            )
                        }
                    },
                    Target::There { way, .. } => {
                        write!(line, "{}: {}", printable(&way.pool), printable(&way.path))
                    }
                    Target::Other(what) => write!(line, "{address:#x} ({})", printable(what)),
                }
            }
            // Where the type is not to be seen anywhere else, it is the only thing to be known of the pointer.
            Content::Null { to: Some(to) } if !self.named.contains(to) && !self.is_key => {
                write!(line, "null (-> {})", printable(to))
            }
            Content::Null { .. } => line.write_str("null"),
            Content::Nothing => line.write_str("None"),
            Content::Gone => line.write_str("(gone)"),
            Content::Volatile => line.write_str("(volatile)"),
            Content::Cut => line.write_str("…"),
            Content::Invalid(why) => write!(line, "(invalid: {why})"),
            Content::Hidden => line.write_str("(hidden)"),
            content => match self.parts(content) {
                Some(parts) => self.inline_parts(&parts, line),
                None => Ok(()),
            },
        }
    }

    fn more_bytes(&self, omitted: u64, line: &mut Line) -> fmt::Result {
        match omitted {
            0 => Ok(()),
            1 => line.write_str(" … 1 more byte"),
            omitted => write!(line, " … {} more bytes", grouped(omitted)),
        }
    }

    fn inline_parts(&self, parts: &Parts<'_>, line: &mut Line) -> fmt::Result {
        line.write_str(&parts.open)?;
        let space = if parts.open.ends_with('{') && !parts.parts.is_empty() {
            " "
        } else {
            ""
        };
        line.write_str(space)?;
        for (at, part) in parts.parts.iter().enumerate() {
            if at > 0 {
                line.write_str(", ")?;
            }
            match part {
                Part::Plain(content) => self.inline(content, line)?,
                Part::Named(name, content) => {
                    write!(line, "{name}: ")?;
                    self.inline(content, line)?;
                }
                Part::Entry(key, value) => {
                    self.inline(key, line)?;
                    line.write_str(": ")?;
                    self.inline(value, line)?;
                }
                Part::Run(content, times) => {
                    self.inline(content, line)?;
                    write!(line, " × {}", grouped(*times))?;
                }
                Part::Note(note) => line.write_str(note)?,
            }
        }
        line.write_str(space)?;
        line.write_str(parts.close)
    }

    fn parts<'c>(&self, content: &'c Content) -> Option<Parts<'c>> {
        Some(match content {
            // A tuple.
            Content::Struct { name, fields } if name.starts_with('(') => Parts {
                open: "(".to_owned(),
                parts: fields.iter().map(|(_, it)| Part::Plain(it)).collect(),
                close: ")",
            },
            Content::Struct { name, fields } => of_fields(printable(name), fields),
            Content::Case { name, case, fields } if name.starts_with("Option<") => {
                of_fields(printable(case), fields)
            }
            Content::Case { name, case, fields } => {
                of_fields(format!("{}::{}", printable(name), printable(case)), fields)
            }
            Content::List(list) => of_list(list),
            Content::Untyped { size, content } => match &**content {
                Content::List(list) => Parts {
                    open: format!("{} bytes of no type, as 8-byte numbers [", grouped(*size)),
                    ..of_list(list)
                },
                _ => return None,
            },
            Content::Map { count, entries } => {
                let mut parts: Vec<_> = entries.iter().map(|(k, v)| Part::Entry(k, v)).collect();
                parts.extend(rest(*count, entries.len() as u64));
                Parts {
                    open: format!("map of {} {{", grouped(*count)),
                    parts,
                    close: "}",
                }
            }
            _ => return None,
        })
    }
}

/// The one object of a program of C++ instead of the list that it is in.
fn meant(content: &Content) -> &Content {
    match content {
        Content::Told { shown, .. } => meant(shown),
        Content::List(List {
            kind: ListKind::Objects,
            elements,
            is_cut: false,
            ..
        }) => match &elements[..] {
            [(_, only)] => meant(only),
            _ => content,
        },
        _ => content,
    }
}

/// Whether it is a row of numbers and the like, of which many are read at a glance.
fn are_small(content: &Content) -> bool {
    let list = match content {
        Content::List(list) => list,
        Content::Untyped { content, .. } => return are_small(content),
        _ => return false,
    };
    list.elements.iter().all(|(_, element)| is_small(element))
}

fn is_small(element: &Content) -> bool {
    match element {
        Content::Unsigned(_)
        | Content::Word(_)
        | Content::Signed(_)
        | Content::Float(_)
        | Content::Single(_)
        | Content::Bool(_)
        | Content::Char(_)
        | Content::Nothing
        | Content::Hidden => true,
        Content::Case { fields, .. } => fields.is_empty(),
        _ => false,
    }
}

fn rest<'c>(count: u64, shown: u64) -> Option<Part<'c>> {
    let more = count.checked_sub(shown).filter(|more| *more > 0)?;
    Some(Part::Note(format!("… {} more", grouped(more))))
}

fn of_fields<'c>(name: String, fields: &'c [(String, Content)]) -> Parts<'c> {
    let is_tuple = !fields.is_empty()
        && fields
            .iter()
            .enumerate()
            .all(|(at, (name, _))| *name == at.to_string());
    if is_tuple {
        return Parts {
            open: name + "(",
            parts: fields.iter().map(|(_, it)| Part::Plain(it)).collect(),
            close: ")",
        };
    }
    if fields.is_empty() {
        return Parts {
            open: name,
            parts: Vec::new(),
            close: "",
        };
    }
    let named = fields.iter();
    let named = named.map(|(name, it)| Part::Named(printable(name), it));
    Parts {
        open: name + " {",
        parts: named.collect(),
        close: "}",
    }
}

/// Elements one by one, and those that are small and alike with how many there are in a row.
fn in_runs(elements: &[(u64, Content)]) -> Vec<Part<'_>> {
    let runs = elements.chunk_by(|(_, one), (_, next)| one == next && is_small(one));
    let parts = runs.flat_map(|run| match run {
        [(_, first), _, _, ..] => vec![Part::Run(first, run.len() as u64)],
        few => few.iter().map(|(_, it)| Part::Plain(it)).collect(),
    });
    parts.collect()
}

fn of_list(list: &List) -> Parts<'_> {
    let count = grouped(list.count);
    let (is_sparse, filled) = (list.vacant > 0 || list.is_at_least, grouped(list.filled));
    let at_least = if list.is_at_least { "at least " } else { "" };
    let elements = if list.count == 1 {
        "element"
    } else {
        "elements"
    };
    // Where all of them are there to be seen, nobody has to be told how many there are.
    let mut open = match &list.kind {
        ListKind::Array | ListKind::Vector | ListKind::Row => match (is_sparse, list.is_cut) {
            (true, _) => format!("{count} {elements}, {at_least}{filled} filled"),
            (false, true) => format!("{count} {elements}"),
            (false, false) => String::new(),
        },
        ListKind::Objects if list.count == 0 => "no object yet".to_owned(),
        ListKind::Objects => format!("{count} objects that the program has put in the pool"),
        ListKind::Chain { by, .. } if list.is_cut => {
            format!("chain of {at_least}{count} by {}", printable(by))
        }
        ListKind::Chain { by, .. } => format!("chain by {}", printable(by)),
    };
    if !open.is_empty() {
        open.push(' ');
    }
    let shown = list.elements.len() as u64;
    // Elements with vacant places between them go by their numbers.
    let is_numbered = list
        .elements
        .iter()
        .zip(0..)
        .any(|((at, _), index)| *at != index || list.kind == ListKind::Objects);
    open.push('[');
    let elements = list.elements.iter();
    let mut parts: Vec<_> = match is_numbered {
        true => elements
            .map(|(at, it)| Part::Named(at.to_string(), it))
            .collect(),
        false => in_runs(&list.elements),
    };
    let more = list.filled.saturating_sub(shown);
    let which = match &list.kind {
        ListKind::Chain { .. } => "",
        _ if is_sparse => " filled",
        _ => "",
    };
    if list.is_cut {
        parts.push(Part::Note(match more {
            0 => "… more".to_owned(),
            more => format!("… {at_least}{} more{which}", grouped(more)),
        }));
    } else if !is_sparse {
        // Elements without bytes are alike, and not shown.
        parts.extend(rest(list.count, shown));
    }
    if let ListKind::Chain { end: Some(end), .. } = &list.kind {
        parts.push(Part::Plain(end));
    }
    Parts {
        open,
        parts,
        close: "]",
    }
}
