//! What all connections share, and whom it admits.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use durum_format::Uuid;
use durum_remote::peer::Peer;
use durum_service::{Host, Quotas};

use crate::audit;
use crate::clients::Clients;
use crate::completions::Completions;
use crate::connections::Connections;
use crate::metrics::{Metrics, Now};
use crate::quotas::Tally;
use crate::showings::Showings;

/// What all connections share.
#[derive(Debug)]
pub(crate) struct Service {
    pub(crate) host: Arc<Host>,
    pub(crate) clients: Arc<Clients>,
    pub(crate) completions: Arc<Completions>,
    pub(crate) showings: Showings,
    pub(crate) metrics: Arc<Metrics>,
    pub(crate) users: Vec<u32>,
    pub(crate) clients_max: usize,
    pub(crate) quotas: Quotas,
    /// Of each user: requests that are being answered, and descriptors that were sent and not taken.
    pub(crate) requests: Arc<Tally>,
    pub(crate) descriptors: Arc<Tally>,
    pub(crate) connections: Arc<Connections>,
    /// Whether a program of the service's own user has come: that is told once.
    pub(crate) is_shared: AtomicBool,
    /// Whether it only waits until all programs have closed the store.
    pub(crate) is_draining: AtomicBool,
}

impl Service {
    /// Whether programs of this user may use the store. What they may do in it, the pools' owners say.
    pub(crate) fn admits(&self, peer: &Peer) -> bool {
        let own = rustix::process::geteuid().as_raw();
        self.users.is_empty() || peer.uid == 0 || peer.uid == own || self.users.contains(&peer.uid)
    }

    /// A program is let in.
    pub(crate) fn let_in(&self, client: Uuid, peer: &Peer, is_new: bool) {
        audit::admitted(client, peer, is_new);
        let is_own = peer.uid == rustix::process::geteuid().as_raw();
        if is_own && !self.is_shared.swap(true, Ordering::Relaxed) {
            tracing::warn!(
                uid = peer.uid,
                pid = peer.pid,
                "a program of the service's own user is let in: nothing keeps the store's files from it"
            );
        }
    }

    /// A program is not let in. The error ends its connection.
    pub(crate) fn turned_away(&self, peer: &Peer, reason: &'static str, why: &str) -> io::Error {
        self.metrics.refused(reason);
        audit::not_admitted(peer, why);
        io::Error::other(why.to_owned())
    }

    /// The metrics as text.
    pub(crate) fn shown(&self) -> String {
        let (clients, recovering) = self.clients.counts();
        // A store that answers nothing any more is told by its log, and by the watchdog.
        let (pools, store_bytes) = self.host.size().unwrap_or_default();
        self.metrics.text(Now {
            clients,
            recovering,
            connections: self.connections.count(),
            pools,
            store_bytes,
        })
    }
}
