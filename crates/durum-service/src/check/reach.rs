//! What the roots lead to: pointers must lead to objects that live, and objects that nothing leads to are leaks.

use std::collections::{BTreeMap, BTreeSet};

use durum_format::Uuid;
use durum_format::extent::{HeapBytes, UNTYPED};
use durum_format::types::{PointerAt, Registry, Strength};

use super::structure::{LiveObject, Objects};
use super::{CheckReport, Leaks, PoolCheck, Severity};
use crate::error::Result;
use crate::inspect::ReadOnlyStore;

/// Findings of one kind and pool after which the rest is only counted.
const FINDINGS_MAX: u64 = 100;

/// Checks the pointers of all objects and judges leaks pool by pool.
pub(super) fn check(reader: &ReadOnlyStore, all: &Objects, report: &mut CheckReport) -> Result<()> {
    let mut types = Registry::new();
    for (id, text) in reader.types() {
        if let Err(error) = types.register_text(text) {
            let text = format!("type {id:#018x}: {error}");
            report.add(Severity::Damage, reader.path(), None, text);
        }
    }
    let mut graph = Graph {
        reader,
        all,
        types: &types,
        edges: Vec::with_capacity(all.objects.len()),
        opaque: BTreeMap::new(),
        unregistered: BTreeMap::new(),
        dangling: 0,
    };
    for index in 0..all.objects.len() {
        graph.visit(index, report)?;
    }
    if graph.dangling > FINDINGS_MAX {
        let text = format!(
            "{} more pointers lead to no object",
            graph.dangling - FINDINGS_MAX
        );
        report.add(Severity::Damage, reader.path(), None, text);
    }
    for (id, objects) in &graph.unregistered {
        let text = format!(
            "type {id:#018x} of {objects} object(s) is not registered: their pointers cannot be followed"
        );
        report.add(Severity::Note, reader.path(), None, text);
    }
    let reached = graph.reach();
    graph.judge(&reached, report);
    Ok(())
}

struct Graph<'a> {
    reader: &'a ReadOnlyStore,
    all: &'a Objects,
    types: &'a Registry,
    /// For each object, the objects that its pointers lead to.
    edges: Vec<Vec<u32>>,
    /// Objects whose pointers are not known, with the reason.
    opaque: BTreeMap<usize, &'static str>,
    /// Type ids that objects have and the store does not know, with the number of objects.
    unregistered: BTreeMap<u64, u64>,
    dangling: u64,
}

