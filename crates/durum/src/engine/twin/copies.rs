//! What the engine keeps of an open pool, and what the media say of its two copies: state and seal
//! (docs/format/twin.md).

use std::cell::UnsafeCell;
use std::ops::Range;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

use durum_format::twin::{
    SEAL_RANGE_MAX, SEAL_RANGES_MAX, SEAL_SIZE, STATE_OFFSET, Seal, SealRange, Stage, State,
    seal_offset, suspects_offset,
};
use durum_persist::line;
use zerocopy::IntoBytes;

use super::SEAL_WRITE;
use super::left_right::LeftRight;
use super::suspects::{LINES, Suspects};
use crate::alloc::Puddle;
use crate::announced::Announced;
use crate::error::{Error, Result};
use crate::fair_lock::FairLock;
use crate::fault::guarded;
use crate::media::Barrier;
use crate::opened::{OfPool, PoolInner};
use crate::options::{PoolOptions, TwinMode};
use crate::reading::is_reading;
use crate::sites::sites;

sites! {
    STATE_WRITE = "twin: write back the state";
    CHANGING_FENCE = "twin: fence after the state, changing";
    COPYING_FENCE = "twin: fence after the state, copying";
    SETTLED_FENCE = "twin: fence after the state, settled";
    SUSPECTS_WRITE = "twin: write back suspects";
    SUSPECTS_FENCE = "twin: fence after suspects";
}

/// What the engine keeps of an open pool. But for the turn and readers, it belongs to the thread whose turn it is.
#[derive(Debug)]
pub(super) struct Copies {
    mode: TwinMode,
    /// Where readers read beside a transaction.
    left_right: Option<LeftRight>,
    /// Whose transaction may change the pool.
    pub(super) turn: FairLock,
    root: OnceLock<Arc<Puddle>>,
    /// The number of the next transaction to commit; 0: the media have not been asked.
    generation: AtomicU64,
    /// The media say that it may be changing main.
    is_changing: AtomicBool,
    /// And that back is whole, so that they need no seal for that.
    is_settled: AtomicBool,
    /// Where the copies may differ on the media. The thread's whose turn it is.
    suspects: UnsafeCell<Suspects>,
}

// SAFETY: `suspects` is used by the thread only that has the pool's turn, and the lock of the turn orders one after the
// other; all else is for any thread.
unsafe impl Sync for Copies {}

impl OfPool for Copies {}

impl Copies {
    /// What is kept about a Twin pool.
    #[inline]
    pub(super) fn of(pool: &PoolInner) -> &Self {
        // SAFETY: this engine is asked about its own pools only.
        unsafe { pool.kept_unchecked() }
    }

    pub(super) fn new(options: &PoolOptions) -> Self {
        let mode = options.twin_mode;
        Self {
            mode,
            left_right: (mode == TwinMode::LeftRight).then(LeftRight::default),
            turn: FairLock::default(),
            root: OnceLock::new(),
            generation: AtomicU64::new(0),
            is_changing: AtomicBool::new(false),
            is_settled: AtomicBool::new(false),
            suspects: UnsafeCell::new(Suspects::new(options.suspects)),
        }
    }

    pub(super) fn mode(&self) -> TwinMode {
        self.mode
    }

    /// Where readers come, if the pool lets them read beside a transaction.
    #[inline]
    pub(super) fn left_right(&self) -> Option<&LeftRight> {
        self.left_right.as_ref()
    }

    /// Main is about to change in memory: sends readers to back, if there may be any, and waits until they have left
    /// main.
    pub(super) fn send_readers_to_back(&self, pool: &PoolInner) -> Result<()> {
        if let Some(left_right) = &self.left_right {
            if is_reading() {
                // It would wait for itself.
                return Err(Error::ReadsCopy {
                    pool: pool.name.clone(),
                });
            }
            left_right.send(false);
        }
        Ok(())
    }

    /// Main is whole and durable, and back is about to change.
    pub(super) fn send_readers_to_main(&self) {
        if let Some(left_right) = &self.left_right {
            left_right.send(true);
        }
    }

    /// Whether main may differ from back on the media.
    pub(super) fn is_changing(&self) -> bool {
        self.is_changing.load(Ordering::Relaxed)
    }

