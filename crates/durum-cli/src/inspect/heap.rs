//! Free space of a pool, by size, and its objects by type.

use std::collections::BTreeMap;
use std::io::Write;
use std::time::Instant;

use durum_format::extent::{self, ExtentKind};
use durum_format::{GRANULE, puddle};
use durum_service::PuddleView;
use serde_json::{Value as Json, json};

use super::damages::Damages;
use super::pool::{PoolView, damaged};
use super::threads;
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
    pub(crate) damages: Damages,
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
        Self::of_puddles(pool, &pool.puddles, None)
    }

    /// What is in puddles of the pool: in all of these, or in the first ones, as many as can be begun until a moment,
    /// and one at least. Several threads read, as most of the time goes into small reads.
    pub(crate) fn of_puddles(
        pool: &PoolView<'_>,
        views: &[PuddleView],
        until: Option<Instant>,
    ) -> Self {
        let of_one = |at| {
            views
                .get(at)
                .map(|view: &PuddleView| Self::of_puddle(pool, view))
        };
        let parts = threads::in_order(views.len(), until, of_one);
        let mut heap = Self::default();
        parts
            .into_iter()
            .flatten()
            .for_each(|part| heap.append(part));
        heap
    }

    fn append(&mut self, mut part: Self) {
        self.puddles.append(&mut part.puddles);
        for (name, (objects, bytes)) in part.types {
            let entry = self.types.entry(name).or_default();
            entry.0 += objects;
            entry.1 += bytes;
        }
        let orders = self.free_blocks.len().max(part.free_blocks.len());
        self.free_blocks.resize(orders, 0);
        for (all, more) in self.free_blocks.iter_mut().zip(part.free_blocks) {
            *all += more;
        }
        self.free_elements.0 += part.free_elements.0;
        self.free_elements.1 += part.free_elements.1;
        self.damages.append(part.damages);
    }

    fn of_puddle(pool: &PoolView<'_>, view: &PuddleView) -> Self {
        let mut heap = Self::default();
        let header = view.header();
        let granules = puddle::heap_size(header.size) / GRANULE;
        let mut free_from = 0;
        let mut free = 0;
        let mut objects = 0;
        // By the ids that objects have, which may mean the same.
        let mut by_id = BTreeMap::<u64, (u64, u64)>::new();
        for extent in extent::extents(view, header) {
            let extent = match extent {
                Ok(extent) => extent,
                Err(error) => {
                    heap.damages.add(damaged(view, error));
                    continue;
                }
            };
            free += heap.add_free(free_from, extent.granule());
            free_from = extent.granule() + extent.granules();
            let allocated = extent.allocated();
            objects += allocated;
            let (capacity, each) = match (extent.slab(), extent.header().kind) {
                (Some(slab), _) => (slab.geometry().capacity, slab.element_size()),
                (None, ExtentKind::Object { size, .. }) => (1, size),
                (None, ExtentKind::Slab { .. }) => (0, 0),
            };
            let unused = capacity.saturating_sub(allocated);
            heap.free_elements.0 += unused;
            heap.free_elements.1 += unused * each;
            // A slab that is empty keeps its type, of which there is no object.
            if allocated > 0 {
                let entry = by_id.entry(extent.type_id()).or_default();
                entry.0 += allocated;
                entry.1 += allocated * each;
            }
        }
        free += heap.add_free(free_from, granules);
        let mut types = BTreeMap::<u64, (u64, u64)>::new();
        for (id, (objects, bytes)) in by_id {
            let entry = types.entry(pool.meaning(id)).or_default();
            entry.0 += objects;
            entry.1 += bytes;
        }
        for (id, sum) in &types {
            let entry = heap.types.entry(pool.type_name(*id)).or_default();
            entry.0 += sum.0;
            entry.1 += sum.1;
        }
        let file = view.path().file_name().unwrap_or_default();
        heap.puddles.push(PuddleUse {
            file: file.to_string_lossy().into_owned(),
            address: header.address,
            size: header.size,
            is_root: header.is_root,
            objects,
            free: free * GRANULE,
            types,
        });
        heap
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
        for (heading, is_own) in [("TYPE", false), ("OF DURUM ITSELF", true)] {
            let types = self.types.iter();
            let types: Vec<_> = types
                .filter(|(name, _)| is_of_durum(name) == is_own)
                .collect();
            if types.is_empty() && is_own {
                continue;
            }
            let mut rows = output::heading(&format!("{heading}|OBJECTS|BYTES"));
            for (name, (objects, bytes)) in types {
                rows.push(vec![name.clone(), grouped(*objects), size(*bytes)]);
            }
            output::table(out, &rows, &[1, 2])?;
            writeln!(out)?;
        }
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
        if elements > 0 {
            writeln!(
                out,
                "and {} of slabs ({})",
                count(elements, "free element"),
                size(bytes)
            )?;
        }
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

/// Whether a library or a runtime of durum has made the objects of a type, and not the program.
fn is_of_durum(name: &str) -> bool {
    name.starts_with("durum.") || name.starts_with("kv ") || name.starts_with("nvl ")
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
