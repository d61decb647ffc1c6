//! Puddles that make way for what the process of a client has at their addresses (Puddles, EuroSys'24, §4.2):
//! what moves is decided once, for all pools together; each puddle is rewritten before it is opened next.
//! `docs/internals/relocation.md` tells why that is sound.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;

use durum_format::Uuid;
use durum_format::puddle::header_size;
use durum_format::twin::{SEAL_SIZE, STATE_OFFSET, Stage, State as TwinState};
use durum_persist::Site;

use super::commit::{Away, Commit};
use super::puddles::{Registered, grant};
use super::settle::is_twin;
use super::{Embedded, Host, Open};
use crate::error::{Error, ErrorKind, Result};
use crate::files::{self, Puddles};
use crate::model::{Progress, Stage as Step, UsedElsewhere};
use crate::names;
use crate::reading;
use crate::recovery::{apply, plan_twin, workers};
use crate::registry::contents::{AddressRange, Change, Import, PuddleRecord, rewritten};
use crate::rewrite::{Moves, Rewriter, Stopped, Unknown, unknown};
use crate::space::{Elsewhere, Space, random_start};

const COPIES: Site = Site("twin pool's copies before it moves");
const STATE: Site = Site("twin pool's state before it moves");

/// As long as so many pages it takes to look at what a heap says of its objects, with its file.
const PAGES_OF_HEAP: usize = 16;

/// What a client has said of the addresses of its process.
#[derive(Debug, Default)]
pub(super) struct InUse {
    /// What it uses for something else.
    pub(super) elsewhere: Elsewhere,
    /// Objects of unknown type hold no pointers.
    pub(super) untyped_hold_no_pointers: bool,
}

impl Embedded {
    /// As [`Service::avoid`](crate::Service::avoid).
    pub(super) fn note_in_use(&self, used: &UsedElsewhere) -> Result<()> {
        let in_use = InUse {
            elsewhere: Elsewhere::of(&used.ranges),
            untyped_hold_no_pointers: used.untyped_hold_no_pointers,
        };
        let mut state = self.host.state();
        state.open(&self.host.path)?.in_use.insert(self.id, in_use);
        Ok(())
    }

    /// As [`Service::make_way`](crate::Service::make_way).
    pub(super) fn make_way_now(&self) -> Result<()> {
        let is_clear = self.host.request(|open| {
            let elsewhere = &open.in_use_of(self.id).elsewhere;
            let mut puddles = open.contents.puddles.values();
            let is_clear = !puddles.any(|record| is_in_the_way(elsewhere, record));
            Ok((is_clear, Commit::nothing()))
        })?;
        match is_clear {
            true => Ok(()),
            false => self.host.undisturbed(|open| self.move_away(open)),
        }
    }

