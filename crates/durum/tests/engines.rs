//! Whatever a program does, every engine leaves the same: a table of objects against a model in plain memory.
//!
//! Random histories of transactions run on each engine, on memory and on an ordinary file system, with logs that are
//! always too small, with home updates by commits and by a thread: every way in which changes are announced, all ends
//! of a transaction, all durabilities, sections, closing and opening again. Crashes are the simulator's (tests/crash).

#![allow(
    clippy::undocumented_unsafe_blocks,
    reason = "tests use pools as programs do: their objects are live, and theirs alone"
)]

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::time::Duration;

use durum::{
    Announce, Domain, Durability, Engine, Error, Pool, PoolOptions, Store, StoreOptions, Tx,
};
use durum_service::{self as service, CheckOptions, Severity};
use proptest::prelude::*;

const SLOTS: usize = 12;

#[repr(C)]
#[derive(Clone, Copy)]
struct Slot {
    object: *mut u8,
    len: u64,
}
durum::describe!(Slot as "slot of bytes" { object, len });

#[repr(C)]
struct Root {
    slots: [Slot; SLOTS],
    tags: [u64; SLOTS],
}
durum::describe!(Root as "table of bytes" { slots, tags });

/// What the table should hold.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Model {
    slots: [Option<Vec<u8>>; SLOTS],
    tags: [u64; SLOTS],
}

#[derive(Clone, Debug)]
enum Op {
    /// A new object in a slot; the old one is freed.
    New {
        slot: usize,
        len: usize,
        tag: u8,
    },
    /// Bytes of an object, by `add`.
    Write {
        slot: usize,
        at: usize,
        len: usize,
        tag: u8,
    },
    /// Announces more than it changes.
    Announce {
        slot: usize,
        at: usize,
        len: usize,
    },
    /// A tag, by `set`.
    Tag {
        slot: usize,
        tag: u64,
    },
    Swap {
        slots: (usize, usize),
    },
    Free {
        slot: usize,
    },
    /// What follows, up to the end of the transaction, is one level deeper.
    Deeper,
}

#[derive(Clone, Copy, Debug)]
enum Kind {
    Durable,
    Buffered,
    /// Plain stores, where the engine has sections.
    Section,
}

#[derive(Clone, Copy, Debug)]
enum End {
    Commit,
    Abort,
    Panic,
}

#[derive(Clone, Debug)]
enum Step {
    Transaction { kind: Kind, ops: Vec<Op>, end: End },
    Sync,
    Reopen,
}

fn op() -> impl Strategy<Value = Op> {
    let slot = 0..SLOTS;
    let len = prop_oneof![8 => 1usize..200, 3 => 200usize..6000, 1 => 6000usize..300_000];
    let part = prop_oneof![6 => 1usize..40, 3 => 40usize..1200, 1 => 1200usize..300_000];
    prop_oneof![
        4 => (slot.clone(), len, any::<u8>()).prop_map(|(slot, len, tag)| Op::New { slot, len, tag }),
        8 => (slot.clone(), 0usize..300_000, part.clone(), any::<u8>())
            .prop_map(|(slot, at, len, tag)| Op::Write { slot, at, len, tag }),
        2 => (slot.clone(), 0usize..300_000, part).prop_map(|(slot, at, len)| Op::Announce { slot, at, len }),
        2 => (slot.clone(), any::<u64>()).prop_map(|(slot, tag)| Op::Tag { slot, tag }),
        2 => (slot.clone(), slot.clone()).prop_map(|slots| Op::Swap { slots }),
        2 => slot.prop_map(|slot| Op::Free { slot }),
        1 => Just(Op::Deeper),
    ]
}

fn step() -> impl Strategy<Value = Step> {
    let kind =
        prop_oneof![5 => Just(Kind::Durable), 3 => Just(Kind::Buffered), 1 => Just(Kind::Section)];
    let end = prop_oneof![6 => Just(End::Commit), 2 => Just(End::Abort), 1 => Just(End::Panic)];
    prop_oneof![
        20 => (kind, proptest::collection::vec(op(), 0..12), end)
            .prop_map(|(kind, ops, end)| Step::Transaction { kind, ops, end }),
        2 => Just(Step::Sync),
        1 => Just(Step::Reopen),
    ]
}

/// The part of an object of `size` bytes that an operation means.
fn part(size: usize, at: usize, len: usize) -> std::ops::Range<usize> {
    let at = at % size;
    at..(at + len).min(size)
}

fn fill(bytes: &mut [u8], tag: u8) {
    for (at, byte) in bytes.iter_mut().enumerate() {
        *byte = tag.wrapping_add((at / 3) as u8);
    }
}

