//! What may be freed: objects that no root leads to, cycles of counted pointers above all.
//!
//! *Live* is what the roots lead to through strong pointers; weak ones keep only what is not counted. A counted object
//! that is not live goes, but where live objects have weak pointers to it, it stays as a *husk*, as if its last strong
//! pointer had been dropped: strong count 0, value zero, and a weak count for those. What live objects count of
//! pointers that go with the garbage is to be taken off.
//!
//! References in a limbo are garbage, too: somebody has dropped them, and what hindered counting them off is over when
//! nobody uses the store.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::fmt;
use std::path::Path;
use std::sync::Arc;

use durum_format::Uuid;

use super::counted::pointers_to_counted;
use super::cycles::components;
use super::graph::Graph;
use super::structure::{self, LiveObject, Objects};
use super::{CheckOptions, CheckReport, Seen, counted, reach};
use crate::error::{Error, Result};
use crate::inspect::ReadOnlyStore;
use crate::model::{ProgressFn, RecoveryReport};

/// What garbage is looked for.
#[derive(Clone, Default)]
pub struct GarbageOptions {
    /// Only in the pool of this name; what objects of other pools lead to is live then, whatever leads to those.
    pub pool: Option<String>,
    /// As [`CheckOptions::untyped_hold_pointers`](super::CheckOptions::untyped_hold_pointers).
    pub untyped_hold_pointers: bool,
    /// Called as the search goes on.
    pub progress: Option<Arc<ProgressFn>>,
}

impl fmt::Debug for GarbageOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("GarbageOptions")
            .field("pool", &self.pool)
            .field("untyped_hold_pointers", &self.untyped_hold_pointers)
            .field("progress", &self.progress.is_some())
            .finish()
    }
}

/// The garbage of a store.
#[derive(Clone, Debug, Default, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct Garbage {
    /// The pools that were looked at, in order of name.
    pub pools: Vec<PoolGarbage>,
    /// What to free. Nothing in one group concerns another one.
    pub groups: Vec<GarbageGroup>,
    /// What recovery would do first, where it was not done; the search sees the store as that would leave it.
    pub pending: RecoveryReport,
}

/// The garbage of a pool, in numbers.
#[derive(Clone, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct PoolGarbage {
    /// The pool's name.
    pub name: String,
    /// Objects that go.
    pub objects: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Counted objects that lose their value and stay, because there are weak pointers to them.
    pub husks: u64,
}

/// Garbage of pools that point to each other.
#[derive(Clone, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct GarbageGroup {
    /// The names of the pools that it concerns.
    pub pools: Vec<String>,
    /// The objects, in order of `component`. None leads to one before it, except within a component: so what is freed
    /// first is not missed by what is freed later.
    pub objects: Vec<GarbageObject>,
    /// The limbos of the pools.
    pub limbos: Vec<GarbageLimbo>,
}

/// References in a limbo, all of which are garbage.
#[derive(Clone, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct GarbageLimbo {
    /// Address of the pointer to the first one: of those that are freed it has to be led past.
    pub head: u64,
    /// Their addresses, in order, in which they are among the group's objects, too.
    pub references: Vec<u64>,
}

/// An object that is garbage.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct GarbageObject {
    /// Where it lies.
    pub address: u64,
    /// Its size in bytes.
    pub size: u64,
    /// Objects that lead to each other have the same number, others have different ones.
    pub component: u32,
    /// Weak pointers from live objects. If there are any the object is counted, and stays as a husk; else it goes.
    pub weak: u64,
    /// Its pointers to counted objects outside of its component.
    pub references: Vec<GarbageReference>,
}

/// A counted pointer that goes with the object it lies in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct GarbageReference {
    /// The object that it leads to.
    pub target: u64,
    /// Whether it is a weak one.
    pub is_weak: bool,
}

