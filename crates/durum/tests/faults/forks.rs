//! Programs that fork.

use durum::{Error, StoreOptions};

use crate::support::pool_options;
use crate::{increment, open, support};

#[test]
#[ignore = "the other process of the test below"]
fn forks_and_uses_the_pool_in_the_child() {
    let Some(dir) = support::directory() else {
        return;
    };
    let (store, pool, root) = open(&dir, StoreOptions::new(), pool_options());
    increment(&pool, root).unwrap();
    // SAFETY: this process has one thread that matters; the child only tries the handles and exits.
    match unsafe { libc::fork() } {
        0 => {
            let pool_refuses =
                matches!(pool.transaction(|_| Ok::<_, Error>(())), Err(Error::Forked));
            let store_refuses =
                matches!(store.open_pool("pool", pool_options()), Err(Error::Forked));
            let usage_refuses = matches!(pool.usage(), Err(Error::Forked));
            let refuses = pool_refuses && store_refuses && usage_refuses;
            std::process::exit(if refuses { 0 } else { 1 });
        }
        child => {
            let mut status = 0;
            // SAFETY: waits for the child just forked.
            unsafe { libc::waitpid(child, &mut status, 0) };
            increment(&pool, root).unwrap();
            drop((pool, store));
            std::process::exit(if status == 0 { 0 } else { 2 });
        }
    }
}

#[test]
#[ignore = "the other process of the test below"]
fn forks_inside_a_transaction() {
    let Some(dir) = support::directory() else {
        return;
    };
    let (store, pool, root) = open(&dir, StoreOptions::new(), pool_options());
    let mut child = 0;
    // From the second one on words of its puddle are announced without a call.
    increment(&pool, root).unwrap();
    pool.transaction(|tx| {
        // SAFETY: the root is this thread's alone.
        unsafe { tx.add(&raw const root.count)? };
        root.count = 1;
        // SAFETY: this process has one thread that matters; the child only tries the handles and exits.
        child = unsafe { libc::fork() };
        if child != 0 {
            return Ok::<(), Error>(());
        }
        let word = &raw mut root.count;
        // SAFETY: refused before anything is touched.
        let refused = unsafe {
            [
                tx.add(word),
                tx.set(word, 9),
                tx.free(word),
                tx.alloc_bytes(&pool, 0, 8, 8).map(drop),
                pool.root_bytes(0, 8, 8).map(drop),
                pool.persist(word, 8),
            ]
        };
        let all = refused
            .iter()
            .all(|result| matches!(result, Err(Error::Forked)));
        std::process::exit(if all { 0 } else { 1 });
    })
    .unwrap();
    let mut status = 0;
    // SAFETY: waits for the child just forked.
    unsafe { libc::waitpid(child, &mut status, 0) };
    drop((pool, store));
    std::process::exit(if status == 0 { 0 } else { 2 });
}

#[test]
fn a_child_forked_in_a_transaction_is_refused_and_the_parent_commits() {
    let dir = tempfile::tempdir_in("/dev/shm").unwrap();
    let status = support::start("forks::forks_inside_a_transaction", dir.path())
        .wait()
        .unwrap();
    assert!(status.success(), "{status}");
    let (_store, _pool, root) = open(dir.path(), StoreOptions::new(), pool_options());
    assert_eq!(root.count, 1);
}

#[test]
fn a_forked_child_is_refused_and_the_parent_goes_on() {
    let dir = tempfile::tempdir_in("/dev/shm").unwrap();
    let status = support::start("forks::forks_and_uses_the_pool_in_the_child", dir.path())
        .wait()
        .unwrap();
    assert!(status.success(), "{status}");
    let (_store, _pool, root) = open(dir.path(), StoreOptions::new(), pool_options());
    assert_eq!(root.count, 2);
}
