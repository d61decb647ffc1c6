//! A pool of many puddles, each full of one block, and the ways in which they are mapped.

use std::path::Path;

use durum::{Delays, Domain, Engine, Pool, PoolOptions, PuddleMapping, Store, StoreOptions};

/// Where files take no time.
pub const IN_MEMORY: &str = "/dev/shm";

pub const BLOCKS: usize = 34;
/// An object so large that a puddle of 2 MiB holds one.
pub const BLOCK_BYTES: usize = 1_200_000;
pub const PUDDLE: usize = 2 << 20;

#[repr(C)]
pub struct Root {
    pub blocks: [*mut u8; 512],
}
durum::describe!(Root as "on demand root" { blocks });

/// As large as a block without a type. The words before its pointer, and those of the filler, are the program's.
#[repr(C)]
pub struct Block {
    words: [u64; POINTER],
    other: *mut Block,
    filler: [u64; BLOCK_BYTES / 8 - POINTER - 1],
}
durum::describe!(Block as "on demand block" { words, other, filler });

/// Which word of a block is its pointer: to the block so much further on.
const POINTER: usize = 127;
const FURTHER_ON: usize = 7;

pub const ENGINES: [Engine; 3] = [Engine::Shadow, Engine::Hybrid, Engine::Twin];

pub const WAYS: [PuddleMapping; 3] = [
    PuddleMapping::Userfaultfd,
    PuddleMapping::Signal,
    PuddleMapping::Eager,
];

pub fn domains() -> [Domain; 3] {
    [
        Domain::Dram,
        Domain::Emulated(Delays::STT_RAM),
        Domain::File,
    ]
}

/// Runs `test` with each engine and domain, in a directory of its own.
pub fn everywhere(test: impl Fn(&Path, Engine, Domain)) {
    everywhere_in(Path::new(IN_MEMORY), test);
}

/// As [`everywhere`], in directories of that place.
pub fn everywhere_in(place: &Path, test: impl Fn(&Path, Engine, Domain)) {
    for engine in ENGINES {
        for domain in domains() {
            println!("{} {domain:?}", engine.name());
            let dir = tempfile::tempdir_in(place).unwrap();
            test(dir.path(), engine, domain);
        }
    }
}

pub fn pool_options(engine: Engine) -> PoolOptions {
    PoolOptions::new().engine(engine).growth_max(PUDDLE as u64)
}

/// Makes the pool: word 0 of each block is its index.
pub fn make(dir: &Path, engine: Engine, domain: Domain, blocks: usize) {
    make_of(dir, engine, domain, blocks, |tx, pool| {
        tx.alloc_bytes(pool, 0, BLOCK_BYTES, 8)
    });
}

/// As [`make`], but each block has a type, and a pointer to another one: the store can move.
pub fn make_movable(dir: &Path, engine: Engine, domain: Domain, blocks: usize) {
    make_of(dir, engine, domain, blocks, |tx, _| {
        tx.alloc::<Block>().map(<*mut Block>::cast)
    });
    let opened = try_open(dir, domain, PuddleMapping::Eager, PoolOptions::new()).unwrap();
    for block in 0..blocks {
        opened
            .pool
            .transaction(|tx| unsafe {
                let pointer = opened.word(block, POINTER).cast::<*mut u64>();
                tx.add(pointer)?;
                pointer.write(opened.blocks[(block + FURTHER_ON) % blocks]);
                Ok::<_, durum::Error>(())
            })
            .unwrap();
    }
    opened.close();
}

fn make_of(
    dir: &Path,
    engine: Engine,
    domain: Domain,
    blocks: usize,
    alloc: impl Fn(&durum::Tx, &Pool) -> Result<*mut u8, durum::Error>,
) {
    let options = StoreOptions::new()
        .domain(domain)
        .mapping(PuddleMapping::Eager);
    let store = Store::create(dir.join("store"), options).unwrap();
    let pool = store.create_pool("pool", pool_options(engine)).unwrap();
    let root = pool.root::<Root>().unwrap();
    for index in 0..blocks {
        pool.transaction(|tx| unsafe {
            let block = alloc(tx, &pool)?;
            tx.add_bytes(block, 64 * 8, durum::Announce::Clobber)?;
            block.cast::<[u64; 64]>().write([0; 64]);
            block.cast::<u64>().write(index as u64);
            tx.add(&raw const (*root).blocks[index])?;
            (*root).blocks[index] = block;
            Ok::<_, durum::Error>(())
        })
        .unwrap();
    }
    assert_eq!(
        pool.usage().unwrap().puddles,
        blocks,
        "the first is beside the root"
    );
    drop(pool);
    store.close().unwrap();
}

