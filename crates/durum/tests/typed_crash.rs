//! Structures of the typed interface, crashed at every store, write-back and fence of their transactions.
//!
//! A program makes, shares, moves and drops objects, commits and aborts; beside it goes a model. Each image is recovered, checked (every pointer leads to an
//! object, no object is lost), opened, and has to be what the model was after the last transaction that returned, or after the next one.
#![deny(unsafe_code)]

use std::path::Path;

use durum::typed::*;
use durum::{Domain, Engine, PoolOptions, StoreOptions};
use durum_persist::record::{self, Recorder, RecorderOptions};
use durum_persist::simulate::{Plan, Rules, explore_with_recovery};
use durum_service::{CheckOptions, Embedded, Leaks, Severity};

durum::pool!(P);

const SLOTS: usize = 3;

#[derive(PSafe)]
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

#[derive(PSafe, Root)]
#[repr(C)]
struct Book {
    list: PRefCell<Option<Pbox<Node, P>>, P>,
    numbers: PRefCell<PVec<u64, P>, P>,
    boxes: PRefCell<PVec<Pbox<u64, P>, P>, P>,
    slots: [PMutex<Option<Parc<Link, P>>, P>; SLOTS],
    weak: PRefCell<Option<PWeak<Link, P>>, P>,
    text: PRefCell<PString<P>, P>,
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
    model
}

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
            _ => {
                // Everything at once, and then not.
                *book.list.borrow_mut(j) = None;
                book.numbers.borrow_mut(j).push(value, j);
                book.boxes.borrow_mut(j).clear();
                book.slots.iter().for_each(|slot| *slot.lock(j) = None);
                *book.weak.borrow_mut(j) = None;
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

fn judge(image: &Path, options: &OpenOptions, allowed: &[&Model]) -> Result<(), String> {
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
    let options = options.clone().create(false);
    let book = P::open::<Book>(image, options).map_err(|e| text(&e))?;
    let found = read(&book);
    if !allowed.contains(&&found) {
        return Err(format!("found {found:?}, and not one of {allowed:?}"));
    }
    // It can be used, too.
    for kind in 0..=14 {
        step(&book, kind, 1_000_000 + kind).map_err(|e| text(&e))?;
    }
    P::transaction(|j| {
        *book.list.borrow_mut(j) = None;
        book.boxes.borrow_mut(j).clear();
        book.slots.iter().for_each(|slot| *slot.lock(j) = None);
        *book.weak.borrow_mut(j) = None;
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
        (seed >> 33) % 16
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
    for kind in [0, 0, 4, 6, 8, 8, 9, 11, 13] {
        step(&book, kind, 100 + kind).unwrap();
    }
    let mut states = vec![read(&book)];
    let recorder = Recorder::start(&path, RecorderOptions::default());
    for (number, kind) in kinds(60, base).enumerate() {
        let result = step(&book, kind, number as u64);
        assert_eq!(result.is_err(), kind == 15);
        states.push(read(&book));
        record::note("step", states.len() as u64 - 1);
    }
    let trace = recorder.stop();
    drop(book);
    let mut plan = Plan::new(rules, base);
    plan.points_max = match std::env::var_os("DURUM_CRASH_ALL") {
        Some(_) => None,
        None => Some(points),
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
        150,
    );
}

#[test]
fn hybrid_survives_on_mapped_memory() {
    survives(
        Engine::Hybrid,
        Domain::Dax,
        Rules::Lines,
        0x2400_0000_0000,
        150,
    );
}

#[test]
fn twin_survives_on_mapped_memory() {
    survives(
        Engine::Twin,
        Domain::Dax,
        Rules::Lines,
        0x3000_0000_0000,
        150,
    );
}

#[test]
fn shadow_survives_on_a_file_system() {
    survives(
        Engine::Shadow,
        Domain::File,
        Rules::Sectors,
        0x2800_0000_0000,
        60,
    );
}

#[test]
fn twin_survives_on_a_file_system() {
    survives(
        Engine::Twin,
        Domain::File,
        Rules::Sectors,
        0x3200_0000_0000,
        60,
    );
}
