//! Updates and reads of several threads on one pool, combined (Romulus §5; docs/internals/concurrency.md).
//!
//! Reading order: this file (what a program calls), [`round`] (what a leader does), [`combine`](crate::combine) (what
//! they stand on). The savepoints are in [`tx`](crate::tx).

mod round;

use std::any::Any;
use std::marker::PhantomData;
use std::ops::Deref;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::ptr;

use round::{Lead, Writing};

use crate::asymmetric::Place;
use crate::combine::thread::{self, Inside};
use crate::combine::{Announcement, Concurrency, Job};
use crate::error::{Error, Result};
use crate::fault::forked;
use crate::opened::{Durability, Pool, PoolInner};
use crate::tx::{Part, Transaction, Tx};

/// An update on the stack of its thread.
struct Update<F, R, E> {
    body: Option<F>,
    outcome: Option<Result<Result<R, E>, Box<dyn Any + Send>>>,
}

impl<F: FnOnce(&Tx) -> Result<R, E>, R, E> Update<F, R, E> {
    fn new(body: F) -> Self {
        Self {
            body: Some(body),
            outcome: None,
        }
    }

    /// # Safety
    /// `update` is an `Update<F, R, E>` that nobody else uses meanwhile, `tx` a `Tx` of this thread.
    unsafe fn run(update: *mut (), tx: *const ()) -> bool {
        // SAFETY: as the caller promises.
        let (update, tx) = unsafe { (&mut *update.cast::<Self>(), &*tx.cast::<Tx>()) };
        let Some(body) = update.body.take() else {
            return false;
        };
        // What the panic leaves half done is the announcer's, who gets the panic.
        let outcome = catch_unwind(AssertUnwindSafe(|| body(tx)));
        let is_well = matches!(outcome, Ok(Ok(_)));
        update.outcome = Some(outcome);
        is_well
    }
}

/// How this thread may go on.
enum Way {
    /// It is inside already: as a part of what it does.
    Joined,
    /// It is not: as an update of its own.
    Apart,
}

impl PoolInner {
    /// Whether the program keeps threads apart.
    #[inline]
    fn is_of_one_thread(&self) -> bool {
        self.combine.concurrency == Concurrency::SingleThreaded
    }

    /// Whether this thread may update the pool.
    fn way_to_update(&self) -> Result<Way> {
        if forked() {
            return Err(Error::Forked);
        }
        if self.is_of_one_thread() {
            return Ok(Way::Joined);
        }
        match thread::inside(self.key) {
            Some(Inside::Updates) => Ok(Way::Joined),
            Some(Inside::Reads) => Err(Error::UpdateInRead {
                pool: self.name.clone(),
            }),
            None => self.way_in(),
        }
    }

    /// Whether this thread, which is not inside, may wait for others.
    fn way_in(&self) -> Result<Way> {
        if Tx::levels() > 0 {
            return Err(Error::InsideTransaction {
                pool: self.name.clone(),
            });
        }
        // Whoever leads may wait for this thread to leave its copy.
        self.check_turn_may_come()?;
        Ok(Way::Apart)
    }
}

impl Pool {
    /// Runs `body` as a failure-atomic transaction, alone with the pool: no other update runs meanwhile, and no
    /// [`Pool::read`].
    ///
    /// Updates that threads ask for at the same time are *combined*: one thread runs them all, one after the other, as
    /// one transaction, with the fences of one. Each of them is durable when its `update` returns. One that returns
    /// `Err` or panics takes only its own changes back; the panic goes on in the thread that called this.
    ///
    /// `body` may run on another thread, while this one waits: hence `Send`. Thread-locals are those of the thread that
    /// runs it, and it does not come to an end before the other updates of its round: it must not wait for something
    /// that its own thread, or another one that waits to update or to read, is to do.
    ///
    /// Within an update, an update of the same pool is a part of it, and so is a [`Pool::transaction`]: if that fails,
    /// the whole update does. A read there is a call.
    ///
    /// ```
    /// use durum::{PoolOptions, Store, StoreOptions};
    /// # let dir = tempfile::tempdir_in("/dev/shm").unwrap();
    /// # let path = dir.path().join("store");
    /// let store = Store::create(&path, StoreOptions::new())?;
    /// let pool = store.create_pool("hits", PoolOptions::new())?;
    /// let hits = pool.root::<u64>()? as usize; // pointers are not `Send`
    /// std::thread::scope(|scope| {
    ///     for _ in 0..4 {
    ///         scope.spawn(|| {
    ///             pool.update(|tx| {
    ///                 let hits = hits as *mut u64;
    ///                 // SAFETY: the root is live while the pool is open, and changed in updates only.
    ///                 unsafe {
    ///                     tx.add(hits)?;
    ///                     *hits += 1;
    ///                 }
    ///                 Ok::<_, durum::Error>(())
    ///             })
    ///         });
    ///     }
    /// });
    /// // SAFETY: `read` keeps updates away, and the object is live.
    /// let count = pool.read(|| unsafe { *(hits as *const u64) })?;
    /// assert_eq!(count, 4);
    /// # Ok::<(), durum::Error>(())
    /// ```
    ///
    /// # Errors
    /// What `body` returns, and the errors of [`Pool::transaction`]; `UpdateInRead` inside a [`Pool::read`] of this
    /// pool; `InsideTransaction` inside a transaction that is no update of this pool; `ReadsCopy` inside a
    /// [`Pool::read_copy`]; `CombinedUpdates` where the transaction of several updates could not be committed. Nothing
    /// of `body` was kept then.
    #[inline]
    pub fn update<R, E, F>(&self, body: F) -> Result<R, E>
    where
        F: FnOnce(&Tx) -> Result<R, E> + Send,
        R: Send,
        E: From<Error> + Send,
    {
        match self.inner.way_to_update()? {
            Way::Joined => self.transaction(body),
            Way::Apart => match Writing::as_owner(&self.inner) {
                Some(writing) => self.update_as_owner(writing, body),
                None => self.combined(Update::new(body)),
            },
        }
    }

