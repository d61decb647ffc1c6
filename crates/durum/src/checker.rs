//! Finds stores that no `add` announced, and pointers that lead out of the store, by comparing the pool with what it
//! was after the last transaction.
//!
//! For tests of programs with one thread: a store of another thread's transaction looks like one that nobody announced.

mod view;

use std::collections::HashMap;
use std::fmt;
use std::ops::Range;
use std::sync::Arc;

use durum_format::Uuid;
use durum_format::extent::Place;
use durum_format::puddle::heap_offset;

use self::view::{Types, View};
use crate::alloc::Puddle;
use crate::deferred::Set;
use crate::error::{Error, Result};
use crate::fault::guarded;

pub(crate) use self::view::Pending;

/// What is looked at.
#[derive(Clone, Copy)]
pub(crate) struct Subject<'p> {
    /// The pool's name, for errors.
    pub(crate) name: &'p str,
    pub(crate) pool: Uuid,
    pub(crate) puddles: &'p [Arc<Puddle>],
    /// The addresses that pointers may lead to.
    pub(crate) space: (u64, u64),
    /// The text of a type, if the store knows it.
    pub(crate) type_text: &'p dyn Fn(u64) -> Option<String>,
}

/// The pool as it was after the last transaction.
#[derive(Debug, Default)]
struct Checker {
    copies: HashMap<usize, Vec<u64>>,
}

/// The heap of a puddle as words.
fn words(puddle: &Puddle) -> (usize, &[u64]) {
    let offset = heap_offset(puddle.size as u64) as usize;
    // SAFETY: the heap lies inside the mapped puddle and is 8-byte aligned. The checker is for programs with one
    // thread.
    let words = unsafe {
        std::slice::from_raw_parts(
            puddle.at(offset).cast().as_ptr(),
            (puddle.size - offset) / 8,
        )
    };
    (puddle.address + offset, words)
}

/// Compares a pool with what it was. Behind a trait, as code that only completes sections has none.
pub(crate) trait Check: fmt::Debug + Send {
    /// Remembers the pool as it is.
    fn remember(&mut self, puddles: &[Arc<Puddle>]);

    /// Remembers a range as it is, in whole words.
    fn remember_range(&mut self, puddle: &Puddle, range: &Range<usize>);

    /// Compares the pool with what was remembered: changes that `pending` has not announced, unless nobody announces
    /// (in a section), and pointers that it leaves out of the store.
    ///
    /// # Errors
    /// `Unannounced`, with type and field of the first change that nobody announced; `PointerOutside`.
    fn look(&self, subject: Subject<'_>, pending: &Pending<'_>, is_announced: bool) -> Result<()>;
}

/// Knows nothing yet.
pub(crate) fn begin() -> Box<dyn Check> {
    Box::<Checker>::default()
}

impl Check for Checker {
    fn remember(&mut self, puddles: &[Arc<Puddle>]) {
        self.copies
            .retain(|address, _| puddles.iter().any(|puddle| puddle.address == *address));
        for puddle in puddles.iter() {
            let (_, words) = words(puddle);
            guarded(|| {
                let copy = self.copies.entry(puddle.address).or_default();
                copy.clear();
                copy.extend_from_slice(words);
            });
        }
    }

    fn remember_range(&mut self, puddle: &Puddle, range: &Range<usize>) {
        let Some(copy) = self.copies.get_mut(&puddle.address) else {
            return;
        };
        let (start, words) = words(puddle);
        let first = range.start.saturating_sub(start) / 8;
        let end = range.end.saturating_sub(start).div_ceil(8);
        if let (Some(now), Some(before)) = (words.get(first..end), copy.get_mut(first..end)) {
            guarded(|| before.copy_from_slice(now));
        }
    }

    fn look(&self, subject: Subject<'_>, pending: &Pending<'_>, is_announced: bool) -> Result<()> {
        let types = Types::new(subject.type_text);
        if is_announced {
            self.look_at_stores(subject, pending, &types)?;
        }
        for puddle in subject.puddles {
            self.look_at_pointers(subject, puddle, pending, &types)?;
        }
        Ok(())
    }
}

impl Checker {
    fn look_at_stores(
        &self,
        subject: Subject<'_>,
        pending: &Pending<'_>,
        types: &Types<'_>,
    ) -> Result<()> {
        let mut count = 0;
        let mut first = None;
        for puddle in subject.puddles {
            let Some(copy) = self.copies.get(&puddle.address) else {
                continue;
            };
            let view = View::new(subject.pool, puddle, None);
            let (start, now) = words(puddle);
            for (at, (now, before)) in now.iter().zip(copy).enumerate() {
                let changed = now ^ before;
                if changed == 0 {
                    continue;
                }
                for byte in (0..8).filter(|byte| changed >> (byte * 8) & 0xff != 0) {
                    let address = start + at * 8 + byte;
                    if !pending.announced.covers(address, 1) && !view.is_volatile(address, types) {
                        count += 1;
                        first.get_or_insert_with(|| (view.describe(address, types), address));
                    }
                }
            }
        }
        let Some((mut first, address)) = first else {
            return Ok(());
        };
        let is_set = |set: &Set| (set.target..set.target + set.len).contains(&address);
        if pending.sets.iter().any(is_set) {
            first += ", which also has a pending `set`";
        }
        Err(Error::Unannounced {
            pool: subject.name.to_owned(),
            count,
            first,
        })
    }

    /// Looks at the pointers that the transaction has changed, and at all of its fresh objects.
    fn look_at_pointers(
        &self,
        subject: Subject<'_>,
        puddle: &Puddle,
        pending: &Pending<'_>,
        types: &Types<'_>,
    ) -> Result<()> {
        let space = subject.space.0..subject.space.1;
        let view = View::new(subject.pool, puddle, Some(pending));
        let as_it_is = View::new(subject.pool, puddle, None);
        let (start, now) = words(puddle);
        let copy = self.copies.get(&puddle.address);
        let before = |at: usize| copy.and_then(|copy| copy.get(at)).copied().unwrap_or(0);
        let changed = now
            .iter()
            .enumerate()
            .filter(|(at, now)| **now != before(*at));
        let mut addresses: Vec<usize> = changed.map(|(at, _)| start + at * 8).collect();
        addresses.extend(view.words.keys().copied());
        addresses.sort_unstable();
        let mut seen_until = 0;
        for address in addresses {
            if address < seen_until {
                continue;
            }
            let Some(Place::Object { object, .. }) = view.place(address) else {
                continue;
            };
            let first = puddle.address + object.offset as usize;
            seen_until = first + object.size as usize;
            let Some(descriptor) = types.of(&object).filter(|found| found.has_pointers()) else {
                continue;
            };
            let Some(bytes) = view.object_bytes(&object) else {
                continue;
            };
            let is_fresh = !matches!(as_it_is.place(first), Some(Place::Object { .. }));
            let mut outside = None;
            // What does not fit its type is told by `durum check`.
            let _ = descriptor.visit_pointers(&bytes, |pointer| {
                let at = pointer.offset as usize;
                let Some(word) = bytes.get(at..).and_then(|rest| rest.first_chunk::<8>()) else {
                    return;
                };
                let value = u64::from_le_bytes(*word);
                let is_new = is_fresh || value != before((first + at - start) / 8);
                if value != 0 && !space.contains(&value) && is_new {
                    outside.get_or_insert((first + at, value));
                }
            });
            if let Some((address, target)) = outside {
                return Err(Error::PointerOutside {
                    pool: subject.name.to_owned(),
                    target: target as usize,
                    place: view.describe(address, types),
                });
            }
        }
        Ok(())
    }
}
