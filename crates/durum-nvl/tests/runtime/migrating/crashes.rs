//! A crash leaves the old heap or the new one.

use durum_persist::record::{self, Recorder, RecorderOptions};
use durum_persist::simulate::{Plan, Rules, explore_with_recovery};
use durum_service::{Embedded, OpenOptions};

use super::*;

fn options_at(base: u64, engine: Engine) -> HeapOptions {
    let mut options = HeapOptions::default();
    options.engine = Some(engine);
    options.store = durum::StoreOptions::new().base(base);
    options
}

fn crashes(engine: Engine, base: u64, points_max: Option<usize>) -> u64 {
    let dir = tempfile::tempdir_in("/dev/shm").unwrap();
    let path = dir.path().join("heap");
    let options = options_at(base, engine);
    let heap = Heap::create(&path, 0, 0, &options).unwrap();
    unsafe {
        fill(heap);
        nvl_close(heap);
    }
    let recorder = Recorder::start(dir.path(), RecorderOptions::default());
    migrate(&path, is_job(), false).unwrap();
    record::note("migrated", 1);
    let trace = recorder.stop();
    let mut plan = Plan::new(Rules::Sectors, base);
    plan.points_max = points_max;
    plan.random_images = 1;
    plan.single_units_max = 2;
    plan.nested_one_in = 30;
    plan.nested_points_max = Some(2);
    let recover = |image: &Path| {
        let opened = Embedded::open(&image.join("heap"), OpenOptions::default());
        opened.map(drop).map_err(|error| error.to_string())
    };
    let report = explore_with_recovery(&trace, &plan, recover, |image, point| {
        let image = image.join("heap");
        let is_over = point.last_note("migrated").is_some();
        // A thread of its own: what it keeps of the store goes away with it.
        std::thread::scope(|scope| {
            let judged = scope.spawn(|| judge(&image, &options, is_over));
            judged.join().unwrap_or_else(|_| Err("a panic".into()))
        })
    });
    let report = report.unwrap();
    report.images as u64
}

fn judge(image: &Path, options: &HeapOptions, is_over: bool) -> Result<(), String> {
    let heap = Heap::open(image, options).map_err(|error| error.to_string())?;
    let found = unsafe {
        let is_new_type = __nvl_root_is(heap, JOB.as_ptr()) == 1;
        let found = match (is_new_type, is_over) {
            (false, true) => Err("a migration that was told is gone".to_owned()),
            (true, _) => is_new(heap),
            (false, false) => is_old(heap),
        };
        nvl_close(heap);
        found
    };
    found?;
    match leaks(image) {
        0 => Ok(()),
        leaks => Err(format!("{leaks} objects are lost")),
    }
}

#[test]
fn a_crash_leaves_the_old_heap_or_the_new_one() {
    for (engine, base) in ENGINES.into_iter().zip([0x4400, 0x4800, 0x4c00]) {
        let images = crashes(engine, base << 32, Some(40));
        assert!(images > 30, "{engine:?}: {images} images");
    }
}
