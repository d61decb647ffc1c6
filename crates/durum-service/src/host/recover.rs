//! Recovery of what clients left that did not end in order: replay their logs, retire them in one registry commit.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::time::Instant;

use durum_format::Uuid;

use crate::error::Result;
use crate::files::{self, Puddles};
use crate::model::{RecoveryReport, Stage};
use crate::recovery::{
    Access, ClientPlan, Interrupted, Refusal, RefusedPools, apply, is_of_sections, plan_client,
    sync_logs,
};
use crate::registry::contents::{Change, Contents, QuarantinedLog};
use crate::registry::{Purpose, Registry};

/// Clients whose logs were replayed. To retire these is left.
pub(super) struct Replayed {
    clients: Vec<(Uuid, ClientPlan)>,
    recovered: Recovered,
}

/// What came of a recovery.
pub(super) struct Recovered {
    pub(super) report: RecoveryReport,
    /// The pools that could not be written.
    pub(super) refused: RefusedPools,
    /// The clients that have left sections.
    pub(super) interrupted: Interrupted,
    /// The addresses of the puddles that went.
    pub(super) freed: Vec<u64>,
}

/// Reads the logs of clients that have gone, and brings home what can be brought there. It is durable on return, and
/// the logs are as before.
///
/// One client after the other, so that the logs of one are in memory at a time. No two of them may write the same pool.
///
/// # Errors
/// Of the system. Some of it may have been done: the logs are whole, and the next attempt does it again.
pub(super) fn replay(
    path: &Path,
    contents: &Contents,
    gone: impl IntoIterator<Item = Uuid>,
    progress: &dyn Fn(Stage, u64, u64),
) -> Result<Replayed> {
    let began = Instant::now();
    let mut report = RecoveryReport {
        was_clean: contents.is_clean(),
        ..RecoveryReport::default()
    };
    let mut refused = RefusedPools::default();
    let mut interrupted = Interrupted::default();
    let puddles = Puddles::of(path)?;
    let mut clients = Vec::new();
    for client in gone {
        let _span = tracing::debug_span!("recover_client", %client).entered();
        let mut step = |done, total| progress(Stage::Logs, done, total);
        let mut plan = plan_client(&puddles, contents, client, Access::Write, &mut step)?;
        carry_out(&puddles, contents, &mut plan)?;
        puddles.forget();
        report.count(&plan);
        refused.add(&plan.refused);
        interrupted.put(client, plan.interrupted.clone());
        plan.forget_writes();
        clients.push((client, plan));
    }
    report.refused = refused.to_pools(contents);
    report.interrupted = interrupted.to_clients(contents);
    report.log_time = began.elapsed();
    Ok(Replayed {
        clients,
        recovered: Recovered {
            report,
            refused,
            interrupted,
            freed: Vec::new(),
        },
    })
}

fn carry_out(puddles: &Puddles, contents: &Contents, plan: &mut ClientPlan) -> Result<()> {
    let failed: BTreeMap<Uuid, Refusal> = match sync_logs(puddles, contents, plan)? {
        Some(refusal) => {
            let pools = plan.pools(contents).into_iter();
            pools.map(|pool| (pool, refusal.clone())).collect()
        }
        None => {
            let failed = apply(puddles, contents, plan)?.into_iter();
            failed
                .map(|(pool, error)| (pool, Refusal::of(&error)))
                .collect()
        }
    };
    let pools: Vec<Uuid> = failed.keys().copied().collect();
    plan.refused.extend(failed);
    plan.set_apart(contents, &pools);
    Ok(())
}

impl Replayed {
    /// Retires the logs of which nothing is kept. Durable on return.
    ///
    /// # Errors
    /// Of the system; the logs are whole, and the next attempt does the same.
    pub(super) fn end(
        mut self,
        path: &Path,
        registry: &mut Registry,
        contents: &mut Contents,
    ) -> Result<Recovered> {
        let began = Instant::now();
        let (changes, removed) = self.retire(contents);
        // Where nothing could be done that was not done before, nothing is written.
        if changes.is_empty() {
            return Ok(self.recovered);
        }
        let records = removed.iter().filter_map(|uuid| contents.puddles.get(uuid));
        self.recovered.freed = records.map(|record| record.address).collect();
        // ORDER: one commit retires the logs, and enters what is kept and all quarantines, after the recovered data is
        // durable (`replay`). Before it a crash finds the old logs whole; after it nobody reads again what was
        // recovered, nor asks home again what it said.
        registry
            .commit(contents, &changes, Purpose::Removal)
            .map_err(|failure| failure.into_error(registry))?;
        for uuid in removed {
            files::remove(path, uuid)?;
        }
        self.recovered.report.registry_time = began.elapsed();
        Ok(self.recovered)
    }

    /// What was recovered, for whoever retires the logs in a commit with others.
    pub(super) fn recovered(self) -> Recovered {
        self.recovered
    }

