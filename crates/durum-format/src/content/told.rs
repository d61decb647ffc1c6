//! What durum's own libraries and runtimes keep: the entries of a database of durum-kv, the global variables of a
//! program with sections. `inspect --raw` shows how they keep it.

use std::collections::HashMap;
use std::ops::ControlFlow;

use super::cuts::ELEMENT;
use super::memory::Memory;
use super::place::Place;
use super::read::Reader;
use super::{Content, List, Objects, Target};
use crate::types::{Struct, Type};

const DATABASE: &str = "kv database";
const LEAF: &str = "kv leaf";
const RECORD: &str = "kv record";
const HEAP: &str = "durum.ido.heap";
const VARIABLE: &str = "durum.ido.variable";
/// Bytes of a key by which entries are put in order.
const ORDERED_MAX: u64 = 4096;
/// Global variables of a program that are looked at.
const VARIABLES_MAX: u64 = 1 << 16;
/// Leaves of a database that are looked at.
const LEAVES_MAX: u64 = 1 << 20;

/// Where the bytes of an entry lie.
#[derive(Clone, Copy)]
struct Entry<'d> {
    record: Place<'d>,
    bytes: u64,
    key_len: u64,
    value_len: u64,
    is_deletion: bool,
}

impl<'o, O: Objects + ?Sized> Memory<'o, O> {
    /// What a record of a database says.
    fn record<'d>(&mut self, record: Place<'d>) -> Result<Entry<'d>, String> {
        let (version, len) = (named(&record, "version")?, named(&record, "len")?);
        let (key_len, bytes) = (named(&record, "key_len")?, named(&record, "bytes")?);
        let (version, len) = (self.word(&version, 0)?, self.word(&len, 0)?);
        let key_len = self.unsigned(key_len.address, record.end, 4)?;
        let value_len = len.checked_sub(key_len);
        Ok(Entry {
            record,
            bytes: bytes.address,
            key_len,
            value_len: value_len.ok_or("its key is longer than key and value together")?,
            is_deletion: version & 1 == 1,
        })
    }

    /// The entries of a database: leaf by leaf, in the order of the keys.
    fn records<'d>(
        &mut self,
        database: &Place<'d>,
        visit: &mut dyn FnMut(&mut Self, Entry<'d>) -> ControlFlow<()>,
    ) -> Result<(), String>
    where
        'o: 'd,
    {
        let mut next = self.word(&named(database, "first")?, 0)?;
        for _ in 0..LEAVES_MAX {
            if next == 0 {
                return Ok(());
            }
            let leaf = self.place_at(next, LEAF)?;
            let slots = self.elements(&named(&leaf, "slots")?)?;
            let slots = slots.ok_or("its leaf has no slots")?;
            let mut entries = Vec::new();
            for at in 0..slots.count {
                let record = self.word(&slots.at(at), 0)?;
                if record == 0 {
                    continue;
                }
                let record = self.place_at(record, RECORD)?;
                let entry = self.record(record)?;
                let ordered = entry.key_len.min(ORDERED_MAX);
                let key = self.bytes(entry.bytes, entry.record.end, ordered)?;
                if !entry.is_deletion {
                    entries.push((key, entry));
                }
            }
            entries.sort_by(|(one, _), (other, _)| one.cmp(other));
            for (_, entry) in entries {
                if visit(self, entry).is_break() {
                    return Ok(());
                }
            }
            next = self.word(&named(&leaf, "next")?, 0)?;
        }
        Err("it has more leaves than are looked at".to_owned())
    }

    /// The object of a type that begins at an address.
    fn place_at(&mut self, address: u64, name: &str) -> Result<Place<'o>, String> {
        match self.object(address) {
            Some((object, of)) if object.start == address && of.name() == Some(name) => {
                Place::of_object(&object, of)
            }
            _ => Err(format!("at {address:#x} is no {name}")),
        }
    }

    /// The value in a database with this key, as it is shown: the record, which is shown as its value; or the global
    /// variable with this name of a program with sections. `None` where the place is neither.
    pub(super) fn value_of_key<'d>(
        &mut self,
        place: &Place<'d>,
        is_it: &mut dyn FnMut(&Content) -> bool,
    ) -> Result<Option<Option<Place<'d>>>, String>
    where
        'o: 'd,
    {
        match place.ty.name() {
            Some(DATABASE) if !place.is_row() => self.value_in(place, is_it).map(Some),
            Some(HEAP) if !place.is_row() => self.variable(place, is_it).map(Some),
            _ => Ok(None),
        }
    }

    /// The global variable that goes by a name, with its file or without.
    fn variable<'d>(
        &mut self,
        heap: &Place<'d>,
        is_it: &mut dyn FnMut(&Content) -> bool,
    ) -> Result<Option<Place<'d>>, String>
    where
        'o: 'd,
    {
        let mut next = self.word(&named(heap, "globals")?, 0)?;
        for _ in 0..VARIABLES_MAX {
            if next == 0 {
                return Ok(None);
            }
            let variable = self.place_at(next, VARIABLE)?;
            let size = self.word(&named(&variable, "name_size")?, 0)?;
            let name = named(&variable, "name")?.address;
            let room = variable.end.saturating_sub(name);
            if size > room {
                return Err(format!(
                    "the name of a variable has {size} bytes, and room for {room}"
                ));
            }
            let name = self.bytes(name, variable.end, size)?;
            let name = String::from_utf8_lossy(&name);
            let (file, short) = file_and_name(&name);
            let names = [Some(short), file.map(|_| &*name)];
            let mut names = names.into_iter().flatten();
            if names.any(|name| is_it(&text_of(name.as_bytes()))) {
                let value = self.word(&named(&variable, "place")?, 0)?;
                let (object, of) = self.object(value).ok_or("its type is unknown")?;
                return Place::of_object(&object, of).map(Some);
            }
            next = self.word(&named(&variable, "next")?, 0)?;
        }
        Err("it has more variables than are looked at".to_owned())
    }

    /// The value in a database with this key.
    fn value_in<'d>(
        &mut self,
        database: &Place<'d>,
        is_it: &mut dyn FnMut(&Content) -> bool,
    ) -> Result<Option<Place<'d>>, String>
    where
        'o: 'd,
    {
        let mut found = None;
        self.records(database, &mut |memory, entry| {
            let key = memory.bytes(entry.bytes, entry.record.end, entry.key_len);
            if key.is_ok_and(|key| is_it(&text_of(&key))) {
                found = Some(entry.record);
                return ControlFlow::Break(());
            }
            ControlFlow::Continue(())
        })?;
        Ok(found)
    }
}

