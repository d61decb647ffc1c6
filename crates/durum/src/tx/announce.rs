//! What a program announces: that it is about to change a range, stores that wait for the commit, volatile memory.

use std::mem::MaybeUninit;
use std::ops::Range;
use std::ptr;

use durum_persist::line::{self, is_recorded};
use durum_persist::record as recorder;

use super::{Tx, may_be_open};
use crate::alloc::{Puddle, puddle_near_at};
use crate::announced::LARGE;
use crate::deferred::Set;
use crate::error::{Error, Result, Step};
use crate::fault::{Guard, failed_or_forked, forked, guarded, media_failed};
use crate::opened::{Announce, TxState};
use crate::window::WORDS_AT_ONCE;

impl Tx {
    /// Announces that the program is about to change `*target`. See [`Tx::add_bytes`].
    ///
    /// # Safety
    /// As for [`Tx::add_bytes`].
    #[inline]
    pub unsafe fn add<T>(&self, target: *const T) -> Result<()> {
        // SAFETY: as the caller promises.
        unsafe { self.add_bytes(target.cast(), size_of::<T>(), Announce::Backup) }
    }

    /// Announces that the program is about to change `[target, target + len)`.
    ///
    /// When it returns, the old contents are safe (`Backup`): whatever the program stores there, an abort or a crash
    /// before the commit brings them back, exactly these bytes. Ranges may overlap and repeat; bytes that were
    /// announced before, and objects allocated in this transaction, cost nothing. The new contents are durable when the
    /// commit returns.
    ///
    /// # Safety
    /// No other thread changes the range until the transaction has ended.
    ///
    /// # Errors
    /// `NotInPool`, `PendingSet`, `MixedEngines`, `Poisoned`; store errors when the log has to grow. Nothing is
    /// announced then. Of words in a page that cannot be read the commit may be the first to say so.
    #[inline]
    pub unsafe fn add_bytes(
        &self,
        target: *const u8,
        len: usize,
        announce: Announce,
    ) -> Result<()> {
        let address = target.expose_provenance();
        // SAFETY: as the caller promises.
        unsafe {
            if len == 8 {
                if self.window.add(address) || self.add_word(address) {
                    return Ok(());
                }
            } else if len.wrapping_sub(1) < 8 * WORDS_AT_ONCE
                && len.is_multiple_of(8)
                && self.window.add_words(address, len / 8)
            {
                return Ok(());
            }
            #[cfg(all(target_arch = "x86_64", not(miri)))]
            if durum_persist::wide::is_there() && self.add_lines(address, len) {
                return Ok(());
            }
            self.add_small(address, len, announce)
        }
    }

    /// Announces ranges, each by address and length, as [`Tx::add_bytes`] does one after the other. On a Hybrid pool
    /// one fence makes all their old contents safe.
    ///
    /// # Safety
    /// As for [`Tx::add_bytes`].
    ///
    /// # Errors
    /// As for [`Tx::add_bytes`], of the first range that cannot be announced. The program must store to none of them.
    pub unsafe fn add_all(
        &self,
        ranges: impl IntoIterator<Item = (*const u8, usize)>,
    ) -> Result<()> {
        let mut gathered = Vec::new();
        let added = ranges.into_iter().try_for_each(|(target, len)| {
            // Not while the caller's code makes the ranges: what that announces is safe when it is told so.
            self.state.borrow_mut().gathered = Some(std::mem::take(&mut gathered));
            // SAFETY: as the caller promises.
            let added = unsafe { self.add_bytes(target, len, Announce::Backup) };
            gathered = self.state.borrow_mut().gathered.take().unwrap_or_default();
            added
        });
        let mut state = self.state.borrow_mut();
        if let (false, Some(pool)) = (gathered.is_empty(), state.pools.first().copied()) {
            pool.engine.announce_gathered(&mut state, &gathered)?;
        }
        added
    }

    /// The short way for a small range. Whether it was possible: mostly it is. As [`Tx::add_word`], it calls nothing.
    ///
    /// # Safety
    /// As for [`Tx::add_bytes`].
    #[cfg(all(target_arch = "x86_64", not(miri)))]
    #[target_feature(enable = "avx512f,avx512bw,popcnt")]
    unsafe fn add_lines(&self, address: usize, len: usize) -> bool {
        // SAFETY: bytes of the range, which is in a mapped puddle where it comes to that; 64 bytes of the target. The
        // rest as the caller promises.
        let save = |target, source, mask| unsafe {
            durum_persist::wide::copy_bytes(target, source, mask);
        };
        let is_done = !is_recorded() && self.state.borrow_mut().save_few(address, len, save);
        if is_done {
            self.touch();
        }
        is_done
    }

