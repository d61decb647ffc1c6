//! What recovery has to do for one client.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use durum_format::Uuid;
use durum_format::home::Verdict;

use super::home::Home;
use super::refused::{Part, Refusal, Touched, bytes_by_pool};
use super::sections::Interruption;
use super::write::HomeWrite;
use crate::error::Result;
use crate::files;
use crate::model::{QuarantineNote, RecoveryReport};
use crate::registry::contents::{Contents, Kept};

/// Verdicts that the registry keeps of a client at one time. A client can have some for every 64 bytes of its logs, and
/// the registry is everybody's.
const VERDICTS_MAX: usize = 4096;

/// What happens to a transaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// The transaction did not commit and is undone.
    RollBack,
    /// The transaction committed and is completed.
    RollForward,
}

/// A log that must not be replayed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct InvalidLog {
    /// The puddle whose file shows it: the log's first puddle, or the log space.
    pub(crate) puddle: Uuid,
    /// The log's id, 0 where it could not be read.
    pub(crate) log_id: u64,
    /// Why.
    pub(crate) reason: String,
}

/// What recovery has to do for one client.
#[derive(Clone, Debug, Default)]
pub(crate) struct ClientPlan {
    /// How many log spaces were read.
    pub(crate) log_spaces: u64,
    /// How many puddles of redo records were read.
    pub(crate) rings: u64,
    /// The transactions of redo records, by the pools that they change.
    pub(super) redone: Touched,
    /// How many valid logs ask for nothing.
    pub(super) idle: u64,
    /// How many cannot be decided now.
    pub(super) unsettled: u64,
    /// The logs whose transaction is undone, and those whose transaction is completed, by the pools that they change.
    pub(super) rolled_back: Touched,
    pub(super) rolled_forward: Touched,
    /// Transactions of which nobody can say whether they committed before a file is back, by the pools that they may
    /// change.
    pub(super) undecided: Touched,
    /// What only home could tell, now and when other parts were recovered.
    pub(super) verdicts: Vec<Verdict>,
    /// Pools that must not be written now: their part stays in the logs.
    pub(crate) refused: BTreeMap<Uuid, Refusal>,
    /// What has to be known when the rest is recovered.
    pub(crate) kept: Kept,
    /// A part was recovered before, and nothing more is recovered now.
    pub(super) is_as_before: bool,
    /// The writes of all valid logs, in the order in which they must be applied.
    pub(crate) writes: Vec<HomeWrite>,
    /// Some of them come from logs. Those to Twin pools do not.
    pub(crate) replays_logs: bool,
    /// Data puddles with bytes that no write brings again: they went home with a record.
    pub(crate) relied_on: BTreeSet<Uuid>,
    /// Writes that follow when all others are durable, and need not be.
    pub(crate) endings: Vec<HomeWrite>,
    /// What happens to each Twin pool of which one copy is not whole.
    pub(crate) twins: Vec<Outcome>,
    /// The logs that must not be replayed.
    pub(crate) invalid: Vec<InvalidLog>,
    /// Sections that it was in: it stays, with the pools that it could write.
    pub(crate) interrupted: Option<Interruption>,
    /// Puddles of logs, log spaces and sections that were read and found valid: the writes come from them. They may go
    /// when those are durable.
    pub(crate) sound: BTreeSet<Uuid>,
}

impl ClientPlan {
    /// Sets apart what is for pools that cannot be written now.
    pub(super) fn settle(
        &mut self,
        contents: &Contents,
        client: Uuid,
        home: &mut Home<'_>,
    ) -> Result<()> {
        let mut touched = self.undecided.pools();
        let relied_on = self.relied_on.iter();
        let written = self.writes.iter().map(|write| &write.puddle);
        for puddle in relied_on.chain(written) {
            touched.extend(contents.puddles.get(puddle).map(|record| record.owner));
        }
        for pool in touched {
            home.ensure_whole(pool)?;
        }
        for (pool, error) in home.refused() {
            self.refused.insert(*pool, Refusal::of(error));
        }
        if let Some(cause) = Refusal::waiting_for(&self.refused) {
            for pool in self.undecided.pools() {
                self.refused.entry(pool).or_insert_with(|| cause.clone());
            }
        }
        if self.verdicts.len() > home.known().len() + VERDICTS_MAX && !self.refused.is_empty() {
            self.wait_as_a_whole(contents, home);
        }
        self.kept = Kept {
            granted: home.ranges_of_then(),
            verdicts: std::mem::take(&mut self.verdicts),
        };
        let pools: Vec<Uuid> = self.refused.keys().copied().collect();
        self.set_apart(contents, &pools);
        debug_assert!(
            self.refused
                .keys()
                .all(|pool| contents.grants.contains(&(client, *pool))),
            "what is not granted is not asked for"
        );
        Ok(())
    }

