//! libpmemobj, through the C code in `bench/peers`.

use std::ops::Range;
use std::path::Path;

use durum_bench_peers as peers;
use peers::programs;

use super::locked::Locked;
use crate::error::{Error, Result};
use crate::inputs::{Op, Scan, Texts, Walk};
use crate::side::{self, AREA_SIZE, NumbersKind, Role, SharedShape, Side};
use crate::structures::InTurns;
use crate::structures::numbers::Reinserted;

/// Bytes of a pool file: about twice what the largest workload needs.
const POOL_SIZE: usize = 384 << 20;

/// The peer.
#[derive(Debug, Default)]
pub struct Pmdk;

const NAME: &str = "pmdk";

/// The version of the interface, and that of the package where the system tells it.
fn version() -> String {
    let query = std::process::Command::new("dpkg-query")
        .args(["-W", "-f", "${Version}", "libpmemobj1"])
        .output();
    let package = query.ok().filter(|output| output.status.success());
    let package =
        package.map(|output| format!(", package {}", String::from_utf8_lossy(&output.stdout)));
    peers::version() + &package.unwrap_or_default()
}

fn said(error: peers::PeerError) -> Error {
    Error::side(NAME)(error)
}

impl Side for Pmdk {
    fn name(&self) -> &str {
        NAME
    }

    fn role(&self) -> Role {
        Role::Peer
    }

    fn domain(&self) -> &str {
        "dram"
    }

    fn version(&self) -> Option<String> {
        Some(version())
    }

    fn cells(&self, dir: &Path, ring: &[u32], objects_max: usize) -> Result<Box<dyn side::Cells>> {
        let cells = peers::Cells::open(&dir.join(NAME), POOL_SIZE, AREA_SIZE, objects_max, ring);
        Ok(Box::new(cells.map_err(said)?))
    }

    fn swap(&self, dir: &Path, count: usize) -> Result<Box<dyn side::Swap>> {
        let swap = peers::Swap::open(&dir.join(NAME), POOL_SIZE, count).map_err(said)?;
        Ok(Box::new(PmdkSwap { swap, count }))
    }

    fn array(&self, dir: &Path, count: usize) -> Result<Box<dyn side::Array>> {
        let array = peers::Array::open(&dir.join(NAME), POOL_SIZE, count).map_err(said)?;
        Ok(Box::new(PmdkArray { array, count }))
    }

    fn list(&self, dir: &Path) -> Result<Box<dyn side::List>> {
        Ok(Box::new(
            peers::List::open(&dir.join(NAME), POOL_SIZE).map_err(said)?,
        ))
    }

    fn tree(&self, dir: &Path) -> Result<Box<dyn side::Tree>> {
        Ok(Box::new(
            peers::Tree::open(&dir.join(NAME), POOL_SIZE).map_err(said)?,
        ))
    }

    fn map(&self, dir: &Path, bucket_bits: u32) -> Result<Box<dyn side::Map>> {
        Ok(Box::new(
            peers::Map::open(&dir.join(NAME), POOL_SIZE, bucket_bits).map_err(said)?,
        ))
    }

    fn stack(&self, dir: &Path) -> Result<Box<dyn side::List>> {
        Ok(Box::new(
            programs::Stack::open(&dir.join(NAME), POOL_SIZE).map_err(said)?,
        ))
    }

    fn numbers(&self, dir: &Path, kind: NumbersKind) -> Result<Box<dyn side::Tree>> {
        let kind = match kind {
            NumbersKind::Bst => peers::NumbersKind::Bst,
            NumbersKind::Hash => peers::NumbersKind::Hash,
            NumbersKind::BPlus => peers::NumbersKind::BPlus,
        };
        Ok(Box::new(
            peers::Numbers::open(&dir.join(NAME), POOL_SIZE, kind).map_err(said)?,
        ))
    }

    fn store(&self, dir: &Path) -> Result<Box<dyn side::TextStore>> {
        Ok(Box::new(
            programs::Store::open(&dir.join(NAME), POOL_SIZE).map_err(said)?,
        ))
    }

