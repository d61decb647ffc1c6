//! Counted objects: their counts must be the numbers of the pointers that lead to them.

use std::cmp::Ordering;
use std::collections::{BTreeSet, HashMap};

use durum_format::Uuid;

use super::graph::Graph;
use super::{CheckReport, FINDINGS_MAX, Severity};
use crate::roles::Tally;

/// The pointers that lead to counted objects, from the objects that `from` says; by the index of the object.
pub(super) fn pointers_to_counted(
    graph: &Graph<'_>,
    from: impl Fn(usize) -> bool,
) -> HashMap<u32, Tally> {
    let mut found: HashMap<u32, Tally> = HashMap::new();
    for index in (0..graph.all.objects.len()).filter(|index| from(*index)) {
        for edge in graph.edges.of(index) {
            if edge.is_at_start && graph.counted.contains_key(&edge.target) {
                let tally = found.entry(edge.target).or_default();
                match edge.is_weak {
                    true => tally.weak += 1,
                    false => tally.strong += 1,
                }
            }
        }
    }
    found
}

/// Compares counts with pointers. A count may be higher than the number of pointers that are known where others may
/// exist.
pub(super) fn check(graph: &Graph<'_>, report: &mut CheckReport) {
    let all = graph.all;
    let unclear: BTreeSet<Uuid> = graph
        .opaque
        .keys()
        .filter_map(|index| all.pool_of(all.objects.get(*index)?))
        .chain(graph.guessed.iter().copied())
        .collect();
    let found = pointers_to_counted(graph, |_| true);
    let mut indices: Vec<u32> = graph.counted.keys().copied().collect();
    indices.sort_unstable();
    // Findings that are not told one by one.
    let (mut told, mut more, mut worst) = (0, 0, Severity::Leak);
    for index in indices {
        let counts = graph.counted[&index];
        let pointers = found.get(&index).copied().unwrap_or_default();
        let object = &all.objects[index as usize];
        let Some(puddle) = all.puddles.get(object.puddle) else {
            continue;
        };
        let is_clear = !all.is_partial() && !unclear.contains(&puddle.pool);
        for (kind, count, pointers) in [
            ("strong", counts.strong, pointers.strong),
            ("weak", counts.weak, pointers.weak),
        ] {
            let (severity, consequence) = match count.cmp(&pointers) {
                Ordering::Less => (Severity::Damage, "it would be freed too early"),
                Ordering::Greater if is_clear => (
                    Severity::Leak,
                    "it will not be freed when the last of them goes",
                ),
                _ => continue,
            };
            if told == FINDINGS_MAX {
                more += 1;
                worst = worst.max(severity);
                continue;
            }
            told += 1;
            let text = format!(
                "the object of type {} counts {count} {kind} pointers, and {pointers} lead to it: {consequence}",
                graph.type_name(object).unwrap_or("unknown")
            );
            let offset = object.address - puddle.view.header().address;
            report.add(severity, &puddle.file, Some(offset), text);
        }
    }
    if more > 0 {
        let text = format!("{more} more counts are not the number of pointers");
        report.add(worst, graph.reader.path(), None, text);
    }
}