fn apply_to_model(model: &mut Model, op: &Op) {
    match *op {
        Op::New { slot, len, tag } => {
            let mut bytes = vec![0; len];
            fill(&mut bytes, tag);
            model.slots[slot] = Some(bytes);
        }
        Op::Write { slot, at, len, tag } => {
            if let Some(bytes) = &mut model.slots[slot] {
                let range = part(bytes.len(), at, len);
                fill(&mut bytes[range], tag);
            }
        }
        Op::Tag { slot, tag } => model.tags[slot] = tag,
        Op::Swap { slots: (a, b) } => model.slots.swap(a, b),
        Op::Free { slot } => model.slots[slot] = None,
        Op::Announce { .. } | Op::Deeper => {}
    }
}

/// A pool that the history runs on.
struct Subject {
    name: &'static str,
    engine: Engine,
    store_options: StoreOptions,
    pool: Option<Pool>,
    store: Option<Store>,
    dir: tempfile::TempDir,
}

impl Subject {
    fn new(name: &'static str, engine: Engine, store_options: StoreOptions) -> Self {
        let parent = match store_options.domain {
            Some(Domain::File) => env!("CARGO_TARGET_TMPDIR"),
            _ => "/dev/shm",
        };
        let dir = tempfile::tempdir_in(parent).unwrap();
        let store = Store::create(dir.path().join("store"), store_options.clone()).unwrap();
        let pool = store
            .create_pool(
                "pool",
                PoolOptions::new().engine(engine).root_puddle_size(4 << 20),
            )
            .unwrap();
        Self {
            name,
            engine,
            store_options,
            pool: Some(pool),
            store: Some(store),
            dir,
        }
    }

    fn pool(&self) -> &Pool {
        self.pool.as_ref().unwrap()
    }

    fn root(&self) -> *mut Root {
        self.pool().root::<Root>().unwrap()
    }

    fn reopen(&mut self) {
        self.close();
        let store = Store::open(self.dir.path().join("store"), self.store_options.clone()).unwrap();
        assert!(store.recovery().unwrap().was_clean, "{}", self.name);
        self.pool = Some(store.open_pool("pool", PoolOptions::new()).unwrap());
        self.store = Some(store);
    }

    fn close(&mut self) {
        self.pool = None;
        self.store = None;
    }

    fn run(&self, kind: Kind, ops: &[Op], end: End) {
        let root = self.root();
        let body = |tx: &Tx| {
            let plain = matches!(kind, Kind::Section) && self.engine == Engine::Shadow;
            levels(self.pool(), tx, root, ops, plain)?;
            match end {
                End::Commit => Ok(()),
                End::Abort => tx.abort(),
                // Unlike `panic!` this prints nothing.
                End::Panic => resume_unwind(Box::new("on purpose")),
            }
        };
        let run = || match (kind, self.engine) {
            (Kind::Section, Engine::Shadow) => unsafe { self.pool().section(body) },
            (Kind::Buffered, _) => self.pool().transaction_with(Durability::Buffered, body),
            _ => self.pool().transaction(body),
        };
        match (catch_unwind(AssertUnwindSafe(run)), end) {
            (Ok(Ok(())), End::Commit)
            | (Err(_), End::Panic)
            | (Ok(Err(Error::Aborted)), End::Abort) => {}
            (other, _) => panic!("{}: {end:?} ended with {other:?}", self.name),
        }
    }

    fn holds(&self) -> Model {
        let root = unsafe { &*self.root() };
        let mut model = Model {
            tags: root.tags,
            ..Model::default()
        };
        for (found, slot) in model.slots.iter_mut().zip(&root.slots) {
            if !slot.object.is_null() {
                let bytes = unsafe { std::slice::from_raw_parts(slot.object, slot.len as usize) };
                *found = Some(bytes.to_vec());
            }
        }
        model
    }

    /// Closed, it has no damage, and holds the objects of the model and nothing else.
    fn is_sound(&mut self, model: &Model) {
        self.close();
        let report =
            service::check(&self.dir.path().join("store"), &CheckOptions::default()).unwrap();
        let worst = report
            .findings
            .iter()
            .find(|finding| finding.severity >= Severity::Leak);
        assert!(worst.is_none(), "{}: {}", self.name, worst.unwrap());
        let objects = 1 + model.slots.iter().flatten().count() as u64;
        assert_eq!(report.pools[0].objects, objects, "{}", self.name);
    }
}

/// Runs the operations, those behind each `Deeper` in a transaction inside.
fn levels(pool: &Pool, tx: &Tx, root: *mut Root, ops: &[Op], plain: bool) -> Result<(), Error> {
    for (at, op) in ops.iter().enumerate() {
        if matches!(op, Op::Deeper) {
            return pool.transaction(|tx| levels(pool, tx, root, &ops[at + 1..], plain));
        }
        unsafe { apply(pool, tx, root, op, plain)? };
    }
    Ok(())
}

