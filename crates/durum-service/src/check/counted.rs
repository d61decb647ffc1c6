//! Counted objects: their counts must be the numbers of the pointers that lead to them.
//!
//! The typed interface of the client makes such objects (`Prc`, `Parc`). They are known by their types:
//! `docs/format/types.md`.

use std::cmp::Ordering;
use std::collections::{BTreeSet, HashMap};

use durum_format::Uuid;
use durum_format::types::{Descriptor, PointerAt, Primitive, Strength, Type};

use super::graph::{Graph, word_at};
use super::{CheckReport, FINDINGS_MAX, Severity};

/// How names of types begin whose objects are counted.
const COUNTED_PREFIX: &str = "counted ";
/// The name of the type of references that a pool's limbo holds.
const LOST_NAME: &str = "durum lost reference";

/// What an object is, beyond what the fields of its type say.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Role {
    Plain,
    /// It begins with its counts.
    Counted,
    /// A reference that somebody dropped and nobody has counted off yet.
    Lost {
        object: u64,
        is_weak: u64,
    },
}

impl Role {
    pub(super) fn of(descriptor: &Descriptor) -> Role {
        match descriptor.name() {
            Some(LOST_NAME) => {
                let object = field(descriptor, "object", |ty| {
                    matches!(ty, Type::Pointer { .. })
                });
                match (object, field(descriptor, "is_weak", is_word)) {
                    (Some(object), Some(is_weak)) => Role::Lost { object, is_weak },
                    _ => Role::Plain,
                }
            }
            Some(name) if name.starts_with(COUNTED_PREFIX) => {
                let strong = field(descriptor, "strong", is_word);
                let weak = field(descriptor, "weak", is_word);
                match (strong, weak) {
                    (Some(Tally::STRONG), Some(Tally::WEAK)) => Role::Counted,
                    _ => Role::Plain,
                }
            }
            _ => Role::Plain,
        }
    }

    /// What a pointer in an object of this role is. A lost reference says in a word whether it is weak.
    pub(super) fn strength(&self, pointer: &PointerAt, bytes: &[u8]) -> Strength {
        match *self {
            Role::Lost { object, is_weak }
                if pointer.offset == object && word_at(bytes, is_weak) == Some(1) =>
            {
                Strength::Weak
            }
            _ => pointer.strength,
        }
    }
}

fn is_word(ty: &Type<usize>) -> bool {
    *ty == Type::Primitive(Primitive::U64)
}

/// Where a field begins, if there is one of this name and kind.
fn field(descriptor: &Descriptor, name: &str, fits: fn(&Type<usize>) -> bool) -> Option<u64> {
    let Type::Struct(whole) = descriptor.root() else {
        return None;
    };
    let found = whole.fields.iter().find(|field| field.name == name)?;
    fits(&found.ty).then_some(found.offset)
}

/// The counts of an object.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Tally {
    pub(super) strong: u64,
    pub(super) weak: u64,
}

impl Tally {
    const STRONG: u64 = 0;
    const WEAK: u64 = 8;

    pub(super) fn read(object: &[u8]) -> Option<Tally> {
        Some(Tally {
            strong: word_at(object, Self::STRONG)?,
            weak: word_at(object, Self::WEAK)?,
        })
    }

    /// The value is gone, and weak pointers are left that say so.
    pub(super) fn is_husk(&self) -> bool {
        self.strong == 0
    }
}

/// The pointers that lead to counted objects, from the objects that `from` says; by the index of the object.
pub(super) fn pointers_to_counted(
    graph: &Graph<'_>,
    from: impl Fn(usize) -> bool,
) -> HashMap<u32, Tally> {
    let mut found: HashMap<u32, Tally> = HashMap::new();
    for (index, edges) in graph.edges.iter().enumerate() {
        if !from(index) {
            continue;
        }
        for edge in edges {
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
                graph.type_name(object).unwrap_or("without a name")
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
