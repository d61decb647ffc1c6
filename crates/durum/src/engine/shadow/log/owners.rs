//! Order by owner: threads that commit to disjoint lines of data share nothing, not even a counter of stamps.
//!
//! Each log counts stamps of its own, and each line of data says which log has changed it. Conflicts meet in a line:
//!
//! | the line is | the commit | its stamp comes after |
//! | --- | --- | --- |
//! | nobody's | makes it its own | its log's last one |
//! | its own | | the same |
//! | another log's | makes it shared | that log's last one, too |
//! | shared | | the last ones of all logs |
//!
//! So of two records about one word the later one has the larger stamp: who draws it has the lock that the other one
//! let go of, and its log's last stamp was said before that. Records about different lines need no order.
//!
//! "All records up to here are home" is one number still:
//!
//! ```text
//! who commits                                     who brings all home
//! 1  missing: from the next stamp on,             1  floor = the last stamp of all logs
//!    if none was missing before
//! 2  light fence                                  2  heavy fence; brings home what logs miss
//! 3  draws above the floor                        3  what each log says: home up to the floor, and before these
//! ```
//!
//! A log that was not heard in step 3 draws above the floor, and one that misses records says so all the time. So no
//! stamp up to what counts as home is drawn any more.
//!
//! Stamps of different logs never are the same: each is the log's number, modulo [`LOGS`].
//!
//! The counter costs less where commits meet in lines that others have changed, as bitmaps are: then each of them reads
//! what all others have just written. So [`Trial`] tries owners now and then, and goes back to the counter. Who changes
//! the order has locked all checkpoints: nobody is between look, draw and apply, and whatever is drawn later lies above
//! all that was drawn before.

use std::ops::Range;
use std::sync::OnceLock;

use crossbeam_utils::CachePadded;
use durum_persist::{Site, record as recorder};

use super::line_owners::LineOwners;
use super::missing::Missing;
use crate::asymmetric::{fence_all, light_fence};
use crate::primitive::{AtomicBool, AtomicU8, AtomicU64, Ordering};

/// So many logs may count stamps of their own.
pub(crate) const LOGS: usize = 32;
/// The owner of a line that several logs have changed.
const SHARED: u8 = u8::MAX;

/// Steps that keep the order. A crash test leaves them out, each in turn.
const RAISE: Site = Site("shadow.owners: draw above the log that has changed the line before");
const RAISE_ABOVE_ALL: Site = Site("shadow.owners: draw above all logs where a line is shared");
const FLOOR: Site = Site("shadow.owners: draw above what counts as home");
const BEGIN: Site = Site("shadow.owners: draw above what the counter gave");

/// What has an order by owner.
#[derive(Debug)]
pub(crate) struct Owners {
    /// Whether it orders, and not the counter. Who changes it has locked all checkpoints.
    orders: CachePadded<AtomicBool>,
    /// Every stamp that is drawn from now on is larger.
    floor: CachePadded<AtomicU64>,
    /// The last stamp of each log.
    last: Box<[CachePadded<AtomicU64>]>,
    /// `None`: there is none to be had.
    lines: OnceLock<Option<LineOwners>>,
}

/// Some commits among others, of which not all are counted.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Commits {
    pub(crate) number: u64,
    /// How many of them met lines that others have changed.
    pub(crate) met: u64,
    /// Bytes of their records.
    pub(crate) bytes: u64,
}

/// What a commit has found out for its stamp.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Claimed {
    /// The stamp is larger.
    pub(crate) above: u64,
    /// Another log has changed one of its lines.
    pub(crate) meets_others: bool,
}

impl Owners {
    pub(crate) fn new() -> Self {
        Self {
            orders: CachePadded::new(AtomicBool::new(false)),
            floor: CachePadded::new(AtomicU64::new(0)),
            last: (0..LOGS)
                .map(|_| CachePadded::new(AtomicU64::new(0)))
                .collect(),
            lines: OnceLock::new(),
        }
    }

    /// Whether owners order records, and not the counter. It stays so as long as the caller has a checkpoint locked.
    #[inline(always)]
    pub(crate) fn order(&self) -> bool {
        self.orders.load(Ordering::Acquire)
    }

