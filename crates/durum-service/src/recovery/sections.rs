//! The sections that a client was in when it ended: only their own code can complete them.
//!
//! Recovery reads what their threads have recorded. What a record says of words is written, as it may be again and
//! again: bits of memory that a section has taken, and words to be stored again. Memory that sections have freed is
//! free when none is under way that may still write there.
//!
//! Where a section is under way, or nobody can say whether one is, the pools that the client could write are left to
//! whoever completes it: they hold what is half done, and what the client's locks kept others from seeing.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use durum_format::Uuid;
use durum_format::puddle::{self, PuddleKind};
use durum_format::section::{Bits, BitsChange, Code, Record, Sections, State};

use super::home::{Home, Place};
use super::obstacle::Obstacle;
use super::write::{HomeWrite, WriteKind};
use crate::deposited;
use crate::error::{Error, Result};
use crate::files::{self, Puddles};
use crate::model::{InterruptedClient, InterruptionDetails};
use crate::registry::contents::{Contents, PuddleRecord};
use crate::sparse;

/// Of how many sections is told where they go on.
const PLACES_MAX: usize = 64;

/// What a client left under way.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Interruption {
    /// How many sections.
    pub(crate) sections: u64,
    /// Where the first of them goes on.
    pub(crate) first: Option<Code>,
    /// Where they go on, and which program it was, as that has deposited.
    pub(crate) places: Vec<String>,
    pub(crate) program: Option<String>,
    /// What is wrong with records: how many sections there are nobody can say then.
    pub(crate) damage: Option<String>,
}

impl Interruption {
    fn is_nothing(&self) -> bool {
        *self == Interruption::default()
    }

    fn damaged(&mut self, file: &Path, reason: &dyn std::fmt::Display) {
        let tell = || format!("{}: {reason}", file.display());
        self.damage.get_or_insert_with(tell);
    }
}

/// A word that a record tells of, and what becomes of it.
#[derive(Debug)]
struct Word {
    address: u64,
    kind: WriteKind,
}

/// What the threads of a client have recorded.
#[derive(Debug, Default)]
struct Found {
    interruption: Interruption,
    /// Where the first sections go on.
    codes: Vec<Code>,
    /// Words to be written before sections go on.
    before: Vec<Word>,
    /// Bits that are freed, as addresses of their words and masks.
    freed: Vec<(u64, u64)>,
    /// The puddles that could be read.
    puddles: Vec<Uuid>,
}

/// What a client left under way in the pools that it could write. Writes nothing.
///
/// # Errors
/// Of the system.
pub(crate) fn interruption(
    puddles: &Puddles,
    contents: &Contents,
    client: Uuid,
) -> Result<Option<Interruption>> {
    let found = read(puddles, contents, client)?.interruption;
    Ok(Some(found).filter(|found| !found.is_nothing()))
}

/// What the records of a client's sections ask for.
pub(super) struct Recorded {
    pub(super) writes: Vec<HomeWrite>,
    /// Sections that are under way.
    pub(super) interrupted: Option<Interruption>,
    /// The puddles that say so, and could be read.
    pub(super) puddles: Vec<Uuid>,
}

/// What the records of a client's sections ask for.
///
/// # Errors
/// Of the system.
pub(super) fn recorded(
    puddles: &Puddles,
    contents: &Contents,
    client: Uuid,
    home: &Home<'_>,
) -> Result<Recorded> {
    let Found {
        interruption,
        before,
        freed,
        puddles,
        ..
    } = read(puddles, contents, client)?;
    let is_over = interruption.is_nothing();
    // As long as sections go on, it is nobody's. Bits that were cleared before are set: what a record says holds.
    let freed = freed.into_iter().map(|(address, mask)| Word {
        address,
        kind: match is_over {
            true => WriteKind::bits(0, mask),
            false => WriteKind::bits(mask, 0),
        },
    });
    let words = before.into_iter().chain(freed);
    let writes = words.filter_map(|Word { address, kind }| {
        // A pool may have been accepted as it was.
        let Place::Granted(puddle, header) = home.place(address, 8) else {
            return None;
        };
        let offset = address - header.address;
        Some(HomeWrite {
            puddle,
            offset,
            kind,
        })
    });
    Ok(Recorded {
        writes: writes.collect(),
        interrupted: (!is_over).then_some(interruption),
        puddles,
    })
}

