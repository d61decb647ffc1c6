//! The value at a path, and the path of a part.

use std::ops::ControlFlow;

use super::cuts::Limits;
use super::memory::Memory;
use super::names::name_of;
use super::path::{OF_KEY, Path, PathError, Step};
use super::place::Place;
use super::read::{Look, Reader, key_names, key_of};
use super::shape::{self, Shape};
use super::{At, Content, Object, Objects, Way, part, printable};
use crate::types::{Field, Struct, Type};

/// Pointers, cells and options in a row that lead to one value.
const WRAPS_MAX: usize = 64;

/// The value at a path from the object that begins at `root`, or from the one that the path itself names.
///
/// # Errors
/// [`PathError`] where the path leads to nothing.
pub fn at_path<O: Objects + ?Sized>(
    objects: &O,
    root: u64,
    path: &Path,
    limits: &Limits,
) -> Result<Look, PathError> {
    let mut reader = Reader::new(objects, limits);
    let place = find(&mut reader.memory, root, path)?;
    let name = path.to_string();
    let content = reader.place(&place, &name, 0, 0);
    let type_name = name_of(objects, place.ty, place.of);
    Ok(reader.look(content, type_name, place.address))
}

/// The smallest part of an object in which an offset lies, as it is written behind the object's name (`.next`,
/// `[3].name`), and how far into the part it lies. What a collection keeps for itself is the collection.
pub fn part_of<O: Objects + ?Sized>(objects: &O, object: &Object, offset: u64) -> (String, u64) {
    let mut memory = Memory::of(objects);
    part::down_to(&mut memory, object, offset, key_of, |_| false)
}

/// The largest part of an object that begins at an offset, as whoever has a pointer there means it; `None` where none
/// does.
pub fn part_at<O: Objects + ?Sized>(objects: &O, object: &Object, offset: u64) -> Option<String> {
    part::part_beginning(&mut Memory::of(objects), object, offset, key_of)
}

/// How far into an object pointers lead that mean all of it: past what the runtime of NVL-C keeps there.
pub fn start_of<O: Objects + ?Sized>(objects: &O, object: &Object) -> u64 {
    let descriptor = objects.descriptor(object.type_id);
    descriptor.map_or(0, shape::start_of)
}

/// Why a way ends.
enum Stop {
    Problem(String),
    Leaves(Way),
}

impl From<String> for Stop {
    fn from(problem: String) -> Self {
        Self::Problem(problem)
    }
}

impl From<&str> for Stop {
    fn from(problem: &str) -> Self {
        Self::Problem(problem.to_owned())
    }
}

impl Stop {
    fn in_words(self) -> String {
        match self {
            Self::Problem(problem) => problem,
            Self::Leaves(way) => format!("it leads to {} in pool \"{}\"", way.path, way.pool),
        }
    }
}

/// Where the value at a path lies.
fn find<'o, O: Objects + ?Sized>(
    memory: &mut Memory<'o, O>,
    root: u64,
    path: &Path,
) -> Result<Place<'o>, PathError> {
    let nothing = |steps: usize, problem: String| PathError::Nothing {
        path: path
            .with(path.steps.get(..steps).unwrap_or_default())
            .to_string(),
        problem,
    };
    let place = memory
        .object(path.start.unwrap_or(root))
        .ok_or_else(|| "its type is unknown".to_owned());
    let place = place.and_then(|(object, descriptor)| Place::of_object(&object, descriptor));
    let mut place = place.map_err(|problem| nothing(0, problem))?;
    for (at, step) in path.steps.iter().enumerate() {
        let wrapped = place;
        place = unwrapped(memory, place).map_err(|stop| match stop {
            Stop::Problem(problem) => nothing(at, problem),
            Stop::Leaves(way) => {
                let (before, behind) = path.steps.split_at(at);
                let rest = behind.iter().map(ToString::to_string);
                PathError::Leaves {
                    path: path.with(before).to_string(),
                    pool: way.pool,
                    rest: way.path + &rest.collect::<String>(),
                }
            }
        })?;
        let next = match step {
            Step::Field(name) => field(memory, &place, name),
            Step::Key(key) => element(memory, &place, key),
        };
        let next = match wrapped.shape() {
            Shape::Objects(objects) => in_table(memory, &wrapped.field(objects), step, next),
            _ => next,
        };
        place = next.map_err(|problem| nothing(at + 1, problem))?;
    }
    Ok(place)
}

