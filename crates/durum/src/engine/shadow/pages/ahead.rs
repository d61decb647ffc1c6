//! Pages of a pool that grows, which a thread of the store's makes before a commit needs them.
//!
//! - *Large private pages*: those behind two that are filled. They are made for nothing where the pool does not go on
//!   to fill them, and never are more than those that it has.
//! - *Home* of a fresh puddle, behind its first part, which is made at once.
//!
//! Small private pages, those of a pool that was opened, are not made ahead (docs/internals/benchmarks.md says what was
//! tried).

use std::collections::VecDeque;
use std::ops::Range;
use std::sync::Mutex;

use crate::alloc::Puddle;
use crate::mapping::{LARGE_PAGE, PAGE};
use crate::populate::make_pages;
use crate::primitive::locked;

/// Behind two large pages that follow each other so many are made.
pub(super) const LARGE_AHEAD: usize = 2;
/// Of the home of a fresh puddle so many bytes are made at once.
const AT_ONCE: usize = 4 << 20;
/// Of home the thread makes so many bytes at a time, while no puddle is mapped or unmapped: some 0.1 ms.
const PIECE: usize = 256 << 10;

/// What the thread is to make, as addresses of a puddle.
#[derive(Debug)]
struct Work {
    range: Range<usize>,
    /// Large private pages, or those of home.
    is_private: bool,
}

/// What is to be made ahead.
#[derive(Debug)]
pub(super) struct Ahead {
    is_on: bool,
    work: Mutex<VecDeque<Work>>,
}

impl Ahead {
    pub(super) fn new(is_on: bool) -> Self {
        Self {
            is_on,
            work: Mutex::default(),
        }
    }

    /// A pool is being filled: the large pages of this range, which are next, are to be made. Whether to ask for that:
    /// not where there is room for fewer pages.
    pub(super) fn want_large(&self, range: Range<usize>, room: usize) -> bool {
        let has_room = self.is_on && room >= range.len() / PAGE && !range.is_empty();
        if has_room {
            let is_private = true;
            locked(&self.work).push_back(Work { range, is_private });
        }
        has_room
    }

    /// Home of a fresh puddle is to be made: how many bytes of it by the caller. The thread makes the rest.
    pub(super) fn want_home(&self, range: Range<usize>) -> usize {
        if !self.is_on || range.len() <= AT_ONCE {
            return range.len();
        }
        let range = range.start + AT_ONCE..range.end;
        let is_private = false;
        locked(&self.work).push_back(Work { range, is_private });
        AT_ONCE
    }

    pub(super) fn has_work(&self) -> bool {
        !locked(&self.work).is_empty()
    }

    /// Nobody makes what is wanted.
    pub(super) fn forget(&self) {
        locked(&self.work).clear();
    }

    /// Makes one piece of what is wanted. `find` finds the puddle of a range, if it is still there, and whether a page
    /// of it is large: it may have become small ones.
    pub(super) fn make_piece<P: AsRef<Puddle>>(
        &self,
        find: impl FnOnce(&Range<usize>) -> Option<P>,
        is_large: impl FnOnce(&Puddle, usize) -> bool,
    ) {
        let Some(Work { range, is_private }) = locked(&self.work).pop_front() else {
            return;
        };
        let Some(puddle) = find(&range) else {
            return;
        };
        let puddle = puddle.as_ref();
        let piece = if is_private { LARGE_PAGE } else { PIECE };
        let end = range.end.min(range.start + piece);
        let len = end - range.start;
        // Whoever gives pages back does that, too.
        let is_mapped = puddle.while_mapped(|| match is_private {
            false => make_pages(range.start + puddle.home_offset(), len),
            // It counts when something of it changes: then those behind it are made.
            true if is_large(puddle, range.start) => make_pages(range.start, len),
            // A small one would be a copy of home, and hide what is written there past the program.
            true => {}
        });
        if is_mapped.is_some() && end < range.end {
            let range = end..range.end;
            locked(&self.work).push_front(Work { range, is_private });
        }
    }
}

#[cfg(test)]
mod tests {
    use std::ptr::NonNull;
    use std::sync::Arc;

    use super::super::private_pages::private_pages;
    use super::*;
    use crate::alloc::puddle_needed_at;
    use crate::{PoolOptions, Store, StoreOptions};

    const UNIT: Range<usize> = 0..LARGE_PAGE;

    struct There(NonNull<Puddle>);

    impl AsRef<Puddle> for There {
        fn as_ref(&self) -> &Puddle {
            // SAFETY: the store of the test is open.
            unsafe { self.0.as_ref() }
        }
    }

    /// Between the wish and the thread the pages may have become small.
    #[test]
    fn small_pages_are_not_made_in_the_place_of_a_large_one() {
        let dir = tempfile::tempdir_in("/dev/shm").unwrap();
        let path = dir.path().join("store");
        let options = StoreOptions::new().pages_ahead(false);
        let store = Store::create(&path, options.clone()).unwrap();
        let pool = store.create_pool("pool", PoolOptions::new()).unwrap();
        let object = pool.transaction(|tx| tx.alloc_bytes(&pool, 7, 3 << 20, 8));
        let object = object.unwrap().addr();
        drop(pool);
        store.close().unwrap();
        // Nobody has stored anything in its puddle since.
        let store = Store::open(&path, options).unwrap();
        let _pool = store.open_pool("pool", PoolOptions::new()).unwrap();
        let found = puddle_needed_at(object).unwrap().unwrap();
        let start = object.next_multiple_of(LARGE_PAGE);
        let unit = start..start + LARGE_PAGE;
        assert!(There(found).as_ref().contains(unit.start, unit.len()));
        let ahead = Ahead::new(true);
        for (is_large, made) in [(false, 0), (true, LARGE_PAGE / PAGE)] {
            assert!(ahead.want_large(unit.clone(), 512));
            ahead.make_piece(|_| Some(There(found)), |_, _| is_large);
            assert!(!ahead.has_work());
            assert_eq!(private_pages(&unit), made);
        }
    }

    #[test]
    fn what_finds_no_room_is_not_wanted_and_what_is_gone_not_made() {
        let ahead = Ahead::new(true);
        assert!(!ahead.want_large(UNIT, 511) && !ahead.want_large(5..5, 512) && !ahead.has_work());
        assert!(ahead.want_large(UNIT, 512) && ahead.has_work());
        ahead.make_piece(|_| None::<Arc<Puddle>>, |_, _| true);
        assert!(!ahead.has_work());
    }

    #[test]
    fn nothing_is_left_to_a_thread_where_nothing_shall_be_made_ahead() {
        for (is_on, at_once) in [(false, 64 << 20), (true, AT_ONCE)] {
            let ahead = Ahead::new(is_on);
            assert_eq!(ahead.want_home(0..AT_ONCE), AT_ONCE);
            assert!(!ahead.has_work());
            assert_eq!(ahead.want_home(0..64 << 20), at_once);
            assert_eq!(ahead.has_work(), is_on);
            assert_eq!(ahead.want_large(UNIT, 512), is_on);
        }
    }
}
