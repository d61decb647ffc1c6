//! A pool as lines of JSON, and a pool made of such lines: `docs/format/dump.md`.
//!
//! [`numbers`] tells which object an address is; a dump goes over a pool twice, for its numbers and for its lines, and
//! keeps nothing of its contents. A load makes an export of the lines (`load`,
//! `made`, `heap`, `pointing`), which is imported as any other.

pub(crate) mod heap;
mod load;
mod made;
pub(crate) mod numbers;
mod pointing;
pub(crate) mod rows;
pub(crate) mod window;

use std::collections::{BTreeMap, HashMap};
use std::io::{self, Write};
use std::sync::Arc;

use durum_format::content::Object;
use durum_format::dump::line::{is_in_slab, usual_align, write_end, write_type};
use durum_format::dump::{Head, ObjectHead, Plan, PoolWith};
use durum_format::extent::{self, Extent, ExtentKind, UNTYPED};
use durum_format::types::{Descriptor, Meanings, Registry, Type};
use durum_format::{EngineKind, Uuid};

use crate::error::{Error, Result};
use crate::inspect::ReadOnlyStore;
use crate::liveness;
use crate::model::{Progress, ProgressFn, Stage};
use crate::puddle_view::PuddleView;
use crate::recovery::ensure_not_interrupted;
pub use load::{LoadOptions, LoadReport, load};
use numbers::Numbers;
use window::Window;

/// Bytes of lines that are written at once.
const WRITTEN_AT_ONCE: usize = 256 << 10;
/// Objects between two words of progress.
const TELL_EACH: u64 = 1 << 16;

const CURE: &str = "`durum check` looks at everything";

/// How a pool is dumped.
#[derive(Clone, Default)]
pub struct DumpOptions {
    /// Each 8 bytes of an object without a type that are an address of an object are a pointer. Without it nobody
    /// knows whether bytes of them are.
    pub untyped_hold_pointers: bool,
    /// Called as it goes on.
    pub progress: Option<Arc<ProgressFn>>,
}

impl std::fmt::Debug for DumpOptions {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("DumpOptions")
            .field("untyped_hold_pointers", &self.untyped_hold_pointers)
            .field("progress", &self.progress.is_some())
            .finish()
    }
}

/// What was dumped.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DumpReport {
    /// Objects.
    pub objects: u64,
    /// Their types.
    pub types: u64,
    /// Objects without a type: their bytes may hold pointers, which nobody knows but the caller.
    pub untyped_objects: u64,
    /// Pointers that lead to no object of the pools, with words of objects without a type that are addresses of puddles
    /// of the store, if such are pointers.
    pub pointers_elsewhere: u64,
    /// Bytes of lines.
    pub bytes: u64,
}

/// Writes pools as lines of JSON, by the descriptors of their objects; one, or several that are loaded together, with
/// the pointers from one to another. Nobody writes them meanwhile; a store that was not closed in order is dumped as
/// recovery will leave it. Memory does not grow with what the pools hold, but for some bytes for each extent, and the
/// largest object.
///
/// # Errors
/// `Options` where there is none, or one is named twice; `PoolMissing`; `StoreBusy`, `PoolBusy` for what somebody
/// writes; `PoolQuarantined`, `PoolInterrupted`; `TypeRefused` for objects whose type is not registered; `Damaged` for
/// those that contradict it; those of `out`.
pub fn dump<E: From<Error> + From<io::Error>>(
    reader: &mut ReadOnlyStore,
    pools: &[&str],
    out: &mut dyn Write,
    options: &DumpOptions,
) -> Result<DumpReport, E> {
    let is_twice = |(at, name): (usize, &&str)| pools.iter().take(at).any(|other| other == name);
    if pools.is_empty() || pools.iter().enumerate().any(is_twice) {
        let reason = "each pool is named once".to_owned();
        return Err(Error::Options { reason }.into());
    }
    for pool in pools {
        if let Some((_, refused)) = reader.hold(Some(pool))?.into_iter().next() {
            return Err(refused.into());
        }
    }
    let reader = &*reader;
    let _lock = match reader.is_served() {
        true => None,
        false => liveness::share(reader.path())?,
    };
    let mut types = Types::default();
    let mut numbers = Numbers::default();
    let parts = pools
        .iter()
        .map(|pool| Part::of(reader, pool, &mut types, &mut numbers))
        .collect::<Result<Vec<Part<'_>>>>()?;
    let mut with = parts.iter().map(|part| PoolWith {
        pool: part.pool.to_owned(),
        engine: part.engine,
        objects: part.objects,
        has_root: part.has_root,
    });
    let Some(first) = with.next() else {
        return Ok(DumpReport::default());
    };
    let space = &reader.contents().store;
    let head = Head {
        pool: first.pool,
        engine: first.engine,
        space: (space.base, space.size),
        objects: first.objects,
        has_root: first.has_root,
        with: with.collect(),
    };
    let of_store = reader.puddles();
    let of_store = of_store.iter().filter(|puddle| puddle.kind.holds_objects());
    let mut dump = Dump {
        types: &types,
        numbers: &numbers,
        of_store: of_store
            .map(|puddle| (puddle.address, puddle.size))
            .collect(),
        lines: Vec::with_capacity(WRITTEN_AT_ONCE * 2),
        out,
        report: DumpReport {
            types: types.all.len() as u64,
            ..DumpReport::default()
        },
        untyped: match options.untyped_hold_pointers {
            true => Plan::untyped_with_pointers(),
            false => Plan::untyped(),
        },
        progress: options.progress.clone(),
    };
    head.write(&mut dump.lines);
    for (number, known) in (1..).zip(&types.all) {
        write_type(number, known.descriptor.text(), &mut dump.lines);
    }
    for part in &parts {
        for view in &part.views {
            dump.puddle::<E>(view, part.meanings)?;
        }
    }
    write_end(dump.report.objects, &mut dump.lines);
    dump.flush()?;
    dump.out.flush()?;
    Ok(dump.report)
}

