//! What must be true of a catalog, whoever made it.

use std::collections::{HashMap, HashSet};

use super::{Catalog, PuddleRecord};
use crate::Uuid;
use crate::consts::UNIT;
use crate::error::FormatError;
use crate::puddle::PuddleKind;
use crate::registry::validate::{check_apart, is_pool_name};
use crate::store::{check_domain, check_space};
use crate::types::Descriptor;

const STRUCTURE: &str = "catalog";

fn refuse(problem: String) -> Result<(), FormatError> {
    Err(FormatError::damaged_text(STRUCTURE, problem))
}

impl Catalog {
    /// Checks that puddles lie apart in the address range, that everything named exists, once, and belongs to who names
    /// it, and that types have the ids of their texts.
    ///
    /// # Errors
    /// [`FormatError::Text`] names the first contradiction.
    pub fn validate(&self) -> Result<(), FormatError> {
        check_space(STRUCTURE, self.base, self.size)?;
        check_domain(STRUCTURE, &self.domain)?;
        if self.store.is_nil() {
            return refuse("the uuid of the store is all zero".into());
        }
        let puddles = self.check_puddles()?;
        self.check_pools(&puddles)?;
        self.check_clients(&puddles)?;
        self.check_owners()?;
        self.check_types()
    }

    fn check_puddles(&self) -> Result<HashMap<Uuid, &PuddleRecord>, FormatError> {
        let mut by_uuid = HashMap::new();
        let mut files = HashSet::new();
        for puddle in &self.puddles {
            let (uuid, file) = (puddle.uuid, &puddle.file);
            let (address, size) = (puddle.address, puddle.size);
            if uuid.is_nil() || by_uuid.insert(uuid, puddle).is_some() {
                refuse(format!("puddle {uuid} stands there twice, or has no name"))?;
            }
            if !is_relative_path(file) || !files.insert(file) {
                refuse(format!(
                    "puddle {uuid}: its file {file:?} is no path inside the store, or is used twice"
                ))?;
            }
            let aligned = address.is_multiple_of(UNIT) && size.is_multiple_of(UNIT) && size > 0;
            let inside = address >= self.base && address - self.base < self.size;
            if !aligned || !inside || size > self.size - (address - self.base) {
                refuse(format!(
                    "puddle {uuid}: {size:#x} bytes at {address:#x} are no multiples of 2 MiB inside the store's range of \
                     {:#x} bytes at {:#x}",
                    self.size, self.base
                ))?;
            }
        }
        let places = self.puddles.iter().map(|p| (p.uuid, p.address, p.size));
        check_apart(STRUCTURE, places)?;
        Ok(by_uuid)
    }

    fn check_pools(&self, puddles: &HashMap<Uuid, &PuddleRecord>) -> Result<(), FormatError> {
        let mut names = HashSet::new();
        let mut uuids = HashSet::new();
        let mut taken = HashSet::new();
        for pool in &self.pools {
            let name = &pool.name;
            if !is_pool_name(name) {
                refuse(format!(
                    "{name:?} is no pool name: 1 to 255 bytes without control characters and '/'"
                ))?;
            }
            if !names.insert(name) || pool.uuid.is_nil() || !uuids.insert(pool.uuid) {
                refuse(format!(
                    "pool {name:?}: its name or its uuid {} stands there twice",
                    pool.uuid
                ))?;
            }
            let word = !pool.engine.is_empty() && pool.engine.len() <= 32;
            if !word || !pool.engine.bytes().all(|byte| byte.is_ascii_lowercase()) {
                refuse(format!("pool {name:?}: {:?} names no engine", pool.engine))?;
            }
            if !pool.puddles.contains(&pool.root) {
                refuse(format!(
                    "pool {name:?}: its root puddle {} is none of its puddles",
                    pool.root
                ))?;
            }
            for uuid in &pool.puddles {
                let fits = puddles
                    .get(uuid)
                    .is_some_and(|p| p.kind.holds_objects() && p.owner == pool.uuid);
                if !fits || !taken.insert(*uuid) {
                    refuse(format!(
                        "pool {name:?}: puddle {uuid} does not hold data of this pool, or stands there twice"
                    ))?;
                }
            }
        }
        Ok(())
    }