    /// The puddle that has the state.
    fn root(&self, pool: &PoolInner) -> Result<&Arc<Puddle>> {
        match self.root.get() {
            Some(root) => Ok(root),
            None => {
                let found = pool.root_puddle()?;
                Ok(self.root.get_or_init(|| found))
            }
        }
    }

    /// The number of the next transaction to commit.
    fn generation(&self, root: &Puddle) -> Result<u64> {
        match self.generation.load(Ordering::Relaxed) {
            0 => {
                let word = root.at(STATE_OFFSET as usize).cast::<u64>();
                // SAFETY: an aligned word of the mapped puddle's header, which only the thread changes whose turn it
                // is.
                let word = guarded(|| unsafe { word.read() });
                root.check_failed()?;
                // Recovery has looked at it before, if the pool was not closed in order.
                let last = State::from_word(u64::from_le(word)).map_or(0, |state| state.generation);
                self.generation.store(last + 1, Ordering::Relaxed);
                Ok(last + 1)
            }
            generation => Ok(generation),
        }
    }

    /// Stores the state, and starts making it durable.
    fn write_state(
        &self,
        root: &Puddle,
        stage: Stage,
        is_settled: bool,
        barrier: &mut Barrier,
    ) -> Result<()> {
        let state = State {
            generation: self.generation(root)?,
            stage,
            is_settled,
            is_listed: self.is_listed(),
        };
        let word = root.at(STATE_OFFSET as usize).cast::<u64>();
        // SAFETY: an aligned word of the mapped puddle's header, which only the thread changes whose turn it is.
        guarded(|| unsafe { line::store_u64(word.as_ptr(), state.to_word().to_le()) });
        // ORDER: durable with the caller's fence; the caller says why.
        barrier.write_back(root, root.address + STATE_OFFSET as usize, 8, STATE_WRITE)
    }

    /// Whether there is a list of what may differ. What the mode `Basic` copies nobody has announced.
    fn is_listed(&self) -> bool {
        self.mode != TwinMode::Basic
    }

    /// # Safety
    /// This thread has the pool's turn, and ends with one before it asks again.
    #[allow(clippy::mut_from_ref)]
    unsafe fn suspects(&self) -> &mut Suspects {
        // SAFETY: as the caller promises.
        unsafe { &mut *self.suspects.get() }
    }

    /// This thread has got the pool's turn.
    pub(super) fn begin_turn(&self) {
        // SAFETY: it has.
        unsafe { self.suspects() }.begin_turn();
    }

    /// The thread whose turn it is is about to change a range of main: puts its blocks on the list, if they are not
    /// there, and starts making that durable. The addresses around the first one that are listed until the turn ends.
    pub(super) fn suspect(
        &self,
        pool: &PoolInner,
        address: usize,
        len: usize,
        barrier: &mut Barrier,
    ) -> Result<Range<usize>> {
        if !self.is_listed() {
            return Ok(0..usize::MAX);
        }
        // SAFETY: it is this thread's turn.
        let suspects = unsafe { self.suspects() };
        suspects.add(address, len);
        self.write_suspects(pool, suspects, barrier)?;
        Ok(suspects.around(address))
    }

    /// The same for what no seal will name: objects that the transaction has made may be in it.
    pub(super) fn suspect_all(
        &self,
        pool: &PoolInner,
        announced: &Announced,
        barrier: &mut Barrier,
    ) -> Result<()> {
        if !self.is_listed() {
            return Ok(());
        }
        // SAFETY: it is this thread's turn.
        let suspects = unsafe { self.suspects() };
        announced.for_each(true, |address, len| suspects.add_new(address, len));
        self.write_suspects(pool, suspects, barrier)
    }

    /// Writes what the media lack of the list.
    #[inline]
    fn write_suspects(
        &self,
        pool: &PoolInner,
        suspects: &mut Suspects,
        barrier: &mut Barrier,
    ) -> Result<()> {
        match suspects.is_written() {
            true => Ok(()),
            false => self.write_lines(pool, suspects, barrier),
        }
    }

