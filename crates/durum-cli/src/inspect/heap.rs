//! Free space of a pool, by size, and its objects by type.

use std::collections::BTreeMap;
use std::io::Write;

use durum_format::extent::{self, ExtentKind};
use durum_format::{GRANULE, puddle};
use durum_service::PuddleView;
use serde_json::{Value as Json, json};

use super::pool::{PoolView, damaged};
use crate::failure::Failure;
use crate::output::{self, count, grouped, size};

/// The longest bar of the histogram.
const BAR_MAX: u64 = 40;

#[derive(Default)]
pub(crate) struct Heap {
    pub(crate) puddles: Vec<PuddleUse>,
    /// Objects and bytes by type.
    types: BTreeMap<String, (u64, u64)>,
    /// Free blocks by size: entry k counts blocks of `GRANULE << k` bytes.
    free_blocks: Vec<u64>,
    /// Elements of slabs that are free, and their bytes.
    free_elements: (u64, u64),
    pub(crate) damages: Vec<String>,
}

pub(crate) struct PuddleUse {
    file: String,
    address: u64,
    size: u64,
    is_root: bool,
    pub(crate) objects: u64,
    free: u64,
    /// Objects and bytes by the id of their type, as it is meant now.
    pub(crate) types: BTreeMap<u64, (u64, u64)>,
}

impl Heap {
    pub(crate) fn of(pool: &PoolView<'_>) -> Self {
        let mut heap = Self::default();
        for view in &pool.puddles {
            heap.add(pool, view);
        }
        heap
    }

    /// Adds what is in a puddle of the pool.
    pub(crate) fn add(&mut self, pool: &PoolView<'_>, view: &PuddleView) {
        let header = view.header();
        let granules = puddle::heap_size(header.size) / GRANULE;
        let mut free_from = 0;
        let mut free = 0;
        let mut objects = 0;
        let mut types = BTreeMap::<u64, (u64, u64)>::new();
        for extent in extent::extents(view, header) {
            let extent = match extent {
                Ok(extent) => extent,
                Err(error) => {
                    self.damages.push(damaged(view, error));
                    continue;
                }
            };
            free += self.add_free(free_from, extent.granule());
            free_from = extent.granule() + extent.granules();
            objects += extent.allocated();
            let (capacity, each) = match (extent.slab(), extent.header().kind) {
                (Some(slab), _) => (slab.geometry().capacity, slab.element_size()),
                (None, ExtentKind::Object { size, .. }) => (1, size),
                (None, ExtentKind::Slab { .. }) => (0, 0),
            };
            let unused = capacity.saturating_sub(extent.allocated());
            self.free_elements.0 += unused;
            self.free_elements.1 += unused * each;
            let entry = types.entry(pool.meaning(extent.type_id())).or_default();
            entry.0 += extent.allocated();
            entry.1 += extent.allocated() * each;
        }
        for (id, (objects, bytes)) in &types {
            let entry = self.types.entry(pool.type_name(*id)).or_default();
            entry.0 += objects;
            entry.1 += bytes;
        }
        free += self.add_free(free_from, granules);
        let file = view.path().file_name().unwrap_or_default();
        self.puddles.push(PuddleUse {
            file: file.to_string_lossy().into_owned(),
            address: header.address,
            size: header.size,
            is_root: header.is_root,
            objects,
            free: free * GRANULE,
            types,
        });
    }

    /// Counts the aligned blocks that free granules are made of. Gives the number of granules.
    fn add_free(&mut self, mut from: u64, to: u64) -> u64 {
        let granules = to.saturating_sub(from);
        while from < to {
            let aligned = if from == 0 { 63 } else { from.trailing_zeros() };
            let order = aligned.min((to - from).ilog2()) as usize;
            if self.free_blocks.len() <= order {
                self.free_blocks.resize(order + 1, 0);
            }
            self.free_blocks[order] += 1;
            from += 1 << order;
        }
        granules
    }

    fn blocks(&self) -> impl Iterator<Item = (u64, u64)> + '_ {
        let blocks = self.free_blocks.iter().enumerate();
        blocks
            .map(|(order, count)| (GRANULE << order, *count))
            .filter(|(_, count)| *count > 0)
    }

    pub(crate) fn print(&self, out: &mut dyn Write) -> Result<(), Failure> {
        let mut rows = output::heading("PUDDLE|ADDRESS|SIZE|OBJECTS|FREE|");
        for puddle in &self.puddles {
            rows.push(vec![
                puddle.file.clone(),
                format!("{:#x}", puddle.address),
                size(puddle.size),
                grouped(puddle.objects),
                size(puddle.free),
                String::from(if puddle.is_root { "root" } else { "" }),
            ]);
        }
        output::table(out, &rows, &[2, 3, 4])?;
        writeln!(out)?;
        let mut rows = output::heading("TYPE|OBJECTS|BYTES");
        for (name, (objects, bytes)) in &self.types {
            rows.push(vec![name.clone(), grouped(*objects), size(*bytes)]);
        }
        output::table(out, &rows, &[1, 2])?;
        writeln!(out)?;
        let mut rows = output::heading("FREE BLOCKS OF|COUNT|BYTES|");
        let most = self
            .blocks()
            .map(|(each, count)| each * count)
            .max()
            .unwrap_or(1);
        for (each, count) in self.blocks() {
            let bar = (each * count * BAR_MAX).div_ceil(most) as usize;
            rows.push(vec![
                size(each),
                grouped(count),
                size(each * count),
                "#".repeat(bar),
            ]);
        }
        output::table(out, &rows, &[0, 1, 2])?;
        let (elements, bytes) = self.free_elements;
        writeln!(
            out,
            "and {} of slabs ({})",
            count(elements, "free element"),
            size(bytes)
        )?;
        Ok(())
    }

    pub(crate) fn to_json(&self) -> Json {
        let puddles = self.puddles.iter().map(PuddleUse::to_json);
        let types = self.types.iter().map(
            |(name, (objects, bytes))| json!({ "type": name, "objects": objects, "bytes": bytes }),
        );
        let blocks = self
            .blocks()
            .map(|(each, count)| json!({ "bytes": each, "count": count }));
        json!({
            "puddles": puddles.collect::<Vec<_>>(),
            "types": types.collect::<Vec<_>>(),
            "free_blocks": blocks.collect::<Vec<_>>(),
            "free_elements": { "count": self.free_elements.0, "bytes": self.free_elements.1 },
        })
    }
}

impl PuddleUse {
    pub(crate) fn to_json(&self) -> Json {
        json!({
            "puddle": self.file,
            "address": format!("{:#x}", self.address),
            "bytes": self.size,
            "root": self.is_root,
            "objects": self.objects,
            "free_bytes": self.free,
        })
    }
}
