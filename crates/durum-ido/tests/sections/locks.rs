//! Locks in the heap do what those of the system do.

use std::mem::zeroed;

use durum_ido::abi::{__durum_ido_register_locks, __durum_ido_thread, GlobalLock, nv_calloc};
use durum_ido::abi_locks::*;

use crate::program::{Lock, Root, begin_set, set, set_value};
use crate::support::{alone, close, on_a_thread, open, scratch, with_heap};

fn depth() -> u32 {
    unsafe { __durum_ido_thread().cast::<u32>().read() }
}

/// A mutex that its holder may take again.
pub unsafe fn make_recursive(lock: *mut libc::pthread_mutex_t) {
    unsafe {
        let mut attributes: libc::pthread_mutexattr_t = zeroed();
        libc::pthread_mutexattr_init(&mut attributes);
        libc::pthread_mutexattr_settype(&mut attributes, libc::PTHREAD_MUTEX_RECURSIVE);
        assert_eq!(__durum_ido_pthread_mutex_init(lock, &attributes), 0);
    }
}

/// Whether its holder may take it again.
pub unsafe fn is_recursive(lock: *mut libc::pthread_mutex_t) -> bool {
    unsafe {
        assert_eq!(__durum_ido_pthread_mutex_lock(lock), 0);
        let is_taken = __durum_ido_pthread_mutex_trylock(lock) == 0;
        if is_taken {
            assert_eq!(__durum_ido_pthread_mutex_unlock(lock), 0);
        }
        assert_eq!(__durum_ido_pthread_mutex_unlock(lock), 0);
        is_taken
    }
}

#[test]
fn a_mutex_is_of_the_kind_that_it_was_made() {
    with_heap(|_| unsafe {
        let lock: *mut libc::pthread_mutex_t = nv_calloc(1, 40).cast();
        make_recursive(lock);
        for held in 1..=3 {
            assert_eq!(__durum_ido_pthread_mutex_lock(lock), 0);
            assert_eq!(depth(), held);
        }
        for held in [2, 1, 0] {
            assert_eq!(__durum_ido_pthread_mutex_unlock(lock), 0);
            assert_eq!(depth(), held);
        }
        assert_eq!(__durum_ido_pthread_mutex_unlock(lock), libc::EPERM);
        let mut attributes: libc::pthread_mutexattr_t = zeroed();
        libc::pthread_mutexattr_init(&mut attributes);
        libc::pthread_mutexattr_settype(&mut attributes, libc::PTHREAD_MUTEX_ERRORCHECK);
        assert_eq!(__durum_ido_pthread_mutex_init(lock, &attributes), 0);
        assert_eq!(__durum_ido_pthread_mutex_lock(lock), 0);
        assert_eq!(__durum_ido_pthread_mutex_lock(lock), libc::EDEADLK);
        assert_eq!(__durum_ido_pthread_mutex_trylock(lock), libc::EBUSY);
        let held_by_another = std::thread::scope(|scope| {
            let lock = lock.expose_provenance();
            let other = scope.spawn(move || {
                let lock = std::ptr::with_exposed_provenance_mut(lock);
                let soon = libc::timespec {
                    tv_sec: 0,
                    tv_nsec: 1,
                };
                [
                    __durum_ido_pthread_mutex_trylock(lock),
                    __durum_ido_pthread_mutex_timedlock(lock, &soon),
                    __durum_ido_pthread_mutex_unlock(lock),
                ]
            });
            other.join().unwrap()
        });
        assert_eq!(held_by_another, [libc::EBUSY, libc::ETIMEDOUT, libc::EPERM]);
        assert_eq!(__durum_ido_pthread_mutex_unlock(lock), 0);
        libc::pthread_mutexattr_setrobust(&mut attributes, libc::PTHREAD_MUTEX_ROBUST);
        assert_eq!(
            __durum_ido_pthread_mutex_init(lock, &attributes),
            libc::ENOTSUP
        );
    });
}

