//! Structures of the typed interface, crashed at every store, write-back and fence of their transactions.
//!
//! A program makes, shares, moves and drops objects, commits and aborts; beside it goes a model. Each image is
//! recovered, checked (every pointer leads to an object, no object is lost), opened, and has to be what the model was
//! after the last transaction that returned, or after the next one.
#![deny(unsafe_code)]

#[path = "typed_crash/exports.rs"]
mod exports;

use std::collections::BTreeMap;
use std::path::Path;

use durum::typed::*;
use durum::{Domain, Engine, PoolOptions, StoreOptions};
use durum_persist::record::{self, Recorder, RecorderOptions};
use durum_persist::simulate::{Plan, Rules, explore_with_recovery};
use durum_service::{CheckOptions, Embedded, Leaks, Severity};

durum::pool!(P);

const SLOTS: usize = 3;

#[derive(PSafe, Parts)]
#[repr(C)]
struct Node {
    value: u64,
    next: Option<Pbox<Node, P>>,
}

/// A counted object that holds another.
#[derive(PSafe)]
#[repr(C)]
struct Link {
    value: u64,
    next: Option<Parc<Link, P>>,
}

/// The same of one thread, with a cell in it, and a pointer back that does not count.
#[derive(PSafe)]
#[repr(C)]
struct Single {
    value: PCell<u64, P>,
    next: Option<Prc<Single, P>>,
    before: PRefCell<Option<PWeak<Single, P, Local>>, P>,
}

#[derive(PSafe, Root)]
#[repr(C)]
struct Book {
    list: PRefCell<Option<Pbox<Node, P>>, P>,
    numbers: PRefCell<PVec<u64, P>, P>,
    boxes: PRefCell<PVec<Pbox<u64, P>, P>, P>,
    slots: [PMutex<Option<Parc<Link, P>>, P>; SLOTS],
    weak: PRefCell<Option<PWeak<Link, P>>, P>,
    text: PRefCell<PString<P>, P>,
    counter: PCell<u64, P>,
    held: PCell<Option<Pbox<u64, P>>, P>,
    chains: [PRefCell<Option<Prc<Single, P>>, P>; SLOTS],
    local_weak: PRefCell<Option<PWeak<Single, P, Local>>, P>,
    hashed: PRefCell<PHashMap<u64, PString<P>, P>, P>,
    ordered: PRefCell<PBTreeMap<u64, Pbox<u64, P>, P>, P>,
}

/// What a book holds.
#[derive(Clone, Debug, Default, PartialEq)]
struct Model {
    list: Vec<u64>,
    numbers: Vec<u64>,
    boxes: Vec<u64>,
    /// Values of the chain that begins at each slot. Two chains that share a link share what comes after it.
    slots: [Vec<u64>; SLOTS],
    /// The value of the object that the weak pointer leads to, if that lives.
    weak: Option<u64>,
    text: String,
    counter: u64,
    held: Option<u64>,
    /// As `slots`; with each value the one that the pointer back leads to.
    chains: [Vec<(u64, Option<u64>)>; SLOTS],
    local_weak: Option<u64>,
    hashed: BTreeMap<u64, String>,
    ordered: BTreeMap<u64, u64>,
}

fn read(book: &Book) -> Model {
    let mut model = Model::default();
    let list = book.list.borrow();
    let mut at = list.as_ref();
    while let Some(node) = at {
        model.list.push(node.value);
        at = node.next.as_ref();
    }
    model.numbers = book.numbers.borrow().to_vec();
    model.boxes = book.boxes.borrow().iter().map(|value| **value).collect();
    model.text = book.text.borrow().to_string();
    let (slots, weak) = P::transaction(|j| {
        let chain = |slot: &PMutex<Option<Parc<Link, P>>, P>| {
            let first = slot.lock(j);
            let mut values = Vec::new();
            let mut at = first.as_ref();
            while let Some(link) = at {
                values.push(link.value);
                at = link.next.as_ref();
            }
            values
        };
        let weak = book.weak.borrow();
        let target = weak.as_ref().and_then(|weak| weak.upgrade(j));
        (
            book.slots.each_ref().map(chain),
            target.map(|link| link.value),
        )
    })
    .expect("reading changes nothing");
    model.slots = slots;
    model.weak = weak;
    read_local(book, &mut model);
    model.counter = book.counter.get();
    let hashed = book.hashed.borrow();
    let texts = hashed.iter().map(|(key, text)| (*key, text.to_string()));
    model.hashed = texts.collect();
    let ordered = book.ordered.borrow();
    model.ordered = ordered.iter().map(|(key, value)| (*key, **value)).collect();
    // What both maps find by key is what they list.
    for (key, text) in &model.hashed {
        assert_eq!(hashed.get(key).map(|found| found.as_str()), Some(&**text));
    }
    for (key, value) in &model.ordered {
        assert_eq!(ordered.get(key).map(|found| **found), Some(*value));
    }
    assert_eq!(
        (hashed.len(), ordered.len()),
        (model.hashed.len(), model.ordered.len())
    );
    model
}

