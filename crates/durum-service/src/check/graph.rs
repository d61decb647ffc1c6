//! The objects of a store and the pointers between them, as type descriptors show them.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet, HashMap};

use durum_format::Uuid;
use durum_format::extent::UNTYPED;
use durum_format::nvl::Kind;
use durum_format::types::{Descriptor, PointerAt, Registry, Strength};

use super::structure::{LiveObject, Objects};
use super::{CheckOptions, CheckReport, FINDINGS_MAX, OBJECTS_AT_ONCE, Severity};
use crate::error::Result;
use crate::inspect::ReadOnlyStore;
use crate::model::Stage;
use crate::roles::{Role, Tally, word_at};

/// A pointer from one object to another.
#[derive(Clone, Copy, Debug)]
pub(super) struct Edge {
    pub(super) target: u32,
    pub(super) is_weak: bool,
    /// It leads to the target's start, as counted pointers do.
    pub(super) is_at_start: bool,
    /// A guess: it may be the end of the target, but another object is there. The target is not garbage, and not in use
    /// for certain.
    pub(super) is_doubtful: bool,
}

/// For each object, or node of a part of the graph, its pointers that lead to another. All stand in one list: with a
/// list for each object ten million objects would take gigabytes.
#[derive(Default)]
pub(super) struct Edges {
    all: Vec<Edge>,
    /// Where those of each object end.
    ends: Vec<usize>,
}

impl Edges {
    /// How many objects there are.
    pub(super) fn len(&self) -> usize {
        self.ends.len()
    }

    /// Adds an object with its pointers.
    pub(super) fn push(&mut self, edges: impl IntoIterator<Item = Edge>) {
        self.all.extend(edges);
        self.ends.push(self.all.len());
    }

    /// Those between some objects, whose indices are given in order: the first one of them becomes 0.
    pub(super) fn among(&self, some: &[usize], keep: impl Fn(&Edge) -> bool) -> Edges {
        let mut among = Edges::default();
        for index in some {
            let edges = self.of(*index).iter().filter(|edge| keep(edge));
            among.push(edges.filter_map(|edge| {
                let target = some.binary_search(&(edge.target as usize)).ok()? as u32;
                Some(Edge { target, ..*edge })
            }));
        }
        among
    }

    /// The pointers of an object.
    pub(super) fn of(&self, index: usize) -> &[Edge] {
        let begin = index.checked_sub(1).map_or(0, |before| self.ends[before]);
        &self.all[begin..self.ends[index]]
    }

    /// Forgets pointers, which are given by the object that they lie in, and themselves.
    pub(super) fn retain(&mut self, keep: impl Fn(usize, &Edge) -> bool) {
        let (mut kept, mut begin) = (Edges::default(), 0);
        for (index, end) in self.ends.iter().enumerate() {
            let edges = self.all[begin..*end].iter().copied();
            kept.push(edges.filter(|edge| keep(index, edge)));
            begin = *end;
        }
        *self = kept;
    }
}

/// Where a limbo begins: a pointer at an offset of an object, and the reference that it leads to.
#[derive(Clone, Copy, Debug)]
pub(super) struct LimboAt {
    pub(super) holder: usize,
    pub(super) offset: u64,
    pub(super) first: u32,
}

/// Why nobody knows the pointers of an object, if its type is none.
pub(super) const WITHOUT_TYPE: &str = "objects without a type";

/// A pointer that leads to no object.
struct Dangling {
    holder: usize,
    offset: u64,
    address: u64,
    is_strong: bool,
}

/// Objects by index, in order of address, and what their pointers lead to.
pub(super) struct Graph<'a> {
    pub(super) reader: &'a ReadOnlyStore,
    pub(super) all: &'a Objects,
    pub(super) types: Registry,
    pub(super) edges: Edges,
    /// The counts of those objects that have them.
    pub(super) counted: HashMap<u32, Tally>,
    /// Pointers to lost references from objects that are none: where limbos begin.
    pub(super) limbos: Vec<LimboAt>,
    /// Objects whose pointers are not known, with the reason.
    pub(super) opaque: BTreeMap<usize, &'static str>,
    /// Type ids that objects have and the store does not know, with the number of objects.
    unregistered: BTreeMap<u64, u64>,
    /// Types of which objects have reserved bytes that are not zero, with the number of objects.
    unclean: BTreeMap<u64, u64>,
    /// Pools with words that were taken for pointers, because they are addresses of objects.
    pub(super) guessed: BTreeSet<Uuid>,
    dangling: Vec<Dangling>,
}