    /// Decides where everything goes that is in the way, in an undisturbed store. Durable on return; nothing is
    /// rewritten yet.
    fn move_away(&self, open: &mut Open) -> Result<()> {
        let in_use = open.in_use_of(self.id).elsewhere.clone();
        // Pointers that nobody has rewritten yet may say where an imported puddle was.
        let imports = open.contents.imports.values();
        let former = imports.flat_map(|import| ranges_of(&import.moves));
        let elsewhere = &in_use.clone().with(former);
        let store = &self.host.path;
        let puddles = open.contents.puddles.iter();
        let holds_objects = puddles.filter(|(_, record)| record.kind.holds_objects());
        let all: Vec<Registered> = holds_objects
            .map(|(uuid, record)| (*uuid, *record))
            .collect();
        let mut moving: Vec<Registered> = all.clone();
        moving.retain(|(_, record)| is_in_the_way(&in_use, record));
        moving.sort_unstable_by_key(|(_, record)| record.address);
        self.ensure_movable(open, &all)?;
        for pool in open.contents.pools.keys() {
            if is_twin(&open.contents, *pool)
                && !open.contents.is_as_it_came(*pool)
                && let Err(error) = settle_twin(store, open, *pool)
            {
                of_data(
                    error,
                    store,
                    "a pool of the engine Twin that moves cannot be read",
                )?;
            }
        }
        let (random, mut space) = (names::random_u64()?, open.space.clone());
        let identity = &self.host.identity;
        let (start, _drawn) = random_start(identity.base, identity.size, random);
        // Where the other store grows to, it is met again: so not just behind what is in the way.
        let mut far = space.clone().beginning_at(start);
        let place_all = |space: &mut Space| -> Option<Vec<u64>> {
            let places = moving.iter();
            places
                .map(|(_, record)| space.place(record.size, elsewhere))
                .collect()
        };
        let places = match place_all(&mut far) {
            Some(places) => {
                space = far;
                Some(places)
            }
            None => place_all(&mut space),
        };
        let places = places.ok_or_else(|| Error::AddressesExhausted {
            store: store.clone(),
            size: moving.iter().map(|(_, record)| record.size).sum(),
            space: identity.size,
        })?;
        let mut changes = Vec::new();
        let mut moved = BTreeSet::new();
        let mut imports = open.contents.imports.clone();
        for ((uuid, record), address) in moving.iter().zip(places) {
            let size = record.size;
            let to = AddressRange { address, size };
            for import in imports.values_mut() {
                goes_on(import, record, to);
            }
            // Where it was before goes on to where it is now: a pointer that nobody has rewritten yet may say either.
            let earlier = open.contents.moves.iter();
            let earlier = earlier.filter(|(_, at)| (at.address, at.size) == (record.address, size));
            changes.extend(earlier.map(|(from, _)| Change::PutMove(*from, to)));
            changes.push(Change::PutMove(record.address, to));
            let record = PuddleRecord {
                address,
                is_stale: true,
                ..*record
            };
            changes.push(Change::PutPuddle(*uuid, record));
            moved.insert(*uuid);
        }
        for (uuid, record) in all.iter().filter(|(uuid, _)| !moved.contains(uuid)) {
            let record = PuddleRecord {
                is_stale: true,
                ..*record
            };
            changes.push(Change::PutPuddle(*uuid, record));
        }
        let known = &open.contents.imports;
        let imports = imports.into_iter();
        let imports = imports.filter(|(uuid, import)| known.get(uuid) != Some(import));
        changes.extend(imports.map(|(uuid, import)| Change::PutImport(uuid, import)));
        changes.push(Change::Cursor(space.cursor()));
        // ORDER: where things are is durable before anything is rewritten; else a crash leaves pointers to places that
        // nobody knows.
        open.commit(Commit::addition(changes))?;
        // What was there stays taken until nothing points to it.
        let former = moving.iter().map(|(_, record)| record.address);
        open.former.extend(former);
        open.space = space;
        open.moves = Arc::new(open.contents.moves.clone());
        open.import_moves.clear();
        Ok(())
    }

