//! Home places in files (the `file` domain): blocks as they will be, written in runs.
//!
//! A change is made to a copy of its block, which is read when the block is first changed in a batch. Through a shared
//! mapping the kernel would write whole folios.

use std::sync::Arc;

use durum_format::record::Change;
use durum_persist::Site;
use durum_persist::line::LINE;
use rustc_hash::FxHashMap;
use zerocopy::IntoBytes;

use super::super::pages::puddle::note_in;
use crate::alloc::{Puddle, puddle_at};
use crate::error::Result;
use crate::fault::guarded;
use crate::mapping::PAGE;
use crate::media::Barrier;
use crate::poison::Poison;

pub(crate) const DRAIN_FENCE: Site = Site("shadow.checkpoint: fence after home lines");

/// The words of a page.
pub(crate) type Page = [u64; PAGE / 8];
/// At most so many blocks go into one write.
const RUN_BLOCKS: usize = 256;
/// Blocks kept to be used again.
const SPARE_BLOCKS: usize = 1024;
const WORD: usize = 8;

/// The blocks of two batches.
#[derive(Debug, Default)]
pub(crate) struct Files {
    /// By address.
    batch: FxHashMap<usize, Box<Page>>,
    /// In order of address.
    writing: Vec<(usize, Box<Page>)>,
    spare: Vec<Box<Page>>,
    /// A run on its way into a file.
    run: Vec<u8>,
    barrier: Barrier,
    /// What says so, once a block could not be read: nothing is written from then on.
    failed: Option<Arc<Poison>>,
}

impl Files {
    pub(crate) fn is_batch_empty(&self) -> bool {
        self.batch.is_empty()
    }

    /// Bytes that the batch takes in memory.
    pub(crate) fn batch_bytes(&self) -> usize {
        self.batch.len() * PAGE
    }

    pub(crate) fn writing(&self) -> usize {
        self.writing.len()
    }

    pub(crate) fn next_batch(&mut self) {
        self.writing.extend(self.batch.drain());
        self.writing.sort_unstable_by_key(|(address, _)| *address);
    }

    /// What the block at `start` will be. `None` where it is gone, or cannot be read: then nothing is written any more.
    fn block(&mut self, start: usize) -> Option<&mut Page> {
        if !self.batch.contains_key(&start) {
            let mut block = self
                .spare
                .pop()
                .unwrap_or_else(|| Box::new([0; PAGE / WORD]));
            // SAFETY: puddles live while their store is open.
            let puddle = unsafe { puddle_at(start)?.as_ref() };
            if read(&self.writing, puddle, start, &mut block).is_err() {
                self.failed.get_or_insert_with(|| puddle.poison.clone());
                return None;
            }
            self.batch.insert(start, block);
        }
        self.batch.get_mut(&start).map(|block| &mut **block)
    }

    pub(crate) fn apply(&mut self, change: &Change<'_>) {
        match *change {
            Change::Words {
                operation,
                line,
                mut mask,
                words,
            } => {
                let line = line as usize;
                let Some(block) = self.block(line / PAGE * PAGE) else {
                    return;
                };
                let places = &mut block[line % PAGE / WORD..][..LINE / WORD];
                for word in words {
                    let place = &mut places[mask.trailing_zeros() as usize];
                    *place = operation.apply(*place, *word);
                    mask &= mask - 1;
                }
            }
            Change::Copy { target, mut data } => {
                let mut at = target as usize;
                while !data.is_empty() {
                    let (now, later) = data.split_at(data.len().min(PAGE - at % PAGE));
                    if let Some(block) = self.block(at / PAGE * PAGE) {
                        block.as_mut_bytes()[at % PAGE..][..now.len()].copy_from_slice(now);
                    }
                    (at, data) = (at + now.len(), later);
                }
            }
            // Home since before its record was durable. No transaction of this domain makes these.
            Change::Fresh { .. } => {}
        }
    }

    /// The blocks of both batches, in order of address.
    pub(crate) fn pending_pages(&self) -> Vec<usize> {
        let writing = self.writing.iter().map(|(address, _)| *address);
        let mut pages: Vec<usize> = writing.chain(self.batch.keys().copied()).collect();
        pages.sort_unstable();
        pages.dedup();
        pages
    }

    /// What home holds of a page, given that everything committed is applied.
    pub(crate) fn read_page(&self, puddle: &Puddle, address: usize, page: &mut Page) -> Result<()> {
        match self.batch.get(&address) {
            Some(block) => page.copy_from_slice(&**block),
            None => read(&self.writing, puddle, address, page)?,
        }
        Ok(())
    }

    /// Writes the batch that turned, neighbours together. Durable after [`Files::sync`].
    pub(crate) fn write(&mut self) -> Result<()> {
        if let Some(poison) = &self.failed {
            poison.check()?;
        }
        let mut rest = self.writing.as_slice();
        while let Some((start, _)) = rest.first() {
            // SAFETY: puddles live while their store is open.
            let Some(puddle) = puddle_at(*start).map(|puddle| unsafe { puddle.as_ref() }) else {
                rest = &rest[1..];
                continue;
            };
            let expected = (*start..puddle.address + puddle.size).step_by(PAGE);
            let length = rest
                .iter()
                .zip(expected)
                .take(RUN_BLOCKS)
                .take_while(|((address, _), expected)| address == expected)
                .count();
            let (run, later) = rest.split_at(length);
            self.run.clear();
            for (_, block) in run {
                self.run.extend_from_slice(block.as_bytes());
            }
            let offset = (start - puddle.address) as u64;
            // ORDER: synced by `Files::sync`, before these records count as home.
            self.barrier.write_bytes(puddle, offset, &self.run)?;
            for (address, _) in run {
                note_in(puddle, *address);
            }
            rest = later;
        }
        let written = self.writing.drain(..).map(|(_, block)| block);
        self.spare.extend(written);
        self.spare.truncate(SPARE_BLOCKS);
        Ok(())
    }

    /// Makes durable what was written.
    pub(crate) fn sync(&mut self) -> Result<()> {
        // ORDER: home places are durable before their records count as home.
        self.barrier.fence(true, DRAIN_FENCE)
    }
}

/// Reads a block: from the batch that is to be written, or else from the file.
fn read(
    writing: &[(usize, Box<Page>)],
    puddle: &Puddle,
    address: usize,
    page: &mut Page,
) -> Result<()> {
    match writing.binary_search_by_key(&address, |(address, _)| *address) {
        Ok(at) => page.copy_from_slice(&*writing[at].1),
        Err(_) => {
            let offset = (address - puddle.address) as u64;
            guarded(|| puddle.read_file(page.as_mut_bytes(), offset))?;
        }
    }
    Ok(())
}