/// A pool of those that are dumped.
struct Part<'r> {
    pool: &'r str,
    engine: EngineKind,
    views: Vec<PuddleView>,
    /// What its program has changed is dumped as it is now.
    meanings: &'r Meanings,
    objects: u64,
    has_root: bool,
}

impl<'r> Part<'r> {
    /// Looks at its extents: their types are learnt, and objects get the next numbers.
    fn of(
        reader: &'r ReadOnlyStore,
        pool: &'r str,
        types: &mut Types,
        numbers: &mut Numbers,
    ) -> Result<Part<'r>> {
        let (uuid, engine) = found(reader, pool)?;
        let mut records = reader.contents().puddles_of(uuid);
        // The root object is the first.
        records.sort_unstable_by_key(|(_, record)| (!record.is_root, record.address));
        let views = records
            .iter()
            .map(|(uuid, _)| reader.puddle_unguarded(*uuid))
            .collect::<Result<Vec<PuddleView>>>()?;
        let meanings = reader.meanings_of(uuid);
        let before = numbers.objects();
        let mut has_root = false;
        for view in &views {
            numbers.begin(view.header());
            for extent in extent::extents(view, view.header()) {
                let extent = extent.map_err(|error| Error::damaged_heap(view.path(), &error))?;
                has_root |= view.header().is_root && extent.granule() == 0;
                // A slab without elements is no object's.
                if extent.allocated() > 0 {
                    types.learn(reader, meanings.of(extent.type_id()))?;
                }
                numbers.add(view.header(), &extent, 0)?;
            }
        }
        Ok(Part {
            pool,
            engine,
            views,
            meanings,
            objects: numbers.objects() - before,
            has_root,
        })
    }
}

/// A pool that can be dumped.
fn found(reader: &ReadOnlyStore, pool: &str) -> Result<(Uuid, EngineKind)> {
    let (uuid, record) = reader
        .contents()
        .pool_named(pool)
        .ok_or_else(|| Error::no_pool(reader.name(), pool))?;
    if let Some(note) = reader.contents().quarantine_of(uuid) {
        return Err(Error::quarantined(reader.name(), pool.to_owned(), note));
    }
    ensure_not_interrupted(reader.name(), &reader.pending().interrupted, pool)?;
    Ok((uuid, record.engine))
}

/// A type of the pool's objects.
struct Known {
    descriptor: Descriptor,
    plan: Plan,
}

/// The types of the pool's objects, in the order in which they come.
#[derive(Default)]
struct Types {
    all: Vec<Known>,
    by_id: HashMap<u64, usize>,
}

impl Types {
    fn learn(&mut self, reader: &ReadOnlyStore, id: u64) -> Result<()> {
        if id == UNTYPED || self.by_id.contains_key(&id) {
            return Ok(());
        }
        let refused = |reason: String| Error::TypeRefused { id, reason };
        let text = reader.type_text(id)?;
        let text = text.ok_or_else(|| {
            refused("objects of the pool have it, and its text is not registered".to_owned())
        })?;
        // Read as whatever is registered is.
        let mut types = Registry::new();
        crate::descriptors::register(&mut types, id, &text)?;
        let descriptor = types.by_id(id).cloned();
        let descriptor = descriptor.ok_or_else(|| refused("its text has another id".to_owned()))?;
        let plan = Plan::of(&descriptor).map_err(|error| refused(error.to_string()))?;
        self.by_id.insert(id, self.all.len());
        self.all.push(Known { descriptor, plan });
        Ok(())
    }
}

struct Dump<'d> {
    types: &'d Types,
    numbers: &'d Numbers,
    /// Where puddles of all pools begin, and how long they are.
    of_store: BTreeMap<u64, u64>,
    lines: Vec<u8>,
    out: &'d mut dyn Write,
    report: DumpReport,
    /// Of objects without a type.
    untyped: Plan,
    progress: Option<Arc<ProgressFn>>,
}