    fn words(&self, dir: &Path) -> Result<Box<dyn side::Words>> {
        Ok(Box::new(
            programs::Words::open(&dir.join(NAME), POOL_SIZE).map_err(said)?,
        ))
    }

    fn shared(&self, dir: &Path, shape: SharedShape) -> Result<Box<dyn side::Shared>> {
        let path = dir.join(NAME);
        let numbers = |kind| -> Result<Box<dyn side::Shared>> {
            let numbers = peers::Numbers::open(&path, POOL_SIZE, kind).map_err(said)?;
            Ok(Box::new(Locked::new(numbers)))
        };
        Ok(match shape {
            SharedShape::Tree => {
                let tree = peers::Tree::open(&path, POOL_SIZE).map_err(said)?;
                Box::new(Locked::new(tree))
            }
            SharedShape::Map { bucket_bits } => {
                let map = peers::Map::open(&path, POOL_SIZE, bucket_bits).map_err(said)?;
                Box::new(Locked::new(map))
            }
            SharedShape::Sorted => numbers(peers::NumbersKind::Sorted)?,
            SharedShape::RedBlack => numbers(peers::NumbersKind::RedBlack)?,
            SharedShape::Fixed => numbers(peers::NumbersKind::Fixed)?,
            SharedShape::Hash => numbers(peers::NumbersKind::Hash)?,
        })
    }
}

struct PmdkSwap {
    swap: peers::Swap,
    count: usize,
}

struct PmdkArray {
    array: peers::Array,
    count: usize,
}

fn scans(scans: &[Scan]) -> &[peers::Scan] {
    const {
        assert!(
            size_of::<Scan>() == size_of::<peers::Scan>()
                && align_of::<Scan>() == align_of::<peers::Scan>()
        )
    };
    // SAFETY: both are repr(C) structs of the same three integers, key, value and length.
    unsafe { std::slice::from_raw_parts(scans.as_ptr().cast(), scans.len()) }
}

fn ops(ops: &[Op]) -> &[peers::Op] {
    const {
        assert!(
            size_of::<Op>() == size_of::<peers::Op>()
                && align_of::<Op>() == align_of::<peers::Op>()
        )
    };
    // SAFETY: both are repr(C) structs of the same two integers, key and value.
    unsafe { std::slice::from_raw_parts(ops.as_ptr().cast(), ops.len()) }
}

fn texts(texts: &Texts) -> programs::Texts<'_> {
    programs::Texts::new(&texts.text, texts.key_len, texts.value_len)
}

fn walk(walk: peers::Walk) -> Walk {
    Walk {
        count: walk.count,
        sum: walk.sum,
        sorted: walk.sorted == 1,
    }
}

impl side::Cells for peers::Cells {
    fn area(&self) -> &[u8] {
        self.area(AREA_SIZE)
    }

    fn floor(&mut self, stride: usize, count: usize) -> Result<()> {
        self.floor(stride, count).map_err(said)
    }

    fn tx_empty(&mut self, count: usize) -> Result<()> {
        self.tx_empty(count).map_err(said)
    }

    fn add(&mut self, stride: usize, image: &[u8], count: usize) -> Result<()> {
        self.add(stride, image, count).map_err(said)
    }

    fn alloc(&mut self, image: &[u8], count: usize) -> Result<()> {
        self.alloc(image, count).map_err(said)
    }

    fn objects_sum(&self) -> u64 {
        self.objects_sum()
    }

    fn free(&mut self, count: usize) -> Result<()> {
        self.free(count).map_err(said)
    }

    fn deref(&mut self, count: usize) -> u64 {
        self.deref(count)
    }

    fn chase(&mut self, steps: usize) -> u64 {
        self.chase(steps)
    }
}

impl side::Swap for PmdkSwap {
    fn values(&self) -> &[u64] {
        self.swap.values(self.count)
    }

    fn run(&mut self, pairs: &[[u32; 2]], per_tx: usize) -> Result<()> {
        self.swap.run(pairs, per_tx).map_err(said)
    }
}

