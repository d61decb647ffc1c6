//! What objects mean: the root, a part of it by its path, all objects of a type, or those that lead to an address.

use std::io::Write;
use std::ops::Range;

use durum_format::content::{self, At, Cuts, Limits, Look, Object, Objects, Path, printable};
use durum_format::extent::{self, HeapBytes};
use durum_format::types::{Descriptor, Strength};
use serde_json::{Value as Json, json};

use super::names;
use super::pool::{OBJECT_BYTES_MAX, PoolView, Target, damaged};
use crate::args::Inspect;
use crate::failure::Failure;
use crate::output::{count, grouped, size};

/// How far from the root it is looked for the path to an object.
const NAMED: Limits = Limits {
    depth: 64,
    objects: 20_000,
    elements: 20_000,
};

impl Objects for PoolView<'_> {
    fn at(&self, address: u64) -> At {
        match self.target(address) {
            Target::Object { object, .. } => At::Object(object),
            Target::Other(what) => At::Other(what),
            Target::Damaged(why) => At::Damaged(why),
        }
    }

    fn read(&self, address: u64, buffer: &mut [u8]) -> Result<(), String> {
        let view = self.view_at(address);
        let view = view.ok_or_else(|| format!("{address:#x} is in no puddle of the pool"))?;
        let read = HeapBytes::read(view, address - view.header().address, buffer);
        read.map_err(|error| error.to_string())
    }

    fn descriptor(&self, type_id: u64) -> Option<&Descriptor> {
        self.types.by_id(type_id)
    }

    fn name_for_people(&self, name: &str) -> String {
        names::for_people(name)
    }
}

/// What was asked for.
pub(crate) enum Contents {
    /// There is no root object.
    NoRoot,
    /// The value at a path.
    Value { path: String, look: Look },
    /// All objects of a type.
    Objects {
        asked: String,
        found: Vec<(Object, Look)>,
        all: u64,
    },
    /// What leads to an address.
    Referrers {
        address: u64,
        leads_to: String,
        found: Vec<Referrer>,
        all: u64,
    },
}

/// A pointer.
pub(crate) struct Referrer {
    object: Object,
    type_name: String,
    /// The way from the root to the object, if that was looked for and found.
    path: Option<String>,
    /// Where in the object it lies, as it is written behind the path.
    part: String,
    /// Where it leads.
    to: u64,
    is_weak: bool,
}

/// Reads what was asked for; what is damaged goes into `damages`.
pub(crate) fn read(
    pool: &PoolView<'_>,
    options: &Inspect,
    damages: &mut Vec<String>,
) -> Result<Contents, Failure> {
    let limits = Limits {
        depth: options.depth,
        objects: options.objects,
        elements: options.elements,
    };
    let mut found = match (&options.find, options.to) {
        (Some(name), _) => of_type(pool, name, &limits, damages)?,
        (_, Some(address)) => leading_to(pool, address, limits.objects, damages)?,
        (None, None) => at_path(pool, options.path.as_deref(), &limits)?,
    };
    if options.redact {
        found.redact();
    }
    let looks: Vec<&mut Look> = match &mut found {
        Contents::Value { look, .. } => vec![look],
        Contents::Objects { found, .. } => found.iter_mut().map(|(_, look)| look).collect(),
        _ => Vec::new(),
    };
    for look in looks {
        damages.append(&mut look.damages);
        if options.redact {
            let content = std::mem::replace(&mut look.content, content::Content::Hidden);
            look.content = content.redact();
            // Keys of maps are data, too.
            look.shown.clear();
        }
    }
    Ok(found)
}

fn at_path(pool: &PoolView<'_>, path: Option<&str>, limits: &Limits) -> Result<Contents, Failure> {
    let refused = |error: content::PathError| Failure::Refused(error.to_string());
    let path: Path = path.unwrap_or("root").parse().map_err(refused)?;
    let Some(root) = pool.root()? else {
        return Ok(Contents::NoRoot);
    };
    let look = match path.steps.is_empty() {
        true => content::of_object(pool, root, "root", limits),
        false => content::at_path(pool, root, &path, limits).map_err(refused)?,
    };
    Ok(Contents::Value {
        path: path.to_string(),
        look,
    })
}

/// Each object of the pool, in the order of their addresses.
fn each_object(
    pool: &PoolView<'_>,
    damages: &mut Vec<String>,
    mut visit: impl FnMut(Object) -> Result<(), Failure>,
) -> Result<(), Failure> {
    for view in &pool.puddles {
        for object in extent::objects(view, view.header()) {
            match object {
                Ok(object) => visit(Object {
                    start: view.header().address + object.offset,
                    size: object.size,
                    type_id: pool.meaning(object.type_id),
                    is_element: object.element.is_some(),
                })?,
                Err(error) => damages.push(damaged(view, error)),
            }
        }
    }
    Ok(())
}

