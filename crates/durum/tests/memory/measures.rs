//! What giving pages back takes.

use std::time::{Duration, Instant};

use durum::{Domain, Error};

use crate::{DOMAINS, Fixture, PIECE, Random, alone, make_piece, piece, support};

/// Costs: for docs/internals/engines.md, printed.
#[test]
#[ignore = "a measurement"]
fn measure() {
    if support::directory().is_some() {
        return;
    }
    let Some(_alone) = alone() else { return };
    for domain in DOMAINS {
        let mut fixture = Fixture::new(domain, u64::MAX);
        let pool = fixture.pool();
        for at in 0..64 {
            make_piece(&pool, at, |index| index as u64);
        }
        let began = Instant::now();
        let pages = fixture.give_back();
        let each = began.elapsed().as_nanos() / pages as u128;
        println!("{domain:?}: {pages} pages of large ones, {each} ns each");
        drop(pool);
        fixture.reopen();
        let (pool, root) = (fixture.pool(), fixture.root());
        let touch = |step: usize, tag: u64| {
            let began = Instant::now();
            let mut count = 0;
            for at in 0..64 {
                pool.transaction(|tx| unsafe {
                    for index in (0..PIECE / 8).step_by(512 * step) {
                        let word = &raw mut piece(root, at)[index];
                        tx.add(word)?;
                        *word = tag;
                        count += 1;
                    }
                    Ok::<_, Error>(())
                })
                .unwrap();
            }
            began.elapsed().as_nanos() / count
        };
        for step in [1, 16] {
            let first = touch(step, 1 + step as u64);
            let again = touch(step, 2 + step as u64);
            let began = Instant::now();
            let pages = fixture.give_back();
            let each = began.elapsed().as_nanos() / pages as u128;
            let after = touch(step, 3 + step as u64);
            fixture.give_back();
            println!(
                "{domain:?}: every {step}th page: change {first} ns, again {again}, {pages} pages given back, {each} ns each, change then {after}"
            );
        }
    }
    // The longest commits of a thread, under pressure and not.
    for (name, private_max) in [("never", u64::MAX), ("32 MiB", 32 << 20)] {
        let fixture = Fixture::new(Domain::Dram, private_max);
        let (pool, root) = (fixture.pool(), fixture.root());
        for at in 0..128 {
            make_piece(&pool, at, |index| index as u64);
        }
        let mut random = Random(5);
        let mut times: Vec<Duration> = (0..300_000u64)
            .map(|tag| {
                let word = &raw mut piece(root, random.below(128))[random.below(PIECE / 8)];
                let began = Instant::now();
                pool.transaction(|tx| unsafe {
                    tx.add(word)?;
                    *word = tag;
                    Ok::<_, Error>(())
                })
                .unwrap();
                began.elapsed()
            })
            .collect();
        let sum: Duration = times.iter().sum();
        times.sort_unstable();
        let at = |share: f64| times[((times.len() - 1) as f64 * share) as usize];
        println!(
            "limit {name}: mean {:?}, p50 {:?}, p99 {:?}, p99.9 {:?}, max {:?}, {:?}",
            sum / times.len() as u32,
            at(0.5),
            at(0.99),
            at(0.999),
            at(1.0),
            fixture.store().private_pages()
        );
    }
}
