//! Keys that are looked up together: what each of them needs is fetched for all of them, a level at a time.
//!
//! A look-up goes by places of which each says where the next one is: a node, the order of its entries, the address of
//! a record, the record. Most of them are in no cache, so a key that is looked up alone waits for one after the other;
//! a group waits for each level once.

use std::ops::Range;

use arrayvec::ArrayVec;
use durum::Tx;
use durum_persist::line::{LINE, prefetch, prefetch_to_write};

use super::{Spot, Tree};
use crate::batch::Change;
use crate::comparator::Keys;
use crate::entries::Entries;
use crate::error::Result;
use crate::index::Position;
use crate::media::{Record, slot_of};
use crate::versions::{Readers, visible};

/// Keys of a group. A processor has some ten to fifty lines under way at a time, and a key needs several: more keys
/// would wait for each other.
pub(crate) const GROUP: usize = 16;

/// Where a key belongs, as long as nobody writes.
#[derive(Clone, Debug)]
pub(crate) struct Place {
    at: Position,
    /// Among which entries of the node it is, if that is known.
    among: Option<Range<usize>>,
}

/// Where the keys of a group belong, in their order.
type Places = ArrayVec<Place, GROUP>;

impl Tree {
    /// Looks up to [`GROUP`] keys up, and fetches what a reader of their values looks at.
    pub(crate) fn look_up<'k>(
        &self,
        keys: impl Iterator<Item = &'k [u8]> + Clone,
    ) -> Result<Places> {
        let mut places = self.find_nodes(keys.clone())?;
        self.narrow(&mut places, keys, |_| {});
        for (_, entries, index) in self.first_of(&places) {
            if let Some(index) = index {
                let start = entries.record(index).addr();
                (0..3).for_each(|line| prefetch(start + line * LINE));
            }
        }
        Ok(places)
    }

    /// The record of a key that was looked up, as a reader by `sequence` sees it.
    pub(crate) fn get_at(
        &self,
        place: &Place,
        key: &[u8],
        sequence: u64,
    ) -> Result<Option<*const Record>> {
        let entries = self.entries(place.at)?;
        let found = match &place.among {
            Some(among) => entries.find_among(among.clone(), &self.keys, key),
            None => entries.find(&self.keys, key),
        };
        let record = found.ok().map(|index| entries.record(index));
        // SAFETY: entered records are live.
        Ok(record.and_then(|record| unsafe { visible(record, sequence) }))
    }

    /// Makes up to [`GROUP`] changes, one after the other. What several of them look at is fetched first.
    pub(crate) fn change_group(
        &mut self,
        tx: &Tx,
        changes: &[Change<'_>],
        sequence: u64,
        readers: &Readers,
    ) -> Result<()> {
        if let [change] = changes {
            return self.change(tx, *change, sequence, readers);
        }
        let shapes = (self.index.shape(), self.shape);
        let places = self.look_up_to_change(changes)?;
        for (change, place) in changes.iter().zip(places) {
            let key = change.key();
            let at = match self.index.shape() == shapes.0 {
                true => place.at,
                // One of those before has split a leaf, or merged two.
                false => self.find(key)?,
            };
            let entries = self.entries(at)?;
            let found = match place.among {
                Some(among) if self.shape == shapes.1 => entries.find_among(among, &self.keys, key),
                _ => entries.find(&self.keys, key),
            };
            let spot = Spot { at, found };
            match *change {
                Change::Put(_, value) => self.put_at(tx, spot, key, value, sequence, readers)?,
                Change::Delete(_) => self.delete_at(tx, spot, key, sequence, readers)?,
            }
        }
        Ok(())
    }

    /// Looks up where changes are made, and fetches what they look at.
    fn look_up_to_change(&self, changes: &[Change<'_>]) -> Result<Places> {
        let pool = self.media.pool();
        let leaf = |at| self.index.node(at).leaf;
        let keys = changes.iter().map(Change::key);
        let mut places = self.find_nodes(keys.clone())?;
        if are_neighbours(&places) {
            return Ok(places);
        }
        // Where the leaf's marks are.
        self.narrow(&mut places, keys, |at| prefetch(leaf(at).addr()));
        for (_, entries, index) in self.first_of(&places) {
            if let Some(index) = index {
                let record = entries.record(index);
                (0..3).for_each(|line| prefetch_to_write(record.addr() + line * LINE));
                // SAFETY: entered records are live.
                unsafe { pool.prefetch_slab(record.cast()) };
            }
        }
        for (at, entries, index) in self.first_of(&places) {
            let slot = match index {
                Some(index) => {
                    // SAFETY: entered records are live.
                    unsafe { pool.prefetch_free(entries.record(index).cast()) };
                    Some(entries.slot(index))
                }
                None => entries.free_slot(),
            };
            if let Some(slot) = slot {
                prefetch_to_write(slot_of(leaf(at), slot).addr());
            }
        }
        Ok(places)
    }

    /// The nodes of keys that were looked up, as far as they are known, and the first entry that each key may be.
    fn first_of<'p>(
        &'p self,
        places: &'p Places,
    ) -> impl Iterator<Item = (Position, &'p Entries, Option<usize>)> {
        places.iter().filter_map(|Place { at, among }| {
            let entries = self.index.known_entries(*at)?;
            let among = among.as_ref()?;
            Some((*at, entries, (!among.is_empty()).then_some(among.start)))
        })
    }

    /// In which nodes keys are looked for.
    fn find_nodes<'k>(&self, keys: impl Iterator<Item = &'k [u8]>) -> Result<Places> {
        let find = |key| {
            let at = self.find(key)?;
            prefetch((&raw const *self.index.node(at)).addr());
            Ok(Place { at, among: None })
        };
        keys.map(find).collect()
    }

    /// Looks keys up in their nodes, as far as heads say where they are. `see` is told each node.
    fn narrow<'k>(
        &self,
        places: &mut Places,
        keys: impl Iterator<Item = &'k [u8]>,
        see: impl Fn(Position),
    ) {
        if let Keys::Custom(_) = self.keys {
            // Heads say nothing: which records are looked at depends on what each of them says.
            return;
        }
        for place in &*places {
            if let Some(entries) = self.index.known_entries(place.at) {
                entries.fetch_order();
                see(place.at);
            }
        }
        for (place, key) in places.iter_mut().zip(keys) {
            if let Some(entries) = self.index.known_entries(place.at) {
                place.among = Some(entries.narrow(&self.keys, key));
            }
        }
    }
}

/// Whether most keys lie in the node of the one before, as those do that come in their order: the first one fetches
/// what the others look at. At least one.
fn are_neighbours(places: &Places) -> bool {
    let pairs = places.windows(2);
    let same = pairs.filter(|pair| pair[0].at == pair[1].at).count();
    4 * same >= 3 * (places.len() - 1)
}
