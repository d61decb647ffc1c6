//! The puddles of a pool that are not mapped yet (docs/internals/on-demand.md).

use std::fmt;
use std::ops::Range;
use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use durum_format::Uuid;
use durum_persist::file::MediaFile;
use durum_service::{PUDDLES_AT_ONCE, PuddleGrant, PuddlePlace};

use super::store::StoreInner;
use crate::addresses::{Beside, Refused};
use crate::alloc::{Puddle, Puddles};
use crate::deferred_events::put_off;
use crate::demand::{self, Waiting};
use crate::error::{Error, Result};
use crate::pages::Way;
use crate::poison::Poison;
use crate::primitive::locked;
use crate::space::entry_at;

/// So many puddles are mapped at once at most where a program goes from one to the next.
const AHEAD_MAX: usize = 64;

/// Maps a puddle of a pool. With true its addresses were claimed before.
type MapPuddle = dyn Fn(PuddleGrant, bool) -> Result<Arc<Puddle>> + Send;

/// What it takes to map puddles of a pool. It keeps the store open, and not the pool.
pub(crate) struct Mapper {
    pub(crate) store: Arc<StoreInner>,
    pub(crate) pool: Uuid,
    pub(crate) poison: Arc<Poison>,
    pub(crate) beside: Option<Arc<Beside>>,
    /// How far behind a puddle there is a second place where programs look.
    pub(crate) back: Option<usize>,
    /// Those that are mapped.
    pub(crate) puddles: Arc<Puddles>,
    pub(crate) map: Box<MapPuddle>,
}

impl Mapper {
    /// How far behind an address of a puddle programs look.
    fn distances(&self) -> impl Iterator<Item = usize> {
        [Some(0), self.back].into_iter().flatten()
    }

    /// Puddles are mapped.
    fn enter(&self, mapped: Vec<Arc<Puddle>>) {
        let puddles = self.puddles.write();
        puddles
            .unwrap_or_else(PoisonError::into_inner)
            .extend(mapped);
    }

    fn conflict(&self, run: &Range<usize>) -> Error {
        Refused::taken(run.start, run.len()).error(&self.store.info.path)
    }
}

/// The puddles of a pool that are not mapped yet.
#[derive(Default)]
pub(crate) struct Frontier {
    table: Mutex<Table>,
    /// How many wait.
    left: AtomicUsize,
}

/// Places of puddles, in order of address, and which of them wait.
#[derive(Default)]
struct Table {
    /// `None` before it is opened, and once it is closed: nothing is mapped then.
    mapper: Option<Mapper>,
    /// The directory of the files, for errors.
    files: PathBuf,
    places: Vec<PuddlePlace>,
    waits: Vec<bool>,
    mapped: usize,
    /// Their addresses are claimed.
    is_claimed: bool,
    /// There are placeholders.
    has_placeholders: bool,
    /// None waits before this one.
    first: usize,
    /// The one behind those that were mapped last, and how many these were.
    behind: (usize, usize),
}

impl fmt::Debug for Frontier {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Frontier")
            .field("left", &self.left)
            .finish_non_exhaustive()
    }
}

impl Frontier {
    /// Opens it: `places` are those of all puddles of the pool but the root, whose file is `root`. They wait in the way
    /// that is wanted, or are mapped now.
    ///
    /// # Errors
    /// `AddressConflict`; where all are mapped, those of their files.
    pub(crate) fn open(
        self: &Arc<Self>,
        mapper: Mapper,
        root: &MediaFile,
        places: Vec<PuddlePlace>,
        way: Way,
    ) -> Result<()> {
        if places.is_empty() {
            return Ok(());
        }
        let mut table = locked(&self.table);
        self.left.store(places.len(), Ordering::Release);
        table.files = root.path().parent().map_or_else(PathBuf::new, Into::into);
        table.waits = vec![true; places.len()];
        table.places = places;
        if way != Way::Eager {
            table.claim(&mapper)?;
            let reserved = table.reserve(&mapper, way);
            table.mapper = Some(mapper);
            match reserved {
                Ok(()) => {
                    demand::enter(self);
                    return Ok(());
                }
                Err(error) => {
                    tracing::warn!(%error, "puddles are mapped now: they cannot be on demand");
                }
            }
        } else {
            table.mapper = Some(mapper);
        }
        drop(table);
        self.map_all()
    }

    /// How many wait.
    pub(crate) fn left(&self) -> usize {
        self.left.load(Ordering::Acquire)
    }