#[test]
fn readers_share_and_a_writer_does_not() {
    with_heap(|_| unsafe {
        let lock: *mut libc::pthread_rwlock_t = nv_calloc(1, 56).cast();
        assert_eq!(__durum_ido_pthread_rwlock_rdlock(lock), 0);
        assert_eq!(__durum_ido_pthread_rwlock_tryrdlock(lock), 0);
        assert_eq!(__durum_ido_pthread_rwlock_trywrlock(lock), libc::EBUSY);
        assert_eq!(depth(), 2);
        assert_eq!(__durum_ido_pthread_rwlock_unlock(lock), 0);
        assert_eq!(__durum_ido_pthread_rwlock_unlock(lock), 0);
        assert_eq!(__durum_ido_pthread_rwlock_wrlock(lock), 0);
        assert_eq!(__durum_ido_pthread_rwlock_rdlock(lock), libc::EDEADLK);
        assert_eq!(__durum_ido_pthread_rwlock_unlock(lock), 0);
    });
}

/// Threads hand a turn on, by a condition, under a mutex in the heap; the condition lies in the heap or elsewhere.
#[test]
fn whoever_waits_for_a_condition_is_woken() {
    with_heap(|root| {
        let mut elsewhere = unsafe { zeroed::<libc::pthread_cond_t>() };
        let inside: *mut libc::pthread_cond_t = nv_calloc(1, 48).cast();
        for cond in [inside, &raw mut elsewhere] {
            let turns = std::sync::atomic::AtomicU32::new(0);
            std::thread::scope(|scope| {
                for number in 0..3 {
                    let (turns, root) = (&turns, root.expose_provenance());
                    let cond = cond.expose_provenance();
                    scope.spawn(move || unsafe {
                        let root: *mut Root = std::ptr::with_exposed_provenance_mut(root);
                        let cond = std::ptr::with_exposed_provenance_mut(cond);
                        let lock = &raw mut (*root).lock;
                        for _ in 0..200 {
                            assert_eq!(__durum_ido_pthread_mutex_lock(lock), 0);
                            while turns.load(std::sync::atomic::Ordering::Relaxed) % 3 != number {
                                assert_eq!(__durum_ido_pthread_cond_wait(cond, lock), 0);
                            }
                            turns.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
                            __durum_ido_pthread_cond_broadcast(cond);
                            assert_eq!(__durum_ido_pthread_mutex_unlock(lock), 0);
                        }
                    });
                }
            });
            assert_eq!(turns.into_inner(), 600);
        }
    });
}

#[test]
fn a_lock_that_an_earlier_opening_has_left_taken_is_free() {
    let _alone = alone();
    let directory = scratch();
    let path = directory.path().join("heap");
    for round in 0..3 {
        on_a_thread(|| {
            let root = open(&path)?;
            unsafe {
                assert_eq!((*root).values[1], round);
                set(root, 1, round + 1);
                // It records nothing, so nobody has to complete it.
                assert_eq!(__durum_ido_pthread_mutex_lock(&raw mut (*root).lock), 0);
            }
            close().map_err(|error| error.to_string())
        })
        .unwrap();
    }
}

/// As where a variable of the program is one: a crash image names it, and whoever goes on takes that of this run.
#[test]
fn a_lock_of_the_program_is_recorded_by_its_name() {
    static PLACE: GlobalLock = GlobalLock {
        place: (&raw const LOCK) as *mut std::ffi::c_void,
        size: 40,
        name: 0x123_4567_89ab,
    };
    static mut LOCK: libc::pthread_mutex_t = libc::PTHREAD_MUTEX_INITIALIZER;
    with_heap(|root| unsafe {
        __durum_ido_register_locks(&raw const PLACE, 1);
        let lock = &raw mut LOCK;
        assert_eq!(__durum_ido_pthread_mutex_lock(lock), 0);
        set_value(begin_set(root, Lock::Mutex(lock), 3, 9));
        assert_eq!((depth(), (*root).values[3]), (0, 9));
    });
}

#[test]
fn many_threads_count_and_nothing_is_lost() {
    with_heap(|root| {
        std::thread::scope(|scope| {
            for number in 0..4u64 {
                let root = root.expose_provenance();
                scope.spawn(move || {
                    let root: *mut Root = std::ptr::with_exposed_provenance_mut(root);
                    (0..500).for_each(|value| unsafe { set(root, number, value + 1) });
                });
            }
        });
        assert_eq!(unsafe { (&raw const (*root).values).read() }[..4], [500; 4]);
    });
}
