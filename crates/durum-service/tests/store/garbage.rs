//! Garbage in graphs of counted objects, against a search that is too simple to be wrong; and counts that are not the
//! number of pointers.

use std::collections::BTreeSet;
use std::path::Path;

use durum_format::types::{Declarations, Descriptor, Field, Primitive, Type};
use durum_service::{
    Embedded, Error, Garbage, GarbageOptions, Leaks, PuddleKind, PuddleOwner, Service, Severity,
    check, find_garbage,
};

use crate::support::{create, place_object, put, root, scratch, snapshot, spec};

/// Pointers of an object: two strong ones, then two weak ones.
type Pointers = [Option<usize>; 4];

/// A graph of counted objects.
#[derive(Clone, Debug, Default)]
struct Model {
    root: Pointers,
    nodes: Vec<Pointers>,
    /// Nodes whose value was dropped.
    husks: BTreeSet<usize>,
}

fn strong(pointers: &Pointers) -> impl Iterator<Item = usize> + '_ {
    pointers[..2].iter().flatten().copied()
}

fn weak(pointers: &Pointers) -> impl Iterator<Item = usize> + '_ {
    pointers[2..].iter().flatten().copied()
}

impl Model {
    /// Strong and weak pointers to a node, from these nodes and perhaps from the root.
    fn pointers_to(&self, node: usize, from: impl Fn(Option<usize>) -> bool) -> (u64, u64) {
        let nodes = self.nodes.iter().enumerate();
        let all = nodes
            .map(|(index, pointers)| (Some(index), pointers))
            .chain([(None, &self.root)]);
        let mut counts = (0, 0);
        for (_, pointers) in all.filter(|(source, _)| from(*source)) {
            counts.0 += strong(pointers).filter(|target| *target == node).count() as u64;
            counts.1 += weak(pointers).filter(|target| *target == node).count() as u64;
        }
        counts
    }

    /// The nodes that the root leads to through strong pointers, and husks that those have weak pointers to.
    fn live(&self) -> BTreeSet<usize> {
        let mut live: BTreeSet<usize> = BTreeSet::new();
        for _ in 0..=self.nodes.len() {
            let found: Vec<usize> = live
                .iter()
                .flat_map(|node| strong(&self.nodes[*node]))
                .collect();
            live.extend(found.into_iter().chain(strong(&self.root)));
        }
        let mut known: Vec<usize> = weak(&self.root).collect();
        known.extend(live.iter().flat_map(|node| weak(&self.nodes[*node])));
        live.extend(known.into_iter().filter(|node| self.husks.contains(node)));
        live
    }

    /// Writes a store with it, in which no pool is open.
    fn place(&self, path: &Path) -> Vec<u64> {
        let store = create(path);
        let pool = store.create_pool("graph", &spec()).unwrap();
        for ty in types() {
            store.register_type(ty.id(), ty.text()).unwrap();
        }
        let [node_type, root_type] = types();
        let more = store
            .create_puddle(PuddleOwner::Pool(pool.uuid), PuddleKind::Data, 2 << 20)
            .unwrap();
        let addresses: Vec<u64> = (0..self.nodes.len())
            .map(|node| place_object(&more, 4 * node as u64, node_type.id(), &[0; 48]))
            .collect();
        let bytes = |words: &[u64]| -> Vec<u8> {
            words.iter().flat_map(|word| word.to_le_bytes()).collect()
        };
        let words = |pointers: &Pointers| pointers.map(|node| node.map_or(0, |at| addresses[at]));
        for (node, pointers) in self.nodes.iter().enumerate() {
            let (strong, weak) = self.pointers_to(node, |_| true);
            let mut object = vec![strong, weak];
            object.extend(words(pointers));
            put(&more, addresses[node] - more.address, &bytes(&object));
        }
        place_object(root(&pool), 0, root_type.id(), &bytes(&words(&self.root)));
        store.close_pool(pool.uuid).unwrap();
        store.close().unwrap();
        addresses
    }
}

/// `counted node` and `entry`.
fn types() -> [Descriptor; 2] {
    let word = || Type::Primitive(Primitive::U64);
    let pointers = |from: u64| {
        let name = "counted node";
        [
            Field::new("first", from, Type::pointer(name)),
            Field::new("second", from + 8, Type::pointer(name)),
            Field::new("first_weak", from + 16, Type::weak(name)),
            Field::new("second_weak", from + 24, Type::weak(name)),
        ]
    };
    let mut fields = vec![
        Field::new("strong", 0, word()),
        Field::new("weak", 8, word()),
    ];
    fields.extend(pointers(16));
    let mut declared = Declarations::new();
    declared
        .declare(Type::structure("counted node", 48, 8, fields))
        .unwrap();
    declared
        .declare(Type::structure("entry", 32, 8, pointers(0).into()))
        .unwrap();
    ["counted node", "entry"].map(|name| declared.resolve(name).unwrap())
}