impl Graph<'_> {
    /// Reads an object and follows its pointers one step.
    fn visit(&mut self, index: usize, report: &mut CheckReport) -> Result<()> {
        let mut targets = Vec::new();
        if let Some(object) = self.all.objects.get(index).copied()
            && let Some(pointers) = self.pointers(index, &object, report)?
        {
            for (pointer, address) in pointers {
                match self.all.at(address) {
                    Some(target) => targets.push(target as u32),
                    None => self.dangle(&object, &pointer, address, report),
                }
            }
        }
        self.edges.push(targets);
        Ok(())
    }

    /// The pointers of an object that lead into the space; `None` where they are not known.
    fn pointers(
        &mut self,
        index: usize,
        object: &LiveObject,
        report: &mut CheckReport,
    ) -> Result<Option<Vec<(PointerAt, u64)>>> {
        let Some(descriptor) = self.types.by_id(object.type_id) else {
            let reason = if object.type_id == UNTYPED {
                "objects without a type"
            } else {
                *self.unregistered.entry(object.type_id).or_default() += 1;
                "objects of a type that is not registered"
            };
            self.opaque.insert(index, reason);
            return Ok(None);
        };
        let Some(puddle) = self.all.puddles.get(object.puddle) else {
            return Ok(None);
        };
        if !descriptor.has_pointers() {
            return Ok(Some(Vec::new()));
        }
        let offset = object.address - puddle.view.header().address;
        let mut bytes = vec![0; usize::try_from(object.size).unwrap_or(usize::MAX)];
        puddle.view.read(offset, &mut bytes)?;
        let mut pointers = Vec::new();
        let fitting = descriptor.visit_pointers(&bytes, |pointer| {
            let at = usize::try_from(pointer.offset).unwrap_or(usize::MAX);
            if let Some(word) = bytes.get(at..).and_then(|rest| rest.first_chunk::<8>()) {
                let address = u64::from_le_bytes(*word);
                let base = self.reader.base();
                if address >= base && address - base < self.reader.space_size() {
                    pointers.push((pointer, address));
                }
            }
        });
        if let Err(error) = fitting {
            let name = descriptor.name().unwrap_or("without a name");
            let text = format!("the object of type {name} does not fit its type: {error}");
            report.add(Severity::Damage, &puddle.file, Some(offset), text);
            self.opaque
                .insert(index, "objects that do not fit their type");
            return Ok(None);
        }
        Ok(Some(pointers))
    }

    fn dangle(
        &mut self,
        object: &LiveObject,
        pointer: &PointerAt,
        address: u64,
        report: &mut CheckReport,
    ) {
        let Some(puddle) = self.all.puddles.get(object.puddle) else {
            return;
        };
        // A weak pointer does not keep its target alive: what becomes of it is the front end's affair.
        let severity = match pointer.strength {
            Strength::Strong if self.all.is_partial => Severity::Note,
            Strength::Strong => Severity::Damage,
            _ => Severity::Note,
        };
        self.dangling += 1;
        if self.dangling > FINDINGS_MAX {
            return;
        }
        let name = self
            .types
            .by_id(object.type_id)
            .and_then(|descriptor| descriptor.name())
            .unwrap_or("without a name");
        let offset = object.address - puddle.view.header().address + pointer.offset;
        let text = format!(
            "the pointer at offset {} of an object of type {name} leads to {address:#x}, where no object lives",
            pointer.offset
        );
        report.add(severity, &puddle.file, Some(offset), text);
    }

    /// Which objects the roots lead to.
    fn reach(&self) -> Vec<bool> {
        let mut reached = vec![false; self.all.objects.len()];
        let roots = self.all.objects.iter().enumerate();
        let mut queue: Vec<usize> = roots
            .filter(|(_, object)| object.is_root)
            .map(|(index, _)| index)
            .collect();
        while let Some(index) = queue.pop() {
            match reached.get_mut(index) {
                Some(seen) if !*seen => *seen = true,
                _ => continue,
            }
            let targets = self.edges.get(index).into_iter().flatten();
            queue.extend(targets.map(|target| *target as usize));
        }
        reached
    }

    fn judge(&self, reached: &[bool], report: &mut CheckReport) {
        // Reasons why the objects of a pool that nothing leads to are not surely leaks.
        let mut doubts: BTreeMap<Uuid, BTreeSet<&'static str>> = BTreeMap::new();
        for (index, reason) in &self.opaque {
            if reached.get(*index) == Some(&true)
                && let Some(object) = self.all.objects.get(*index)
                && let Some(pool) = self.all.pool_of(object)
            {
                doubts.entry(pool).or_default().insert(reason);
            }
        }
        for summary in self.reader.pools() {
            let mut check = PoolCheck {
                name: summary.name,
                puddles: summary.puddles,
                objects: 0,
                bytes: 0,
                has_root: false,
                leaks: Leaks::Judged {
                    objects: 0,
                    bytes: 0,
                },
            };
            let mut lost: Vec<&LiveObject> = Vec::new();
            for (object, reached) in self.all.objects.iter().zip(reached) {
                if self.all.pool_of(object) != Some(summary.uuid) {
                    continue;
                }
                check.objects += 1;
                check.bytes += object.size;
                check.has_root |= object.is_root;
                if !reached {
                    lost.push(object);
                }
            }
            let doubt = match doubts.get(&summary.uuid) {
                Some(reasons) => Some(format!(
                    "the root leads to {}, which may hold pointers",
                    reasons.iter().copied().collect::<Vec<_>>().join(" and ")
                )),
                None if self.all.is_partial => {
                    Some("some of the store's puddles cannot be read".to_owned())
                }
                None => None,
            };
            check.leaks = match doubt {
                Some(reason) if !lost.is_empty() => Leaks::Unjudged { reason },
                _ => self.report_leaks(&lost, report),
            };
            report.pools.push(check);
        }
    }

    fn report_leaks(&self, lost: &[&LiveObject], report: &mut CheckReport) -> Leaks {
        for object in lost.iter().take(FINDINGS_MAX as usize) {
            let Some(puddle) = self.all.puddles.get(object.puddle) else {
                continue;
            };
            let name = self
                .types
                .by_id(object.type_id)
                .and_then(|descriptor| descriptor.name())
                .unwrap_or("unknown");
            let text = format!(
                "a leak: nothing leads to the object of {} bytes and type {name}",
                object.size
            );
            let offset = object.address - puddle.view.header().address;
            report.add(Severity::Leak, &puddle.file, Some(offset), text);
        }
        Leaks::Judged {
            objects: lost.len() as u64,
            bytes: lost.iter().map(|object| object.size).sum(),
        }
    }
}
