//! Random programs over graphs of nodes, against a model: counts are exact at every moment, transactions that are
//! rolled back leave none behind, and after closing exactly what the root leads to is there.

use std::collections::BTreeMap;
use std::ptr::null_mut;

use crate::support::*;

struct Random(u64);

impl Random {
    fn below(&mut self, bound: usize) -> usize {
        self.0 = self
            .0
            .wrapping_mul(6364136223846793005)
            .wrapping_add(1442695040888963407);
        (self.0 >> 33) as usize % bound
    }
}

/// What the model knows of a node, by its number, which is its value too. Pointers lead to smaller numbers only, so
/// there are no cycles.
#[derive(Clone, Copy, Default)]
struct Known {
    strong: [Option<i64>; 2],
    weak: Option<i64>,
}

struct World {
    place: Place,
    random: Random,
    model: BTreeMap<i64, Known>,
    nodes: BTreeMap<i64, *mut Node>,
    root: Option<i64>,
    next: i64,
}

impl World {
    fn pick(&mut self) -> Option<i64> {
        let count = self.model.len();
        (count > 0).then(|| *self.model.keys().nth(self.random.below(count)).unwrap())
    }

    /// A node with a number below this one, or none.
    fn pick_below(&mut self, number: i64) -> Option<i64> {
        let count = self.model.range(..number).count();
        match self.random.below(4) {
            0 => None,
            _ if count == 0 => None,
            _ => Some(*self.model.keys().nth(self.random.below(count)).unwrap()),
        }
    }

    fn pointer(&self, number: Option<i64>) -> *mut Node {
        number.map_or(null_mut(), |number| self.nodes[&number])
    }

    fn step(&mut self) {
        if self.model.len() < 3 || self.random.below(4) == 0 && self.model.len() < 120 {
            let node = self.place.node(self.next);
            self.nodes.insert(self.next, node);
            self.model.insert(self.next, Known::default());
            self.next += 1;
            return;
        }
        let from = self.pick().unwrap();
        let node = self.nodes[&from];
        let to = self.pick_below(from);
        let target = self.pointer(to);
        match self.random.below(9) {
            0..=4 => unsafe {
                let which = self.random.below(2);
                let slot = [&raw mut (*node).next, &raw mut (*node).other][which];
                store(slot, target);
                self.model.get_mut(&from).unwrap().strong[which] = to;
            },
            5 => unsafe {
                __nvl_store_weak((&raw mut (*node).back).cast(), target.cast());
                self.model.get_mut(&from).unwrap().weak = to;
            },
            6 => {
                self.place.set_root(node);
                self.root = Some(from);
            }
            7 => unsafe {
                // Everything but the value, from a node below.
                let Some(source) = to else { return };
                let other = self.nodes[&source];
                __nvl_copy(
                    (&raw mut (*node).next).cast(),
                    (&raw const (*other).next).cast(),
                    24,
                );
                *self.model.get_mut(&from).unwrap() = self.model[&source];
            },
            _ => unsafe {
                __nvl_fill((&raw mut (*node).next).cast(), 0, 16);
                self.model.get_mut(&from).unwrap().strong = [None; 2];
            },
        }
    }

    fn check(&self) {
        let mut counts: BTreeMap<i64, u64> = BTreeMap::new();
        for known in self.model.values() {
            for target in known.strong.into_iter().flatten() {
                *counts.entry(target).or_default() += 1;
            }
        }
        if let Some(root) = self.root {
            *counts.entry(root).or_default() += 1;
        }
        for (number, known) in &self.model {
            let node = self.nodes[number];
            let expected = counts.get(number).copied().unwrap_or(0);
            let (strong, state, _) = header(node);
            assert_eq!(strong, expected, "node {number}");
            assert_eq!(state & LISTED != 0, expected == 0, "node {number}");
            unsafe {
                assert_eq!((*node).value, *number);
                assert_eq!((*node).next, self.pointer(known.strong[0]));
                assert_eq!((*node).other, self.pointer(known.strong[1]));
                let weak: *mut Node = __nvl_load_weak((&raw const (*node).back).cast()).cast();
                assert_eq!(weak, self.pointer(known.weak));
            }
        }
    }

    /// What the root leads to is all that stays when no volatile pointer counts.
    fn forget_the_rest(&mut self) {
        let mut stays = std::collections::BTreeSet::new();
        let mut next: Vec<i64> = self.root.into_iter().collect();
        while let Some(number) = next.pop() {
            if stays.insert(number) {
                next.extend(self.model[&number].strong.into_iter().flatten());
            }
        }
        self.model.retain(|number, _| stays.contains(number));
        self.nodes.retain(|number, _| stays.contains(number));
        for known in self.model.values_mut() {
            known.weak = known.weak.filter(|number| stays.contains(number));
        }
    }
}

#[test]
fn counts_are_those_of_a_model() {
    for engine in ENGINES {
        for seed in 0..4 {
            let mut world = World {
                place: Place::new(engine),
                random: Random(seed),
                model: BTreeMap::new(),
                nodes: BTreeMap::new(),
                root: None,
                next: 1,
            };
            for round in 0..60 {
                println!("{engine:?} seed {seed} round {round}");
                match world.random.below(3) {
                    0 => {
                        // Together, and then maybe not at all.
                        let before = (world.model.clone(), world.nodes.clone(), world.root);
                        let is_kept = world.random.below(2) == 0;
                        let heap = world.place.heap;
                        let mut block = std::mem::MaybeUninit::<TxBlock>::uninit();
                        let heaps = [heap.cast_const()];
                        unsafe { __nvl_tx_begin(block.as_mut_ptr(), 0, 1, heaps.as_ptr()) };
                        for _ in 0..world.random.below(30) {
                            match world.random.below(6) {
                                0 => transaction(heap, |_| world.step()),
                                _ => world.step(),
                            }
                        }
                        if is_kept {
                            unsafe { __nvl_tx_end(block.as_mut_ptr()) };
                        } else {
                            __nvl_tx_unwind(0);
                            (world.model, world.nodes, world.root) = before;
                        }
                    }
                    _ => (0..30).for_each(|_| world.step()),
                }
                world.check();
                match world.random.below(12) {
                    0 => {
                        world.place.close();
                        assert_eq!(leaks(&world.place.path()), 0);
                        world.forget_the_rest();
                        let (path, options) = (world.place.path(), world.place.options.clone());
                        world.place.heap = durum_nvl::Heap::open(&path, &options).unwrap();
                        world.check();
                    }
                    1 => {
                        // All nodes are in the model's map, so none goes.
                        assert_eq!(unsafe { nvl_collect(world.place.heap) }, 0);
                        world.check();
                    }
                    _ => {}
                }
            }
        }
    }
}
