//! A pool whose types have changed, made anew under the new ones: `docs/how-to/change-types.md`, "With rewriting".
//!
//! `old` knows the pool as it is: its objects, their types, and what each becomes. `check` goes over all objects and
//! finds whatever stands in the way, and where each object goes; only then does `make` go over them once more, and
//! fills new puddles. The pool is the old one until one commit of the registry says otherwise (`host/migrating.rs`).

mod check;
mod counting;
mod heap;
mod leads;
mod make;
mod objects;
mod old;
mod others;
mod program;
mod rebuild;
mod runs;
mod table;
mod trial;
mod visit;

use std::collections::BTreeMap;
use std::fmt;
use std::path::Path;
use std::sync::Arc;

use durum_format::migrate::{Refusal, Rules};
use durum_format::puddle::PuddleHeader;
use durum_format::types::Descriptor;
use durum_persist::file::MediaFile;

use crate::descriptors;
use crate::error::{Error, Result};
use crate::files;
use crate::host::Embedded;
use crate::inspect::ReadOnlyStore;
use crate::liveness;
use crate::model::ProgressFn;
use crate::names::ensure_descriptors;

use check::{Checked, check};
use counting::Counting;
use make::Making;
use old::Old;
pub use rebuild::{NewPuddles, Room};
use table::Table;

/// The most reasons that are told one by one.
const REASONS_MAX: usize = 1000;

/// How a pool's types change.
pub struct Migration<'m> {
    /// What becomes of types, by their old names.
    pub rules: Arc<Rules>,
    /// The types that the program has now; without them the rules say all.
    pub types: Option<NewTypes>,
    /// The functions that rules name.
    pub functions: Option<&'m mut dyn Functions>,
}

impl fmt::Debug for Migration<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Migration")
            .field("rules", &self.rules)
            .field("types", &self.types)
            .finish_non_exhaustive()
    }
}

/// The types that a program has now.
#[derive(Clone, Debug)]
pub struct NewTypes {
    /// Those of the root objects: of the pool's, and of each that is made anew with it, in their order.
    pub roots: Vec<Descriptor>,
    /// Those that no root leads to.
    pub others: Vec<Descriptor>,
    /// Pointers lead to nothing but what their types say.
    pub pointers_are_typed: bool,
    /// The pool is a heap of NVL-C, the only one that is made anew.
    pub heap: Option<Arc<NewHeap>>,
}

/// What a program in NVL-C says of its heap.
#[derive(Clone, Debug)]
pub struct NewHeap {
    /// The type of the root's allocation.
    pub root: Descriptor,
    /// The checksum of the root's type.
    pub checksum: u64,
    /// Elements of allocations, by the ids of these: their pointers say what they lead to.
    pub elements: BTreeMap<u64, Descriptor>,
}

/// A puddle of the pool as it is, or as it is going to be.
#[derive(Debug)]
pub struct OldPuddle<'p> {
    /// What it is.
    pub header: &'p PuddleHeader,
    /// Its file, open for reading.
    pub file: &'p MediaFile,
}

