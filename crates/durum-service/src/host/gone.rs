//! A client is gone: its logs are replayed, while all others go on.

use std::sync::PoisonError;

use durum_format::Uuid;

use super::commit::Commit;
use super::{Host, Open, open, recover};
use crate::error::Result;
use crate::files;
use crate::model::RecoveryReport;

impl Host {
    /// Replays the logs of a client whose process is gone, and ends it. Others go on meanwhile; whoever asks for one of
    /// its pools gets it afterwards. All of it is durable on return. Nothing happens for one that has ended in order.
    ///
    /// The caller knows that the process is gone: a client that lives would write to logs that are being replayed.
    ///
    /// # Errors
    /// `Closed`, `Forked`, `Poisoned`; `Io`: the logs are whole, and the pools stay with the client until it is tried
    /// again, or the store is opened anew.
    pub fn recover_client(&self, client: Uuid) -> Result<RecoveryReport> {
        // Whoever comes second finds that the client has ended.
        let recovering = self.recovering.lock();
        let _once = recovering.unwrap_or_else(PoisonError::into_inner);
        // Nobody else may touch its logs, nor the pools that it was granted: so both are read without the lock.
        let (away, contents) = self.leave(|open| Ok(open.contents.clone()))?;
        let known = Some(client).filter(|client| contents.clients.contains(client));
        let mut plans = recover::plan(&self.path, &contents, known, &|_, _, _| {})?;
        let mut recovered = plans.apply(&self.path, &contents)?;
        // ORDER: one commit retires the logs after the recovered data is durable (`apply`); else a crash finds neither
        // logs nor data.
        let removed = away.request(|open| {
            let (changes, removed) = plans.retire(&open.contents);
            Ok((removed, Commit::removal(changes)))
        })?;
        away.note(|open| {
            open.at_work.remove(&client);
            open.refused.add_all(&recovered.refused);
        });
        for uuid in &removed {
            files::remove(&self.path, *uuid)?;
            away.note(|open| open.unlinked.push(*uuid));
        }
        let is_here = |uuid: &Uuid| files::puddle_path(&self.path, *uuid).exists();
        let mut quarantined = Vec::new();
        away.note(|open| {
            for uuid in &removed {
                if let Some(record) = contents.puddles.get(uuid) {
                    open.space.remove(record.address);
                }
            }
            quarantined = quarantined_of(open, client);
        });
        quarantined.retain(is_here);
        open::move_into_quarantine(&self.path, &quarantined)?;
        recovered.report.was_clean = known.is_none();
        Ok(recovered.report)
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