    #[cold]
    fn write_lines(
        &self,
        pool: &PoolInner,
        suspects: &mut Suspects,
        barrier: &mut Barrier,
    ) -> Result<()> {
        let root = self.root(pool)?;
        let offset = suspects_offset(root.size as u64);
        if root.private {
            // One call of the system, from the first of these lines to the last.
            let (mut first, mut end) = (LINES, 0);
            while let Some((line, _)) = suspects.take_unwritten() {
                (first, end) = (first.min(line), line + 1);
            }
            let start = offset + (first * line::LINE) as u64;
            let lines: Vec<_> = (first..end)
                .map(|line| suspects.line(line).map(u64::to_le))
                .collect();
            // ORDER: durable with the caller's fence, before main changes there.
            return barrier.write_bytes(root, start, lines.as_bytes());
        }
        let list = root.address + pool.store.info.space_size as usize + offset as usize - root.size;
        while let Some((line, words)) = suspects.take_unwritten() {
            let start = list + line * line::LINE;
            guarded(|| {
                // Only these need not be durable: what an earlier process has written and not fenced may look the same.
                // SAFETY: a line of the header's back copy, which only the thread uses whose turn it is.
                if words == [0; 8] && unsafe { (start as *const [u64; 8]).read() } == words {
                    return;
                }
                for (at, word) in words.into_iter().enumerate() {
                    // SAFETY: an aligned word of the same line.
                    unsafe { line::store_u64((start as *mut u64).add(at), word.to_le()) };
                }
                // SAFETY: the same line.
                // ORDER: durable with the caller's fence, before main changes there.
                unsafe { line::write_back(start as *const u8, line::LINE, SUSPECTS_WRITE) };
            });
        }
        root.check_failed()?;
        Ok(())
    }

    /// What [`Copies::suspect`] has put on the list becomes durable, if no fence came since.
    pub(super) fn fence_suspects(&self, pool: &PoolInner, barrier: &mut Barrier) -> Result<()> {
        // SAFETY: it is this thread's turn.
        if !unsafe { self.suspects() }.is_unfenced() {
            return Ok(());
        }
        let root = self.root(pool)?;
        // ORDER: durable before the first store to main there, which may reach the media at any time: recovery looks
        // for what changed in these blocks only.
        barrier.fence(root.private, SUSPECTS_FENCE)?;
        self.suspects_are_durable();
        Ok(())
    }

    /// A fence came after [`Copies::suspect`].
    pub(super) fn suspects_are_durable(&self) {
        // SAFETY: it is this thread's turn, or the pool is being closed.
        unsafe { self.suspects() }.fenced();
    }

    /// Makes the media say that main is about to change, if they do not yet.
    pub(super) fn begin(&self, pool: &PoolInner, barrier: &mut Barrier) -> Result<()> {
        if self.is_changing() {
            return Ok(());
        }
        if self.is_listed() {
            // SAFETY: it is this thread's turn.
            let suspects = unsafe { self.suspects() };
            self.write_suspects(pool, suspects, barrier)?;
        }
        let root = self.root(pool)?;
        self.write_state(root, Stage::Changing, true, barrier)?;
        // ORDER: durable before the first store to main, which may reach the media at any time: from then on a crash
        // needs the back copy, which is whole: both were the same, durably.
        barrier.fence(root.private, CHANGING_FENCE)?;
        self.suspects_are_durable();
        self.is_settled.store(true, Ordering::Relaxed);
        self.is_changing.store(true, Ordering::Relaxed);
        Ok(())
    }

