//! Sections: what plain stores change is durable all at once, or not at all.
//!
//! A page that is not found is noticed here: private pages go away when a pool closes, and what was not logged with
//! them.

#![allow(
    clippy::undocumented_unsafe_blocks,
    reason = "tests use pools as programs do: their objects are live, and theirs alone"
)]

mod changes;
mod ended;
mod exclusion;
mod random;
#[path = "../support/mod.rs"]
mod support;

use durum::{Domain, Engine, PageTracking, Pool, PoolOptions, Store, StoreOptions};
use durum_service::{self as service, CheckOptions, Severity};

const TRACKERS: [PageTracking; 2] = [PageTracking::Userfaultfd, PageTracking::Mprotect];
const DOMAINS: [Domain; 2] = [Domain::Dram, Domain::File];

fn options(tracking: PageTracking) -> PoolOptions {
    PoolOptions::new()
        .engine(Engine::Shadow)
        .page_tracking(tracking)
        .root_puddle_size(4 << 20)
}

/// A store with a pool, on memory or on an ordinary file system.
struct Fixture {
    pool: Option<Pool>,
    store: Option<Store>,
    dir: tempfile::TempDir,
    tracking: PageTracking,
    domain: Domain,
}

impl Fixture {
    fn new(tracking: PageTracking, domain: Domain) -> Self {
        let parent = match domain {
            Domain::File => env!("CARGO_TARGET_TMPDIR"),
            _ => "/dev/shm",
        };
        let dir = tempfile::tempdir_in(parent).unwrap();
        let store_options = StoreOptions::new().domain(domain);
        let store = Store::create(dir.path().join("store"), store_options).unwrap();
        let pool = store.create_pool("pool", options(tracking)).unwrap();
        Self {
            pool: Some(pool),
            store: Some(store),
            dir,
            tracking,
            domain,
        }
    }

    fn pool(&self) -> &Pool {
        self.pool.as_ref().unwrap()
    }

    fn close(&mut self) {
        self.pool = None;
        self.store.take().unwrap().close().unwrap();
        let path = self.dir.path().join("store");
        let report = service::check(&path, &CheckOptions::default()).unwrap();
        let worst = report
            .findings
            .iter()
            .find(|finding| finding.severity > Severity::Leak);
        assert!(worst.is_none(), "{}", worst.unwrap());
    }

    fn reopen(&mut self) {
        self.close();
        let store_options = StoreOptions::new().domain(self.domain);
        let store = Store::open(self.dir.path().join("store"), store_options).unwrap();
        self.pool = Some(store.open_pool("pool", options(self.tracking)).unwrap());
        self.store = Some(store);
    }
}

fn everywhere(test: impl Fn(Fixture)) {
    for tracking in TRACKERS {
        for domain in DOMAINS {
            println!("{tracking:?} on {domain:?}");
            test(Fixture::new(tracking, domain));
        }
    }
}

const WORDS: usize = 300_000;

#[repr(C)]
struct Root {
    words: [u64; WORDS],
    area: *mut u8,
    area_size: u64,
    nodes: [*mut [u64; 5]; 64],
}
durum::describe!(Root as "section root" { words, area, area_size, nodes });

fn root(pool: &Pool) -> &'static mut Root {
    unsafe { &mut *pool.root::<Root>().unwrap() }
}

/// Random numbers that a seed repeats.
struct Random(u64);

impl Random {
    fn below(&mut self, end: usize) -> usize {
        self.0 = self
            .0
            .wrapping_mul(6364136223846793005)
            .wrapping_add(1442695040888963407);
        (self.0 >> 33) as usize % end
    }
}
