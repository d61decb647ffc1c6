//! All objects of a type, by any of its names.

use std::collections::{BTreeMap, BTreeSet};

use durum_format::content::{self, Content, Limits, Look, Object, printable};
use durum_format::types::{Descriptor, Struct, Type, Variants};

use super::names;
use super::pool::PoolView;
use super::ways::Ways;
use crate::failure::Failure;
use crate::output::{count, list};

/// Types in types that are looked at.
const NESTING_MAX: usize = 16;

/// An object of a type that was asked for.
pub(crate) struct Found {
    pub(super) object: Object,
    pub(super) look: Look,
    /// The way to it from the root, if that was found.
    pub(super) path: Option<String>,
}

pub(super) fn of_type(
    pool: &PoolView<'_>,
    asked: &str,
    limits: &Limits,
    damages: &mut Vec<String>,
) -> Result<(Vec<Found>, u64), Failure> {
    // By their types, the first one of each.
    let mut first = BTreeMap::new();
    pool.each_object(&mut Vec::new(), |object| {
        first.entry(object.type_id).or_insert(object);
        Ok(())
    })?;
    let ways = Ways::of(pool)?;
    let meant = meant(pool, asked, &first, &ways)?;
    let (mut found, mut all) = (Vec::new(), 0);
    pool.each_object(damages, |object| {
        if !meant.contains(&object.type_id) {
            return Ok(());
        }
        all += 1;
        if found.len() < limits.objects {
            let path = ways.shown.get(&object.start);
            let address = format!("{:#x}", object.start);
            let name = path.unwrap_or(&address);
            let mut look = content::of_object(pool, object.start, name, limits);
            for (start, path) in &ways.shown {
                look.shown.entry(*start).or_insert_with(|| path.clone());
            }
            found.push(Found {
                object,
                look,
                path: path.cloned(),
            });
        }
        Ok(())
    })?;
    Ok((found, all))
}

/// How many there are. Objects in which a collection keeps several say how many these are.
pub(super) fn heading(asked: &str, found: &[Found], all: u64) -> String {
    let asked = printable(asked);
    let rows = found.iter().map(|it| match &it.look.content {
        Content::List(list) if it.look.type_name.starts_with('[') => Some(list.filled),
        _ => None,
    });
    match rows.sum::<Option<u64>>() {
        Some(elements) if found.len() as u64 == all && all > 0 => format!(
            "{} of type {asked} in {}",
            count(elements, "element"),
            count(all, "block")
        ),
        _ => format!("{} of type {asked}", count(all, "object")),
    }
}

/// The types that somebody means by a name: as it is shown or stands in the store, or else its last part.
fn meant(
    pool: &PoolView<'_>,
    asked: &str,
    first: &BTreeMap<u64, Object>,
    ways: &Ways,
) -> Result<BTreeSet<u64>, Failure> {
    let mut meant = BTreeSet::new();
    let mut by_part = BTreeMap::<String, BTreeSet<u64>>::new();
    let mut shown = BTreeSet::new();
    for (id, object) in first {
        let its = content::type_name(pool, object);
        let title = pool.types.by_id(*id).map(Descriptor::title);
        let whole = title.map(names::for_people);
        let element = its.strip_prefix('[').and_then(|its| its.strip_suffix(']'));
        if [Some(its.as_str()), title, whole.as_deref(), element].contains(&Some(asked)) {
            meant.insert(*id);
        }
        if last_parts(&its).contains(&asked) {
            by_part.entry(its.clone()).or_default().insert(*id);
        }
        shown.insert(its);
    }
    if !meant.is_empty() {
        return Ok(meant);
    }
    let names = by_part
        .keys()
        .map(|name| printable(name))
        .collect::<Vec<_>>();
    match (by_part.len(), by_part.into_values().next()) {
        (1, Some(ids)) => return Ok(ids),
        (0, _) => {}
        _ => {
            return Err(Failure::Refused(format!(
                "several types are called {asked:?}: {}; name one of them",
                list(&names)
            )));
        }
    }
    let inside = inside(pool, asked, first, ways);
    if !inside.is_empty() {
        return Err(Failure::Refused(format!(
            "{asked:?} is no object of its own, it lies in others; look at one with --path: {}",
            list(&inside)
        )));
    }
    let names: Vec<String> = shown.iter().map(|name| printable(name)).collect();
    Err(Failure::Refused(format!(
        "no object of the pool is of type {asked:?}; there are: {}",
        list(&names)
    )))
}

/// What a name may be called in short: without namespace and arguments, without a program's name before it, and the
/// value that a cell has in it.
fn last_parts(name: &str) -> Vec<&str> {
    let name = name
        .strip_prefix('[')
        .map_or(name, |name| name.trim_end_matches(']'));
    let mut parts = vec![names::last_part(name)];
    parts.extend(name.rsplit_once(' ').map(|(_, last)| last));
    if let Some((_, value)) = name.split_once('<') {
        let value = value.trim_end_matches('>').trim();
        parts.extend([value, names::last_part(value)]);
    }
    parts
}

/// Where values of a type lie that are parts of objects: for each type of these, one of them.
fn inside(
    pool: &PoolView<'_>,
    asked: &str,
    first: &BTreeMap<u64, Object>,
    ways: &Ways,
) -> Vec<String> {
    let mut found = Vec::new();
    for (id, object) in first {
        let Some(descriptor) = pool.types.by_id(*id) else {
            continue;
        };
        let Some(offset) = offset_of(descriptor.root(), asked, 0) else {
            continue;
        };
        let path = ways.shown.get(&object.start).cloned();
        let path = path.unwrap_or_else(|| format!("{:#x}", object.start));
        let part = content::part_at(pool, object, offset).unwrap_or_default();
        found.push(format!(
            "{path}{part} ({})",
            content::type_name(pool, object)
        ));
    }
    found.sort();
    found
}

/// Where in a type the first part of a name lies.
fn offset_of(ty: &Type<usize>, asked: &str, nesting: usize) -> Option<u64> {
    if nesting > NESTING_MAX {
        return None;
    }
    if nesting > 0
        && let Some(name) = ty.name().map(names::for_people)
        && (name == asked || last_parts(&name).contains(&asked))
    {
        return Some(0);
    }
    let of_fields = |fields: &[durum_format::types::Field<usize>]| {
        let mut fields = fields.iter();
        fields.find_map(|field| Some(field.offset + offset_of(&field.ty, asked, nesting + 1)?))
    };
    match ty {
        Type::Struct(Struct { fields, .. }) => of_fields(fields),
        Type::Variants(Variants { cases, .. }) => {
            cases.iter().find_map(|case| of_fields(&case.fields))
        }
        Type::Array { element, .. } => offset_of(element, asked, nesting + 1),
        _ => None,
    }
}
