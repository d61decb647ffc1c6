//! Requests whose names the client has drawn: one whose answer was lost is asked again, and done once.

use durum_format::Uuid;
use durum_format::puddle::PuddleKind;
use durum_format::types::Meanings;

use super::client::{not_open, refused};
use super::commit::Commit;
use super::puddles::{NAME_TAKEN, NewPuddle, grant, place};
use super::{Embedded, Open};
use crate::error::{Error, Result};
use crate::files;
use crate::model::{PoolGrant, PoolSpec, PuddleGrant, PuddleOwner};
use crate::names;
use crate::registry::contents::{Change, PoolRecord};
use crate::unregistered;

impl Embedded {
    /// As [`Service::create_pool`](crate::Service::create_pool), with names that the caller has drawn: the pool's and
    /// its root puddle's.
    ///
    /// # Errors
    /// As there; `PuddleRefused` where anything has one of the names.
    pub fn create_pool_as(
        &self,
        pool: Uuid,
        root: Uuid,
        name: &str,
        spec: &PoolSpec,
    ) -> Result<PoolGrant> {
        names::check_pool_name(name)?;
        let kind = spec.engine.puddle_kind();
        let rights = self.own_rights();
        let is_new = |open: &Open| match open.contents.pool_named(name) {
            None if open.has_name(pool) => Err(refused(pool, NAME_TAKEN)),
            None => self.ensure_room(open, Some(&rights), spec.root_puddle_size),
            Some(_) => Err(Error::PoolExists {
                store: self.host.path.clone(),
                name: name.to_owned(),
            }),
        };
        let new = NewPuddle {
            client: self.id,
            uuid: root,
            owner: pool,
            kind,
            size: spec.root_puddle_size,
            is_root: true,
        };
        let root = self.host.make_puddle(&new, is_new, |open, uuid| {
            let record = PoolRecord {
                name: name.to_owned(),
                engine: spec.engine,
                root_puddle: uuid,
                rights: Some(rights),
                damage: None,
                meanings: Meanings::default(),
            };
            let mut changes = self.enter(open);
            changes.push(Change::PutPool(pool, record));
            changes.push(Change::PutGrant(self.id, pool));
            changes
        })?;
        Ok(PoolGrant {
            uuid: pool,
            name: name.to_owned(),
            engine: spec.engine,
            root,
            others: Vec::new(),
        })
    }

    /// As [`Service::create_puddle`](crate::Service::create_puddle), with a name that the caller has drawn.
    ///
    /// # Errors
    /// As there; `PuddleRefused` where anything has the name.
    pub fn create_puddle_as(
        &self,
        uuid: Uuid,
        owner: PuddleOwner,
        kind: PuddleKind,
        size: u64,
    ) -> Result<PuddleGrant> {
        let refused = |reason| {
            Err(Error::PuddleRefused {
                uuid: "to be made".to_owned(),
                reason,
            })
        };
        let may_own = |open: &Open| match owner {
            PuddleOwner::Pool(pool) => match open.contents.pools.get(&pool) {
                Some(record) if self.has_open(open, pool) => {
                    match record.engine.puddle_kind() == kind {
                        true => self.ensure_room(open, Some(&self.rights_of(open, pool)), size),
                        false => refused(
                            "a pool owns puddles of its engine's kind; logs belong to the client",
                        ),
                    }
                }
                _ => Err(not_open(pool)),
            },
            PuddleOwner::Client if kind.holds_objects() => {
                refused("a client owns logs and log spaces; data belongs to a pool")
            }
            PuddleOwner::Client => self.ensure_room(open, None, size),
        };
        let new = NewPuddle {
            client: self.id,
            uuid,
            owner: match owner {
                PuddleOwner::Pool(pool) => pool,
                PuddleOwner::Client => self.id,
            },
            kind,
            size,
            is_root: false,
        };
        self.host
            .make_puddle(&new, may_own, |open, _| self.enter(open))
    }

    /// A pool that this client has opened or made already, for a request whose answer was lost.
    ///
    /// # Errors
    /// As [`Service::open_pool`](crate::Service::open_pool) for its files.
    pub fn pool_again(&self, is_it: impl Fn(Uuid, &str) -> bool) -> Result<Option<PoolGrant>> {
        let seen = self.host.request(|open| {
            let mut pools = open.contents.granted_pools(self.id);
            let found = pools.find_map(|pool| {
                let record = open.contents.pools.get(&pool)?;
                let puddles = || open.contents.puddles_of(pool);
                is_it(pool, &record.name).then(|| (pool, record.clone(), puddles()))
            });
            Ok((found, Commit::nothing()))
        })?;
        let Some((pool, record, registered)) = seen else {
            return Ok(None);
        };
        let (root, others): (Vec<_>, Vec<_>) = registered
            .into_iter()
            .partition(|(_, record)| record.is_root);
        let Some(root @ (uuid, puddle)) = root.first() else {
            return Ok(None);
        };
        let file = self.open_file(&record.name, root, true)?;
        Ok(Some(PoolGrant {
            uuid: pool,
            root: grant(*uuid, puddle, file),
            name: record.name,
            engine: record.engine,
            others: others.iter().map(place).collect(),
        }))
    }

    /// A puddle that this client has made already, for a request whose answer was lost.
    ///
    /// # Errors
    /// As [`Service::open_pool`](crate::Service::open_pool) for its file.
    pub fn puddle_again(&self, uuid: Uuid) -> Result<Option<PuddleGrant>> {
        let own = |open: &Open| Ok((self.own_puddle(open, uuid).ok(), Commit::nothing()));
        let Some(record) = self.host.request(own)? else {
            return Ok(None);
        };
        let file = files::open(&self.host.path, uuid, &record, true)?;
        Ok(Some(grant(uuid, &record, file)))
    }

    /// Removes the file that an attempt to make a puddle has left, if the registry does not name it and nobody has
    /// written in it: for a request whose answer was lost, before it is done again.
    ///
    /// # Errors
    /// `Io`.
    pub fn clear_attempt(&self, uuid: Uuid) -> Result<()> {
        let is_known = |open: &Open| {
            let is_known = open.contents.puddles.contains_key(&uuid);
            Ok((is_known, Commit::nothing()))
        };
        if self.host.request(is_known)? {
            return Ok(());
        }
        match unregistered::is_unfinished(&self.host.path, uuid) {
            Ok(true) => files::remove(&self.host.path, uuid),
            Ok(false) | Err(Error::FileMissing { .. }) => Ok(()),
            Err(error) => Err(error),
        }
    }
}
