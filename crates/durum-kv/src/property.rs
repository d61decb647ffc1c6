//! What a database says of itself: sizes of ranges, properties, compaction, removal.

use std::fs;
use std::path::Path;

use durum::Described;
use durum::{Address, Durability, Store, StoreOptions, Usage};
use durum_format::extent;
use durum_service::{CheckOptions, Embedded, OpenOptions, PuddleSummary, ReadOnlyStore, Severity};

use crate::db::{Db, is_occupied};
use crate::error::{Error, Result};
use crate::index::Position;
use crate::media::Leaf;
use crate::tree::Tree;
use crate::versions::versions;

/// Leaves that are looked at to estimate the size of a range.
const SAMPLES: usize = 32;

/// Keys from one on, up to before another.
#[derive(Clone, Copy, Debug)]
pub struct Range<'k> {
    /// The first key.
    pub start: &'k [u8],
    /// The first key that is no part of it.
    pub limit: &'k [u8],
}

impl Db {
    /// How many bytes the entries of each range take in the pool, about: exact in the first and last leaf, sampled
    /// between them. What snapshots and iterators keep is part of it: older versions, and entries that were deleted.
    ///
    /// # Errors
    /// `Damaged`, `Broken`.
    pub fn approximate_sizes(&self, ranges: &[Range<'_>]) -> Result<Vec<u64>> {
        let tree = self.inner.readable()?;
        ranges
            .iter()
            .map(|range| size_of_range(&tree, range))
            .collect()
    }

    /// Frees what no snapshot needs any more. There is nothing else to compact: space of deleted entries is used again
    /// at once.
    ///
    /// # Errors
    /// Those of durum.
    pub fn compact(&self) -> Result<()> {
        let turn = self.inner.wait_for_turn()?;
        self.inner.sweep_all(&turn)
    }

    /// A property by its name: LevelDB's `leveldb.num-files-at-level<N>`, `leveldb.stats`, `leveldb.sstables` and
    /// `leveldb.approximate-memory-usage`, and `durum.` with `keys`, `leaves`, `stale-keys`, `snapshots`, `sequence`,
    /// `pool-bytes`, `free-bytes`, `engine`, `durability` and `comparator`. `None`: there is no such property.
    ///
    /// docs/tutorials/kv.md says what each means here. `durum.keys` goes over all keys.
    ///
    /// # Errors
    /// `Damaged`, `Broken`; those of durum.
    pub fn property(&self, name: &str) -> Result<Option<String>> {
        if let Some(level) = name.strip_prefix("leveldb.num-files-at-level") {
            return self.files_at_level(level);
        }
        let tree = self.inner.readable()?;
        let text = match name {
            "leveldb.stats" => {
                let usage = self.inner.pool.usage()?;
                let leaves = tree.leaves()?;
                drop(tree);
                self.stats(leaves, &usage)
            }
            "leveldb.sstables" => sstables(&self.inner.pool.usage()?),
            "leveldb.approximate-memory-usage" => tree.index.memory().to_string(),
            "durum.keys" => {
                drop(tree);
                self.iter().count()?.to_string()
            }
            "durum.leaves" => tree.leaves()?.to_string(),
            "durum.stale-keys" => tree.stale_keys().to_string(),
            "durum.snapshots" => self.inner.pins.len().to_string(),
            "durum.sequence" => self.inner.visible().to_string(),
            "durum.pool-bytes" => self.inner.pool.usage()?.bytes.to_string(),
            "durum.free-bytes" => self.inner.pool.usage()?.free_bytes.to_string(),
            "durum.engine" => self.inner.pool.engine().name().to_owned(),
            "durum.durability" => self.durability_name().to_owned(),
            "durum.comparator" => tree.keys.name().to_owned(),
            _ => return Ok(None),
        };
        Ok(Some(text))
    }

    fn durability_name(&self) -> &'static str {
        match self.durability() {
            Durability::Buffered => "buffered",
            _ => "durable",
        }
    }

