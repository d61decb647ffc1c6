//! A crash leaves the old heap or the new one.

use std::collections::BTreeSet;

use durum_persist::Site;
use durum_persist::record::{self, EventKind, Recorder, RecorderOptions, Trace};
use durum_persist::simulate::{Failure, Plan, Report, Rules, explore_with_recovery};
use durum_service::{Embedded, OpenOptions};

use super::audit::{Told, audit};
use super::*;

fn options_at(base: u64, engine: Engine) -> HeapOptions {
    let mut options = HeapOptions::default();
    options.engine = Some(engine);
    options.store = durum::StoreOptions::new().base(base);
    options
}

/// A migration of what [`fill`] has made, as a power cut may meet it anywhere.
struct Recorded {
    options: HeapOptions,
    old: Told,
    new: Told,
    trace: Trace,
    plan: Plan,
}

/// `skip` is what is left out of it.
fn recorded(engine: Engine, base: u64, skip: Option<Site>) -> Recorded {
    let dir = tempfile::tempdir_in("/dev/shm").unwrap();
    let path = dir.path().join("heap");
    let options = options_at(base, engine);
    let heap = Heap::create(&path, 0, 0, &options).unwrap();
    unsafe {
        fill(heap);
        nvl_close(heap);
    }
    let old = audit(&path).unwrap();
    let recording = RecorderOptions {
        skip,
        ..RecorderOptions::default()
    };
    let recorder = Recorder::start(dir.path(), recording);
    migrate(&path, is_job(), false).unwrap();
    record::note("migrated", 1);
    let trace = recorder.stop();
    let new = audit(&path).unwrap();
    let mut plan = Plan::new(Rules::Sectors, base);
    plan.random_images = 1;
    plan.single_units_max = 2;
    Recorded {
        options,
        old,
        new,
        trace,
        plan,
    }
}

impl Recorded {
    /// Looks at images of it, up to the first one that is neither old nor new.
    fn explore(&self) -> Result<Report, Failure> {
        let recover = |image: &Path| {
            let opened = Embedded::open(&image.join("heap"), OpenOptions::default());
            opened.map(drop).map_err(|error| error.to_string())
        };
        explore_with_recovery(&self.trace, &self.plan, recover, |image, point| {
            let image = image.join("heap");
            let is_over = point.last_note("migrated").is_some();
            // A thread of its own: what it keeps of the store goes away with it.
            std::thread::scope(|scope| {
                let judged = scope.spawn(|| self.judge(&image, is_over));
                judged.join().unwrap_or_else(|_| Err("a panic".into()))
            })
        })
    }

    fn judge(&self, image: &Path, is_over: bool) -> Result<(), String> {
        // First by its files: a program would follow whatever is there.
        let found = audit(image)?;
        let is_migrated = found == self.new;
        match (is_migrated, is_over) {
            (false, true) => return Err("a migration that was told is gone".to_owned()),
            (false, false) if found != self.old => {
                return Err("it is neither the old heap nor the new one".to_owned());
            }
            _ => {}
        }
        let heap = Heap::open(image, &self.options).map_err(|error| error.to_string())?;
        let found = unsafe {
            let is_new_type = __nvl_root_is(heap, JOB.as_ptr()) == 1;
            let found = match (is_new_type, is_migrated) {
                (true, true) => is_new(heap),
                (false, false) => is_old(heap),
                _ => Err("its root is of the other type".to_owned()),
            };
            nvl_close(heap);
            found
        };
        found?;
        audit(image)?;
        match leaks(image) {
            0 => Ok(()),
            leaks => Err(format!("{leaks} objects are lost")),
        }
    }
}

#[test]
fn a_crash_leaves_the_old_heap_or_the_new_one() {
    for (engine, base) in ENGINES.into_iter().zip([0x4400, 0x4800, 0x4c00]) {
        let mut recorded = recorded(engine, base << 32, None);
        let all = std::env::var_os("DURUM_CRASH_ALL");
        recorded.plan.points_max = all.is_none().then_some(40);
        recorded.plan.nested_one_in = 30;
        recorded.plan.nested_points_max = Some(2);
        let images = recorded.explore().unwrap().images;
        assert!(images > 30, "{engine:?}: {images} images");
    }
}

/// What is missed if it is left out.
const NEEDED: [&str; 5] = [
    "migrated puddle",
    "names of migrated puddles",
    "registry commit",
    "registry snapshot",
    "registry's name",
];
/// What is not: a puddle is synced once more when it is filled, and what the registry's copy has shows only where the
/// medium has damaged the registry.
const SPARE: [&str; 4] = [
    "copy's name",
    "copy's snapshot",
    "new puddle",
    "registry's copy",
];

/// Each sync of a migration is left out alone: then a crash leaves what is neither the old heap nor the new one, or
/// what nobody can open.
#[test]
fn a_sync_that_is_left_out_is_noticed() {
    let is_long = std::env::var_os("DURUM_CRASH_ALL").is_some();
    let engines = if is_long { 3 } else { 1 };
    for (engine, base) in ENGINES
        .into_iter()
        .zip([0x3400, 0x3800, 0x3c00])
        .take(engines)
    {
        let whole = recorded(engine, base << 32, None);
        let is_sync = |kind: &EventKind| {
            matches!(kind, EventKind::Synced { .. } | EventKind::DirSynced { .. })
        };
        let syncs = whole
            .trace
            .events()
            .iter()
            .filter(|event| is_sync(&event.kind));
        let found: BTreeSet<&str> = syncs.filter_map(|event| Some(event.site()?.0)).collect();
        let known: BTreeSet<&str> = NEEDED.into_iter().chain(SPARE).collect();
        assert_eq!(
            found, known,
            "one that this test does not know is left out nowhere"
        );
        for site in NEEDED {
            let told = recorded(engine, base << 32, Some(Site(site))).explore();
            let told = told.expect_err(site);
            println!("{engine:?}, without \"{site}\": {}", told.message);
        }
    }
}