/// The part that is of one thread.
fn read_local(book: &Book, model: &mut Model) {
    P::transaction(|j| {
        let chain = |chain: &PRefCell<Option<Prc<Single, P>>, P>| {
            let first = chain.borrow();
            let mut values = Vec::new();
            let mut at = first.as_ref();
            while let Some(local) = at {
                let before = local.before.borrow();
                let before = before.as_ref().and_then(|before| before.upgrade(j));
                values.push((local.value.get(), before.map(|local| local.value.get())));
                at = local.next.as_ref();
            }
            values
        };
        let weak = book.local_weak.borrow();
        let target = weak.as_ref().and_then(|weak| weak.upgrade(j));
        // There is no other way to look into a `PCell` that holds a pointer.
        let held = book.held.take(j);
        let number = held.as_ref().map(|held| **held);
        book.held.set(held, j);
        let chains = book.chains.each_ref().map(chain);
        (chains, target.map(|local| local.value.get()), number)
    })
    .map(|(chains, weak, held)| {
        model.chains = chains;
        model.local_weak = weak;
        model.held = held;
    })
    .expect("reading changes nothing");
}

/// The kind of step that is rolled back. Those before it are not.
const ABORTS: u64 = 30;

/// One transaction. `value` is not used before.
fn step(book: &Book, kind: u64, value: u64) -> durum::Result<()> {
    let (from, to) = (value as usize % SLOTS, value as usize / SLOTS % SLOTS);
    P::try_transaction(|j| {
        match kind {
            0 => {
                let mut list = book.list.borrow_mut(j);
                let next = list.take();
                *list = Some(Pbox::new(Node { value, next }, j));
            }
            1 => {
                let mut list = book.list.borrow_mut(j);
                let rest = list.take().map(|node| node.into_inner(j).next);
                *list = rest.flatten();
            }
            2 => {
                if let Some(node) = book.list.borrow_mut(j).as_mut() {
                    node.value = value;
                    node.next = Some(Pbox::new(
                        Node {
                            value,
                            next: node.next.take(),
                        },
                        j,
                    ));
                }
            }
            3 => *book.list.borrow_mut(j) = None,
            4 => (0..3).for_each(|more| book.numbers.borrow_mut(j).push(value + more, j)),
            5 => {
                let mut numbers = book.numbers.borrow_mut(j);
                if !numbers.is_empty() {
                    let at = value as usize % numbers.len();
                    numbers.remove(at);
                }
            }
            6 => book.boxes.borrow_mut(j).insert(0, Pbox::new(value, j), j),
            7 => {
                let mut boxes = book.boxes.borrow_mut(j);
                if let Some(first) = boxes.first_mut() {
                    **first = value;
                }
                boxes.pop();
            }
            8 => {
                // What the slot had becomes the tail of a new chain.
                let mut slot = book.slots[to].lock(j);
                let next = slot.take();
                *slot = Some(Parc::new(Link { value, next }, j));
            }
            9 => {
                let shared = book.slots[from].lock(j).as_ref().map(|link| link.pclone(j));
                *book.slots[to].lock(j) = shared;
            }
            10 => *book.slots[to].lock(j) = None,
            11 => {
                let weak = book.slots[from]
                    .lock(j)
                    .as_ref()
                    .map(|link| link.downgrade(j));
                *book.weak.borrow_mut(j) = weak;
            }
            12 => {
                let revived = book.weak.borrow().as_ref().and_then(|weak| weak.upgrade(j));
                *book.slots[to].lock(j) = revived;
            }
            13 => book.text.borrow_mut(j).push_str(&format!("{value} "), j),
            14 => book.text.borrow_mut(j).clear(),
            15 => book.counter.set(value, j),
            16 => drop(book.held.replace(Some(Pbox::new(value, j)), j)),
            17 => drop(book.held.take(j)),
            18 => {
                // What the chain had becomes its tail, and points back.
                let mut chain = book.chains[to].borrow_mut(j);
                let next = chain.take();
                let behind = next.as_ref().map(|next| next.pclone(j));
                let first = Single {
                    value: PCell::new(value, j),
                    next,
                    before: PRefCell::new(None, j),
                };
                let first = Prc::new(first, j);
                if let Some(behind) = behind {
                    *behind.before.borrow_mut(j) = Some(first.downgrade(j));
                }
                *chain = Some(first);
            }
            19 => {
                let shared = book.chains[from].borrow().as_ref().map(|it| it.pclone(j));
                *book.chains[to].borrow_mut(j) = shared;
            }
            20 => *book.chains[to].borrow_mut(j) = None,
            21 => {
                if let Some(local) = &*book.chains[from].borrow() {
                    local.value.set(value, j);
                    *book.local_weak.borrow_mut(j) = Some(local.downgrade(j));
                }
            }
            22 => {
                let weak = book.local_weak.borrow();
                let revived = weak.as_ref().and_then(|weak| weak.upgrade(j));
                *book.chains[to].borrow_mut(j) = revived;
            }
            23 => {
                // Enough for a larger table, and for another level of the tree.
                for key in value..value + 12 {
                    let text = PString::new(&format!("text {key}"), j);
                    book.hashed.borrow_mut(j).insert(key * 7, text, j);
                    let value = Pbox::new(key, j);
                    book.ordered.borrow_mut(j).insert(key * 7 % 64, value, j);
                }
            }
            24 => {
                let mut hashed = book.hashed.borrow_mut(j);
                let key = hashed.keys().min().copied().unwrap_or(value);
                hashed.entry(key, j).or_default().push_str("more", j);
                hashed.entry(value, j).or_default().push('x', j);
            }
            25 => {
                let mut ordered = book.ordered.borrow_mut(j);
                **ordered
                    .entry(value % 64, j)
                    .or_insert_with(|| Pbox::new(0, j)) += value;
                ordered.pop_first();
            }
            26 => {
                book.hashed.borrow_mut(j).retain(|key, _| key % 3 != 0);
                book.ordered.borrow_mut(j).retain(|key, _| key % 3 != 0);
            }
            27 => {
                book.hashed.borrow_mut(j).clear();
                book.ordered.borrow_mut(j).clear();
            }
            28 => {
                // Nothing is announced on the way to the end of the list.
                let mut list = book.list.borrow_mut(j);
                let mut link = list.later();
                while link.is_some() {
                    link = match link.some() {
                        Ok(node) => node.object().parts().next,
                        Err(none) => none,
                    };
                }
                *link.change() = Some(Pbox::new(Node { value, next: None }, j));
            }
            29 => {
                // Parts of two nodes, and of the second what comes after it.
                let mut list = book.list.borrow_mut(j);
                if let Ok(first) = list.later().some() {
                    let first = first.object().parts();
                    *first.value.change() = value;
                    if let Ok(second) = first.next.some() {
                        let second = second.object().parts();
                        *second.value.change() = value + 1;
                        *second.next.change() = None;
                    }
                }
            }
            _ => {
                // Everything at once, and then not.
                *book.list.borrow_mut(j) = None;
                book.numbers.borrow_mut(j).push(value, j);
                book.boxes.borrow_mut(j).clear();
                book.slots.iter().for_each(|slot| *slot.lock(j) = None);
                *book.weak.borrow_mut(j) = None;
                book.counter.set(value, j);
                drop(book.held.take(j));
                (book.chains.iter()).for_each(|chain| *chain.borrow_mut(j) = None);
                *book.local_weak.borrow_mut(j) = None;
                book.hashed.borrow_mut(j).clear();
                book.ordered.borrow_mut(j).clear();
                return Err(durum::Error::Aborted);
            }
        }
        Ok(())
    })
}