unsafe fn apply(pool: &Pool, tx: &Tx, root: *mut Root, op: &Op, plain: bool) -> Result<(), Error> {
    unsafe {
        let place = |slot: usize| &raw mut (*root).slots[slot];
        let store = |slot: usize, value: Slot| {
            if !plain {
                tx.add(place(slot))?;
            }
            place(slot).write(value);
            Ok::<_, Error>(())
        };
        let object = |slot: usize| {
            let Slot { object, len } = place(slot).read();
            (!object.is_null()).then(|| std::slice::from_raw_parts_mut(object, len as usize))
        };
        match *op {
            Op::New { slot, len, tag } => {
                if let Some(old) = object(slot) {
                    tx.free(old.as_mut_ptr())?;
                }
                let type_id = <u8 as durum::Described>::description().id();
                let new = tx.alloc_bytes(pool, type_id, len, 8)?;
                fill(std::slice::from_raw_parts_mut(new, len), tag);
                store(
                    slot,
                    Slot {
                        object: new,
                        len: len as u64,
                    },
                )?;
            }
            Op::Write { slot, at, len, tag } => {
                if let Some(bytes) = object(slot) {
                    let range = part(bytes.len(), at, len);
                    let bytes = &mut bytes[range];
                    if !plain {
                        tx.add_bytes(bytes.as_mut_ptr(), bytes.len(), Announce::Backup)?;
                    }
                    fill(bytes, tag);
                }
            }
            Op::Announce { slot, at, len } => {
                if let Some(bytes) = object(slot) {
                    let range = part(bytes.len(), at, len);
                    tx.add_bytes(
                        bytes[range.clone()].as_mut_ptr(),
                        range.len(),
                        Announce::Backup,
                    )?;
                }
            }
            Op::Tag { slot, tag } => tx.set(&raw mut (*root).tags[slot], tag)?,
            Op::Swap { slots: (a, b) } => {
                let (first, second) = (place(a).read(), place(b).read());
                store(a, second)?;
                store(b, first)?;
            }
            Op::Free { slot } => {
                if let Some(old) = object(slot) {
                    tx.free(old.as_mut_ptr())?;
                    store(
                        slot,
                        Slot {
                            object: std::ptr::null_mut(),
                            len: 0,
                        },
                    )?;
                }
            }
            Op::Deeper => unreachable!("a level of its own"),
        }
        Ok(())
    }
}

fn subjects() -> Vec<Subject> {
    let on = |domain| StoreOptions::new().domain(domain);
    let small = |domain| on(domain).log_max(256 << 10);
    vec![
        Subject::new("hybrid", Engine::Hybrid, on(Domain::Dram)),
        Subject::new("hybrid on files", Engine::Hybrid, on(Domain::File)),
        Subject::new("shadow", Engine::Shadow, on(Domain::Dram)),
        Subject::new("shadow, small log", Engine::Shadow, small(Domain::Dram)),
        Subject::new(
            "shadow on files, small log, nothing buffered",
            Engine::Shadow,
            small(Domain::File).buffered_window(Duration::ZERO),
        ),
        Subject::new(
            "shadow on files, no thread",
            Engine::Shadow,
            on(Domain::File).checkpoint_thread(false),
        ),
        Subject::new("twin", Engine::Twin, on(Domain::Dram)),
        Subject::new("twin on files", Engine::Twin, on(Domain::File)),
    ]
}

fn all_agree(steps: &[Step]) {
    let mut subjects = subjects();
    let mut model = Model::default();
    for (number, step) in steps.iter().enumerate() {
        let before = model.clone();
        if let Step::Transaction {
            ops,
            end: End::Commit,
            ..
        } = step
        {
            ops.iter().for_each(|op| apply_to_model(&mut model, op));
        }
        for subject in &mut subjects {
            match step {
                Step::Transaction { kind, ops, end } => subject.run(*kind, ops, *end),
                Step::Sync => subject.pool().sync().unwrap(),
                Step::Reopen => subject.reopen(),
            }
            let name = subject.name;
            assert!(
                subject.holds() == model,
                "{name}: step {number}, {step:?}, from {before:?}"
            );
        }
    }
    for subject in &mut subjects {
        subject.reopen();
        assert!(
            subject.holds() == model,
            "{}: opened again at the end",
            subject.name
        );
        subject.is_sound(&model);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 4, max_shrink_iters: 200, ..ProptestConfig::default() })]

    #[test]
    fn every_engine_leaves_the_same(steps in proptest::collection::vec(step(), 1..40)) {
        all_agree(&steps);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 100, max_shrink_iters: 2000, ..ProptestConfig::default() })]

    #[test]
    #[ignore = "minutes; make test-long runs it"]
    fn every_engine_leaves_the_same_for_long(steps in proptest::collection::vec(step(), 1..120)) {
        all_agree(&steps);
    }
}