    /// Looks at the lines that a record of this log is about, whose locks the caller has, and makes them its own: those
    /// of these words, and others. Its stamp is drawn next, by [`Owners::draw`].
    #[inline(always)]
    pub(crate) fn claim(
        &self,
        log: usize,
        missing: &Missing,
        words: impl Iterator<Item = usize> + Clone,
        others: Option<impl Iterator<Item = usize>>,
    ) -> Claimed {
        let last = self.last[log].load(Ordering::Relaxed);
        if !missing.is_said() {
            missing.begin_with(last.max(self.floor.load(Ordering::Relaxed)) + 1);
        }
        // ORDER (of threads): the log has spoken before it looks at the floor.
        light_fence();
        let mut claimed = Claimed {
            above: last,
            meets_others: false,
        };
        if !recorder::leaves_out(FLOOR) {
            claimed.above = last.max(self.floor.load(Ordering::Acquire));
        }
        let Some(Some(owners)) = self.lines.get() else {
            return claimed;
        };
        let own = log as u8 + 1;
        // Mostly all are its own: one branch for all of them.
        let differ = |differ, word| differ | owners.of(word).load(Ordering::Acquire) ^ own;
        if words.clone().fold(0, differ) != 0 {
            self.claim_lines(owners, own, words, &mut claimed);
        }
        if let Some(others) = others {
            self.claim_lines(owners, own, others, &mut claimed);
        }
        claimed
    }

    fn claim_lines(
        &self,
        owners: &LineOwners,
        own: u8,
        lines: impl Iterator<Item = usize>,
        claimed: &mut Claimed,
    ) {
        lines.for_each(|line| {
            let owner = owners.of(line);
            if owner.load(Ordering::Acquire) != own {
                self.claim_line(owner, own, claimed);
            }
        });
    }

    fn claim_line(&self, owner: &AtomicU8, own: u8, claimed: &mut Claimed) {
        let mut is = owner.load(Ordering::Acquire);
        loop {
            let becomes = match is {
                0 => own,
                SHARED => break,
                _ if is == own => return,
                _ => SHARED,
            };
            match owner.compare_exchange(is, becomes, Ordering::AcqRel, Ordering::Acquire) {
                Ok(0) => return,
                Ok(_) => break,
                Err(now) => is = now,
            }
        }
        claimed.meets_others = true;
        let (above, site) = match is {
            SHARED => (self.last(), RAISE_ABOVE_ALL),
            // ORDER (of threads): what that log's thread has said before it let go of the lock that the caller has.
            log => (self.last[log as usize - 1].load(Ordering::Acquire), RAISE),
        };
        if !recorder::leaves_out(site) {
            claimed.above = claimed.above.max(above);
        }
    }

    /// Draws the next stamp of a log.
    #[inline(always)]
    pub(crate) fn draw(&self, log: usize, above: u64) -> u64 {
        let stamp = (above / LOGS as u64 + 1) * LOGS as u64 + log as u64;
        // ORDER (of threads): the caller still holds the locks of what it changed, and the log has spoken before.
        self.last[log].store(stamp, Ordering::Release);
        stamp
    }

    /// The last stamp of all logs.
    pub(crate) fn last(&self) -> u64 {
        let last = self.last.iter().map(|last| last.load(Ordering::Acquire));
        last.fold(0, u64::max)
    }

    /// Up to here no stamp is drawn any more by who has not spoken before the floor was raised.
    pub(crate) fn floor(&self) -> u64 {
        self.floor.load(Ordering::Acquire)
    }

    /// Nobody draws a stamp up to this one any more who has not spoken before this returns.
    pub(crate) fn raise_floor(&self, stamp: u64) {
        self.floor.fetch_max(stamp, Ordering::SeqCst);
        fence_all();
    }

    /// From now on owners order, and every stamp is larger than `last`. The caller has locked all checkpoints, and can
    /// fence all threads. Whether it is so.
    pub(crate) fn begin(&self, last: u64, space: Range<usize>) -> bool {
        let Some(lines) = self.lines.get_or_init(|| LineOwners::new(space)) else {
            return false;
        };
        // Those that are left over are no harm: all that their logs have drawn is behind the floor.
        lines.clear();
        if !recorder::leaves_out(BEGIN) {
            self.floor.fetch_max(last, Ordering::Release);
        }
        self.orders.store(true, Ordering::Release);
        true
    }