/// The value that pointers, cells, options and counts lead to.
fn unwrapped<'o, O: Objects + ?Sized>(
    memory: &mut Memory<'o, O>,
    mut place: Place<'o>,
) -> Result<Place<'o>, Stop> {
    for _ in 0..WRAPS_MAX {
        if place.is_row() {
            return Ok(place);
        }
        place = match (place.shape(), place.ty) {
            (Shape::Cell(value), _) => memory.inner(&place, value)?,
            (Shape::OptionalPointer(value), _) => place.field(value),
            (Shape::Objects(objects), _) => {
                let table = place.field(objects);
                match memory.objects_of(&table)?[..] {
                    [(_, only)] => only,
                    _ => table,
                }
            }
            (
                Shape::Counted {
                    value: Some(value), ..
                },
                _,
            ) => place.field(value),
            (_, Type::Pointer { .. }) => {
                let address = memory.word(&place, 0)?;
                if address == 0 {
                    return Err("the pointer there is null".into());
                }
                let mut at = (address, memory.objects.at(address));
                if let At::Object(object) = &at.1
                    && let Some(to) = memory.behind_proxy(object)
                {
                    if to == 0 {
                        return Err("what the weak pointer there led to is gone".into());
                    }
                    at = (to, memory.objects.at(to));
                }
                match at {
                    (address, At::Object(object)) => {
                        let descriptor = memory.objects.descriptor(object.type_id);
                        let descriptor =
                            descriptor.ok_or("it leads to an object of unknown type")?;
                        if address - object.start != shape::start_of(descriptor) {
                            return Err("it leads into the middle of an object".into());
                        }
                        Place::of_object(&object, descriptor)?
                    }
                    (address, At::Other(what)) => {
                        let way = memory.objects.way(address).map(Stop::Leaves);
                        let other = || format!("it leads to this: {what}").into();
                        return Err(way.unwrap_or_else(other));
                    }
                    (_, At::Damaged(why)) => return Err(why.into()),
                }
            }
            _ => return Ok(place),
        };
    }
    Err("too many pointers lead to it".into())
}

/// What a program of C++ has put in the pool, by its number in the table, which the path to one that is alone may name,
/// and that to one of several has to.
fn in_table<'o, O: Objects + ?Sized>(
    memory: &mut Memory<'o, O>,
    table: &Place<'o>,
    step: &Step,
    found: Result<Place<'o>, String>,
) -> Result<Place<'o>, String> {
    let objects = memory.objects_of(table)?;
    match (&objects[..], step, found) {
        ([(at, only)], Step::Key(key), Err(_)) if *key == at.to_string() => Ok(*only),
        ([_], _, found) => found,
        (_, Step::Key(key), Ok(_)) => {
            let named = objects.iter().find(|(at, _)| *key == at.to_string());
            let named = named.map(|(_, object)| *object);
            named.ok_or_else(|| format!("it has {} objects", objects.len()))
        }
        (_, Step::Field(_), _) => Err(format!(
            "name one of the {} objects that the program has put in the pool by its number",
            objects.len()
        )),
        (_, _, found) => found,
    }
}

fn field<'o, O: Objects + ?Sized>(
    memory: &mut Memory<'o, O>,
    place: &Place<'o>,
    name: &str,
) -> Result<Place<'o>, String> {
    let fields = match place.ty {
        Type::Struct(Struct { fields, .. }) if !place.is_row() => fields,
        Type::Variants(variants) if !place.is_row() => &memory.case(place, variants)?.fields,
        _ => return Err(without_fields(memory, place)),
    };
    let found = fields.iter().find(|field| field.name == name);
    let names = |fields: &[Field<usize>]| {
        let names: Vec<_> = fields.iter().map(|field| printable(&field.name)).collect();
        names.join(", ")
    };
    match found {
        Some(field) => Ok(place.field(field)),
        // What a collection keeps for itself is nobody's field.
        None if !matches!(place.shape(), Shape::Plain) => Err(without_fields(memory, place)),
        None => Err(format!("no such field; there are: {}", names(fields))),
    }
}

