//! What a transaction costs: fences, or syncs on a file system.

use durum::{Domain, Error, StoreOptions, Tx, thread_counters};

use crate::{push, push_in, store};

#[test]
fn two_fences_for_what_a_seal_can_name_and_four_for_any_more() {
    let (_dir, _store, pool, root) = store(StoreOptions::new());
    push(&pool, root, 0).unwrap();
    let cost = |body: &mut dyn FnMut(&Tx)| {
        let before = thread_counters();
        pool.transaction(|tx| {
            body(tx);
            Ok::<_, Error>(())
        })
        .unwrap();
        let cost = thread_counters() - before;
        (cost.fences, cost.write_backs + cost.streamed_lines)
    };
    let nodes = std::cell::RefCell::new(Vec::new());
    // SAFETY: the root is live, and nobody else is there.
    unsafe {
        assert_eq!(cost(&mut |_| ()), (0, 0));
        for lines in [1usize, 2, 30, 60, 128] {
            let change = &mut |tx: &Tx| {
                for line in 0..lines {
                    let word = &raw mut (*root).words[line * 8];
                    // Announced twice, and by parts: once for each copy all the same.
                    tx.add(word).unwrap();
                    tx.add(word).unwrap();
                    *word += 1;
                    tx.add(word.add(3)).unwrap();
                    *word.add(3) += 1;
                }
            };
            // The root is aligned to 16 bytes only, so that a word and the fourth after it may lie in two lines.
            let touched: std::collections::BTreeSet<usize> = (0..lines)
                .flat_map(|line| [line * 8, line * 8 + 3])
                .map(|word| (&raw const (*root).words[word]).addr() / 64)
                .collect();
            // A range for each word, eight bytes and sixteen for all.
            let ranges = 2 * lines as u64;
            let (fences, more) = match ranges <= 126 {
                true => (2, (16 + 8 * ranges).div_ceil(64) + 1),
                false => (3, 1),
            };
            let lines = 2 * touched.len() as u64;
            assert_eq!(cost(change), (fences, lines + more), "{ranges} ranges");
        }
        let mut both = |tx: &Tx| {
            for value in 0..100 {
                push_in(tx, root, value).unwrap();
                let node = tx.alloc_bytes(&pool, 0, 4000, 8).unwrap();
                node.write_bytes(1, 4000);
                nodes.borrow_mut().push(node);
            }
        };
        // One of them makes up for the next state, which the large transaction before could not leave.
        assert_eq!(cost(&mut both).0, 4, "allocations cost no fence");
        let mut one = |tx: &Tx| {
            push_in(tx, root, 1).unwrap();
            let node = tx.alloc_bytes(&pool, 0, 300_000, 8).unwrap();
            node.write_bytes(1, 300_000);
            nodes.borrow_mut().push(node);
        };
        assert_eq!(cost(&mut one).0, 3);
        assert_eq!(cost(&mut one).0, 2);
        assert_eq!(
            cost(&mut |tx| nodes
                .borrow_mut()
                .drain(..)
                .for_each(|node| tx.free(node).unwrap()))
            .0,
            2
        );
        assert_eq!(
            cost(&mut |tx| tx.set(&raw mut (*root).words[0], 7).unwrap()).0,
            2
        );
        let all = &raw const (*root).words;
        let (fences, write_backs) = cost(&mut |tx| {
            tx.add(all).unwrap();
            (*root).words[500] += 1;
        });
        // What was announced is written back in main, but only what differs is copied.
        assert_eq!((fences, write_backs), (2, 8192 / 64 + 1 + 1 + 2));
        let before = thread_counters();
        pool.persist(&raw const (*root).words[0], 8).unwrap();
        let cost = thread_counters() - before;
        assert_eq!(
            (cost.fences, cost.write_backs),
            (2, 3),
            "and the seal is forgotten"
        );
        let before = thread_counters();
        pool.persist(&raw const (*root).words[0], 8).unwrap();
        let cost = thread_counters() - before;
        assert_eq!((cost.fences, cost.write_backs), (1, 2));
    }
}

#[test]
fn an_aborted_transaction_costs_one_fence() {
    let (_dir, _store, pool, root) = store(StoreOptions::new());
    push(&pool, root, 0).unwrap();
    let before = thread_counters();
    let result = pool.transaction(|tx| unsafe {
        tx.add(&raw const (*root).words[0])?;
        (*root).words[0] = 1;
        tx.abort::<()>()
    });
    assert!(matches!(result, Err(Error::Aborted)));
    assert_eq!((thread_counters() - before).fences, 1);
    assert_eq!(unsafe { (*root).words[0] }, 0);
}

#[test]
fn two_syncs_on_a_file_system() {
    let (_dir, _store, pool, root) = store(StoreOptions::new().domain(Domain::File));
    push(&pool, root, 0).unwrap();
    for value in 1..4 {
        let before = thread_counters();
        push(&pool, root, value).unwrap();
        assert_eq!((thread_counters() - before).syncs, 2);
    }
    let before = thread_counters();
    let aborted = pool.transaction(|tx| {
        push_in(tx, root, 9)?;
        tx.abort::<()>()
    });
    assert!(aborted.is_err());
    assert_eq!((thread_counters() - before).syncs, 0, "nothing has leaked");
}
