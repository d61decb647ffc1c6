//! A puddle as a commit will leave it: what memory says, and over it what the transaction still holds back.

use std::cell::RefCell;
use std::collections::{BTreeMap, HashMap};
use std::rc::Rc;

use durum_format::Uuid;
use durum_format::extent::{self, HeapBytes, Object, OutOfBounds, Place};
use durum_format::puddle::{PuddleHeader, PuddleKind};
use durum_format::types::{Descriptor, Type};

use crate::alloc::{BitChange, Bitmap, Puddle};
use crate::announced::Announced;
use crate::deferred::Set;

/// What a transaction is about to make durable.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Pending<'t> {
    pub(crate) announced: &'t Announced,
    pub(crate) sets: &'t [Set],
    pub(crate) set_bytes: &'t [u8],
    pub(crate) bits: &'t [BitChange],
    pub(crate) bitmaps: &'t [Bitmap],
}

impl Pending<'_> {
    /// The words of a puddle that are not in memory as they will be.
    fn words_of(&self, puddle: &Puddle) -> BTreeMap<usize, u64> {
        let mut words = BTreeMap::new();
        let inside = |address: usize| puddle.holds(address, 1);
        // SAFETY: a word of the mapped puddle. The checker is for programs with one thread.
        let now = |word: usize| unsafe { (word as *const u64).read() };
        for bitmap in self.bitmaps.iter().filter(|map| inside(map.address)) {
            let places = (bitmap.address..).step_by(8);
            words.extend(places.zip(bitmap.words[..bitmap.len].iter().copied()));
        }
        // Those of extents lie in the header, which no object does.
        let header = puddle.address..puddle.heap().start;
        let concerned = |word: usize| inside(word) || header.contains(&word);
        for bit in self.bits.iter().filter(|bit| concerned(bit.word)) {
            let word = words.entry(bit.word).or_insert_with(|| now(bit.word));
            match bit.set {
                true => *word |= bit.mask,
                false => *word &= !bit.mask,
            }
        }
        for set in self.sets.iter().filter(|set| inside(set.target)) {
            for (at, byte) in set.bytes(self.set_bytes).iter().enumerate() {
                let address = set.target + at;
                let word = words
                    .entry(address & !7)
                    .or_insert_with(|| now(address & !7));
                let mut bytes = word.to_le_bytes();
                bytes[address % 8] = *byte;
                *word = u64::from_le_bytes(bytes);
            }
        }
        words
    }
}

/// The types of objects, each read once.
pub(super) struct Types<'p> {
    text: &'p dyn Fn(u64) -> Option<String>,
    known: RefCell<HashMap<u64, Option<Rc<Descriptor>>>>,
}

impl<'p> Types<'p> {
    pub(super) fn new(text: &'p dyn Fn(u64) -> Option<String>) -> Self {
        Self {
            text,
            known: RefCell::default(),
        }
    }

    /// `None` where the store does not know it, as for bytes without a type.
    pub(super) fn of(&self, object: &Object) -> Option<Rc<Descriptor>> {
        let id = object.type_id;
        let read = || {
            let text = (self.text)(id)?;
            Descriptor::parse(&text).ok().map(Rc::new)
        };
        let mut known = self.known.borrow_mut();
        known.entry(id).or_insert_with(read).clone()
    }
}

/// A puddle as it will be, or without what is pending as it is.
pub(super) struct View<'p> {
    bytes: &'p [u8],
    header: PuddleHeader,
    pub(super) words: BTreeMap<usize, u64>,
}

impl HeapBytes for View<'_> {
    type Error = OutOfBounds;

    fn read(&self, offset: u64, buf: &mut [u8]) -> Result<(), OutOfBounds> {
        self.bytes.read(offset, buf)?;
        let start = (self.header.address + offset) as usize;
        let end = start + buf.len();
        for (word, value) in self.words.range(start.saturating_sub(7)..end) {
            for (at, byte) in value.to_le_bytes().into_iter().enumerate() {
                let at = (word + at).checked_sub(start);
                if let Some(place) = at.and_then(|at| buf.get_mut(at)) {
                    *place = byte;
                }
            }
        }
        Ok(())
    }
}

impl<'p> View<'p> {
    pub(super) fn new(pool: Uuid, puddle: &'p Puddle, pending: Option<&Pending<'_>>) -> Self {
        Self {
            // SAFETY: the mapped puddle, read while the only thread of the program is here.
            bytes: unsafe { std::slice::from_raw_parts(puddle.at(0).as_ptr(), puddle.size) },
            header: PuddleHeader {
                kind: PuddleKind::Data,
                uuid: puddle.uuid,
                owner: pool,
                address: puddle.address as u64,
                size: puddle.size as u64,
                is_root: puddle.is_root,
            },
            words: pending.map_or_else(BTreeMap::new, |pending| pending.words_of(puddle)),
        }
    }

    /// What lies at an address, if an extent does.
    pub(super) fn place(&self, address: usize) -> Option<Place> {
        let location = extent::locate(self, &self.header, address as u64).ok()??;
        Some(location.place)
    }

    pub(super) fn object_bytes(&self, object: &Object) -> Option<Vec<u8>> {
        let mut bytes = vec![0; usize::try_from(object.size).ok()?];
        self.read(object.offset, &mut bytes).ok()?;
        Some(bytes)
    }

    /// Whether the byte means nothing after the program has ended, as a lock.
    pub(super) fn is_volatile(&self, address: usize, types: &Types<'_>) -> bool {
        let Some(Place::Object { object, offset }) = self.place(address) else {
            return false;
        };
        let (Some(descriptor), Some(bytes)) = (types.of(&object), self.object_bytes(&object))
        else {
            return false;
        };
        descriptor
            .path(&bytes, offset)
            .is_ok_and(|path| matches!(path.ty, Type::Volatile { .. }))
    }

    /// Address, type and field, as far as they can be told.
    pub(super) fn describe(&self, address: usize, types: &Types<'_>) -> String {
        let (object, offset) = match self.place(address) {
            None => return format!("{address:#x}, outside of any object"),
            Some(Place::Object { object, offset }) => (object, offset),
            Some(_) => return format!("{address:#x}, in allocation data or free memory"),
        };
        let Some(descriptor) = types.of(&object) else {
            return format!(
                "{address:#x}, byte {offset} of an untyped object of {} bytes",
                object.size
            );
        };
        let name = descriptor.name().unwrap_or("value").to_owned();
        let bytes = self.object_bytes(&object).unwrap_or_default();
        match descriptor.path(&bytes, offset) {
            Ok(path) => format!("{address:#x}, field \"{}\" of a \"{name}\"", path.text),
            Err(_) => format!("{address:#x}, byte {offset} of a \"{name}\""),
        }
    }
}