fn options(engine: Engine, domain: Domain, base: u64) -> OpenOptions {
    let store = StoreOptions::new()
        .domain(domain)
        .base(base)
        .checkpoint_thread(false);
    OpenOptions::new()
        .create(true)
        .store(store)
        .pool(PoolOptions::new().engine(engine))
}

/// A store in which every pointer leads to an object, and no object is lost.
fn without_leaks(image: &Path) -> Result<(), String> {
    let text = |error: &dyn std::fmt::Display| error.to_string();
    let report = durum_service::check(image, &CheckOptions::default()).map_err(|e| text(&e))?;
    let worst = report
        .findings
        .iter()
        .find(|finding| finding.severity > Severity::Leak);
    if let Some(finding) = worst {
        return Err(format!("check found: {finding}"));
    }
    for pool in &report.pools {
        match &pool.leaks {
            Leaks::Judged { objects: 0, .. } => {}
            leaks => return Err(format!("{leaks:?}")),
        }
    }
    Ok(())
}

fn judge(image: &Path, options: &OpenOptions, allowed: &[&Model]) -> Result<(), String> {
    let text = |error: &dyn std::fmt::Display| error.to_string();
    without_leaks(image)?;
    let options = options.clone().create(false);
    let book = P::open::<Book>(image, options).map_err(|e| text(&e))?;
    let found = read(&book);
    if !allowed.contains(&&found) {
        return Err(format!("found {found:?}, and not one of {allowed:?}"));
    }
    // It can be used, too.
    for kind in 0..ABORTS {
        step(&book, kind, 1_000_000 + kind).map_err(|e| text(&e))?;
    }
    P::transaction(|j| {
        *book.list.borrow_mut(j) = None;
        book.boxes.borrow_mut(j).clear();
        book.slots.iter().for_each(|slot| *slot.lock(j) = None);
        *book.weak.borrow_mut(j) = None;
        drop(book.held.take(j));
        (book.chains.iter()).for_each(|chain| *chain.borrow_mut(j) = None);
        *book.local_weak.borrow_mut(j) = None;
        book.hashed.borrow_mut(j).clear();
        book.ordered.borrow_mut(j).clear();
    })
    .map_err(|e| text(&e))?;
    Ok(())
}

