//! Requests of several threads at the same time: they share registry commits, and each is answered when what it has
//! seen is durable.

use std::path::Path;
use std::sync::Mutex;
use std::thread::{self, Scope, ScopedJoinHandle};
use std::time::{Duration, Instant};

use durum_format::UNIT;
use durum_persist::count::thread_counters;
use durum_persist::inject::{self, Operation, fail_after};
use durum_persist::record::note;
use durum_persist::simulate::CrashPoint;
use durum_persist::{Site, inject::Held};
use durum_service::{Embedded, Error, PuddleKind, PuddleOwner, Service, check};

use crate::support::{
    create, large_type, node_type, open, open_options, recorder, sampled, scratch, small_type,
    spec, survives,
};

const COMMIT: Site = Site("registry commit");

/// Threads that make requests while the first one is held up in its commit.
pub struct Company<'scope, 'env> {
    scope: &'scope Scope<'scope, 'env>,
    held: Held,
    threads: &'env Mutex<Vec<i32>>,
}

impl<'scope, 'env> Company<'scope, 'env> {
    /// The first request has come to the sync of its commit.
    fn gather(
        scope: &'scope Scope<'scope, 'env>,
        threads: &'env Mutex<Vec<i32>>,
        first: impl FnOnce() + Send + 'scope,
    ) -> Company<'scope, 'env> {
        Company::gather_at(COMMIT, scope, threads, first)
    }

    /// The first request has come to a sync.
    pub fn gather_at(
        site: Site,
        scope: &'scope Scope<'scope, 'env>,
        threads: &'env Mutex<Vec<i32>>,
        first: impl FnOnce() + Send + 'scope,
    ) -> Company<'scope, 'env> {
        let held = inject::hold(site);
        scope.spawn(|| {
            inject::volunteer();
            first();
        });
        held.wait();
        Company {
            scope,
            held,
            threads,
        }
    }

    /// One more comes. It may not be answered yet.
    pub fn comes<T: Send + 'scope>(
        &self,
        request: impl FnOnce() -> T + Send + 'scope,
    ) -> ScopedJoinHandle<'scope, T> {
        let (threads, before) = (self.threads, self.threads.lock().unwrap().len());
        let handle = self.scope.spawn(move || {
            let thread = rustix::thread::gettid().as_raw_nonzero().get();
            threads.lock().unwrap().push(thread);
            request()
        });
        // It sleeps, seen twice: one look could meet it at a lock.
        let (began, mut seen) = (Instant::now(), 0);
        while seen < 2 {
            assert!(
                !handle.is_finished(),
                "answered before what it waits for has come"
            );
            thread::sleep(Duration::from_millis(2));
            let known = threads.lock().unwrap();
            seen = match known.get(before) {
                Some(thread) if is_asleep(*thread) => seen + 1,
                _ => 0,
            };
            assert!(began.elapsed() < Duration::from_secs(20), "it waits");
        }
        handle
    }

    /// The first one goes on.
    pub fn go(self) {
        drop(self.held);
    }
}

/// The state of a thread of this process, as `/proc` tells it.
fn is_asleep(thread: i32) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/self/task/{thread}/stat"));
    // Behind the name, which may contain anything but ends with the last parenthesis.
    stat.is_ok_and(|stat| {
        stat.rsplit_once(") ")
            .is_some_and(|(_, rest)| rest.starts_with('S'))
    })
}

fn register(store: &Embedded, name: &str) -> Result<(), Error> {
    let made = small_type(name);
    store.register_type(made.id(), made.text())
}

#[test]
fn requests_that_wait_share_a_commit() {
    const MEMBERS: usize = 6;
    let directory = scratch();
    let store = create(&directory.path().join("store"));
    let threads = Mutex::new(Vec::new());
    let mut syncs = 0;
    thread::scope(|scope| {
        let company = Company::gather(scope, &threads, || register(&store, "first").unwrap());
        let store = &store;
        let members: Vec<_> = (0..MEMBERS)
            .map(|member| {
                company.comes(move || {
                    let before = thread_counters();
                    register(store, &format!("member {member}")).unwrap();
                    (thread_counters() - before).syncs
                })
            })
            .collect();
        company.go();
        syncs = members
            .into_iter()
            .map(|member| member.join().unwrap())
            .sum();
    });
    assert_eq!(syncs, 1, "of {MEMBERS} requests");
    drop(store);
    assert_eq!(
        open(&directory.path().join("store")).types().unwrap().len(),
        1 + MEMBERS
    );
}