impl<'a> Graph<'a> {
    /// Reads all objects and follows their pointers one step.
    pub(super) fn build(
        reader: &'a ReadOnlyStore,
        all: &'a Objects,
        options: &CheckOptions,
        report: &mut CheckReport,
    ) -> Result<Self> {
        let mut graph = Graph {
            reader,
            all,
            types: Registry::new(),
            edges: Edges::default(),
            counted: HashMap::new(),
            limbos: Vec::new(),
            opaque: BTreeMap::new(),
            unregistered: BTreeMap::new(),
            unclean: BTreeMap::new(),
            guessed: BTreeSet::new(),
            dangling: Vec::new(),
        };
        for (id, text) in reader.types() {
            if let Err(error) = graph.types.register_text(text) {
                let text = format!("type {id:#018x}: {error}");
                report.add(Severity::Damage, reader.path(), None, text);
            }
        }
        let ids = all.objects.iter().map(|object| object.type_id);
        reader.learn_types(ids.collect(), &mut graph.types)?;
        for (index, object) in all.objects.iter().enumerate() {
            if index % OBJECTS_AT_ONCE == 0 {
                options.tell(reader, Stage::Pointers, index, all.objects.len())?;
            }
            match object.type_id == UNTYPED && options.untyped_hold_pointers {
                true => graph.guess(object)?,
                false => graph.visit(index, object, report)?,
            }
        }
        for (id, objects) in &graph.unclean {
            let name = graph.types.by_id(*id).map_or("", Descriptor::title);
            let text = format!(
                "{objects} object(s) of type {name} have reserved bytes that are not zero: a later version of their type that has fields there would find in them what the program left (docs/how-to/change-types.md)"
            );
            report.add(Severity::Note, reader.path(), None, text);
        }
        for (id, objects) in &graph.unregistered {
            let text = format!(
                "type {id:#018x} of {objects} object(s) is not registered: their pointers cannot be followed"
            );
            report.add(Severity::Note, reader.path(), None, text);
        }
        Ok(graph)
    }

    /// Adds the pointers of an object that lead to objects.
    fn visit(&mut self, index: usize, object: &LiveObject, report: &mut CheckReport) -> Result<()> {
        let holds_limbo = !self.is_lost(object);
        for (pointer, address) in self.pointers(index, object, report)? {
            if !self.is_inside(address) {
                self.leads_nowhere(index, &pointer, address);
                continue;
            }
            let target = self.meant(object, address);
            if holds_limbo
                && let Some(first) = target
                && self.is_lost(&self.all.objects[first])
            {
                self.limbos.push(LimboAt {
                    holder: index,
                    offset: pointer.offset,
                    first: first as u32,
                });
            }
            match target {
                Some(target) => self.edges.all.push(Edge {
                    target: target as u32,
                    is_weak: pointer.strength == Strength::Weak,
                    is_at_start: self
                        .all
                        .objects
                        .get(target)
                        .is_some_and(|object| object.address == address),
                    is_doubtful: false,
                }),
                None => self.leads_nowhere(index, &pointer, address),
            }
        }
        self.edges.ends.push(self.edges.all.len());
        Ok(())
    }

    /// Takes each 8 bytes of an object without a type for a pointer that are an address of an object, or of its end,
    /// wherever they lie: structs may be packed. It keeps what it leads to, and nobody has counted it.
    fn guess(&mut self, object: &LiveObject) -> Result<()> {
        if let Some(puddle) = self.all.puddles.get(object.puddle) {
            self.guessed.insert(puddle.pool);
            let offset = object.address - puddle.view.header().address;
            let bytes = puddle.view.bytes(offset, object.size)?;
            for word in bytes.windows(8).filter_map(|it| word_at(it, 0)) {
                if !self.is_inside(word) {
                    continue;
                }
                let (at, before) = (self.all.at(word), self.all.at(word.wrapping_sub(1)));
                let ends = before.filter(|it| Some(*it) != at);
                let targets = at.into_iter().chain(ends);
                self.edges.all.extend(targets.map(|target| Edge {
                    target: target as u32,
                    is_weak: false,
                    is_at_start: false,
                    is_doubtful: at.is_some_and(|at| at != target),
                }));
            }
        }
        self.edges.ends.push(self.edges.all.len());
        Ok(())
    }