/// Looks for garbage in a store that nobody has open. Writes nothing; after an unclean end the store is seen as
/// recovery would leave it.
///
/// # Errors
/// `StoreMissing`, `StoreBusy`, `PoolMissing`; `GarbageUnjudged` where live objects may hold pointers that are not
/// known; `GarbageDamaged` where [`check`](super::check) would find damage; `PoolQuarantined`; `PartsKept`; those of
/// [`check`](super::check).
pub fn find_garbage(path: &Path, options: &GarbageOptions) -> Result<Garbage> {
    let mut report = CheckReport::default();
    let Some(seen) = Seen::read(path, &check_options(options), &mut report)? else {
        return Err(damaged(path, &report));
    };
    seen.reader.ensure_nothing_kept("cleaned")?;
    find(&seen.reader, &seen.objects, options, report)
}

/// Looks for garbage in what a reader sees.
pub(crate) fn find_in(reader: &ReadOnlyStore, options: &GarbageOptions) -> Result<Garbage> {
    let mut report = CheckReport::default();
    let objects = structure::check(reader, &check_options(options), &mut report)?;
    find(reader, &objects, options, report)
}

fn check_options(options: &GarbageOptions) -> CheckOptions {
    CheckOptions {
        progress: options.progress.clone(),
        untyped_hold_pointers: options.untyped_hold_pointers,
        ..CheckOptions::default()
    }
}

fn damaged(path: &Path, report: &CheckReport) -> Error {
    let first = report.damages().next();
    Error::GarbageDamaged {
        store: path.to_owned(),
        damages: report.damages().count(),
        first: first.map(ToString::to_string).unwrap_or_default(),
    }
}

fn find(
    reader: &ReadOnlyStore,
    all: &Objects,
    options: &GarbageOptions,
    mut report: CheckReport,
) -> Result<Garbage> {
    let mut chosen: BTreeMap<Uuid, PoolGarbage> = BTreeMap::new();
    for pool in reader.pools() {
        if let Some(note) = pool.quarantine {
            return Err(Error::quarantined(reader.path(), pool.name, note));
        }
        if options.pool.as_ref().is_none_or(|name| *name == pool.name) {
            let garbage = PoolGarbage {
                name: pool.name,
                ..PoolGarbage::default()
            };
            chosen.insert(pool.uuid, garbage);
        }
    }
    if let (Some(name), true) = (&options.pool, chosen.is_empty()) {
        return Err(Error::no_pool(reader.path(), name));
    }
    let mut graph = Graph::build(reader, all, &check_options(options), &mut report)?;
    counted::check(&graph, &mut report);
    let is_chosen = |pool: Option<Uuid>| pool.is_some_and(|pool| chosen.contains_key(&pool));
    let objects = &all.objects;
    graph
        .limbos
        .retain(|limbo| is_chosen(all.pool_of(&objects[limbo.holder])));
    let limbos = graph.limbos.iter();
    let begin: HashSet<_> = limbos.map(|limbo| (limbo.holder, limbo.first)).collect();
    if !begin.is_empty() {
        let edges = &mut graph.edges;
        edges.retain(|holder, edge| !begin.contains(&(holder, edge.target)));
    }
    let is_root = |_, object: &LiveObject| !is_chosen(all.pool_of(object));
    let live = graph.reach(is_root);
    let doubts = reach::doubts(&graph, &live);
    let in_use = graph.surely(&live, is_root);
    let is_leak = |index: usize| reach::is_leak(&in_use, &doubts, index);
    graph.tell_dangling(is_leak, &mut report);
    if !report.is_sound() || all.is_partial() {
        return Err(damaged(reader.path(), &report));
    }
    // Also in pools that were not chosen: pointers may lead from one pool to another.
    if let Some((pool, reason)) = doubts.into_iter().next()
        && live.contains(&false)
    {
        let pools = reader.pools();
        let pool = pools.into_iter().find(|summary| summary.uuid == pool);
        return Err(Error::GarbageUnjudged {
            store: reader.path().to_owned(),
            pool: pool.map(|pool| pool.name).unwrap_or_default(),
            reason,
        });
    }
    let groups = list(&graph, &live, &mut chosen);
    let mut pools: Vec<PoolGarbage> = chosen.into_values().collect();
    pools.sort_by(|left, right| left.name.cmp(&right.name));
    Ok(Garbage {
        pools,
        groups,
        pending: reader.pending().clone(),
    })
}

