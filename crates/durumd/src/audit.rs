//! Who was let in, and what was done for whom: events of the target `audit`, which `RUST_LOG=warn,audit=info` keeps
//! when all else is silent. Texts that a client has chosen are quoted, so that a line stays a line.

use durum_format::Uuid;
use durum_protocol::{Answer, Request};
use durum_remote::completing::NotCompleted;
use durum_remote::peer::Peer;
use durum_service::RecoveryReport;
use tracing::field::{debug, display};

/// A client is let in, for the first time or again.
pub(crate) fn admitted(client: Uuid, peer: &Peer, is_new: bool) {
    let event = match is_new {
        true => "admitted",
        false => "admitted again",
    };
    tracing::info!(target: "audit", event, uid = peer.uid, pid = peer.pid, %client);
}

/// Somebody is not let in.
pub(crate) fn not_admitted(peer: &Peer, why: &str) {
    tracing::warn!(target: "audit", event = "not admitted", uid = peer.uid, pid = peer.pid, ?why);
}

/// A client has ended in order.
pub(crate) fn ended(client: Uuid, peer: &Peer) {
    tracing::info!(target: "audit", event = "ended", uid = peer.uid, pid = peer.pid, %client);
}

/// A client is gone, and its logs are replayed.
pub(crate) fn recovered(client: Uuid, pid: Option<u32>, uid: Option<u32>, report: &RecoveryReport) {
    tracing::info!(
        target: "audit",
        event = "recovered",
        uid,
        pid,
        %client,
        rolled_back = report.rolled_back,
        rolled_forward = report.rolled_forward,
        quarantined = report.quarantined.len(),
        sections = report.sections(),
    );
}

/// What a request does to a pool or to a client, if somebody may want to know of it afterwards.
pub(crate) struct Deed {
    event: &'static str,
    pool: Option<String>,
    whom: Option<Uuid>,
}

/// What a client has left was completed by its code, or was not.
pub(crate) fn completed(client: Uuid, uid: Option<u32>, why: Option<&NotCompleted>) {
    match why {
        None => tracing::info!(target: "audit", event = "completed by its code", %client, uid),
        Some(why) => {
            let why = why.to_string();
            tracing::warn!(target: "audit", event = "not completed by its code", %client, uid, ?why);
        }
    }
}

impl Deed {
    pub(crate) fn of(request: &Request) -> Option<Deed> {
        let (event, pool) = match request {
            Request::CreatePool { name, .. } => ("created", name),
            Request::OpenPool { name } => ("opened", name),
            Request::RemovePool { name, .. } => ("removed", name),
            Request::SetMode { name, .. } => ("given another mode", name),
            Request::SetOwner { name, .. } => ("given another owner", name),
            Request::RevokePool { name } => ("revoked", name),
            Request::ShowPool { name, .. } => ("shown", name),
            Request::GiveUp { name } => ("given up", name),
            Request::AcceptQuarantined { name } => ("accepted as it is", name),
            Request::RetryQuarantined { name } => ("tried again", name),
            Request::AbandonSections { name } => ("accepted half done", name),
            Request::TakeOver { client } => {
                return Some(Deed {
                    event: "taken over",
                    pool: None,
                    whom: Some(*client),
                });
            }
            Request::SectionsDone { client } => {
                return Some(Deed {
                    event: "completed",
                    pool: None,
                    whom: Some(*client),
                });
            }
            Request::AskToLeave { client, .. } => {
                return Some(Deed {
                    event: "asked to leave",
                    pool: None,
                    whom: Some(*client),
                });
            }
            Request::FinishImport => {
                return Some(Deed {
                    event: "imported",
                    pool: None,
                    whom: None,
                });
            }
            Request::MakeWay => {
                return Some(Deed {
                    event: "moved out of the way",
                    pool: None,
                    whom: None,
                });
            }
            _ => return None,
        };
        Some(Deed {
            event,
            pool: Some(pool.clone()),
            whom: None,
        })
    }

    /// It was done, or refused.
    pub(crate) fn tell(self, client: Uuid, peer: &Peer, answer: &Answer) {
        let Deed { event, pool, whom } = self;
        let (pool, whom) = (pool.map(debug), whom.map(display));
        let (uid, pid) = (peer.uid, peer.pid);
        match answer {
            Answer::Failed(failure) => {
                let why = durum_service::Error::from(failure.clone()).to_string();
                tracing::warn!(target: "audit", event = "refused", wanted = event, uid, pid, %client, pool, whom, ?why);
            }
            _ => tracing::info!(target: "audit", event, uid, pid, %client, pool, whom),
        }
    }
}
