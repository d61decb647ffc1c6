//! Threads that commit at the same time on a file system: one sync for all of them.

use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use durum::{Domain, Engine, Error, Pool, PoolOptions, StoreOptions, thread_counters};
use durum_persist::{Site, inject};

use crate::fixture::{Fixture, Root};

const COMMIT_FENCE: Site = Site("shadow.commit: fence after the record");
const MEMBERS: usize = 6;

/// The state of a thread of this process, as `/proc` tells it.
fn is_asleep(thread: i32) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/self/task/{thread}/stat"));
    // Behind the name, which may contain anything but ends with the last parenthesis.
    stat.is_ok_and(|stat| {
        stat.rsplit_once(") ")
            .is_some_and(|(_, rest)| rest.starts_with('S'))
    })
}

/// Commits a change of one word that no other thread changes; the syncs that this thread made for it.
fn commit(pool: &Pool, root: usize, at: usize, before_commit: impl FnOnce()) -> u64 {
    let root = std::ptr::with_exposed_provenance_mut::<Root>(root);
    let before = thread_counters();
    pool.transaction(|tx| unsafe {
        tx.set(&raw mut (*root).table[at], 1)?;
        before_commit();
        Ok::<_, Error>(())
    })
    .unwrap();
    (thread_counters() - before).syncs
}

/// One leads and is held up before its sync. All who come meanwhile are the next group: one of them syncs, once.
#[test]
fn those_who_come_during_a_sync_share_the_next_one() {
    let options = StoreOptions::new().domain(Domain::File);
    let fixture = Fixture::with(options, PoolOptions::new().engine(Engine::Shadow));
    let (pool, root) = (
        fixture.pool(),
        (&raw mut *fixture.root()).expose_provenance(),
    );
    let held = inject::hold(COMMIT_FENCE);
    let (threads, syncs) = (Mutex::new(Vec::new()), AtomicUsize::new(0));
    thread::scope(|scope| {
        let leader = scope.spawn(|| {
            inject::volunteer();
            commit(pool, root, 0, || ())
        });
        held.wait();
        for member in 1..=MEMBERS {
            let (threads, syncs) = (&threads, &syncs);
            scope.spawn(move || {
                let comes = || threads.lock().unwrap().push(gettid());
                let spent = commit(pool, root, member, comes);
                syncs.fetch_add(spent as usize, Ordering::Relaxed);
            });
        }
        // All of them sleep in their commits, seen twice: one look could meet a thread at a lock.
        let (began, mut seen) = (Instant::now(), 0);
        while seen < 2 {
            thread::sleep(Duration::from_millis(5));
            let threads = threads.lock().unwrap();
            let all_sleep =
                threads.len() == MEMBERS && threads.iter().all(|thread| is_asleep(*thread));
            seen = if all_sleep { seen + 1 } else { 0 };
            assert!(began.elapsed() < Duration::from_secs(20), "members come");
        }
        drop(held);
        assert_eq!(leader.join().unwrap(), 1);
    });
    assert_eq!(syncs.into_inner(), 1, "of {MEMBERS} commits");
    assert!(
        fixture.root().table[..=MEMBERS]
            .iter()
            .all(|word| *word == 1)
    );
}

fn gettid() -> i32 {
    rustix::thread::gettid().as_raw_nonzero().get()
}