    /// The object that a pointer leads to. In a heap of NVL-C none leads to the beginning of an allocation, where its
    /// header is: it leads right behind the data of the one before, and keeps that.
    fn meant(&self, object: &LiveObject, address: u64) -> Option<usize> {
        let found = self.all.at(address);
        let begins =
            |index: usize| (self.all.objects.get(index)).is_some_and(|it| it.address == address);
        if found.is_some_and(|index| !begins(index)) {
            return found;
        }
        let kind = |of: &LiveObject| self.types.by_id(of.type_id).and_then(Kind::of);
        let is_allocation = |index: usize| {
            let it = self.all.objects.get(index);
            matches!(it.and_then(kind), Some(Kind::Allocation(_)))
        };
        if found.is_some_and(|index| !is_allocation(index)) || kind(object).is_none() {
            return found;
        }
        let before = self.all.at(address.wrapping_sub(1));
        before.filter(|index| is_allocation(*index)).or(found)
    }

    fn is_inside(&self, address: u64) -> bool {
        let base = self.reader.base();
        address >= base && address - base < self.reader.space_size()
    }

    /// The pointers of an object that are not null; none where they are not known.
    fn pointers(
        &mut self,
        index: usize,
        object: &LiveObject,
        report: &mut CheckReport,
    ) -> Result<Vec<(PointerAt, u64)>> {
        let Some(descriptor) = self.types.by_id(object.type_id) else {
            let reason = if object.type_id == UNTYPED {
                WITHOUT_TYPE
            } else {
                *self.unregistered.entry(object.type_id).or_default() += 1;
                "objects of a type that is not registered"
            };
            self.opaque.insert(index, reason);
            return Ok(Vec::new());
        };
        let Some(puddle) = self.all.puddles.get(object.puddle) else {
            return Ok(Vec::new());
        };
        let role = Role::of(descriptor);
        let is_plain = role == Role::Plain && !descriptor.has_pointers();
        if is_plain && !descriptor.has_reserved() {
            return Ok(Vec::new());
        }
        let offset = object.address - puddle.view.header().address;
        let bytes = puddle.view.bytes(offset, object.size)?;
        if role == Role::Counted
            && let Some(tally) = Tally::read(&bytes)
        {
            self.counted.insert(index as u32, tally);
            if tally.is_husk() {
                // The value was dropped: zeros, whatever its type says.
                return Ok(Vec::new());
            }
        }
        let mut is_clean = true;
        let fits = descriptor.visit_reserved(&bytes, |part| {
            let part = part.offset as usize..(part.offset + part.size) as usize;
            let zero = bytes
                .get(part)
                .is_none_or(|part| part.iter().all(|byte| *byte == 0));
            is_clean &= zero;
        });
        if fits.is_ok() && !is_clean {
            *self.unclean.entry(object.type_id).or_default() += 1;
        }
        match self.pointers_in(descriptor, role, &bytes) {
            Ok(pointers) => Ok(pointers),
            Err(problem) => {
                let name = descriptor.title();
                let text = format!("the object of type {name} does not fit its type: {problem}");
                report.add(Severity::Damage, &puddle.file, Some(offset), text);
                self.opaque
                    .insert(index, "objects that do not fit their type");
                Ok(Vec::new())
            }
        }
    }

    fn pointers_in(
        &self,
        descriptor: &Descriptor,
        role: Role,
        bytes: &[u8],
    ) -> Result<Vec<(PointerAt, u64)>, String> {
        let mut pointers = Vec::new();
        let fitting = descriptor.visit_pointers(bytes, |pointer| {
            if let Some(address) = word_at(bytes, pointer.offset)
                && address != 0
            {
                let strength = role.strength(&pointer, bytes);
                pointers.push((
                    PointerAt {
                        strength,
                        ..pointer
                    },
                    address,
                ));
            }
        });
        fitting.map_err(|error| error.to_string())?;
        Ok(pointers)
    }

    fn leads_nowhere(&mut self, holder: usize, pointer: &PointerAt, address: u64) {
        self.dangling.push(Dangling {
            holder,
            offset: pointer.offset,
            address,
            is_strong: pointer.strength == Strength::Strong,
        });
    }

    /// Tells of pointers that lead to no object: damage, but in what is surely a leak. A program that was killed
    /// leaves what it had taken out of its data and was about to free, with pointers to what went before.
    pub(super) fn tell_dangling(&self, is_leak: impl Fn(usize) -> bool, report: &mut CheckReport) {
        let judged = self.dangling.iter().map(|dangling| {
            let is_leak = is_leak(dangling.holder);
            (self.severity(dangling, is_leak), is_leak, dangling)
        });
        let (mut all, notes): (Vec<_>, Vec<_>) =
            judged.partition(|(severity, ..)| *severity == Severity::Damage);
        // Damage first: thousands of leaks must not be told in its place.
        all.extend(notes);
        let (told, more) = all.split_at(all.len().min(FINDINGS_MAX as usize));
        for (severity, is_leak, dangling) in told {
            self.tell_one(dangling, *severity, *is_leak, report);
        }
        if let Some((severity, ..)) = more.first() {
            let text = format!("{} more pointers lead to no object", more.len());
            report.add(*severity, self.reader.path(), None, text);
        }
    }

