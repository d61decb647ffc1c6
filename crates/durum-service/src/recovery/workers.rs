//! Several threads for the parts of recovery that do not depend on each other: puddles.
//!
//! Puddles and not places in them, because the system lets one thread at a time write to a file.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use durum_persist::line;

/// Work that is worth a thread: to start one takes 50 us, to read or write so many pages a millisecond.
const PAGES_MIN: usize = 1 << 10;

/// How many threads are worth it for the work on so many pages.
pub(crate) fn count(pages: usize) -> usize {
    let threads = pages / PAGES_MIN;
    if threads <= 1 || line::is_recorded() {
        // A recorder is told of writes in the order in which they happen: with one thread that is the same in every
        // run, so that a crash can be had again from its seed. For the simulator nothing is lost: it draws what became
        // durable of all that was written between two syncs, in whatever order that was.
        return 1;
    }
    // Asked only here: the answer takes 20 system calls, as long as the recovery of a small transaction.
    let processors = thread::available_parallelism().map_or(1, usize::from);
    processors.min(threads)
}

/// The results of `work` on each item, by up to `threads` threads of which the caller's is one.
pub(crate) fn map<T: Sync, R: Send>(
    items: &[T],
    threads: usize,
    work: impl Fn(&T) -> R + Sync,
) -> Vec<R> {
    let next = AtomicUsize::new(0);
    let take = || {
        let mut done = Vec::new();
        loop {
            let index = next.fetch_add(1, Ordering::Relaxed);
            match items.get(index) {
                Some(item) => done.push((index, work(item))),
                None => return done,
            }
        }
    };
    let mut done = thread::scope(|scope| {
        let others = 1..threads.min(items.len());
        // Where the system gives no thread, the others do the work.
        let others: Vec<_> = others
            .filter_map(|_| thread::Builder::new().spawn_scoped(scope, take).ok())
            .collect();
        let mut done = take();
        for other in others {
            match other.join() {
                Ok(more) => done.extend(more),
                Err(panic) => std::panic::resume_unwind(panic),
            }
        }
        done
    });
    done.sort_unstable_by_key(|(index, _)| *index);
    done.into_iter().map(|(_, result)| result).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_item_is_worked_on_once_and_results_are_in_order() {
        for items in [0, 1, 2, 100] {
            let items: Vec<usize> = (0..items).collect();
            for threads in [0, 1, 2, 7] {
                let doubled = map(&items, threads, |item| 2 * item);
                assert!(doubled.into_iter().eq(items.iter().map(|item| 2 * item)));
            }
        }
    }

    #[test]
    fn little_work_is_not_worth_a_thread() {
        assert_eq!((count(0), count(PAGES_MIN)), (1, 1));
        assert!(count(100 * PAGES_MIN) <= thread::available_parallelism().unwrap().get());
    }
}