    /// Maps all that wait.
    ///
    /// # Errors
    /// Those of their files, and of mapping them.
    pub(crate) fn map_all(&self) -> Result<()> {
        while self.left() > 0 {
            self.changing(|table| match table.next() {
                Some(next) => table.map(next, PUDDLES_AT_ONCE),
                None => Ok(()),
            })?;
        }
        Ok(())
    }

    /// Maps the next ones that wait. False: none does.
    ///
    /// # Errors
    /// As above.
    pub(crate) fn map_more(&self) -> Result<bool> {
        if self.left() == 0 {
            return Ok(false);
        }
        self.changing(|table| match table.next() {
            Some(next) => table.map_with_neighbours(next).map(|()| true),
            None => Ok(false),
        })
    }

    /// Nothing is mapped from here on.
    pub(crate) fn close(&self) {
        demand::leave(self);
        let mapper = {
            let mut table = locked(&self.table);
            self.left.store(0, Ordering::Release);
            let mapper = table.mapper.take();
            if let Some(mapper) = &mapper {
                table.give_back(mapper);
            }
            mapper
        };
        drop(mapper);
    }

    /// Whether a puddle waits at the address, or has waited and is mapped.
    pub(crate) fn has(&self, address: usize) -> bool {
        locked(&self.table).waiting_at(address).is_some()
    }

    fn changing<R>(&self, change: impl FnOnce(&mut Table) -> Result<R>) -> Result<R> {
        put_off(|| {
            let mut table = locked(&self.table);
            let result = change(&mut table);
            self.left.store(table.left(), Ordering::Release);
            result
        })
    }
}

impl Waiting for Frontier {
    fn map_at(&self, address: usize) -> Result<bool> {
        self.changing(|table| match table.waiting_at(address) {
            Some(Place::Waits(index)) => table.map_with_neighbours(index).map(|()| true),
            Some(Place::IsMapped) => Ok(true),
            None => Ok(false),
        })
    }

    fn map_for_access(&self, address: usize) -> bool {
        let mapped = self.changing(|table| match table.waiting_at(address) {
            Some(Place::Waits(index)) => {
                let mapped = table.map_with_neighbours(index);
                mapped.or_else(|_| table.map_unreadable(index))?;
                Ok(true)
            }
            Some(Place::IsMapped) => Ok(true),
            None => Ok(false),
        });
        mapped.unwrap_or(false)
    }
}

/// What is at an address of the table.
enum Place {
    Waits(usize),
    /// Somebody has mapped it meanwhile.
    IsMapped,
}

impl Table {
    /// How many can be mapped.
    fn left(&self) -> usize {
        match self.mapper {
            Some(_) => self.places.len() - self.mapped,
            None => 0,
        }
    }

    fn waiting_at(&self, address: usize) -> Option<Place> {
        let mapper = self.mapper.as_ref()?;
        let base = mapper.store.info.base as usize;
        let main = match mapper.back {
            Some(back) if address >= base + back => address - back,
            _ => address,
        } as u64;
        let behind = self.places.partition_point(|place| place.address <= main);
        let index = behind.checked_sub(1)?;
        let place = &self.places[index];
        if main - place.address >= place.size {
            return None;
        }
        match self.waits[index] {
            true => Some(Place::Waits(index)),
            // Or it was given back.
            false => entry_at(address).map(|_| Place::IsMapped),
        }
    }

    /// The first one that waits.
    fn next(&mut self) -> Option<usize> {
        let waits = self.waits[self.first..].iter().position(|waits| *waits);
        self.first = waits.map_or(self.waits.len(), |at| self.first + at);
        waits.map(|_| self.first)
    }

    /// Maps one that waits; where a program goes from one to the next, others behind it, too.
    fn map_with_neighbours(&mut self, index: usize) -> Result<()> {
        let count = match self.behind {
            (at, count) if at == index => (2 * count).clamp(1, AHEAD_MAX),
            _ => 1,
        };
        let result = match self.map(index, count) {
            // What is wrong with a neighbour is nobody's concern yet.
            Err(_) if count > 1 && self.waits[index] => self.map(index, 1),
            Err(_) if !self.waits[index] => Ok(()),
            result => result,
        };
        self.behind = (index + count, count);
        result
    }

