//! Threads that change a Shadow pool beside each other: what they share, and what one leaves the others.

use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc;

use durum::gc::{GcOptions, collect};
use durum::{Announce, Engine, Error, Pool, PoolOptions, StoreOptions};

use crate::fixture::Fixture;

fn allocate(pool: &Pool) -> usize {
    let object = pool.transaction(|tx| tx.alloc::<u64>());
    object.unwrap().expose_provenance()
}

fn free(pool: &Pool, object: usize) {
    let object = std::ptr::with_exposed_provenance_mut::<u64>(object);
    // SAFETY: an object that nobody else frees.
    pool.transaction(|tx| unsafe { tx.free(object) }).unwrap();
}

/// Two threads free every other object of the same slabs: they change bits of the same words, without a lock in common,
/// and none is lost at home.
#[test]
fn what_two_threads_free_in_one_slab_is_free_after_reopening() {
    const OBJECTS: usize = 100_000;
    let options = PoolOptions::new().engine(Engine::Shadow);
    let mut fixture = Fixture::with(StoreOptions::new(), options);
    let pool = fixture.pool();
    let mut objects: Vec<usize> = (0..OBJECTS).map(|_| allocate(pool)).collect();
    // Neighbours have their bits in one word.
    objects.sort_unstable();
    let freed = [AtomicUsize::new(0), AtomicUsize::new(0)];
    std::thread::scope(|scope| {
        for half in 0..2 {
            let (objects, freed) = (&objects, &freed);
            scope.spawn(move || {
                for number in 0..OBJECTS / 2 {
                    // Side by side, so that they meet in words.
                    freed[half].store(number, Ordering::Relaxed);
                    while freed[1 - half].load(Ordering::Relaxed) < number {
                        std::hint::spin_loop();
                    }
                    free(pool, objects[2 * number + half]);
                }
                freed[half].store(OBJECTS, Ordering::Relaxed);
            });
        }
    });
    // Nothing leads to this one.
    allocate(pool);
    (fixture.pool, fixture.store) = (None, None);
    let found = collect(fixture.dir.path().join("store"), &GcOptions::new()).unwrap();
    assert_eq!(found.objects(), 1);
}

fn bytes_in(dir: &Path) -> u64 {
    let entries = std::fs::read_dir(dir).unwrap().map(|entry| {
        let entry = entry.unwrap();
        match entry.file_type().unwrap().is_dir() {
            true => bytes_in(&entry.path()),
            false => entry.metadata().unwrap().len(),
        }
    });
    entries.sum()
}

/// Changes 2 KiB of a block.
fn change(pool: &Pool, block: usize, round: usize) {
    let place = std::ptr::with_exposed_provenance_mut::<u8>(block + round % 64 * 4096);
    let changed = pool.transaction(|tx| {
        // SAFETY: bytes of the block that this thread has for itself.
        unsafe {
            tx.add_bytes(place, 2048, Announce::Backup)?;
            place.write_bytes(round as u8, 2048);
        }
        Ok::<_, Error>(())
    });
    changed.unwrap();
}

/// Records of another thread are not home, and it does nothing any more. By how much the store grows while this one
/// logs `rounds` records.
fn growth_beside(sleeps: bool, rounds: usize) -> u64 {
    let options = PoolOptions::new().engine(Engine::Shadow);
    let fixture = Fixture::with(StoreOptions::new(), options);
    let pool = fixture.pool();
    let [own, others] = [(); 2].map(|()| {
        let block = pool.transaction(|tx| tx.alloc_bytes(pool, 0, 1 << 18, 64));
        block.unwrap().expose_provenance()
    });
    let (wake, woken) = mpsc::channel::<()>();
    let (commits, has_committed) = mpsc::channel();
    std::thread::scope(|scope| {
        let other = scope.spawn(move || {
            change(pool, others, 1);
            commits.send(()).unwrap();
            if sleeps {
                let _ = woken.recv();
            }
        });
        has_committed.recv().unwrap();
        if !sleeps {
            other.join().unwrap();
        }
        let before = bytes_in(fixture.dir.path());
        (0..rounds).for_each(|round| change(pool, own, round));
        let growth = bytes_in(fixture.dir.path()) - before;
        drop(wake);
        growth
    })
}

/// Others bring home what such a thread has left, so that their log does not grow.
#[test]
fn threads_that_do_nothing_hold_nobodys_log_up() {
    for sleeps in [false, true] {
        let growth = growth_beside(sleeps, 20_000);
        assert!(growth <= 24 << 20, "sleeps: {sleeps}: {growth}");
    }
}
