//! Clients that live in other processes: the service knows by their locks who they are and whether they live.

use std::sync::Arc;

use durum_format::Uuid;
use durum_persist::file::MediaFile;

use super::{Embedded, Host};
use crate::error::{Error, Result};
use crate::liveness::{self, Life, Watched};
use crate::rights::Caller;

impl Host {
    /// Lets a client in another process, of this user, use the store, once it holds its lock: it is to take a
    /// [`Liveness`] by the descriptor. Until then nothing may be done for it.
    ///
    /// [`Liveness`]: crate::Liveness
    ///
    /// # Errors
    /// `Closed`, `Poisoned`; `Io`.
    pub fn client_elsewhere(self: &Arc<Host>, caller: Caller) -> Result<(Embedded, MediaFile)> {
        let mut client = self.client()?;
        client.caller = Some(caller);
        match liveness::make(&self.path, client.id()) {
            Ok(file) => Ok((client, file)),
            Err(error) => {
                self.dismiss(client.id());
                Err(error)
            }
        }
    }

    /// Forgets a client for which nothing was done yet.
    pub fn dismiss(&self, client: Uuid) {
        self.is_not_at_work(client);
        if let Err(error) = liveness::forget(&self.path, client) {
            // The next opener removes it.
            tracing::warn!(%client, "{error}");
        }
    }

    /// A client that lives and was known to an earlier service, or came by a connection that has ended.
    ///
    /// # Errors
    /// `Closed`, `Poisoned`; `ClientUnknown` for one that is not at work here.
    pub fn client_again(self: &Arc<Host>, client: Uuid, caller: Caller) -> Result<Embedded> {
        match self.has_at_work(client)? {
            true => Ok(Embedded::of(self.clone(), client, Some(caller))),
            false => Err(Error::ClientUnknown {
                client: client.to_string(),
            }),
        }
    }

    /// The descriptor by which a client takes its lock, for one that has lost its own.
    ///
    /// # Errors
    /// `Io`.
    pub fn liveness_file(&self, client: Uuid) -> Result<MediaFile> {
        liveness::make(&self.path, client)
    }

    /// Whether a client lives.
    ///
    /// # Errors
    /// `Io`.
    pub fn life_of(&self, client: Uuid) -> Result<Life> {
        liveness::life(&self.path, client)
    }

    /// For one who asks often whether a client lives: its file is opened once.
    ///
    /// # Errors
    /// `Io`.
    pub fn watch(&self, client: Uuid) -> Result<Watched> {
        Watched::open(&self.path, client)
    }

    /// The user of a client that has opened or made something.
    pub fn user_of(&self, client: Uuid) -> Option<u32> {
        let state = self.state();
        let open = state.open.as_ref()?;
        open.contents.users.get(&client).copied()
    }

    /// Whether a client has the pool of this name open, be it for reading; also one that is gone.
    pub fn has_pool(&self, client: Uuid, name: &str) -> bool {
        let state = self.state();
        let Some(open) = &state.open else {
            return false;
        };
        open.contents.pool_named(name).is_some_and(|(pool, _)| {
            let held = (client, pool);
            open.contents.grants.contains(&held) || open.readers.contains(&held)
        })
    }

    /// The names of the pools that a client has open.
    pub fn pools_of(&self, client: Uuid) -> Vec<String> {
        let state = self.state();
        let Some(open) = &state.open else {
            return Vec::new();
        };
        let pools = open.contents.granted_pools(client);
        let records = pools.filter_map(|pool| open.contents.pools.get(&pool));
        let mut names: Vec<String> = records.map(|pool| pool.name.clone()).collect();
        names.sort_unstable();
        names
    }

    /// Writes down which process holds the lock of a client, as the caller has seen: should it lose the lock, nobody
    /// takes it for gone unasked.
    ///
    /// # Errors
    /// `Io`.
    pub fn note_process(&self, client: Uuid, pid: u32) -> Result<()> {
        liveness::note(&self.path, client, pid)
    }

    /// The clients that are at work here, and whether they live; none of this process.
    ///
    /// # Errors
    /// `Closed`, `Poisoned`; `Io`.
    pub fn served(&self) -> Result<Vec<(Uuid, Life)>> {
        let at_work = self.state().open(&self.path)?.at_work.clone();
        let served = at_work.into_iter();
        served
            .map(|client| Ok((client, self.life_of(client)?)))
            .collect()
    }

    /// Forgets the file of a client that is gone, after it has ended or was recovered.
    ///
    /// # Errors
    /// `Io`.
    pub fn forget_client(&self, client: Uuid) -> Result<()> {
        liveness::forget(&self.path, client)
    }
}
