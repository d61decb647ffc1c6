//! What must be true of a registry, whoever made it.

use std::collections::HashSet;

use super::STRUCTURE;
use super::state::{PuddleRecord, State};
use crate::Uuid;
use crate::consts::{ADDRESS_END, UNIT};
use crate::error::FormatError;
use crate::puddle::PuddleKind;
use crate::types::Descriptor;

/// Checks that no two puddles meet: `places` has the address and the size of each.
pub(crate) fn check_apart(
    structure: &'static str,
    places: impl Iterator<Item = (Uuid, u64, u64)>,
) -> Result<(), FormatError> {
    let mut places: Vec<(Uuid, u64, u64)> = places.collect();
    places.sort_by_key(|(_, address, _)| *address);
    for pair in places.windows(2) {
        if let [(low, low_address, size), (high, address, _)] = pair
            && address - low_address < *size
        {
            let problem = format!("puddles {low} and {high} overlap at {address:#x}");
            return Err(FormatError::damaged_text(structure, problem));
        }
    }
    Ok(())
}

/// Whether a pool may be named so.
pub(crate) fn is_pool_name(name: &str) -> bool {
    let writable = |char: char| !char.is_control() && char != '/';
    !name.is_empty() && name.len() <= 255 && name.chars().all(writable)
}

fn refuse(problem: String) -> Result<(), FormatError> {
    Err(FormatError::damaged_text(STRUCTURE, problem))
}

impl State {
    /// Checks that puddles lie apart in the address range, that everything named exists and belongs to who names
    /// it, and that types have the ids of their texts.
    ///
    /// # Errors
    /// [`FormatError::Text`] names the first contradiction.
    pub fn validate(&self) -> Result<(), FormatError> {
        self.store.validate()?;
        if !self.is_in_range(self.cursor, 0) {
            refuse(format!(
                "the next address, {:#x}, lies outside of the store's range",
                self.cursor
            ))?;
        }
        let quarantined = self.check_quarantine()?;
        self.check_puddles(&quarantined)?;
        self.check_moves()?;
        self.check_pools()?;
        self.check_clients()?;
        self.check_types()
    }

    fn is_in_range(&self, address: u64, size: u64) -> bool {
        let offset = address.checked_sub(self.store.base);
        offset.is_some_and(|offset| offset <= self.store.size && size <= self.store.size - offset)
    }

    /// The puddles that quarantined logs keep.
    fn check_quarantine(&self) -> Result<HashSet<Uuid>, FormatError> {
        let mut kept = HashSet::new();
        for (first, log) in &self.quarantine {
            for uuid in log.continuations.iter().chain([first]) {
                let record = self.puddles.get(uuid);
                let holds_no_log = record.is_none_or(|puddle| puddle.kind.holds_objects());
                if holds_no_log || !kept.insert(*uuid) {
                    refuse(format!(
                        "quarantine: puddle {uuid} holds no log, or stands there twice"
                    ))?;
                }
            }
        }
        Ok(kept)
    }

    fn check_puddles(&self, quarantined: &HashSet<Uuid>) -> Result<(), FormatError> {
        for (uuid, record) in &self.puddles {
            let owned = match record.kind {
                PuddleKind::Data | PuddleKind::Twin => self
                    .pools
                    .get(&record.owner)
                    .is_some_and(|pool| pool.engine.puddle_kind() == record.kind),
                PuddleKind::Log
                | PuddleKind::LogSpace
                | PuddleKind::Records
                | PuddleKind::Sections
                | PuddleKind::Code => {
                    self.clients.contains(&record.owner) || quarantined.contains(uuid)
                }
            };
            if !owned {
                refuse(format!(
                    "puddle {uuid} belongs to {}, which is not registered",
                    record.owner
                ))?;
            }
            let aligned = record.address.is_multiple_of(UNIT)
                && record.size.is_multiple_of(UNIT)
                && record.size > 0;
            if uuid.is_nil() || !aligned || !self.is_in_range(record.address, record.size) {
                refuse(format!(
                    "puddle {uuid}: {:#x} bytes at {:#x} are no multiples of 2 MiB inside the store's range of {:#x} bytes at \
                     {:#x}, or it has no name",
                    record.size, record.address, self.store.size, self.store.base
                ))?;
            }
            if self.is_going(*uuid) {
                refuse(format!(
                    "puddle {uuid} is there, and its file is being removed, or made"
                ))?;
            }
        }
        let puddles = self.puddles.iter();
        let places = puddles.map(|(uuid, record)| (*uuid, record.address, record.size));
        // A pointer to where a puddle was leads to nothing else.
        let moves = self.moves.iter();
        let former = moves.map(|(from, to)| (Uuid([0; 16]), *from, to.size));
        check_apart(STRUCTURE, places.chain(former))
    }

