//! What a leader does: it runs the announced updates in rounds, each of them one durable transaction.
//!
//! ```text
//! keep readers out | begin | run, mark, run, mark, run ... | commit | let readers in | tell their threads
//! ```
//!
//! The commit is durable before any reader sees what it changed, and before any of the updates returns. An update that
//! fails takes back what it has done since its mark; the first one of a round takes back the transaction, of which it
//! is all.

use std::ptr::{self, NonNull};

use crate::asymmetric;
use crate::combine::thread::{self, Inside};
use crate::combine::{Announcement, Chain, Job};
use crate::error::Error;
use crate::opened::{Durability, Pool, PoolInner};
use crate::tx::{Transaction, Tx};

/// The most updates in a round. More would save little of its fences, and the first of them waits for the last.
const UPDATES_MAX: usize = 64;
/// A round takes no more updates when its commit has so many bytes to visit: what one transaction can hold is for the
/// one that needs it.
const BYTES_MAX: usize = 64 << 10;
/// A leader runs so many rounds for others, then the one who has waited longest leads.
const ROUNDS_MAX: usize = 8;

/// The leadership of a pool's updates, with what was announced and is still to be run. Dropped, it goes on to the next.
#[derive(Debug)]
pub(super) struct Lead<'p> {
    pool: &'p Pool,
    chain: Chain<Job>,
}

impl Drop for Lead<'_> {
    fn drop(&mut self) {
        let chain = std::mem::replace(&mut self.chain, Chain::EMPTY);
        // SAFETY: this is the leader, who has taken all of the chain.
        unsafe { self.pool.inner.combine.announcements.resign(chain) };
    }
}

impl<'p> Lead<'p> {
    /// Leads, if nobody does.
    #[inline]
    pub(super) fn try_take(pool: &'p Pool) -> Option<Self> {
        // Not made unless this thread leads: to drop it would be to resign.
        if !pool.inner.combine.announcements.try_lead() {
            return None;
        }
        Some(Self {
            pool,
            chain: Chain::EMPTY,
        })
    }

    /// Announces a job and waits until it has run, or leads and runs it. `None`: it has run. For a wish to lead: this
    /// thread leads.
    pub(super) fn announce(pool: &'p Pool, announcement: &Announcement<Job>) -> Option<Self> {
        // SAFETY: the announcement is new, and its thread does not lead: it would be inside of the pool.
        let mut leads = unsafe { pool.inner.combine.announcements.announce(announcement) };
        let own = NonNull::from(announcement);
        while leads {
            let mut lead = Self {
                pool,
                chain: Chain::EMPTY,
            };
            // SAFETY: this thread leads.
            unsafe { pool.inner.combine.announcements.take(&mut lead.chain) };
            // All rounds that are needed: those before are no more than there are threads.
            while !announcement.is_done() {
                match lead.chain.first() {
                    Some(first) if first == own && announcement.job().run.is_none() => {
                        lead.chain.pop();
                        return Some(lead);
                    }
                    // Another one wants to lead, and was first.
                    Some(first) if is_wish(first) => break,
                    _ => lead.round(None),
                }
            }
            if announcement.is_done() {
                lead.serve();
                return None;
            }
            drop(lead);
            leads = announcement.wait();
        }
        None
    }

    /// Runs a job of this thread, and those that others have announced meanwhile.
    #[inline]
    pub(super) fn run(mut self, job: &Job) {
        self.round(Some(job));
        self.serve();
    }

    /// Runs rounds for others, a few.
    #[inline]
    fn serve(&mut self) {
        for _ in 0..ROUNDS_MAX {
            let has_first = match self.chain.first() {
                Some(first) => !is_wish(first),
                None => self.pool.inner.combine.announcements.has_more(),
            };
            if !has_first {
                return;
            }
            self.round(None);
        }
    }

    /// Whether another thread's job is next.
    fn has_next(&mut self) -> bool {
        if self.chain.is_empty() {
            let announcements = &self.pool.inner.combine.announcements;
            if !announcements.has_more() {
                return false;
            }
            // SAFETY: this is the leader.
            unsafe { announcements.take(&mut self.chain) };
        }
        self.chain.first().is_some_and(|first| !is_wish(first))
    }