    /// A transaction of this thread's own: it owns the pool's lock, and nobody has announced anything.
    #[inline]
    fn update_as_owner<R, E: From<Error>>(
        &self,
        writing: Writing<'_>,
        body: impl FnOnce(&Tx) -> Result<R, E>,
    ) -> Result<R, E> {
        let transaction = Transaction::begin(self, Durability::Durable).map_err(|error| *error)?;
        let part = Part::begin(&transaction);
        let result = body(&transaction);
        let is_whole = part.end();
        let value = result?;
        if !is_whole {
            return Err(Error::Aborted.into());
        }
        transaction.commit()?;
        // Durable, and only now seen by others.
        drop(writing);
        Ok(value)
    }

    #[inline(never)]
    fn combined<R, E, F>(&self, mut update: Update<F, R, E>) -> Result<R, E>
    where
        F: FnOnce(&Tx) -> Result<R, E> + Send,
        R: Send,
        E: From<Error> + Send,
    {
        let context = ptr::from_mut(&mut update).cast();
        // SAFETY: an update of this type; body, result and error may be sent to another thread, and a panic's payload,
        // too.
        let job = unsafe { Job::new(Update::<F, R, E>::run, context) };
        let refused = match Lead::try_take(self) {
            Some(lead) => {
                lead.run(&job);
                job.refused()
            }
            None => self.wait_for_leader(job),
        };
        match (update.outcome, refused) {
            (Some(Err(panic)), _) => resume_unwind(panic),
            (_, Some(error)) => Err(error.into()),
            (Some(Ok(result)), None) => result,
            (None, None) => Err(Error::Aborted.into()),
        }
    }

    /// Another thread leads, and runs the job; or this one does, when it is its turn.
    #[inline(never)]
    fn wait_for_leader(&self, job: Job) -> Option<Error> {
        let announcement = Announcement::new(job);
        Lead::announce(self, &announcement);
        announcement.job().refused()
    }

    /// Runs `body` while no update runs. Other reads may.
    ///
    /// It sees what updates have committed, which is durable. It costs no fence and no write-back, and threads that
    /// read write to no common cache line. Within a read or an update of this pool it is a call.
    ///
    /// A program in which a thread reads pool B in an update of pool A, while another one reads A in an update of B,
    /// may wait for ever, as with any two locks.
    ///
    /// # Errors
    /// `Forked`, `Poisoned`; `InsideTransaction` inside a transaction that is no update of this pool; `ReadsCopy`
    /// inside a [`Pool::read_copy`]. `body` was not called.
    #[inline]
    pub fn read<R>(&self, body: impl FnOnce() -> R) -> Result<R> {
        let reading = self.begin_read()?;
        let result = body();
        drop(reading);
        Ok(result)
    }

