//! What a thread knows of itself: its number among the readers, and the pools that it is inside of.

use std::cell::{Cell, RefCell};
use std::sync::{Mutex, PoisonError};

/// How a thread is inside a pool.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Inside {
    /// It reads.
    Reads,
    /// It leads, and runs updates.
    Updates,
}

/// Numbers that no living thread has, and the lowest that none ever had.
static NUMBERS: Mutex<(Vec<usize>, usize)> = Mutex::new((Vec::new(), 0));

/// A thread's number, given back when it ends, so that there are no more numbers than threads at a time.
struct Number(usize);

impl Drop for Number {
    fn drop(&mut self) {
        let mut numbers = NUMBERS.lock().unwrap_or_else(PoisonError::into_inner);
        numbers.0.push(self.0);
    }
}

thread_local! {
    static LEASE: Number = Number({
        let mut numbers = NUMBERS.lock().unwrap_or_else(PoisonError::into_inner);
        numbers.0.pop().unwrap_or_else(|| {
            numbers.1 += 1;
            numbers.1 - 1
        })
    });
    /// The number in `LEASE`, plus one; 0 before it was asked for. Const and without destructor, so cheap.
    static NUMBER: Cell<usize> = const { Cell::new(0) };
    /// Pools by key, the innermost last.
    static INSIDE: RefCell<Vec<(u64, Inside)>> = const { RefCell::new(Vec::new()) };
}

/// This thread's number.
#[inline]
pub(super) fn number() -> usize {
    match NUMBER.with(Cell::get) {
        0 => lease(),
        number => number - 1,
    }
}

#[cold]
fn lease() -> usize {
    // Where the thread is ending it shares a counter with another one.
    let number = LEASE.try_with(|lease| lease.0).unwrap_or(0);
    NUMBER.with(|kept| kept.set(number + 1));
    number
}

/// How this thread is inside the pool. A thread that is ending is inside of nothing that it entered before.
pub(super) fn inside(pool: u64) -> Option<Inside> {
    INSIDE
        .try_with(|inside| {
            let inside = inside.borrow();
            inside
                .iter()
                .find(|(key, _)| *key == pool)
                .map(|(_, how)| *how)
        })
        .unwrap_or(None)
}

/// The thread enters a pool that it is not inside of.
pub(super) fn enter(pool: u64, how: Inside) {
    let _ = INSIDE.try_with(|inside| inside.borrow_mut().push((pool, how)));
}

/// The thread leaves the pool.
pub(super) fn leave(pool: u64) {
    let _ = INSIDE.try_with(|inside| {
        let mut inside = inside.borrow_mut();
        if let Some(at) = inside.iter().rposition(|(key, _)| *key == pool) {
            inside.remove(at);
        }
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_goes_to_the_next_thread_when_its_thread_ends() {
        let taken = || std::thread::spawn(number).join().unwrap();
        let (first, second) = (taken(), taken());
        // Other tests take numbers meanwhile, but not as many as this would use up.
        let most = (0..1000).map(|_| taken()).max().unwrap();
        assert!(most < first.max(second) + 200, "{most}");
    }
}
