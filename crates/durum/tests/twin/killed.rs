//! What recovery makes of the copies of a program that was killed, and what it refuses.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::process::ExitStatus;

use durum::{Error, Pool, Store, StoreOptions, TwinMode};

use crate::{Root, files, is_root, listed, push, push_in, store, support, twin};

#[test]
fn a_puddle_born_in_a_transaction_that_is_rolled_back_is_returned() {
    let (dir, _store, pool, root) = store(StoreOptions::new());
    let options = twin().spare_max(0);
    drop(pool);
    let pool = _store.open_pool("pool", options).unwrap();
    push(&pool, root, 1).unwrap();
    let puddles = files(dir.path()).len();
    let result = pool.transaction(|tx| {
        for _ in 0..8 {
            tx.alloc_bytes(&pool, 0, 1_200_000, 8)?;
        }
        assert!(files(dir.path()).len() > puddles);
        tx.abort::<()>()
    });
    assert!(matches!(result, Err(Error::Aborted)));
    assert_eq!(files(dir.path()).len(), puddles);
    // And in one that a crash has cut off.
    drop((pool, _store));
    assert_killed(
        support::start("killed::grows_until_it_is_killed", dir.path())
            .wait()
            .unwrap(),
    );
    let grown = files(dir.path()).len();
    assert!(grown > puddles);
    let store = Store::open(dir.path().join("store"), StoreOptions::new()).unwrap();
    assert_eq!(store.recovery().unwrap().rolled_back, 1);
    drop(store.open_pool("pool", twin()).unwrap());
    assert_eq!(files(dir.path()).len(), puddles);
    let pool = store.open_pool("pool", twin()).unwrap();
    assert_eq!(listed(pool.root().unwrap()), [1]);
}

#[track_caller]
fn assert_killed(status: ExitStatus) {
    use std::os::unix::process::ExitStatusExt;
    assert_eq!(status.signal(), Some(9), "{status}");
}

#[test]
#[ignore = "the other process of the test above"]
fn grows_until_it_is_killed() {
    let Some(dir) = support::directory() else {
        return;
    };
    let store = Store::open(dir.join("store"), StoreOptions::new()).unwrap();
    let pool = store.open_pool("pool", twin()).unwrap();
    let root: *mut Root = pool.root().unwrap();
    let _ = pool.transaction(|tx| {
        push_in(tx, root, 2)?;
        // SAFETY: the root is live, and nobody else is there.
        unsafe {
            tx.add(&raw const (*root).words)?;
            (*root).words.fill(9);
        }
        for _ in 0..8 {
            tx.alloc_bytes(&pool, 0, 1_200_000, 8)?;
        }
        rustix::process::kill_process(rustix::process::getpid(), rustix::process::Signal::KILL)
            .unwrap();
        Ok::<_, Error>(())
    });
}

