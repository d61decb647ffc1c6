//! Whether values of a type are values of what it has become, as they lie there.

use std::collections::{BTreeMap, HashMap, HashSet, VecDeque};
use std::fmt;

use super::descriptor::Descriptor;
use super::diff::number;
use super::names::Renames;
use super::option::{BYTES, WereBytes, value_in_bytes};
use super::tree::{Case, Count, Field, Struct, Type, Variants};

/// The most types, fields and cases that are compared. Programs that nobody believes have registered the texts, in
/// which there can be as many pairs as the product of their lines.
const STEPS_MAX: usize = 1 << 16;

/// As what so many steps counts a name that has changed: it may be made of many others.
const NAME_STEPS: usize = 64;

/// The most bytes of texts from which ids are made.
const BYTES_MAX: usize = 1 << 28;

/// The longest way from the root that is told, in bytes.
const PATH_MAX: usize = 512;

/// Why values of a type are none of another one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Obstacle {
    /// The way from the root, as in [`Difference`](super::Difference).
    pub path: String,
    /// What is in the way.
    pub why: String,
}

impl fmt::Display for Obstacle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.path.strip_suffix("->") {
            Some(pointer) => write!(f, "*{pointer}: {}", self.why),
            None => write!(f, "{}: {}", self.path, self.why),
        }
    }
}

/// What old ids mean to a program with new types: the ids of these. Those are left out that stay what they are.
///
/// Compared are pairs of types along the ways from the roots, not names. What may differ is told in
/// `docs/format/types.md`, "Successors".
///
/// # Errors
/// The first [`Obstacle`] found.
pub fn successors(was: &Descriptor, is: &Descriptor) -> Result<BTreeMap<u64, u64>, Obstacle> {
    let start = is.short(is.root());
    let mut comparison = Comparison {
        was,
        is,
        renames: Renames::default(),
        known: HashSet::from([(0, 0)]),
        pairs: Vec::new(),
        waiting: VecDeque::from([(0, 0, start.clone())]),
        were_bytes: WereBytes::default(),
        steps: STEPS_MAX,
    };
    for line in 0..is.lines() {
        is.line(line)
            .into_iter()
            .for_each(|ty| comparison.renames.learn(ty));
    }
    while let Some((old, new, path)) = comparison.waiting.pop_front() {
        if let (Some(before), Some(after)) = (was.line(old), is.line(new)) {
            comparison.types(before, after, (&[], &[]), &path)?;
        }
        comparison.pairs.push((old, new, path));
    }
    comparison.ids(&start)
}

struct Comparison<'d> {
    was: &'d Descriptor,
    is: &'d Descriptor,
    renames: Renames<'d>,
    /// Lines of both that were compared with each other, or will be.
    known: HashSet<(usize, usize)>,
    pairs: Vec<(usize, usize, String)>,
    waiting: VecDeque<(usize, usize, String)>,
    were_bytes: WereBytes<'d>,
    /// How many may be compared yet.
    steps: usize,
}

type Found = Result<(), Obstacle>;

/// The fields of the structs in which two types lie, by which arrays name their lengths.
type Siblings<'d> = (&'d [Field<usize>], &'d [Field<usize>]);

fn obstacle<T>(path: &str, why: impl fmt::Display) -> Result<T, Obstacle> {
    Err(Obstacle {
        path: path.to_owned(),
        why: why.to_string(),
    })
}

impl<'d> Comparison<'d> {
    fn step(&mut self, steps: usize, path: &str) -> Found {
        match self.steps.checked_sub(steps) {
            Some(left) => self.steps = left,
            None => return obstacle(path, "the types are too large to be compared"),
        }
        Ok(())
    }

    fn name(&mut self, old: &str, new: &str, was: &[String], path: &str) -> Found {
        if old != new {
            self.step(NAME_STEPS, path)?;
        }
        match self.renames.can_be(old, new, was) {
            true => Ok(()),
            false => obstacle(
                path,
                format!("{old}, now {new}, which does not say that it was {old}"),
            ),
        }
    }

