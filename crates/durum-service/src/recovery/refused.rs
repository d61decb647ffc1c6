//! What recovery keeps for pools that it cannot write now.

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use durum_format::Uuid;

use super::HomeWrite;
use crate::error::{Error, Result};
use crate::model::{EngineKind, RefusedPool};
use crate::registry::contents::Contents;

/// What a client's logs hold for a pool that must not be written now.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Part {
    /// Transactions that are to be undone or completed.
    pub(crate) transactions: u64,
    /// Bytes that they write.
    pub(crate) bytes: u64,
    /// Transactions of which nobody can say now whether they committed.
    pub(crate) undecided: u64,
}

/// A pool that must not be written now.
#[derive(Clone, Debug)]
pub(crate) struct Refusal {
    /// The file that is in the way. It may be one of another pool.
    pub(crate) file: PathBuf,
    pub(crate) offset: Option<u64>,
    /// What is wrong with it, and the cure.
    pub(crate) reason: String,
    pub(crate) part: Part,
}

impl Refusal {
    pub(crate) fn of(error: &Error) -> Refusal {
        let (file, offset) = match error {
            Error::FileMissing { file, .. } | Error::NotAFile { file, .. } => (file.clone(), None),
            Error::Damaged { file, offset, .. } => (file.clone(), Some(*offset)),
            Error::Format {
                file, base, source, ..
            } => (file.clone(), source.offset().map(|offset| base + offset)),
            Error::Io { path, offset, .. } => (path.clone(), *offset),
            _ => (PathBuf::new(), None),
        };
        Refusal {
            file,
            offset,
            reason: error.to_string(),
            part: Part::default(),
        }
    }

    /// A pool whose own files are sound, and whose last transaction needs another pool's to be decided.
    pub(super) fn waiting_for(&self) -> Refusal {
        Refusal {
            reason: format!(
                "whether its last transactions committed cannot be said before another pool's file is back: {}",
                self.reason
            ),
            part: Part::default(),
            ..self.clone()
        }
    }

    fn to_pool(&self, contents: &Contents, pool: Uuid) -> RefusedPool {
        let record = contents.pools.get(&pool);
        RefusedPool {
            name: record.map(|pool| pool.name.clone()).unwrap_or_default(),
            file: self.file.clone(),
            offset: self.offset,
            reason: self.reason.clone(),
            transactions: self.part.transactions,
            undecided: self.part.undecided,
            bytes: self.part.bytes,
            is_kept: record.is_some_and(|pool| pool.engine != EngineKind::Twin),
        }
    }
}

/// All pools that must not be written now.
#[derive(Clone, Debug, Default)]
pub(crate) struct RefusedPools(BTreeMap<Uuid, Refusal>);

impl RefusedPools {
    /// Adds those of another client.
    pub(crate) fn add(&mut self, refused: &BTreeMap<Uuid, Refusal>) {
        for (pool, refusal) in refused {
            match self.0.entry(*pool) {
                Entry::Vacant(entry) => {
                    entry.insert(refusal.clone());
                }
                Entry::Occupied(mut entry) => {
                    let (part, more) = (&mut entry.get_mut().part, &refusal.part);
                    part.transactions += more.transactions;
                    part.bytes += more.bytes;
                    part.undecided += more.undecided;
                }
            }
        }
    }

    pub(crate) fn contains(&self, pool: Uuid) -> bool {
        self.0.contains_key(&pool)
    }

    /// The error for who wants to use a pool.
    pub(crate) fn ensure_not(&self, store: &Path, contents: &Contents, pool: Uuid) -> Result<()> {
        let Some(refusal) = self.0.get(&pool) else {
            return Ok(());
        };
        let refused = refusal.to_pool(contents, pool);
        Err(Error::PoolRefused {
            store: store.to_owned(),
            pool: refused.name,
            reason: refused.reason,
        })
    }

    /// In order of name.
    pub(crate) fn to_pools(&self, contents: &Contents) -> Vec<RefusedPool> {
        let pools = self.0.iter();
        let mut pools: Vec<RefusedPool> = pools
            .map(|(pool, refusal)| refusal.to_pool(contents, *pool))
            .collect();
        pools.sort_by(|left, right| left.name.cmp(&right.name));
        pools
    }
}

/// The error for who follows pointers through the whole store: what only a pool leads to that waits is not garbage.
pub(crate) fn ensure_nothing_kept(
    store: &Path,
    contents: &Contents,
    operation: &'static str,
) -> Result<()> {
    let kept = contents.kept_pools();
    if kept.is_empty() {
        return Ok(());
    }
    let names = kept.iter().filter_map(|pool| contents.pools.get(pool));
    Err(Error::PartsKept {
        store: store.to_owned(),
        operation,
        pools: names.map(|pool| pool.name.clone()).collect(),
    })
}

/// Which transactions touch which pools: each set of pools, and how many touch exactly these.
#[derive(Clone, Debug, Default)]
pub(crate) struct Touched(BTreeMap<BTreeSet<Uuid>, u64>);

impl Touched {
    pub(super) fn add(&mut self, pools: BTreeSet<Uuid>) {
        if !pools.is_empty() {
            *self.0.entry(pools).or_default() += 1;
        }
    }

    pub(super) fn pools(&self) -> BTreeSet<Uuid> {
        self.0.keys().flatten().copied().collect()
    }

    pub(super) fn all(&self) -> u64 {
        self.0.values().sum()
    }

    /// How many touch a pool.
    pub(super) fn of(&self, pool: Uuid) -> u64 {
        let touching = self.0.iter().filter(|(pools, _)| pools.contains(&pool));
        touching.map(|(_, count)| count).sum()
    }

    /// How many touch a pool that is none of these.
    pub(super) fn outside<V>(&self, pools: &BTreeMap<Uuid, V>) -> u64 {
        let is_outside =
            |touched: &BTreeSet<Uuid>| touched.iter().any(|pool| !pools.contains_key(pool));
        let outside = self.0.iter().filter(|(touched, _)| is_outside(touched));
        outside.map(|(_, count)| count).sum()
    }
}

/// The bytes that writes bring to each pool.
pub(super) fn bytes_by_pool(contents: &Contents, writes: &[HomeWrite]) -> BTreeMap<Uuid, u64> {
    let mut bytes = BTreeMap::new();
    for write in writes {
        if let Some(record) = contents.puddles.get(&write.puddle) {
            *bytes.entry(record.owner).or_default() += write.length();
        }
    }
    bytes
}
