//! The way of every change: the registry commit, and only then files that go.
//!
//! Requests that come at the same time share a commit, because its sync is most of what a request costs:
//!
//! ```text
//! request   looks at `contents`, in which all changes that wait are made | adds its own | waits
//! leader    the first that finds nobody at it: takes all that wait | one record, one sync, unlocked | tells all
//! ```
//!
//! So a request may have seen changes that are not durable yet. Whatever it answers, an error too, it answers after
//! they are. Where they were not made after all, for want of room, it looks again.

use std::mem;
use std::path::PathBuf;
use std::sync::atomic::Ordering;
use std::sync::{MutexGuard, PoisonError};

use durum_format::Uuid;

use super::{Host, Open, State};
use crate::error::{Error, Result};
use crate::registry::contents::{Change, Contents};
use crate::registry::{CommitFailure, Purpose, Registry};

/// The registry, and what it says durably.
#[derive(Debug)]
pub(super) struct Durable {
    pub(super) registry: Registry,
    pub(super) contents: Contents,
}

/// What a request wants the registry to say.
#[derive(Debug)]
pub(super) struct Commit {
    changes: Vec<Change>,
    purpose: Purpose,
}

impl Commit {
    /// What it says already.
    pub(super) fn nothing() -> Commit {
        Commit::addition(Vec::new())
    }

    /// Changes that add something.
    pub(super) fn addition(changes: Vec<Change>) -> Commit {
        Commit {
            changes,
            purpose: Purpose::Addition,
        }
    }

    /// Changes that remove something: they are made on a full disk, too.
    pub(super) fn removal(changes: Vec<Change>) -> Commit {
        Commit {
            changes,
            purpose: Purpose::Removal,
        }
    }
}

/// The commits that wait. Each has a ticket, in the order in which they came.
#[derive(Debug, Default)]
pub(super) struct Group {
    waiting: Vec<Commit>,
    /// The ticket of the last one that came.
    came: u64,
    /// Tickets up to this are decided.
    decided: u64,
    /// Which of those were not made, until they are told.
    failed: Vec<(u64, Failure)>,
}

/// Why a commit was not made.
#[derive(Debug)]
enum Failure {
    Error(Error),
    /// One that it may have counted on was not made.
    Again,
}

impl Group {
    fn is_idle(&self) -> bool {
        self.decided == self.came
    }

    /// The ticket of the last commit that came.
    pub(super) fn came(&self) -> u64 {
        self.came
    }

    /// Whether it is known what became of all commits up to a ticket.
    pub(super) fn is_decided(&self, ticket: u64) -> bool {
        self.decided >= ticket
    }

    /// What became of a ticket; `None` while it waits.
    fn outcome(&mut self, ticket: u64) -> Option<Result<(), Failure>> {
        if self.decided < ticket {
            return None;
        }
        let failed = self.failed.iter().position(|(other, _)| *other == ticket);
        Some(failed.map_or(Ok(()), |at| Err(self.failed.swap_remove(at).1)))
    }
}

impl Open {
    /// Lets a commit wait for the next leader. Its ticket.
    pub(super) fn enqueue(&mut self, commit: Commit) -> u64 {
        if !commit.changes.is_empty() {
            self.contents.commit(&commit.changes);
        }
        self.group.waiting.push(commit);
        self.group.came += 1;
        self.group.came
    }

    /// Takes everything that waits, and what the registry is to hear of files besides. It still lists a removed puddle
    /// until its file is gone durably: no hurry, and no sync of its own.
    fn take_waiting(&mut self) -> (Vec<Commit>, Vec<Change>) {
        let waiting = mem::take(&mut self.group.waiting);
        if waiting.iter().all(|commit| commit.changes.is_empty()) {
            return (waiting, Vec::new());
        }
        let gone = mem::take(&mut self.gone).into_iter();
        let gone: Vec<Change> = gone.map(Change::FileGone).collect();
        self.contents.commit(&gone);
        (waiting, gone)
    }

    /// Commits changes in an [undisturbed](Host::undisturbed) store. Durable on return.
    pub(super) fn commit(&mut self, commit: Commit) -> Result<()> {
        self.enqueue(commit);
        let (waiting, gone) = self.take_waiting();
        let Some(mut durable) = self.durable.take() else {
            return Ok(());
        };
        let failed = durable.make_all(waiting, &gone, self.group.came);
        self.decide(durable, self.group.came, failed, gone);
        match self.group.outcome(self.group.came) {
            Some(Err(Failure::Error(error))) => Err(error),
            _ => Ok(()),
        }
    }