#[test]
fn a_state_that_is_none_or_seals_that_fit_no_copy_are_refused_and_nothing_is_written() {
    use durum_format::twin::{SEAL_SIZE, STATE_OFFSET, Stage, State, seal_offset};
    let (dir, store, pool, root) = store(StoreOptions::new());
    push(&pool, root, 1).unwrap();
    drop((pool, store));
    assert_killed(
        support::start("killed::grows_until_it_is_killed", dir.path())
            .wait()
            .unwrap(),
    );
    let path = files(dir.path()).into_iter().find(|path| is_root(path));
    let path = path.expect("the root puddle");
    let file = File::options().read(true).write(true).open(&path).unwrap();
    let mut word = [0; 8];
    file.read_exact_at(&mut word, STATE_OFFSET).unwrap();
    let state = State::from_word(u64::from_le_bytes(word)).unwrap();
    assert!(state.stage == Stage::Changing && state.is_listed);
    let contents = || -> Vec<_> {
        let all = files(dir.path());
        all.iter()
            .map(|path| std::fs::read(path).unwrap())
            .collect()
    };
    let assert_refused = |problem: &str| {
        let before = contents();
        let store = Store::open(dir.path().join("store"), StoreOptions::new()).unwrap();
        let text = store.open_pool("pool", twin()).unwrap_err().to_string();
        assert!(
            text.contains(problem) && text.contains("restore a copy"),
            "{text}"
        );
        drop(store);
        assert!(before == contents());
    };
    for damaged in [state.to_word() | 3 << 2, 3, u64::MAX] {
        file.write_all_at(&damaged.to_le_bytes(), STATE_OFFSET)
            .unwrap();
        assert_refused("has no stage");
    }
    // As after a transaction of the same process: which copy is whole only its seal tells.
    let unsettled = State {
        is_settled: false,
        ..state
    };
    file.write_all_at(&unsettled.to_word().to_le_bytes(), STATE_OFFSET)
        .unwrap();
    let size = file.metadata().unwrap().len() / 2;
    let places = [0, 1].map(|before| seal_offset(size, state.generation - before));
    let seals = places.map(|offset| {
        let mut seal = vec![0; SEAL_SIZE];
        file.read_exact_at(&mut seal, offset).unwrap();
        seal
    });
    for damage in [0, 0xff] {
        for offset in places {
            file.write_all_at(&[damage; SEAL_SIZE], offset).unwrap();
        }
        assert_refused("it fits neither copy");
    }
    for (seal, offset) in seals.iter().zip(places) {
        file.write_all_at(seal, offset).unwrap();
    }
    file.write_all_at(&word, STATE_OFFSET).unwrap();
    let store = Store::open(dir.path().join("store"), StoreOptions::new()).unwrap();
    let pool = store.open_pool("pool", twin()).unwrap();
    let root: *mut Root = pool.root().unwrap();
    assert_eq!(listed(root), [1]);
    assert!(unsafe { (*root).words.iter().all(|word| *word == 0) });
}

/// What one mode's transactions leave for the seal to be about: a line that was stored to before without an
/// announcement, and an object that is gone.
fn leaves_what_is_not_in_use(pool: &Pool, root: *mut Root) {
    // SAFETY: the root is live, and nobody else is there.
    unsafe {
        (*root).words[0] = 7;
        pool.transaction(|tx| {
            tx.add(&raw const (*root).words[0])?;
            tx.add(&raw const (*root).words[1000])?;
            (*root).words[1000] = 1;
            let object = tx.alloc_bytes(pool, 0, 400, 8)?;
            object.write_bytes(1, 400);
            tx.free(object)
        })
        .unwrap();
        (*root).words[0] = 8;
        let _ = pool.transaction(|tx| {
            tx.add(&raw const (*root).words[500])?;
            (*root).words[500] = 99;
            let object = tx.alloc_bytes(pool, 0, 400, 8)?;
            object.write_bytes(2, 400);
            rustix::process::kill_process(rustix::process::getpid(), rustix::process::Signal::KILL)
                .unwrap();
            Ok::<_, Error>(())
        });
    }
}

#[test]
#[ignore = "the other process of the test below"]
fn is_killed_after_a_seal_of_what_is_not_in_use() {
    let Some(dir) = support::directory() else {
        return;
    };
    let store = Store::open(dir.join("store"), StoreOptions::new()).unwrap();
    let mode = match dir.join("basic").exists() {
        true => TwinMode::Basic,
        false => TwinMode::Log,
    };
    let pool = store.open_pool("pool", twin().twin_mode(mode)).unwrap();
    leaves_what_is_not_in_use(&pool, pool.root().unwrap());
}

#[test]
fn back_gets_all_that_a_seal_is_about() {
    for is_basic in [false, true] {
        let (dir, store, pool, root) = store(StoreOptions::new());
        drop((pool, store));
        if is_basic {
            File::create(dir.path().join("basic")).unwrap();
        }
        assert_killed(
            support::start(
                "killed::is_killed_after_a_seal_of_what_is_not_in_use",
                dir.path(),
            )
            .wait()
            .unwrap(),
        );
        let store = Store::open(dir.path().join("store"), StoreOptions::new()).unwrap();
        let pool = store.open_pool("pool", twin()).unwrap();
        assert_eq!(root, pool.root().unwrap());
        // SAFETY: the root is live, and nobody else is there.
        let words = unsafe { (*root).words };
        assert_eq!((words[1000], words[500]), (1, 0), "basic: {is_basic}");
    }
}