    fn check_clients(&self, puddles: &HashMap<Uuid, &PuddleRecord>) -> Result<(), FormatError> {
        let mut uuids = HashSet::new();
        for client in &self.clients {
            let uuid = client.uuid;
            if uuid.is_nil() || !uuids.insert(uuid) {
                refuse(format!("client {uuid} stands there twice, or has no name"))?;
            }
            let is_its = |p: &&PuddleRecord| p.kind == PuddleKind::LogSpace && p.owner == uuid;
            if let Some(space) = client.log_space
                && !puddles.get(&space).is_some_and(is_its)
            {
                refuse(format!(
                    "client {uuid}: puddle {space} is not its log space"
                ))?;
            }
            let mut granted = HashSet::new();
            for grant in &client.grants {
                let exists = puddles
                    .get(&grant.puddle)
                    .is_some_and(|p| p.kind.holds_objects());
                if !exists || !granted.insert(grant.puddle) {
                    refuse(format!(
                        "client {uuid}: a grant for {}, which holds no data or is named twice",
                        grant.puddle
                    ))?;
                }
            }
        }
        let mut kept = HashSet::new();
        for log in &self.quarantine {
            let logs = |uuid: &Uuid| puddles.get(uuid).is_some_and(|p| !p.kind.holds_objects());
            for uuid in log.continuations.iter().chain([&log.puddle]) {
                if !logs(uuid) || !kept.insert(*uuid) {
                    refuse(format!(
                        "quarantine: puddle {uuid} holds no log, or stands there twice"
                    ))?;
                }
            }
        }
        Ok(())
    }

    /// Every puddle belongs to a pool that lists it, to a client, or to a log in quarantine.
    fn check_owners(&self) -> Result<(), FormatError> {
        let listed: HashSet<&Uuid> = self.pools.iter().flat_map(|pool| &pool.puddles).collect();
        let clients: HashSet<Uuid> = self.clients.iter().map(|client| client.uuid).collect();
        let logs = self.quarantine.iter();
        let quarantined: HashSet<&Uuid> = logs
            .flat_map(|log| log.continuations.iter().chain([&log.puddle]))
            .collect();
        for puddle in &self.puddles {
            let known = match puddle.kind {
                PuddleKind::Data | PuddleKind::Twin => listed.contains(&puddle.uuid),
                PuddleKind::Log
                | PuddleKind::LogSpace
                | PuddleKind::Records
                | PuddleKind::Sections
                | PuddleKind::Code => {
                    clients.contains(&puddle.owner) || quarantined.contains(&puddle.uuid)
                }
            };
            if !known {
                refuse(format!(
                    "puddle {} belongs to {}, which the catalog does not know",
                    puddle.uuid, puddle.owner
                ))?;
            }
        }
        Ok(())
    }

    fn check_types(&self) -> Result<(), FormatError> {
        let mut ids = HashSet::new();
        for record in &self.types {
            let descriptor = Descriptor::parse(&record.text).map_err(|error| {
                FormatError::damaged_text(STRUCTURE, format!("type {:#x}: {error}", record.id))
            })?;
            if descriptor.id() != record.id || !ids.insert(record.id) {
                refuse(format!(
                    "type {:#x}: its text has the id {:#x}, or it stands there twice",
                    record.id,
                    descriptor.id()
                ))?;
            }
        }
        Ok(())
    }
}

/// A path that stays inside the store's directory, whoever reads it.
fn is_relative_path(path: &str) -> bool {
    let plain = |part: &str| !part.is_empty() && part != "." && part != "..";
    path.len() <= 255 && !path.contains('\0') && path.split('/').all(plain)
}
