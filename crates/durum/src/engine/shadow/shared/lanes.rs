//! Lanes: for each log the checkpoint of its own, so that threads which commit to disjoint data share nothing but the
//! counter of stamps, and not even that where owners of lines order their records.

use std::ops::Range;
use std::ptr;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};

use crossbeam_utils::CachePadded;
use durum_persist::{Site, record as recorder};

use super::super::biased_lock::{BiasedLock, Held};
use super::super::home::checkpoint::Checkpoint;
use super::super::log::missing::Missing;
use super::super::log::owners::{Claimed, Commits, JUDGED_BY, LOGS, Trial};
use super::super::log::stamps::Stamps;
use crate::asymmetric::Bias;
use crate::contention;
use crate::error::Result;
use crate::window::AnnouncedWord;

/// A step that keeps the order without being a write-back or a fence. A crash test leaves it out.
pub(crate) const SETTLE: Site = Site("shadow.lanes: apply what the only thread has left pending");

/// So many lanes have batches as large as an only one.
const WHOLE_SHARES: usize = 4;
/// However many lanes there are, a batch has so many bytes of records.
const BATCH_BYTES_MIN: usize = 128 << 10;

/// What a log has beside its writing end.
#[derive(Debug)]
pub(crate) struct Lane {
    pub(crate) checkpoint: CachePadded<BiasedLock<Checkpoint>>,
    /// The caller of its [`Stamps::draw_for`] has locked the checkpoint.
    pub(crate) missing: CachePadded<Missing>,
    /// A record may be in flight. Set by its thread, with the checkpoint locked.
    pub(crate) flies: CachePadded<AtomicBool>,
    lag: CachePadded<Lag>,
    /// Which of the lanes it is.
    number: usize,
    tally: CachePadded<Tally>,
}

/// [Commits] among others that were not judged yet. For who has locked the checkpoint.
#[derive(Debug, Default)]
struct Tally {
    commits: AtomicU64,
    met: AtomicU64,
    bytes: AtomicU64,
}

impl Tally {
    #[inline(always)]
    fn add(&self, meets_others: bool, bytes: usize) {
        let add = |to: &AtomicU64, more: u64| {
            to.store(to.load(Ordering::Relaxed) + more, Ordering::Relaxed);
        };
        add(&self.commits, 1);
        if meets_others {
            add(&self.met, 1);
        }
        add(&self.bytes, bytes as u64);
    }

    fn take(&self) -> Commits {
        let take = |from: &AtomicU64| from.swap(0, Ordering::Relaxed);
        Commits {
            number: take(&self.commits),
            met: take(&self.met),
            bytes: take(&self.bytes),
        }
    }
}

/// How often home was looked for since what this lane misses there has changed. For the holder of all lanes.
#[derive(Debug, Default)]
struct Lag {
    from: AtomicU64,
    looks: AtomicUsize,
}

impl Lag {
    /// One more look, at a lane that misses records from this one on: how many that are.
    fn look(&self, from: u64) -> usize {
        match self.from.swap(from, Ordering::Relaxed) == from {
            true => self.looks.fetch_add(1, Ordering::Relaxed),
            false => {
                self.looks.store(0, Ordering::Relaxed);
                0
            }
        }
    }
}

impl Lane {
    fn new(checkpoint: Checkpoint, number: usize, may_be_alone: bool) -> Arc<Self> {
        let lane = Self {
            checkpoint: CachePadded::new(BiasedLock::new(checkpoint)),
            missing: CachePadded::new(Missing::new()),
            flies: CachePadded::default(),
            lag: CachePadded::default(),
            number,
            tally: CachePadded::default(),
        };
        lane.checkpoint.join(may_be_alone);
        Arc::new(lane)
    }

    /// For a record among those of others, whose thread has locked the checkpoint: looks at the lines that it is about,
    /// those of these words and others.
    /// What [`Lane::draw_among_others`] has to be told.
    #[inline(always)]
    pub(crate) fn claim(
        &self,
        stamps: &Stamps,
        words: &[AnnouncedWord],
        others: Option<impl Iterator<Item = usize>>,
    ) -> Claimed {
        let words = words.iter().map(AnnouncedWord::address);
        stamps
            .owners
            .claim(self.number, &self.missing, words, others)
    }

