//! How a type differs from what it was: field by field, with the way to each from the root.

use std::collections::{HashMap, HashSet, VecDeque};
use std::fmt;

use super::descriptor::Descriptor;
use super::option::{BYTES, WereBytes, value_in_bytes};
use super::tree::{Case, Count, Field, Strength, Type, Variants};

/// The most differences that are told one by one.
pub const DIFFERENCES_MAX: usize = 32;

/// The most types, fields and cases that are compared. Programs that nobody believes have registered the texts, in
/// which there can be as many pairs as the product of their lines.
const STEPS_MAX: usize = 1 << 16;

/// The longest way from the root, in bytes, that is followed.
const PATH_MAX: usize = 512;

/// What differs between two types.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Differences {
    /// In the order in which they are found: what is nearer to the root first.
    pub all: Vec<Difference>,
    /// How many there are besides.
    pub more: usize,
    /// The types are so large that not all of them was compared.
    pub is_cut: bool,
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
        let all = self.all.iter().map(ToString::to_string);
        let all: Vec<String> = all.chain(self.rest()).collect();
        f.write_str(&all.join("; "))
    }
}

impl Differences {
    /// What is there besides those that are told one by one.
    pub fn rest(&self) -> Option<String> {
        match (self.more, self.is_cut) {
            (0, false) => None,
            (more, false) => Some(format!("and {more} more")),
            (0, true) => Some("and the rest was not compared: it is too large".to_owned()),
            (more, true) => Some(format!("and {more} more, as far as was compared")),
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
        waiting: VecDeque::from([(0, 0, is.short(is.root()))]),
        were_bytes: WereBytes::default(),
        steps: STEPS_MAX,
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
    were_bytes: WereBytes<'d>,
    /// How many may be compared yet.
    steps: usize,
}

impl<'d> Comparison<'d> {
    /// Whether so many more may be compared.
    fn may_compare(&mut self, steps: usize) -> bool {
        let left = self.steps.checked_sub(steps);
        self.found.is_cut |= left.is_none();
        self.steps = left.unwrap_or(0);
        left.is_some()
    }

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

    fn types(&mut self, old: &Type<usize>, new: &'d Type<usize>, path: &str) {
        if !self.may_compare(1) {
            return;
        }
        match (old, new) {
            (Type::Struct(old), Type::Struct(new)) => {
                let before = self.count();
                if !is_called((&old.name, &old.was), (&new.name, &new.was)) {
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
            (Type::Struct(old), Type::Variants(new)) if self.were_bytes.of(old, new) => {}
            (Type::Struct(was), Type::Variants(_)) if value_in_bytes(was).is_some() => {
                let was = format!("{} ({BYTES})", was.name);
                self.changed(path, was, self.is.short(new));
            }
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
                let (pair, path) = ((*target, *new_target), format!("{path}->"));
                if self.known.contains(&pair) {
                    return;
                }
                if path.len() > PATH_MAX {
                    self.found.is_cut = true;
                    return;
                }
                self.known.insert(pair);
                self.waiting.push_back((pair.0, pair.1, path));
            }
            _ if old == new => {}
            _ => self.changed(path, self.was.short(old), self.is.short(new)),
        }
    }

    fn fields(&mut self, old: &[Field<usize>], new: &'d [Field<usize>], path: &str) {
        if !self.may_compare(old.len() + new.len()) {
            return;
        }
        let before = self.count();
        let (were, are) = (named(old), named(new));
        let mut moved = Vec::new();
        for field in old {
            match counterpart(field, &are) {
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
            if counterpart(field, &were).is_none() {
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

    fn variants(&mut self, old: &Variants<usize>, new: &'d Variants<usize>, path: &str) {
        if !self.may_compare(old.cases.len() + new.cases.len()) {
            return;
        }
        let before = self.count();
        if !is_called((&old.name, &old.was), (&new.name, &new.was)) {
            self.changed(path, &old.name, &new.name);
        }
        let (were, are) = (named(&old.cases), named(&new.cases));
        for case in &old.cases {
            match counterpart(case, &are) {
                Some(other) => {
                    let path = format!("{path}({})", case.name);
                    if case.discriminant != other.discriminant {
                        self.changed(&path, number(case), number(other));
                    }
                    self.fields(&case.fields, &other.fields, &path);
                }
                None => self.note(path, Change::Removed(called(case))),
            }
        }
        for case in &new.cases {
            if counterpart(case, &were).is_none() {
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

/// What has a name, and had others.
trait Named {
    fn name(&self) -> &str;
    fn was(&self) -> &[String];
}

impl Named for Field<usize> {
    fn name(&self) -> &str {
        &self.name
    }

    fn was(&self) -> &[String] {
        &self.was
    }
}

impl Named for Case<usize> {
    fn name(&self) -> &str {
        &self.name
    }

    fn was(&self) -> &[String] {
        &self.was
    }
}

/// By their names, and by those that they had.
fn named<N: Named>(all: &[N]) -> HashMap<&str, &N> {
    let formers = all
        .iter()
        .flat_map(|one| one.was().iter().map(move |was| (was.as_str(), one)));
    let mut named: HashMap<&str, &N> = formers.collect();
    named.extend(all.iter().map(|one| (one.name(), one)));
    named
}

/// What one of the other type is to this one, by a name that either has or had.
fn counterpart<'n, N: Named>(one: &N, others: &HashMap<&str, &'n N>) -> Option<&'n N> {
    let formers = one.was().iter().map(String::as_str);
    let mut names = std::iter::once(one.name()).chain(formers);
    names.find_map(|name| others.get(name).copied())
}

/// Whether a name is the other one, or either was the other.
fn is_called((old, old_was): (&String, &[String]), (new, new_was): (&String, &[String])) -> bool {
    old == new || new_was.contains(old) || old_was.contains(new)
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
    format!("case {} = {}", case.name, number(case))
}

/// What the tag says of a case.
pub(super) fn number(case: &Case<usize>) -> String {
    let number = case.discriminant.map(|number| number.to_string());
    number.unwrap_or_else(|| "any other".to_owned())
}

impl Descriptor {
    fn named(&self, field: &Field<usize>) -> String {
        format!("{}: {}", field.name, self.short(&field.ty))
    }

    /// A type in a few words; what it has in it is not told.
    /// What to call the type, in a few words where it has no name.
    pub fn called(&self) -> String {
        self.short(self.root())
    }

    pub(crate) fn short(&self, ty: &Type<usize>) -> String {
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
            Type::Reserved { size, .. } => format!("{size} reserved bytes"),
        }
    }
}