/// The functions of a program, which make new objects of old ones. Each is asked twice for each object, and gives the
/// same both times.
pub trait Functions {
    /// They will be asked about objects in these puddles, or look at some there: those of all pools of the store, which
    /// nobody writes meanwhile.
    ///
    /// # Errors
    /// Whatever keeps them from that.
    fn begin(&mut self, puddles: &[OldPuddle<'_>]) -> Result<()>;

    /// Makes the new value, whose bytes are zero before, of the old one at `address`, of which `old` is a copy.
    /// Pointers stay what they are.
    ///
    /// # Errors
    /// Why there is none.
    fn make(
        &mut self,
        function: usize,
        address: u64,
        old: &[u8],
        new: &mut [u8],
    ) -> std::result::Result<(), String>;

    /// Maps in these puddles are to be built anew, which are written and nobody's yet. Asked again before each function
    /// of those that do it: what the one before has written is there to be seen.
    ///
    /// # Errors
    /// Whatever keeps them from that.
    fn begin_rebuilding(&mut self, _puddles: &[OldPuddle<'_>]) -> Result<()> {
        Ok(())
    }

    /// Bytes of room in which it would build this map anew, by the bytes of the new one. They say anything where the
    /// pool is damaged: it cannot hold more than `most` bytes.
    fn room(&self, _function: usize, _map: &[u8], _most: u64) -> u64 {
        0
    }

    /// Builds the map at `address` anew, whose objects it writes over. Gives the reason where that cannot be.
    ///
    /// # Errors
    /// Those of writing and of making room.
    fn rebuild(
        &mut self,
        _function: usize,
        _address: u64,
        _new: &mut NewPuddles,
        _room: &mut Room,
    ) -> Result<std::result::Result<(), String>> {
        Ok(Err("there is no such function".to_owned()))
    }
}

/// How a pool is migrated.
#[derive(Clone, Default)]
pub struct MigrateOptions {
    /// Objects of unknown type hold no pointers, and stay as they are. Without it a pool with some is refused, and so
    /// is one in a store where others have some.
    pub untyped_hold_no_pointers: bool,
    /// Other pools of the store that are made anew with it, by the same rules: pointers between them follow, and all
    /// are the old ones or all the new ones.
    pub with: Vec<String>,
    /// Called as it goes on.
    pub progress: Option<Arc<ProgressFn>>,
}

impl fmt::Debug for MigrateOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MigrateOptions")
            .field("untyped_hold_no_pointers", &self.untyped_hold_no_pointers)
            .field("with", &self.with)
            .field("progress", &self.progress.is_some())
            .finish()
    }
}

/// What a migration does, or would.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MigrateReport {
    /// The pool's name.
    pub pool: String,
    /// Those of the pools that are made anew with it.
    pub with: Vec<String>,
    /// Objects, of all of them, as all that follows.
    pub objects: u64,
    /// Their types, in the order in which they come.
    pub types: Vec<MigratedType>,
    /// Objects of unknown type, which stay as they are.
    pub untyped_objects: u64,
    /// Maps that the program builds anew when everything else is written: those of which not every byte is zero, so
    /// also those that had entries once.
    pub rebuilt_maps: u64,
    /// Bytes of the pool's files before.
    pub old_bytes: u64,
    /// Bytes of its new files.
    pub bytes: u64,
    /// New puddles.
    pub puddles: u64,
    /// Bytes that are needed besides while it goes on: with the room for the largest map that is built anew.
    pub scratch_bytes: u64,
    /// What stands in the way: then nothing is written.
    pub refusals: Vec<RefusalCount>,
    /// What stands in the way and is not told one by one.
    pub more_refusals: u64,
}

/// What stands in the way, and how often.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RefusalCount {
    /// What it is.
    pub refusal: Refusal,
    /// In how many objects; 0 where it is the types' affair.
    pub objects: u64,
}

impl fmt::Display for RefusalCount {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.objects {
            0 => write!(f, "{}", self.refusal),
            1 => write!(f, "{} (1 object)", self.refusal),
            objects => write!(f, "{} ({objects} objects)", self.refusal),
        }
    }
}

/// A type of the pool's objects, and what becomes of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MigratedType {
    /// What it is called.
    pub name: String,
    /// What it is called from then on.
    pub now: String,
    /// Its id.
    pub id: u64,
    /// Its id from then on: the same where it does not change.
    pub new_id: u64,
    /// Its objects.
    pub objects: u64,
    /// Bytes of one, without those of a tail.
    pub size: u64,
    /// Bytes of one from then on.
    pub new_size: u64,
}

/// What stands in the way, counted.
#[derive(Debug, Default)]
struct Refusals {
    found: BTreeMap<Refusal, u64>,
    more: u64,
}

impl Refusals {
    /// One of the types.
    fn of_types(&mut self, refusal: Refusal) {
        self.found.entry(refusal).or_default();
    }

    /// One of an object.
    fn of_object(&mut self, refusal: Refusal) {
        if self.found.len() >= REASONS_MAX && !self.found.contains_key(&refusal) {
            self.more += 1;
            return;
        }
        *self.found.entry(refusal).or_default() += 1;
    }

    fn told(self, report: &mut MigrateReport) {
        let counted = |(refusal, objects)| RefusalCount { refusal, objects };
        report.refusals = self.found.into_iter().map(counted).collect();
        report.more_refusals = self.more;
    }
}

impl MigrateReport {
    /// Refuses to go on where something stands in the way.
    ///
    /// # Errors
    /// `MigrationRefused`.
    pub fn ensure_possible(&self, store: &Path) -> Result<()> {
        if self.refusals.is_empty() {
            return Ok(());
        }
        let mut reasons: Vec<String> = self.refusals.iter().map(ToString::to_string).collect();
        if self.more_refusals > 0 {
            reasons.push(format!("and {} more", self.more_refusals));
        }
        Err(Error::MigrationRefused {
            store: store.to_owned(),
            pool: self.pool.clone(),
            reasons,
        })
    }
}

