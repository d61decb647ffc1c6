//! Several threads for work of which most is small reads.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::Instant;

/// Threads that work at a time.
const THREADS_MAX: usize = 4;

/// Does pieces of work, by number: all of them, or the first ones, as many as can be begun until a moment, and one at
/// least. Gives what came of them, in their order.
pub(super) fn in_order<T: Send>(
    count: usize,
    until: Option<Instant>,
    work: impl Fn(usize) -> T + Sync,
) -> Vec<T> {
    let next = AtomicUsize::new(0);
    let done = Mutex::new(BTreeMap::new());
    let take = || {
        loop {
            // Who takes one does it, however late it is then: none is left out in front of another one.
            let is_late = until.is_some_and(|until| Instant::now() >= until);
            let taken = match is_late {
                true => next.compare_exchange(0, 1, Relaxed, Relaxed).ok(),
                false => Some(next.fetch_add(1, Relaxed)),
            };
            let Some(at) = taken.filter(|at| *at < count) else {
                break;
            };
            let result = work(at);
            let mut done = done.lock().unwrap_or_else(PoisonError::into_inner);
            done.insert(at, result);
        }
    };
    let processors = thread::available_parallelism().map_or(1, usize::from);
    thread::scope(|scope| {
        for _ in 1..processors.min(THREADS_MAX).min(count) {
            // Without a further thread it takes longer.
            let _ = thread::Builder::new().spawn_scoped(scope, take);
        }
        take();
    });
    let done = done.into_inner().unwrap_or_else(PoisonError::into_inner);
    done.into_values().collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc::channel;
    use std::time::Duration;

    const LONG: Duration = Duration::from_secs(20);

    /// The first piece waits for the second one, as only another thread can do it, and is done later.
    #[test]
    fn several_threads_work_and_the_order_stays() {
        if thread::available_parallelism().map_or(1, usize::from) < 2 {
            return;
        }
        let (begun, wait) = channel();
        let (begun, wait) = (Mutex::new(begun), Mutex::new(wait));
        let results = in_order(5, None, |at| {
            let is_met = match at {
                0 => wait.lock().unwrap().recv_timeout(LONG).is_ok(),
                1 => begun.lock().unwrap().send(()).is_ok(),
                _ => true,
            };
            (at, is_met)
        });
        let expected: Vec<_> = (0..5).map(|at| (at, true)).collect();
        assert_eq!(results, expected);
    }

    #[test]
    fn when_it_is_late_one_piece_is_done_and_else_none_is_left_out() {
        assert_eq!(in_order(5, Some(Instant::now()), |at| at), [0]);
        assert!(in_order(0, Some(Instant::now()), |at| at).is_empty());
        let until = Instant::now() + Duration::from_millis(50);
        let some = in_order(1_000, Some(until), |at| {
            thread::sleep(Duration::from_millis(5));
            at
        });
        assert!(some.len() < 1_000, "{some:?}");
        assert!(some.iter().copied().eq(0..some.len()), "{some:?}");
        assert_eq!(
            in_order(1_000, Some(Instant::now() + LONG), |at| at).len(),
            1_000
        );
    }
}