fn of_type(
    pool: &PoolView<'_>,
    name: &str,
    limits: &Limits,
    damages: &mut Vec<String>,
) -> Result<Contents, Failure> {
    let (mut found, mut all) = (Vec::new(), 0);
    let mut names = std::collections::BTreeSet::new();
    each_object(pool, damages, |object| {
        if !is_called(pool, &object, name) {
            names.insert(content::type_name(pool, &object));
            return Ok(());
        }
        all += 1;
        if found.len() < limits.objects {
            let address = format!("{:#x}", object.start);
            let look = content::of_object(pool, object.start, &address, limits);
            found.push((object, look));
        }
        Ok(())
    })?;
    if all == 0 {
        let names: Vec<String> = names.iter().map(|name| printable(name)).collect();
        return Err(Failure::Refused(format!(
            "no object of the pool is of type {name:?}; there are: {}",
            names.join(", ")
        )));
    }
    Ok(Contents::Objects {
        asked: name.to_owned(),
        found,
        all,
    })
}

/// Whether that is the name of an object's type, as it is shown or as it stands in the store, or of what a collection
/// keeps in the object.
fn is_called(pool: &PoolView<'_>, object: &Object, name: &str) -> bool {
    let its = content::type_name(pool, object);
    let element = its.strip_prefix('[').and_then(|its| its.strip_suffix(']'));
    let descriptor = pool.types.by_id(object.type_id);
    its == name
        || element == Some(name)
        || descriptor.is_some_and(|descriptor| descriptor.title() == name)
}

/// What leads to an address, or into the object there.
fn leading_to(
    pool: &PoolView<'_>,
    address: u64,
    most: usize,
    damages: &mut Vec<String>,
) -> Result<Contents, Failure> {
    let mut search = Search::of(pool, address, most, damages);
    each_object(pool, damages, |object| search.visit(&object))?;
    let mut found = search.found();
    if let (Contents::Referrers { found, .. }, Some(root)) = (&mut found, pool.root()?) {
        let shown = content::of_object(pool, root, "root", &NAMED).shown;
        for found in found {
            found.path = shown.get(&found.object.start).cloned();
        }
    }
    Ok(found)
}

/// A search for the pointers that lead to an address, or into the object there.
pub(crate) struct Search<'a, 'b> {
    pool: &'a PoolView<'b>,
    address: u64,
    /// Whatever leads into the object leads to it.
    range: Range<u64>,
    leads_to: String,
    most: usize,
    found: Vec<Referrer>,
    all: u64,
    /// Of the object that is looked at.
    bytes: Vec<u8>,
}

impl<'a, 'b> Search<'a, 'b> {
    /// Tells of at most so many pointers, and counts the others.
    pub(crate) fn of(
        pool: &'a PoolView<'b>,
        address: u64,
        most: usize,
        damages: &mut Vec<String>,
    ) -> Self {
        let (range, leads_to) = match pool.at(address) {
            At::Object(object) => {
                let name = content::type_name(pool, &object);
                let range = object.start..object.start.saturating_add(object.size);
                (range, format!("{name} at {:#x}", object.start))
            }
            At::Other(what) => (address..address.saturating_add(1), what),
            At::Damaged(why) => {
                damages.push(why.clone());
                (address..address.saturating_add(1), why)
            }
        };
        Search {
            pool,
            address,
            range,
            leads_to,
            most,
            found: Vec::new(),
            all: 0,
            bytes: Vec::new(),
        }
    }

    /// Looks at the pointers of an object. One that contradicts its type is for `durum check`.
    pub(crate) fn visit(&mut self, object: &Object) -> Result<(), Failure> {
        let pool = self.pool;
        let Some(descriptor) = pool.types.by_id(object.type_id) else {
            return Ok(());
        };
        if !descriptor.has_pointers() || object.size > OBJECT_BYTES_MAX {
            return Ok(());
        }
        let Some(view) = pool.view_at(object.start) else {
            return Ok(());
        };
        let mut bytes = std::mem::take(&mut self.bytes);
        bytes.resize(object.size_by(descriptor) as usize, 0);
        HeapBytes::read(view, object.start - view.header().address, &mut bytes)?;
        let _ = descriptor.visit_pointers(&bytes, |pointer| {
            let word = bytes.get(pointer.offset as usize..).unwrap_or_default();
            let to = word
                .first_chunk()
                .map_or(0, |word| u64::from_le_bytes(*word));
            if !self.range.contains(&to) {
                return;
            }
            self.all += 1;
            if self.found.len() < self.most {
                self.found.push(Referrer {
                    object: *object,
                    type_name: content::type_name(pool, object),
                    path: None,
                    part: content::part_of(pool, object, pointer.offset).0,
                    to,
                    is_weak: pointer.strength == Strength::Weak,
                });
            }
        });
        self.bytes = bytes;
        Ok(())
    }

    /// What was found.
    pub(crate) fn found(self) -> Contents {
        Contents::Referrers {
            address: self.address,
            leads_to: self.leads_to,
            found: self.found,
            all: self.all,
        }
    }
}

