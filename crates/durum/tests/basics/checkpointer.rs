//! The thread that brings home what was logged on a file system.

use std::time::{Duration, Instant};

use durum::{Domain, Engine, Error, PoolOptions, Store, StoreOptions};

const SIZE: usize = 1 << 20;

fn checkpointers() -> usize {
    let tasks = std::fs::read_dir("/proc/self/task").unwrap();
    let names =
        tasks.filter_map(|task| std::fs::read_to_string(task.ok()?.path().join("comm")).ok());
    // The system keeps fifteen letters.
    names
        .filter(|name| name.trim() == "durum-checkpoin")
        .count()
}

fn wait_for(count: usize) {
    let began = Instant::now();
    while checkpointers() != count {
        assert!(began.elapsed() < Duration::from_secs(20), "{count}");
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// In a process of its own, so that no other test's thread is counted; on one processor, which has to do.
#[test]
#[ignore = "the other process of the test below"]
fn comes_when_there_is_work_and_goes_with_the_store() {
    let Some(dir) = crate::support::directory() else {
        return;
    };
    let mut one = rustix::thread::CpuSet::new();
    one.set(rustix::thread::sched_getcpu());
    rustix::thread::sched_setaffinity(None, &one).unwrap();
    let path = dir.join("store");
    let options = StoreOptions::new().domain(Domain::File).log_max(8 << 20);
    let pool_options = || PoolOptions::new().engine(Engine::Shadow);
    let store = Store::create(&path, options.clone()).unwrap();
    store.create_pool("pool", pool_options()).unwrap();
    store.close().unwrap();
    for round in 1..20u8 {
        let store = Store::open(&path, options.clone()).unwrap();
        let pool = store.open_pool("pool", pool_options()).unwrap();
        let root = pool.root::<u64>().unwrap();
        assert_eq!(checkpointers(), 0, "there is nothing to do yet");
        let object = pool
            .transaction(|tx| {
                let object = tx.alloc_bytes(&pool, 0, SIZE, 8)?;
                unsafe {
                    tx.set(root, object.expose_provenance() as u64)?;
                    object.write_bytes(0, SIZE);
                }
                Ok::<_, Error>(object)
            })
            .unwrap();
        // Several times as much as the log holds. In some rounds the store goes as soon as there is a thread.
        for value in 1..4 + round % 8 * 2 {
            pool.transaction(|tx| unsafe {
                tx.add_bytes(object, SIZE, durum::Announce::Clobber)?;
                object.write_bytes(value, SIZE);
                Ok::<_, Error>(())
            })
            .unwrap();
        }
        wait_for(1);
        drop(pool);
        store.close().unwrap();
        assert_eq!(checkpointers(), 0, "it has ended when the store is closed");
        let store = Store::open(&path, options.clone()).unwrap();
        let pool = store.open_pool("pool", pool_options()).unwrap();
        let root = pool.root::<u64>().unwrap();
        let object = std::ptr::with_exposed_provenance_mut::<u8>(unsafe { *root } as usize);
        let bytes = unsafe { std::slice::from_raw_parts(object, SIZE) };
        assert!(bytes.iter().all(|byte| *byte == 3 + round % 8 * 2));
        pool.transaction(|tx| unsafe { tx.free(object) }).unwrap();
    }
}

#[test]
fn the_checkpointer_comes_and_goes_with_one_processor() {
    let dir = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let name = "checkpointer::comes_when_there_is_work_and_goes_with_the_store";
    let mut child = crate::support::start(name, dir.path());
    assert!(child.wait().unwrap().success());
}