    fn check_moves(&self) -> Result<(), FormatError> {
        let of_imports = self.imports.values().flat_map(|import| &import.moves);
        for (from, to) in of_imports {
            let fits = |address: u64| {
                address.is_multiple_of(UNIT)
                    && address > 0
                    && address < ADDRESS_END
                    && to.size <= ADDRESS_END - address
            };
            if to.size == 0 || !to.size.is_multiple_of(UNIT) || !fits(*from) || !fits(to.address) {
                refuse(format!(
                    "imports: {:#x} bytes from {from:#x} to {:#x} are no multiples of 2 MiB below 2^47",
                    to.size, to.address
                ))?;
            }
        }
        for import in self.imports.values() {
            let moves = import.moves.iter();
            let former = moves.map(|(from, to)| (Uuid([0; 16]), *from, to.size));
            check_apart(STRUCTURE, former)?;
        }
        for (from, to) in &self.moves {
            let is_place =
                |address: u64| address.is_multiple_of(UNIT) && self.is_in_range(address, to.size);
            if to.size == 0
                || !to.size.is_multiple_of(UNIT)
                || !is_place(*from)
                || !is_place(to.address)
            {
                refuse(format!(
                    "moves: {:#x} bytes from {from:#x} to {:#x} are no multiples of 2 MiB inside the store's range",
                    to.size, to.address
                ))?;
            }
        }
        let mut puddles = self.puddles.iter();
        let is_wrong = |record: &PuddleRecord| record.is_stale && !record.kind.holds_objects();
        if let Some((uuid, _)) = puddles.find(|(_, record)| is_wrong(record)) {
            refuse(format!("puddle {uuid} is stale, and holds no objects"))?;
        }
        if self.has_moved() == self.moves.is_empty() {
            refuse("a puddle is stale and none was moved, or the other way round".to_owned())?;
        }
        self.check_imports()
    }

    fn check_imports(&self) -> Result<(), FormatError> {
        let mut named = HashSet::new();
        for (uuid, record) in &self.puddles {
            let Some(origin) = record.origin else {
                continue;
            };
            let import = self.imports.get(&origin.import);
            let at = import.and_then(|import| import.moves.get(&origin.address));
            let is_its =
                at.is_some_and(|to| (to.address, to.size) == (record.address, record.size));
            if !record.is_stale || !is_its || origin.uuid.is_nil() || origin.owner.is_nil() {
                refuse(format!(
                    "puddle {uuid} was imported from {:#x}, and the import does not say so, or it is not stale",
                    origin.address
                ))?;
            }
            named.insert(origin.import);
        }
        if let Some(import) = self.imports.keys().find(|import| !named.contains(*import)) {
            refuse(format!("import {import} has no puddles"))?;
        }
        Ok(())
    }