/// The file of a global variable, if it is known in that only, and its name.
fn file_and_name(name: &str) -> (Option<&str>, &str) {
    match name.rsplit_once(':') {
        Some((file, name)) => (Some(file), name),
        None => (None, name),
    }
}

/// A key as it is shown.
fn text_of(key: &[u8]) -> Content {
    let text = std::str::from_utf8(key).ok();
    let is_readable = |text: &&str| !text.chars().any(char::is_control);
    match text.filter(is_readable) {
        Some(text) => Content::Text {
            text: text.to_owned(),
            omitted: 0,
        },
        None => Content::Bytes {
            bytes: key.to_vec(),
            omitted: 0,
        },
    }
}

/// A field by its name.
fn named<'d>(place: &Place<'d>, name: &str) -> Result<Place<'d>, String> {
    let fields = match place.ty {
        Type::Struct(Struct { fields, .. }) => fields,
        _ => return Err(format!("it has no field {name}")),
    };
    let found = fields.iter().find(|field| field.name == name);
    let found = found.ok_or_else(|| format!("it has no field {name}"))?;
    Ok(place.field(found))
}

impl<'o, O: Objects + ?Sized> Reader<'o, '_, O> {
    /// What people are shown of a struct, if that is something else than its fields.
    pub(super) fn told(
        &mut self,
        place: &Place<'o>,
        name: &str,
        whole: Content,
        path: &str,
        depth: usize,
    ) -> Content {
        let is_deep = depth < self.limits.depth;
        let shown = match name {
            DATABASE if is_deep => self.entries_of(place).ok(),
            RECORD => {
                let entry = self.memory.record(*place);
                entry.ok().map(|entry| self.value(&entry))
            }
            HEAP => self.heap(&whole, path),
            _ => None,
        };
        match shown {
            Some(shown) => Content::Told {
                shown: Box::new(shown),
                whole: Box::new(whole),
            },
            None => whole,
        }
    }

    /// What a heap of sections means. Objects in its variables are called by these from now on.
    fn heap(&mut self, whole: &Content, path: &str) -> Option<Content> {
        let Content::Struct { fields, .. } = whole else {
            return None;
        };
        let mut found = Vec::new();
        let globals = fields.iter().find(|(name, _)| name == "globals");
        variables(&globals?.1, &mut found)?;
        let mut counts = HashMap::new();
        for (name, _) in &found {
            *counts.entry(file_and_name(name).1).or_insert(0) += 1;
        }
        let kept = format!("{path}.globals[");
        for shown in self.shown.values_mut() {
            let behind = shown.strip_prefix(&kept);
            let Some((number, rest)) = behind.and_then(|it| it.split_once("].place")) else {
                continue;
            };
            let variable = number.parse().ok().and_then(|at: usize| found.get(at));
            if let Some((name, _)) = variable {
                let short = file_and_name(name).1;
                let name = if counts.get(short) == Some(&1) {
                    short
                } else {
                    *name
                };
                *shown = format!("{path}[{name}]{rest}");
            }
        }
        Some(heap_of(fields, &found))
    }

    fn value(&mut self, entry: &Entry<'o>) -> Content {
        match entry.is_deletion {
            true => Content::Nothing,
            false => self.bytes_of(
                entry.bytes.saturating_add(entry.key_len),
                entry.record.end,
                entry.value_len,
            ),
        }
    }

    fn bytes_of(&mut self, address: u64, end: u64, length: u64) -> Content {
        match length {
            0 => text_of(&[]),
            _ => self.bytes(address, end, length, false),
        }
    }

    fn entries_of(&mut self, database: &Place<'o>) -> Result<Content, String> {
        let (mut found, mut count) = (Vec::new(), 0);
        let most = self.limits.elements.min(self.left);
        let mut cuts = self.cuts.clone();
        self.memory.records(database, &mut |_, entry| {
            count += 1;
            if found.len() < most {
                found.push(entry);
            } else if !cuts.may_count(ELEMENT) {
                return ControlFlow::Break(());
            }
            ControlFlow::Continue(())
        })?;
        self.cuts = cuts;
        if count > found.len() as u64 {
            self.cuts.cut(count, false);
        }
        let entries = found.into_iter().map(|entry| {
            let key = self.bytes_of(entry.bytes, entry.record.end, entry.key_len);
            (key, self.value(&entry))
        });
        Ok(Content::Map {
            entries: entries.collect(),
            count,
        })
    }
}

