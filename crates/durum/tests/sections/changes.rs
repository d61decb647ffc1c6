//! What a section changes is durable when it returns, or is put back.

use std::io::Read;
use std::os::unix::fs::FileExt;
use std::panic::{AssertUnwindSafe, catch_unwind};

use durum::{Domain, Error, PageTracking, thread_counters};

use crate::{Fixture, TRACKERS, WORDS, everywhere, root};

#[test]
fn plain_stores_are_durable_when_the_section_returns() {
    everywhere(|mut fixture| {
        let words = &mut root(fixture.pool()).words;
        let places = [0, 1, 511, 512, 513, 70_000, 150_001, WORDS - 1];
        for round in 1..4u64 {
            let result = unsafe {
                fixture.pool().section(|_| {
                    for place in places {
                        words[place] = round * place as u64 + 1;
                    }
                    Ok::<_, Error>(round)
                })
            };
            assert_eq!(result.unwrap(), round);
        }
        fixture.reopen();
        let words = &root(fixture.pool()).words;
        for place in places {
            assert_eq!(words[place], 3 * place as u64 + 1, "word {place}");
        }
        assert_eq!(
            words.iter().filter(|word| **word != 0).count(),
            places.len()
        );
    });
}

#[test]
fn an_error_and_a_panic_put_back_what_was_there() {
    everywhere(|mut fixture| {
        let pool = fixture.pool().clone();
        let words = &raw mut root(&pool).words;
        let words = unsafe { &mut *words };
        pool.transaction(|tx| {
            unsafe { tx.add(words)? };
            for (index, word) in words.iter_mut().enumerate() {
                *word = index as u64;
            }
            Ok::<_, Error>(())
        })
        .unwrap();
        let spoil = |words: &mut [u64; WORDS]| {
            for index in (0..WORDS).step_by(977) {
                words[index] ^= 0xffff;
            }
        };
        let failed = unsafe {
            pool.section(|tx| {
                spoil(words);
                // Announced in the middle: what `add` keeps is not what was there before.
                tx.add(&raw const words[977])?;
                words[977] = 5;
                tx.set(&raw mut words[3], 7)?;
                tx.alloc::<[u64; 5]>()?;
                tx.abort::<()>()
            })
        };
        assert!(matches!(failed, Err(Error::Aborted)), "{failed:?}");
        let is_as_before = |words: &[u64; WORDS]| {
            words
                .iter()
                .enumerate()
                .all(|(index, word)| index as u64 == *word)
        };
        assert!(is_as_before(words));
        let panicked = catch_unwind(AssertUnwindSafe(|| unsafe {
            pool.section::<(), Error>(|_| {
                spoil(words);
                panic!("on purpose");
            })
        }));
        assert!(panicked.is_err());
        assert!(is_as_before(words));
        // The gate is open again.
        std::thread::scope(|scope| {
            scope.spawn(|| pool.transaction(|_| Ok::<_, Error>(())).unwrap());
        });
        drop(pool);
        fixture.reopen();
        assert!(is_as_before(&root(fixture.pool()).words));
    });
}

#[test]
fn allocation_and_announcements_work_inside() {
    everywhere(|mut fixture| {
        let pool = fixture.pool().clone();
        let root_object = root(&pool);
        // A slab that no commit has made durable: its header is in memory only, and the next commit needs it.
        let never: Result<(), Error> = pool.transaction(|tx| {
            tx.alloc::<[u64; 5]>()?;
            tx.abort()
        });
        assert!(never.is_err());
        for fails in [true, false, true] {
            let result = unsafe {
                pool.section(|tx| {
                    for (index, node) in root_object.nodes.iter_mut().enumerate() {
                        if !node.is_null() {
                            tx.free(*node)?;
                        }
                        *node = tx.alloc::<[u64; 5]>()?;
                        **node = [index as u64; 5];
                    }
                    let large = tx.alloc_bytes(&pool, 0, 3 << 20, 8)?;
                    large.write_bytes(9, 3 << 20);
                    if !root_object.area.is_null() {
                        tx.free(root_object.area)?;
                    }
                    root_object.area = large;
                    tx.set(&raw mut root_object.area_size, 3 << 20)?;
                    if fails { tx.abort() } else { Ok(()) }
                })
            };
            assert_eq!(result.is_err(), fails);
        }
        drop(pool);
        fixture.reopen();
        let root_object = root(fixture.pool());
        for (index, node) in root_object.nodes.iter().enumerate() {
            assert_eq!(unsafe { **node }, [index as u64; 5]);
        }
        assert_eq!(root_object.area_size, 3 << 20);
        let area = unsafe { std::slice::from_raw_parts(root_object.area, 3 << 20) };
        assert!(area.iter().all(|byte| *byte == 9));
    });
}