fn find(path: &Path) -> Garbage {
    let before = snapshot(path);
    let garbage = find_garbage(path, &GarbageOptions::default()).unwrap();
    assert_eq!(snapshot(path), before, "a search writes nothing");
    let store = Embedded::open(path, Default::default()).unwrap();
    let again = store.find_garbage(&GarbageOptions::default()).unwrap();
    store.close().unwrap();
    assert_eq!(again.groups, garbage.groups);
    garbage
}

fn judge(model: &Model, garbage: &Garbage, addresses: &[u64]) {
    let live = model.live();
    let found: Vec<_> = garbage
        .groups
        .iter()
        .flat_map(|group| &group.objects)
        .collect();
    let node_of = |address: u64| addresses.iter().position(|at| *at == address).unwrap();
    let nodes: BTreeSet<usize> = found.iter().map(|object| node_of(object.address)).collect();
    let dead: BTreeSet<usize> = (0..model.nodes.len())
        .filter(|node| !live.contains(node))
        .collect();
    assert_eq!(nodes, dead, "{model:?}");
    let component = |node: usize| {
        let object = found
            .iter()
            .find(|object| object.address == addresses[node]);
        object.map(|object| object.component)
    };
    for pair in found.windows(2) {
        assert!(pair[0].component <= pair[1].component);
    }
    for object in &found {
        let node = node_of(object.address);
        let is_live = |source: Option<usize>| source.is_none_or(|node| live.contains(&node));
        assert_eq!(object.weak, model.pointers_to(node, is_live).1, "{model:?}");
        let pointers = &model.nodes[node];
        let all = strong(pointers)
            .map(|target| (target, false))
            .chain(weak(pointers).map(|target| (target, true)));
        let mut expected = Vec::new();
        for (target, is_weak) in all {
            match component(target) {
                Some(other) if other == object.component => continue,
                Some(other) => assert!(other > object.component, "freed too early: {model:?}"),
                None => {}
            }
            expected.push((addresses[target], is_weak));
        }
        let references = object.references.iter();
        let references: Vec<_> = references.map(|it| (it.target, it.is_weak)).collect();
        assert_eq!(references, expected, "{model:?}");
    }
    let husks = found.iter().filter(|object| object.weak > 0).count() as u64;
    let [pool] = &garbage.pools[..] else {
        panic!("one pool");
    };
    let freed = dead.len() as u64 - husks;
    assert_eq!((pool.objects, pool.husks), (freed, husks));
    assert_eq!(pool.bytes, 48 * freed);
}

#[test]
fn what_no_root_leads_to_is_garbage_in_any_graph() {
    let directory = scratch();
    let mut random: u64 = 0x6a7b;
    let mut draw = |end: u64| {
        random = random
            .wrapping_mul(6364136223846793005)
            .wrapping_add(1442695040888963407);
        (random >> 33) % end
    };
    let mut garbage_found = 0;
    for round in 0..150 {
        let count = 1 + draw(7) as usize;
        let mut model = Model::default();
        let some = |draw: &mut dyn FnMut(u64) -> u64| -> Pointers {
            std::array::from_fn(|_| (draw(10) < 4).then(|| draw(count as u64) as usize))
        };
        model.nodes = (0..count).map(|_| some(&mut draw)).collect();
        model.root = some(&mut draw);
        // Nodes that no strong pointer leads to have no value, and no pointers.
        for node in (0..count).cycle().take(count * count) {
            if model.pointers_to(node, |_| true).0 == 0 {
                model.nodes[node] = Pointers::default();
                model.husks.insert(node);
            }
        }
        let path = directory.path().join(round.to_string());
        let addresses = model.place(&path);
        let report = check(&path, &Default::default()).unwrap();
        assert!(report.is_sound(), "{:?}", report.findings);
        let lost = (count - model.live().len()) as u64;
        assert!(
            matches!(report.pools[0].leaks, Leaks::Judged { objects, .. } if objects == lost),
            "{lost} of {model:?}"
        );
        assert_eq!(report.findings.len() as u64, lost, "{:?}", report.findings);
        judge(&model, &find(&path), &addresses);
        garbage_found += lost;
    }
    assert!(garbage_found > 100, "{garbage_found}");
}