    /// Draws `count` stamps for a record among those of others; the first of them. Where owners order it is one, and
    /// larger than `above`, which the lines have said.
    #[inline(always)]
    pub(crate) fn draw_among_others(&self, stamps: &Stamps, count: u64, above: u64) -> u64 {
        if stamps.owners.order() {
            return stamps.owners.draw(self.number, above);
        }
        stamps.draw_for(&self.missing, count, false)
    }

    /// Counts a commit, one of some, with so many bytes of a record. Whether there were enough here to
    /// [see](Lanes::judge) what orders best.
    #[inline(always)]
    pub(crate) fn is_to_be_judged(&self, meets_others: bool, bytes: usize) -> bool {
        self.tally.add(meets_others, bytes);
        self.tally.commits.load(Ordering::Relaxed) >= JUDGED_BY
    }

    /// A batch of this lane is home. `next`: the stamp of the commit that has found this out.
    pub(crate) fn batch_is_home(&self, checkpoint: &Checkpoint, next: u64) {
        let first = checkpoint.first_not_home().unwrap_or(next);
        self.missing.begin_with(first);
    }

    /// Brings home what this lane has, if there is something. Memory is brought home without errors.
    fn catch_up<'l>(&'l self, lock: impl FnOnce() -> Held<'l, Checkpoint>, stamps: &Stamps) {
        if self.missing.from() > 0 {
            let _ = self.bring_home(&mut lock(), stamps);
        }
    }

    /// Brings home what this lane has, to which nobody commits meanwhile.
    fn bring_home(&self, checkpoint: &mut Checkpoint, stamps: &Stamps) -> Result<()> {
        checkpoint.advance_fully(stamps)?;
        let first = checkpoint.first_not_home().unwrap_or(0);
        self.missing.begin_with(first);
        Ok(())
    }
}

/// The lanes there are, and what those that come begin with.
#[derive(Debug, Default)]
struct State {
    all: Vec<Arc<Lane>>,
    /// Those that nobody has now. Nothing is pending there, but some of it may not be home.
    idle: Vec<Arc<Lane>>,
    /// All members have a part in the one lane.
    is_shared: bool,
    is_shown: bool,
    skips_home: bool,
    stopped: bool,
    trial: Trial,
}

impl State {
    fn find_home(&self, stamps: &Stamps) {
        stamps.find_home(self.all.iter().map(|lane| &*lane.missing));
    }

    /// Has owners of lines order the records of so many members if that is wanted, or else the counter, for who has
    /// locked the checkpoint of `own`.
    fn choose_order(
        &mut self,
        own: Option<&Lane>,
        members: u32,
        space: &Range<usize>,
        stamps: &Stamps,
    ) {
        let to_owners = members > 1 && self.all.len() <= LOGS && self.trial.wants_owners();
        if to_owners != stamps.owners.order() {
            self.change_order(own, to_owners, space, stamps);
        }
    }

    /// Has owners of lines order records from now on, or the counter, for who has locked the checkpoint of `own`.
    fn change_order(
        &mut self,
        own: Option<&Lane>,
        to_owners: bool,
        space: &Range<usize>,
        stamps: &Stamps,
    ) {
        let is_own = |lane: &Lane| own.is_some_and(|own| ptr::eq(lane, own));
        let others = self.all.iter().filter(|lane| !is_own(lane));
        let _held: Vec<_> = others.map(|lane| lane.checkpoint.lock()).collect();
        // What comes is judged by itself.
        for lane in &self.all {
            lane.tally.take();
        }
        let is_changed = match to_owners {
            true => stamps.order_by_owner(space.clone()),
            false => {
                stamps.order_by_counter();
                true
            }
        };
        if !is_changed {
            self.trial.gives_up();
        }
    }
}

/// The lanes of a store.
#[derive(Debug)]
pub(crate) struct Lanes {
    state: Mutex<State>,
    /// Who has a lane. The only one draws stamps without an atomic read-modify-write, and leaves records pending.
    members: CachePadded<BiasedLock<()>>,
    /// Bytes of records that make a batch of the only lane.
    batch_max: usize,
    /// The addresses of the store.
    space: Range<usize>,
}