/// Steps by a fixed sequence of random numbers (Knuth's linear congruential generator).
fn kinds(count: usize, mut seed: u64) -> impl Iterator<Item = u64> {
    (0..count).map(move |_| {
        seed = seed
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (seed >> 33) % (ABORTS + 1)
    })
}

fn survives(engine: Engine, domain: Domain, rules: Rules, base: u64, points: usize) {
    // One pool type, one pool at a time.
    static TURN: std::sync::Mutex<()> = std::sync::Mutex::new(());
    let _turn = TURN
        .lock()
        .unwrap_or_else(std::sync::PoisonError::into_inner);
    let dir = tempfile::tempdir_in("/dev/shm").unwrap();
    let path = dir.path().join("store");
    let options = options(engine, domain, base);
    let book = P::open::<Book>(&path, options.clone()).unwrap();
    for kind in [0, 0, 4, 6, 8, 8, 9, 11, 13, 16, 18, 18, 19, 21, 23] {
        step(&book, kind, 100 + kind).unwrap();
    }
    let mut states = vec![read(&book)];
    let recorder = Recorder::start(&path, RecorderOptions::default());
    for (number, kind) in kinds(100, base).enumerate() {
        let result = step(&book, kind, number as u64);
        assert_eq!(result.is_err(), kind == ABORTS);
        states.push(read(&book));
        record::note("step", states.len() as u64 - 1);
    }
    let trace = recorder.stop();
    drop(book);
    let mut plan = Plan::new(rules, base);
    plan.points_max = match std::env::var_os("DURUM_CRASH_ALL") {
        Some(_) => None,
        None => Some(points.div_ceil(2)),
    };
    plan.random_images = 2;
    plan.single_units_max = 2;
    plan.nested_one_in = 50;
    plan.nested_points_max = Some(5);
    let recover = |image: &Path| {
        let options = durum_service::OpenOptions {
            domain: Some(domain),
            ..Default::default()
        };
        let opened = Embedded::open(image, options);
        opened.map(drop).map_err(|error| error.to_string())
    };
    let report = explore_with_recovery(&trace, &plan, recover, |image, point| {
        let last = point.last_note("step").unwrap_or(0) as usize;
        let allowed: Vec<&Model> = states[last..].iter().take(2).collect();
        // A thread of its own: what it keeps of the store goes away with it.
        std::thread::scope(|scope| {
            let judged = scope.spawn(|| judge(image, &options, &allowed));
            judged
                .join()
                .unwrap_or_else(|_| Err("the client panicked".into()))
        })
    });
    match report {
        Ok(report) => println!(
            "{engine:?}: {} points, {} images",
            report.points, report.images
        ),
        Err(failure) => panic!("{failure}"),
    }
}