/// A global variable as it was read: its name, with the file's where it is known in that only, and its value.
type Variable<'c> = (&'c str, &'c Content);

/// What a heap of sections means: the global variables, and the root if there is one.
fn heap_of<'c>(fields: &'c [(String, Content)], variables: &[Variable<'c>]) -> Content {
    let mut shown = Vec::new();
    for (name, content) in fields {
        match (name.as_str(), content) {
            ("root", Content::Null { .. }) => {}
            ("globals", _) => shown.extend(variables.iter().map(|(name, value)| {
                let name = match file_and_name(name) {
                    (Some(file), variable) => format!("global variable {variable} of {file}"),
                    (None, variable) => format!("global variable {variable}"),
                };
                (name, (*value).clone())
            })),
            _ => shown.push((name.clone(), content.clone())),
        }
    }
    Content::Struct {
        name: "heap".to_owned(),
        fields: shown,
    }
}

/// The global variables of a program with sections; `None` where they are not followed.
fn variables<'c>(content: &'c Content, found: &mut Vec<Variable<'c>>) -> Option<()> {
    match content {
        Content::Null { .. } => {}
        Content::Pointer {
            target: Target::Here { content },
            ..
        } => variables(content, found)?,
        Content::List(List {
            elements,
            is_cut: false,
            ..
        }) => {
            for (_, it) in elements {
                variables(it, found)?;
            }
        }
        Content::Struct { fields, .. } => {
            let field = |name| fields.iter().find(|(it, _)| it == name).map(|(_, it)| it);
            let Content::Text { text, omitted: 0 } = field("name")? else {
                return None;
            };
            let value = match field("place")? {
                Content::Pointer {
                    target: Target::Here { content },
                    ..
                } => content,
                other => other,
            };
            found.push((text, value));
        }
        _ => return None,
    }
    Some(())
}