fn read(puddles: &Puddles, contents: &Contents, client: Uuid) -> Result<Found> {
    let mut found = Found::default();
    // Of pools that were all given up nothing can be completed.
    if contents.granted_pools(client).next().is_some() {
        for (uuid, record) in contents.section_puddles_of(client) {
            read_puddle(puddles, contents, uuid, &record, &mut found)?;
        }
    }
    if !found.codes.is_empty()
        && let Some(told) = deposited::describe(puddles, contents, client, &found.codes)
    {
        found.interruption.places = told.places;
        found.interruption.program = Some(told.program);
    }
    Ok(found)
}

impl Found {
    fn note(&mut self, record: &Record<'_>) {
        self.interruption.sections += 1;
        self.interruption.first.get_or_insert(record.code);
        if self.codes.len() < PLACES_MAX {
            self.codes.push(record.code);
        }
        let redo = record.redo().map(|redo| Word {
            address: redo.address,
            kind: WriteKind::bits(redo.value & redo.mask(), !redo.value & redo.mask()),
        });
        self.before.extend(redo);
        self.note_bits(record.bits());
    }

    fn note_bits(&mut self, bits: impl Iterator<Item = Bits>) {
        for bits in bits {
            match bits.change {
                BitsChange::Taken | BitsChange::TakenBlank => self.before.push(Word {
                    address: bits.address,
                    kind: WriteKind::bits(bits.mask, 0),
                }),
                BitsChange::Freed => self.freed.push((bits.address, bits.mask)),
            }
        }
    }
}

fn read_puddle(
    puddles: &Puddles,
    contents: &Contents,
    uuid: Uuid,
    record: &PuddleRecord,
    found: &mut Found,
) -> Result<()> {
    let path = files::puddle_path(puddles.store(), uuid);
    let (offset, size) = (
        puddle::heap_offset(record.size),
        puddle::heap_size(record.size),
    );
    let heap = puddles
        .open_kept(uuid, record, false)
        .and_then(|file| sparse::written(&file, offset, size));
    let heap = match heap.map_err(Obstacle::of_log) {
        Ok(heap) => heap,
        Err(Obstacle::Invalid(reason)) => {
            found.interruption.damage.get_or_insert(reason);
            return Ok(());
        }
        Err(Obstacle::Fatal(error)) => return Err(error),
    };
    let store = contents.store.base..contents.store.base.saturating_add(contents.store.size);
    let header = files::header_of(uuid, record);
    let used = heap.written().len() as u64;
    let sections = match Sections::of(&header, heap.bytes(), used, store) {
        Ok(sections) => sections,
        Err(error) => {
            found.interruption.damaged(&path, &error);
            return Ok(());
        }
    };
    found.puddles.push(uuid);
    for slot in sections.slots() {
        match slot.current() {
            Ok(State::Unused) => {}
            Ok(State::Idle(idle)) => found.note_bits(idle.bits()),
            Ok(State::InSection(record)) => found.note(&record),
            Err(damage) => found.interruption.damaged(&path, &damage),
        }
    }
    Ok(())
}

/// The clients that are gone and have left sections.
#[derive(Clone, Debug, Default)]
pub(crate) struct Interrupted {
    found: BTreeMap<Uuid, Interruption>,
    /// Why code did not complete those of some of them.
    not_completed: BTreeMap<Uuid, String>,
}

impl Interrupted {
    /// Notes what was found of a client: from now on this, or nothing.
    pub(crate) fn put(&mut self, client: Uuid, found: Option<Interruption>) {
        match found {
            Some(found) => _ = self.found.insert(client, found),
            None => {
                self.found.remove(&client);
                self.not_completed.remove(&client);
            }
        }
    }

    /// Notes why code did not complete what a client has left. Nothing happens where somebody else has by now.
    pub(crate) fn put_attempt(&mut self, client: Uuid, why: String) {
        if self.found.contains_key(&client) {
            self.not_completed.insert(client, why);
        }
    }

    /// What is said of the same clients holds on.
    pub(crate) fn keep_attempts(&mut self, before: &Interrupted) {
        for (client, why) in &before.not_completed {
            self.put_attempt(*client, why.clone());
        }
    }

    /// What was found of a client.
    pub(crate) fn of(&self, client: Uuid) -> Option<&Interruption> {
        self.found.get(&client)
    }

    /// As they are told of, in order of their names.
    pub(crate) fn to_clients(&self, contents: &Contents) -> Vec<InterruptedClient> {
        self.told(contents, self.clients())
    }