/// The pointer in a link of a chain, which may be in a cell or an option.
fn unwrapped_word<'o, O: Objects + ?Sized>(
    memory: &mut Memory<'o, O>,
    link: &Place<'o>,
) -> Option<u64> {
    let mut place = *link;
    for _ in 0..WRAPS_MAX {
        place = match (place.shape(), place.ty) {
            (Shape::Cell(value) | Shape::OptionalPointer(value), _) => place.field(value),
            (_, Type::Pointer { .. }) => return memory.word(&place, 0).ok(),
            _ => return None,
        };
    }
    None
}

/// What a value has instead of fields.
fn without_fields<'o, O: Objects + ?Sized>(
    memory: &mut Memory<'o, O>,
    place: &Place<'o>,
) -> String {
    let mut first = None;
    let map = memory.entries(place, &mut |memory, key, _| {
        first = Some(key_of(memory, &key));
        ControlFlow::Break(())
    });
    if let Ok(Some(_)) = map {
        let key = first.unwrap_or_else(|| "key".to_owned());
        return format!("it is a map and has no fields: name a value by its key, as in `[{key}]`");
    }
    match memory.elements(place) {
        Ok(Some(elements)) => format!(
            "it has {} elements and no fields: name one by its number, as in `[0]`",
            elements.count
        ),
        _ => "it is a value without fields".to_owned(),
    }
}

/// Keys of a map that are told where none is the one that was asked for.
const KEYS_TOLD: usize = 8;

fn element<'o, O: Objects + ?Sized>(
    memory: &mut Memory<'o, O>,
    place: &Place<'o>,
    key: &str,
) -> Result<Place<'o>, String> {
    let (mut found, mut found_key, mut others) = (None, None, Vec::new());
    let of_key = key.strip_prefix(OF_KEY);
    let is_map = memory.entries(place, &mut |memory, at, value| {
        let (name, short) = key_names(memory, &at);
        let is_it = |key: &str| name == key || short.as_ref().is_some_and(|short| short == key);
        if is_it(key) {
            found = Some(value);
            return ControlFlow::Break(());
        }
        if of_key.is_some_and(is_it) {
            found_key = Some(at);
        }
        if others.len() < KEYS_TOLD {
            others.push(name);
        }
        ControlFlow::Continue(())
    })?;
    if let Some(count) = is_map {
        let more = if count > others.len() as u64 {
            ", …"
        } else {
            ""
        };
        let there = match others.is_empty() {
            true => String::new(),
            false => format!("; there are: {}{more}", others.join(", ")),
        };
        return (found.or(found_key))
            .ok_or_else(|| format!("none of its {count} keys is that{there}"));
    }
    let mut others = Vec::new();
    let value = memory.value_of_key(place, &mut |at| {
        let name = at.as_key();
        let is_it = name == key || matches!(at, Content::Text { text, .. } if text == key);
        if !is_it && others.len() < KEYS_TOLD {
            others.push(name);
        }
        is_it
    })?;
    if let Some(found) = value {
        let others = others.join(", ");
        return found.ok_or_else(|| format!("it has no entry with this key; there are: {others}"));
    }
    let number = key.parse::<u64>();
    let number = number.map_err(|_| "it is no map: its elements go by numbers".to_owned())?;
    if let Some(elements) = memory.elements(place)? {
        return match number < elements.count && elements.stride > 0 {
            true => Ok(elements.at(number)),
            false => Err(format!("it has {} elements", elements.count)),
        };
    }
    let whole = memory.object(place.address);
    let link = match whole {
        Some((object, of)) if object.start == place.address => shape::link(of),
        _ => None,
    };
    let (link, _) = link.ok_or("it has no elements")?;
    let mut place = *place;
    for at in 0..number {
        let next = place.field(link);
        if unwrapped_word(memory, &next) == Some(0) {
            let (count, plural) = (at + 1, if at == 0 { "" } else { "s" });
            return Err(format!("the chain has {count} element{plural}"));
        }
        let next = unwrapped(memory, next);
        place = next.map_err(|stop| format!("it ends with [{at}]: {}", stop.in_words()))?;
        if shape::link(place.of).is_none_or(|(other, _)| other.offset != link.offset) {
            return Err(format!("it ends with [{at}]"));
        }
    }
    Ok(place)
}
