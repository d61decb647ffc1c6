//! Which type each of a pool's types becomes.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

use super::compile::conversion;
use super::heaps;
use super::parts::Conversion;
use super::{Refusal, Rules};
use crate::types::{Descriptor, Renames, Type};

/// Old types, and what becomes of each.
#[derive(Clone, Debug, Default)]
pub struct Pairs {
    by_id: BTreeMap<u64, Conversion>,
    /// What stands in the way whatever objects there are.
    pub refusals: Vec<Refusal>,
}

impl Pairs {
    /// What becomes of objects with this id.
    pub fn of(&self, old: u64) -> Option<&Conversion> {
        self.by_id.get(&old)
    }

    /// All of them.
    pub fn iter(&self) -> impl Iterator<Item = (u64, &Conversion)> {
        self.by_id.iter().map(|(id, conversion)| (*id, conversion))
    }

    /// What becomes of the types of pools' `objects` where a program has new ones: `roots`, each with the id of what
    /// it was, and `others` that no root leads to.
    pub fn of_program(
        objects: &[Descriptor],
        roots: &[(Option<u64>, &Descriptor)],
        others: &[Descriptor],
        rules: &Arc<Rules>,
    ) -> Self {
        let mut finding = Finding::new(rules);
        finding.pairs.refusals.extend(rules.circle());
        let formers = formers(rules);
        let mut renames = Renames::default();
        for descriptor in others.iter().chain(roots.iter().map(|(_, root)| *root)) {
            for line in 0..descriptor.lines() {
                descriptor
                    .line(line)
                    .into_iter()
                    .for_each(|ty| renames.learn(ty));
            }
        }
        for (now, was) in &formers {
            renames.add(now, was);
        }
        for (was, root) in roots {
            if let Some(old) = was.and_then(|id| objects.iter().find(|old| old.id() == id)) {
                finding.pair(old, root, root.title(), false);
            }
        }
        finding.follow(&renames);
        // What no root leads to. First what the program says of, as that leads to others.
        for is_said in [true, false] {
            for old in objects {
                if finding.known.contains_key(&old.id()) {
                    continue;
                }
                let is_it = |new: &&Descriptor| {
                    let formers = match new.root() {
                        Type::Struct(it) => it.was.as_slice(),
                        Type::Variants(it) => it.was.as_slice(),
                        _ => &[],
                    };
                    let names = new.name().zip(old.name());
                    names.is_some_and(|(is, was)| renames.can_be(was, is, formers))
                };
                let said = others.iter().find(is_it);
                let said = said.or_else(|| heaps::partner(old, others, rules));
                if said.is_some() == is_said {
                    if !is_said {
                        let changed = heaps::changed(old, others, rules);
                        finding.pairs.refusals.extend(changed);
                    }
                    let title = old.called();
                    finding.pair(old, said.unwrap_or(old), &title, false);
                    finding.follow(&renames);
                }
            }
        }
        finding.found()
    }

    /// What becomes of the types of a pool's `objects` where rules alone say so.
    pub fn of_rules(objects: &[Descriptor], rules: &Arc<Rules>) -> Self {
        let mut pairs = Self::default();
        let (texts, refusals) = super::retype::retyped(objects, rules);
        pairs.refusals = refusals;
        let formers = formers(rules);
        let mut renames = Renames::default();
        for (now, was) in &formers {
            renames.add(now, was);
        }
        let mut maps = BTreeSet::new();
        // Types of maps' parts are known once those of the maps are.
        for round in 0..2 {
            for old in objects {
                let Some(new) = texts.get(&old.id()) else {
                    continue;
                };
                let is_of_map = maps.contains(&old.id());
                if round == 1 && !is_of_map {
                    continue;
                }
                let found = conversion(old.clone(), new.clone(), rules, &renames, is_of_map);
                if found.is_map {
                    let targets = found.targets.iter();
                    let ids = targets.filter_map(|target| found.old.target(target.old).ok());
                    maps.extend(ids.map(|target| target.id()));
                }
                pairs.by_id.insert(old.id(), found);
            }
        }
        pairs
    }
}

/// What rules say that types were, by the new name.
fn formers(rules: &Rules) -> BTreeMap<String, Vec<String>> {
    let mut formers: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for (was, rule) in &rules.types {
        if let Some(now) = rule.now.as_ref().filter(|now| *now != was) {
            formers.entry(now.clone()).or_default().push(was.clone());
        }
    }
    formers
}

struct Finding<'f> {
    rules: &'f Arc<Rules>,
    /// New ids, by old ones, and the way to them.
    known: BTreeMap<u64, (u64, String)>,
    waiting: VecDeque<(Descriptor, Descriptor, bool)>,
    pairs: Pairs,
}

impl<'f> Finding<'f> {
    fn new(rules: &'f Arc<Rules>) -> Self {
        Self {
            rules,
            known: BTreeMap::new(),
            waiting: VecDeque::new(),
            pairs: Pairs::default(),
        }
    }

    fn pair(&mut self, old: &Descriptor, new: &Descriptor, path: &str, is_of_map: bool) {
        if let Some((known, first)) = self.known.get(&old.id()) {
            if *known != new.id() {
                let why = format!("what is one type here and at {first} would become two");
                self.pairs.refusals.push(Refusal::new(path, why));
            }
            return;
        }
        self.known.insert(old.id(), (new.id(), path.to_owned()));
        self.waiting
            .push_back((old.clone(), new.clone(), is_of_map));
    }

    fn follow(&mut self, renames: &Renames<'_>) {
        while let Some((old, new, is_of_map)) = self.waiting.pop_front() {
            let id = old.id();
            let found = conversion(old, new, self.rules, renames, is_of_map);
            for target in &found.targets {
                let both = (found.old.target(target.old), found.new.target(target.new));
                if let (Ok(old), Ok(new)) = both {
                    self.pair(&old, &new, &target.path, found.is_map);
                }
            }
            self.pairs.by_id.insert(id, found);
        }
    }

    fn found(self) -> Pairs {
        self.pairs
    }
}
