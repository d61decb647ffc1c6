//! What all connections share, and whom it admits.

use std::sync::Arc;
use std::sync::atomic::AtomicUsize;

use durum_remote::peer::Peer;
use durum_service::{Error, ErrorKind, Host};

use crate::clients::Clients;

/// What all connections share.
#[derive(Debug)]
pub(crate) struct Service {
    pub(crate) host: Arc<Host>,
    pub(crate) clients: Arc<Clients>,
    pub(crate) users: Vec<u32>,
    pub(crate) clients_max: usize,
    pub(crate) clients_per_user: usize,
    pub(crate) connections: AtomicUsize,
}

impl Service {
    /// Whether programs of this user may use the store.
    pub(crate) fn admits(&self, peer: &Peer) -> bool {
        let own = rustix::process::geteuid().as_raw();
        peer.uid == 0 || peer.uid == own || self.users.contains(&peer.uid)
    }
}

pub(crate) fn refused(text: String) -> Error {
    Error::Told {
        kind: ErrorKind::User,
        text,
    }
}