    /// One round: `own`, if there is one, and what others have announced.
    #[inline]
    fn round(&mut self, own: Option<&Job>) {
        // SAFETY: this is the leader, and the round ends in here.
        let mut round = Round::begin(self.pool, unsafe { Writing::as_leader(&self.pool.inner) });
        if let Some(own) = own {
            round.own = Some(own);
            round.run(own);
        }
        while self.has_next()
            && round.has_room()
            && let Some(next) = self.chain.pop()
        {
            round.announce(next);
            // SAFETY: it is not done, so its thread waits and keeps it.
            round.run(unsafe { next.as_ref() }.job());
        }
        round.commit();
    }
}

/// Whether the thread wants to lead.
fn is_wish(announcement: NonNull<Announcement<Job>>) -> bool {
    // SAFETY: in a chain of the leader, so it is not done.
    unsafe { announcement.as_ref() }.job().run.is_none()
}

/// Readers are out, and this thread may change the pool.
#[derive(Debug)]
pub(super) struct Writing<'p> {
    pool: &'p PoolInner,
    /// As the owner, or else as the leader.
    as_owner: Option<asymmetric::Inside<'p>>,
    /// Nothing is written for others.
    is_alone: bool,
}

impl<'p> Writing<'p> {
    /// If this thread owns the pool's lock.
    #[inline]
    pub(super) fn as_owner(pool: &'p PoolInner) -> Option<Self> {
        let inside = pool.combine.lock.owner().try_enter()?;
        Some(Self::new(pool, Some(inside)))
    }

    /// What [`as_owner`](Self::as_owner) gave, and was forgotten.
    ///
    /// # Safety
    /// It was, and there is no other.
    #[inline]
    pub(super) unsafe fn forgotten(pool: &'p PoolInner) -> Self {
        Self {
            pool,
            // SAFETY: as the caller promises.
            as_owner: Some(unsafe { pool.combine.lock.owner().entered() }),
            is_alone: true,
        }
    }

    /// # Safety
    /// This thread leads, until what this returns is dropped.
    #[inline]
    pub(super) unsafe fn as_leader(pool: &'p PoolInner) -> Self {
        let lock = &pool.combine.lock;
        lock.begin_turn();
        // SAFETY: as the caller promises.
        unsafe { lock.write() };
        Self::new(pool, None)
    }

    #[inline]
    fn new(pool: &'p PoolInner, as_owner: Option<asymmetric::Inside<'p>>) -> Self {
        thread::enter(pool.key, Inside::Updates);
        Self {
            pool,
            as_owner,
            is_alone: true,
        }
    }
}

impl Drop for Writing<'_> {
    #[inline]
    fn drop(&mut self) {
        thread::leave(self.pool.key);
        if self.as_owner.is_none() {
            let lock = &self.pool.combine.lock;
            // SAFETY: this thread leads, as `as_leader` asked for. What it has stored is durable by now, so nobody sees
            // anything that a crash could take back.
            unsafe {
                lock.end_write();
                lock.end_turn(self.is_alone);
            }
        }
    }
}

/// A round in progress. However it ends, the threads are told.
struct Round<'p, 'j> {
    pool: &'p Pool,
    transaction: Option<Transaction<'p>>,
    writing: Option<Writing<'p>>,
    own: Option<&'j Job>,
    announced: Vec<NonNull<Announcement<Job>>>,
    /// Jobs that ran.
    ran: usize,
    /// Jobs in the transaction whose changes it has.
    kept: usize,
    /// Those that ran before the first of them, and depend on nothing that is not durable.
    before: usize,
    /// No job may run in this transaction any more.
    is_full: bool,
    /// The outcome of the transaction is known, and told to the jobs.
    is_settled: bool,
}