    /// Refuses to move what somebody uses, what logs tell of, and what has pointers of which nobody knows.
    fn ensure_movable(&self, open: &Open, all: &[Registered]) -> Result<()> {
        let store = &self.host.path;
        let unmovable = |pool: Option<Uuid>, reason: String| Error::Unmovable {
            store: store.clone(),
            pool: pool.map(|pool| open.contents.name_of(pool)),
            reason,
        };
        for pool in open.contents.pools.keys() {
            self.ensure_owns(open, *pool, "moved to other addresses")?;
            if open.holders(*pool).next().is_some() {
                let reason = "a program has it open: come again when it is closed".to_owned();
                return Err(unmovable(Some(*pool), reason));
            }
            if open.ensure_not_renewed(*pool).is_err() {
                let reason = "its files are being replaced: come again".to_owned();
                return Err(unmovable(Some(*pool), reason));
            }
            let is_told_of =
                open.contents.marks_of(*pool).next().is_some() || open.refused.contains(*pool);
            if is_told_of {
                let reason = format!(
                    "it is not recovered, and its logs tell of where it is now: see `durum check {}`",
                    store.display()
                );
                return Err(unmovable(Some(*pool), reason));
            }
        }
        if !open.contents.grants.is_empty() || !open.contents.kept.is_empty() {
            let reason = format!(
                "logs of programs that have died tell of where it is now: see `durum check {}`",
                store.display()
            );
            return Err(unmovable(None, reason));
        }
        if open.in_use_of(self.id).untyped_hold_no_pointers {
            return Ok(());
        }
        let (types, puddles) = (&open.contents.types, Puddles::of(store)?);
        let look = |(uuid, record): &Registered| {
            let file = puddles.open(*uuid, record, false)?;
            let header = files::header_of(*uuid, record);
            unknown(&file, &header, |id| types.contains_key(&id))
        };
        let threads = workers::count(PAGES_OF_HEAP * all.len());
        for ((_, record), unknown) in all.iter().zip(workers::map(all, threads, look)) {
            match unknown {
                Ok(None) => {}
                Ok(Some(unknown)) => {
                    return Err(unmovable(Some(record.owner), has_unknown(unknown)));
                }
                // What is damaged is told to who opens it; others may go on.
                Err(error) => of_data(error, store, "a puddle that moves cannot be read")?,
            }
        }
        Ok(())
    }

    /// Rewrites those of a pool's puddles that are stale, before anybody opens them. Durable on return.
    ///
    /// It waits for whoever does that already, and for nobody else.
    pub(super) fn refresh(&self, puddles: &[Uuid]) -> Result<()> {
        let Some((away, stale)) = self.host.claim_stale(puddles)? else {
            return Ok(());
        };
        let _claimed = Claimed {
            away: &away,
            puddles: stale.iter().map(|(uuid, _)| *uuid).collect(),
        };
        let stale = &self.host.look_at_imported(&away, stale)?;
        let type_text = |id| away.look(|open| open.contents.types.get(&id).cloned());
        let store = &self.host.path;
        let imports: BTreeSet<Option<Uuid>> = stale.iter().map(import_of).collect();
        for import in imports {
            let (moves, untyped_hold_no_pointers) = away.look(|open| open.debt(import, self.id))?;
            let mut rewriter = Rewriter::new(&moves, &type_text, untyped_hold_no_pointers);
            for (uuid, record) in stale.iter().filter(|puddle| import_of(puddle) == import) {
                let name = away.look(|open| open.contents.name_of(record.owner))?;
                let refused = |error| files::of_pool(error, store, &name);
                let file = files::open(store, *uuid, record, true).map_err(refused)?;
                let meanings = away.look(|open| open.contents.meanings_of(record.owner).clone())?;
                let done = rewriter.rewrite(&file, &files::header_of(*uuid, record), &meanings);
                done.map_err(|stopped| match stopped {
                    Stopped::Error(error) => refused(error),
                    Stopped::Unknown(unknown) => Error::Unmovable {
                        store: store.clone(),
                        pool: Some(name.clone()),
                        reason: has_unknown(unknown),
                    },
                })?;
            }
        }
        away.request(|open| {
            let mut changes = Vec::new();
            for (uuid, _) in stale {
                if let Some(record) = open.contents.puddles.get(uuid) {
                    changes.push(Change::PutPuddle(*uuid, rewritten(record)));
                }
            }
            Ok(((), Commit::addition(changes)))
        })
    }

    /// As [`Service::finish_moving`](crate::Service::finish_moving).
    pub(super) fn refresh_all(&self) -> Result<u64> {
        let stale = self.host.request(|open| {
            let puddles = open.contents.puddles.iter();
            let stale = puddles.filter(|(_, record)| record.is_stale);
            let stale: Vec<Registered> = stale.map(|(uuid, record)| (*uuid, *record)).collect();
            for (_, record) in &stale {
                self.ensure_owns(open, record.owner, "moved to other addresses")?;
            }
            Ok((stale, Commit::nothing()))
        })?;
        let total = stale.len() as u64;
        for (done, (uuid, _)) in (1..).zip(&stale) {
            self.refresh(&[*uuid])?;
            Progress::tell(&self.host.listener.0, Step::Move, done, total);
        }
        Ok(total)
    }
}

