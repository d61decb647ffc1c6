//! Who leads, and who waits for a leader: announcements in a list, and a leadership that goes from hand to hand.
//!
//! ```text
//! update            led: 0 -> 1                 I lead
//!                   else: push my announcement, led: 0 -> 1   I lead, and find it in the list
//!                   else: wait until a leader has run it, or hands the leadership to me
//! leader            run mine; take the list, run all of it, in the order of their coming; ...; resign
//! resign            somebody waits: hand the leadership to the first
//!                   nobody: led = 0, and look at the list once more
//! ```
//!
//! Flat combining keeps an array with a place for each thread. A list of announcements that lie on their threads'
//! stacks has no places to lease, to look through in vain, or to run out of: it is as long as threads wait. To announce
//! is one exchange, as it is to take all that were announced.
//!
//! *Nobody is forgotten.* Who announces looks at `led` after the push; who resigns looks at the list after `led = 0`.
//! Of two who do that at the same time, one sees the other. *Nobody starves.* The list is taken whole and kept in
//! order, a leader takes it a bounded number of times, and hands over to the one who has waited longest.

use std::cell::Cell;
use std::ptr::{self, NonNull};

use crossbeam_utils::CachePadded;

use crate::primitive::{
    AtomicPtr, AtomicU32, Ordering, Thread, UnsafeCell, current, limit, order, park, relax,
};

/// How often a thread looks before it goes to sleep: about a microsecond, which is what most of what it waits for
/// takes.
const SPINS: usize = limit(200, 1);

const WAITING: u32 = 0;
const ASLEEP: u32 = 1;
/// A leader has run it, or refused it.
const DONE: u32 = 2;
/// The thread leads now; its announcement was not run.
const LEADS: u32 = 3;

/// What a thread wants, on its stack until it is done.
#[derive(Debug)]
pub(crate) struct Announcement<J> {
    /// In the list: the one that came before. In a [`Chain`]: the one that came after.
    next: Cell<*const Announcement<J>>,
    state: AtomicU32,
    thread: Thread,
    job: J,
}

impl<J> Announcement<J> {
    pub(crate) fn new(job: J) -> Self {
        Self {
            next: Cell::new(ptr::null()),
            state: AtomicU32::new(WAITING),
            thread: current(),
            job,
        }
    }

    pub(crate) fn job(&self) -> &J {
        &self.job
    }

    /// Whether its job has run.
    pub(crate) fn is_done(&self) -> bool {
        self.state.load(Ordering::Acquire) == DONE
    }

    fn tell(announcement: NonNull<Self>, state: u32) {
        // SAFETY: not done yet, so it is there.
        let announcement = unsafe { announcement.as_ref() };
        // When the state has changed the announcement may be gone.
        let thread = announcement.thread.clone();
        // Release: what the leader has done for it is seen by its thread.
        if announcement.state.swap(state, Ordering::AcqRel) == ASLEEP {
            thread.unpark();
        }
    }

    /// Tells the thread that its job has run. The announcement is not to be touched any more.
    ///
    /// # Safety
    /// It was taken from the list by this leader, and not done yet.
    pub(crate) unsafe fn finish(announcement: NonNull<Self>) {
        Self::tell(announcement, DONE);
    }

    /// Waits for a leader. Whether the thread leads now; if not, its job has run.
    pub(crate) fn wait(&self) -> bool {
        for _ in 0..SPINS {
            match self.state.load(Ordering::Acquire) {
                WAITING => relax(),
                state => return state == LEADS,
            }
        }
        let asleep =
            self.state
                .compare_exchange(WAITING, ASLEEP, Ordering::AcqRel, Ordering::Acquire);
        if let Err(state) = asleep {
            return state == LEADS;
        }
        loop {
            match self.state.load(Ordering::Acquire) {
                ASLEEP => park(),
                state => return state == LEADS,
            }
        }
    }
}

/// Announcements that a leader has taken, in the order of their coming.
#[derive(Debug)]
pub(crate) struct Chain<J> {
    first: *const Announcement<J>,
    last: *const Announcement<J>,
}

impl<J> Chain<J> {
    pub(crate) const EMPTY: Self = Self {
        first: ptr::null(),
        last: ptr::null(),
    };

    pub(crate) fn is_empty(&self) -> bool {
        self.first.is_null()
    }

    /// The first one, which is this leader's to finish.
    pub(crate) fn pop(&mut self) -> Option<NonNull<Announcement<J>>> {
        let first = NonNull::new(self.first.cast_mut())?;
        // SAFETY: it is not done, so its thread waits and keeps it.
        self.first = unsafe { first.as_ref() }.next.get();
        Some(first)
    }

