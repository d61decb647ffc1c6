//! Finds stores that no `add` announced, by comparing the pool with what it was after the last transaction.
//!
//! For tests of programs with one thread: a store of another thread's transaction looks like one that nobody announced.

use std::collections::HashMap;
use std::ops::Range;
use std::sync::PoisonError;

use durum_format::extent::{self, Place};
use durum_format::puddle::PuddleKind;
use durum_format::puddle::{PuddleHeader, heap_offset};
use durum_format::types::Descriptor;

use crate::announced::Announced;
use crate::error::{Error, Result};
use crate::fault::guarded;
use crate::pool::PoolInner;
use crate::puddle::Puddle;
use crate::tx::Set;

/// The pool as it was after the last transaction.
#[derive(Debug, Default)]
pub(crate) struct Checker {
    copies: HashMap<usize, Vec<u64>>,
}

/// The heap of a puddle as words.
fn words(puddle: &Puddle) -> (usize, &[u64]) {
    let offset = heap_offset(puddle.size as u64) as usize;
    // SAFETY: the heap lies inside the mapped puddle and is 8-byte aligned. The checker is for programs with one thread.
    let words = unsafe {
        std::slice::from_raw_parts(
            puddle.at(offset).cast().as_ptr(),
            (puddle.size - offset) / 8,
        )
    };
    (puddle.address + offset, words)
}

impl Checker {
    /// Remembers the pool as it is.
    pub(crate) fn remember(&mut self, pool: &PoolInner) {
        let puddles = pool.puddles.read().unwrap_or_else(PoisonError::into_inner);
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

    /// Remembers a range as it is, in whole words.
    pub(crate) fn remember_range(&mut self, puddle: &Puddle, range: &Range<usize>) {
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

    /// Compares the pool with what was remembered.
    ///
    /// # Errors
    /// `Unannounced`, with type and field of the first change that nobody announced.
    pub(crate) fn look(&self, pool: &PoolInner, announced: &Announced, sets: &[Set]) -> Result<()> {
        let mut count = 0;
        let mut first = None;
        let puddles = pool
            .puddles
            .read()
            .unwrap_or_else(PoisonError::into_inner)
            .clone();
        for puddle in &puddles {
            let Some(copy) = self.copies.get(&puddle.address) else {
                continue;
            };
            let (start, now) = words(puddle);
            for (at, (now, before)) in now.iter().zip(copy).enumerate() {
                let changed = now ^ before;
                if changed == 0 {
                    continue;
                }
                for byte in (0..8).filter(|byte| changed >> (byte * 8) & 0xff != 0) {
                    let address = start + at * 8 + byte;
                    if !announced.covers(address, 1) {
                        count += 1;
                        first.get_or_insert((puddle.clone(), address));
                    }
                }
            }
        }
        match first {
            None => Ok(()),
            Some((puddle, address)) => {
                let pending = sets
                    .iter()
                    .any(|set| (set.target..set.target + set.len).contains(&address));
                let mut place = describe(pool, &puddle, address);
                if pending {
                    place += ", which also has a pending `set`";
                }
                Err(Error::Unannounced {
                    pool: pool.name.clone(),
                    count,
                    first: place,
                })
            }
        }
    }
}

/// Address, type and field, as far as they can be told.
fn describe(pool: &PoolInner, puddle: &Puddle, address: usize) -> String {
    let header = PuddleHeader {
        kind: PuddleKind::Data,
        uuid: puddle.uuid,
        owner: pool.uuid,
        address: puddle.address as u64,
        size: puddle.size as u64,
        is_root: puddle.is_root,
    };
    // SAFETY: the mapped puddle, read while the only thread of the program is here.
    let bytes = unsafe { std::slice::from_raw_parts(puddle.at(0).as_ptr(), puddle.size) };
    let Ok(Some(location)) = extent::locate(bytes, &header, address as u64) else {
        return format!("{address:#x}, outside of any object");
    };
    let Place::Object { object, offset } = location.place else {
        return format!("{address:#x}, in allocation data or free memory");
    };
    let text = match pool.store.service.type_text(object.type_id) {
        Ok(Some(text)) => text,
        _ => {
            return format!(
                "{address:#x}, byte {offset} of an untyped object of {} bytes",
                object.size
            );
        }
    };
    let Ok(descriptor) = Descriptor::parse(&text) else {
        return format!("{address:#x}");
    };
    let name = descriptor.name().unwrap_or("value").to_owned();
    let object_bytes = &bytes[object.offset as usize..(object.offset + object.size) as usize];
    match descriptor.path(object_bytes, offset) {
        Ok(path) => format!("{address:#x}, field \"{}\" of a \"{name}\"", path.text),
        Err(_) => format!("{address:#x}, byte {offset} of a \"{name}\""),
    }
}
