//! What a side must be able to do to take part: one trait per workload.
//!
//! A method runs a whole batch, so that dynamic dispatch costs nothing measurable. Each operation of a batch is one
//! transaction, durable when the next one begins, unless the method says otherwise.

use std::ops::Range;
use std::path::Path;
use std::sync::{Mutex, PoisonError};

use crate::error::{Error, Result};
use crate::inputs::{Op, Scan, Texts, Walk};

/// What a side stands for in the report.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// Another library, the numerator of `speedup`.
    Peer,
    /// An engine of others, written here after its paper (`quadra`, `trinity`).
    Rival,
    /// An engine of durum.
    Engine,
    /// The physical limit (`flush1`, `overwrite`), the denominator of `floor_ratio`.
    Limit,
    /// The least that an engine of durum's kind has to do (`redo1`).
    Bound,
    /// Plain memory.
    Volatile,
}

/// One contestant: it makes a fresh store for each workload of each round, below `dir`, and removes it on drop.
///
/// A side implements the workloads of the suites that list it; other workloads get `NotTaken`.
pub trait Side {
    /// The name in the report: the engine's, or the library's.
    fn name(&self) -> &str;
    /// What it stands for.
    fn role(&self) -> Role;
    /// The persistence domain it works in, or `none`.
    fn domain(&self) -> &str;
    /// Name and version of the library, of a peer.
    fn version(&self) -> Option<String> {
        None
    }
    /// Single operations, with a ring in which node i points to node `ring[i]`.
    fn cells(&self, _dir: &Path, _ring: &[u32], _objects_max: usize) -> Result<Box<dyn Cells>> {
        Error::not_taken(self.name())
    }
    /// An array of `count` integers; integer i starts as i.
    fn swap(&self, _dir: &Path, _count: usize) -> Result<Box<dyn Swap>> {
        Error::not_taken(self.name())
    }
    /// So many arrays of `count` integers, for a thread each: in one pool, if a side's pools are shared by threads.
    fn swaps(&self, dir: &Path, count: usize, arrays: usize) -> Result<Box<dyn Swaps>> {
        let own = (0..arrays).map(|array| {
            let dir = dir.join(format!("array-{array}"));
            std::fs::create_dir_all(&dir).map_err(Error::file(&dir))?;
            Ok(OwnSwap(self.swap(&dir, count)?))
        });
        Ok(Box::new(
            own.map(|swap| swap.map(Mutex::new))
                .collect::<Result<Vec<_>>>()?,
        ))
    }
    /// An empty list.
    fn list(&self, _dir: &Path) -> Result<Box<dyn List>> {
        Error::not_taken(self.name())
    }
    /// An empty B-tree of order 8.
    fn tree(&self, _dir: &Path) -> Result<Box<dyn Tree>> {
        Error::not_taken(self.name())
    }
    /// An empty hash map with `1 << bucket_bits` buckets.
    fn map(&self, _dir: &Path, _bucket_bits: u32) -> Result<Box<dyn Map>> {
        Error::not_taken(self.name())
    }
    /// The empty linked list of the programs.
    fn stack(&self, _dir: &Path) -> Result<Box<dyn List>> {
        Error::not_taken(self.name())
    }
    /// An empty map from numbers to numbers of the programs.
    fn numbers(&self, _dir: &Path, _kind: NumbersKind) -> Result<Box<dyn Tree>> {
        Error::not_taken(self.name())
    }
    /// The empty key-value store of the programs.
    fn store(&self, _dir: &Path) -> Result<Box<dyn TextStore>> {
        Error::not_taken(self.name())
    }
    /// The word count of the programs, without any text.
    fn words(&self, _dir: &Path) -> Result<Box<dyn Words>> {
        Error::not_taken(self.name())
    }
    /// An array of `count` floating-point numbers; number i starts as i.
    fn array(&self, _dir: &Path, _count: usize) -> Result<Box<dyn Array>> {
        Error::not_taken(self.name())
    }
    /// An empty structure that several threads use.
    fn shared(&self, _dir: &Path, _shape: SharedShape) -> Result<Box<dyn Shared>> {
        Error::not_taken(self.name())
    }
    /// An empty key-value store on a disk.
    fn puts(&self, _dir: &Path, _shape: &PutsShape) -> Result<Box<dyn Puts>> {
        Error::not_taken(self.name())
    }
}

/// Bytes of the area that `floor` and `add` write to: it stays in the second-level cache, as a hot object would.
pub const AREA_SIZE: usize = 256 << 10;

/// Bytes to allocate so that the area has room at [`area_in`].
pub const AREA_ROOM: usize = AREA_SIZE + 2 * PAGE;

const PAGE: usize = 4096;

