//! The pools that a thread is inside of.

use std::cell::{Cell, RefCell};

/// How a thread is inside a pool.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Inside {
    /// It reads.
    Reads,
    /// It leads, and runs updates.
    Updates,
}

thread_local! {
    /// The pool that the thread is inside of, by key. Mostly it is one at most.
    static INSIDE: Cell<Option<(u64, Inside)>> = const { Cell::new(None) };
    /// Others, and how many those are.
    static INSIDE_MORE: RefCell<Vec<(u64, Inside)>> = const { RefCell::new(Vec::new()) };
    static MORE_LEN: Cell<usize> = const { Cell::new(0) };
}

/// How this thread is inside the pool. A thread that is ending has left all that it entered beside another one.
#[inline]
pub(crate) fn inside(pool: u64) -> Option<Inside> {
    match INSIDE.get() {
        Some((key, how)) if key == pool => Some(how),
        _ if MORE_LEN.get() == 0 => None,
        _ => inside_more(pool),
    }
}

#[cold]
fn inside_more(pool: u64) -> Option<Inside> {
    INSIDE_MORE
        .try_with(|more| {
            let more = more.borrow();
            more.iter()
                .find(|(key, _)| *key == pool)
                .map(|(_, how)| *how)
        })
        .unwrap_or(None)
}

/// The thread enters a pool that it is not inside of.
#[inline]
pub(crate) fn enter(pool: u64, how: Inside) {
    if INSIDE.get().is_none() {
        INSIDE.set(Some((pool, how)));
        return;
    }
    change_more(|more| more.push((pool, how)));
}

/// The thread leaves the pool.
#[inline]
pub(crate) fn leave(pool: u64) {
    if INSIDE.get().is_some_and(|(key, _)| key == pool) {
        INSIDE.set(None);
        return;
    }
    change_more(|more| more.retain(|(key, _)| *key != pool));
}

#[cold]
fn change_more(change: impl FnOnce(&mut Vec<(u64, Inside)>)) {
    let _ = INSIDE_MORE.try_with(|more| {
        let mut more = more.borrow_mut();
        change(&mut more);
        MORE_LEN.set(more.len());
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pools_are_left_in_any_order() {
        for order in [[1, 2, 3], [3, 2, 1], [2, 1, 3], [1, 3, 2]] {
            for pool in 1..4 {
                assert_eq!(inside(pool), None);
                enter(pool, Inside::Reads);
            }
            let mut left = Vec::new();
            for pool in order {
                leave(pool);
                left.push(pool);
                let expected = |pool| (!left.contains(&pool)).then_some(Inside::Reads);
                assert!((1..4).all(|pool| inside(pool) == expected(pool)));
            }
            enter(4, Inside::Updates);
            assert_eq!(inside(4), Some(Inside::Updates));
            leave(4);
        }
    }
}