#[test]
fn counts_are_compared_with_pointers() {
    // A node that the root has two strong pointers and a weak one to.
    let model = Model {
        root: [Some(0), Some(0), Some(0), None],
        nodes: vec![Pointers::default()],
        ..Model::default()
    };
    let directory = scratch();
    for (number, (strong, weak, severity, text)) in [
        (1, 1, Severity::Damage, "counts 1 strong pointers, and 2"),
        (0, 1, Severity::Damage, "counts 0 strong pointers, and 2"),
        (3, 1, Severity::Leak, "counts 3 strong pointers, and 2"),
        (2, 0, Severity::Damage, "counts 0 weak pointers, and 1"),
        (2, 9, Severity::Leak, "counts 9 weak pointers, and 1"),
    ]
    .into_iter()
    .enumerate()
    {
        let path = directory.path().join(number.to_string());
        let address = model.place(&path)[0];
        let store = Embedded::open(&path, Default::default()).unwrap();
        let pool = store.open_pool("graph").unwrap();
        let holds = |address: u64| {
            move |puddle: &&durum_service::PuddleGrant| {
                (puddle.address..puddle.address + puddle.size).contains(&address)
            }
        };
        let id = pool.uuid;
        let puddles = crate::support::open_all(&store, pool);
        let puddle = puddles.iter().find(holds(address)).unwrap();
        let counts = [u64::to_le_bytes(strong), u64::to_le_bytes(weak)].concat();
        put(puddle, address - puddle.address, &counts);
        assert!(matches!(
            store.find_garbage(&GarbageOptions::default()),
            Err(Error::PoolOpen { .. })
        ));
        store.close_pool(id).unwrap();
        store.close().unwrap();
        let report = check(&path, &Default::default()).unwrap();
        let [finding] = &report.findings[..] else {
            panic!("{:?}", report.findings);
        };
        assert_eq!(finding.severity, severity);
        assert!(finding.text.contains(text), "{finding}");
        let garbage = find_garbage(&path, &GarbageOptions::default());
        match severity {
            Severity::Damage => assert!(
                matches!(garbage, Err(Error::GarbageDamaged { damages: 1, .. })),
                "{garbage:?}"
            ),
            _ => assert_eq!(garbage.unwrap().groups, Vec::new()),
        }
    }
}

/// `durum lost reference` and what leads to one.
fn limbo_types() -> [Descriptor; 2] {
    let word = || Type::Primitive(Primitive::U64);
    let name = "durum lost reference";
    let mut declared = Declarations::new();
    let fields = vec![
        Field::new("next", 0, Type::pointer(name)),
        Field::new("object", 8, Type::pointer_to_any()),
        Field::new("type_id", 16, word()),
        Field::new("is_weak", 24, word()),
    ];
    declared
        .declare(Type::structure(name, 32, 8, fields))
        .unwrap();
    let limbo = vec![Field::new("limbo", 0, Type::pointer(name))];
    declared
        .declare(Type::structure("root thing", 8, 8, limbo))
        .unwrap();
    [name, "root thing"].map(|name| declared.resolve(name).unwrap())
}

#[test]
fn a_reference_in_the_limbo_is_strong_or_weak_as_it_says_and_garbage() {
    let directory = scratch();
    // A node that leads to itself, or one without a value.
    for (number, (is_weak, to_itself, lost)) in
        [(0_u64, true, 0), (0, false, 0), (1, true, 1), (1, false, 0)]
            .into_iter()
            .enumerate()
    {
        let path = directory.path().join(number.to_string());
        let store = create(&path);
        let pool = store.create_pool("limbo", &spec()).unwrap();
        let [node_type, _] = types();
        let [lost_type, root_type] = limbo_types();
        for ty in [&node_type, &lost_type, &root_type] {
            store.register_type(ty.id(), ty.text()).unwrap();
        }
        let puddle = root(&pool);
        let bytes = |words: &[u64]| -> Vec<u8> {
            words.iter().flat_map(|word| word.to_le_bytes()).collect()
        };
        let node = place_object(puddle, 8, node_type.id(), &[0; 48]);
        let strong = u64::from(to_itself) + 1 - is_weak;
        let first = if to_itself { node } else { 0 };
        let object = bytes(&[strong, is_weak, first, 0, 0, 0]);
        put(puddle, node - puddle.address, &object);
        let record = bytes(&[0, node, node_type.id(), is_weak]);
        let record = place_object(puddle, 4, lost_type.id(), &record);
        let root_object = place_object(puddle, 0, root_type.id(), &bytes(&[record]));
        store.close_pool(pool.uuid).unwrap();
        store.close().unwrap();
        let report = check(&path, &Default::default()).unwrap();
        assert_eq!(report.findings.len(), lost, "{:?}", report.findings);
        let garbage = find(&path);
        let [group] = &garbage.groups[..] else {
            panic!("{garbage:?}");
        };
        let found: Vec<_> = group
            .objects
            .iter()
            .map(|found| (found.address, found.weak))
            .collect();
        assert_eq!(found, [(record, 0), (node, 0)]);
        let [limbo] = &group.limbos[..] else {
            panic!("{group:?}");
        };
        assert_eq!(
            (limbo.head, &limbo.references[..]),
            (root_object, &[record][..])
        );
    }
}