    fn check_pools(&self) -> Result<(), FormatError> {
        let mut names = HashSet::new();
        for (uuid, pool) in &self.pools {
            let name = &pool.name;
            if uuid.is_nil() || !is_pool_name(name) {
                refuse(format!(
                    "{name:?} is no pool name: 1 to 255 bytes without control characters and '/'"
                ))?;
            }
            if pool.rights.is_some_and(|rights| !rights.is_valid()) {
                refuse(format!(
                    "pool {name:?} has a mode with other bits than r and w of owner, group and others"
                ))?;
            }
            if !names.insert(name) {
                refuse(format!("two pools are named {name:?}"))?;
            }
            let mut ids = pool.meanings.iter().flat_map(|(old, new)| [old, new]);
            if let Some(id) = ids.find(|id| !self.types.contains_key(id)) {
                refuse(format!(
                    "pool {name:?} says what the type {id:#x} means, which is not registered"
                ))?;
            }
            let damaged = pool.damage.as_ref().map(|damage| damage.puddle);
            let is_its = |puddle| {
                self.puddles
                    .get(&puddle)
                    .is_some_and(|of| of.owner == *uuid)
            };
            if damaged.is_some_and(|puddle| !is_its(puddle)) {
                refuse(format!(
                    "pool {name:?} is damaged in a puddle that is none of it"
                ))?;
            }
            let root = self.puddles.get(&pool.root_puddle);
            if !root.is_some_and(|root| root.is_root && root.owner == *uuid) {
                refuse(format!(
                    "pool {name:?} names the root puddle {}, which is not a root puddle of it",
                    pool.root_puddle
                ))?;
            }
        }
        for (uuid, record) in &self.puddles {
            let pool = self.pools.get(&record.owner);
            if record.is_root && pool.is_none_or(|pool| pool.root_puddle != *uuid) {
                refuse(format!("puddle {uuid} is a root puddle, but of no pool"))?;
            }
        }
        Ok(())
    }

    fn check_clients(&self) -> Result<(), FormatError> {
        for (client, pool) in &self.grants {
            if !self.clients.contains(client) || !self.pools.contains_key(pool) {
                refuse(format!(
                    "a grant of pool {pool} to client {client} names one that is not registered"
                ))?;
            }
        }
        for client in self.users.keys() {
            if !self.has_or_keeps(*client) {
                refuse(format!("client {client} has a user, and is not registered"))?;
            }
        }
        let mut with_space = HashSet::new();
        for (puddle, client) in &self.log_spaces {
            let is_one =
                |known: &PuddleRecord| known.kind == PuddleKind::LogSpace && known.owner == *client;
            let is_known = self.puddles.get(puddle).is_some_and(is_one);
            if !is_known || !self.clients.contains(client) || !with_space.insert(client) {
                refuse(format!(
                    "puddle {puddle} is registered as a log space of client {client}, but is not one"
                ))?;
            }
        }
        let quarantined: HashSet<Uuid> = self.quarantine.values().map(|log| log.client).collect();
        for (client, kept) in &self.kept {
            if !self.clients.contains(client) && !quarantined.contains(client) {
                refuse(format!(
                    "a part is kept for client {client}, which is not registered"
                ))?;
            }
            let mut end = 0;
            for range in &kept.granted {
                let next = range.address.checked_add(range.size);
                if range.address < end || range.size == 0 || next.is_none() {
                    refuse(format!("kept: a range of client {client} is none"))?;
                }
                end = next.unwrap_or(u64::MAX);
            }
        }
        for (pool, client) in &self.marks {
            if !self.pools.contains_key(pool) || !quarantined.contains(client) {
                refuse(format!(
                    "pool {pool} is marked because of logs of client {client}, but one of them is not registered"
                ))?;
            }
        }
        Ok(())
    }

    fn check_types(&self) -> Result<(), FormatError> {
        for (id, text) in &self.types {
            let descriptor = Descriptor::parse(text).map_err(|error| {
                FormatError::damaged_text(STRUCTURE, format!("type {id:#x}: {error}"))
            })?;
            if descriptor.id() != *id {
                refuse(format!(
                    "type {id:#x}: its text has the id {:#x}",
                    descriptor.id()
                ))?;
            }
        }
        Ok(())
    }
}
