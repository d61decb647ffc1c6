//! What the roots lead to: objects that nothing leads to are leaks.

use std::collections::{BTreeMap, BTreeSet};

use durum_format::Uuid;

use super::cycles::components;
use super::graph::{Graph, WITHOUT_TYPE};
use super::structure::Objects;
use super::{
    CheckOptions, CheckReport, FINDINGS_MAX, Leak, Leaks, OBJECTS_AT_ONCE, PoolCheck, Readable,
    Severity, counted,
};
use crate::error::Result;
use crate::inspect::ReadOnlyStore;
use crate::model::Stage;

/// Checks the pointers of all objects and judges leaks pool by pool.
pub(super) fn check(
    reader: &ReadOnlyStore,
    all: &Objects,
    options: &CheckOptions,
    report: &mut CheckReport,
) -> Result<()> {
    let graph = Graph::build(reader, all, options, report)?;
    counted::check(&graph, report);
    let reached = graph.reach(|_, _| false);
    let mut doubts = doubts(&graph, &reached);
    if all.is_partial() {
        for pool in reader.pools() {
            let doubt = doubts.entry(pool.uuid);
            doubt.or_insert_with(|| "some of the store's puddles cannot be read".to_owned());
        }
    }
    let in_use = graph.surely(&reached, |_, _| false);
    graph.tell_dangling(|index| is_leak(&in_use, &doubts, index), report);
    judge(&graph, &reached, doubts, options, report)
}

/// Whether nothing leads to an object, without a doubt about any pool: pointers may lead from one to another.
pub(super) fn is_leak(reached: &[bool], doubts: &BTreeMap<Uuid, String>, index: usize) -> bool {
    doubts.is_empty() && reached.get(index) == Some(&false)
}

/// Reasons why the objects of a pool that nothing leads to are not surely leaks, by pool.
pub(super) fn doubts(graph: &Graph<'_>, reached: &[bool]) -> BTreeMap<Uuid, String> {
    let mut reasons: BTreeMap<Uuid, BTreeSet<&'static str>> = BTreeMap::new();
    for (index, reason) in &graph.opaque {
        if reached.get(*index) == Some(&true)
            && let Some(object) = graph.all.objects.get(*index)
            && let Some(pool) = graph.all.pool_of(object)
        {
            reasons.entry(pool).or_default().insert(reason);
        }
    }
    let text = |reasons: BTreeSet<&str>| {
        let cure = match reasons.iter().eq([&WITHOUT_TYPE]) {
            true => {
                " (`--untyped-hold-pointers` takes those of their words for some that are addresses of objects)"
            }
            false => "",
        };
        format!(
            "the root leads to {}, which may hold pointers{cure}",
            reasons.into_iter().collect::<Vec<_>>().join(" and ")
        )
    };
    reasons
        .into_iter()
        .map(|(pool, reasons)| (pool, text(reasons)))
        .collect()
}

fn judge(
    graph: &Graph<'_>,
    reached: &[bool],
    mut doubts: BTreeMap<Uuid, String>,
    options: &CheckOptions,
    report: &mut CheckReport,
) -> Result<()> {
    let all = graph.all;
    let pools = graph.reader.pools();
    let mut counts = count(graph, reached, &doubts, options)?;
    // That takes a while where millions are lost, and nobody may want it any more: `count` has looked before.
    let parts = Parts::of(graph, reached);
    let total = all.objects.len();
    options.tell(graph.reader, Stage::Leaks, total, total)?;
    for summary in pools {
        let count = counts.remove(&summary.uuid).unwrap_or_default();
        let mut check = PoolCheck {
            name: summary.name,
            puddles: summary.puddles,
            readable: readable(all, summary.uuid),
            objects: count.objects,
            bytes: count.bytes,
            has_root: count.has_root,
            leaks: Leaks::Judged {
                objects: 0,
                bytes: 0,
            },
            in_cycles: 0,
        };
        let lost = count.lost;
        check.leaks = match doubts.remove(&summary.uuid) {
            Some(reason) if !lost.is_empty() => Leaks::Unjudged {
                reason,
                objects: lost.len() as u64,
                bytes: bytes_of(graph, &lost),
            },
            _ => {
                let is_in_cycle = |index: &&usize| parts.of_object(**index) == Part::Cycle;
                check.in_cycles = lost.iter().filter(is_in_cycle).count() as u64;
                report_leaks(graph, &parts, &lost, report)
            }
        };
        report.pools.push(check);
    }
    Ok(())
}

/// What was counted in a pool.
#[derive(Default)]
struct Count {
    objects: u64,
    bytes: u64,
    has_root: bool,
    /// The indices of objects that nothing leads to.
    lost: Vec<usize>,
}

