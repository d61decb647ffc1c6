//! Which old fields new ones come from, and which new case an old one becomes. No two come from the same.

use super::{Rule, Source};
use crate::types::{Case, Field, Type, Variants};

/// The old field of this name, if it holds anything.
pub(super) fn named(old: &[Field<usize>], name: &str) -> Option<usize> {
    let is_it =
        |field: &Field<usize>| field.name == name && !matches!(field.ty, Type::Reserved { .. });
    old.iter().position(is_it)
}

/// For each new field the place of the old one that it comes from: the one that is said, that of its name, or else one
/// of a former name that has not become another one.
pub(super) fn sources(
    old: &[Field<usize>],
    new: &[Field<usize>],
    rule: Option<&Rule>,
) -> Vec<Option<usize>> {
    let mut partners = Partners::new(new.len(), old.len());
    let mut unsaid = Vec::new();
    for (at, field) in new.iter().enumerate() {
        match rule.and_then(|rule| rule.fields.get(&field.name)) {
            Some(Source::Field(name)) => partners.pair(at, named(old, name)),
            Some(Source::Bytes(..) | Source::Value(_)) => {}
            None => unsaid.push((at, field)),
        }
    }
    for (at, field) in &unsaid {
        partners.pair(*at, named(old, &field.name));
    }
    for (at, field) in &unsaid {
        for name in &field.was {
            partners.pair(*at, named(old, name));
        }
    }
    partners.found
}

/// The new field that the old one at this place has become, if any.
pub(super) fn became<'f>(
    at: usize,
    old: &[Field<usize>],
    rule: Option<&Rule>,
    new: &'f [Field<usize>],
) -> Option<&'f Field<usize>> {
    let sources = sources(old, new, rule);
    let to = sources.iter().position(|from| *from == Some(at))?;
    new.get(to)
}

/// For each old case the new one that it becomes.
pub(super) fn cases<'c>(
    old: &Variants<usize>,
    new: &'c Variants<usize>,
) -> Vec<Option<&'c Case<usize>>> {
    let mut partners = Partners::new(old.cases.len(), new.cases.len());
    for (at, case) in old.cases.iter().enumerate() {
        let same = new.cases.iter().position(|other| other.name == case.name);
        partners.pair(at, same);
    }
    for (at, case) in old.cases.iter().enumerate() {
        for (other, is) in new.cases.iter().enumerate() {
            if is.was.contains(&case.name) {
                partners.pair(at, Some(other));
            }
        }
    }
    let found = partners.found.iter();
    found.map(|other| new.cases.get((*other)?)).collect()
}

/// Pairs of which each side has one partner at most.
struct Partners {
    found: Vec<Option<usize>>,
    is_taken: Vec<bool>,
}

impl Partners {
    fn new(count: usize, others: usize) -> Self {
        Self {
            found: vec![None; count],
            is_taken: vec![false; others],
        }
    }

    fn pair(&mut self, at: usize, other: Option<usize>) {
        let Some(other) = other else {
            return;
        };
        if let (Some(found @ None), Some(is_taken @ false)) =
            (self.found.get_mut(at), self.is_taken.get_mut(other))
        {
            *found = Some(other);
            *is_taken = true;
        }
    }
}
