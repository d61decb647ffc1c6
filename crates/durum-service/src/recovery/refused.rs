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

/// Reasons that a pool tells of others: it is told of each pool that waits, and there may be many of both.
const REASONS_MAX: usize = 8;

/// A pool that must not be written now.
#[derive(Clone, Debug)]
pub(crate) struct Refusal {
    /// The file that is in the way. It may be one of another pool.
    pub(crate) file: PathBuf,
    pub(crate) offset: Option<u64>,
    /// What is wrong with it, and the cure.
    pub(crate) reason: String,
    /// The pools whose files are in the way, where its own are whole: it only waits for them.
    pub(crate) waits_for: BTreeSet<Uuid>,
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
            waits_for: BTreeSet::new(),
            part: Part::default(),
        }
    }

    /// A pool whose own files are sound, and whose last transactions need those of other pools to be decided. `None`
    /// where none of these is refused.
    pub(super) fn waiting_for(others: &BTreeMap<Uuid, Refusal>) -> Option<Refusal> {
        let first = others.values().next()?;
        let reasons = others.values().map(|other| other.reason.as_str());
        let told: Vec<&str> = reasons.take(REASONS_MAX).collect();
        let more = match others.len() - told.len() {
            0 => String::new(),
            more => format!("; and {more} more"),
        };
        let reason = format!(
            "whether its last transactions committed cannot be said before what stands in the way of others is gone: {}{more}",
            told.join("; ")
        );
        Some(Refusal {
            reason,
            waits_for: others.keys().copied().collect(),
            part: Part::default(),
            ..first.clone()
        })
    }

    /// Adds what another client's logs say of the same pool. What is wrong with its own files is told first.
    fn merge(&mut self, other: &Refusal) {
        let Part {
            transactions,
            bytes,
            undecided,
        } = other.part;
        let part = Part {
            transactions: self.part.transactions + transactions,
            bytes: self.part.bytes + bytes,
            undecided: self.part.undecided + undecided,
        };
        match (self.waits_for.is_empty(), other.waits_for.is_empty()) {
            (false, true) => *self = other.clone(),
            (false, false) => self.waits_for.extend(&other.waits_for),
            (true, _) => {}
        }
        self.part = part;
    }

    fn to_pool(&self, contents: &Contents, pool: Uuid) -> RefusedPool {
        let record = contents.pools.get(&pool);
        let others = self.waits_for.iter();
        let others = others.filter_map(|other| contents.pools.get(other));
        let mut waits_for: Vec<String> = others.map(|other| other.name.clone()).collect();
        waits_for.sort_unstable();
        RefusedPool {
            name: record.map(|pool| pool.name.clone()).unwrap_or_default(),
            file: self.file.clone(),
            offset: self.offset,
            reason: self.reason.clone(),
            waits_for,
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
                Entry::Occupied(mut entry) => entry.get_mut().merge(refusal),
            }
        }
    }

    /// Takes those that another recovery of a client has found for those that were found before. `contents` says which
    /// pools it was about: a pool waits for one client.
    pub(crate) fn replace(&mut self, contents: &Contents, found: &RefusedPools) {
        self.0.retain(|pool, _| !contents.pools.contains_key(pool));
        self.add(&found.0);
    }

    pub(crate) fn contains(&self, pool: Uuid) -> bool {
        self.0.contains_key(&pool)
    }

    /// A refused pool; `None` for any other.
    pub(crate) fn pool(&self, contents: &Contents, pool: Uuid) -> Option<RefusedPool> {
        let refusal = self.0.get(&pool)?;
        Some(refusal.to_pool(contents, pool))
    }

    /// The error for who wants to use a pool.
    pub(crate) fn ensure_not(&self, store: &Path, contents: &Contents, pool: Uuid) -> Result<()> {
        let Some(refused) = self.pool(contents, pool) else {
            return Ok(());
        };
        Err(Error::PoolRefused {
            store: store.to_owned(),
            cure: refused.cure(store),
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
    let (mut kept, of_sections) = (contents.kept_pools(), contents.pools_of_sections());
    if kept.is_empty() && of_sections.is_empty() {
        return Ok(());
    }
    let is_any_kept = !kept.is_empty();
    kept.extend(&of_sections);
    let records = kept.iter().filter_map(|pool| contents.pools.get(pool));
    let names = records.clone().map(|pool| pool.name.clone());
    let (twins, others): (Vec<_>, Vec<_>) =
        records.partition(|pool| pool.engine == EngineKind::Twin);
    let mut cure = String::from("brings home what can be brought there and tells what is missing");
    if !of_sections.is_empty() {
        cure += ", the program that was in sections there completes them, and `--abandon-sections POOL` accepts a pool half done";
    }
    if is_any_kept && !others.is_empty() {
        cure += ", and `--give-up POOL` gives up what is kept";
    }
    if let Some(twin) = twins.first() {
        cure += &format!(
            "; a Twin pool has nothing to give up: bring its files back, or remove it: `durum rm {} {}`",
            store.display(),
            twin.name
        );
    }
    Err(Error::PartsKept {
        store: store.to_owned(),
        operation,
        pools: names.collect(),
        cure,
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

    /// Adds how many touch each pool.
    pub(super) fn count_by_pool(&self, counts: &mut BTreeMap<Uuid, u64>) {
        for (pools, count) in &self.0 {
            for pool in pools {
                *counts.entry(*pool).or_default() += count;
            }
        }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_waits_is_told_of_all_that_stands_in_the_way() {
        let refusal = |file: &str| {
            Refusal::of(&Error::FileMissing {
                file: PathBuf::from(file),
                structure: "a puddle",
                cure: "bring it back".into(),
            })
        };
        let [first, second, other] = [1, 2, 3].map(|number| Uuid([number; 16]));
        let others = BTreeMap::from([
            (first, refusal("first.puddle")),
            (second, refusal("second.puddle")),
        ]);
        let mut waiting = Refusal::waiting_for(&others).unwrap();
        assert_eq!(waiting.file, Path::new("first.puddle"));
        assert_eq!(waiting.waits_for, BTreeSet::from([first, second]));
        for other in others.values() {
            assert!(waiting.reason.contains(&other.reason), "{}", waiting.reason);
        }
        assert!(Refusal::waiting_for(&BTreeMap::new()).is_none());

        // Another client's logs: it waits for one more, and then one of its own files is in the way, too.
        let more = BTreeMap::from([(other, refusal("other.puddle"))]);
        waiting.merge(&Refusal::waiting_for(&more).unwrap());
        assert_eq!(waiting.waits_for, BTreeSet::from([first, second, other]));
        waiting.part.transactions = 2;
        let mut own = refusal("own.puddle");
        own.part.transactions = 3;
        for mut merged in [(waiting.clone(), &own), (own.clone(), &waiting)] {
            merged.0.merge(merged.1);
            assert!(merged.0.waits_for.is_empty());
            assert_eq!(merged.0.reason, own.reason);
            assert_eq!(merged.0.part.transactions, 5);
        }
    }
}