    /// Maps up to `count` that wait, side by side from this one on.
    fn map(&mut self, first: usize, count: usize) -> Result<()> {
        let Some(mapper) = &self.mapper else {
            return Ok(());
        };
        let waiting = self.waits[first..].iter().take_while(|waits| **waits);
        let some = first..first + waiting.take(count).count();
        let wanted: Vec<_> = (self.places[some.clone()].iter())
            .map(|place| place.uuid)
            .collect();
        let grants = mapper.store.service.open_puddles(mapper.pool, &wanted)?;
        let mut mapped = Vec::with_capacity(grants.len());
        let mut result = Ok(());
        for (index, grant) in some.zip(grants) {
            match (mapper.map)(grant, self.is_claimed) {
                Ok(puddle) => {
                    self.waits[index] = false;
                    self.mapped += 1;
                    mapped.push(puddle);
                }
                Err(error) => {
                    self.put_placeholder(mapper, index);
                    result = Err(error);
                    break;
                }
            }
        }
        mapper.enter(mapped);
        result
    }

    /// The file of a puddle cannot be had, and a thread has accessed it: it is mapped as one that cannot be read.
    fn map_unreadable(&mut self, index: usize) -> Result<()> {
        let Some(mapper) = &self.mapper else {
            return Ok(());
        };
        let place = self.places[index];
        let path = self.files.join(place.uuid.to_string());
        let file = MediaFile::unreadable(&path)
            .map_err(|error| Error::system("standing in for a puddle's file", error))?;
        let grant = PuddleGrant {
            uuid: place.uuid,
            address: place.address,
            size: place.size,
            kind: place.kind,
            is_root: false,
            file,
        };
        let reason = "the file could not be opened when it was needed";
        mapper.poison.set(&path, 0, reason);
        let puddle = (mapper.map)(grant, self.is_claimed)?;
        self.waits[index] = false;
        self.mapped += 1;
        let puddles = mapper.puddles.write();
        puddles.unwrap_or_else(PoisonError::into_inner).push(puddle);
        Ok(())
    }

    /// Takes the addresses of all, so that nothing else is mapped there.
    fn claim(&mut self, mapper: &Mapper) -> Result<()> {
        let runs = self.runs();
        for (at, run) in runs.iter().enumerate() {
            let space = mapper.store.space;
            if !space.contains(run.start, run.len()) || !space.claim(run.start, run.len()) {
                let mut claims = space.changing();
                for run in &runs[..at] {
                    space.give_claim_back(&mut claims, run.start, run.len());
                }
                return Err(mapper.conflict(run));
            }
        }
        self.is_claimed = true;
        Ok(())
    }

    /// Sees to it that an access to one of them is noticed.
    fn reserve(&mut self, mapper: &Mapper, way: Way) -> Result<()> {
        let path = &mapper.store.info.path;
        for run in self.runs() {
            if let Some(beside) = &mapper.beside {
                let needed = beside.need(run.start, run.len());
                needed.map_err(|refused| refused.error(path))?;
            }
            for distance in mapper.distances() {
                let range = run.start + distance..run.end + distance;
                mapper.store.space.need(range.start, range.len(), path)?;
                if way == Way::Userfaultfd {
                    self.has_placeholders = true;
                    demand::put_placeholder(&range)
                        .map_err(|error| Error::system("watching the place of puddles", error))?;
                }
            }
        }
        Ok(())
    }

    /// A puddle could not be mapped, which has taken its placeholder away.
    fn put_placeholder(&self, mapper: &Mapper, index: usize) {
        if !self.has_placeholders {
            return;
        }
        let place = &self.places[index];
        for distance in mapper.distances() {
            let start = place.address as usize + distance;
            // Without one an access ends in SIGSEGV; calls try again all the same.
            let _ = demand::put_placeholder(&(start..start + place.size as usize));
        }
    }

    /// Gives the addresses of those back that wait.
    fn give_back(&mut self, mapper: &Mapper) {
        if !self.is_claimed {
            return;
        }
        let space = mapper.store.space;
        for run in self.runs() {
            let mut claims = space.changing();
            for distance in mapper.distances() {
                space.give_back(run.start + distance, run.len());
            }
            space.give_claim_back(&mut claims, run.start, run.len());
        }
    }

    /// The addresses of those that wait; those side by side together.
    fn runs(&self) -> Vec<Range<usize>> {
        let mut runs: Vec<Range<usize>> = Vec::new();
        for (place, _) in (self.places.iter().zip(&self.waits)).filter(|(_, waits)| **waits) {
            let start = place.address as usize;
            let end = start + place.size as usize;
            match runs.last_mut() {
                Some(last) if last.end == start => last.end = end,
                _ => runs.push(start..end),
            }
        }
        runs
    }
}