impl side::Array for PmdkArray {
    fn euler(&self, part: Range<usize>, per_tx: usize) -> Result<()> {
        assert!(part.end <= self.count);
        self.array.euler(part, per_tx).map_err(said)
    }

    fn numbers(&self) -> &[f64] {
        self.array.numbers(self.count)
    }
}

impl side::List for peers::List {
    fn append(&mut self, values: &[u64]) -> Result<()> {
        self.append(values).map_err(said)
    }

    fn sum(&mut self) -> Walk {
        walk(self.sum())
    }

    fn pop(&mut self, count: usize) -> Result<u64> {
        self.pop(count).map_err(said)
    }
}

impl side::Tree for peers::Tree {
    fn serve(&mut self, requests: &[Scan]) -> Result<u64> {
        self.serve(scans(requests)).map_err(said)
    }

    fn insert(&mut self, entries: &[Op]) -> Result<()> {
        self.insert(ops(entries)).map_err(said)
    }

    fn lookup(&self, keys: &[u64]) -> u64 {
        self.lookup(keys)
    }

    fn delete(&mut self, keys: &[u64]) -> Result<u64> {
        self.delete(keys).map_err(said)
    }

    fn walk(&mut self) -> Walk {
        walk(self.walk())
    }
}

impl side::Map for peers::Map {
    fn load(&mut self, entries: &[Op]) -> Result<()> {
        self.load(ops(entries)).map_err(said)
    }

    fn run(&mut self, requests: &[Op]) -> Result<u64> {
        self.run(ops(requests)).map_err(said)
    }

    fn walk(&mut self) -> Walk {
        walk(self.walk())
    }
}

impl side::List for programs::Stack {
    fn append(&mut self, values: &[u64]) -> Result<()> {
        self.push(values).map_err(said)
    }

    fn sum(&mut self) -> Walk {
        walk(self.sum())
    }

    fn pop(&mut self, count: usize) -> Result<u64> {
        self.pop(count).map_err(said)
    }
}

impl side::Tree for peers::Numbers {
    fn insert(&mut self, entries: &[Op]) -> Result<()> {
        self.insert(ops(entries)).map_err(said)
    }

    fn lookup(&self, keys: &[u64]) -> u64 {
        self.find(keys)
    }

    fn delete(&mut self, keys: &[u64]) -> Result<u64> {
        self.remove(keys).map_err(said)
    }

    fn walk(&mut self) -> Walk {
        walk(self.walk())
    }
}

impl side::TextStore for programs::Store {
    fn put(&mut self, pairs: &Texts) -> Result<()> {
        self.put(texts(pairs)).map_err(said)
    }

    fn append(&mut self, pairs: &Texts) -> Result<()> {
        self.append(texts(pairs)).map_err(said)
    }

    fn read(&self, pairs: &Texts) -> u64 {
        self.read(texts(pairs))
    }

    fn delete(&mut self, pairs: &Texts) -> Result<u64> {
        self.delete(texts(pairs)).map_err(said)
    }

    fn walk(&mut self) -> Walk {
        walk(self.walk())
    }
}

impl side::Words for programs::Words {
    fn bring(&mut self, text: &str) -> Result<()> {
        self.bring(text).map_err(said)
    }

    fn count(&self, thread: usize, threads: usize) -> Result<()> {
        self.count(thread, threads).map_err(said)
    }

    fn walk(&mut self) -> Walk {
        walk(self.walk())
    }
}

// SAFETY: libpmemobj's objects may be used from any thread; reading only reads.
unsafe impl Reinserted for peers::Tree {}

// SAFETY: as above.
unsafe impl Reinserted for peers::Numbers {}

// SAFETY: as above.
unsafe impl InTurns for peers::Map {
    const STEPS: usize = 1;

    fn load(&mut self, entries: &[Op]) -> Result<()> {
        side::Map::load(self, entries)
    }

    fn update(&mut self, _: usize, op: &Op) -> Result<()> {
        side::Map::run(self, std::slice::from_ref(op)).map(drop)
    }

    fn read(&self, key: u64) -> u64 {
        self.read(key)
    }

    fn walk(&mut self) -> Walk {
        side::Map::walk(self)
    }
}