impl<'p, 'j> Round<'p, 'j> {
    #[inline]
    fn begin(pool: &'p Pool, writing: Writing<'p>) -> Self {
        Self {
            pool,
            writing: Some(writing),
            transaction: None,
            own: None,
            announced: Vec::new(),
            ran: 0,
            kept: 0,
            before: 0,
            is_full: false,
            is_settled: false,
        }
    }

    /// A job of another thread is a part of it.
    fn announce(&mut self, next: NonNull<Announcement<Job>>) {
        self.announced.push(next);
        if let Some(writing) = &mut self.writing {
            writing.is_alone = false;
        }
    }

    /// Whether another job may run in it, which can be taken back alone then.
    fn has_room(&mut self) -> bool {
        if self.is_full || self.ran >= UPDATES_MAX {
            return false;
        }
        match &self.transaction {
            Some(transaction) if self.kept > 0 => {
                transaction.commit_bytes() < BYTES_MAX && transaction.mark().is_ok()
            }
            _ => true,
        }
    }

    #[inline]
    fn run(&mut self, job: &Job) {
        self.ran += 1;
        self.kept += usize::from(self.runs_well(job));
        if self.kept == 0 {
            self.before = self.ran;
        }
    }

    /// Runs a job. Whether its changes are to be kept; if not, they are gone.
    #[inline]
    fn runs_well(&mut self, job: &Job) -> bool {
        if self.transaction.is_none() {
            match Transaction::begin(self.pool, Durability::Durable) {
                Ok(transaction) => self.transaction = Some(transaction),
                Err(error) => {
                    job.refused.set(Some(*error));
                    return false;
                }
            }
        }
        let (Some(run), Some(transaction)) = (job.run, &self.transaction) else {
            return false;
        };
        let depth = transaction.depth();
        // SAFETY: jobs are run once, and their threads wait until they are done, or are this one.
        let is_well = unsafe { run(job.context, ptr::from_ref::<Tx>(transaction).cast()) };
        let is_whole = transaction.end_part(depth);
        if is_well && is_whole {
            return true;
        }
        if is_well {
            job.refused.set(Some(Error::Aborted));
        }
        match self.kept {
            0 => self.transaction = None,
            _ => self.is_full = transaction.roll_back_to_mark(),
        }
        false
    }

    #[inline]
    fn commit(mut self) {
        let result = match self.transaction.take() {
            Some(transaction) if self.kept > 0 => {
                transaction.end_parts();
                transaction.commit()
            }
            _ => Ok(()),
        };
        if let Err(error) = result {
            self.refuse(Some(error));
        }
        self.is_settled = true;
    }

    /// Tells those that depend on the transaction that it did not commit.
    #[cold]
    fn refuse(&self, error: Option<Error>) {
        let own = self.own.into_iter();
        // SAFETY: not done yet, so their threads wait and keep them.
        let announced = self
            .announced
            .iter()
            .map(|job| unsafe { job.as_ref() }.job());
        let jobs = own.chain(announced).skip(self.before);
        match error {
            Some(error) if self.ran - self.before == 1 => {
                if let Some(job) = jobs.last() {
                    job.refused.set(Some(error));
                }
            }
            error => jobs.for_each(|job| job.refused.set(Some(self.combined(error.as_ref())))),
        }
    }

    /// What each of several updates is told.
    fn combined(&self, error: Option<&Error>) -> Error {
        if let Err(poisoned) = self.pool.inner.poison.check() {
            return poisoned;
        }
        Error::CombinedUpdates {
            pool: self.pool.inner.name.clone(),
            reason: error.map_or_else(|| "a panic".into(), ToString::to_string),
            kind: error.map_or(crate::error::ErrorKind::Caller, Error::kind),
        }
    }
}

impl Drop for Round<'_, '_> {
    #[inline]
    fn drop(&mut self) {
        if !self.is_settled {
            // A panic of ours: nobody may believe in changes that were rolled back.
            self.before = 0;
            self.transaction = None;
            self.refuse(None);
        }
        // Before the threads go on: what they read next is not to wait.
        self.writing = None;
        for announcement in self.announced.drain(..) {
            // SAFETY: taken by this leader, and told once.
            unsafe { Announcement::finish(announcement) };
        }
    }
}