    fn types(
        &mut self,
        old: &'d Type<usize>,
        new: &'d Type<usize>,
        siblings: Siblings<'d>,
        path: &str,
    ) -> Found {
        self.step(1, path)?;
        match (old, new) {
            (Type::Struct(old), Type::Struct(new)) => self.structs(old, new, path),
            (Type::Variants(old), Type::Variants(new)) => self.variants(old, new, path),
            (Type::Struct(old), Type::Variants(new)) if self.were_bytes.of(old, new) => {
                self.name(&old.name, &new.name, &new.was, path)
            }
            (Type::Struct(old), Type::Variants(new)) if value_in_bytes(old).is_some() => {
                let why = format!("{}, now {}: {BYTES}", old.name, new.name);
                obstacle(path, why)
            }
            (
                Type::Array { element, count },
                Type::Array {
                    element: new_element,
                    count: new_count,
                },
            ) if is_same_count(count, new_count, siblings) => {
                if !element.has_pointers() && new_element.has_pointers() {
                    return obstacle(
                        &format!("{path}[]"),
                        "it had no pointers, and places of an array in which nothing is stored may hold anything",
                    );
                }
                self.types(element, new_element, (&[], &[]), &format!("{path}[]"))
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
            ) if strength == new_strength => {
                if self.known.insert((*target, *new_target)) {
                    let path = match path.len() > PATH_MAX {
                        true => path.to_owned(),
                        false => format!("{path}->"),
                    };
                    self.waiting.push_back((*target, *new_target, path));
                }
                Ok(())
            }
            (
                Type::Primitive(_)
                | Type::Pointer { target: None, .. }
                | Type::Opaque { .. }
                | Type::Volatile { .. }
                | Type::Reserved { .. },
                _,
            ) if old == new => Ok(()),
            _ => {
                let (old, new) = (self.was.short(old), self.is.short(new));
                obstacle(path, format!("{old}, now {new}"))
            }
        }
    }

    fn structs(&mut self, old: &'d Struct<usize>, new: &'d Struct<usize>, path: &str) -> Found {
        self.name(&old.name, &new.name, &new.was, path)?;
        self.fields(&old.fields, &new.fields, path)?;
        layout((old.size, old.align), (new.size, new.align), path)
    }

    /// Each field is where it was; a new one lies in what was reserved.
    fn fields(&mut self, old: &'d [Field<usize>], new: &'d [Field<usize>], path: &str) -> Found {
        self.step(old.len() + new.len(), path)?;
        let mut added: BTreeMap<u64, &'d Field<usize>> =
            new.iter().map(|field| (field.offset, field)).collect();
        let mut reserved: Vec<(u64, u64)> = Vec::new();
        for field in old {
            if let Type::Reserved { size, .. } = field.ty {
                let (start, end) = (field.offset, field.offset.saturating_add(size));
                match reserved.last_mut().filter(|last| last.1 == start) {
                    Some(last) => last.1 = end,
                    None => reserved.push((start, end)),
                }
                continue;
            }
            let path = joined(path, &field.name);
            let Some(other) = added.remove(&field.offset) else {
                return obstacle(&path, "it is gone, or lies elsewhere");
            };
            let formers = &other.was;
            if field.name != other.name && !formers.contains(&field.name) {
                let is = &other.name;
                let why = format!("now {is}, which does not say that it was {}", field.name);
                return obstacle(&path, why);
            }
            self.types(&field.ty, &other.ty, (old, new), &path)?;
        }
        for field in added.into_values() {
            let path = joined(path, &field.name);
            let (start, size) = (field.offset, plain_size(&field.ty));
            let is_inside = |&(from, to): &(u64, u64)| {
                size.is_some_and(|size| from <= start && start.saturating_add(size) <= to)
            };
            if !reserved.iter().any(is_inside) {
                return obstacle(&path, "it is new, and does not lie in reserved bytes");
            }
            if !field.is_in_reserved && !matches!(field.ty, Type::Reserved { .. }) {
                return obstacle(
                    &path,
                    "it lies in reserved bytes, and does not say that it may (zero has to be a value of its type)",
                );
            }
        }
        Ok(())
    }