durum::pool!(L);

/// Entries count when `filled` says so, which is published after them.
#[derive(PSafe, Root)]
#[repr(C)]
struct Ring {
    entries: [LogFree<u64, L>; 12],
    apart: [u64; 16],
    filled: LogFree<u64, L>,
}

#[test]
#[allow(unsafe_code)]
fn published_words_are_durable_in_their_order() {
    for (engine, base) in [
        (Engine::Shadow, 0x2c00_0000_0000),
        (Engine::Hybrid, 0x2e00_0000_0000),
        (Engine::Twin, 0x3600_0000_0000),
    ] {
        let dir = tempfile::tempdir_in("/dev/shm").unwrap();
        let path = dir.path().join("store");
        let options = options(engine, Domain::Dax, base);
        let ring = L::open::<Ring>(&path, options.clone()).unwrap();
        let recorder = Recorder::start(&path, RecorderOptions::default());
        for (number, entry) in ring.entries.iter().enumerate() {
            let number = number as u64;
            let result = L::try_transaction(|j| {
                // SAFETY: an entry that the ring does not count may be anything.
                unsafe {
                    entry.publish(100 + number, j)?;
                    ring.filled.publish(number + 1, j)
                }
            });
            result.unwrap();
            record::note("filled", number + 1);
        }
        let trace = recorder.stop();
        drop(ring);
        let plan = Plan::new(Rules::Lines, base);
        let recover = |_: &Path| Ok(());
        let report = explore_with_recovery(&trace, &plan, recover, |image, point| {
            let options = options.clone().create(false);
            std::thread::scope(|scope| {
                let judged = scope.spawn(|| {
                    let ring = L::open::<Ring>(image, options).map_err(|e| e.to_string())?;
                    let filled = ring.filled.get();
                    let told = point.last_note("filled").unwrap_or(0);
                    let counted = ring.entries.iter().zip(100..).take(filled as usize);
                    let is_whole = counted.clone().all(|(entry, value)| entry.get() == value);
                    (filled >= told && is_whole)
                        .then_some(())
                        .ok_or_else(|| format!("{filled} filled of {told} told, whole: {is_whole}"))
                });
                judged
                    .join()
                    .unwrap_or_else(|_| Err("the client panicked".into()))
            })
        });
        assert!(report.unwrap_or_else(|failure| panic!("{failure}")).images > 50);
    }
}

#[test]
fn shadow_survives_on_mapped_memory() {
    survives(
        Engine::Shadow,
        Domain::Dax,
        Rules::Lines,
        0x2000_0000_0000,
        80,
    );
}

#[test]
fn hybrid_survives_on_mapped_memory() {
    survives(
        Engine::Hybrid,
        Domain::Dax,
        Rules::Lines,
        0x2400_0000_0000,
        80,
    );
}

#[test]
fn twin_survives_on_mapped_memory() {
    survives(
        Engine::Twin,
        Domain::Dax,
        Rules::Lines,
        0x3000_0000_0000,
        80,
    );
}

#[test]
fn shadow_survives_on_a_file_system() {
    survives(
        Engine::Shadow,
        Domain::File,
        Rules::Sectors,
        0x2800_0000_0000,
        40,
    );
}

#[test]
fn twin_survives_on_a_file_system() {
    survives(
        Engine::Twin,
        Domain::File,
        Rules::Sectors,
        0x3200_0000_0000,
        40,
    );
}