    /// The first one, which stays.
    pub(crate) fn first(&self) -> Option<NonNull<Announcement<J>>> {
        NonNull::new(self.first.cast_mut())
    }

    fn append(&mut self, other: Self) {
        if other.is_empty() {
            return;
        }
        match self.is_empty() {
            true => *self = other,
            false => {
                // SAFETY: it is not done, so its thread waits and keeps it.
                unsafe { &*self.last }.next.set(other.first);
                self.last = other.last;
            }
        }
    }
}

/// The announcements of a pool.
#[derive(Debug)]
pub(crate) struct Announcements<J> {
    /// 1 while a thread leads.
    led: CachePadded<AtomicU32>,
    /// The latest announcement.
    latest: CachePadded<AtomicPtr<Announcement<J>>>,
    /// What a leader had taken and not run when it handed over. Only the leader uses it.
    rest: UnsafeCell<Chain<J>>,
}

// SAFETY: `rest` and what leads from `latest` are used by one thread at a time, the leader; what it finds there lies on
// stacks of threads that wait.
unsafe impl<J: Sync> Sync for Announcements<J> {}
// SAFETY: no announcement is in it while nobody uses it, so nothing in it belongs to a thread.
unsafe impl<J: Sync> Send for Announcements<J> {}

impl<J> Announcements<J> {
    pub(crate) fn new() -> Self {
        Self {
            led: CachePadded::new(AtomicU32::new(0)),
            latest: CachePadded::new(AtomicPtr::new(ptr::null_mut())),
            rest: UnsafeCell::new(Chain::EMPTY),
        }
    }

    /// Leads, if nobody does.
    #[inline]
    pub(crate) fn try_lead(&self) -> bool {
        self.led
            .compare_exchange(0, 1, Ordering::SeqCst, Ordering::Relaxed)
            .is_ok()
    }

    /// Announces, and waits. Whether the caller leads now; what it announced was not run then, and is among what it
    /// will [`take`](Self::take). Otherwise it has run.
    ///
    /// # Safety
    /// `announcement` is new, and a thread that leads does not call this.
    pub(crate) unsafe fn announce(&self, announcement: &Announcement<J>) -> bool {
        let pointer = ptr::from_ref(announcement).cast_mut();
        let mut latest = self.latest.load(Ordering::Relaxed);
        loop {
            announcement.next.set(latest);
            // Release: the leader that takes it sees what it says.
            match self.latest.compare_exchange_weak(
                latest,
                pointer,
                Ordering::SeqCst,
                Ordering::Relaxed,
            ) {
                Ok(_) => break,
                Err(other) => latest = other,
            }
        }
        order();
        if !self.try_lead() {
            return announcement.wait();
        }
        let is_done = announcement.is_done();
        if is_done {
            // The leader before has run it and resigned in between.
            // SAFETY: this thread leads.
            unsafe { self.resign(Chain::EMPTY) };
        }
        !is_done
    }

    /// Whether somebody has announced since the list was taken.
    #[inline]
    pub(crate) fn has_more(&self) -> bool {
        !self.latest.load(Ordering::Relaxed).is_null()
    }

    /// Takes what was announced, behind what is in `chain`.
    ///
    /// # Safety
    /// The caller leads.
    pub(crate) unsafe fn take(&self, chain: &mut Chain<J>) {
        // SAFETY: only the leader uses it.
        let rest = self
            .rest
            .with_mut(|rest| unsafe { rest.replace(Chain::EMPTY) });
        chain.append(rest);
        let latest = self.latest.swap(ptr::null_mut(), Ordering::SeqCst);
        let mut taken = Chain {
            first: ptr::null(),
            last: latest,
        };
        let mut at = latest.cast_const();
        while !at.is_null() {
            // SAFETY: it was announced and is not done, so its thread waits and keeps it.
            let before = unsafe { &*at }.next.replace(taken.first);
            taken.first = at;
            at = before;
        }
        chain.append(taken);
    }

    /// Ends leading. Whoever is first in `chain` or in the list leads next.
    ///
    /// # Safety
    /// The caller leads, and what is in `chain` was taken by it.
    #[inline]
    pub(crate) unsafe fn resign(&self, mut chain: Chain<J>) {
        loop {
            if chain.is_empty() {
                self.led.swap(0, Ordering::SeqCst);
                order();
                if self.latest.load(Ordering::SeqCst).is_null() || !self.try_lead() {
                    return;
                }
                // SAFETY: the caller leads again.
                unsafe { self.take(&mut chain) };
            }
            if let Some(next) = chain.first() {
                // SAFETY: only the leader uses it, and the next one is not told yet.
                self.rest.with_mut(|rest| unsafe { rest.write(chain) });
                Announcement::tell(next, LEADS);
                return;
            }
        }
    }
}
