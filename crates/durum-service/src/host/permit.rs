//! What a client may do, and what it is told: of pools that it may not read it hears nothing.

use std::path::PathBuf;

use durum_format::Uuid;
use durum_format::registry::Rights;

use super::commit::Commit;
use super::holders::Wish;
use super::{Embedded, Open};
use crate::error::{Error, Result};
use crate::model::{InterruptedClient, RecoveryReport, RefusedPool};
use crate::quota::Quota;
use crate::registry::contents::{Change, Contents, PoolRecord};
use crate::rights::{self, Access, Caller};

/// Stands for the names of pools that a client may not read.
const OTHERS: &str = "a pool of another user";

const ASK_OWNER: &str = "ask its owner for the right (`durum chmod`)";
const ASK_SERVICE: &str = "ask who runs the service";

impl Embedded {
    /// The client's user, if there is anything that it may not do.
    fn bounded(&self) -> Option<&Caller> {
        self.caller.as_ref().filter(|caller| !caller.may_all())
    }

    pub(super) fn rights_of(&self, open: &Open, pool: Uuid) -> Rights {
        open.contents.rights_of(pool, &self.host.directory)
    }

    /// What a pool gets that this client makes.
    pub(super) fn own_rights(&self) -> Rights {
        self.caller
            .as_ref()
            .map_or_else(rights::of_this_process, Caller::own)
    }

    /// The changes that record this client, if it is not yet recorded.
    pub(super) fn enter(&self, open: &Open) -> Vec<Change> {
        if open.contents.clients.contains(&self.id) {
            return Vec::new();
        }
        let user = self.caller.as_ref().map(Caller::uid);
        let user = user.map(|uid| Change::PutUser(self.id, uid));
        std::iter::once(Change::PutClient(self.id))
            .chain(user)
            .collect()
    }

    fn may(&self, open: &Open, pool: Uuid, wanted: Access) -> bool {
        let may = |caller: &Caller| caller.may(&self.rights_of(open, pool), wanted);
        self.bounded().is_none_or(may)
    }

    /// Whether the client hears of a pool: it may read it, or change that it may not.
    pub(super) fn may_see(&self, open: &Open, pool: Uuid) -> bool {
        let rights = self.rights_of(open, pool);
        let sees = |caller: &Caller| caller.owns(&rights) || caller.may(&rights, Access::Read);
        self.bounded().is_none_or(sees)
    }

    /// Refuses a pool that this client may not open so.
    pub(super) fn ensure_may(&self, open: &Open, pool: Uuid, wish: Wish) -> Result<()> {
        let wanted = match wish {
            Wish::Read | Wish::Look | Wish::Hold => Access::Read,
            Wish::Write | Wish::Remove | Wish::Renew | Wish::Settle => Access::Write,
        };
        match self.may(open, pool, wanted) {
            true => Ok(()),
            false => Err(self.not_permitted(named(open, pool), "opened", ASK_OWNER)),
        }
    }

    /// As [`Service::pool_at`](crate::Service::pool_at).
    pub(super) fn name_at(&self, address: u64) -> Result<Option<String>> {
        let mut state = self.host.state();
        let open = state.open(&self.host.path)?;
        let mut records = open.contents.puddles.values();
        let found = records.find(|record| {
            record.kind.holds_objects()
                && record.address <= address
                && address - record.address < record.size
        });
        match found.map(|record| record.owner) {
            None => Ok(None),
            Some(pool) if self.may_see(open, pool) => Ok(Some(open.contents.name_of(pool))),
            Some(_) => Err(self.not_permitted(OTHERS.to_owned(), "opened", ASK_OWNER)),
        }
    }

    /// Refuses a pool that is not this client's user's.
    pub(super) fn ensure_owns(
        &self,
        open: &Open,
        pool: Uuid,
        operation: &'static str,
    ) -> Result<()> {
        match self.bounded() {
            Some(caller) if !caller.owns(&self.rights_of(open, pool)) => {
                let cure = "only its owner may do that";
                Err(self.not_permitted(named(open, pool), operation, cure))
            }
            _ => Ok(()),
        }
    }

    /// Refuses what concerns pools of all users.
    pub(super) fn ensure_privileged(&self, what: &str, operation: &'static str) -> Result<()> {
        match self.bounded() {
            Some(_) => Err(self.not_permitted(what.to_owned(), operation, ASK_SERVICE)),
            None => Ok(()),
        }
    }

    /// Why a type is refused whose id another one has.
    pub(super) fn same_id(&self, known: &str, text: &str) -> String {
        match self.bounded() {
            Some(_) => "the id belongs to another type as well; rename this one".to_owned(),
            None => format!(
                "the id belongs to {known:?}, and to {text:?} as well; rename one of the types"
            ),
        }
    }

