//! How a type differs from what it was: field by field, with the way to each from the root.

use std::collections::{HashSet, VecDeque};
use std::fmt;

use super::descriptor::Descriptor;
use super::tree::{Case, Count, Field, Strength, Type, Variants};

/// The most differences that are told one by one.
pub const DIFFERENCES_MAX: usize = 32;

/// What differs between two types.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Differences {
    /// In the order in which they are found: what is nearer to the root first.
    pub all: Vec<Difference>,
    /// How many there are besides.
    pub more: usize,
}

/// A place where a type differs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Difference {
    /// The way from the root: fields behind `.`, elements as `[]`, what a pointer leads to behind `->`, and what a case
    /// of several has behind its name in parentheses.
    pub path: String,
    /// What is different there.
    pub what: Change,
}

/// A difference.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Change {
    /// A field or case that was not there.
    Added(String),
    /// A field or case that is not there any more.
    Removed(String),
    /// Another type, place, size or name.
    Changed {
        /// What it was.
        from: String,
        /// What it is.
        to: String,
    },
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // What a pointer leads to, itself.
        match self.path.strip_suffix("->") {
            Some(pointer) => write!(f, "*{pointer}: ")?,
            None => write!(f, "{}: ", self.path)?,
        }
        match &self.what {
            Change::Added(what) => write!(f, "+ {what}"),
            Change::Removed(what) => write!(f, "- {what}"),
            Change::Changed { from, to } => write!(f, "{from}, now {to}"),
        }
    }
}

impl fmt::Display for Differences {
    /// One behind the other.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, difference) in self.all.iter().enumerate() {
            let between = if index > 0 { "; " } else { "" };
            write!(f, "{between}{difference}")?;
        }
        match self.more {
            0 => Ok(()),
            more => write!(f, "; and {more} more"),
        }
    }
}

/// How a type differs from what it was. Compared are pairs of types along the ways from the root, not names.
pub fn differences(was: &Descriptor, is: &Descriptor) -> Differences {
    let mut comparison = Comparison {
        was,
        is,
        found: Differences::default(),
        known: HashSet::from([(0, 0)]),
        waiting: VecDeque::from([(0, 0, is.title().to_owned())]),
    };
    while let Some((old, new, path)) = comparison.waiting.pop_front() {
        if let (Some(old), Some(new)) = (was.line(old), is.line(new)) {
            comparison.types(old, new, &path);
        }
    }
    comparison.found
}

struct Comparison<'d> {
    was: &'d Descriptor,
    is: &'d Descriptor,
    found: Differences,
    /// Lines of both that were compared with each other, or will be.
    known: HashSet<(usize, usize)>,
    waiting: VecDeque<(usize, usize, String)>,
}

