//! How much longer commits take while a snapshot is made.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use durum::{Domain, Engine, Error, Pool, PoolOptions, SnapshotOptions, Store, StoreOptions};

use crate::random::Random;

/// 16 objects of 64 MiB.
const OBJECTS: usize = 16;
const WORDS: usize = 8 << 20;

#[repr(C)]
struct Root {
    objects: [*mut u64; OBJECTS],
}
durum::describe!(Root as "measured root" { objects });

fn new_pool(store: &Store, engine: Engine) -> Pool {
    let pool = store
        .create_pool("pool", PoolOptions::new().engine(engine))
        .unwrap();
    let root = pool.root::<Root>().unwrap();
    for at in 0..OBJECTS {
        pool.transaction(|tx| unsafe {
            let object = tx.alloc_bytes(&pool, 0, WORDS * 8, 8)?.cast::<u64>();
            for word in 0..WORDS {
                object.add(word).write((at * WORDS + word) as u64);
            }
            tx.set(&raw mut (*root).objects[at], object)
        })
        .unwrap();
    }
    pool
}

/// Commits swaps of random words as long as it may: what each took, in nanoseconds.
fn swaps(pool: &Pool, may: impl Fn() -> bool) -> Vec<u32> {
    let root = unsafe { &*pool.root::<Root>().unwrap() };
    let mut random = Random::new(1);
    let mut took = Vec::with_capacity(1 << 26);
    while may() {
        let [one, two] = [(), ()].map(|()| {
            let number = random.below(OBJECTS * WORDS);
            unsafe { root.objects[number / WORDS].add(number % WORDS) }
        });
        let began = Instant::now();
        pool.transaction(|tx| unsafe {
            tx.add(one)?;
            tx.add(two)?;
            std::ptr::swap(one, two);
            Ok::<_, Error>(())
        })
        .unwrap();
        took.push(began.elapsed().as_nanos().min(u128::from(u32::MAX)) as u32);
    }
    took
}

fn tell(what: &str, took: &mut [u32]) {
    took.sort_unstable();
    let at = |part: f64| took[((took.len() - 1) as f64 * part) as usize];
    println!(
        "{what}: {} swaps; ns p50 {}, p99 {}, p99.9 {}, p99.99 {}, most {}",
        took.len(),
        at(0.5),
        at(0.99),
        at(0.999),
        at(0.9999),
        at(1.0)
    );
}

#[test]
#[ignore = "a measurement: cargo test --release, alone on the machine"]
fn measure_swaps_beside_a_snapshot() {
    for engine in [Engine::Shadow, Engine::Hybrid, Engine::Twin] {
        let dir = tempfile::tempdir_in("/dev/shm").unwrap();
        let options = StoreOptions::new().domain(Domain::Dram);
        let store = Store::create(dir.path().join("store"), options).unwrap();
        let pool = new_pool(&store, engine);
        let until = Instant::now() + Duration::from_secs(2);
        drop(swaps(&pool, || Instant::now() < until));
        for _ in 0..3 {
            let until = Instant::now() + Duration::from_secs(2);
            let mut alone = swaps(&pool, || Instant::now() < until);
            tell(&format!("{} alone", engine.name()), &mut alone);
            let is_over = AtomicBool::new(false);
            let mut beside = thread::scope(|scope| {
                let committing = scope.spawn(|| swaps(&pool, || !is_over.load(Ordering::Relaxed)));
                thread::sleep(Duration::from_millis(50));
                let began = Instant::now();
                let place = dir.path().join("export");
                pool.snapshot(&place, &SnapshotOptions::new()).unwrap();
                println!("a snapshot of 1 GiB: {:?}", began.elapsed());
                is_over.store(true, Ordering::Relaxed);
                std::fs::remove_dir_all(&place).unwrap();
                committing.join().unwrap()
            });
            tell(&format!("{} beside", engine.name()), &mut beside);
        }
    }
}