/// The import that a puddle came by, if it is as it came.
fn import_of((_, record): &Registered) -> Option<Uuid> {
    record.origin.map(|origin| origin.import)
}

/// Where puddles were.
pub(super) fn ranges_of(moves: &Moves) -> impl Iterator<Item = AddressRange> + '_ {
    moves.iter().map(|(from, to)| AddressRange {
        address: *from,
        size: to.size,
    })
}

/// A puddle goes to `to`: what is imported with it and not rewritten yet has to find it there.
fn goes_on(import: &mut Import, record: &PuddleRecord, to: AddressRange) {
    let here = AddressRange {
        address: record.address,
        size: record.size,
    };
    let earlier = import.moves.values_mut().filter(|at| **at == here);
    let mut leads_there = false;
    for at in earlier {
        *at = to;
        leads_there = true;
    }
    if leads_there {
        import.moves.insert(here.address, to);
    }
}

fn is_in_the_way(elsewhere: &Elsewhere, record: &PuddleRecord) -> bool {
    record.kind.holds_objects() && elsewhere.meets(record.address, record.size)
}

fn has_unknown(unknown: Unknown) -> String {
    format!(
        "it has {}, and nobody knows what pointers these hold; say that they hold none \
         (`StoreOptions::untyped_hold_no_pointers`), if that is so",
        unknown.words()
    )
}

/// Lets go on what is an error of a file's contents, with a word in the log.
fn of_data(error: Error, store: &Path, what: &'static str) -> Result<()> {
    match error.kind() {
        ErrorKind::Data => {
            tracing::warn!(store = %store.display(), %error, "{what}");
            Ok(())
        }
        _ => Err(error),
    }
}

/// Makes both copies of a Twin pool the same, durably, and has nothing tell of addresses any more.
fn settle_twin(store: &Path, open: &Open, pool: Uuid) -> Result<()> {
    let registered = open.contents.puddles_of(pool);
    let Some((uuid, record)) = registered.iter().find(|(_, record)| record.is_root) else {
        return Ok(());
    };
    let root = grant(*uuid, record, files::open(store, *uuid, record, true)?);
    let puddles = Puddles::of(store)?;
    let plan = plan_twin(&puddles, &registered, &root)?;
    if !plan.twins.is_empty() {
        let failed = apply(&puddles, &open.contents, &plan)?;
        failed.into_values().next().map_or(Ok(()), Err)?;
    }
    let file = &root.file;
    let failed = |error| Error::io("making a pool durable", file.path(), error);
    // The root's own come with its state.
    for (uuid, record) in registered.iter().filter(|(_, record)| !record.is_root) {
        // ORDER: both copies are durable before the state says that they are the same; else a power cut leaves two
        // that differ, and nothing that tells which one is whole.
        let synced = files::open(store, *uuid, record, true)?.sync(COPIES);
        synced.map_err(failed)?;
    }
    let mut word = [0; 8];
    reading::exact(file, STATE_OFFSET, &mut word, "reading a puddle")?;
    let state = TwinState::from_word(u64::from_le_bytes(word));
    let idle = TwinState {
        generation: state.map_or(0, |state| state.generation),
        stage: Stage::Idle,
        is_settled: false,
        is_listed: false,
    };
    let seals = [0; 2 * SEAL_SIZE];
    let write = |bytes: &[u8], at| {
        file.write_all_at(bytes, at)
            .map_err(|error| Error::io_at("settling a pool", file, at, error))
    };
    write(&idle.to_word().to_le_bytes(), STATE_OFFSET)?;
    // ORDER: durable before the seals go, and before addresses change; else a power cut brings back a state that asks
    // seals: those that are gone, or those about the old addresses.
    file.sync(STATE).map_err(failed)?;
    // Durable before a transaction begins: the puddle is synced when it is rewritten.
    write(&seals, header_size(record.size) - seals.len() as u64)
}