/// Counts the objects of each pool, and tells of those that nothing leads to, where there is no doubt about that.
fn count(
    graph: &Graph<'_>,
    reached: &[bool],
    doubts: &BTreeMap<Uuid, String>,
    options: &CheckOptions,
) -> Result<BTreeMap<Uuid, Count>> {
    let all = graph.all;
    let total = all.objects.len();
    let mut counts = BTreeMap::<Uuid, Count>::new();
    for (index, object) in all.objects.iter().enumerate() {
        if index % OBJECTS_AT_ONCE == 0 {
            options.tell(graph.reader, Stage::Leaks, index, total)?;
        }
        let Some(puddle) = all.puddles.get(object.puddle) else {
            continue;
        };
        let count = counts.entry(puddle.pool).or_default();
        count.objects += 1;
        count.bytes += object.size;
        count.has_root |= object.is_root;
        if reached.get(index) == Some(&true) {
            continue;
        }
        count.lost.push(index);
        if let Some(leaks) = &options.leaks
            && !doubts.contains_key(&puddle.pool)
        {
            leaks(&Leak {
                pool: puddle.pool,
                puddle: puddle.view.header().address,
                address: object.address,
                size: object.size,
                type_id: object.type_id,
            });
        }
    }
    options.tell(graph.reader, Stage::Leaks, total, total)?;
    Ok(counts)
}

fn readable(all: &Objects, pool: Uuid) -> Readable {
    let is_there = all.puddles.iter().any(|puddle| puddle.pool == pool);
    match (all.partial.contains(&pool), is_there) {
        (false, _) => Readable::Whole,
        (true, true) => Readable::Partly,
        (true, false) => Readable::Not,
    }
}

/// What a leak has to do with cycles of counted pointers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Part {
    /// Nothing: a program lost it.
    None,
    Cycle,
    /// A cycle leads to it.
    Held,
}

/// What leaks have to do with cycles.
struct Parts {
    /// The indices of the objects, in order.
    lost: Vec<usize>,
    parts: Vec<Part>,
}

impl Parts {
    fn of(graph: &Graph<'_>, reached: &[bool]) -> Parts {
        let lost: Vec<usize> = (0..reached.len()).filter(|at| !reached[*at]).collect();
        let next = graph.edges.among(&lost, |edge| graph.keeps(edge));
        let component = components(&next);
        // Components of which a counted object is part, and how many objects are.
        let mut is_counted = vec![false; next.len()];
        let mut members = vec![0_usize; next.len()];
        for (node, index) in lost.iter().enumerate() {
            let component = component[node] as usize;
            is_counted[component] |= graph.counted.contains_key(&(*index as u32));
            members[component] += 1;
        }
        let mut parts = vec![Part::None; next.len()];
        let mut queue: Vec<usize> = Vec::new();
        for node in 0..next.len() {
            let component = component[node] as usize;
            let leads_to_itself = members[component] > 1
                || next.of(node).iter().any(|edge| edge.target == node as u32);
            if is_counted[component] && leads_to_itself {
                parts[node] = Part::Cycle;
                queue.push(node);
            }
        }
        while let Some(node) = queue.pop() {
            for edge in next.of(node) {
                let target = edge.target as usize;
                if parts[target] == Part::None {
                    parts[target] = Part::Held;
                    queue.push(target);
                }
            }
        }
        Parts { lost, parts }
    }

    fn of_object(&self, index: usize) -> Part {
        let node = self.lost.binary_search(&index).ok();
        node.map_or(Part::None, |node| self.parts[node])
    }
}

fn report_leaks(
    graph: &Graph<'_>,
    parts: &Parts,
    lost: &[usize],
    report: &mut CheckReport,
) -> Leaks {
    let (told, more) = lost.split_at(lost.len().min(FINDINGS_MAX as usize));
    for index in told {
        let Some(object) = graph.all.objects.get(*index) else {
            continue;
        };
        let Some(puddle) = graph.all.puddles.get(object.puddle) else {
            continue;
        };
        let name = graph.type_name(object).unwrap_or("unknown");
        let what = match parts.of_object(*index) {
            Part::None => "nothing leads to",
            Part::Cycle => {
                "part of a cycle of counted pointers (`durum gc` frees it), to which nothing else leads:"
            }
            Part::Held => "held by a cycle of counted pointers only (`durum gc` frees it):",
        };
        let text = format!(
            "a leak: {what} the object of {} bytes and type {name}",
            object.size
        );
        let offset = object.address - puddle.view.header().address;
        report.add(Severity::Leak, &puddle.file, Some(offset), text);
    }
    if !more.is_empty() {
        let text = format!(
            "a leak: {} more objects of {} bytes together",
            more.len(),
            bytes_of(graph, more)
        );
        report.add(Severity::Leak, graph.reader.path(), None, text);
    }
    Leaks::Judged {
        objects: lost.len() as u64,
        bytes: bytes_of(graph, lost),
    }
}

fn bytes_of(graph: &Graph<'_>, objects: &[usize]) -> u64 {
    let objects = objects
        .iter()
        .filter_map(|index| graph.all.objects.get(*index));
    objects.map(|object| object.size).sum()
}
