//! A hash map from words to counts that lives in a pool: an example of durum's untyped API.
//!
//! Persistent types are `repr(C)` structs with a description; they point to each other with plain pointers. What
//! changes is announced with [`Tx::add`] before it is stored, what is new comes from [`Tx::alloc`] and needs no
//! announcement.
//!
//! Transactions are atomic and durable, not isolated: two threads that change the same bytes would undo each other's
//! work. A few words make up much of any text, and threads would wait for each other's "the". So the map has several
//! *lanes*, each a hash table of its own, and a count is the sum over them. Each lane has a lock ([`Locks`]), and
//! whoever changes it holds that until the transaction has *returned*. The locks are ordinary ones in ordinary memory:
//! after a crash nobody holds them.

use std::sync::{Mutex, MutexGuard, PoisonError};

use crossbeam_utils::CachePadded;
use durum::{Tx, describe};

/// Bytes of the longest word.
pub(crate) const WORD_MAX: usize = 48;
const LANES: usize = 8;
const BUCKETS: usize = 4096;

/// A word, filled up with zeros.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct Word([u8; WORD_MAX]);

impl Word {
    /// The word with these bytes, those behind the longest left off; ASCII letters become small.
    pub(crate) fn new(bytes: &[u8]) -> Self {
        let mut word = [0; WORD_MAX];
        for (place, byte) in word.iter_mut().zip(bytes) {
            *place = byte.to_ascii_lowercase();
        }
        Self(word)
    }

    /// Its bytes, without the zeros behind them.
    fn bytes(&self) -> &[u8] {
        self.0.split(|byte| *byte == 0).next().unwrap_or_default()
    }

    /// Where a lane keeps it. FNV-1a and not the hasher of `std`: where an entry lies on the media must never change.
    fn bucket(&self) -> usize {
        let hash = fnv_1a(self.bytes());
        (hash ^ hash >> 32) as usize % BUCKETS
    }
}

/// The FNV-1a hash of some bytes.
pub(crate) fn fnv_1a(bytes: &[u8]) -> u64 {
    let step = |hash: u64, byte: &u8| (hash ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3);
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, step)
}

impl std::fmt::Display for Word {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&String::from_utf8_lossy(self.bytes()))
    }
}

/// A word and its place in every lane: what a thread wants to count.
#[derive(Clone, Copy)]
pub(crate) struct Placed {
    word: Word,
    bucket: usize,
}

impl From<Word> for Placed {
    fn from(word: Word) -> Self {
        Self {
            word,
            bucket: word.bucket(),
        }
    }
}

/// A word of the map.
#[repr(C)]
pub(crate) struct Entry {
    /// The next one in its bucket.
    next: *mut Entry,
    count: u64,
    word: [u8; WORD_MAX],
}
describe!(Entry as "word_count" { next, count, word });

/// The map: for each lane a list of entries for each bucket. All zeros is an empty one.
#[repr(C)]
pub(crate) struct WordMap {
    lanes: [[*mut Entry; BUCKETS]; LANES],
}
describe!(WordMap as "word_map" { lanes });

impl WordMap {
    /// Counts a word once more.
    ///
    /// # Safety
    /// `map` is in an open pool, the one that `tx` began on; the lock of the lane is held until the transaction has
    /// returned.
    pub(crate) unsafe fn increment(
        map: *mut WordMap,
        tx: &Tx,
        lane: usize,
        placed: &Placed,
    ) -> durum::Result<()> {
        // SAFETY: the map is mapped as long as its pool is open.
        let bucket = unsafe { &raw mut (*map).lanes[lane][placed.bucket] };
        // SAFETY: a word of the map, which is mapped; the lock keeps others from changing the lane.
        let first = unsafe { *bucket };
        let mut entry = first;
        while !entry.is_null() {
            // SAFETY: entries are never freed, and this one's lane is locked.
            let Entry { next, count, word } = unsafe { &mut *entry };
            if *word == placed.word.0 {
                // SAFETY: the lock keeps others from the entry until the transaction has returned.
                unsafe { tx.add(count)? };
                *count += 1;
                return Ok(());
            }
            entry = *next;
        }
        let entry = tx.alloc::<Entry>()?;
        // SAFETY: freshly allocated: nobody else knows it, and it needs no `add`.
        unsafe {
            entry.write(Entry {
                next: first,
                count: 1,
                word: placed.word.0,
            });
        }
        // SAFETY: as for the entry's count.
        unsafe { tx.add(bucket)? };
        // SAFETY: announced just now. Another new word of this bucket in the same transaction will find it.
        unsafe { *bucket = entry };
        Ok(())
    }

    /// All entries, bucket by bucket: a word comes once for each lane that has it.
    ///
    /// # Safety
    /// `map` is in an open pool, which nobody changes meanwhile.
    pub(crate) unsafe fn for_each(map: *const WordMap, mut see: impl FnMut(Word, u64)) {
        // SAFETY: mapped as long as the pool is open, and nobody changes it.
        let lanes = unsafe { &(*map).lanes };
        for first in lanes.iter().flatten() {
            let mut entry = *first;
            while !entry.is_null() {
                // SAFETY: entries are never freed and nobody changes them.
                let Entry { next, count, word } = unsafe { &*entry };
                see(Word(*word), *count);
                entry = *next;
            }
        }
    }
}

/// What the transactions of this process have counted durably.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Done {
    pub(crate) words: u64,
    pub(crate) transactions: u64,
}

/// Which thread may change which lane, and what was done under each lock. Each in cache lines of its own: threads on
/// different lanes share nothing.
#[derive(Default)]
pub(crate) struct Locks([CachePadded<Mutex<Done>>; LANES]);

impl Locks {
    /// The lane of a thread, by the thread's number.
    pub(crate) fn lane(thread: usize) -> usize {
        thread % LANES
    }

    pub(crate) fn lock(&self, lane: usize) -> MutexGuard<'_, Done> {
        // A thread that panicked has rolled back.
        self.0[lane].lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What was done on all lanes.
    pub(crate) fn done(&self) -> Done {
        let lanes = (0..LANES).map(|lane| *self.lock(lane));
        lanes.fold(Done::default(), |sum, lane| Done {
            words: sum.words + lane.words,
            transactions: sum.transactions + lane.transactions,
        })
    }
}
