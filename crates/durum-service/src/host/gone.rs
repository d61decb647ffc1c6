//! A client is gone: its logs are replayed, while all others go on.

use durum_format::Uuid;

use super::commit::{Away, Commit};
use super::puddles::Registered;
use super::{Host, Open, State, open, recover};
use crate::error::{Error, Result};
use crate::files;
use crate::model::RecoveryReport;

impl Host {
    /// Replays the logs of a client whose process is gone, ends it, and removes their files; see
    /// [`end_client`](Host::end_client).
    ///
    /// # Errors
    /// As for [`Host::end_client`] and [`Ended::clear_up`].
    pub fn recover_client(&self, client: Uuid) -> Result<RecoveryReport> {
        let ended = self.end_client(client)?;
        let report = ended.report.clone();
        ended.clear_up()?;
        Ok(report)
    }

    /// Replays the logs of a client whose process is gone, and ends it. Others go on meanwhile, and other clients are
    /// recovered beside it; whoever asks for one of its pools gets it afterwards. All of it is durable on return.
    /// Nothing happens for one that has ended in order.
    ///
    /// The caller knows that the process is gone: a client that lives would write to logs that are being replayed.
    ///
    /// # Errors
    /// `Closed`, `Forked`, `Poisoned`; `PoolBusy` while somebody completes its sections; `Io`: the logs are whole, and
    /// the pools stay with the client until it is tried again, or the store is opened anew.
    pub fn end_client(&self, client: Uuid) -> Result<Ended<'_>> {
        let alone = self.recover_alone(client)?;
        self.ensure_not_taken_over(client)?;
        // Nobody else may touch its logs, nor the pools that it was granted: so both are read without the lock.
        let (away, contents) = self.leave(|open| Ok(open.contents.concerning(client)))?;
        let known = contents.clients.first().copied();
        let replayed = recover::replay(&self.path, &contents, known, &|_, _, _| {})?;
        // ORDER: one commit retires the logs after the recovered data is durable (`replay`); else a crash finds neither
        // logs nor data.
        let removed: Vec<Registered> = away.request(|open| {
            let (changes, removed) = replayed.retire(&open.contents);
            let record = |uuid| Some((uuid, *open.contents.puddles.get(&uuid)?));
            let removed = removed.into_iter().filter_map(record).collect();
            Ok((removed, Commit::removal(changes)))
        })?;
        let mut recovered = replayed.recovered();
        away.note(|open| {
            open.forget_client(client);
            open.refused.replace(&contents, &recovered.refused);
            let found = recovered.interrupted.of(client).cloned();
            open.interrupted.put(client, found);
        });
        let is_here = |uuid: &Uuid| files::puddle_path(&self.path, *uuid).exists();
        let mut quarantined = Vec::new();
        away.note(|open| {
            quarantined = quarantined_of(open, client);
            open.clearing += 1;
        });
        quarantined.retain(is_here);
        recovered.report.was_clean = known.is_none();
        let ended = Ended {
            host: self,
            report: recovered.report,
            removed,
            away,
            _alone: alone,
        };
        match open::move_into_quarantine(&self.path, &quarantined) {
            Ok(()) => Ok(ended),
            // It has ended all the same, and nobody else gives its addresses back.
            Err(error) => ended.clear_up().and(Err(error)),
        }
    }

    /// Refuses to recover a client whose sections are being completed: they go with it.
    fn ensure_not_taken_over(&self, client: Uuid) -> Result<()> {
        let mut state = self.state();
        let open = state.open(&self.path)?;
        if !open.taken_over.contains_key(&client) {
            return Ok(());
        }
        let mut pools = open.contents.granted_pools(client);
        let name = pools.next().map(|pool| open.contents.name_of(pool));
        Err(Error::PoolBusy {
            name: name.unwrap_or_default(),
        })
    }

    /// Waits until nobody else recovers this client: whoever comes second finds that it has ended.
    pub(super) fn recover_alone(&self, client: Uuid) -> Result<Recovering<'_>> {
        let mut state = self.state();
        while !state.open(&self.path)?.recovering.insert(client) {
            state = self.wait(state);
        }
        Ok(Recovering { host: self, client })
    }
}

/// A client was recovered and has ended. The files of its logs are there yet: to remove them takes longer than all the
/// rest, and who waits for a pool need not wait for it.
#[must_use = "the files go at the next start otherwise"]
#[derive(Debug)]
pub struct Ended<'h> {
    host: &'h Host,
    report: RecoveryReport,
    removed: Vec<Registered>,
    away: Away<'h>,
    _alone: Recovering<'h>,
}

impl Ended<'_> {
    /// What was recovered.
    pub fn report(&self) -> &RecoveryReport {
        &self.report
    }

    /// Removes the files.
    ///
    /// # Errors
    /// `Io`: those that are left go at the next start.
    pub fn clear_up(self) -> Result<()> {
        let removed = self.removed.iter().try_for_each(|(uuid, _)| {
            files::remove(&self.host.path, *uuid)?;
            self.away.note(|open| open.unlinked.push(*uuid));
            Ok(())
        });
        // Also after an error: the registry does not list them.
        self.away.note(|open| open.free_addresses(&self.removed));
        removed
    }
}

impl Drop for Ended<'_> {
    fn drop(&mut self) {
        self.away.note(|open| open.clearing -= 1);
        self.host.changed.notify_all();
    }
}

impl Host {
    /// Waits until files of clients that have ended are removed; whether there were any. Then there is room again.
    pub(super) fn has_cleared_up(&self) -> bool {
        let is_clearing = |state: &State| state.open.as_ref().is_some_and(|open| open.clearing > 0);
        let mut state = self.state();
        let was_clearing = is_clearing(&state);
        while is_clearing(&state) {
            state = self.wait(state);
        }
        was_clearing
    }
}

/// A client is being recovered, until this is dropped.
#[derive(Debug)]
pub(super) struct Recovering<'e> {
    host: &'e Host,
    client: Uuid,
}

impl Drop for Recovering<'_> {
    fn drop(&mut self) {
        if let Some(open) = &mut self.host.state().open {
            open.recovering.remove(&self.client);
        }
        self.host.changed.notify_all();
    }
}

/// The puddles that are kept because logs of the client failed validation.
fn quarantined_of(open: &Open, client: Uuid) -> Vec<Uuid> {
    let logs = open.contents.quarantine.iter();
    let logs = logs.filter(|(_, log)| log.client == client);
    logs.flat_map(|(puddle, log)| log.continuations.iter().chain([puddle]))
        .copied()
        .collect()
}