/// A section that changes a word on each of so many pages.
fn change_a_word_of_each(fixture: &Fixture, words: &mut [u64], pages: usize) {
    unsafe {
        fixture.pool().section(|_| {
            let first_of_each = words.iter_mut().step_by(512);
            first_of_each.take(pages).for_each(|word| *word += 1);
            Ok::<_, Error>(())
        })
    }
    .unwrap();
}

#[test]
fn a_section_costs_one_fence_or_one_sync() {
    for tracking in TRACKERS {
        let fixture = Fixture::new(tracking, Domain::Dram);
        let words = &mut root(fixture.pool()).words;
        for pages in [1, 7, 100, 500] {
            let before = thread_counters();
            change_a_word_of_each(&fixture, words, pages);
            let cost = thread_counters() - before;
            assert_eq!(cost.fences, 1, "{pages} pages");
            assert_eq!(cost.commits, 1);
            assert!(
                cost.bytes_logged < 200 + 16 * pages as u64,
                "words are logged, not pages: {cost:?}"
            );
        }
        let fixture = Fixture::new(tracking, Domain::File);
        let words = &mut root(fixture.pool()).words;
        for pages in [1, 7, 100, 500] {
            let before = thread_counters();
            change_a_word_of_each(&fixture, words, pages);
            assert_eq!((thread_counters() - before).syncs, 1, "{pages} pages");
        }
        let before = thread_counters();
        unsafe { fixture.pool().section(|_| Ok::<_, Error>(())) }.unwrap();
        assert_eq!((thread_counters() - before).syncs, 0, "nothing has changed");
    }
}

#[test]
fn the_kernel_may_write_to_the_pool_where_it_notes_the_pages_itself() {
    let mut fixture = Fixture::new(PageTracking::Userfaultfd, Domain::Dram);
    let words = &mut root(fixture.pool()).words;
    unsafe {
        fixture.pool().section(|_| {
            let bytes = std::slice::from_raw_parts_mut(words.as_mut_ptr().cast::<u8>(), 100_000);
            std::io::repeat(0x5a)
                .take(10)
                .read_exact(&mut bytes[..10])
                .unwrap();
            let mut zero = std::fs::File::open("/proc/self/exe").unwrap();
            zero.read_exact(&mut bytes[50_000..]).unwrap();
            Ok::<_, Error>(())
        })
    }
    .unwrap();
    let now = words[..12_500].to_vec();
    assert!(now.iter().any(|word| *word != 0));
    fixture.reopen();
    assert_eq!(root(fixture.pool()).words[..12_500], now);
}

/// A canary: what is not found is lost, so that the tests of this file notice it. Through /proc/self/mem the kernel
/// writes to protected pages without a signal.
#[test]
fn a_page_that_is_not_found_is_noticed() {
    let mut fixture = Fixture::new(PageTracking::Mprotect, Domain::Dram);
    let words = &mut root(fixture.pool()).words;
    let was_written = unsafe {
        fixture.pool().section(|_| {
            words[0] = 1;
            words[5000] = 1;
            let behind = std::fs::OpenOptions::new()
                .write(true)
                .open("/proc/self/mem");
            let address = (&raw const words[2000]).addr() as u64;
            let written =
                behind.and_then(|memory| memory.write_all_at(&7u64.to_ne_bytes(), address));
            Ok::<_, Error>(written.is_ok())
        })
    };
    if !was_written.unwrap() {
        println!("skipped: this system has no /proc/self/mem, or does not let it force");
        return;
    }
    assert_eq!((words[0], words[2000], words[5000]), (1, 7, 1));
    fixture.reopen();
    let words = &root(fixture.pool()).words;
    assert_eq!((words[0], words[2000], words[5000]), (1, 0, 1));
}

#[test]
fn a_word_that_was_persisted_and_changed_back_is_what_it_was() {
    everywhere(|mut fixture| {
        let pool = fixture.pool();
        let word = &raw mut root(pool).words[5];
        let body = |_: &durum::Tx| unsafe {
            word.write(1);
            pool.persist(word, 8)?;
            word.write(0);
            Ok::<_, Error>(())
        };
        unsafe { pool.section(body) }.unwrap();
        assert_eq!(unsafe { word.read() }, 0);
        fixture.reopen();
        assert_eq!(root(fixture.pool()).words[5], 0);
    });
}