impl Contents {
    /// Hides where pointers lie: paths have the keys of maps, and may go through the case of an enum.
    pub(crate) fn redact(&mut self) {
        if let Self::Referrers { found, .. } = self {
            for found in found {
                found.path = None;
                found.part = ".?".to_owned();
            }
        }
    }

    pub(crate) fn print(
        &self,
        pool: &str,
        options: &Inspect,
        out: &mut dyn Write,
    ) -> Result<(), Failure> {
        match self {
            Self::NoRoot => writeln!(out, "pool \"{pool}\" has no root object")?,
            Self::Value { path, look } => {
                writeln!(out, "{}: {look}", printable(path))?;
                cut(&look.cuts, options, out)?;
            }
            Self::Objects { asked, found, all } => {
                writeln!(
                    out,
                    "{} of type {}",
                    count(*all, "object"),
                    printable(asked)
                )?;
                for (object, look) in found {
                    writeln!(out, "{:#x}, {}: {look}", object.start, size(object.size))?;
                }
                more(*all, found.len(), out)?;
            }
            Self::Referrers {
                address,
                leads_to,
                found,
                all,
            } => {
                writeln!(
                    out,
                    "{} to {address:#x}, {}",
                    count(*all, "pointer"),
                    printable(leads_to)
                )?;
                for referrer in found {
                    let arrow = if referrer.is_weak { "~>" } else { "->" };
                    let begin = match &referrer.path {
                        Some(path) => path.clone(),
                        None => format!("{} at {:#x}, ", referrer.type_name, referrer.object.start),
                    };
                    let part = match &referrer.path {
                        Some(_) => &referrer.part,
                        None => referrer.part.trim_start_matches('.'),
                    };
                    let (begin, part) = (printable(&begin), printable(part));
                    writeln!(out, "{begin}{part} {arrow} {:#x}", referrer.to)?;
                }
                more(*all, found.len(), out)?;
            }
        }
        Ok(())
    }

    pub(crate) fn add_to(&self, json: &mut Json) {
        let address = |address: u64| json!(format!("{address:#x}"));
        match self {
            Self::NoRoot => json["value"] = Json::Null,
            Self::Value { path, look } => {
                json["path"] = json!(path);
                json["address"] = address(look.address);
                json["type"] = json!(look.type_name);
                json["value"] = look.to_json();
                json["pointers_cut"] = json!(look.cut);
                json["elements_cut"] = json!(look.cuts.elements);
                json["elements_enough"] = json!(look.cuts.elements_enough);
            }
            Self::Objects { asked, found, all } => {
                json["type"] = json!(asked);
                json["count"] = json!(all);
                let objects = found.iter().map(|(object, look)| {
                    json!({
                        "address": address(object.start),
                        "bytes": object.size,
                        "value": look.to_json(),
                    })
                });
                json["objects"] = objects.collect();
            }
            Self::Referrers {
                address: asked,
                leads_to,
                found,
                all,
            } => {
                json["address"] = address(*asked);
                json["leads_to"] = json!(leads_to);
                json["count"] = json!(all);
                let pointers = found.iter().map(|found| {
                    let mut pointer = json!({
                        "address": address(found.object.start),
                        "type": found.type_name,
                        "part": found.part,
                        "to": address(found.to),
                        "weak": found.is_weak,
                    });
                    if let Some(path) = &found.path {
                        pointer["path"] = json!(format!("{path}{}", found.part));
                    }
                    pointer
                });
                json["pointers"] = pointers.collect();
            }
        }
    }
}

/// What is left off, and the option that shows it.
fn cut(cuts: &Cuts, options: &Inspect, out: &mut dyn Write) -> Result<(), Failure> {
    if cuts.depth > 0 {
        writeln!(
            out,
            "{} not followed: a larger --depth (now {}) shows more",
            count(cuts.depth, "pointer"),
            options.depth
        )?;
    }
    if cuts.objects > 0 {
        writeln!(
            out,
            "{} not followed: a larger --objects (now {}) shows more",
            count(cuts.objects, "pointer"),
            options.objects
        )?;
    }
    if cuts.elements > 0 {
        let what = match cuts.elements {
            1 => "1 list, map or text is cut".to_owned(),
            number => format!("{} lists, maps or texts are cut", grouped(number)),
        };
        let (more, enough) = match cuts.is_more {
            true => ("more than ", "shows more"),
            false => ("", "is enough"),
        };
        writeln!(
            out,
            "{what}: --elements {more}{} {enough} (now {})",
            cuts.elements_enough, options.elements
        )?;
    }
    if cuts.is_too_much {
        writeln!(out, "that are too many values for one look: --path shows a part")?;
    }
    Ok(())
}

fn more(all: u64, shown: usize, out: &mut dyn Write) -> Result<(), Failure> {
    match all - shown as u64 {
        0 => Ok(()),
        more => Ok(writeln!(out, "… {} more (--objects)", grouped(more))?),
    }
}