impl Dump<'_> {
    fn flush(&mut self) -> io::Result<()> {
        self.report.bytes += self.lines.len() as u64;
        self.out.write_all(&self.lines)?;
        self.lines.clear();
        Ok(())
    }

    fn puddle<E: From<Error> + From<io::Error>>(
        &mut self,
        view: &PuddleView,
        meanings: &Meanings,
    ) -> Result<(), E> {
        let mut window = Window::of(view);
        for extent in extent::extents(view, view.header()) {
            let extent = extent.map_err(|error| Error::damaged_heap(view.path(), &error))?;
            let known = meanings.of(extent.type_id());
            let known = self.types.by_id.get(&known);
            let known = known.and_then(|at| Some((*at as u64 + 1, self.types.all.get(*at)?)));
            let align = own_align(&extent, known.map(|(_, known)| known));
            for object in extent.objects() {
                let bytes = window.bytes(object.offset, object.size)?;
                self.object(view, &object, known, align, bytes)?;
                if self.lines.len() >= WRITTEN_AT_ONCE {
                    self.flush()?;
                }
                if self.report.objects.is_multiple_of(TELL_EACH) {
                    self.tell_progress();
                }
            }
        }
        self.tell_progress();
        Ok(())
    }

    fn tell_progress(&self) {
        let (done, total) = (self.report.objects, self.numbers.objects());
        Progress::tell(&self.progress, Stage::Dump, done, total);
    }

    fn object(
        &mut self,
        view: &PuddleView,
        object: &extent::Object,
        known: Option<(u64, &Known)>,
        align: Option<u64>,
        bytes: &[u8],
    ) -> Result<()> {
        self.report.objects += 1;
        let head = ObjectHead {
            number: self.report.objects,
            ty: known.map_or(0, |(number, _)| number),
            size: object.size,
            align,
        };
        let (numbers, elsewhere) = (self.numbers, &mut self.report.pointers_elsewhere);
        let of_store = &self.of_store;
        let mut to = |address| {
            let found = numbers.find(address);
            *elsewhere += u64::from(found == durum_format::dump::To::Nowhere);
            found
        };
        let written = match known {
            Some((_, Known { descriptor, plan })) => {
                head.write(descriptor.layout().size, &mut self.lines);
                let by_type = Object {
                    start: 0,
                    size: object.size,
                    type_id: object.type_id,
                    is_element: object.element.is_some(),
                };
                let size = said(&by_type, descriptor, bytes);
                let bytes = bytes.get(..size).unwrap_or(bytes);
                plan.write(bytes, &mut self.lines, &mut to)
            }
            None => {
                self.report.untyped_objects += 1;
                head.write(u64::MAX, &mut self.lines);
                let mut to = |word| {
                    let found = numbers.find_or_end(word);
                    let before = of_store.range(..=word).next_back();
                    let is_in_store = before.is_some_and(|(begin, size)| word - begin < *size);
                    *elsewhere +=
                        u64::from(is_in_store && found == durum_format::dump::To::Nowhere);
                    found
                };
                self.untyped.write(bytes, &mut self.lines, &mut to)
            }
        };
        self.lines.extend_from_slice(b"}\n");
        written.map_err(|wrong| Error::Damaged {
            file: view.path().to_owned(),
            structure: "object",
            offset: object.offset + wrong.at,
            problem: format!("{} does not fit the object's type", wrong.what),
            cure: CURE.into(),
        })
    }
}

/// The bytes of an object of which its line tells. What may be a row is one where not all is zero that follows the
/// first element; an array would be taken for one, and is none.
fn said(object: &Object, descriptor: &Descriptor, bytes: &[u8]) -> usize {
    let one = object.size_by(descriptor) as usize;
    let row = object.row_by(descriptor) as usize;
    let row = row
        - row
            .checked_rem(descriptor.layout().size as usize)
            .unwrap_or(0);
    let is_row = !matches!(descriptor.root(), Type::Array { .. })
        && bytes
            .get(one..row)
            .is_some_and(|rest| rest.iter().any(|byte| *byte != 0));
    if is_row { row } else { one }
}

/// How an object is aligned that has an extent of its own, if its size does not tell.
fn own_align(extent: &Extent, known: Option<&Known>) -> Option<u64> {
    let align = known.map_or(1, |known| known.descriptor.layout().align);
    align_of(extent, align)
}

/// The same, of one whose type is aligned so.
pub(crate) fn align_of(extent: &Extent, type_align: u64) -> Option<u64> {
    let ExtentKind::Object { size, data_offset } = extent.header().kind else {
        return None;
    };
    let is_usual = !is_in_slab(size) && data_offset == usual_align(type_align);
    (!is_usual).then_some(data_offset)
}
