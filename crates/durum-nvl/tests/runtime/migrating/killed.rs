//! Processes that are killed while they make a heap anew leave the old one or the new one, object by object. The page
//! cache survives it: power cuts are those of `crashes.rs`.

use std::time::{Duration, Instant};

use super::audit::audit;
use super::*;

/// Hangs many tasks on the last one of the row: a list, with pointers into those before, weak ones, some that are
/// forgotten, and what only these lead to; and on the last one so many numbers that they may need a puddle for
/// themselves.
unsafe fn fill_more(heap: *mut Handle, many: usize) {
    unsafe {
        let first: *mut Task = __nvl_get_root(heap, TASK.as_ptr()).cast();
        let row = (*(*first).next).next;
        let mut before = row.add(2);
        for number in 0..many {
            let made = task(heap, 1 + number % 3, 1000 + number as i64);
            match number {
                0 => store(&raw mut (*before).inside, &raw mut (*made).x),
                _ => store(&raw mut (*before).next, made),
            }
            if number % 4 == 1 {
                store(&raw mut (*made).inside, &raw mut (*before).x);
            }
            if number % 5 == 1 {
                point(&raw mut (*made).back, before);
            }
            if number % 7 == 1 {
                store(&raw mut (*made).other, task(heap, 1, 0));
            }
            before = made;
        }
        let numbers: *mut i32 = __nvl_alloc(heap, 400 * many, 4, INT.as_ptr()).cast();
        (0..400 * many).for_each(|at| *numbers.add(at) = at as i32);
        store(&raw mut (*before).inside, numbers.add(many));
    }
}

/// What is to be found of a heap: each object, and how many files.
#[derive(PartialEq)]
struct Known {
    objects: Vec<(String, Vec<u8>)>,
    /// Those that are left once it was opened, which frees what waits for that, and closed.
    opened: Vec<(String, Vec<u8>)>,
    puddles: usize,
}

impl Known {
    fn of(path: &Path, options: &HeapOptions) -> Result<Known, String> {
        let objects = audit(path)?;
        let heap = Heap::open(path, options).map_err(|error| error.to_string())?;
        unsafe { nvl_close(heap) };
        let opened = audit(path)?;
        let puddles = std::fs::read_dir(path.join("puddles")).unwrap().count();
        Ok(Known {
            objects,
            opened,
            puddles,
        })
    }
}

/// A process that is told by a file that the other one has come so far.
const BEGUN: &str = "begun";

#[test]
#[ignore = "the other process of the tests below"]
fn process_that_migrates() {
    let Some(directory) = crate::processes::directory() else {
        return;
    };
    std::fs::write(directory.join(BEGUN), "").unwrap();
    migrate(&directory.join("heap"), is_job(), false).unwrap();
}

/// Kills a migration of the heap in `directory` so long after it began, or lets it end. How long it took, if it ended.
fn kill(directory: &Path, after: Option<Duration>) -> Option<Duration> {
    let begun = directory.join(BEGUN);
    let name = "migrating::killed::process_that_migrates";
    let mut child = crate::processes::start(name, directory);
    while !begun.exists() && child.try_wait().unwrap().is_none() {
        std::thread::sleep(Duration::from_micros(50));
    }
    let began = Instant::now();
    if let Some(after) = after {
        while began.elapsed() < after && child.try_wait().unwrap().is_none() {
            std::thread::sleep(Duration::from_micros(50).min(after));
        }
        let _ = child.kill();
    }
    let status = child.wait().unwrap();
    let took = began.elapsed();
    std::fs::remove_file(begun).unwrap();
    // None where a signal has ended it.
    let code = status.code();
    assert!(code.is_none_or(|code| code == 0), "{status}");
    code.map(|_| took)
}

/// Kills so many migrations, of `many` tasks beside those of [`fill`]: how often the old heap was found, and the new
/// one.
fn kills(engine: Engine, many: usize, wanted: u32) -> (u32, u32) {
    let directory = tempfile::tempdir_in("/dev/shm").unwrap();
    let at = |name| directory.path().join(name);
    let (made, path) = (at("made"), at("heap"));
    let options = options(engine);
    let heap = Heap::create(&made, 0, 0, &options).unwrap();
    unsafe {
        fill(heap);
        fill_more(heap, many);
        nvl_close(heap);
    }
    copy(&made, &path);
    let old = Known::of(&path, &options).unwrap();
    std::fs::remove_dir_all(&path).unwrap();
    copy(&made, &path);
    let mut took = kill(directory.path(), None).unwrap();
    let new = Known::of(&path, &options).unwrap();
    assert!(new.objects.len() > many && new.opened.len() < new.objects.len());
    assert_eq!(leaks(&path), 0);
    let heap = Heap::open(&path, &options).unwrap();
    unsafe {
        is_new(heap).unwrap();
        nvl_close(heap);
    }
    let (mut was_old, mut was_new, mut ended) = (0, 0, 0);
    while was_old + was_new < wanted {
        std::fs::remove_dir_all(&path).unwrap();
        copy(&made, &path);
        let round = was_old + was_new + ended;
        // Every second one late, where the one becomes the other.
        let begin = if round.is_multiple_of(2) { 0 } else { 700 };
        let after = took * (begin + round * 7919 % (1100 - begin)) / 1000;
        let until_end = kill(directory.path(), Some(after));
        let found = Known::of(&path, &options);
        let found = found.unwrap_or_else(|wrong| panic!("{engine:?}, round {round}: {wrong}"));
        let is_new = found == new;
        assert!(
            is_new || (found == old && until_end.is_none()),
            "{engine:?}, round {round}: {} objects in {} puddles",
            found.objects.len(),
            found.puddles
        );
        match until_end {
            // Others compute beside it: how long it takes changes.
            Some(until_end) => {
                took = (3 * took + until_end) / 4;
                ended += 1;
            }
            None if is_new => was_new += 1,
            None => was_old += 1,
        }
    }
    println!(
        "{engine:?}: {was_old} old, {was_new} new, {ended} not killed, {took:?} to the end, {} puddles",
        new.puddles
    );
    (was_old, was_new)
}

#[test]
fn killed_migrations_leave_the_old_heap_or_the_new_one() {
    for engine in ENGINES {
        kills(engine, 300, 2);
    }
}

/// As often on each engine: old or new, never else.
#[test]
#[ignore = "minutes; make test-long runs it"]
fn a_thousand_killed_migrations_leave_the_old_heap_or_the_new_one() {
    for engine in ENGINES {
        let (old, new) = kills(engine, 1500, 1000);
        assert!(old > 20 && new > 5, "{old} old, {new} new");
    }
}