    /// Stores the seal of the transaction, and starts making it durable. Whether all that has changed fits one.
    pub(super) fn seal(
        &self,
        pool: &PoolInner,
        announced: &Announced,
        barrier: &mut Barrier,
    ) -> Result<bool> {
        let mut ranges = [SealRange::default(); SEAL_RANGES_MAX];
        let mut count = 0;
        announced.for_each(false, |address, len| {
            for from in (0..len).step_by(SEAL_RANGE_MAX) {
                let piece = (len - from).min(SEAL_RANGE_MAX);
                if let Some(place) = ranges.get_mut(count)
                    && let Some(range) = SealRange::new((address + from) as u64, piece)
                {
                    *place = range;
                }
                count += 1;
            }
        });
        let Some(ranges) = ranges.get(..count) else {
            return Ok(false);
        };
        let root = self.root(pool)?;
        let generation = self.generation(root)?;
        let mut place = [0; SEAL_SIZE];
        let contents = |crc: &mut durum_format::crc::Crc| {
            guarded(|| {
                for range in ranges {
                    let start = range.address() as *const u8;
                    // SAFETY: announced ranges lie in mapped puddles, and only this thread changes them.
                    crc.update(unsafe { std::slice::from_raw_parts(start, range.length()) });
                }
            });
        };
        let used = Seal::encode(generation, ranges, contents, &mut place);
        let offset = seal_offset(root.size as u64, generation) as usize;
        let target = root.at(offset).as_ptr();
        if root.private {
            // SAFETY: the place lies in the puddle's header, behind all that others write there.
            guarded(|| unsafe { line::copy(target, place.as_ptr(), used) });
            // ORDER: durable with the caller's fence, before the back copy changes.
            barrier.write_back(root, root.address + offset, used, SEAL_WRITE)?;
        } else {
            // Whole lines past the cache: what was there need not be read.
            let used = used.next_multiple_of(line::LINE);
            // SAFETY: the place lies in the puddle's header, behind all that others write there, and has whole lines.
            // ORDER: durable with the caller's fence, before the back copy changes.
            guarded(|| unsafe { line::copy_streaming(target, place.as_ptr(), used, SEAL_WRITE) });
        }
        Ok(true)
    }

    /// Makes the media say that main is whole and back may not be.
    pub(super) fn say_copying(&self, pool: &PoolInner, barrier: &mut Barrier) -> Result<()> {
        let root = self.root(pool)?;
        self.write_state(root, Stage::Copying, false, barrier)?;
        // ORDER: durable before the back copy changes, which a crash would go back to until then.
        barrier.fence(root.private, COPYING_FENCE)
    }

    /// Back is being made durable: the next transaction may change main when the caller's fence is through. Without a
    /// seal that has to wait until then.
    pub(super) fn go_on(
        &self,
        pool: &PoolInner,
        barrier: &mut Barrier,
        is_sealed: bool,
    ) -> Result<()> {
        let root = self.root(pool)?;
        let next = self.generation(root)? + 1;
        self.generation.store(next, Ordering::Relaxed);
        self.is_settled.store(false, Ordering::Relaxed);
        self.is_changing.store(is_sealed, Ordering::Relaxed);
        match is_sealed {
            true => self.write_state(root, Stage::Changing, false, barrier),
            false => Ok(()),
        }
    }

    /// From here on no seal is asked whether back is whole. For a thread that has the pool's turn, or a pool that is
    /// being closed.
    pub(super) fn settle(&self, pool: &PoolInner, barrier: &mut Barrier) -> Result<()> {
        if !self.is_changing() || self.is_settled.load(Ordering::Relaxed) {
            return Ok(());
        }
        let root = self.root(pool)?;
        self.write_state(root, Stage::Changing, true, barrier)?;
        // ORDER: durable before anything changes that the last seal is about, or goes away.
        barrier.fence(root.private, SETTLED_FENCE)?;
        self.suspects_are_durable();
        self.is_settled.store(true, Ordering::Relaxed);
        Ok(())
    }

    /// A puddle is about to go, and with it what a seal may be about.
    ///
    /// # Errors
    /// Another transaction runs; the puddle has to stay then.
    pub(super) fn forget_seal(&self, pool: &PoolInner) -> Result<()> {
        let mut barrier = Barrier::default();
        if self.turn.is_mine() {
            return self.settle(pool, &mut barrier);
        }
        match self.turn.try_take() {
            true => {
                let result = self.settle(pool, &mut barrier);
                self.turn.give_up();
                result
            }
            false => {
                // Its commit may be about to have a seal of its own.
                let busy = std::io::Error::from(std::io::ErrorKind::WouldBlock);
                Err(Error::system("waiting for a transaction", busy))
            }
        }
    }

    /// The pool closes in order. Not durable: who opens it next finds two copies that are the same, whatever the state.
    pub(super) fn close(&self, pool: &PoolInner) {
        if self.is_changing()
            && let Ok(root) = self.root(pool)
        {
            let _ = self.write_state(root, Stage::Idle, false, &mut Barrier::default());
        }
    }
}
