//! Puts of several threads: a map for each thread, all in one pool.

use super::memory::DurumMemory;
use crate::error::Result;
use crate::side::{self, PutsShape};
use crate::structures::Stored;
use crate::structures::map::{Map, Node};

/// The maps, by thread. Their values have `N` bytes.
pub(super) struct Maps<const N: usize>(Vec<Map<DurumMemory, [u8; N]>>);

impl<const N: usize> Maps<N>
where
    Node<[u8; N]>: Stored,
{
    /// Empty maps, with about a bucket for each key.
    pub(super) fn new(shape: &PutsShape, memory: impl Fn() -> DurumMemory) -> Result<Self> {
        let bucket_bits = (shape.keys_each_max as u64).next_power_of_two().ilog2();
        let maps = (0..shape.threads).map(|_| Map::new(memory(), bucket_bits));
        Ok(Maps(maps.collect::<Result<_>>()?))
    }
}

impl<const N: usize> side::Puts for Maps<N>
where
    Node<[u8; N]>: Stored,
{
    fn handles(&mut self) -> Vec<Box<dyn side::Put + Send + '_>> {
        let handle = |map| Box::new(map) as Box<dyn side::Put + Send>;
        self.0.iter_mut().map(handle).collect()
    }

    fn visit(&mut self, see: &mut dyn FnMut(u64, &[u8])) -> Result<()> {
        self.0.iter().for_each(|map| map.visit(see));
        Ok(())
    }
}