/// Tells what a migration would do, and everything that stands in its way. Nothing is written; a store that was not
/// closed in order is looked at as recovery will leave it. Where the program builds maps anew, the new pool is made in
/// files without a name in the store's directory, for which there has to be room, and thrown away.
///
/// # Errors
/// `PoolMissing`, `StoreBusy`, `PoolQuarantined`, `PoolInterrupted`, `PoolRefused`, `StoreMoving`; `Damaged` for
/// objects that contradict their type; `StorageFull`, `AddressesExhausted`, `Io`.
pub fn plan_migration(
    reader: &ReadOnlyStore,
    pool: &str,
    migration: &mut Migration<'_>,
    options: &MigrateOptions,
) -> Result<MigrateReport> {
    if reader.is_served() {
        let reason =
            "a service does not migrate pools; end it, and name the directory of its store";
        return Err(Error::Options {
            reason: reason.to_owned(),
        });
    }
    let _lock = liveness::share(reader.path())?;
    let old = Old::of(reader, &pools(pool, options), migration, None)?;
    // What only new maps tell is found where they are built.
    let is_tried = !migration.rules.rebuilt().is_empty();
    let table = is_tried.then(|| Table::new(reader.path(), Counting::of(&old, None)?));
    let mut table = table.transpose()?;
    let mut checked = check(&old, migration, options, table.as_mut())?;
    if let Some(table) = &mut table
        && checked.report.rebuilt_maps > 0
        && checked.report.refusals.is_empty()
    {
        trial::try_out(&old, migration, options, table, &mut checked)?;
    }
    Ok(checked.report)
}

impl Embedded {
    /// Makes a pool anew under other types, and others with it where the options name some: every object becomes what
    /// the migration says, at another address, and pointers lead to where things are then. It is durable on return,
    /// whole or not at all. Nobody has the pool open meanwhile, and nobody opens another one of the store.
    ///
    /// It needs room for the new puddles, 136 bytes for each extent and 2 for each object that holds counts, which are
    /// free again at the end, as those of the old puddles are; and for the largest map that is built anew. Memory does
    /// not grow with what the pool holds, but for the largest object.
    ///
    /// # Errors
    /// `MigrationRefused` with everything that stands in the way; `PoolMissing`, `PoolOpen`, `PoolBusy`,
    /// `PoolQuarantined`, `PoolRefused`, `PoolInterrupted`; `Damaged` for objects that contradict their type;
    /// `AddressesExhausted`, `StorageFull`, `Io`. The pool is what it was.
    pub fn migrate_pool(
        &self,
        name: &str,
        migration: &mut Migration<'_>,
        options: &MigrateOptions,
    ) -> Result<MigrateReport> {
        let names = pools(name, options);
        let _held = self.hold_all(&names)?;
        let reader = self.read_held()?;
        let store = reader.path();
        let old = Old::of(&reader, &names, migration, Some(store))?;
        let counting = Counting::of(&old, Some(store))?;
        ensure_room(store, Table::bytes_for(&counting))?;
        let mut table = Table::new(store, counting)?;
        let Checked {
            mut report,
            sizes,
            seen,
            room,
        } = check(&old, migration, options, Some(&mut table))?;
        report.ensure_possible(store)?;
        ensure_room(store, report.bytes.saturating_add(room))?;
        let mut types = BTreeMap::new();
        for (_, conversion) in old.pairs_of_objects() {
            let new = conversion.new_type();
            types.extend(descriptors::check_type(new.id(), new.text())?);
        }
        let pools = old.pools.iter().zip(sizes);
        let pools: Vec<_> = pools
            .map(|(pool, sizes)| (pool.uuid, pool.record.engine, sizes))
            .collect();
        let mut coming = self.list_coming(&pools)?;
        let headers = coming.headers();
        if report.rebuilt_maps > 0 {
            ensure_descriptors(store, headers.len())?;
        }
        let create = |header: &PuddleHeader| {
            files::create_at(&files::puddle_path(store, header.uuid), header)
        };
        let making = Making {
            create: &create,
            headers: &headers,
            store,
            seen: &seen,
        };
        let mut files = Vec::new();
        making.make(&old, migration, options, &mut table, |uuid, file| {
            coming.is_made(uuid);
            files.extend((report.rebuilt_maps > 0).then_some(file));
        })?;
        rebuild::rebuild(&old, (&headers, files), migration, &mut report)?;
        report.ensure_possible(store)?;
        self.swap(coming, &types)?;
        Ok(report)
    }
}

/// The names of all pools that are made anew.
fn pools<'n>(name: &'n str, options: &'n MigrateOptions) -> Vec<&'n str> {
    let others = options.with.iter().map(String::as_str);
    [name].into_iter().chain(others).collect()
}

/// Refuses what there is no room for.
fn ensure_room(store: &Path, bytes: u64) -> Result<()> {
    let found = rustix::fs::statvfs(store)
        .map_err(|errno| Error::io("asking for room", store, errno.into()))?;
    match bytes > found.f_bavail.saturating_mul(found.f_frsize) {
        true => Err(Error::StorageFull {
            path: store.to_owned(),
            bytes,
        }),
        false => Ok(()),
    }
}