impl Comparison<'_> {
    fn note(&mut self, path: &str, what: Change) {
        match self.found.all.len() < DIFFERENCES_MAX {
            true => self.found.all.push(Difference {
                path: path.to_owned(),
                what,
            }),
            false => self.found.more += 1,
        }
    }

    fn changed(&mut self, path: &str, from: impl fmt::Display, to: impl fmt::Display) {
        let (from, to) = (from.to_string(), to.to_string());
        self.note(path, Change::Changed { from, to });
    }

    fn types(&mut self, old: &Type<usize>, new: &Type<usize>, path: &str) {
        match (old, new) {
            (Type::Struct(old), Type::Struct(new)) => {
                let before = self.count();
                if old.name != new.name {
                    self.changed(path, &old.name, &new.name);
                }
                self.fields(&old.fields, &new.fields, path);
                if self.count() == before && (old.size, old.align) != (new.size, new.align) {
                    self.changed(
                        path,
                        layout(old.size, old.align),
                        layout(new.size, new.align),
                    );
                }
            }
            (Type::Variants(old), Type::Variants(new)) => self.variants(old, new, path),
            (
                Type::Array { element, count },
                Type::Array {
                    element: new_element,
                    count: new_count,
                },
            ) => {
                if count != new_count {
                    self.changed(path, self.was.short(old), self.is.short(new));
                }
                self.types(element, new_element, &format!("{path}[]"));
            }
            (
                Type::Pointer {
                    strength,
                    target: Some(target),
                },
                Type::Pointer {
                    strength: new_strength,
                    target: Some(new_target),
                },
            ) => {
                if strength != new_strength {
                    self.changed(path, self.was.short(old), self.is.short(new));
                }
                let pair = (*target, *new_target);
                if self.known.insert(pair) {
                    self.waiting
                        .push_back((pair.0, pair.1, format!("{path}->")));
                }
            }
            _ if old == new => {}
            _ => self.changed(path, self.was.short(old), self.is.short(new)),
        }
    }

    fn fields(&mut self, old: &[Field<usize>], new: &[Field<usize>], path: &str) {
        let before = self.count();
        let mut moved = Vec::new();
        for field in old {
            match new.iter().find(|other| other.name == field.name) {
                Some(other) => {
                    self.types(&field.ty, &other.ty, &joined(path, &field.name));
                    if field.offset != other.offset {
                        moved.push((field, other.offset));
                    }
                }
                None => self.note(path, Change::Removed(self.was.named(field))),
            }
        }
        for field in new {
            if old.iter().all(|other| other.name != field.name) {
                self.note(path, Change::Added(self.is.named(field)));
            }
        }
        // Where fields have come, gone or grown, the others move; that says nothing new.
        if self.count() == before {
            for (field, offset) in moved {
                let path = joined(path, &field.name);
                self.changed(
                    &path,
                    format!("at byte {}", field.offset),
                    format!("at {offset}"),
                );
            }
        }
    }

    fn variants(&mut self, old: &Variants<usize>, new: &Variants<usize>, path: &str) {
        let before = self.count();
        if old.name != new.name {
            self.changed(path, &old.name, &new.name);
        }
        for case in &old.cases {
            match new.cases.iter().find(|other| other.name == case.name) {
                Some(other) => {
                    let path = format!("{path}({})", case.name);
                    if case.discriminant != other.discriminant {
                        self.changed(&path, case.discriminant, other.discriminant);
                    }
                    self.fields(&case.fields, &other.fields, &path);
                }
                None => self.note(path, Change::Removed(called(case))),
            }
        }
        for case in &new.cases {
            if old.cases.iter().all(|other| other.name != case.name) {
                self.note(path, Change::Added(called(case)));
            }
        }
        let tag = |of: &Variants<usize>| {
            let (size, align) = (of.size, of.align);
            let (offset, width) = (of.tag_offset, of.tag_width);
            format!(
                "{}, its tag of {width} at byte {offset}",
                layout(size, align)
            )
        };
        if self.count() == before && tag(old) != tag(new) {
            self.changed(path, tag(old), tag(new));
        }
    }

    fn count(&self) -> usize {
        self.found.all.len() + self.found.more
    }
}

fn joined(path: &str, name: &str) -> String {
    match path.ends_with("->") {
        true => format!("{path}{name}"),
        false => format!("{path}.{name}"),
    }
}

fn layout(size: u64, align: u64) -> String {
    format!("{size} bytes aligned to {align}")
}

fn called(case: &Case<usize>) -> String {
    format!("case {} = {}", case.name, case.discriminant)
}

impl Descriptor {
    fn named(&self, field: &Field<usize>) -> String {
        format!("{}: {}", field.name, self.short(&field.ty))
    }

    /// A type in a few words; what it has in it is not told.
    fn short(&self, ty: &Type<usize>) -> String {
        match ty {
            Type::Primitive(primitive) => primitive.name().to_owned(),
            Type::Struct(named) => named.name.clone(),
            Type::Variants(named) => named.name.clone(),
            Type::Array { element, count } => match count {
                Count::Fixed(count) => format!("[{}; {count}]", self.short(element)),
                Count::Tail => format!("[{}; to the end]", self.short(element)),
                Count::Field(name) => format!("[{}; as {name} says]", self.short(element)),
            },
            Type::Pointer { strength, target } => {
                let to = target.and_then(|line| self.line(line));
                let to = to.map_or("anything".to_owned(), |ty| match ty.name() {
                    Some(name) => name.to_owned(),
                    None => "a value".to_owned(),
                });
                match strength {
                    Strength::Strong => format!("pointer to {to}"),
                    Strength::Weak => format!("weak pointer to {to}"),
                }
            }
            Type::Opaque { size, .. } => format!("{size} bytes without pointers"),
            Type::Volatile { size, .. } => format!("{size} volatile bytes"),
        }
    }
}
