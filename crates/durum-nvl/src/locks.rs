//! Locks on segments of heaps that are open for concurrent use: what clauses name, readers beside each other.
//!
//! A transaction gets its locks clause by clause and keeps them until it has ended. Whoever would wait in a circle is
//! told so instead: a transaction whose body has not begun gives all its locks back and waits until it can have all of
//! them at once, holding none; so no set of transactions waits for each other.

use std::ops::Range;
use std::sync::{Condvar, Mutex};

use crate::primitive::{locked, waited};

/// What a clause asks for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Segment {
    pub(crate) range: Range<usize>,
    pub(crate) is_exclusive: bool,
}

impl Segment {
    fn conflicts(&self, other: &Segment) -> bool {
        self.range.start < other.range.end
            && other.range.start < self.range.end
            && (self.is_exclusive || other.is_exclusive)
    }

    fn covers(&self, other: &Segment) -> bool {
        self.range.start <= other.range.start
            && other.range.end <= self.range.end
            && (self.is_exclusive || !other.is_exclusive)
    }
}

/// To wait would be to wait for oneself.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Deadlock;

#[derive(Debug, Default)]
struct Table {
    held: Vec<(u64, Segment)>,
    /// Who waits while it holds others.
    waiting: Vec<(u64, Segment)>,
}

impl Table {
    /// The others that have to let go before `owner` gets the segment.
    fn in_the_way<'t>(
        &'t self,
        owner: u64,
        wanted: &'t Segment,
    ) -> impl Iterator<Item = u64> + use<'t> {
        let others = self.held.iter().filter(move |(other, _)| *other != owner);
        others
            .filter(|(_, held)| held.conflicts(wanted))
            .map(|(other, _)| *other)
    }

    /// Whether one of those waits for `owner`, by whatever way.
    fn is_deadlock(&self, owner: u64, wanted: &Segment) -> bool {
        let mut reached: Vec<u64> = self.in_the_way(owner, wanted).collect();
        let mut next = 0;
        while let Some(&other) = reached.get(next) {
            if other == owner {
                return true;
            }
            for (_, segment) in self.waiting.iter().filter(|(who, _)| *who == other) {
                for further in self.in_the_way(other, segment) {
                    if !reached.contains(&further) {
                        reached.push(further);
                    }
                }
            }
            next += 1;
        }
        false
    }
}

static TABLE: Mutex<Table> = Mutex::new(Table {
    held: Vec::new(),
    waiting: Vec::new(),
});
static CHANGED: Condvar = Condvar::new();

/// Locks a segment for `owner`, beside those that it holds.
pub(crate) fn lock(owner: u64, wanted: Segment) -> Result<(), Deadlock> {
    let mut table = locked(&TABLE);
    if table
        .held
        .iter()
        .any(|(who, held)| *who == owner && held.covers(&wanted))
    {
        return Ok(());
    }
    while table.in_the_way(owner, &wanted).next().is_some() {
        if table.is_deadlock(owner, &wanted) {
            return Err(Deadlock);
        }
        table.waiting.push((owner, wanted.clone()));
        table = waited(&CHANGED, table);
        table.waiting.retain(|(who, _)| *who != owner);
    }
    table.held.push((owner, wanted));
    Ok(())
}

/// Locks all these segments at once for `owner`, who holds none.
pub(crate) fn lock_all(owner: u64, wanted: &[Segment]) {
    let mut table = locked(&TABLE);
    while wanted
        .iter()
        .any(|segment| table.in_the_way(owner, segment).next().is_some())
    {
        table = waited(&CHANGED, table);
    }
    let grants = wanted.iter().map(|segment| (owner, segment.clone()));
    table.held.extend(grants);
}

/// Gives back what `owner` holds.
pub(crate) fn unlock(owner: u64) {
    locked(&TABLE).held.retain(|(who, _)| *who != owner);
    CHANGED.notify_all();
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicUsize, Ordering};

    fn segment(range: Range<usize>, is_exclusive: bool) -> Segment {
        Segment {
            range,
            is_exclusive,
        }
    }

    #[test]
    fn a_deadlock_is_told() {
        // Addresses of its own: the table is the process's.
        let base = 0x1000;
        let [a, b] = [base..base + 8, base + 8..base + 16];
        lock(1, segment(a.clone(), true)).unwrap();
        lock(2, segment(b.clone(), true)).unwrap();
        // Again, and a part of it.
        lock(1, segment(a.start + 1..a.end, false)).unwrap();
        std::thread::scope(|scope| {
            let first = scope.spawn(|| lock(1, segment(b.clone(), true)));
            // Others may wait, too: the tests share the table.
            while !locked(&TABLE).waiting.iter().any(|(who, _)| *who == 1) {
                std::thread::yield_now();
            }
            assert_eq!(lock(2, segment(a.clone(), false)), Err(Deadlock));
            unlock(2);
            assert_eq!(first.join().unwrap(), Ok(()));
        });
        std::thread::scope(|scope| {
            let second = scope.spawn(|| lock_all(2, &[segment(a, false), segment(b, false)]));
            unlock(1);
            second.join().unwrap();
        });
        unlock(2);
    }

    #[test]
    fn readers_share_and_writers_do_not() {
        let base = 0x2000;
        let (inside, most) = (AtomicUsize::new(0), AtomicUsize::new(0));
        std::thread::scope(|scope| {
            for owner in 10..14u64 {
                let (inside, most) = (&inside, &most);
                scope.spawn(move || {
                    for round in 0..300 {
                        let is_exclusive = (round + owner) % 3 == 0;
                        lock(owner, segment(base..base + 100, is_exclusive)).unwrap();
                        let now = inside.fetch_add(1, Ordering::SeqCst);
                        most.fetch_max(now + 1, Ordering::SeqCst);
                        assert!(!is_exclusive || now == 0);
                        std::thread::yield_now();
                        inside.fetch_sub(1, Ordering::SeqCst);
                        unlock(owner);
                    }
                });
            }
        });
        assert!(most.into_inner() <= 4);
    }
}