#[test]
fn what_a_request_has_seen_is_durable_when_it_is_answered() {
    let directory = scratch();
    let store = create(&directory.path().join("store"));
    let (threads, node) = (Mutex::new(Vec::new()), node_type());
    thread::scope(|scope| {
        let (store, node) = (&store, &node);
        let first = || store.register_type(node.id(), node.text()).unwrap();
        let company = Company::gather(scope, &threads, first);
        // A list, an answer without a commit of its own, and an error.
        let listed = company.comes(|| store.types().unwrap().len());
        let again = company.comes(|| store.register_type(node.id(), node.text()));
        let missing = company.comes(|| store.remove_pool("nowhere"));
        company.go();
        assert_eq!(listed.join().unwrap(), 1);
        again.join().unwrap().unwrap();
        assert!(matches!(
            missing.join().unwrap(),
            Err(Error::PoolMissing { .. })
        ));
    });
}

/// The group finds no room for all of its changes together. Who only removes needs none, and nobody is told of what was
/// not made.
#[test]
fn on_a_full_disk_each_of_a_group_is_answered_by_itself() {
    let directory = scratch();
    let path = directory.path().join("store");
    let store = create(&path);
    let pool = store.create_pool("a", &spec()).unwrap().uuid;
    let threads = Mutex::new(Vec::new());
    let large: Vec<_> = (0..3)
        .map(|number| large_type(&format!("T{number}")))
        .collect();
    thread::scope(|scope| {
        let (store, large) = (&store, &large);
        let company = Company::gather(scope, &threads, || register(store, "first").unwrap());
        let fault = fail_after(Operation::Grow, 0, &path);
        let add = |number: usize| {
            let made: &durum_format::types::Descriptor = &large[number];
            store.register_type(made.id(), made.text())
        };
        let added: Vec<_> = (0..3)
            .map(|number| company.comes(move || add(number)))
            .collect();
        let closed = company.comes(move || store.close_pool(pool));
        let small = company.comes(|| register(store, "small"));
        let seen = company.comes(|| store.types().unwrap().len());
        company.go();
        let added: Vec<_> = added.into_iter().map(|one| one.join().unwrap()).collect();
        let full = |result: &&Result<(), Error>| matches!(result, Err(Error::StorageFull { .. }));
        let failed = added.iter().filter(full).count();
        assert!(failed > 0, "{added:?}");
        closed.join().unwrap().unwrap();
        small.join().unwrap().unwrap();
        // The first, the small one, and those for which there was room; as many as there were when it was answered.
        let made = 2 + added.iter().filter(|result| result.is_ok()).count();
        assert!(seen.join().unwrap() <= made);
        drop(fault);
        assert_eq!(store.types().unwrap().len(), made);
    });
    let types = store.types().unwrap();
    assert!(store.open_pool("a").is_ok());
    drop(store);
    assert_eq!(open(&path).types().unwrap(), types);
}

#[test]
fn one_of_two_who_make_the_same_pool_gets_it() {
    let directory = scratch();
    let path = directory.path().join("store");
    let store = create(&path);
    for round in 0..20 {
        let name = format!("pool {round}");
        let made: Vec<_> = thread::scope(|scope| {
            let make = || store.create_pool(&name, &spec());
            let threads = [(); 3].map(|()| scope.spawn(make));
            threads.map(|thread| thread.join().unwrap()).into()
        });
        let refused = |result: &&Result<_, _>| matches!(result, Err(Error::PoolExists { .. }));
        assert_eq!(made.iter().filter(|result| result.is_ok()).count(), 1);
        assert_eq!(made.iter().filter(refused).count(), 2);
    }
    // Nothing is left of the others: neither files nor addresses.
    assert_eq!(std::fs::read_dir(path.join("puddles")).unwrap().count(), 20);
    store.close().unwrap();
    assert!(
        check(&path, &Default::default())
            .unwrap()
            .findings
            .is_empty()
    );
}