    fn told(
        &self,
        contents: &Contents,
        clients: impl Iterator<Item = Uuid>,
    ) -> Vec<InterruptedClient> {
        let found = clients.filter_map(|client| Some((client, self.found.get(&client)?)));
        let told = found.map(|(client, found)| {
            let pools = contents.granted_pools(client);
            let mut pools: Vec<String> = pools.map(|pool| contents.name_of(pool)).collect();
            pools.sort_unstable();
            InterruptedClient {
                client,
                pools,
                sections: found.sections,
                first: found.first,
                places: found.places.clone(),
                program: found.program.clone(),
                damage: found.damage.clone(),
                not_completed: self.not_completed.get(&client).cloned(),
            }
        });
        told.collect()
    }

    /// The clients on whose sections no code was tried.
    pub(crate) fn untried(&self) -> impl Iterator<Item = Uuid> + '_ {
        let is_untried = |client: &Uuid| !self.not_completed.contains_key(client);
        self.clients().filter(is_untried)
    }

    /// The clients.
    pub(crate) fn clients(&self) -> impl Iterator<Item = Uuid> + '_ {
        self.found.keys().copied()
    }

    /// The clients that have left sections in a pool.
    pub(crate) fn clients_in(
        &self,
        contents: &Contents,
        pool: Uuid,
    ) -> impl Iterator<Item = Uuid> + '_ {
        let clients = self.clients();
        let granted: BTreeSet<Uuid> = clients
            .filter(|client| contents.grants.contains(&(*client, pool)))
            .collect();
        granted.into_iter()
    }

    /// The names of other pools that clients which have left sections in this one could write.
    pub(crate) fn others(&self, contents: &Contents, pool: &str) -> Vec<String> {
        others(in_pool(&self.to_clients(contents), pool), pool)
    }

    /// The error for who wants to use a pool. What others have left costs it nothing.
    pub(crate) fn ensure_not(&self, store: &Path, contents: &Contents, pool: Uuid) -> Result<()> {
        let clients = self.told(contents, self.clients_in(contents, pool));
        ensure_not_interrupted(store, &clients, &contents.name_of(pool))
    }
}

/// The error for who wants to use a pool in which one of these clients has left sections.
pub(crate) fn ensure_not_interrupted(
    store: &Path,
    clients: &[InterruptedClient],
    pool: &str,
) -> Result<()> {
    if in_pool(clients, pool).next().is_none() {
        return Ok(());
    }
    let mut all = Interruption::default();
    let (mut place, mut not_completed) = (None, None);
    for client in in_pool(clients, pool) {
        all.sections += client.sections;
        if all.first.is_none() {
            (all.first, place) = (client.first, client.place());
        }
        all.damage = all.damage.or_else(|| client.damage.clone());
        not_completed = not_completed.or_else(|| client.not_completed.clone());
    }
    Err(Error::PoolInterrupted {
        store: store.to_owned(),
        pool: pool.to_owned(),
        sections: all.sections,
        first: all.first,
        details: Box::new(InterruptionDetails {
            place,
            damage: all.damage,
            not_completed,
        }),
        others: others(in_pool(clients, pool), pool),
    })
}

/// Those that have left sections in a pool.
pub(crate) fn in_pool<'c>(
    clients: &'c [InterruptedClient],
    pool: &str,
) -> impl Iterator<Item = &'c InterruptedClient> {
    let has_it = move |client: &&InterruptedClient| client.pools.iter().any(|name| name == pool);
    clients.iter().filter(has_it)
}

fn others<'c>(clients: impl Iterator<Item = &'c InterruptedClient>, pool: &str) -> Vec<String> {
    let names = clients.flat_map(|client| &client.pools);
    let names: BTreeSet<&String> = names.filter(|name| *name != pool).collect();
    names.into_iter().cloned().collect()
}

/// The clients that are gone whose sections a client completes that lives since an earlier service, and who does: as
/// long as there are sections, nobody else is granted one of their pools.
pub(crate) fn being_completed(
    contents: &Contents,
    lives: impl Fn(&Uuid) -> bool,
) -> BTreeMap<Uuid, Uuid> {
    let gone = contents.clients.iter().filter(|client| !lives(client));
    let of_sections = gone.filter(|client| contents.section_puddles_of(**client).next().is_some());
    let completed = of_sections.filter_map(|client| {
        let mut pools = contents.granted_pools(*client);
        let by = pools.find_map(|pool| {
            let granted = contents.grants.iter().filter(|(_, of)| *of == pool);
            granted.map(|(by, _)| by).find(|by| lives(by)).copied()
        });
        Some((*client, by?))
    });
    completed.collect()
}

/// Whether a puddle holds sections of a client, or the code that completes them.
pub(crate) fn is_of_sections(contents: &Contents, puddle: Uuid) -> bool {
    let record = contents.puddles.get(&puddle);
    record.is_some_and(|record| matches!(record.kind, PuddleKind::Sections | PuddleKind::Code))
}