    fn not_permitted(&self, what: String, operation: &'static str, cure: &'static str) -> Error {
        Error::NotPermitted {
            what,
            operation,
            uid: self.caller.as_ref().map_or(0, Caller::uid).into(),
            cure,
        }
    }

    /// As [`Service::set_mode`](crate::Service::set_mode).
    pub(super) fn change_mode(&self, name: &str, mode: u16) -> Result<()> {
        let wanted = |old: &Rights| Rights { mode, ..*old };
        if !wanted(&self.host.directory).is_valid() {
            return Err(Error::ModeRefused { mode: mode.into() });
        }
        self.host.request(|open| {
            let pool = self.host.pool_named(&open.contents, name)?;
            self.ensure_owns(open, pool, "given another mode")?;
            Ok(((), put(open, pool, wanted(&self.rights_of(open, pool)))))
        })
    }

    /// As [`Service::set_owner`](crate::Service::set_owner).
    pub(super) fn change_owner(
        &self,
        name: &str,
        uid: Option<u32>,
        gid: Option<u32>,
    ) -> Result<()> {
        self.host.request(|open| {
            let pool = self.host.pool_named(&open.contents, name)?;
            let old = self.rights_of(open, pool);
            let new = Rights {
                uid: uid.unwrap_or(old.uid),
                gid: gid.unwrap_or(old.gid),
                ..old
            };
            match self.bounded() {
                Some(caller) if !caller.may_give(&old, &new) => {
                    let cure = "its owner may choose one of its own groups; all else is for root and the service's user";
                    Err(self.not_permitted(named(open, pool), "given away", cure))
                }
                _ => Ok(((), put(open, pool, new))),
            }
        })
    }

    /// Refuses a puddle that is more than its user may have. One of a pool counts for the pool's owner, whoever asks.
    pub(super) fn ensure_room(&self, open: &Open, owner: Option<&Rights>, size: u64) -> Result<()> {
        self.ensure_room_for(open, owner, 1, size)
    }

    /// As [`Embedded::ensure_room`], for `puddles` which together have `size` bytes.
    pub(super) fn ensure_room_for(
        &self,
        open: &Open,
        owner: Option<&Rights>,
        puddles: u64,
        size: u64,
    ) -> Result<()> {
        let Some(caller) = self.bounded() else {
            return Ok(());
        };
        let (uid, bytes) = match owner {
            Some(rights) => (rights.uid, Quota::Bytes),
            None => (caller.uid(), Quota::LogBytes),
        };
        let usage = || open.contents.usage_of(uid, &self.host.directory);
        let quotas = &self.host.quotas;
        quotas.check(uid, Quota::Puddles, puddles, || usage().puddles)?;
        quotas.check(uid, bytes, size, || match owner {
            Some(_) => usage().bytes,
            None => usage().log_bytes,
        })
    }

    /// What those who only read may know: of pools that the client may read. The list of types is that of all pools.
    pub(super) fn readable(&self, open: &Open) -> Contents {
        // Who reads does not see the directory.
        let all = open.contents.for_readers();
        let all = all.with_rights(&self.host.directory);
        match self.bounded() {
            Some(_) => all.of_pools(|pool| self.may(open, pool, Access::Read)),
            None => all,
        }
    }

    /// A report without what concerns pools that the client may not read.
    pub(super) fn told_report(&self, report: RecoveryReport) -> Result<RecoveryReport> {
        if self.bounded().is_none() {
            return Ok(report);
        }
        let refused = self.told_refused(report.refused)?;
        let interrupted = self.told_interrupted(report.interrupted)?;
        let seen = self.host.request(|open| {
            let pools = open.contents.pools.keys();
            let seen = pools.filter(|pool| self.may_see(open, **pool));
            let notes = seen.filter_map(|pool| open.contents.quarantine_of(*pool));
            Ok((notes.collect::<Vec<_>>(), Commit::nothing()))
        })?;
        let mut quarantined = report.quarantined;
        quarantined.retain(|note| seen.contains(note));
        Ok(RecoveryReport {
            was_clean: report.was_clean,
            quarantined,
            refused,
            interrupted,
            ..RecoveryReport::default()
        })
    }