    /// The short way for a word that the window did not take. Whether it was possible.
    ///
    /// # Safety
    /// As for [`Tx::add_bytes`].
    #[inline(never)]
    unsafe fn add_word(&self, address: usize) -> bool {
        // SAFETY: as the caller promises.
        let is_done = !is_recorded()
            && address.is_multiple_of(8)
            && unsafe { self.state.borrow_mut().save_word(address) };
        if is_done {
            self.touched.set(true);
        }
        is_done
    }

    /// # Safety
    /// As for [`Tx::add_bytes`].
    #[inline(never)]
    unsafe fn add_small(&self, address: usize, len: usize, announce: Announce) -> Result<()> {
        recorder::api("tx.add");
        let mut state = self.state.borrow_mut();
        // SAFETY: as the caller promises.
        if unsafe { state.save_small(address, len) } {
            match len {
                8 => self.touched.set(true),
                _ => self.touch(),
            }
            return Ok(());
        }
        self.add_range(&mut state, address, len, announce)?;
        Ok(())
    }

    /// Any range, in any pool of the store.
    #[inline(never)]
    fn add_range(
        &self,
        state: &mut TxState,
        address: usize,
        len: usize,
        announce: Announce,
    ) -> Step {
        if len == 0 {
            return Ok(());
        }
        if forked() {
            return Err(Error::Forked.into());
        }
        if address.checked_add(len).is_none() {
            return Err(Error::NotInPool { address, len }.into());
        }
        // Also where the range was announced before: the `set` would overwrite at commit what is stored there after it.
        if !state.sets.is_empty() && state.set_index.overlaps(address, len) {
            return Err(Error::PendingSet { address, len }.into());
        }
        let puddle = state.touch(self, address, len)?;
        self.touch();
        // SAFETY: puddles live while their store is open, and a transaction keeps its store open.
        let puddle = unsafe { puddle.as_ref() };
        let Some(pool) = state.pools.first().copied() else {
            return Err(Error::NoTransaction.into());
        };
        let mut within = 0..usize::MAX;
        if pool.facts.takes_turns {
            within = pool.engine.before_store(state, address, len)?;
        }
        if let Some(savepoint) = &mut state.savepoint {
            // SAFETY: the range lies in a mapped puddle, and the caller of `add` promised that nobody changes it.
            unsafe { savepoint.save(address, len) };
        }
        if len >= LARGE || !pool.facts.keeps_lines {
            return pool.engine.announce(state, puddle, address, len, announce);
        }
        if state.sets.is_empty() && state.savepoint.is_none() {
            state.remember_puddle(puddle, within);
        }
        // SAFETY: the range lies in a mapped puddle, and the caller of `add` promised that nobody changes it.
        unsafe { state.save_in_lines(address, len) };
        puddle.check_failed()?;
        Ok(())
    }

    /// Announces that `[target, target + len)` shall be durable with the transaction as it is when that commits,
    /// whatever of it is durable by now: for memory to which the program has stored without any transaction, because
    /// nothing durable led there.
    ///
    /// After a crash before that it holds what it held durably, or what it holds now. An abort leaves it as it is, or
    /// brings back what it holds now: whoever needs that names it to [`Tx::volatile_bytes`], too. Bytes that this
    /// transaction has announced before stay as they were announced. Costs no fence on a Shadow pool, and that of a
    /// [`Pool::persist`](crate::Pool::persist) on others.
    ///
    /// # Safety
    /// As for [`Tx::add_bytes`].
    ///
    /// # Errors
    /// As for [`Tx::add_bytes`].
    pub unsafe fn add_contents(&self, target: *const u8, len: usize) -> Result<()> {
        recorder::api("tx.add");
        if len == 0 {
            return Ok(());
        }
        let address = target.expose_provenance();
        let mut state = self.state.borrow_mut();
        let state = &mut *state;
        if !state.sets.is_empty() && state.set_index.overlaps(address, len) {
            return Err(Error::PendingSet { address, len });
        }
        let puddle = state.touch(self, address, len)?;
        self.touch();
        // SAFETY: puddles live while their store is open, and a transaction keeps its store open.
        let puddle = unsafe { puddle.as_ref() };
        let Some(pool) = TxState::pool_of(&state.pools, puddle.pool_key) else {
            return Err(Error::NoTransaction);
        };
        if pool.facts.compares_announced {
            // What has no old contents counts as changed, like a fresh object.
            state.announced.insert_contents(address, len);
            return Ok(());
        }
        // These compare with what was announced, which is to be what is durable.
        let range = address..address + len;
        pool.engine.persist(state, &pool, &[(puddle, range)])?;
        self.add_range(state, address, len, Announce::Backup)?;
        Ok(())
    }

