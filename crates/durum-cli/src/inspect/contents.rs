//! What objects mean: the root, a part of it by its path, all objects of a type, or those that lead to an address.

use std::io::Write;

use durum_format::content::{
    self, At, Content, Cuts, Limits, Look, Objects, Path, PathError, Way, printable,
};
use durum_format::extent::HeapBytes;
use durum_format::types::Descriptor;
use serde_json::{Value as Json, json};

use super::found::{self, Found};
use super::pool::{PoolView, Target};
use super::referrers::{self, Referrers};
use crate::args::Inspect;
use crate::failure::Failure;
use crate::output::{count, grouped, more, quoted, size};

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

    fn way(&self, address: u64) -> Option<Way> {
        self.way_elsewhere(address)
    }

    fn name_for_people(&self, name: &str) -> String {
        PoolView::name_for_people(self, name)
    }
}

/// Pointers in a row that are followed unless more are asked for.
pub(crate) const DEPTH: usize = 8;

/// What was asked for.
pub(crate) enum Contents {
    /// There is no root object.
    NoRoot,
    /// The value at a path.
    Value { path: String, look: Look },
    /// All objects of a type.
    Objects {
        asked: String,
        found: Vec<Found>,
        all: u64,
    },
    /// What leads to an address.
    Referrers(Referrers),
}

/// Reads what was asked for; what is damaged goes into `damages`.
pub(crate) fn read(
    pool: &PoolView<'_>,
    options: &Inspect,
    damages: &mut Vec<String>,
) -> Result<Contents, Failure> {
    let limits = Limits {
        depth: options.depth.unwrap_or(DEPTH),
        objects: options.objects,
        elements: options.elements,
    };
    let mut found = match (&options.find, options.to) {
        (Some(name), _) => {
            // Each of them would show what all of them lead to.
            let depth = options.depth.unwrap_or(0);
            let limits = Limits { depth, ..limits };
            let (found, all) = found::of_type(pool, name, &limits, damages)?;
            Contents::Objects {
                asked: name.clone(),
                found,
                all,
            }
        }
        (_, Some(address)) => Contents::Referrers(referrers::leading_to(
            pool,
            address,
            limits.objects,
            damages,
        )?),
        (None, None) => at_path(pool, options.path.as_deref(), &limits)?,
    };
    if let (true, Contents::Referrers(referrers)) = (options.redact, &mut found) {
        referrers.redact();
    }
    let looks: Vec<&mut Look> = match &mut found {
        Contents::Value { look, .. } => vec![look],
        Contents::Objects { found, .. } => found.iter_mut().map(|it| &mut it.look).collect(),
        _ => Vec::new(),
    };
    for look in looks {
        damages.append(&mut look.damages);
        if options.redact {
            let content = std::mem::replace(&mut look.content, Content::Hidden);
            look.content = content.redact();
            // Keys of maps are data, too.
            look.shown.clear();
        }
    }
    Ok(found)
}

fn at_path(pool: &PoolView<'_>, path: Option<&str>, limits: &Limits) -> Result<Contents, Failure> {
    let refused = |error: PathError| match error {
        PathError::Leaves {
            path,
            pool: other,
            rest,
        } => Failure::Refused(format!(
            "`{path}`: this pointer leaves the pool: go on with `durum inspect {} {} --path {}`",
            quoted(&pool.store.name().to_string_lossy()),
            quoted(&other),
            quoted(&rest)
        )),
        error => Failure::Refused(error.to_string()),
    };
    let path: Path = path.unwrap_or("root").parse().map_err(refused)?;
    let begin = match path.start {
        Some(address) => Some(object_at(pool, address)?),
        None => pool.root()?,
    };
    let Some(root) = begin else {
        return Ok(Contents::NoRoot);
    };
    let look = match path.steps.is_empty() {
        true => content::of_object(pool, root, &path.to_string(), limits),
        false => content::at_path(pool, root, &path, limits).map_err(refused)?,
    };
    Ok(Contents::Value {
        path: path.to_string(),
        look,
    })
}

/// The start of the object that an address names.
fn object_at(pool: &PoolView<'_>, address: u64) -> Result<u64, Failure> {
    match pool.at(address) {
        At::Object(object)
            if [0, content::start_of(pool, &object)].contains(&(address - object.start)) =>
        {
            Ok(object.start)
        }
        At::Object(object) => Err(Failure::Refused(format!(
            "{address:#x} lies in the middle of an object: begin with `{:#x}`",
            object.start
        ))),
        At::Other(what) => Err(Failure::Refused(format!(
            "no object of pool \"{}\" begins at {address:#x}: there is this: {}",
            pool.summary.name,
            printable(&what)
        ))),
        At::Damaged(why) => Err(Failure::Damaged(why)),
    }
}

impl Contents {
    pub(crate) fn print(
        &self,
        pool: &str,
        options: &Inspect,
        out: &mut dyn Write,
    ) -> Result<(), Failure> {
        match self {
            Self::NoRoot => writeln!(out, "pool \"{pool}\" has no root object")?,
            Self::Value { path, look } => {
                // A number that is all there is says nothing by itself.
                let is_number = matches!(
                    look.content,
                    Content::Unsigned(_)
                        | Content::Signed(_)
                        | Content::Float(_)
                        | Content::Single(_)
                );
                match is_number && path == "root" {
                    true => {
                        // The number, and not the cell that it is in.
                        let name = look.type_name.rsplit('<').next().unwrap_or_default();
                        let name = name.trim_end_matches('>');
                        writeln!(out, "root: {} {look}", printable(name))?;
                    }
                    false => writeln!(out, "{}: {look}", printable(path))?,
                }
                cut(&look.cuts, options, out)?;
            }
            Self::Objects { asked, found, all } => {
                writeln!(out, "{}", found::heading(asked, found, *all))?;
                for it in found {
                    let path = it.path.as_ref().filter(|_| !options.redact);
                    let path = path.map_or_else(String::new, |path| printable(path) + " at ");
                    let (object, look) = (&it.object, &it.look);
                    writeln!(
                        out,
                        "{path}{:#x}, {}: {look}",
                        object.start,
                        size(object.size)
                    )?;
                }
                more(*all, found.len(), out)?;
            }
            Self::Referrers(referrers) => referrers.print(out)?,
        }
        Ok(())
    }

    pub(crate) fn add_to(&self, options: &Inspect, json: &mut Json) {
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
                let objects = found.iter().map(|it| {
                    json!({
                        "address": address(it.object.start),
                        "bytes": it.object.size,
                        "path": it.path.as_ref().filter(|_| !options.redact),
                        "value": it.look.to_json(),
                    })
                });
                json["objects"] = objects.collect();
            }
            Self::Referrers(referrers) => referrers.add_to(json),
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
            options.depth.unwrap_or(DEPTH)
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
        writeln!(
            out,
            "that are too many values for one look: --path shows a part"
        )?;
    }
    Ok(())
}
