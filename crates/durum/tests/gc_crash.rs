//! A collection of garbage, crashed at every store, write-back and fence: all of the garbage is gone, or none.
//!
//! Each image is recovered and checked: no damage, every count is the number of pointers, and as much garbage as before
//! or nothing. What lives has not changed, and another collection completes.
#![forbid(unsafe_code)]

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::{Mutex, PoisonError};

use durum::gc::{GcOptions, collect};
use durum::typed::*;
use durum::{Domain, Engine, PoolOptions, StoreOptions};
use durum_persist::record::{self, Recorder, RecorderOptions};
use durum_persist::simulate::{Plan, Rules, explore_with_recovery};
use durum_service::{CheckOptions, Embedded, Leaks, Severity};

durum::pool!(P);

#[derive(PSafe)]
#[repr(C)]
struct Node {
    value: u64,
    next: PRefCell<Option<Parc<Node, P>>, P>,
    other: PRefCell<Option<Parc<Node, P>>, P>,
    weak: PRefCell<Option<PWeak<Node, P>>, P>,
    text: PString<P>,
}

#[derive(PSafe, Root)]
#[repr(C)]
struct Book {
    live: PRefCell<Option<Parc<Node, P>>, P>,
    weak: PRefCell<PVec<PWeak<Node, P>, P>, P>,
}

fn node(value: u64, j: &Journal<P>) -> Parc<Node, P> {
    let node = Node {
        value,
        next: PRefCell::new(None, j),
        other: PRefCell::new(None, j),
        weak: PRefCell::new(None, j),
        text: PString::new(&"text ".repeat(value as usize), j),
    };
    Parc::new(node, j)
}

const RINGS: u64 = 4;
const RING: u64 = 3;

/// Rings that lead to each other and to what lives, and weak pointers from there to some of them.
fn fill(book: &Book, j: &Journal<P>) {
    let live = node(100, j);
    let mut before: Option<Parc<Node, P>> = None;
    for number in 0..RINGS {
        let first = node(1, j);
        let mut last = first.pclone(j);
        for value in 2..=RING {
            let next = node(value * 10, j);
            *next.other.borrow_mut(j) = Some(live.pclone(j));
            *next.weak.borrow_mut(j) = Some(live.downgrade(j));
            *last.next.borrow_mut(j) = Some(next.pclone(j));
            last = next;
        }
        *last.next.borrow_mut(j) = Some(first.pclone(j));
        if number % 2 == 0 {
            book.weak.borrow_mut(j).push(last.downgrade(j), j);
        }
        *first.other.borrow_mut(j) = before.replace(first.pclone(j));
    }
    *book.live.borrow_mut(j) = Some(live);
}

fn store_options(domain: Domain, base: u64) -> StoreOptions {
    StoreOptions::new()
        .domain(domain)
        .base(base)
        .checkpoint_thread(false)
}

/// Objects that leak, in a store in which nothing else is wrong.
fn leaks(path: &Path) -> Result<u64, String> {
    let report = durum_service::check(path, &CheckOptions::default());
    let report = report.map_err(|error| error.to_string())?;
    let is_lost = |text: &str| text.contains("a leak: ");
    let wrong = report.findings.iter().find(|finding| {
        finding.severity == Severity::Damage
            || finding.severity == Severity::Leak && !is_lost(&finding.text)
    });
    if let Some(finding) = wrong {
        return Err(finding.to_string());
    }
    match &report.pools[0].leaks {
        Leaks::Judged { objects, .. } => Ok(*objects),
        leaks => Err(format!("{leaks:?}")),
    }
}

struct Setting {
    engine: Engine,
    domain: Domain,
    rules: Rules,
    base: u64,
    /// Crashes that are tried, unless all are.
    points: usize,
    /// Objects in one transaction.
    objects_max: usize,
}

impl Setting {
    fn gc_options(&self) -> GcOptions {
        let mut options = GcOptions::new().store(store_options(self.domain, self.base));
        options.objects_max = self.objects_max;
        options
    }

    /// Gives how many objects were left.
    fn judge(&self, image: &Path, before: u64, done: bool) -> Result<u64, String> {
        let left = leaks(image)?;
        let is_whole = self.objects_max == usize::MAX;
        if done && left != 0 || is_whole && left != 0 && left != before {
            return Err(format!("{left} of {before} objects are left"));
        }
        let text = |error: durum::Error| error.to_string();
        let freed = collect(image, &self.gc_options()).map_err(text)?;
        if freed.objects() + freed.husks() != left {
            return Err(format!("{freed:?} of {left} objects"));
        }
        if leaks(image)? != 0 {
            return Err("something is left behind".into());
        }
        let options = OpenOptions::new().store(store_options(self.domain, self.base));
        let book = P::open::<Book>(image, options).map_err(text)?;
        P::transaction(|j| {
            let live = book.live.borrow();
            let live = live.as_ref().expect("it lives");
            assert_eq!((live.value, live.strong_count(j)), (100, 1));
            assert_eq!(live.text.len(), 500);
            let weak = book.weak.borrow();
            assert!(weak.iter().all(|weak| weak.upgrade(j).is_none()));
        })
        .map_err(text)?;
        P::transaction(|j| fill(&book, j)).map_err(text)?;
        Ok(left)
    }