/// Puts the garbage in order, and counts it in `pools`.
fn list(
    graph: &Graph<'_>,
    live: &[bool],
    pools: &mut BTreeMap<Uuid, PoolGarbage>,
) -> Vec<GarbageGroup> {
    let all = graph.all;
    let garbage: Vec<usize> = (0..live.len()).filter(|at| !live[*at]).collect();
    let node_of = |index: u32| garbage.binary_search(&(index as usize)).ok();
    // Weak pointers count here, too: who is freed later must not point to who is freed before.
    let next = graph.edges.among(&garbage, |_| true);
    let component = components(&next);
    let weak = pointers_to_counted(graph, |index| live[index]);
    let groups = Groups::of(graph, &garbage);
    let mut order: Vec<usize> = (0..garbage.len()).collect();
    order.sort_by_key(|node| std::cmp::Reverse(component[*node]));
    let last = component.iter().max().copied().unwrap_or(0);
    let mut found: BTreeMap<usize, GarbageGroup> = BTreeMap::new();
    for node in order {
        let index = garbage[node];
        let object = &all.objects[index];
        let references = graph.edges.of(index).iter().filter(|edge| {
            let is_inside =
                node_of(edge.target).is_some_and(|target| component[target] == component[node]);
            edge.is_at_start && graph.counted.contains_key(&edge.target) && !is_inside
        });
        let item = GarbageObject {
            address: object.address,
            size: object.size,
            component: last - component[node],
            weak: weak.get(&(index as u32)).map_or(0, |tally| tally.weak),
            references: references
                .map(|edge| GarbageReference {
                    target: all.objects[edge.target as usize].address,
                    is_weak: edge.is_weak,
                })
                .collect(),
        };
        let Some(pool) = all.pool_of(object) else {
            continue;
        };
        if let Some(pool) = pools.get_mut(&pool) {
            match item.weak {
                0 => {
                    pool.objects += 1;
                    pool.bytes += item.size;
                }
                _ => pool.husks += 1,
            }
        }
        let group = groups.of_pool(pool);
        found.entry(group).or_default().objects.push(item);
    }
    for limbo in &graph.limbos {
        let holder = &all.objects[limbo.holder];
        let Some(pool) = all.pool_of(holder) else {
            continue;
        };
        let references = graph.lost_references(limbo.first).into_iter();
        let group = found.entry(groups.of_pool(pool)).or_default();
        group.limbos.push(GarbageLimbo {
            head: holder.address + limbo.offset,
            references: references
                .map(|index| all.objects[index as usize].address)
                .collect(),
        });
    }
    for summary in graph.reader.pools() {
        if let Some(group) = found.get_mut(&groups.of_pool(summary.uuid)) {
            group.pools.push(summary.name);
        }
    }
    found.into_values().collect()
}

/// Pools that can be dealt with one after the other only if they are in different groups.
struct Groups(HashMap<Uuid, usize>);

impl Groups {
    fn of(graph: &Graph<'_>, garbage: &[usize]) -> Groups {
        let all = graph.all;
        let pools = graph.reader.pools().into_iter().enumerate();
        let mut groups: HashMap<Uuid, usize> =
            pools.map(|(number, pool)| (pool.uuid, number)).collect();
        for index in garbage {
            let Some(from) = all.pool_of(&all.objects[*index]) else {
                continue;
            };
            for edge in graph.edges.of(*index) {
                let to = all.pool_of(&all.objects[edge.target as usize]);
                let to = to.and_then(|pool| groups.get(&pool).copied());
                if let (Some(from), Some(to)) = (groups.get(&from).copied(), to) {
                    let merged = groups.values_mut().filter(|group| **group == to);
                    merged.for_each(|group| *group = from);
                }
            }
        }
        Groups(groups)
    }

    fn of_pool(&self, pool: Uuid) -> usize {
        self.0.get(&pool).copied().unwrap_or(usize::MAX)
    }
}
