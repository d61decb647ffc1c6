//! How changes become durable and visible.
//!
//! One thread writes at a time. It makes its changes while readers are kept out, in a transaction of the pool, under
//! the next sequence number; readers see them when that number becomes the visible one, which is after the commit. So
//! nobody reads what a crash may take back, unless it was written as buffered.
//!
//! A write that is left in flight is the other exception: readers see it at once, and whoever asks waits for its fence
//! ([`InFlight`](crate::InFlight)).
//!
//! Where a commit takes as long as a fence, readers are kept out to its end, and nothing that was superseded has to
//! stay. Where it takes a sync, or the batch is large, they go on meanwhile: what they see is kept as older versions,
//! until the commit is through and somebody sweeps.
//!
//! Where a commit takes a sync, threads that find another one writing leave their changes in a queue. Whoever writes
//! next makes all of them in one commit. Elsewhere they wait for a turn: a thread that writes again may pass who waits,
//! some hundred times, as all that it has in its caches would go to another processor with each turn.

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::slice;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::thread;

use arrayvec::ArrayVec;
use durum::{Durability, Tx};

use crate::batch::{Change, WriteBatch};
use crate::error::{Error, Result};
use crate::in_flight::InFlight;
use crate::inner::Inner;
use crate::lock::{Turn, Writing};
use crate::media::store;
use crate::options::WriteOptions;
use crate::primitive::locked;
use crate::queue::Request;
use crate::tree::group::GROUP;
use crate::tree::{LeafKey, Tree};
use crate::versions::Readers;

/// So many changes are made at a stretch while readers wait.
const STRETCH: usize = 32;
/// Batches with more bytes are made while readers go on.
const BYTES_MAX: usize = 64 << 10;
/// Commits of several threads together have at most so many bytes, unless the first alone has more.
const GROUP_BYTES_MAX: usize = 1 << 20;
/// Sequence numbers that are taken with one change of the root.
const SEQUENCES: u64 = 1 << 32;
/// Keys that a commit sweeps on its way.
const SWEPT_BY_COMMIT: usize = 4;
/// Keys that opening and closing sweep in one transaction.
const SWEPT_AT_REST: usize = 1000;
/// Where commits go on beside readers, a sweep has a transaction of its own, which is worth it for so many keys.
const SWEPT_AT_ONCE: usize = 256;
/// Leaves that are merged in one transaction.
const MERGED_AT_ONCE: usize = 256;

/// What is to be changed.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Work<'w> {
    One(Change<'w>),
    Row(&'w [Change<'w>]),
    Batches(&'w [&'w WriteBatch]),
}

