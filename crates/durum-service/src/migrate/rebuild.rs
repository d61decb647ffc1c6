//! Maps whose keys have changed are built anew in the new puddles, by the program: only it knows what `Hash` or `Ord`
//! says of a key. Nobody has these puddles yet, so nothing is logged; an error, or a crash, leaves the old ones.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use durum_format::content::Object;
use durum_format::extent::{self, Place};
use durum_format::migrate::{Conversion, Refusal};
use durum_format::puddle::PuddleHeader;
use durum_format::types::Descriptor;
use durum_persist::Site;
use durum_persist::file::MediaFile;
use memmap2::{MmapMut, MmapOptions};
use rustix::fd::AsRawFd;

use super::old::Old;
use super::{MigrateReport, Migration, OldPuddle, Refusals};
use crate::dump::window::Window;
use crate::error::{Error, Result};
use crate::files::grown;
use crate::puddle_view::PuddleView;

const REBUILT: Site = Site("rebuilt maps");
const ROOM: Site = Site("room for a map that is rebuilt");

/// The new puddles, for functions that build maps anew in them.
#[derive(Debug)]
pub struct NewPuddles {
    /// By address.
    puddles: Vec<NewPuddle>,
    /// Bytes of the objects that maps own which the function has built that is asked.
    claimed: u64,
}

#[derive(Debug)]
struct NewPuddle {
    view: PuddleView,
    is_written: bool,
}

impl NewPuddles {
    fn of(headers: &[PuddleHeader], files: Vec<MediaFile>) -> Self {
        let puddles = headers.iter().zip(files).map(|(header, file)| NewPuddle {
            view: PuddleView::as_written(file, header),
            is_written: false,
        });
        let mut puddles: Vec<NewPuddle> = puddles.collect();
        puddles.sort_unstable_by_key(|puddle| puddle.view.header().address);
        Self {
            puddles,
            claimed: 0,
        }
    }

    fn place_at(&self, address: u64) -> Option<usize> {
        let begins = |puddle: &NewPuddle| puddle.view.header().address <= address;
        let at = self.puddles.partition_point(begins).checked_sub(1)?;
        let header = self.puddles.get(at)?.view.header();
        (address < header.end()).then_some(at)
    }

    /// Bytes of the object that begins at an address, if one does.
    ///
    /// # Errors
    /// `Damaged`, `Io`.
    pub fn object(&self, address: u64) -> Result<Option<u64>> {
        let Some(NewPuddle { view, .. }) = self.place_at(address).map(|at| &self.puddles[at])
        else {
            return Ok(None);
        };
        let located = extent::locate(view, view.header(), address)
            .map_err(|error| Error::damaged_heap(view.path(), &error))?;
        Ok(located.and_then(|located| match located.place {
            Place::Object { object, offset: 0 } => Some(object.size),
            _ => None,
        }))
    }

    /// Bytes of all of them.
    pub fn bytes(&self) -> u64 {
        let sizes = self.puddles.iter().map(|puddle| puddle.view.header().size);
        sizes.sum()
    }

    /// Takes note of an object of so many bytes that a map owns. False where maps of one type own more than there is:
    /// some have an object in common, and nobody goes on for as long as they say.
    pub fn claim(&mut self, bytes: u64) -> bool {
        self.claimed = self.claimed.saturating_add(bytes);
        self.claimed <= self.bytes()
    }

    /// Writes bytes to an object.
    ///
    /// # Errors
    /// `Options` for bytes that lie in no puddle; `StorageFull`, `Io`.
    pub fn write(&mut self, address: u64, bytes: &[u8]) -> Result<()> {
        let puddle = self.place_at(address);
        let puddle = puddle.and_then(|at| self.puddles.get_mut(at));
        let fits = |puddle: &&mut NewPuddle| {
            let header = puddle.view.header();
            address >= header.heap_address() && bytes.len() as u64 <= header.end() - address
        };
        let Some(puddle) = puddle.filter(fits) else {
            let reason = format!("{address:#x} is in no heap that is new");
            return Err(Error::Options { reason });
        };
        puddle.is_written = true;
        let (header, file) = (puddle.view.header(), puddle.view.file());
        for copy in 0..header.kind.copies() {
            let at = copy * header.size + (address - header.address);
            file.write_all_at(bytes, at)
                .map_err(|error| not_written(puddle, error))?;
        }
        Ok(())
    }

    fn views(&self) -> Vec<PuddleView> {
        let puddles = self.puddles.iter().map(|puddle| &puddle.view);
        let views = puddles.map(|view| PuddleView::as_written(view.file().clone(), view.header()));
        views.collect()
    }

    fn make_durable(&self) -> Result<()> {
        for puddle in self.puddles.iter().filter(|puddle| puddle.is_written) {
            let file = puddle.view.file();
            // ORDER: maps are durable as they were built before the registry names the puddle; else a crash leaves
            // keys that nobody finds.
            file.sync(REBUILT)
                .map_err(|error| not_written(puddle, error))?;
        }
        Ok(())
    }
}

fn not_written(puddle: &NewPuddle, error: std::io::Error) -> Error {
    let size = puddle.view.header().file_size();
    grown("writing a rebuilt map", puddle.view.path(), size, error)
}

/// Room for what a map is built from: a file without a name, which the system may write out where there is little
/// memory.
#[derive(Debug)]
pub struct Room {
    directory: PathBuf,
    mapped: Option<(MmapMut, MediaFile)>,
}

