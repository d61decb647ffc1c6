//! Room that a pool takes and gives back.

use crate::support::pool_options;
use durum::{Domain, Error, StoreOptions};

use crate::fixture::*;

#[test]
fn space_of_an_aborted_allocation_goes_back() {
    let fixture = Fixture::with(StoreOptions::new(), pool_options().spare_max(0));
    let pool = fixture.pool();
    fixture.root();
    let before = pool.usage().unwrap();
    let aborted: Result<(), Error> = pool.transaction(|tx| {
        tx.alloc_bytes(pool, 0, 20_000_000, 8)?;
        tx.abort()
    });
    assert!(matches!(aborted, Err(Error::Aborted)));
    assert_eq!(pool.usage().unwrap(), before);
    pool.transaction(|tx| {
        let block = tx.alloc_bytes(pool, 0, 20_000_000, 8)?;
        unsafe { tx.free(block) }
    })
    .unwrap();
    assert_eq!(pool.usage().unwrap(), before);
}

/// A removed file takes room as long as something holds it open or mapped.
#[test]
fn nothing_holds_on_to_puddles_that_were_given_back() {
    for domain in [Domain::Dram, Domain::File] {
        let options = StoreOptions::new().domain(domain);
        let fixture = Fixture::with(options, pool_options().spare_max(0));
        let pool = fixture.pool();
        fixture.root();
        for _ in 0..5 {
            let block = pool
                .transaction(|tx| tx.alloc_bytes(pool, 0, 20_000_000, 8))
                .unwrap();
            pool.transaction(|tx| unsafe { tx.free(block) }).unwrap();
        }
        let ours = fixture.dir.path().to_str().unwrap();
        let gone = |text: &str| text.contains(ours) && text.contains("(deleted)");
        let files = std::fs::read_dir("/proc/self/fd").unwrap();
        let held = files
            .filter_map(|file| std::fs::read_link(file.ok()?.path()).ok())
            .filter(|path| gone(&path.to_string_lossy()))
            .count();
        let maps = std::fs::read_to_string("/proc/self/maps").unwrap();
        let mapped = maps.lines().filter(|line| gone(line)).count();
        assert_eq!((held, mapped), (0, 0), "{domain:?}");
    }
}

#[test]
fn a_pool_grows_and_gives_back() {
    let mut fixture = Fixture::with(StoreOptions::new(), pool_options().spare_max(4 << 20));
    let handle = fixture.pool().clone();
    let pool = &handle;
    let root = fixture.root() as *mut Root;
    let mut blocks = Vec::new();
    for _ in 0..40 {
        blocks.push(
            pool.transaction(|tx| tx.alloc_bytes(pool, 0, 300_000, 8))
                .unwrap(),
        );
    }
    blocks.push(
        pool.transaction(|tx| tx.alloc_bytes(pool, 0, 9_000_000, 4096))
            .unwrap(),
    );
    assert_eq!(blocks.last().unwrap().addr() % 4096, 0);
    for value in 0..100_000 {
        push(pool, root, value);
    }
    let grown = pool.usage().unwrap();
    assert!(grown.puddles > 3);
    for block in blocks {
        pool.transaction(|tx| unsafe { tx.free(block) }).unwrap();
    }
    loop {
        let more = pool
            .transaction(|tx| unsafe {
                let node = (*root).head;
                if node.is_null() {
                    return Ok::<_, Error>(false);
                }
                tx.set(&raw mut (*root).head, (*node).next)?;
                tx.free(node)?;
                Ok(true)
            })
            .unwrap();
        if !more {
            break;
        }
    }
    let shrunk = pool.usage().unwrap();
    assert!(shrunk.bytes <= 6 << 20, "{shrunk:?}");
    drop(handle);
    fixture.reopen(StoreOptions::new());
    let closed = fixture.pool().usage().unwrap();
    assert_eq!(
        (closed.puddles, closed.bytes),
        (1, 2 << 20),
        "only the root's puddle is left on disk"
    );
}