impl Work<'_> {
    fn is_large(&self) -> bool {
        match self {
            Work::One(Change::Put(_, value)) => value.len() > BYTES_MAX,
            Work::One(_) => false,
            Work::Row(changes) => {
                let bytes = changes.iter().map(Change::size).sum::<usize>();
                changes.len() > STRETCH || bytes > BYTES_MAX
            }
            Work::Batches(batches) => {
                let (mut count, mut bytes) = (0, 0);
                for batch in *batches {
                    count += batch.len();
                    bytes += batch.size();
                }
                count > STRETCH || bytes > BYTES_MAX
            }
        }
    }

    fn has_deletes(&self) -> bool {
        match self {
            Work::One(change) => change.is_delete(),
            Work::Row(changes) => changes.iter().any(Change::is_delete),
            Work::Batches(batches) => batches.iter().any(|batch| batch.has_deletes()),
        }
    }

    /// Gives the changes in their order, up to [`GROUP`] at a time.
    fn each_group(&self, mut make: impl FnMut(&[Change<'_>]) -> Result<()>) -> Result<()> {
        match self {
            Work::One(change) => make(slice::from_ref(change)),
            Work::Row(changes) => changes.chunks(GROUP).try_for_each(make),
            Work::Batches(batches) => {
                let mut group = ArrayVec::<Change<'_>, GROUP>::new();
                for change in batches.iter().flat_map(|batch| batch.iter()) {
                    group.push(change);
                    if group.is_full() {
                        make(&group)?;
                        group.clear();
                    }
                }
                match group.is_empty() {
                    true => Ok(()),
                    false => make(&group),
                }
            }
        }
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        // Nobody reads by an old number any more. What this leaves, the next opener sweeps.
        let _ = self.sweep_all(&self.tree.turn());
    }
}

impl Inner {
    /// Makes the changes, now or together with those of others.
    pub(crate) fn write(&self, work: Work<'_>, options: &WriteOptions) -> Result<()> {
        let durability = options.durability.unwrap_or_else(|| self.durability());
        self.write_and::<false>(work, durability).map(drop)
    }

    /// The same; if it `FLIES`, as [`Inner::commit_and`] does.
    #[inline]
    fn write_and<const FLIES: bool>(
        &self,
        work: Work<'_>,
        durability: Durability,
    ) -> Result<Option<durum::InFlight<'_>>> {
        if Tx::levels() > 0 {
            return Err(Error::InTransaction);
        }
        self.check_writable()?;
        if self.waiting.load(Ordering::Relaxed) == 0
            && let Some(turn) = self.tree.try_turn()
        {
            return self.commit_and::<FLIES>(&turn, work, durability);
        }
        if self.has_slow_commits {
            return self.write_in_group(work, durability).map(|()| None);
        }
        // A commit takes less than to have another thread make it.
        let turn = self.wait_for_turn()?;
        self.commit_and::<FLIES>(&turn, work, durability)
    }

    /// Makes changes one after the other, as many in a transaction as readers can wait for; on a file system, where
    /// they need not wait, as many as threads write together.
    ///
    /// A transaction is committed before the next one begins, so what a crash leaves is the first of them.
    pub(crate) fn write_row<'c>(
        &self,
        changes: impl Iterator<Item = Change<'c>>,
        options: &WriteOptions,
    ) -> Result<()> {
        let (count_max, bytes_max) = match self.has_slow_commits {
            true => (usize::MAX, GROUP_BYTES_MAX),
            false => (STRETCH, BYTES_MAX),
        };
        let mut row = Vec::with_capacity(STRETCH.min(changes.size_hint().0));
        let mut bytes = 0;
        for change in changes {
            bytes += change.size();
            if row.len() == count_max || bytes > bytes_max && !row.is_empty() {
                self.write(Work::Row(&row), options)?;
                row.clear();
                bytes = change.size();
            }
            row.push(change);
        }
        match row.is_empty() {
            true => Ok(()),
            false => self.write(Work::Row(&row), options),
        }
    }

    /// Makes the changes, and leaves it to [`InFlight::wait`] that they are durable, if they can be left in flight.
    pub(crate) fn begin_to_write(&self, work: Work<'_>) -> Result<InFlight<'_>> {
        let left = self.write_and::<true>(work, Durability::Durable)?;
        Ok(InFlight::new(left))
    }

    /// Waits until this thread may write.
    pub(crate) fn wait_for_turn(&self) -> Result<Turn<'_, Tree>> {
        if Tx::levels() > 0 || *locked(&self.owner) == Some(thread::current().id()) {
            return Err(Error::InTransaction);
        }
        self.check_writable()?;
        Ok(self.tree.turn())
    }

    #[inline(never)]
    fn write_in_group(&self, work: Work<'_>, durability: Durability) -> Result<()> {
        if *locked(&self.owner) == Some(thread::current().id()) {
            return Err(Error::InTransaction);
        }
        let mut batch = WriteBatch::new();
        work.each_group(|changes| {
            changes.iter().for_each(|change| batch.push(*change));
            Ok(())
        })?;
        let own = Arc::new(Request::new(batch, durability));
        {
            let mut queue = locked(&self.queue);
            queue.push(own.clone());
            self.waiting.store(queue.len(), Ordering::Relaxed);
        }
        let turn = self.wait_for_turn()?;
        // Others are served until this thread's request is: the queue is first in, first out.
        loop {
            if let Some(outcome) = locked(&own.outcome).take() {
                return outcome;
            }
            let group = self.take_group();
            if group.is_empty() {
                // A comparator has panicked in the group that it was in: nothing of that was kept.
                return self.commit(&turn, Work::Batches(&[&own.batch]), durability);
            }
            self.commit_group(&turn, &group);
        }
    }

    fn take_group(&self) -> Vec<Arc<Request>> {
        let mut queue = locked(&self.queue);
        let mut bytes = 0;
        let taken = queue
            .iter()
            .take_while(|request| {
                bytes += request.batch.size();
                bytes <= GROUP_BYTES_MAX || bytes == request.batch.size()
            })
            .count();
        let group = queue.drain(..taken).collect();
        self.waiting.store(queue.len(), Ordering::Relaxed);
        group
    }

    fn commit_group(&self, turn: &Turn<'_, Tree>, group: &[Arc<Request>]) {
        let batches: Vec<&WriteBatch> = group.iter().map(|request| &request.batch).collect();
        let mut asked = group.iter().map(|request| request.durability);
        let durability = match asked.any(|durability| durability == Durability::Durable) {
            true => Durability::Durable,
            false => Durability::Buffered,
        };
        let commit = || self.commit(turn, Work::Batches(&batches), durability);
        let Ok(result) = catch_unwind(AssertUnwindSafe(commit)) else {
            // The panic is that of one of them, who will meet it again: without an outcome each makes its own.
            return;
        };
        for request in group {
            let outcome = match &result {
                Ok(()) => Ok(()),
                // Nothing of the group was kept: each gets what it deserves.
                Err(_) => self.commit(turn, Work::Batches(&[&request.batch]), request.durability),
            };
            *locked(&request.outcome) = Some(outcome);
        }
    }

    /// Makes the changes in one transaction, and then visible.
    pub(crate) fn commit(
        &self,
        turn: &Turn<'_, Tree>,
        work: Work<'_>,
        durability: Durability,
    ) -> Result<()> {
        self.commit_and::<false>(turn, work, durability).map(drop)
    }

    /// The same. If it `FLIES`, it may be left in flight: readers see it before it is durable, which it is when it was
    /// waited for, whatever `durability` says.
    pub(crate) fn commit_and<const FLIES: bool>(
        &self,
        turn: &Turn<'_, Tree>,
        work: Work<'_>,
        durability: Durability,
    ) -> Result<Option<durum::InFlight<'_>>> {
        let goes_on_beside = self.has_slow_commits || work.is_large();
        let deletes_beside = goes_on_beside && work.has_deletes();
        // What it deletes is gone when it is through: nobody may begin to read by the number of before for longer than
        // that.
        let shut = deletes_beside.then(|| self.pins.shut(&self.visible));
        let mut emptied = Vec::new();
        let sequence = self.visible() + 1;
        // SAFETY: the root is live as long as the pool is open.
        let sequence_max = unsafe { &raw mut (*self.database.0).sequence_max };
        // SAFETY: only who has the turn changes it.
        let is_new = sequence > unsafe { *sequence_max };
        let in_flight = self.transact::<FLIES>(
            turn,
            durability,
            goes_on_beside,
            |tx, tree, readers| {
                if is_new {
                    store(tx, sequence_max, sequence + SEQUENCES)?;
                }
                if let Work::One(change) = work {
                    keep_readers_out(turn, tree)?.change(tx, change, sequence, readers)?;
                } else {
                    let mut made = 0;
                    work.each_group(|changes| {
                        if goes_on_beside && made + changes.len() > STRETCH {
                            made = 0;
                            // What was changed so far has a number that nobody reads by.
                            tree.take_if(|tree| !tree.is_ahead);
                        }
                        made += changes.len();
                        keep_readers_out(turn, tree)?.change_group(tx, changes, sequence, readers)
                    })?;
                }
                if !goes_on_beside {
                    keep_readers_out(turn, tree)?.sweep(tx, readers, SWEPT_BY_COMMIT)?;
                }
                Ok(())
            },
            |tree| {
                if deletes_beside {
                    // SAFETY: as in `keep_readers_out`.
                    let tree = tree.get_or_insert_with(|| unsafe { turn.write() });
                    emptied = tree.remove_leaving()?;
                }
                // ORDER (of threads): of what is in flight, before its fence. Nobody builds on it without that.
                self.visible.store(sequence, Ordering::Release);
                Ok(())
            },
        )?;
        let is_left = in_flight.as_ref().is_some_and(|left| left.record() > 0);
        match (is_left, durability) {
            (true, _) => self.flies.store(true, Ordering::Relaxed),
            // ORDER: what is in flight is durable before a change of nothing is said to be, such as to delete what
            // another thread has just deleted: else a crash brings back what the caller was told is gone.
            (false, Durability::Durable) if self.flies.load(Ordering::Relaxed) => {
                self.pool.sync()?;
                self.flies.store(false, Ordering::Relaxed);
            }
            _ => {}
        }
        drop(shut);
        if goes_on_beside {
            // What is made is made, whether there is room for this now or not. It may come later.
            let _ = self.merge_few(turn, &emptied);
            let _ = self.sweep(turn, SWEPT_AT_ONCE, SWEPT_AT_ONCE);
        }
        Ok(in_flight)
    }

    /// Merges leaves that a commit has left with few records. Readers are kept out for a moment at a time.
    fn merge_few(&self, turn: &Turn<'_, Tree>, emptied: &[LeafKey]) -> Result<()> {
        for some in emptied.chunks(MERGED_AT_ONCE) {
            self.transact::<false>(
                turn,
                Durability::Buffered,
                false,
                |tx, tree, _| keep_readers_out(turn, tree)?.merge_few(tx, some),
                |_| Ok(()),
            )?;
        }
        Ok(())
    }

    /// Nothing where it is only read: that changes nothing.
    pub(crate) fn sweep_all(&self, turn: &Turn<'_, Tree>) -> Result<()> {
        if self.is_read_only {
            return Ok(());
        }
        let mut waiting = usize::MAX;
        loop {
            let (now, is_noted) = {
                let tree = self.tree.read();
                (tree.stale_keys(), tree.has_stale)
            };
            if now == 0 && is_noted {
                return self.note_that_none_is_stale(turn);
            }
            if now == 0 || now >= waiting {
                return Ok(());
            }
            waiting = now;
            self.sweep(turn, 1, SWEPT_AT_REST)?;
        }
    }

    /// Spares the next opener to look for older versions. If a crash takes it back, it looks.
    fn note_that_none_is_stale(&self, turn: &Turn<'_, Tree>) -> Result<()> {
        self.transact::<false>(
            turn,
            Durability::Buffered,
            false,
            |tx, tree, _| keep_readers_out(turn, tree)?.note_has_stale(tx, false),
            |_| Ok(()),
        )?;
        Ok(())
    }

    /// Frees superseded versions that nobody needs, where at least `least` keys wait. Readers are kept out.
    pub(crate) fn sweep(&self, turn: &Turn<'_, Tree>, least: usize, max: usize) -> Result<()> {
        let is_due = {
            let tree = self.tree.read();
            tree.stale_keys() >= least && tree.can_sweep(&self.readers(false))
        };
        if !is_due {
            return Ok(());
        }
        // It may come later: who opens the database after a crash does it then.
        self.transact::<false>(
            turn,
            Durability::Buffered,
            false,
            |tx, tree, readers| keep_readers_out(turn, tree)?.sweep(tx, readers, max),
            |_| Ok(()),
        )?;
        Ok(())
    }

    /// Who reads by which number, for the writer while it keeps readers out.
    fn readers(&self, goes_on_beside: bool) -> Readers {
        Readers {
            pinned: self.pins.sequences(),
            beside: goes_on_beside.then(|| self.visible()),
        }
    }

    /// A transaction that changes the tree, by a thread that holds the writer's lock. If it fails, memory is made to
    /// say what the pool says. If it `FLIES`, it may be in flight when this returns.
    fn transact<'l, const FLIES: bool>(
        &self,
        turn: &Turn<'l, Tree>,
        durability: Durability,
        goes_on_beside: bool,
        change: impl FnOnce(&Tx, &mut Option<Writing<'l, Tree>>, &Readers) -> Result<()>,
        make_visible: impl FnOnce(&mut Option<Writing<'l, Tree>>) -> Result<()>,
    ) -> Result<Option<durum::InFlight<'_>>> {
        // Outside of the transaction: where that rolls back, readers are still kept out.
        let mut tree: Option<Writing<'l, Tree>> = None;
        let outcome = catch_unwind(AssertUnwindSafe(|| {
            let body = |tx: &Tx| {
                keep_readers_out(turn, &mut tree)?;
                let readers = self.readers(goes_on_beside);
                change(tx, &mut tree, &readers)?;
                if goes_on_beside {
                    tree.take_if(|tree| !tree.is_ahead);
                }
                Ok(())
            };
            if FLIES {
                let ((), in_flight) = self.pool.transaction_in_flight(body)?;
                return Ok(Some(in_flight));
            }
            self.pool.transaction_with(durability, body).map(|()| None)
        }));
        match outcome {
            Ok(Ok(in_flight)) => make_visible(&mut tree).map(|()| in_flight),
            Ok(Err(error)) => {
                self.take_back(turn, tree, &error);
                Err(error)
            }
            Err(panic) => {
                self.take_back(turn, tree, &Error::InTransaction);
                resume_unwind(panic)
            }
        }
    }

    /// Reads the pool again, after a transaction was rolled back.
    #[cold]
    fn take_back<'l>(
        &self,
        turn: &Turn<'l, Tree>,
        mut tree: Option<Writing<'l, Tree>>,
        error: &Error,
    ) {
        // SAFETY: as in `keep_readers_out`.
        let tree = tree.get_or_insert_with(|| unsafe { turn.write() });
        let is_unknown = matches!(error, Error::Durum(durum::Error::Poisoned { .. }));
        if tree.broken.is_some() {
            return;
        }
        tree.media.sequence_max = self.visible();
        let read = match is_unknown {
            true => Err(error.to_string()),
            false => tree.load().map_err(|error| error.to_string()),
        };
        tree.broken = read.err();
    }
}

/// Has the tree for the writer.
fn keep_readers_out<'t, 'l>(
    turn: &Turn<'l, Tree>,
    tree: &'t mut Option<Writing<'l, Tree>>,
) -> Result<&'t mut Tree> {
    // SAFETY: `tree` is where callers keep what the turn gives.
    let tree = tree.get_or_insert_with(|| unsafe { turn.write() });
    tree.check()?;
    Ok(tree)
}