/// Copies a directory, as a person would.
pub fn copy(from: &Path, to: &Path) {
    let copied = std::process::Command::new("cp")
        .args(["-r", "--sparse=always"])
        .args([from, to])
        .status();
    assert!(copied.unwrap().success());
}

/// An open store, its pool, and the words of each block.
pub struct Opened {
    pub store: Store,
    pub pool: Pool,
    pub blocks: Vec<*mut u64>,
}

// SAFETY: tests share the blocks as they please, each thread with words of its own.
unsafe impl Sync for Opened {}

impl Opened {
    pub fn close(self) {
        let Self { store, pool, .. } = self;
        drop(pool);
        store.close().unwrap();
    }

    /// A word of a block.
    pub fn word(&self, block: usize, word: usize) -> *mut u64 {
        self.blocks[block].wrapping_add(word)
    }

    pub fn load(&self, block: usize, word: usize) -> u64 {
        unsafe { self.word(block, word).read_volatile() }
    }

    /// Follows the pointer of a block, whose blocks are movable.
    pub fn follow(&self, block: usize) {
        let pointer = self.word(block, POINTER).cast::<*mut u64>();
        let other = (block + FURTHER_ON) % self.blocks.len();
        assert_eq!(unsafe { pointer.read_volatile() }, self.blocks[other]);
        assert_eq!(self.load(other, 0), other as u64);
    }

    /// Adds one to a word, in a transaction.
    pub fn increment(&self, block: usize, word: usize) -> Result<(), durum::Error> {
        self.pool.transaction(|tx| unsafe {
            let word = self.word(block, word);
            tx.add(word)?;
            *word += 1;
            Ok(())
        })
    }
}

pub fn open(dir: &Path, domain: Domain, mapping: PuddleMapping) -> Opened {
    let opened = try_open(dir, domain, mapping, PoolOptions::new()).unwrap();
    let waiting = opened.pool.puddles_waiting();
    match mapping {
        PuddleMapping::Eager => assert_eq!(waiting, 0),
        _ => assert!(waiting > opened.blocks.len() / 2, "only {waiting} wait"),
    }
    opened
}

pub fn try_open(
    dir: &Path,
    domain: Domain,
    mapping: PuddleMapping,
    options: PoolOptions,
) -> Result<Opened, durum::Error> {
    let store = Store::open(
        dir.join("store"),
        StoreOptions::new().domain(domain).mapping(mapping),
    )?;
    let pool = store.open_pool("pool", options)?;
    let root = pool.root::<Root>()?;
    let blocks = unsafe { (*root).blocks };
    let blocks = blocks.into_iter().filter(|block| !block.is_null());
    Ok(Opened {
        blocks: blocks.map(<*mut u8>::cast).collect(),
        store,
        pool,
    })
}

/// Numbers that differ by their seed alone.
pub struct Random(pub u64);

impl Random {
    pub fn below(&mut self, end: usize) -> usize {
        self.0 = self
            .0
            .wrapping_mul(6364136223846793005)
            .wrapping_add(1442695040888963407);
        (self.0 >> 33) as usize % end
    }
}

/// The file of the puddle that a block lies in. The store is closed.
pub fn file_of(dir: &Path, block: *mut u64) -> std::path::PathBuf {
    let path = dir.join("store");
    let store = durum_service::ReadOnlyStore::open(&path).unwrap();
    let address = block.addr() as u64;
    let puddles = store.puddles();
    let holds = |puddle: &&durum_service::PuddleSummary| {
        (puddle.address..puddle.address + puddle.size).contains(&address)
    };
    let puddle = puddles.iter().find(holds).unwrap();
    path.join("puddles").join(puddle.uuid.to_string())
}