    /// Begins to read, until what this returns is dropped. [`Pool::read`] is the safer form: an update that is asked
    /// for meanwhile waits.
    ///
    /// # Errors
    /// As for [`Pool::read`].
    #[inline]
    pub fn begin_read(&self) -> Result<Reading<'_>> {
        let pool = &*self.inner;
        if forked() {
            return Err(Error::Forked);
        }
        pool.check_readable()?;
        let enters = pool.combine.concurrency == Concurrency::Combining
            && thread::inside(pool.key).is_none();
        if !enters {
            return Ok(Reading {
                entered: None,
                _one_thread: PhantomData,
            });
        }
        pool.way_in()?;
        let place = pool.combine.lock.enter();
        thread::enter(pool.key, Inside::Reads);
        Ok(Reading {
            entered: Some((pool, place)),
            _one_thread: PhantomData,
        })
    }

    /// Waits until this thread leads, and may write.
    fn lead_alone(&self) -> Result<(Writing<'_>, Option<Lead<'_>>)> {
        let lead = Lead::try_take(self).or_else(|| {
            let announcement = Announcement::new(Job::lead());
            Lead::announce(self, &announcement)
        });
        match lead {
            // SAFETY: this thread leads, until what comes second is dropped.
            Some(_) => Ok((unsafe { Writing::as_leader(&self.inner) }, lead)),
            // It was told that its wish has run, which nobody does.
            None => Err(Error::Aborted),
        }
    }

    /// Begins an update on this thread that is open until it is committed, aborted or dropped (which aborts); within an
    /// update, one more level of it. [`Pool::update`] is the form that combines: this one has its fences for itself,
    /// and keeps readers and other updates out for as long as it is open.
    ///
    /// # Safety
    /// As for [`Pool::begin`].
    ///
    /// # Errors
    /// As for [`Pool::update`].
    pub unsafe fn begin_update(&self) -> Result<OpenUpdate<'_>> {
        self.inner.check_usable()?;
        let led = match self.inner.way_to_update()? {
            Way::Joined => None,
            Way::Apart => Some(match Writing::as_owner(&self.inner) {
                Some(writing) => (writing, None),
                None => self.lead_alone()?,
            }),
        };
        let transaction = Transaction::begin(self, Durability::Durable)?;
        Ok(OpenUpdate {
            transaction,
            _led: led,
        })
    }
}

/// For interfaces that have no closure, in which what is open is known to the program.
#[doc(hidden)]
impl Pool {
    /// Begins an update on this thread if it owns the pool's lock, or nobody keeps threads apart, and is in no
    /// transaction: whether it has. If so [`end_update_alone`](Self::end_update_alone) ends it.
    ///
    /// # Safety
    /// As for [`Pool::begin`]; the handle stays until the update has ended, on this thread.
    ///
    /// # Errors
    /// As for [`Pool::begin_update`].
    #[inline]
    pub unsafe fn begin_update_alone(&self) -> Result<bool, Box<Error>> {
        let writing = match self.inner.way_to_update()? {
            Way::Apart => match Writing::as_owner(&self.inner) {
                None => return Ok(false),
                writing => writing,
            },
            Way::Joined if self.inner.is_of_one_thread() && Tx::levels() == 0 => None,
            Way::Joined => return Ok(false),
        };
        let transaction = Transaction::begin(self, Durability::Durable)?;
        std::mem::forget((writing, transaction));
        Ok(true)
    }

    /// Ends what [`begin_update_alone`](Self::begin_update_alone) began.
    ///
    /// # Safety
    /// It has, on this thread, and this has not ended it.
    ///
    /// # Errors
    /// As for [`Transaction::commit`]; `Aborted` also where a level inside of it has not ended.
    #[inline]
    pub unsafe fn end_update_alone(&self, commit: bool) -> Result<(), Box<Error>> {
        // SAFETY: it was begun, and forgotten then.
        let writing =
            (!self.inner.is_of_one_thread()).then(|| unsafe { Writing::forgotten(&self.inner) });
        let is_whole = Tx::end_part_of_this_thread(1);
        // SAFETY: begun as a level that ends so.
        let ended = unsafe { Tx::end_level(commit && is_whole) };
        // Durable, and only now seen by others.
        drop(writing);
        match ended {
            Ok(_) if commit && !is_whole => Err(Error::Aborted.into()),
            ended => ended.map(|_| ()),
        }
    }
}

/// A read that is open until this is dropped, on the thread that began it.
#[derive(Debug)]
pub struct Reading<'p> {
    /// `None` if the thread was inside already.
    entered: Option<(&'p PoolInner, Place<'p>)>,
    _one_thread: PhantomData<*mut ()>,
}

impl Drop for Reading<'_> {
    #[inline]
    fn drop(&mut self) {
        if let Some((pool, place)) = self.entered.take() {
            thread::leave(pool.key);
            pool.combine.lock.leave(place);
        }
    }
}

/// An update that is open. See [`Pool::begin_update`].
#[derive(Debug)]
pub struct OpenUpdate<'p> {
    // First the transaction ends, then others come in, then the next one leads.
    transaction: Transaction<'p>,
    _led: Option<(Writing<'p>, Option<Lead<'p>>)>,
}

impl Deref for OpenUpdate<'_> {
    type Target = Tx;

    #[inline]
    fn deref(&self) -> &Tx {
        &self.transaction
    }
}

impl OpenUpdate<'_> {
    /// Commits, as [`Transaction::commit`] does, and lets others in.
    ///
    /// # Errors
    /// As for [`Transaction::commit`].
    pub fn commit(self) -> Result<()> {
        self.transaction.commit()
    }

    /// Rolls back, as [`Transaction::abort`] does, and lets others in.
    pub fn abort(self) {
        drop(self);
    }
}