    /// The changes that retire the logs of which nothing is kept, and the puddles that go with them.
    pub(super) fn retire(&self, contents: &Contents) -> (Vec<Change>, Vec<Uuid>) {
        let mut changes = Vec::new();
        let mut removed = Vec::new();
        for (client, plan) in &self.clients {
            changes.extend(retire(contents, *client, plan, &mut removed));
        }
        (changes, removed)
    }
}

/// The changes that retire a client's logs, or note what is kept of them. Where one is invalid, the puddles that are
/// not known to be sound are kept with it, and the client's pools are marked. Where it was in a section, the client
/// itself stays.
fn retire(
    contents: &Contents,
    client: Uuid,
    plan: &ClientPlan,
    removed: &mut Vec<Uuid>,
) -> Vec<Change> {
    let waits = !plan.refused.is_empty();
    let mut quarantined: Vec<(Uuid, QuarantinedLog)> = contents
        .quarantine
        .iter()
        .filter(|(_, log)| log.client == client)
        .map(|(puddle, log)| (*puddle, log.clone()))
        .collect();
    let known = quarantined.len();
    for log in &plan.invalid {
        tracing::warn!(log = %log.puddle, reason = %log.reason, "a log failed validation and is quarantined");
        quarantined.push((
            log.puddle,
            QuarantinedLog {
                log_id: log.log_id,
                continuations: Vec::new(),
                client,
                reason: log.reason.clone(),
            },
        ));
    }
    let invalid: BTreeSet<Uuid> = plan.invalid.iter().map(|log| log.puddle).collect();
    let has_quarantine = known > 0 || !plan.invalid.is_empty();
    // Its logs go, so that nobody replays them over what its sections do when they go on. The pools that it could write
    // stay its own, and so do the records that tell how.
    let stays = plan.interrupted.is_some();
    let (ending, mut puddles) = contents.ending_of(client);
    if stays {
        puddles.retain(|uuid| !is_of_sections(contents, *uuid));
    }
    // Where all logs are valid, a puddle that was not read was prepared and never used: no log space, and no log, names
    // it. So whether its file is whole, or there, concerns nobody.
    let may_go = |uuid: &Uuid| {
        plan.invalid.is_empty() || plan.sound.contains(uuid) || is_of_sections(contents, *uuid)
    };
    let (sound, unsound): (Vec<Uuid>, Vec<Uuid>) = puddles
        .into_iter()
        .filter(|uuid| !invalid.contains(uuid))
        .partition(may_go);
    let mut changes = Vec::new();
    // Which of the puddles belong to which of several invalid logs cannot be known.
    let mut with_it = unsound;
    if waits {
        let pools = contents.granted_pools(client);
        // Where sections are to go on, nobody changes what was recovered before all is: it may be recovered again.
        let done = pools.filter(|pool| !stays && !plan.refused.contains_key(pool));
        changes.extend(done.map(|pool| Change::RemoveGrant(client, pool)));
        let spaces = contents.log_spaces.keys();
        let lost = spaces.filter(|space| invalid.contains(space));
        changes.extend(lost.map(|space| Change::RemoveLogSpace(*space)));
        // The others are read again, so they stay where they are: a registered log space that lies in quarantine as
        // well would not be found, be put there twice, and no registry may say so.
        with_it.retain(|uuid| !contents.log_spaces.contains_key(uuid));
    } else {
        // The log space says which logs there are: without it nobody can try again to replay one that is in quarantine.
        let goes = |uuid: &Uuid| quarantined.is_empty() || !contents.log_spaces.contains_key(uuid);
        let (gone, remaining): (Vec<Uuid>, Vec<Uuid>) = sound.into_iter().partition(goes);
        with_it.extend(remaining);
        changes.extend(ending.into_iter().filter(|change| match change {
            Change::RemovePuddle(uuid) => gone.contains(uuid),
            Change::RemoveGrant(..) | Change::RemoveClient(_) => !stays,
            Change::RemoveKept(_) => !(stays && has_quarantine),
            _ => true,
        }));
        removed.extend(gone);
    }
    let is_changed = |index: usize, more: &[Uuid]| index >= known || !more.is_empty();
    let first_new = if plan.invalid.is_empty() { 0 } else { known };
    for (index, (puddle, mut log)) in quarantined.into_iter().enumerate() {
        let more = match index == first_new {
            true => std::mem::take(&mut with_it),
            false => Vec::new(),
        };
        if is_changed(index, &more) {
            log.continuations.extend(more);
            changes.push(Change::PutQuarantine(puddle, log));
        }
    }
    if !plan.invalid.is_empty() {
        let pools = contents.granted_pools(client);
        changes.extend(pools.map(|pool| Change::PutMark(pool, client)));
    }
    let mut kept = plan.kept.clone();
    if !waits {
        // Of the logs that go now nobody will ask again.
        kept.verdicts
            .retain(|verdict| !plan.sound.contains(&verdict.puddle));
    }
    let is_known = (waits || stays) && contents.kept.get(&client) == Some(&kept);
    if (waits || has_quarantine) && !is_known {
        changes.push(Change::PutKept(client, kept));
    }
    changes
}