    /// Notes what became of the commits up to a ticket.
    fn decide(
        &mut self,
        durable: Durable,
        last: u64,
        failed: Vec<(u64, Failure)>,
        gone: Vec<Change>,
    ) {
        self.group.decided = last;
        if failed.is_empty() {
            if self.group.is_idle() {
                self.contents.count_as(&durable.contents);
            }
        } else {
            // Whatever was added since may count on what was not made.
            self.contents = durable.contents.clone();
            self.group.waiting.clear();
            self.group.decided = self.group.came;
            let behind = (last + 1..=self.group.came).map(|ticket| (ticket, Failure::Again));
            self.group.failed.extend(failed.into_iter().chain(behind));
            let is_listed = |change: &Change| match change {
                Change::FileGone(uuid) => Some(*uuid).filter(|uuid| self.contents.is_going(*uuid)),
                _ => None,
            };
            let still: Vec<Uuid> = gone.iter().filter_map(is_listed).collect();
            self.gone.extend(still);
        }
        self.durable = Some(durable);
        self.free_former();
    }
}

impl Durable {
    /// Makes the commits of a group durable; `last` is the ticket of the last one. Those that were not made.
    fn make_all(
        &mut self,
        commits: Vec<Commit>,
        gone: &[Change],
        last: u64,
    ) -> Vec<(u64, Failure)> {
        let is_one = commits.len() == 1;
        let is_removal = |commit: &Commit| commit.purpose == Purpose::Removal;
        let purpose = match commits.iter().all(is_removal) {
            true => Purpose::Removal,
            false => Purpose::Addition,
        };
        let changes = commits.iter().flat_map(|commit| &commit.changes);
        let together: Vec<Change> = gone.iter().chain(changes).cloned().collect();
        let first = last + 1 - commits.len() as u64;
        match self.make(&together, purpose) {
            Ok(()) => return Vec::new(),
            Err(CommitFailure::Full { .. }) if !is_one => {}
            Err(failure) => return self.failed_from(first, failure, last),
        }
        // Some of them may find room by themselves.
        for (ticket, commit) in (first..).zip(commits) {
            if let Err(failure) = self.make(&commit.changes, commit.purpose) {
                return self.failed_from(ticket, failure, last);
            }
        }
        Vec::new()
    }

    fn make(&mut self, changes: &[Change], purpose: Purpose) -> Result<(), CommitFailure> {
        match changes {
            [] => Ok(()),
            changes => self.registry.commit(&mut self.contents, changes, purpose),
        }
    }

    /// A commit was not made, and those behind it may have counted on it.
    fn failed_from(&self, ticket: u64, failure: CommitFailure, last: u64) -> Vec<(u64, Failure)> {
        let error = Failure::Error(failure.into_error(&self.registry));
        let behind = (ticket + 1..=last).map(|ticket| (ticket, Failure::Again));
        std::iter::once((ticket, error)).chain(behind).collect()
    }
}

impl Host {
    /// Answers a request. `look` says what the answer is, and what has to be durable before it is given. It may be
    /// asked again.
    pub(super) fn request<T>(&self, look: impl FnMut(&Open) -> Result<(T, Commit)>) -> Result<T> {
        self.answer(self.admitted()?, look)
    }