    /// Those that the client may read, of pools that could not be recovered.
    pub(super) fn told_refused(&self, mut pools: Vec<RefusedPool>) -> Result<Vec<RefusedPool>> {
        if self.bounded().is_none() {
            return Ok(pools);
        }
        self.host.request(|open| {
            let may_see = |name: &String| {
                let pool = open.contents.pool_named(name);
                pool.is_some_and(|(pool, _)| self.may_see(open, pool))
            };
            pools.retain(|pool| may_see(&pool.name));
            for pool in &mut pools {
                if pool.waits_for.iter().all(may_see) {
                    continue;
                }
                pool.waits_for.retain(may_see);
                pool.waits_for.push(OTHERS.to_owned());
                pool.file = PathBuf::new();
                pool.offset = None;
                pool.reason = format!(
                    "whether its last transactions committed cannot be said before what stands in the way of {OTHERS} is gone"
                );
            }
            Ok((pools.clone(), Commit::nothing()))
        })
    }

    /// Names of pools of which those that the client may not read are not told.
    fn told_names(&self, mut names: Vec<String>) -> Result<Vec<String>> {
        let known = names.len();
        self.host.request(|open| {
            let may_see = |name: &String| {
                let pool = open.contents.pool_named(name);
                pool.is_some_and(|(pool, _)| self.may_see(open, pool))
            };
            names.retain(may_see);
            Ok(((), Commit::nothing()))
        })?;
        if names.len() < known {
            names.push(OTHERS.to_owned());
        }
        Ok(names)
    }

    /// Those that have left sections in pools that the client may read.
    pub(super) fn told_interrupted(
        &self,
        mut clients: Vec<InterruptedClient>,
    ) -> Result<Vec<InterruptedClient>> {
        if self.bounded().is_none() {
            return Ok(clients);
        }
        for client in &mut clients {
            client.pools = self.told_names(std::mem::take(&mut client.pools))?;
        }
        clients.retain(|client| client.pools != [OTHERS]);
        Ok(clients)
    }

    /// Refuses to have this client complete what another one has left: what that has recorded is believed by the code
    /// that goes on, with all that its user may do.
    pub(super) fn ensure_may_complete(&self, open: &Open, client: Uuid) -> Result<()> {
        let Some(caller) = self.bounded() else {
            return Ok(());
        };
        let pools = open.contents.granted_pools(client);
        let mut pools = pools.map(|pool| self.may(open, pool, Access::Write));
        match open.contents.users.get(&client) == Some(&caller.uid()) && pools.all(|may| may) {
            true => Ok(()),
            false => Err(self.not_permitted(
                format!("what client {client} has left"),
                "completed",
                "the user whose program it was may do that, as long as it may write its pools",
            )),
        }
    }

    /// An error without what concerns pools that the client may not read.
    pub(super) fn told<T>(&self, result: Result<T>) -> Result<T> {
        let Err(error) = result else {
            return result;
        };
        if self.bounded().is_none() {
            return Err(error);
        }
        let told = |name: &str| -> Result<Option<RefusedPool>> {
            let mut refused = self.told_refused(self.host.refused_pools()?)?;
            refused.retain(|refused| refused.name == name);
            Ok(refused.pop())
        };
        Err(match error {
            Error::PoolRefused { store, pool, .. } => match told(&pool)? {
                Some(refused) => Error::PoolRefused {
                    cure: refused.cure(&store),
                    reason: refused.reason,
                    store,
                    pool,
                },
                None => Error::no_pool(&store, &pool),
            },
            Error::PoolNotQuarantined { store, pool, .. } => match told(&pool)? {
                Some(refused) => Error::PoolNotQuarantined {
                    cure: refused.cure(&store),
                    reason: refused.reason,
                    store,
                    pool,
                },
                None => Error::no_pool(&store, &pool),
            },
            Error::PoolWaits { store, pool, .. } => Error::PoolWaits {
                others: match told(&pool)? {
                    Some(refused) => refused.waits_for,
                    None => vec![OTHERS.to_owned()],
                },
                store,
                pool,
            },
            Error::PoolInterrupted {
                store,
                pool,
                sections,
                first,
                details,
                others,
            } => Error::PoolInterrupted {
                others: self.told_names(others)?,
                store,
                pool,
                sections,
                first,
                details,
            },
            other => other,
        })
    }
}

fn named(open: &Open, pool: Uuid) -> String {
    let record = open.contents.pools.get(&pool);
    let name = record.map(|record| record.name.as_str());
    format!("pool \"{}\"", name.unwrap_or_default())
}

/// The commit that says whose a pool is.
fn put(open: &Open, pool: Uuid, rights: Rights) -> Commit {
    match open.contents.pools.get(&pool) {
        Some(record) if record.rights != Some(rights) => {
            let record = PoolRecord {
                rights: Some(rights),
                ..record.clone()
            };
            Commit::addition(vec![Change::PutPool(pool, record)])
        }
        _ => Commit::nothing(),
    }
}