    /// From now on the counter does. The caller has locked all checkpoints.
    pub(crate) fn end(&self) {
        self.orders.store(false, Ordering::Release);
    }
}

/// Which order is wanted: owners are tried after some commits, and each time that this was in vain, after four times as
/// many.
#[derive(Debug)]
pub(crate) struct Trial {
    /// Whether owners are to order as soon as several threads commit.
    wants_owners: bool,
    /// Commits since that has changed.
    commits: Commits,
    /// After so many commits owners are tried.
    after: u64,
    /// They are wanted whatever it costs. For tests.
    is_forced: bool,
}

/// Commits that were counted before owners are tried first.
const TRIED_AFTER: u64 = 2048;
/// However often that was in vain, they are tried after so many.
const TRIED_AFTER_MAX: u64 = 1 << 26;
/// Commits by which owners are judged.
pub(crate) const JUDGED_BY: u64 = 256;
/// One commit of so many may meet lines of others.
const MET_MAX: u64 = 16;
/// So large may a record be: of more lines, to look at all of them takes longer than to count.
const BYTES_MAX: u64 = 512;

impl Default for Trial {
    fn default() -> Self {
        Self {
            wants_owners: false,
            commits: Commits::default(),
            after: TRIED_AFTER,
            is_forced: false,
        }
    }
}

impl Trial {
    /// Whether owners are to order.
    pub(crate) fn wants_owners(&self) -> bool {
        self.wants_owners || self.is_forced
    }

    /// Some more commits.
    pub(crate) fn saw(&mut self, commits: Commits) {
        let all = &mut self.commits;
        all.number += commits.number;
        all.met += commits.met;
        all.bytes += commits.bytes;
        match self.wants_owners {
            true if all.number >= JUDGED_BY => {
                let are_in_vain =
                    all.met * MET_MAX > all.number || all.bytes > all.number * BYTES_MAX;
                // They are known by what comes, and not by what was.
                *all = Commits::default();
                if are_in_vain {
                    self.gives_up();
                }
            }
            false if all.number >= self.after => self.wants(true),
            _ => {}
        }
    }

    /// The counter is to order.
    pub(crate) fn gives_up(&mut self) {
        self.after = (self.after * 4).min(TRIED_AFTER_MAX);
        self.wants(false);
    }

    /// Owners are to order from now on. For tests.
    pub(crate) fn force(&mut self, is_forced: bool) {
        self.is_forced = is_forced;
    }

    fn wants(&mut self, owners: bool) {
        self.wants_owners = owners;
        self.commits = Commits::default();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn commits(number: u64, met: u64, bytes: u64) -> Commits {
        Commits { number, met, bytes }
    }

    #[test]
    fn owners_are_tried_and_given_up_where_they_meet() {
        let mut trial = Trial::default();
        trial.saw(commits(TRIED_AFTER - 1, 0, 0));
        assert!(!trial.wants_owners());
        trial.saw(commits(1, 0, 0));
        assert!(trial.wants_owners());
        // A few that meet are no reason.
        for _ in 0..10 {
            trial.saw(commits(
                JUDGED_BY,
                JUDGED_BY / MET_MAX,
                JUDGED_BY * BYTES_MAX,
            ));
            assert!(trial.wants_owners());
        }
        trial.saw(commits(JUDGED_BY, JUDGED_BY / MET_MAX + 1, 0));
        assert!(!trial.wants_owners());
        // The next time later.
        trial.saw(commits(4 * TRIED_AFTER - 1, 0, 0));
        assert!(!trial.wants_owners());
        trial.saw(commits(1, 0, 0));
        assert!(trial.wants_owners());
        trial.gives_up();
        trial.saw(commits(16 * TRIED_AFTER, 0, 0));
        assert!(trial.wants_owners());
    }

    #[test]
    fn owners_are_given_up_where_commits_are_large() {
        let mut trial = Trial::default();
        trial.saw(commits(TRIED_AFTER, 0, TRIED_AFTER * 4096));
        assert!(trial.wants_owners());
        trial.saw(commits(JUDGED_BY, 0, JUDGED_BY * BYTES_MAX + 1));
        assert!(!trial.wants_owners());
    }
}
