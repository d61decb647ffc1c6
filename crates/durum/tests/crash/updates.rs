//! Updates of several threads, combined: durable linearizability.
//!
//! The crashes: at every event of rounds that run several threads' updates as one transaction, some of which fail and
//! take back their own part. The pool holds the history itself: a list of the updates in the order in which they took
//! effect, each with what it answered. After a crash the list has to be a linearization of what the threads had been
//! told: all that was acknowledged or read is in it; each thread's updates in its own order, without a gap, and nothing
//! that it had not asked for; every answer is the one that this order gives; and of an update that failed there is
//! nothing.

use std::collections::HashMap;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Barrier, Mutex};
use std::thread;
use std::time::Duration;

use durum::{Domain, Error, Pool, Store, StoreOptions, TwinMode, Tx};
use durum_persist::record::{Recorder, RecorderOptions, join_thread, note};
use durum_persist::simulate::{CrashPoint, Plan, Rules, explore_with_recovery};

use crate::harness::{Arena, check_structures, recover, seed};
use crate::support::{pool_options, twin_mode};

const THREADS: usize = 3;
const UPDATES: u64 = 5;
const ACKNOWLEDGED: [&str; THREADS] = ["thread 0", "thread 1", "thread 2"];
const READ: [&str; THREADS + 1] = [
    "thread 0 has read",
    "thread 1 has read",
    "thread 2 has read",
    "the reader has read",
];

#[repr(C)]
struct Root {
    newest: *mut Node,
    count: u64,
    sum: u64,
}
durum::describe!(Root as "updates.root" { newest, count, sum });

#[repr(C)]
struct Node {
    before: *mut Node,
    thread: u64,
    number: u64,
}
durum::describe!(Node as "updates.node" { before, thread, number });

/// What an update answers: how many there were before it, and the sum of what they were worth.
type Answer = (u64, u64);

fn worth(thread: u64, number: u64) -> u64 {
    100 * thread + number
}

/// Every third one of a thread fails after it has changed everything.
fn fails(number: u64) -> bool {
    number % 3 == 2
}

fn update(tx: &Tx, root: *mut Root, thread: u64, number: u64) -> Result<Answer, Error> {
    // Time for the others to announce themselves.
    thread::sleep(Duration::from_millis(2));
    unsafe {
        let answer = ((*root).count, (*root).sum);
        let node = tx.alloc::<Node>()?;
        node.write(Node {
            before: (*root).newest,
            thread,
            number,
        });
        tx.add(root)?;
        (*root).newest = node;
        (*root).count += 1;
        // Deferred: those who come after it in the round have to see it all the same.
        match number % 2 {
            0 => tx
                .set(&raw mut (*root).sum, answer.1 + worth(thread, number))
                .err(),
            _ => {
                (*root).sum += worth(thread, number);
                None
            }
        };
        if fails(number) {
            return Err(Error::Aborted);
        }
        Ok(answer)
    }
}

struct Shared(*mut Root);
// Used in updates and reads only.
unsafe impl Sync for Shared {}
impl Shared {
    fn at(&self) -> *mut Root {
        self.0
    }
}

/// How many updates a reader sees; beside an update, if the pool lets it.
fn counted(pool: &Pool, root: &Shared) -> u64 {
    let count = match twin_mode() {
        TwinMode::LeftRight => {
            pool.read_copy(|view| unsafe { view.get(root.at()).map_or(0, |root| root.count) })
        }
        _ => pool.read(|| unsafe { (*root.at()).count }),
    };
    count.expect("a read")
}

/// One of those who work, until it is dropped, also by a panic: who looks on until there is none would never end.
struct Works<'w>(&'w AtomicU64);

impl Drop for Works<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Lets all threads do their updates, with marks of what they were told. Their answers, and how many updates ran on
/// other threads than their own.
fn run(pool: &Pool) -> (HashMap<(u64, u64), Answer>, u64) {
    let root = Shared(pool.root::<Root>().expect("a root"));
    let (root, start, answers) = (&root, Barrier::new(THREADS), Mutex::new(HashMap::new()));
    let elsewhere = AtomicU64::new(0);
    let working = &AtomicU64::new(THREADS as u64);
    thread::scope(|scope| {
        for thread in 0..THREADS {
            let (start, answers, elsewhere) = (&start, &answers, &elsewhere);
            scope.spawn(move || {
                let _works = Works(working);
                join_thread();
                start.wait();
                let own = thread::current().id();
                for number in 0..UPDATES {
                    let who = thread as u64;
                    let answer = pool.update(|tx| {
                        if thread::current().id() != own {
                            elsewhere.fetch_add(1, Ordering::Relaxed);
                        }
                        update(tx, root.at(), who, number)
                    });
                    assert_eq!(answer.is_err(), fails(number));
                    note(ACKNOWLEDGED[thread], number + 1);
                    if let Ok(answer) = answer {
                        answers
                            .lock()
                            .expect("no panic")
                            .insert((who, number), answer);
                    }
                    note(READ[thread], counted(pool, root));
                }
            });
        }
        // Looks all the time, so that some of it is in the middle of a commit.
        if twin_mode() == TwinMode::LeftRight {
            scope.spawn(|| {
                join_thread();
                let mut seen = 0;
                while working.load(Ordering::Relaxed) > 0 {
                    let count = counted(pool, root);
                    assert!(count >= seen, "time does not go back");
                    if count > seen {
                        note(READ[THREADS], count);
                    }
                    seen = count;
                }
            });
        }
    });
    (
        answers.into_inner().expect("no panic"),
        elsewhere.into_inner(),
    )
}

