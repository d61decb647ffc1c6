//! Random stores agree with a model.

use durum::{Announce, Error};

use crate::{Random, everywhere, root};

/// Bytes of a large object and of the root, changed in every way there is, beside a model of them.
#[test]
fn random_stores_agree_with_a_model() {
    everywhere(|mut fixture| {
        const SIZE: usize = 9 << 20;
        let seed = 0x7365_6374;
        println!("seed {seed}");
        let mut random = Random(seed);
        let pool = fixture.pool().clone();
        let root_object = root(&pool);
        pool.transaction(|tx| unsafe {
            let area = tx.alloc_bytes(&pool, 0, SIZE, 8)?;
            area.write_bytes(0, SIZE);
            tx.set(&raw mut root_object.area, area)
        })
        .unwrap();
        let mut model = vec![0u8; SIZE];
        let mut area = root_object.area;
        let mut pool = pool;
        for round in 0..120 {
            let before = model.clone();
            let stores: Vec<(usize, usize, u8)> = (0..random.below(60))
                .map(|_| {
                    let len = match random.below(20) {
                        0 => random.below(40_000),
                        _ => 1 + random.below(16),
                    };
                    (random.below(SIZE - len), len, random.below(256) as u8)
                })
                .collect();
            let fails = random.below(4) == 0;
            let kind = random.below(4);
            let outcome = |tx: &durum::Tx| if fails { tx.abort() } else { Ok(()) };
            let mut store = |(at, len, byte): (usize, usize, u8)| {
                unsafe { area.add(at).write_bytes(byte, len) };
                model[at..at + len].fill(byte);
            };
            let result: Result<(), Error> = match kind {
                // Announced, in a transaction.
                0 => pool.transaction(|tx| {
                    for place in &stores {
                        unsafe { tx.add_bytes(area.add(place.0), place.1, Announce::Backup)? };
                        store(*place);
                    }
                    outcome(tx)
                }),
                // Announced in part, in a section.
                1 => unsafe {
                    pool.section(|tx| {
                        for (index, place) in stores.iter().enumerate() {
                            store(*place);
                            if index % 3 == 0 {
                                tx.add_bytes(area.add(place.0), place.1, Announce::Backup)?;
                                // Or announced too late, and left alone then.
                                if index % 2 == 0 {
                                    store((place.0, place.1, place.2 ^ 1));
                                }
                            }
                        }
                        outcome(tx)
                    })
                },
                _ => unsafe {
                    pool.section(|tx| {
                        stores.iter().for_each(|place| store(*place));
                        outcome(tx)
                    })
                },
            };
            assert_eq!(result.is_err(), fails, "{result:?}");
            if fails {
                model = before;
            }
            let now = unsafe { std::slice::from_raw_parts(area, SIZE) };
            assert!(now == model, "round {round}, kind {kind}, fails {fails}");
            if round % 10 == 9 {
                drop(pool);
                fixture.reopen();
                pool = fixture.pool().clone();
                area = root(&pool).area;
                let now = unsafe { std::slice::from_raw_parts(area, SIZE) };
                assert!(now == model, "after reopening, round {round}");
            }
        }
    });
}