impl Lanes {
    pub(crate) fn new(batch_max: usize, space: Range<usize>) -> Self {
        Self {
            state: Mutex::default(),
            members: CachePadded::new(BiasedLock::new(())),
            batch_max,
            space,
        }
    }

    /// Bytes of records that make a batch of the only lane.
    pub(crate) fn batch_max(&self) -> usize {
        self.batch_max
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        contention::lock(&self.state)
    }

    /// How many have a lane, or a part in one.
    pub(crate) fn members(&self) -> u32 {
        self.members.members()
    }

    /// The bias to the only member.
    pub(crate) fn bias(&self) -> &Bias {
        self.members.bias()
    }

    /// Says that the caller, who has a lane, is the only one, as long as this is held.
    #[inline(always)]
    pub(crate) fn try_alone(&self) -> Option<Held<'_, ()>> {
        self.members.try_alone()
    }

    /// A lane for one more member.
    pub(crate) fn join(
        &self,
        checkpoint: impl FnOnce() -> Checkpoint,
        stamps: &Stamps,
    ) -> Arc<Lane> {
        let mut state = self.lock();
        self.members.join(true);
        if self.members() == 2 && !recorder::leaves_out(SETTLE) {
            // ORDER (of threads): what the first one has left pending is applied before anything of the second one.
            let lanes = state.all.iter();
            lanes.for_each(|lane| lane.checkpoint.lock().apply_all());
        }
        let lane = match state.idle.pop() {
            Some(lane) => lane,
            None => Self::add(&mut state, checkpoint(), true),
        };
        state.choose_order(None, self.members(), &self.space, stamps);
        self.share_batches(stamps);
        lane
    }

    /// A part in the one lane of a store on files, which is made for the first.
    pub(crate) fn share(&self, checkpoint: impl FnOnce() -> Checkpoint) -> Arc<Lane> {
        let mut state = self.lock();
        self.members.join(false);
        state.is_shared = true;
        // They have one log, so there is nothing to order.
        state.trial.force(false);
        match state.all.first() {
            Some(lane) => lane.clone(),
            None => Self::add(&mut state, checkpoint(), false),
        }
    }

    fn add(state: &mut State, mut checkpoint: Checkpoint, may_be_alone: bool) -> Arc<Lane> {
        checkpoint.set_shown(state.is_shown);
        if state.skips_home {
            checkpoint.skip_home();
        }
        if state.stopped {
            checkpoint.stop();
        }
        let lane = Lane::new(checkpoint, state.all.len(), may_be_alone);
        state.all.push(lane.clone());
        lane
    }

    /// What may be live of all logs does not grow with their number, as long as batches are worth it.
    fn share_batches(&self, stamps: &Stamps) {
        let members = (self.members() as usize).max(WHOLE_SHARES);
        let share = self.batch_max * WHOLE_SHARES / members;
        stamps.set_batch_max(share.max(BATCH_BYTES_MIN.min(self.batch_max)));
    }

    /// A member goes, whose lane the next one gets.
    pub(crate) fn leave(&self, lane: Arc<Lane>, stamps: &Stamps) {
        let mut state = self.lock();
        // ORDER (of threads): before anybody is alone, and leaves later records pending.
        lane.checkpoint.lock_as_member().apply_all();
        state.idle.push(lane);
        // ORDER (of threads): who is alone from then on counts by the counter.
        state.choose_order(None, self.members() - 1, &self.space, stamps);
        self.members.leave();
        self.share_batches(stamps);
    }

    /// The lane that all members of a store on files have a part in.
    pub(crate) fn shared(&self) -> Option<Arc<Lane>> {
        let state = self.lock();
        state.all.first().filter(|_| state.is_shared).cloned()
    }

    /// A member of a store on files goes.
    pub(crate) fn leave_shared(&self) {
        self.members.leave();
    }

    /// Brings home every record that can be. After an error others are.
    pub(crate) fn bring_home(&self, stamps: &Stamps) -> Result<()> {
        let state = self.lock();
        stamps.raise_floor();
        let results = state
            .all
            .iter()
            .map(|lane| lane.bring_home(&mut lane.checkpoint.lock(), stamps));
        let result = results.fold(Ok(()), Result::and);
        state.find_home(stamps);
        result
    }

    /// Finds out how far all records are home, unless somebody else does; a batch of `own` is. What lanes have that
    /// have done nothing for long is brought home, so that it holds nobody up.
    #[cold]
    pub(crate) fn advance_home(&self, own: &Lane, stamps: &Stamps) {
        let Ok(state) = self.state.try_lock() else {
            return;
        };
        stamps.raise_floor();
        for lane in &state.idle {
            // Nobody gets it as long as this is locked.
            lane.catch_up(|| lane.checkpoint.lock_as_member(), stamps);
        }
        // Each of the others comes here with its batches, too.
        let looks_max = self.members() as usize;
        for lane in state.all.iter().filter(|lane| !ptr::eq(&***lane, own)) {
            if lane.lag.look(lane.missing.from()) >= looks_max {
                // Who commits there does not wait for the checkpoint of `own` meanwhile: that is for its thread only.
                lane.catch_up(|| lane.checkpoint.lock(), stamps);
            }
        }
        state.find_home(stamps);
    }

    /// After a commit among others, whose thread has locked the checkpoint of `own`: sees whether the order is to
    /// change, unless somebody else does.
    #[cold]
    pub(crate) fn judge(&self, own: &Lane, stamps: &Stamps) {
        let Ok(mut state) = self.state.try_lock() else {
            return;
        };
        let commits = own.tally.take();
        state.trial.saw(commits);
        state.choose_order(Some(own), self.members(), &self.space, stamps);
    }

    /// Has the counter order records. For who has no checkpoint locked.
    #[cold]
    pub(crate) fn order_by_counter(&self, stamps: &Stamps) {
        let mut state = self.lock();
        if stamps.owners.order() {
            state.change_order(None, false, &self.space, stamps);
        }
    }

    /// Has owners order records whenever there are two threads, however often they meet. For tests.
    pub(crate) fn order_by_owner(&self, stamps: &Stamps) {
        let mut state = self.lock();
        let is_shared = state.is_shared;
        state.trial.force(!is_shared);
        state.choose_order(None, self.members(), &self.space, stamps);
    }

    /// Makes durable what was left in flight before this is called.
    pub(crate) fn land(&self) {
        let state = self.lock();
        // Who has let others know of its record has set it before.
        let flying = state
            .all
            .iter()
            .filter(|lane| lane.flies.load(Ordering::Acquire));
        for lane in flying {
            let mut checkpoint = lane.checkpoint.lock();
            checkpoint.land_now();
            lane.flies.store(false, Ordering::Relaxed);
        }
    }

    /// Visits each lane, one after the other.
    pub(crate) fn visit(&self, visit: impl FnMut(Held<'_, Checkpoint>)) {
        let state = self.lock();
        let checkpoints = state.all.iter().map(|lane| lane.checkpoint.lock());
        checkpoints.for_each(visit);
    }

    /// Has `work` done while nobody commits.
    pub(crate) fn with_all<R>(&self, work: impl FnOnce(&mut [Held<'_, Checkpoint>]) -> R) -> R {
        let state = self.lock();
        let lanes = state.all.iter();
        let mut checkpoints: Vec<_> = lanes.map(|lane| lane.checkpoint.lock()).collect();
        work(&mut checkpoints)
    }

    /// A snapshot may show what home holds, or does not any more; `show` is called while nobody commits.
    pub(crate) fn set_shown(&self, is_shown: bool, show: impl FnOnce()) {
        let mut state = self.lock();
        state.is_shown = is_shown;
        let lanes = state.all.iter();
        let mut checkpoints: Vec<_> = lanes.map(|lane| lane.checkpoint.lock()).collect();
        for checkpoint in &mut checkpoints {
            checkpoint.set_shown(is_shown);
        }
        show();
    }

    /// From now on nothing is brought home, and counts as if it were.
    pub(crate) fn skip_home(&self) {
        let mut state = self.lock();
        state.skips_home = true;
        let lanes = state.all.iter();
        lanes.for_each(|lane| lane.checkpoint.lock().skip_home());
    }

    /// Nothing is applied any more.
    pub(crate) fn stop(&self) {
        let mut state = self.lock();
        state.stopped = true;
        let lanes = state.all.iter();
        lanes.for_each(|lane| lane.checkpoint.lock().stop());
    }
}