/// The history in the pool, in the order in which it took effect.
fn history(pool: &Pool) -> Result<(Vec<(u64, u64)>, u64), String> {
    let root = pool.root::<Root>().map_err(|error| error.to_string())?;
    let mut found = Vec::new();
    let mut at = unsafe { (*root).newest };
    while !at.is_null() {
        found.push(unsafe { ((*at).thread, (*at).number) });
        at = unsafe { (*at).before };
    }
    found.reverse();
    match unsafe { (*root).count } == found.len() as u64 {
        true => Ok((found, unsafe { (*root).sum })),
        false => Err(format!("{} is not the length of {found:?}", unsafe {
            (*root).count
        })),
    }
}

fn judge(
    image: &Path,
    options: &StoreOptions,
    point: &CrashPoint<'_>,
    answers: &HashMap<(u64, u64), Answer>,
) -> Result<(), String> {
    let text = |error: Error| error.to_string();
    let store = Store::open(image, options.clone()).map_err(text)?;
    let pool = store.open_pool("shared", pool_options()).map_err(text)?;
    let (history, total) = history(&pool)?;
    // It can be used.
    let root = Shared(pool.root::<Root>().map_err(text)?);
    let next = pool
        .update(|tx| update(tx, root.at(), 9, 0))
        .map_err(text)?;
    if next != (history.len() as u64, total) {
        return Err(format!("{next:?} after {history:?}"));
    }
    drop((pool, store));
    let mut sum = 0;
    for (position, &(thread, number)) in history.iter().enumerate() {
        let answer = (position as u64, sum);
        if answers.get(&(thread, number)) != Some(&answer) {
            let said = answers.get(&(thread, number));
            return Err(format!(
                "{thread}/{number} is {answer:?} of {history:?}, and said {said:?}"
            ));
        }
        sum += worth(thread, number);
    }
    if sum != total {
        return Err(format!("{history:?} has the sum {total}"));
    }
    for (thread, acknowledged) in ACKNOWLEDGED.into_iter().enumerate() {
        let done = point.last_note(acknowledged).unwrap_or(0);
        let found: Vec<u64> = history
            .iter()
            .filter(|entry| entry.0 == thread as u64)
            .map(|entry| entry.1)
            .collect();
        let upto = |end: u64| {
            (0..end)
                .filter(|number| !fails(*number))
                .collect::<Vec<_>>()
        };
        if found != upto(done) && found != upto((done + 1).min(UPDATES)) {
            return Err(format!("thread {thread}, told of {done}, finds {found:?}"));
        }
    }
    for who in READ {
        let read = point.last_note(who).unwrap_or(0);
        if read > history.len() as u64 {
            return Err(format!("{who} {read}, and there are {history:?}"));
        }
    }
    match check_structures(image)?.lost {
        0 => Ok(()),
        lost => Err(format!("{lost} objects are lost")),
    }
}

fn survives(domain: Domain, rules: Rules) {
    let arena = Arena::take();
    let dir = tempfile::tempdir_in("/dev/shm").expect("a scratch directory");
    let path = dir.path().join("store");
    let options = StoreOptions::new()
        .domain(domain)
        .base(arena.base)
        .checkpoint_thread(false);
    let store = Store::create(&path, options.clone()).expect("a store is made");
    let pool = store
        .create_pool("shared", pool_options())
        .expect("a pool is made");
    pool.root::<Root>().expect("a root is made");
    let recorder = Recorder::start(&path, RecorderOptions::default());
    let (answers, combined) = run(&pool);
    let trace = recorder.stop();
    assert!(combined > 0, "no thread has run an update of another one");
    let kept = answers.len();
    drop((pool, store));
    let mut plan = Plan::new(rules, seed(0x5));
    plan.keep_failed = std::env::var_os("DURUM_CRASH_KEEP").is_some();
    plan.single_units_max = 4;
    plan.nested_points_max = Some(6);
    let is_long = std::env::var_os("DURUM_CRASH_ALL").is_some();
    plan.points_max = (!is_long).then_some(40);
    let report = explore_with_recovery(
        &trace,
        &plan,
        |image| recover(image, domain),
        |image, point| {
            thread::scope(|scope| {
                let judged = scope.spawn(|| judge(image, &options, point, &answers));
                judged
                    .join()
                    .unwrap_or_else(|_| Err("the client panicked".into()))
            })
        },
    );
    match report {
        Ok(report) => println!(
            "{kept} updates, {combined} run by other threads, {rules:?}: seed {}, {report:?}",
            plan.seed
        ),
        Err(failure) => panic!("combined updates, {rules:?}: {failure}"),
    }
}

#[test]
fn combined_updates_are_linearizable_on_mapped_memory() {
    survives(Domain::Dax, Rules::Lines);
}

#[test]
fn combined_updates_are_linearizable_on_a_file_system() {
    survives(Domain::File, Rules::Sectors);
}
