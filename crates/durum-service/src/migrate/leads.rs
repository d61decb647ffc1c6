//! Where pointers of new objects, which are the old ones yet, lead to.

use std::cell::Cell;
use std::collections::HashMap;

use durum_format::extent;
use durum_format::migrate::{Gone, Refusal};
use durum_format::types::{Descriptor, PointerAt};

use super::old::Old;

/// Where pointers lead to that are known.
#[derive(Default)]
pub(super) struct Leads {
    /// By the type whose pointer it is, the type that it is to lead to, and that of the object there.
    starts: HashMap<Start, std::result::Result<u64, Gone>>,
    /// Those that led somewhere, which most pointers do as others before them.
    recent: Vec<Option<(Start, u64)>>,
}

type Start = (u64, Option<usize>, u32);

/// So many are found at once.
const RECENT: usize = 64;

/// What a pointer in a new object, which is the old one yet, leads to.
pub(super) enum Lead {
    /// So far into the new object of this number.
    Object { index: u64, offset: u64, tag: u32 },
    /// Nothing of the pool: it stays as it is.
    Elsewhere,
    /// What stands in the way.
    Refused(Refusal),
}

impl Leads {
    pub(super) fn of(
        &mut self,
        old: &Old<'_>,
        new: &Descriptor,
        pointer: &PointerAt,
        address: u64,
    ) -> Lead {
        let Some(found) = old.numbers.object(address) else {
            return match old.has(address) {
                true => Lead::Refused(Refusal::new(
                    new.called(),
                    "a pointer of it leads to no object of the pool",
                )),
                false => Lead::Elsewhere,
            };
        };
        let tag = found.tag;
        let start: Start = (new.id(), pointer.target, tag);
        let slot = (start.0 as usize ^ start.1.unwrap_or(RECENT) ^ tag as usize) % RECENT;
        if found.offset == 0
            && let Some(Some((known, offset))) = self.recent.get(slot)
            && *known == start
        {
            let (index, offset) = (found.index, *offset);
            return Lead::Object { index, offset, tag };
        }
        let Some(ty) = old.types.get(tag as usize) else {
            return Lead::Elsewhere;
        };
        let Some(conversion) = old.pairs.of(ty.id) else {
            // What nobody knows stays as it is.
            let (index, offset) = (found.index, found.offset);
            return Lead::Object { index, offset, tag };
        };
        let wanted = pointer.target.map(|line| (new, line));
        let asks = Cell::new(false);
        let follow = || {
            let mut bytes = || {
                asks.set(true);
                object_at(old, address - found.offset).unwrap_or_default()
            };
            let followed = conversion.follow(found.offset, wanted, &mut bytes)?;
            let leads_to = wanted.and_then(|(new, line)| new.target(line).ok());
            let is_another = |is: Descriptor| is.id() != conversion.new_type().id();
            // What a function has made of a pointer is its own affair where types do not tell.
            match old.pointers_are_typed && leads_to.is_some_and(is_another) {
                true => Err(Gone {
                    path: conversion.new_type().called(),
                    why: "a pointer leads to it whose type says something else",
                }),
                false => Ok(followed),
            }
        };
        let followed = match self.starts.get(&start).filter(|_| found.offset == 0) {
            Some(known) => known.clone(),
            None => follow(),
        };
        // What depends on the object is another one's affair no more.
        let is_the_types = found.offset == 0 && !asks.get();
        if is_the_types && !self.starts.contains_key(&start) {
            self.starts.insert(start, followed.clone());
        }
        match followed {
            Ok(offset) => {
                if is_the_types {
                    self.recent.resize(RECENT, None);
                    self.recent[slot] = Some((start, offset));
                }
                let index = found.index;
                Lead::Object { index, offset, tag }
            }
            Err(gone) => {
                let why = format!("{} (that of a {})", gone.why, new.called());
                Lead::Refused(Refusal::new(gone.path, why))
            }
        }
    }
}

/// The bytes of the object that begins at an address.
fn object_at(old: &Old<'_>, address: u64) -> Option<Vec<u8>> {
    let view = old.view_at(address)?;
    let located = extent::locate(view, view.header(), address).ok()??;
    let extent::Place::Object { object, .. } = located.place else {
        return None;
    };
    view.bytes(object.offset, object.size).ok()
}
