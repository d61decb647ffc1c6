//! Whether the store goes on, for whoever watches over the service, and how much it holds.

use std::sync::atomic::Ordering;
use std::sync::{PoisonError, TryLockError};
use std::thread;
use std::time::{Duration, Instant};

use super::Host;
use crate::error::Result;

/// How often it is tried again to look at a store that others look at.
const PAUSE: Duration = Duration::from_millis(1);

impl Host {
    /// Whether requests are answered: the state can be looked at, and the commits that wait now are decided within the
    /// limit. Long work that everybody waits for is no fault.
    ///
    /// # Errors
    /// `Closed`, `Forked`; `Poisoned`: nothing is answered any more until the store is opened again.
    pub fn goes_on(&self, limit: Duration) -> Result<bool> {
        let until = Instant::now() + limit;
        let mut state = loop {
            match self.state.try_lock() {
                Ok(state) => break state,
                Err(TryLockError::Poisoned(state)) => break state.into_inner(),
                Err(TryLockError::WouldBlock) if self.is_at_long_work.load(Ordering::Relaxed) => {
                    return Ok(true);
                }
                Err(TryLockError::WouldBlock) if Instant::now() >= until => return Ok(false),
                Err(TryLockError::WouldBlock) => thread::sleep(PAUSE),
            }
        };
        let last = state.open(&self.path)?.group.came();
        while !state.open(&self.path)?.group.is_decided(last) {
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Ok(false);
            }
            let woken = self.changed.wait_timeout(state, left);
            (state, _) = woken.unwrap_or_else(PoisonError::into_inner);
        }
        Ok(true)
    }

    /// How many pools there are, and how many bytes their puddles and those of clients have.
    ///
    /// # Errors
    /// `Closed`, `Forked`, `Poisoned`.
    pub fn size(&self) -> Result<(usize, u64)> {
        let mut state = self.state();
        let contents = &state.open(&self.path)?.contents;
        let bytes = contents.puddles.values().map(|record| record.size).sum();
        Ok((contents.pools.len(), bytes))
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use super::super::commit::Commit;
    use super::super::{CreateOptions, OpenOptions};
    use super::*;

    const LIMIT: Duration = Duration::from_millis(50);

    #[test]
    fn a_store_whose_state_nobody_gets_does_not_go_on_but_one_at_long_work_does() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("store");
        Host::create(&path, &CreateOptions::default())
            .unwrap()
            .close()
            .unwrap();
        let host = Host::open(&path, OpenOptions::default()).unwrap();
        assert!(host.goes_on(LIMIT).unwrap());
        thread::scope(|scope| {
            let stuck = host.state();
            assert!(!scope.spawn(|| host.goes_on(LIMIT)).join().unwrap().unwrap());
            drop(stuck);
            let (ends, end) = mpsc::channel::<()>();
            let (begins, begun) = mpsc::channel::<()>();
            let work = scope.spawn(|| {
                host.undisturbed(|_| {
                    drop(begins);
                    let _ = end.into_iter().next();
                    Ok(())
                })
            });
            let _ = begun.into_iter().next();
            assert!(host.goes_on(LIMIT).unwrap());
            drop(ends);
            work.join().unwrap().unwrap();
        });
        assert!(host.goes_on(LIMIT).unwrap());
        assert_eq!(host.size().unwrap(), (0, 0));
        host.close().unwrap();
        assert!(host.goes_on(LIMIT).is_err());
    }

    #[test]
    fn a_store_whose_commit_is_never_decided_does_not_go_on() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("store");
        let host = Host::create(&path, &CreateOptions::default()).unwrap();
        // As if a leader had taken it, and hung in the sync.
        let durable = {
            let mut state = host.state();
            let open = state.open(&path).unwrap();
            open.enqueue(Commit::nothing());
            open.durable.take()
        };
        assert!(!host.goes_on(LIMIT).unwrap());
        host.state().open(&path).unwrap().durable = durable;
        host.request(|_| Ok(((), Commit::nothing()))).unwrap();
        assert!(host.goes_on(LIMIT).unwrap());
        host.close().unwrap();
    }
}