    fn answer<'e, T>(
        &'e self,
        mut state: MutexGuard<'e, State>,
        mut look: impl FnMut(&Open) -> Result<(T, Commit)>,
    ) -> Result<T> {
        loop {
            let open = state.open(&self.path)?;
            let (answer, commit) = match look(open) {
                Ok((answer, commit)) => (Ok(answer), commit),
                Err(error) => (Err(error), Commit::nothing()),
            };
            if commit.changes.is_empty() && open.group.is_idle() {
                return answer;
            }
            let ticket = open.enqueue(commit);
            open.waiting += 1;
            let outcome;
            (state, outcome) = self.decided(state, ticket);
            match outcome {
                Ok(()) => return answer,
                Err(Failure::Error(error)) => return Err(error),
                Err(Failure::Again) => {}
            }
        }
    }

    /// The state, once nobody wants to be undisturbed.
    fn admitted(&self) -> Result<MutexGuard<'_, State>> {
        let mut state = self.state();
        while state.open(&self.path)?.wants_quiet > 0 {
            state = self.wait(state);
        }
        Ok(state)
    }

    /// Waits until a commit is decided, and leads the next group if nobody does.
    fn decided<'e>(
        &'e self,
        mut state: MutexGuard<'e, State>,
        ticket: u64,
    ) -> (MutexGuard<'e, State>, Result<(), Failure>) {
        loop {
            // The store is not closed while a request waits.
            let Some(open) = &mut state.open else {
                return (state, Err(Failure::Again));
            };
            if let Some(outcome) = open.group.outcome(ticket) {
                open.waiting -= 1;
                self.tell_quiet(open);
                return (state, outcome);
            }
            state = match open.durable.take() {
                Some(durable) => self.lead(state, durable),
                None => self.wait(state),
            };
        }
    }

    /// Makes everything that waits durable.
    fn lead<'e>(
        &'e self,
        mut state: MutexGuard<'e, State>,
        mut durable: Durable,
    ) -> MutexGuard<'e, State> {
        let Some(open) = &mut state.open else {
            return state;
        };
        let (waiting, gone) = open.take_waiting();
        let last = open.group.came;
        drop(state);
        let leading = Leading {
            host: self,
            registry: durable.registry.path().to_owned(),
        };
        let failed = durable.make_all(waiting, &gone, last);
        mem::forget(leading);
        let mut state = self.state();
        if let Some(open) = &mut state.open {
            open.decide(durable, last, failed, gone);
        }
        state.note_poison();
        self.changed.notify_all();
        state
    }

    pub(super) fn wait<'e>(&'e self, state: MutexGuard<'e, State>) -> MutexGuard<'e, State> {
        let woken = self.changed.wait(state);
        woken.unwrap_or_else(PoisonError::into_inner)
    }

    /// Whoever waits for quiet looks again.
    fn tell_quiet(&self, open: &Open) {
        if open.wants_quiet > 0 || open.is_closing {
            self.changed.notify_all();
        }
    }

    /// Looks at the open store for a request that goes on to work on files, without the lock.
    pub(super) fn leave<T>(
        &self,
        look: impl FnOnce(&mut Open) -> Result<T>,
    ) -> Result<(Away<'_>, T)> {
        let mut state = self.admitted()?;
        let open = state.open(&self.path)?;
        let seen = look(open)?;
        Ok((self.away(open), seen))
    }

    /// A request that works on files, from here on.
    pub(super) fn away(&self, open: &mut Open) -> Away<'_> {
        open.away += 1;
        Away(self)
    }

    /// Runs `work` on the open store while nobody makes a commit, waits for one, or works on files.
    pub(super) fn undisturbed<T>(&self, work: impl FnOnce(&mut Open) -> Result<T>) -> Result<T> {
        let mut state = self.quiet(self.state())?;
        self.is_at_long_work.store(true, Ordering::Relaxed);
        let result = state.open(&self.path).and_then(work);
        self.is_at_long_work.store(false, Ordering::Relaxed);
        state.note_poison();
        result
    }

    /// Waits until nobody makes a commit, waits for one, or works on files. Who comes meanwhile waits, too.
    pub(super) fn quiet<'e>(
        &'e self,
        mut state: MutexGuard<'e, State>,
    ) -> Result<MutexGuard<'e, State>> {
        state.open(&self.path)?.wants_quiet += 1;
        loop {
            let is_quiet = state.is_quiet();
            let Some(open) = &mut state.open else {
                return Err(self.closed());
            };
            if is_quiet {
                open.wants_quiet -= 1;
                self.changed.notify_all();
                return Ok(state);
            }
            state = self.wait(state);
        }
    }
}

/// A request that works on files, without the lock. It may ask for commits.
#[derive(Debug)]
pub(super) struct Away<'e>(&'e Host);

impl Away<'_> {
    /// As [`Host::request`].
    pub(super) fn request<T>(&self, look: impl FnMut(&Open) -> Result<(T, Commit)>) -> Result<T> {
        self.0.answer(self.0.state(), look)
    }

    /// Looks at the open store again.
    pub(super) fn look<T>(&self, look: impl FnOnce(&mut Open) -> T) -> Result<T> {
        Ok(look(self.0.state().open(&self.0.path)?))
    }

    /// Has others who wait look again.
    pub(super) fn tell(&self) {
        self.0.changed.notify_all();
    }

    /// Notes what came of the work.
    pub(super) fn note(&self, what: impl FnOnce(&mut Open)) {
        if let Some(open) = &mut self.0.state().open {
            what(open);
        }
    }
}

impl Drop for Away<'_> {
    fn drop(&mut self) {
        self.note(|open| {
            open.away -= 1;
            self.0.tell_quiet(open);
        });
    }
}

/// Tells those who wait, if a panic comes in between: what is on the media is unknown then.
struct Leading<'e> {
    host: &'e Host,
    registry: PathBuf,
}

impl Drop for Leading<'_> {
    fn drop(&mut self) {
        let mut state = self.host.state();
        state.poisoned = Some(mem::take(&mut self.registry));
        if let Some(open) = &mut state.open {
            let undecided = open.group.decided + 1..=open.group.came;
            let again = undecided.map(|ticket| (ticket, Failure::Again));
            open.group.failed.extend(again);
            open.group.waiting.clear();
            open.group.decided = open.group.came;
        }
        self.host.changed.notify_all();
    }
}