    fn variants(
        &mut self,
        old: &'d Variants<usize>,
        new: &'d Variants<usize>,
        path: &str,
    ) -> Found {
        self.step(old.cases.len() + new.cases.len(), path)?;
        self.name(&old.name, &new.name, &new.was, path)?;
        layout((old.size, old.align), (new.size, new.align), path)?;
        if (old.tag_offset, old.tag_width) != (new.tag_offset, new.tag_width) {
            return obstacle(path, "its tag lies elsewhere, or has another width");
        }
        let cases: HashMap<Option<u64>, &'d Case<usize>> = new
            .cases
            .iter()
            .map(|case| (case.discriminant, case))
            .collect();
        let has_other = |of: &Variants<usize>| of.cases.iter().any(|it| it.discriminant.is_none());
        if old.cases.len() < new.cases.len() && (has_other(old) || has_other(new)) {
            return obstacle(path, "it has a case more, which other tags say already");
        }
        for case in &old.cases {
            let path = format!("{path}({})", case.name);
            let Some(other) = cases.get(&case.discriminant) else {
                return obstacle(&path, format!("there is no case {} any more", number(case)));
            };
            if case.name != other.name && !other.was.contains(&case.name) {
                let (number, is) = (number(case), &other.name);
                let why = format!(
                    "case {number} is now {is}, which does not say that it was {}",
                    case.name
                );
                return obstacle(&path, why);
            }
            self.fields(&case.fields, &other.fields, &path)?;
        }
        Ok(())
    }

    /// The ids of the pairs. No id may mean two things, neither to the program that comes nor to those before it.
    fn ids(self, start: &str) -> Result<BTreeMap<u64, u64>, Obstacle> {
        let texts = self.was.text().len() + self.is.text().len();
        let lines = self.pairs.len() + self.is.lines();
        if lines.saturating_mul(texts) > BYTES_MAX {
            return obstacle(start, "the types are too large to be compared");
        }
        let id = |of: &Descriptor, line| of.target(line).map_or(0, |target| target.id());
        let were: HashMap<usize, u64> = (self.pairs.iter())
            .map(|(line, ..)| (*line, id(self.was, *line)))
            .collect();
        let are: Vec<u64> = (0..self.is.lines()).map(|line| id(self.is, line)).collect();
        let mut meanings: BTreeMap<u64, (u64, &str)> = BTreeMap::new();
        for (old, new, path) in &self.pairs {
            let (was, is) = (
                were.get(old).copied().unwrap_or(0),
                are.get(*new).copied().unwrap_or(0),
            );
            let (known, first) = *meanings.entry(was).or_insert((is, path));
            if known != is {
                return obstacle(
                    path,
                    format!("what is one type here and at {first} would become two"),
                );
            }
        }
        meanings.retain(|was, (is, _)| was != is);
        if let Some((_, path)) = are.iter().find_map(|is| meanings.get(is)) {
            return obstacle(
                path,
                "it would become another type, and something else would become it",
            );
        }
        Ok(meanings
            .into_iter()
            .map(|(was, (is, _))| (was, is))
            .collect())
    }
}

/// Whether arrays have as many elements as before: by the same number, or by a field at the same place.
fn is_same_count(old: &Count, new: &Count, (were, are): Siblings<'_>) -> bool {
    let place = |of: &[Field<usize>], name: &String| {
        let found = of.iter().find(|field| field.name == *name);
        found.map(|field| field.offset)
    };
    match (old, new) {
        (Count::Field(old), Count::Field(new)) => place(were, old) == place(are, new),
        (old, new) => old == new,
    }
}

/// The bytes of a type without a tail.
fn plain_size(ty: &Type<usize>) -> Option<u64> {
    let layout = ty.layout().ok()?;
    (!layout.has_tail).then_some(layout.size)
}

fn layout(old: (u64, u64), new: (u64, u64), path: &str) -> Found {
    if old == new {
        return Ok(());
    }
    let told = |(size, align)| format!("{size} bytes aligned to {align}");
    obstacle(path, format!("{}, now {}", told(old), told(new)))
}

fn joined(path: &str, name: &str) -> String {
    match path.ends_with("->") {
        true => format!("{path}{name}"),
        false => format!("{path}.{name}"),
    }
}