    /// All files are at level 0: a pool has no levels.
    fn files_at_level(&self, level: &str) -> Result<Option<String>> {
        match level.parse::<u8>() {
            Ok(0) => Ok(Some(self.inner.pool.usage()?.puddles.to_string())),
            Ok(1..7) => Ok(Some("0".into())),
            _ => Ok(None),
        }
    }

    fn stats(&self, leaves: usize, usage: &Usage) -> String {
        let mut text = format!(
            "{:<12} {:>12}\n{:-<25}\n{:<12} {:>12}\n",
            "durum",
            self.inner.pool.engine().name(),
            "",
            "durability",
            self.durability_name(),
        );
        for (name, number) in [
            ("puddles", usage.puddles),
            ("bytes", usage.bytes),
            ("free bytes", usage.free_bytes),
            ("leaves", leaves),
            ("snapshots", self.inner.pins.len()),
        ] {
            text += &format!("{name:<12} {number:>12}\n");
        }
        text
    }
}

/// In place of LevelDB's tables: how the pool's room is divided.
fn sstables(usage: &Usage) -> String {
    let mut text = format!("--- {} puddles, {} bytes ---\n", usage.puddles, usage.bytes);
    for (order, count) in usage.free_blocks.iter().enumerate() {
        if *count > 0 {
            text += &format!("free blocks of {} bytes: {count}\n", 256u64 << order);
        }
    }
    text
}

/// Bytes of the records of a node that lie in the range.
fn size_in_node(tree: &Tree, at: Position, range: &Range<'_>) -> Result<u64> {
    let entries = tree.entries(at)?;
    let place = |key| entries.find(&tree.keys, key).unwrap_or_else(|place| place);
    let (from, to) = (place(range.start), place(range.limit));
    let records = entries.records().get(from..to).unwrap_or_default();
    // SAFETY: entered records are live, and the writer is kept out.
    Ok(records
        .iter()
        .flat_map(|&record| unsafe { versions(record) })
        .map(|version| version.size())
        .sum())
}

fn size_of_range(tree: &Tree, range: &Range<'_>) -> Result<u64> {
    if tree.keys.compare(range.start, range.limit).is_ge() {
        return Ok(0);
    }
    let (first, last) = (tree.find(range.start)?, tree.find(range.limit)?);
    let mut size = size_in_node(tree, first, range)?;
    if first == last {
        return Ok(size);
    }
    size += size_in_node(tree, last, range)?;
    // Those between, of which every `step`th is looked at.
    let between = tree.index.distance(&tree.media, &tree.keys, first, last)? - 1;
    let step = between.div_ceil(SAMPLES).max(1);
    let (mut sampled, mut samples) = (0u64, 0u64);
    let mut at = tree.beyond::<true>(first)?;
    let mut number = 0;
    while let Some(position) = at.filter(|&position| position != last) {
        if number % step == 0 {
            sampled += size_in_node(tree, position, range)?;
            samples += 1;
        }
        number += 1;
        at = tree.beyond::<true>(position)?;
    }
    Ok(size + (sampled * between as u64).checked_div(samples).unwrap_or(0))
}

/// Removes the store of a database with everything in it; of a service's store, the pool alone. Nothing is there that
/// is no store: that is no error.
///
/// # Errors
/// `NotAStore` where the directory holds something else; those of durum where the store or the pool is open.
pub fn destroy(path: impl AsRef<Path>) -> Result<()> {
    let path = path.as_ref();
    if let Some((store, pool)) = Address::split_pool(path) {
        let store = Store::open(store, StoreOptions::new())?;
        return match store.remove_pool(pool.as_deref().unwrap_or(crate::POOL)) {
            Err(durum::Error::Store(durum_service::Error::PoolMissing { .. })) => Ok(()),
            removed => Ok(removed?),
        };
    }
    let refused = |operation: &'static str| {
        move |source| Error::System {
            path: path.into(),
            operation,
            source,
        }
    };
    let names = match fs::read_dir(path) {
        Ok(names) => names,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(refused("reading the directory")(error)),
    };
    let identity = path.join(durum_format::store::FILE_NAME);
    if !identity.exists() {
        return match names.count() {
            0 => fs::remove_dir(path).map_err(refused("removing the directory")),
            _ => Err(Error::NotAStore { path: path.into() }),
        };
    }
    // Held to the end, so that no program opens the store while it goes. One that is damaged nobody has open.
    let _held = match Embedded::open(path, OpenOptions::default()) {
        Err(error @ durum_service::Error::StoreBusy { .. }) => return Err(error.into()),
        other => other.ok(),
    };
    // Without its identity the rest is no store any more, whatever happens from here on.
    fs::remove_file(&identity).map_err(refused("removing the store's identity"))?;
    fs::remove_dir_all(path).map_err(refused("removing the store"))
}