/// Where in [`AREA_ROOM`] bytes the area lies: a line behind the first page boundary, on every side.
///
/// Found by measurement: going round exactly 64 whole pages, each write-back takes 15 % longer than with any other
/// start in a page, on some machines. An allocator's choice of addresses should not decide a row.
pub fn area_in(room: *mut u8) -> *mut u8 {
    let offset = room.addr().next_multiple_of(PAGE) + 64 - room.addr();
    room.wrapping_add(offset)
}

/// Single operations.
pub trait Cells {
    /// The area of [`AREA_SIZE`] bytes.
    fn area(&self) -> &[u8];
    /// `count` stores of 8 bytes, each made durable alone without a transaction; store i puts i at i * stride, modulo
    /// the area.
    fn floor(&mut self, stride: usize, count: usize) -> Result<()>;
    /// `count` empty transactions.
    fn tx_empty(&mut self, count: usize) -> Result<()>;
    /// Transaction i snapshots and overwrites `image.len()` bytes at i * stride, modulo the area: with `image`, and i
    /// as first word.
    fn add(&mut self, stride: usize, image: &[u8], count: usize) -> Result<()>;
    /// Transaction i allocates one object: `image` with i as its first word. Lengths are 8, 256 and 4096.
    fn alloc(&mut self, image: &[u8], count: usize) -> Result<()>;
    /// Wrapping sum over all allocated objects of first word ^ last word << 32.
    fn objects_sum(&self) -> u64;
    /// Each transaction frees one object, the oldest first.
    fn free(&mut self, count: usize) -> Result<()>;
    /// Reads `count` times through one stored pointer; the sum of number + 1 of the node it found.
    fn deref(&mut self, count: usize) -> u64;
    /// Follows `steps` pointers of the ring from node 0 on; the sum of the numbers of the nodes it met.
    fn chase(&mut self, steps: usize) -> u64;
}

/// An array of integers.
pub trait Swap {
    /// The integers.
    fn values(&self) -> &[u64];
    /// Swaps all pairs in order, `per_tx` in each transaction. Pairs of one transaction may overlap.
    fn run(&mut self, pairs: &[[u32; 2]], per_tx: usize) -> Result<()>;
}

/// Arrays of integers that a thread each changes.
pub trait Swaps: Sync {
    /// The integers of an array.
    fn values(&self, array: usize) -> Vec<u64>;
    /// As [`Swap::run`], for one array. No other thread works on it.
    fn run(&self, array: usize, pairs: &[[u32; 2]], per_tx: usize) -> Result<()>;
}

/// A store that one thread at a time uses.
struct OwnSwap(Box<dyn Swap>);

// SAFETY: no side keeps what belongs to a thread.
unsafe impl Send for OwnSwap {}

impl Swaps for Vec<Mutex<OwnSwap>> {
    fn values(&self, array: usize) -> Vec<u64> {
        let swap = self[array].lock().unwrap_or_else(PoisonError::into_inner);
        swap.0.values().to_vec()
    }

    fn run(&self, array: usize, pairs: &[[u32; 2]], per_tx: usize) -> Result<()> {
        let mut swap = self[array].lock().unwrap_or_else(PoisonError::into_inner);
        swap.0.run(pairs, per_tx)
    }
}

/// An array of floating-point numbers, of which threads change parts of their own.
pub trait Array: Sync {
    /// Replaces each number x of `range` by the sum of both parts of e^ix ([`euler`]), so many in each transaction.
    fn euler(&self, range: Range<usize>, per_tx: usize) -> Result<()>;
    /// The numbers.
    fn numbers(&self) -> &[f64];
}

/// The sum of the real and the imaginary part of e^ix. The peers' `euler.c` has the same.
#[inline]
pub fn euler(x: f64) -> f64 {
    unsafe extern "C" {
        fn sincos(x: f64, sine: *mut f64, cosine: *mut f64);
    }
    let (mut sine, mut cosine) = (0.0, 0.0);
    // SAFETY: both are valid for the call.
    unsafe { sincos(x, &raw mut sine, &raw mut cosine) };
    cosine + sine
}

/// A singly linked list with head and tail; among the programs, with a head.
pub trait List {
    /// Adds each value: at the tail, if there is one, else at the head.
    fn append(&mut self, values: &[u64]) -> Result<()>;
    /// Walks the list.
    fn sum(&mut self) -> Walk;
    /// Pops `count` values from the head; their sum.
    fn pop(&mut self, count: usize) -> Result<u64>;
}

/// A B-tree of order 8, or a map of [`NumbersKind`].
pub trait Tree {
    /// Inserts each entry.
    fn insert(&mut self, entries: &[Op]) -> Result<()>;
    /// The sum of the values of the keys that are there.
    fn lookup(&self, keys: &[u64]) -> u64;
    /// Deletes each key; how many were there.
    fn delete(&mut self, keys: &[u64]) -> Result<u64>;
    /// Walks the tree, in order if it has one.
    fn walk(&mut self) -> Walk;
    /// Scans, which are no transactions, and insertions of keys that are not there; the sum of the values that were
    /// read. Of the B-tree.
    fn serve(&mut self, _requests: &[Scan]) -> Result<u64> {
        Error::not_taken("a map without scans")
    }
}