    /// Where more would have to be kept than the registry is to hold, no pool is written while one waits: then home
    /// can be asked again.
    fn wait_as_a_whole(&mut self, contents: &Contents, home: &Home<'_>) {
        self.verdicts.truncate(home.known().len());
        if let Some(cause) = Refusal::waiting_for(&self.refused) {
            for pool in self.pools(contents) {
                self.refused.entry(pool).or_insert_with(|| cause.clone());
            }
        }
    }

    /// The puddles of pools that it writes or relies on, some of them more than once.
    pub(super) fn puddles(&self) -> impl Iterator<Item = Uuid> {
        let writes = self.writes.iter().chain(&self.endings);
        let written = writes.map(|write| &write.puddle);
        self.relied_on.iter().chain(written).copied()
    }

    /// The pools that it writes or relies on.
    pub(crate) fn pools(&self, contents: &Contents) -> BTreeSet<Uuid> {
        let records = self
            .puddles()
            .filter_map(|uuid| contents.puddles.get(&uuid));
        records.map(|record| record.owner).collect()
    }

    /// Leaves out what is for these pools, which are refused, and counts it.
    pub(crate) fn set_apart(&mut self, contents: &Contents, pools: &[Uuid]) {
        let parts = self.parts(contents, pools);
        for (pool, part) in parts {
            if let Some(refusal) = self.refused.get_mut(&pool) {
                refusal.part = part;
            }
        }
        let is_written = |puddle: &Uuid| {
            let record = contents.puddles.get(puddle);
            record.is_none_or(|record| !pools.contains(&record.owner))
        };
        self.writes.retain(|write| is_written(&write.puddle));
        self.endings.retain(|write| is_written(&write.puddle));
        self.relied_on.retain(is_written);
    }

    /// Drops what was carried out: a client's logs may be large, and many clients may have gone.
    pub(crate) fn forget_writes(&mut self) {
        self.writes = Vec::new();
        self.endings = Vec::new();
        self.relied_on.clear();
    }

    /// What there is for each of these pools.
    pub(crate) fn parts(&self, contents: &Contents, pools: &[Uuid]) -> BTreeMap<Uuid, Part> {
        let bytes = bytes_by_pool(contents, &self.writes);
        let (mut transactions, mut undecided) = (BTreeMap::new(), BTreeMap::new());
        for touched in [&self.redone, &self.rolled_back, &self.rolled_forward] {
            touched.count_by_pool(&mut transactions);
        }
        self.undecided.count_by_pool(&mut undecided);
        let part = |pool: &Uuid| Part {
            transactions: transactions.get(pool).copied().unwrap_or_default(),
            bytes: bytes.get(pool).copied().unwrap_or_default(),
            undecided: undecided.get(pool).copied().unwrap_or_default(),
        };
        pools.iter().map(|pool| (*pool, part(pool))).collect()
    }

    /// Notes that a log must not be replayed. The first reason for a puddle stands.
    pub(super) fn quarantine(&mut self, puddle: Uuid, log_id: u64, reason: String) {
        self.sound.remove(&puddle);
        if self.invalid.iter().all(|log| log.puddle != puddle) {
            self.invalid.push(InvalidLog {
                puddle,
                log_id,
                reason,
            });
        }
    }
}

impl RecoveryReport {
    /// Adds what the plan for a client does.
    pub(crate) fn count(&mut self, plan: &ClientPlan) {
        if plan.is_as_before {
            return;
        }
        let of_twins = |outcome| {
            let matching = plan.twins.iter().filter(|found| **found == outcome);
            matching.count() as u64
        };
        let done = |touched: &Touched| touched.outside(&plan.refused);
        self.log_spaces += plan.log_spaces;
        self.logs += plan.idle + plan.invalid.len() as u64 + plan.rings;
        self.logs += plan.rolled_back.all() + plan.rolled_forward.all() + plan.unsettled;
        self.rolled_back += of_twins(Outcome::RollBack) + done(&plan.rolled_back);
        self.rolled_forward +=
            of_twins(Outcome::RollForward) + done(&plan.rolled_forward) + done(&plan.redone);
        self.entries += plan.writes.len() as u64;
        self.bytes += plan.writes.iter().map(HomeWrite::length).sum::<u64>();
        self.quarantined
            .extend(plan.invalid.iter().map(|log| QuarantineNote {
                log: PathBuf::from(files::relative_path(log.puddle, true)),
                reason: log.reason.clone(),
            }));
    }
}