/// Repairs what can be repaired of a database that is closed: the registry of its store (a service does that for its
/// own), guides to its leaves where the row of these is whole (in the directory of its store), and versions that a
/// crash left. Then every record is read. How many there are.
///
/// # Errors
/// `Missing`; `Damaged`, and what checking the store found, if anything is wrong that cannot be repaired; those of
/// durum.
pub fn repair(path: impl AsRef<Path>, options: crate::Options) -> Result<u64> {
    let path = path.as_ref();
    let options = options.create_if_missing(false).error_if_exists(false);
    if Address::split_pool(path).is_some() {
        return Db::open(path, options)?.verify();
    }
    if !is_occupied(path)? {
        return Err(Error::Missing { path: path.into() });
    }
    let is_sound = ReadOnlyStore::open(path).is_ok()
        && durum_service::check(path, &CheckOptions::default()).is_ok_and(|report| {
            let findings = &report.findings;
            findings
                .iter()
                .all(|finding| finding.severity < Severity::Damage)
        });
    if !is_sound {
        durum_service::repair(path)?;
    }
    let read = |options| Db::open(path, options)?.verify();
    match read(options.clone()) {
        // Guides say nothing that leaves do not, so they are made of these.
        Err(Error::Damaged { .. }) if !options.read_only => {
            let leaves = Some(leaves_in(path)?);
            drop(Db::open(
                path,
                crate::Options {
                    leaves,
                    ..options.clone()
                },
            )?);
            read(options)
        }
        read => read,
    }
}

/// How many leaves the pool has of the database in a store that is closed, whatever leads to them.
fn leaves_in(path: &Path) -> Result<usize> {
    let store = ReadOnlyStore::open(path)?;
    let leaf = Leaf::description().id();
    let pools = store.pools();
    let pool = pools.iter().find(|pool| pool.name == crate::POOL);
    let own = |puddle: &PuddleSummary| {
        pool.is_some_and(|pool| pool.uuid == puddle.owner) && puddle.kind.holds_objects()
    };
    let mut leaves = 0;
    for puddle in store.puddles().iter().filter(|puddle| own(puddle)) {
        let view = store.puddle(puddle.uuid)?;
        for extent in extent::extents(&view, view.header()) {
            let reason = "an extent of the heap is damaged (`durum check` tells)";
            let damaged = |_| Error::damaged(view.header().address as usize, reason);
            let extent = extent.map_err(damaged)?;
            if extent.type_id() == leaf {
                leaves += extent.allocated() as usize;
            }
        }
    }
    Ok(leaves)
}

/// Whether there is a database at `path`, by what its store says.
///
/// # Errors
/// Those of durum, where there is something that cannot be read.
pub fn exists(path: impl AsRef<Path>) -> Result<bool> {
    if let Some((store, pool)) = Address::split_pool(&path) {
        let pools = Store::open(store, StoreOptions::new())?.pools()?;
        let wanted = pool.as_deref().unwrap_or(crate::POOL);
        return Ok(pools.iter().any(|pool| pool.name == wanted));
    }
    match ReadOnlyStore::open(path.as_ref()) {
        Ok(store) => Ok(store.pools().iter().any(|pool| pool.name == crate::POOL)),
        Err(durum_service::Error::StoreMissing { .. }) => Ok(false),
        Err(error @ durum_service::Error::PathRefused { .. })
            if error.kind() == durum::ErrorKind::User =>
        {
            Ok(false)
        }
        Err(error) => Err(error.into()),
    }
}