    fn survives(&self) {
        // One pool type, one pool at a time.
        static TURN: Mutex<()> = Mutex::new(());
        let _turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
        let dir = tempfile::tempdir_in("/dev/shm").unwrap();
        let path = dir.path().join("store");
        let options = OpenOptions::new()
            .create(true)
            .store(store_options(self.domain, self.base))
            .pool(PoolOptions::new().engine(self.engine));
        let book = P::open::<Book>(&path, options).unwrap();
        P::transaction(|j| fill(&book, j)).unwrap();
        book.close().unwrap();
        let before = leaks(&path).unwrap();
        // Nodes with their texts.
        assert_eq!(before, 2 * RINGS * RING);
        let recorder = Recorder::start(&path, RecorderOptions::default());
        let report = collect(&path, &self.gc_options()).unwrap();
        record::note("done", 1);
        let trace = recorder.stop();
        assert_eq!((report.objects(), report.husks()), (before - 2, 2));
        assert_eq!(report.transactions > 1, self.objects_max < usize::MAX);
        let mut plan = Plan::new(self.rules, self.base);
        plan.points_max = match std::env::var_os("DURUM_CRASH_ALL") {
            Some(_) => None,
            None => Some(self.points.div_ceil(2)),
        };
        plan.random_images = 2;
        plan.single_units_max = 2;
        plan.nested_one_in = 50;
        plan.nested_points_max = Some(5);
        let recover = |image: &Path| {
            let options = durum_service::OpenOptions {
                domain: Some(self.domain),
                ..Default::default()
            };
            let opened = Embedded::open(image, options);
            opened.map(drop).map_err(|error| error.to_string())
        };
        let seen = Mutex::new(BTreeSet::new());
        let report = explore_with_recovery(&trace, &plan, recover, |image, point| {
            let done = point.last_note("done").is_some();
            let seen = &seen;
            // A thread of its own: what it keeps of the store goes away with it.
            std::thread::scope(|scope| {
                let judged = scope.spawn(|| self.judge(image, before, done));
                let left = judged
                    .join()
                    .unwrap_or_else(|_| Err("the client panicked".into()))?;
                seen.lock().unwrap().insert(left);
                Ok(())
            })
        });
        match report {
            Ok(report) => println!(
                "{:?}: {} points, {} images",
                self.engine, report.points, report.images
            ),
            Err(failure) => panic!("{failure}"),
        }
        let seen = seen.into_inner().unwrap();
        assert!(seen.contains(&0) && seen.contains(&before), "{seen:?}");
        assert_eq!(seen.len() > 2, self.objects_max < usize::MAX, "{seen:?}");
    }
}

#[test]
fn on_shadow_all_is_freed_or_nothing() {
    Setting {
        engine: Engine::Shadow,
        domain: Domain::Dax,
        rules: Rules::Lines,
        base: 0x2000_0000_0000,
        points: 30,
        objects_max: usize::MAX,
    }
    .survives();
}

#[test]
fn on_hybrid_all_is_freed_or_nothing() {
    Setting {
        engine: Engine::Hybrid,
        domain: Domain::Dax,
        rules: Rules::Lines,
        base: 0x2400_0000_0000,
        points: 30,
        objects_max: usize::MAX,
    }
    .survives();
}

#[test]
fn on_twin_all_is_freed_or_nothing() {
    Setting {
        engine: Engine::Twin,
        domain: Domain::Dax,
        rules: Rules::Lines,
        base: 0x3000_0000_0000,
        points: 30,
        objects_max: usize::MAX,
    }
    .survives();
}

#[test]
fn on_a_file_system_all_is_freed_or_nothing() {
    Setting {
        engine: Engine::Shadow,
        domain: Domain::File,
        rules: Rules::Sectors,
        base: 0x2800_0000_0000,
        points: 40,
        objects_max: usize::MAX,
    }
    .survives();
}

#[test]
fn between_several_transactions_nothing_is_wrong() {
    Setting {
        engine: Engine::Shadow,
        domain: Domain::Dax,
        rules: Rules::Lines,
        base: 0x2c00_0000_0000,
        points: 30,
        objects_max: 6,
    }
    .survives();
}
