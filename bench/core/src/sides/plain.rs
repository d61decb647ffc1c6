//! flush1, redo1, quadra, trinity and volatile: plain stores to a mapped file, and what makes them durable.
//!
//! flush1 writes each line that a transaction wrote back once and fences once. It has no log, so a crash in the middle
//! leaves half a transaction: it is not a way to do it, but the physical limit for a row. redo1 is the least that an
//! engine with a log of new contents and one fence has to do ([`redo`]). [`quadra`] and [`trinity`] are engines of
//! others, as far as these rows need them.

use std::marker::PhantomData;
use std::path::Path;

use super::arena::Arena;
use super::lines::Lines;
use super::locked::Locked;
use crate::error::Result;
use crate::inputs::Value;
use crate::side::{self, Role, SharedShape, Side};
use crate::structures::{hash, list, map, redblack, sorted, tree};

pub(super) mod cells;
mod memory;
pub mod quadra;
pub mod redo;
mod stored;
mod swap;
pub mod trinity;

pub use memory::{Forgotten, PlainMemory, Written};
use quadra::Quadra;
use redo::Redo;
use trinity::Trinity;

/// One of the sides.
#[derive(Debug)]
pub struct Plain<W>(PhantomData<W>);

impl<W> Default for Plain<W> {
    fn default() -> Self {
        Plain(PhantomData)
    }
}

/// The physical limit.
pub type Flush1 = Plain<Lines>;
/// The least that an engine with one fence does.
pub type Redo1 = Plain<Redo>;
/// The record with one fence, and without a log.
pub type QuadraVr = Plain<Quadra>;
/// The record with two.
pub type TrinityVr = Plain<Trinity>;
/// Plain memory.
pub type Volatile = Plain<Forgotten>;

impl<W: Written> Side for Plain<W> {
    fn name(&self) -> &str {
        W::NAME
    }

    fn role(&self) -> Role {
        W::ROLE
    }

    fn domain(&self) -> &str {
        W::DOMAIN
    }

    fn cells(&self, dir: &Path, ring: &[u32], _objects_max: usize) -> Result<Box<dyn side::Cells>> {
        Ok(Box::new(cells::PlainCells::new(self.memory(dir)?, ring)?))
    }

    fn swap(&self, dir: &Path, count: usize) -> Result<Box<dyn side::Swap>> {
        Ok(Box::new(swap::PlainSwap::new(self.memory(dir)?, count)?))
    }

    fn list(&self, dir: &Path) -> Result<Box<dyn side::List>> {
        Ok(Box::new(list::List::new(self.memory(dir)?)?))
    }

    fn tree(&self, dir: &Path) -> Result<Box<dyn side::Tree>> {
        Ok(Box::new(tree::Tree::new(self.memory(dir)?)?))
    }

    fn map(&self, dir: &Path, bucket_bits: u32) -> Result<Box<dyn side::Map>> {
        Ok(Box::new(map::Map::new(self.memory(dir)?, bucket_bits)?))
    }

    fn shared(&self, dir: &Path, shape: SharedShape) -> Result<Box<dyn side::Shared>> {
        let memory = self.memory(dir)?;
        Ok(match shape {
            SharedShape::Tree => Box::new(Locked::new(tree::Tree::new(memory)?)),
            SharedShape::Map { bucket_bits } => {
                Box::new(Locked::new(map::Map::<_, Value>::new(memory, bucket_bits)?))
            }
            SharedShape::Sorted => Box::new(Locked::new(sorted::List::new(memory)?)),
            SharedShape::RedBlack => Box::new(Locked::new(redblack::Tree::new(memory)?)),
            SharedShape::Fixed => Box::new(Locked::new(map::Map::fixed(memory)?)),
            SharedShape::Hash => Box::new(Locked::new(hash::Hash::new(memory)?)),
        })
    }
}

impl<W: Written> Plain<W> {
    fn memory(&self, dir: &Path) -> Result<PlainMemory<W>> {
        let arena = Arena::create(&dir.join(W::NAME))?;
        let written = W::new(&arena, dir)?;
        PlainMemory::new(arena, written)
    }
}