/// Pools that several threads make, grow, close and remove at the same time.
#[test]
fn many_threads_leave_what_they_were_told() {
    const THREADS: usize = 6;
    let directory = scratch();
    let path = directory.path().join("store");
    let store = create(&path);
    thread::scope(|scope| {
        for thread in 0..THREADS {
            let store = &store;
            scope.spawn(move || {
                for round in 0..12 {
                    let name = format!("{thread}");
                    let pool = store.create_pool(&name, &spec()).unwrap();
                    let owner = PuddleOwner::Pool(pool.uuid);
                    let more = store.create_puddle(owner, PuddleKind::Data, UNIT).unwrap();
                    register(store, &format!("of {thread}, {}", round % 5)).unwrap();
                    store.remove_puddle(more.uuid).unwrap();
                    store.close_pool(pool.uuid).unwrap();
                    assert!(store.open_pool(&name).unwrap().others.is_empty());
                    store.close_pool(pool.uuid).unwrap();
                    if round < 11 {
                        store.remove_pool(&name).unwrap();
                    }
                }
            });
        }
    });
    let pools = store.pools().unwrap();
    assert_eq!(pools.len(), THREADS);
    store.close().unwrap();
    drop(store);
    assert!(
        check(&path, &Default::default())
            .unwrap()
            .findings
            .is_empty()
    );
    assert_eq!(open(&path).pools().unwrap(), pools);
}

/// Two threads that are in one group; what each was told is noted.
fn life_of_two(path: &Path) {
    const TYPES: [&str; 2] = ["types of 0", "types of 1"];
    const POOLS: [&str; 2] = ["pools of 0", "pools of 1"];
    let store = create(path);
    let threads = Mutex::new(Vec::new());
    thread::scope(|scope| {
        let store = &store;
        let company = Company::gather(scope, &threads, || register(store, "first").unwrap());
        let work = |thread: usize| {
            register(store, &format!("of {thread}")).unwrap();
            note(TYPES[thread], 1);
            let pool = store.create_pool(POOLS[thread], &spec()).unwrap();
            note(POOLS[thread], 1);
            store.close_pool(pool.uuid).unwrap();
            store.remove_pool(POOLS[thread]).unwrap();
            note(POOLS[thread], 0);
        };
        let both = [0, 1].map(|thread| company.comes(move || work(thread)));
        company.go();
        both.into_iter().for_each(|one| one.join().unwrap());
    });
    store.close().unwrap();
    note("closed", 1);
}

fn check_two(path: &Path, point: &CrashPoint<'_>) -> Result<(), String> {
    let text = |error: Error| error.to_string();
    let store = match Embedded::open(path, open_options()) {
        Err(Error::StoreMissing { .. }) => return Ok(()),
        opened => opened.map_err(text)?,
    };
    let pools = store.pools().map_err(text)?;
    let types = store.types().map_err(text)?;
    for (thread, (of_types, of_pools)) in
        [("types of 0", "pools of 0"), ("types of 1", "pools of 1")]
            .into_iter()
            .enumerate()
    {
        let made = small_type(&format!("of {thread}"));
        let has_type = types.iter().any(|(id, _)| *id == made.id());
        if point.last_note(of_types) == Some(1) && !has_type {
            return Err(format!("the type of {thread} was acknowledged and is gone"));
        }
        let has_pool = pools.iter().any(|pool| pool.name == of_pools);
        match point.last_note(of_pools) {
            // It is closed and removed next.
            Some(0) if has_pool => return Err(format!("{of_pools}: removed, and there")),
            _ => {}
        }
    }
    store.close().map_err(text)?;
    drop(store);
    let report = check(path, &Default::default()).map_err(text)?;
    match report.findings.as_slice() {
        [] => Ok(()),
        findings => Err(format!("{findings:?}")),
    }
}

#[test]
fn a_shared_commit_survives_power_cuts() {
    let directory = scratch();
    let recorder = recorder(directory.path(), None);
    life_of_two(&directory.path().join("store"));
    let trace = recorder.stop();
    survives(&trace, &sampled(23), |_| Ok(()), check_two);
}