/// A chained hash map.
pub trait Map {
    /// Inserts each entry; the keys are not there yet.
    fn load(&mut self, entries: &[Op]) -> Result<()>;
    /// Reads of keys that are there, updates, and insertions of those that are not; the sum of the digests of what was
    /// read. A read is no transaction.
    fn run(&mut self, ops: &[Op]) -> Result<u64>;
    /// Walks the map.
    fn walk(&mut self) -> Walk;
}

/// The programs that are maps from numbers to numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NumbersKind {
    /// A binary search tree, whose keys are compared as signed numbers.
    Bst,
    /// A hash map, which grows.
    Hash,
    /// A B+tree of fan-out 8.
    BPlus,
}

/// A key-value store for text.
pub trait TextStore {
    /// Puts each value under its key, whether that is there or not.
    fn put(&mut self, texts: &Texts) -> Result<()>;
    /// Adds each value to the end of the one that is there.
    fn append(&mut self, texts: &Texts) -> Result<()>;
    /// The sum of the words of the values of the keys that are there. Nothing becomes durable.
    fn read(&self, texts: &Texts) -> u64;
    /// Deletes each key; how many were there.
    fn delete(&mut self, texts: &Texts) -> Result<u64>;
    /// Walks the store.
    fn walk(&mut self) -> Walk;
}

/// The word count. Chunks of text wait in lanes, each of which one thread counts.
pub trait Words: Sync {
    /// Brings a text to the lanes: one transaction for each chunk.
    fn bring(&mut self, text: &str) -> Result<()>;
    /// Counts what is in the lanes of one of several threads: two transactions for each chunk.
    fn count(&self, thread: usize, threads: usize) -> Result<()>;
    /// How often a thread has found taken what another one was using, where the side knows.
    fn contended(&self) -> u64 {
        0
    }
    /// Walks all words: how many were counted, and the sum of hash times number.
    fn walk(&mut self) -> Walk;
}

/// A structure that threads share.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SharedShape {
    /// A B-tree of order 8.
    Tree,
    /// A chained hash map with `1 << bucket_bits` buckets.
    Map {
        /// log2 of the number of buckets.
        bucket_bits: u32,
    },
    /// A singly linked list, sorted by key.
    Sorted,
    /// A red-black tree.
    RedBlack,
    /// A chained hash map with 2,048 buckets, of numbers.
    Fixed,
    /// A chained hash map that grows, of numbers.
    Hash,
}

/// A structure that several threads use. The side keeps them apart in the way that its users do.
pub trait Shared: Sync {
    /// Inserts each entry; the keys are not there yet.
    fn load(&mut self, entries: &[Op]) -> Result<()>;
    /// Replaces the value of a key that is there: in the map in one transaction, elsewhere by one that deletes the key
    /// and one that inserts it.
    fn update(&self, op: &Op) -> Result<()>;
    /// The value of the key, in the map its digest; 0 if it is not there. Nothing becomes durable.
    fn read(&self, key: u64) -> u64;
    /// Walks the structure.
    fn walk(&mut self) -> Walk;
}

/// What a key-value store of the disk suite must have room for.
#[derive(Clone, Copy, Debug)]
pub struct PutsShape {
    /// Bytes of every value: [`SMALL_VALUE`] or [`LARGE_VALUE`].
    pub value_len: usize,
    /// Threads that put at the same time.
    pub threads: usize,
    /// Different keys of each thread, at most.
    pub keys_each_max: usize,
    /// Puts of all threads, loaded entries included, at most.
    pub puts_max: usize,
}

/// Bytes of a small value: those of a YCSB field, and of LevelDB's benchmark values.
pub const SMALL_VALUE: usize = 100;
/// Bytes of a large value: a page.
pub const LARGE_VALUE: usize = 4096;

/// A key-value store on a disk, shared by threads that have keys of their own.
pub trait Puts {
    /// A handle for each thread.
    fn handles(&mut self) -> Vec<Box<dyn Put + Send + '_>>;
    /// Shows every entry, in any order.
    fn visit(&mut self, see: &mut dyn FnMut(u64, &[u8])) -> Result<()>;
}

/// One thread's handle of a store.
pub trait Put {
    /// Sets the key's value, whether the key is there or not. Durable when it returns.
    fn put(&mut self, key: u64, value: &[u8]) -> Result<()>;
    /// Puts keys that are not there yet in one commit: value i is the i-th of equal parts of `values`.
    fn load(&mut self, keys: &[u64], values: &[u8]) -> Result<()>;
}