    fn severity(&self, dangling: &Dangling, is_leak: bool) -> Severity {
        // A weak pointer does not keep its target alive: what becomes of it is the front end's affair.
        match dangling.is_strong && !is_leak {
            true if self.is_inside(dangling.address) && self.all.is_partial() => Severity::Note,
            true => Severity::Damage,
            false => Severity::Note,
        }
    }

    fn tell_one(
        &self,
        dangling: &Dangling,
        severity: Severity,
        is_leak: bool,
        report: &mut CheckReport,
    ) {
        let object = self.all.objects.get(dangling.holder);
        let Some(object) = object else { return };
        let Some(puddle) = self.all.puddles.get(object.puddle) else {
            return;
        };
        let address = dangling.address;
        let name = self.type_name(object).unwrap_or("unknown");
        let offset = object.address - puddle.view.header().address + dangling.offset;
        let there = match self.is_inside(address) {
            true => "where no object lives",
            false => {
                "out of the store: a program has stored an address of its own, which is something else in the next run"
            }
        };
        let text = format!(
            "the pointer at offset {} of {} of type {name} leads to {address:#x}, {there}",
            dangling.offset,
            if is_leak {
                "a leaked object"
            } else {
                "an object"
            },
        );
        report.add(severity, &puddle.file, Some(offset), text);
    }

    /// Whether an object is a reference in a limbo.
    fn is_lost(&self, object: &LiveObject) -> bool {
        let descriptor = self.types.by_id(object.type_id);
        descriptor.is_some_and(|descriptor| matches!(Role::of(descriptor), Role::Lost { .. }))
    }

    /// What an object's type is called, if that is known.
    pub(super) fn type_name(&self, object: &LiveObject) -> Option<&str> {
        Some(self.types.by_id(object.type_id)?.title())
    }

    /// Whether a pointer keeps what it leads to: all do, except for weak ones to counted objects.
    pub(super) fn keeps(&self, edge: &Edge) -> bool {
        !(edge.is_weak && edge.is_at_start && self.counted.contains_key(&edge.target))
    }

    /// The references of a limbo, in order.
    pub(super) fn lost_references(&self, first: u32) -> Vec<u32> {
        let mut found = vec![first];
        // Round in a circle it goes only where data is damaged.
        while let Some(last) = found.last()
            && let Some(next) = self
                .edges
                .of(*last as usize)
                .iter()
                .map(|edge| edge.target)
                .find(|next| self.is_lost(&self.all.objects[*next as usize]))
            && found.len() < self.all.objects.len()
        {
            found.push(next);
        }
        found
    }

    /// Which objects live: the roots lead to them, or those that `is_root` adds. An object without a value lives as
    /// long as a weak pointer leads to it.
    pub(super) fn reach(&self, is_root: impl Fn(usize, &LiveObject) -> bool) -> Vec<bool> {
        self.reach_by(is_root, |_| true)
    }

    /// Those of `reached` that are in use for certain: not only by words that may as well lead to what lies behind
    /// them.
    pub(super) fn surely<'r>(
        &self,
        reached: &'r [bool],
        is_root: impl Fn(usize, &LiveObject) -> bool,
    ) -> Cow<'r, [bool]> {
        match self.guessed.is_empty() || self.dangling.is_empty() {
            true => Cow::Borrowed(reached),
            false => Cow::Owned(self.reach_by(is_root, |edge| !edge.is_doubtful)),
        }
    }

    fn reach_by(
        &self,
        is_root: impl Fn(usize, &LiveObject) -> bool,
        follows: impl Fn(&Edge) -> bool,
    ) -> Vec<bool> {
        let objects = &self.all.objects;
        let mut reached = vec![false; objects.len()];
        let mut queue: Vec<usize> = (0..objects.len())
            .filter(|index| objects[*index].is_root || is_root(*index, &objects[*index]))
            .collect();
        let mut husks: Vec<usize> = Vec::new();
        while let Some(index) = queue.pop() {
            if std::mem::replace(&mut reached[index], true) {
                continue;
            }
            for edge in self.edges.of(index).iter().filter(|edge| follows(edge)) {
                let target = edge.target as usize;
                if self.keeps(edge) {
                    queue.push(target);
                } else if self.counted[&edge.target].is_husk() {
                    husks.push(target);
                }
            }
        }
        for husk in husks {
            reached[husk] = true;
        }
        reached
    }
}