    /// Defers a store: `*target` becomes `value` when the transaction commits, and not before.
    ///
    /// Durable when the commit returns. Costs no fence of its own. Reading `*target` in the transaction gives the old
    /// value.
    ///
    /// # Safety
    /// As for [`Tx::add_bytes`].
    #[inline]
    pub unsafe fn set<T: Copy>(&self, target: *mut T, value: T) -> Result<()> {
        let value = MaybeUninit::new(value);
        // SAFETY: reads the value's own bytes; padding is copied as it is and never interpreted. The rest as the caller
        // promises.
        unsafe { self.set_bytes(target.cast(), value.as_ptr().cast(), size_of::<T>()) }
    }

    /// Defers a store of `len` bytes from `source`, as [`Tx::set`] does.
    ///
    /// # Safety
    /// As for [`Tx::add_bytes`]; `source` has `len` readable bytes.
    ///
    /// # Errors
    /// As for [`Tx::add_bytes`].
    pub unsafe fn set_bytes(&self, target: *mut u8, source: *const u8, len: usize) -> Result<()> {
        recorder::api("tx.set");
        if len == 0 {
            return Ok(());
        }
        if forked() {
            return Err(Error::Forked);
        }
        let (target, mut state) = (target.expose_provenance(), self.state.borrow_mut());
        let puddle = state.touch(self, target, len)?;
        self.touch();
        let from = state.set_bytes.len();
        state.set_bytes.reserve(len);
        // SAFETY: `len` bytes were just reserved behind `from`; the source is readable as the caller promises.
        unsafe {
            ptr::copy_nonoverlapping(source, state.set_bytes.as_mut_ptr().add(from), len);
            state.set_bytes.set_len(from + len);
        }
        state.sets.push(Set {
            puddle,
            target,
            len,
            from,
        });
        // An `add` has to look whether it meets this one.
        state.forget_recent();
        state.set_index.insert(target, len);
        Ok(())
    }

    /// Remembers volatile memory: if the transaction does not commit, `*target` gets back the value that it has now.
    ///
    /// # Safety
    /// `target` stays valid until the transaction has ended, and no other thread uses it.
    pub unsafe fn volatile<T: Copy>(&self, target: *mut T) {
        // SAFETY: as the caller promises.
        unsafe { self.volatile_bytes(target.cast(), size_of::<T>()) }
    }

    /// Remembers `len` bytes of volatile memory, as [`Tx::volatile`] does.
    ///
    /// # Safety
    /// As for [`Tx::volatile`].
    pub unsafe fn volatile_bytes(&self, target: *mut u8, len: usize) {
        let mut state = self.state.borrow_mut();
        self.touch();
        // SAFETY: readable and unshared, as the caller promises.
        unsafe { state.volatile.save(target as usize, len) };
    }
}

impl TxState {
    /// Whether the address lies in a puddle where the short way of `add` is possible; it is remembered then.
    #[inline(always)]
    fn is_known(&mut self, address: usize) -> bool {
        self.recent.contains(&address) || self.remember_puddle_at(address)
    }

    /// Remembers the puddle at `address` instead, if it is another one of the pool that the transaction began on.
    #[inline(always)]
    fn remember_puddle_at(&mut self, address: usize) -> bool {
        if self.recent.is_empty() {
            return false;
        }
        let (Some(puddle), Some(pool)) = (puddle_near_at(address), self.pools.first()) else {
            return false;
        };
        // SAFETY: puddles live while their store is open, and a transaction keeps its store open.
        let puddle = unsafe { puddle.as_ref() };
        if puddle.pool_key != pool.key || !puddle.holds(address, 1) {
            return false;
        }
        // Where transactions take turns, the engine may want to know first.
        if pool.facts.takes_turns {
            return false;
        }
        self.remember_puddle(puddle, 0..usize::MAX);
        true
    }

