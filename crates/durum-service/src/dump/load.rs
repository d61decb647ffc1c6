//! From lines to the files of a pool.

use std::io::{self, BufRead};
use std::path::Path;
use std::sync::Arc;

use durum_format::dump::line::says_pointers;
use durum_format::dump::{Head, Line, Plan, Refused};
use durum_format::store::StoreHeader;
use durum_format::types::Descriptor;
use durum_format::{EngineKind, UNIT};
use durum_persist::Site;

use super::TELL_EACH;
use super::made::{LoadedType, Made, MadePool, Making, OBJECTS_MAX};
use crate::copying;
use crate::error::{Error, Result};
use crate::identity;
use crate::model::{Progress, ProgressFn, Stage, StoreInfo};
use crate::names::random_uuid;

const PLACE: Site = Site("place of what was loaded");
/// Bytes of a line.
const LINE_MAX: usize = 1 << 30;
/// Pools that are dumped with one.
const POOLS_MAX: usize = 1 << 10;
/// Types of a dump.
const TYPES_MAX: usize = 1 << 16;

/// How a pool is made of lines.
#[derive(Clone, Default)]
pub struct LoadOptions {
    /// Its name; that which it was dumped with when absent. Pools that were dumped with it keep theirs.
    pub name: Option<String>,
    /// The engine of all of them; that which each was dumped with when absent.
    pub engine: Option<EngineKind>,
    /// Objects of unknown type hold no pointers but those that their lines tell. Without it, lines of some that tell
    /// nothing of it are refused.
    pub untyped_hold_no_pointers: bool,
    /// Called as it goes on.
    pub progress: Option<Arc<ProgressFn>>,
}

impl std::fmt::Debug for LoadOptions {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("LoadOptions")
            .field("name", &self.name)
            .field("engine", &self.engine)
            .field("untyped_hold_no_pointers", &self.untyped_hold_no_pointers)
            .field("progress", &self.progress.is_some())
            .finish()
    }
}

/// What was loaded.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LoadReport {
    /// The pool's name.
    pub pool: String,
    /// Those of the pools that were dumped with it.
    pub with: Vec<String>,
    /// Objects.
    pub objects: u64,
    /// Puddles.
    pub puddles: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Objects without a type.
    pub untyped_objects: u64,
    /// Pointers that their lines tell. With any, the pool is right only at the addresses that it was made for: it is
    /// imported without [`ImportOptions::untyped_hold_no_pointers`](crate::ImportOptions::untyped_hold_no_pointers).
    pub untyped_pointers: u64,
}

/// Makes an export at `place` of the lines that [`dump`](super::dump()) wrote, for a store to import: pools with the
/// same objects in the same order, at addresses that are free there as far as is known. Every line is checked. Durable
/// on return; nothing is left behind on an error. Memory does not grow with what lines hold, but for the largest object
/// and pointers to no object; 16 bytes for each object are in a file without a name while it goes on.
///
/// # Errors
/// `LoadRefused` names the line; `ExportExists`; `StorageFull`, `Io`; errors of `input` as `Io`.
pub fn load(
    input: &mut dyn BufRead,
    place: &Path,
    target: &StoreInfo,
    options: &LoadOptions,
) -> Result<LoadReport> {
    let mut lines = Lines {
        input,
        line: Vec::new(),
        number: 0,
    };
    let head = lines.head()?;
    let store = StoreHeader {
        uuid: random_uuid()?,
        base: target.base,
        size: target.space_size,
        start: target.next_address / UNIT * UNIT,
        domain: identity::domain_name(target.domain).to_owned(),
    };
    copying::appear(place, PLACE, |directory| {
        let name = options.name.clone().unwrap_or(head.pool.clone());
        let first = MadePool {
            name: name.clone(),
            engine: options.engine.unwrap_or(head.engine),
            has_root: head.has_root,
            objects: head.objects,
        };
        let with = head.with.iter().map(|with| MadePool {
            name: with.pool.clone(),
            engine: options.engine.unwrap_or(with.engine),
            has_root: with.has_root,
            objects: with.objects,
        });
        let made = Made {
            directory,
            pools: [first].into_iter().chain(with).collect(),
            store,
            old_space: head.space,
        };
        let mut making = Making::begin(made)?;
        lines.rest(&head, &mut making, options)?;
        let finished = making.finish(|done, total| {
            Progress::tell(&options.progress, Stage::Export, done, total);
        })?;
        let making = finished.map_err(|problem| lines.refused(problem))?;
        Ok(LoadReport {
            pool: name,
            with: head.with.iter().map(|with| with.pool.clone()).collect(),
            objects: making.objects(),
            puddles: making.puddles(),
            bytes: making.bytes(),
            untyped_objects: making.untyped_objects,
            untyped_pointers: making.words.len() as u64,
        })
    })
}

struct Lines<'l> {
    input: &'l mut dyn BufRead,
    line: Vec<u8>,
    number: u64,
}