impl Room {
    const LEAST: u64 = 1 << 20;

    /// Bytes of the file for so many.
    pub(super) fn bytes(wanted: u64) -> u64 {
        let pieces = wanted.div_ceil(Self::LEAST).max(1);
        pieces.saturating_mul(Self::LEAST)
    }

    fn of(directory: &Path) -> Self {
        Self {
            directory: directory.to_owned(),
            mapped: None,
        }
    }

    /// So many bytes, which are zero. They begin with a page.
    ///
    /// # Errors
    /// `StorageFull`, `Io`.
    pub fn zeroed(&mut self, bytes: usize) -> Result<&mut [u8]> {
        let has = |(mapped, _): &(MmapMut, MediaFile)| mapped.len() >= bytes;
        let mapped = match self.mapped.take().filter(has) {
            Some(mapped) => mapped,
            None => self.map(Self::bytes(bytes as u64) as usize)?,
        };
        let (mapped, _) = self.mapped.insert(mapped);
        let room = mapped.get_mut(..bytes).unwrap_or_default();
        room.fill(0);
        Ok(room)
    }

    fn map(&self, length: usize) -> Result<(MmapMut, MediaFile)> {
        let path = self.directory.join("room for a map");
        let size = length as u64;
        let failed = |error| grown("making room for a map", &path, size, error);
        let file = MediaFile::nameless(&self.directory, &path).map_err(failed)?;
        // A hole would be an error of the medium when it is written.
        file.allocate(size, ROOM).map_err(failed)?;
        // SAFETY: nobody else can open the file, and it keeps its length.
        let mapped = unsafe {
            MmapOptions::new()
                .len(length)
                .map_mut(file.as_fd().as_raw_fd())
        };
        let mapped =
            mapped.map_err(|error| Error::io("mapping room for a map", &self.directory, error))?;
        Ok((mapped, file))
    }
}

/// Has the program build all maps anew of which rules say so, in puddles that are written and nobody's yet. Durable on
/// return, or else the report has what stands in the way.
///
/// # Errors
/// `StorageFull`, `Damaged`, `Io`.
pub(super) fn rebuild(
    old: &Old<'_>,
    (headers, files): (&[PuddleHeader], Vec<MediaFile>),
    migration: &mut Migration<'_>,
    report: &mut MigrateReport,
) -> Result<()> {
    let mut by_id: BTreeMap<u64, &Conversion> = BTreeMap::new();
    for (_, conversion) in old.pairs_of_objects() {
        if conversion.has_rebuilt() {
            by_id.insert(conversion.new_type().id(), conversion);
        }
    }
    if by_id.is_empty() || report.rebuilt_maps == 0 {
        return Ok(());
    }
    let mut refusals = Refusals::default();
    let functions = migration.rules.rebuilt();
    let Some(program) = &mut migration.functions else {
        refusals.of_types(Refusal::new(
            "maps",
            "there is no function that builds them anew",
        ));
        refusals.told(report);
        return Ok(());
    };
    let mut new = NewPuddles::of(headers, files);
    let views = new.views();
    let mut room = Room::of(old.reader.path());
    // One after the other: keys may hold maps, which are built before (`Rules::rebuilt` has them in that order).
    for function in functions {
        let puddles = views.iter().map(|view| OldPuddle {
            header: view.header(),
            file: view.file(),
        });
        program.begin_rebuilding(&puddles.collect::<Vec<_>>())?;
        new.claimed = 0;
        let mut found = Vec::new();
        for view in &views {
            let mut window = Window::of(view);
            for extent in extent::extents(view, view.header()) {
                let extent = extent.map_err(|error| Error::damaged_heap(view.path(), &error))?;
                let Some(conversion) = by_id.get(&extent.type_id()) else {
                    continue;
                };
                let ty = conversion.new_type();
                for object in extent.objects() {
                    let bytes = window.bytes(object.offset, object.size)?;
                    let bytes = bytes.get(..size(ty, &object)).unwrap_or(bytes);
                    found.clear();
                    // What does not fit its new type was refused before.
                    let _ = conversion.visit_rebuilt(bytes, |offset, by| {
                        found.extend((by == function).then_some(offset));
                    });
                    for offset in &found {
                        let address = view.header().address + object.offset + offset;
                        if let Err(why) = program.rebuild(function, address, &mut new, &mut room)? {
                            refusals.of_object(Refusal::new(way(ty, bytes, *offset), why));
                        }
                    }
                }
            }
        }
    }
    match refusals.found.is_empty() {
        true => new.make_durable()?,
        false => refusals.told(report),
    }
    Ok(())
}

/// The bytes of a new object by its type.
fn size(ty: &Descriptor, object: &extent::Object) -> usize {
    let by_type = Object {
        start: 0,
        size: object.size,
        type_id: object.type_id,
        is_element: object.element.is_some(),
    };
    usize::try_from(by_type.size_by(ty)).unwrap_or(usize::MAX)
}

/// The way to a map in an object, from its type.
fn way(ty: &Descriptor, bytes: &[u8], offset: u64) -> String {
    let mut way = ty.called();
    if let Ok(found) = ty.path(bytes, offset) {
        // What lies there is the first field of the map.
        let text = found.text.rsplit_once('.').map_or("", |(text, _)| text);
        if !text.is_empty() {
            way.push_str(if text.starts_with('[') { "" } else { "." });
            way.push_str(text);
        }
    }
    way
}