    /// The short way of `add`, for a small range. Whether it was possible.
    ///
    /// # Safety
    /// As for [`Tx::add_bytes`].
    #[inline(always)]
    pub(super) unsafe fn save_small(&mut self, address: usize, len: usize) -> bool {
        // Without length `len - 1` is very large.
        if len.wrapping_sub(1) >= LARGE - 1
            || failed_or_forked()
            || !self.is_known(address)
            || len > self.recent.end - address
        {
            return false;
        }
        if self.announced.has_objects() && self.announced.is_in_object(address, len) {
            return true;
        }
        // SAFETY: the range lies in a mapped puddle; the rest as the caller promises.
        unsafe { self.save_in_lines(address, len) };
        // Where reading failed, the long way finds out and says so.
        !media_failed()
    }

    /// The same, and calls nothing but `save` ([`Announced::insert_few`]).
    #[inline(always)]
    pub(super) fn save_few(
        &mut self,
        address: usize,
        len: usize,
        save: impl Fn(*mut u8, *const u8, u64),
    ) -> bool {
        // Without length `len - 1` is very large.
        if len.wrapping_sub(1) >= LARGE - 1
            || failed_or_forked()
            || !self.is_known(address)
            || len > self.recent.end - address
        {
            return false;
        }
        if self.announced.has_objects() && self.announced.is_in_object(address, len) {
            return true;
        }
        self.prefetch_home(address, len);
        let _guard = Guard::new();
        // Where reading failed, the long way finds out and says so.
        self.announced.insert_few(address, len, save) && !media_failed()
    }

    /// Soon after the commit the change goes home, where it may meet cold lines.
    #[inline(always)]
    fn prefetch_home(&self, address: usize, len: usize) {
        let home = address + self.recent_home;
        for number in home / line::LINE..=(home + len - 1) / line::LINE {
            line::prefetch_to_write(number * line::LINE);
        }
    }

    /// The same, for a word, and calls nothing.
    ///
    /// # Safety
    /// As for [`Tx::add_bytes`], where `address` is a multiple of 8.
    #[inline(always)]
    pub(super) unsafe fn save_word(&mut self, address: usize) -> bool {
        // The range ends with a page.
        if failed_or_forked() || !self.is_known(address) {
            return false;
        }
        if self.announced.has_objects() && self.announced.is_in_object(address, 8) {
            return true;
        }
        // SAFETY: the word lies in a mapped puddle; the rest as the caller promises.
        let old = guarded(|| unsafe { (address as *const u64).read() });
        // Where reading failed, the long way finds out and says so.
        !media_failed() && self.announced.insert_word(address, old)
    }

    /// Announces a range, and keeps in memory what it holds, so that an abort can put it back.
    pub(crate) fn announce_saving(&mut self, address: usize, len: usize) {
        if !self.announced.covers(address, len) {
            // SAFETY: the range lies in a mapped puddle, and the caller of `add` promised that nobody changes it.
            guarded(|| unsafe { self.backups.save(address, len) });
            self.announced.insert(address, len);
        }
    }

    /// Announces a range shorter than [`LARGE`] in the puddle that was remembered last, and keeps what it holds.
    ///
    /// # Safety
    /// As for [`Announced::insert_saving`].
    #[inline(always)]
    pub(crate) unsafe fn save_in_lines(&mut self, address: usize, len: usize) {
        self.prefetch_home(address, len);
        let _guard = Guard::new();
        // SAFETY: as the caller promises.
        unsafe { self.announced.insert_saving(address, len) };
    }

    /// Makes the short way of `add` possible in a puddle of this transaction, at these addresses.
    #[inline(always)]
    pub(crate) fn remember_puddle(&mut self, puddle: &Puddle, within: Range<usize>) {
        let heap = puddle.heap();
        self.recent = heap.start.max(within.start)..heap.end.min(within.end);
        self.recent_home = puddle.home_offset();
        let compares = (self.pools.first()).is_some_and(|pool| pool.facts.compares_announced);
        let may_be_open = may_be_open();
        self.announced
            .want_words(compares, &self.recent, may_be_open);
    }

    /// The short way of `add` is possible nowhere, until something else says so.
    #[inline]
    pub(crate) fn forget_recent(&mut self) {
        self.recent = 0..0;
        self.announced.close_window();
    }
}