impl Lines<'_> {
    fn refused(&self, problem: impl Into<String>) -> Error {
        Error::LoadRefused {
            line: self.number,
            problem: problem.into(),
        }
    }

    /// Reads the next line; false at the end.
    fn next(&mut self) -> Result<bool> {
        self.line.clear();
        loop {
            let failed = |error| Error::io("reading the lines", Path::new("the input"), error);
            let part = match self.input.fill_buf() {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                part => part.map_err(failed)?,
            };
            if part.is_empty() {
                self.number += u64::from(!self.line.is_empty());
                return Ok(!self.line.is_empty());
            }
            let end = part.iter().position(|byte| *byte == b'\n');
            let taken = part.get(..end.unwrap_or(part.len())).unwrap_or_default();
            if self.line.len() + taken.len() > LINE_MAX {
                self.number += 1;
                return Err(self.refused("it is too long"));
            }
            self.line.extend_from_slice(taken);
            let used = taken.len() + usize::from(end.is_some());
            self.input.consume(used);
            if end.is_some() {
                self.number += 1;
                return Ok(true);
            }
        }
    }

    fn parse(&mut self) -> Result<Line> {
        if !self.next()? {
            self.number += 1;
            return Err(self.refused("the last line is missing: the dump is not whole"));
        }
        Line::parse(&self.line).map_err(|refused: Refused| self.refused(refused.to_string()))
    }

    fn head(&mut self) -> Result<Head> {
        match self.parse()? {
            Line::Head(head) if head.with.len() > POOLS_MAX => {
                Err(self.refused(format!("{POOLS_MAX} pools are dumped together at most")))
            }
            Line::Head(head) if head.all_objects() <= OBJECTS_MAX => Ok(head),
            Line::Head(_) => Err(self.refused("so many objects no pool has")),
            _ => Err(self.refused("the first line is not that of a dump")),
        }
    }

    fn rest(&mut self, head: &Head, making: &mut Making<'_>, options: &LoadOptions) -> Result<()> {
        loop {
            match self.parse()? {
                Line::Head(_) => return Err(self.refused("a dump has one first line")),
                Line::Type { number, text } => {
                    if making.objects() > 0 {
                        return Err(self.refused("types come before objects"));
                    }
                    self.learn(number, text, making)?;
                }
                Line::Object { head: found, value } => {
                    let number = making.objects() + 1;
                    if found.number != number {
                        let problem = format!("object {number} is missing");
                        return Err(self.refused(problem));
                    }
                    if number > head.all_objects() {
                        let problem = format!("there are more than {} objects", head.all_objects());
                        return Err(self.refused(problem));
                    }
                    let is_told = found.ty != 0 || says_pointers(&self.line, value);
                    if !is_told && !options.untyped_hold_no_pointers {
                        return Err(self.refused(
                            "nobody knows whether an object of no type holds pointers, which would lead nowhere; say \
                             that they hold none (`durum load --untyped-hold-no-pointers`), or that words which are \
                             addresses of objects are pointers (`durum dump --untyped-hold-pointers`), if so",
                        ));
                    }
                    let known = (found.ty as usize).checked_sub(1);
                    let known = known.and_then(|at| making.types.get(at));
                    let size = known.map_or(u64::MAX, |known| known.descriptor.layout().size);
                    let object = found.of_type(size);
                    let added = making.add(&object, &self.line, value)?;
                    added.map_err(|problem| self.refused(problem))?;
                    if number.is_multiple_of(TELL_EACH) {
                        Progress::tell(&options.progress, Stage::Load, number, head.all_objects());
                    }
                }
                Line::End(objects) => {
                    if objects != making.objects() || objects != head.all_objects() {
                        let problem = format!(
                            "it tells of {objects} objects, the first one of {}, and there are {}",
                            head.all_objects(),
                            making.objects()
                        );
                        return Err(self.refused(problem));
                    }
                    Progress::tell(&options.progress, Stage::Load, objects, objects);
                    return match self.next()? {
                        true => Err(self.refused("there is something behind the last line")),
                        false => Ok(()),
                    };
                }
            }
        }
    }

    fn learn(&mut self, number: u64, text: String, making: &mut Making<'_>) -> Result<()> {
        if number != making.types.len() as u64 + 1 || making.types.len() >= TYPES_MAX {
            let problem = format!("type {} is missing", making.types.len() + 1);
            return Err(self.refused(problem));
        }
        let refused = |error: &dyn std::fmt::Display| self.refused(error.to_string());
        let descriptor = Descriptor::parse(&text).map_err(|error| refused(&error))?;
        let plan = Plan::of(&descriptor).map_err(|error| refused(&error))?;
        let id = descriptor.id();
        if making.types.iter().any(|known| known.id == id) {
            return Err(self.refused("that type was there before, or another one with its id"));
        }
        making.types.push(LoadedType {
            id,
            text,
            descriptor,
            plan,
        });
        Ok(())
    }
}