impl Host {
    /// Those of the puddles that are stale, for the caller alone until it has dropped what it is given.
    fn claim_stale(&self, puddles: &[Uuid]) -> Result<Option<(Away<'_>, Vec<Registered>)>> {
        let mut state = self.state();
        loop {
            let open = state.open(&self.path)?;
            let record = |uuid: &Uuid| Some((*uuid, *open.contents.puddles.get(uuid)?));
            let stale = puddles.iter().filter_map(record);
            let stale: Vec<Registered> = stale.filter(|(_, record)| record.is_stale).collect();
            if stale.is_empty() {
                return Ok(None);
            }
            if !stale.iter().any(|(uuid, _)| open.rewriting.contains(uuid)) {
                open.rewriting.extend(stale.iter().map(|(uuid, _)| *uuid));
                return Ok(Some((self.away(open), stale)));
            }
            state = self.wait(state);
        }
    }
}

/// Puddles that are being rewritten, until this is dropped.
struct Claimed<'a, 'e> {
    away: &'a Away<'e>,
    puddles: Vec<Uuid>,
}

impl Drop for Claimed<'_, '_> {
    fn drop(&mut self) {
        self.away.note(|open| {
            for uuid in &self.puddles {
                open.rewriting.remove(uuid);
            }
        });
        self.away.tell();
    }
}

impl Open {
    /// What a client has said of its process's addresses.
    pub(super) fn in_use_of(&self, client: Uuid) -> &InUse {
        static NOTHING: InUse = InUse {
            elsewhere: Elsewhere::NOTHING,
            untyped_hold_no_pointers: false,
        };
        self.in_use.get(&client).unwrap_or(&NOTHING)
    }

    /// Where things are now that a stale puddle may point to, of one import or of the store; and whether objects of
    /// unknown type hold no pointers.
    fn debt(&mut self, import: Option<Uuid>, client: Uuid) -> (Arc<Moves>, bool) {
        let promised = self.in_use_of(client).untyped_hold_no_pointers;
        let of_import =
            import.and_then(|import| Some((import, self.contents.imports.get(&import)?)));
        let Some((uuid, import)) = of_import else {
            return (self.moves.clone(), promised);
        };
        let moves = self.import_moves.entry(uuid);
        let moves = moves.or_insert_with(|| Arc::new(import.moves.clone()));
        // Where all are where they were, there is nothing to know.
        let has_moved = moves.iter().any(|(from, to)| *from != to.address);
        let promised = promised || import.untyped_hold_no_pointers || !has_moved;
        (moves.clone(), promised)
    }

    /// Where puddles are, in order, as few ranges as possible.
    pub(super) fn occupied(&self) -> Vec<AddressRange> {
        let puddles = self.contents.puddles.values();
        let puddles = puddles.chain(self.coming.values());
        let mut all: Vec<(u64, u64)> = puddles
            .map(|record| (record.address, record.size))
            .collect();
        all.sort_unstable();
        let mut ranges: Vec<AddressRange> = Vec::new();
        for (address, size) in all {
            match ranges.last_mut() {
                Some(last) if last.address + last.size == address => last.size += size,
                _ => ranges.push(AddressRange { address, size }),
            }
        }
        ranges
    }

    /// Takes back the addresses of where things were, once nothing points there, durably.
    pub(super) fn free_former(&mut self) {
        let durable = self.durable.as_ref();
        if !self.former.is_empty()
            && self.contents.moves.is_empty()
            && durable.is_some_and(|durable| durable.contents.moves.is_empty())
        {
            for address in std::mem::take(&mut self.former) {
                self.space.remove(address);
            }
        }
    }
}
