//! Who uses the store and what they wait for, and how one is asked to leave it.

use std::sync::PoisonError;
use std::time::{Duration, Instant};

use durum_format::Uuid;
use durum_protocol::Note;
use durum_protocol::message::{ClientView, SHOW};
use durum_service::{Caller, Error, Result};

use super::{Client, Clients, Line, Table};

/// The longest that anybody waits here until a client has left.
const WAIT_MAX: Duration = Duration::from_secs(60);

impl Line {
    /// Notes what the client asks, while it waits for the answer.
    pub(crate) fn asks(&self, what: Option<String>) {
        *self.asks.lock().unwrap_or_else(PoisonError::into_inner) =
            what.map(|what| (what, Instant::now()));
    }
}

/// Whether somebody hears of a client: of those of its user, or it may all.
fn sees(caller: &Caller, client: &Client) -> bool {
    caller.may_all() || client.uid == Some(caller.uid())
}

impl Table {
    /// Whether a client is gone and not recovered yet.
    fn is_ending(&self, client: Uuid) -> bool {
        self.recovering.contains(&client) || self.stuck.contains_key(&client)
    }
}

impl Clients {
    /// The clients that somebody may hear of, in order of process.
    pub(crate) fn list(&self, caller: &Caller) -> Vec<ClientView> {
        let table = self.table();
        let seen = table.living.iter();
        let mut clients: Vec<ClientView> = seen
            .filter(|(_, client)| sees(caller, client))
            .map(|(id, client)| {
                let asks = client.line.as_ref().and_then(|line| {
                    let asks = line.asks.lock().unwrap_or_else(PoisonError::into_inner);
                    asks.clone()
                });
                ClientView {
                    client: *id,
                    pid: client.pid,
                    uid: client.uid,
                    is_connected: client.line.is_some(),
                    holds: Vec::new(),
                    waits_ms: asks
                        .as_ref()
                        .map_or(0, |(_, since)| since.elapsed().as_millis() as u64),
                    waits_for: asks.map(|(what, _)| what),
                }
            })
            .collect();
        // Whose recovery does not succeed is seen by those who may end it: its pools are nobody else's.
        let stuck = table.stuck.iter();
        let stuck =
            stuck.filter(|(_, (_, gone))| caller.may_all() || gone.uid == Some(caller.uid()));
        clients.extend(stuck.map(|(id, (tried, gone))| ClientView {
            client: *id,
            pid: gone.pid.unwrap_or_default(),
            uid: gone.uid,
            is_connected: false,
            holds: Vec::new(),
            waits_ms: tried.elapsed().as_millis() as u64,
            waits_for: Some(format!("its recovery, which failed: {}", gone.why)),
        }));
        drop(table);
        for client in &mut clients {
            client.holds = self.host.pools_of(client.client);
        }
        clients.sort_by_key(|client| (client.pid, client.client));
        clients
    }

    /// Asks a client to leave, and tells whether it has, and was recovered, in that time. To end one is not the
    /// service's business: whoever asks does that itself, by its own right.
    ///
    /// # Errors
    /// `ClientUnknown`, also for one that the caller may not hear of.
    pub(crate) fn ask_to_leave(
        &self,
        client: Uuid,
        asker: Uuid,
        caller: &Caller,
        wait: Duration,
    ) -> Result<bool> {
        let table = self.table();
        let known = table.living.get(&client);
        let line = match known.filter(|known| sees(caller, known)) {
            Some(known) => known.line.clone(),
            // It is on its way.
            None if table.is_ending(client) => None,
            None => {
                return Err(Error::ClientUnknown {
                    client: client.to_string(),
                });
            }
        };
        // Without the lock: a client may not read what it is told.
        drop(table);
        if let Some(line) = line {
            line.tell(&Note::Leave);
        }
        Ok(self.is_gone_within(client, asker, wait.min(WAIT_MAX)))
    }

    /// Asks a client to show a pool that it writes. Whether it can be asked.
    pub(crate) fn ask_to_show(&self, client: Uuid, showing: Uuid, pool: Uuid) -> bool {
        let table = self.table();
        let line = table
            .living
            .get(&client)
            .and_then(|known| known.line.as_ref());
        let able = line.filter(|line| line.features & SHOW != 0).cloned();
        // Without the lock: a client may not read what it is told.
        drop(table);
        able.is_some_and(|line| line.tell(&Note::Show { showing, pool }))
    }

    /// Whether a client is there, as far as is known.
    pub(crate) fn is_there(&self, client: Uuid) -> bool {
        self.table().living.contains_key(&client)
    }

    /// Waits until a client has ended or was recovered, or who asks is gone.
    fn is_gone_within(&self, client: Uuid, asker: Uuid, most: Duration) -> bool {
        let until = Instant::now() + most;
        let mut table = self.table();
        loop {
            let is_there = table.living.contains_key(&client) || table.is_ending(client);
            let left = until.saturating_duration_since(Instant::now());
            if !is_there || left.is_zero() || !table.living.contains_key(&asker) {
                return !is_there;
            }
            let woken = self.changed.wait_timeout(table, left);
            table = woken.unwrap_or_else(PoisonError::into_inner).0;
        }
    }
}
