//! Programs that break a rule of sections end with a message that says which.

use std::process::Command;
use std::ptr;
use std::sync::atomic::AtomicPtr;

use durum_ido::abi::*;
use durum_ido::abi_locks::*;

use crate::program::{Lock, Root, SET, begin_set, set};
use crate::support::{alone, close, on_a_thread, open, scratch, with_heap};

/// Set in a process that is to end.
const CHILD: &str = "DURUM_TEST_ENDS";

/// Runs a test of this file in a process of its own, which has to end with this message.
fn ends(test: &str, message: &str) {
    let _alone = alone();
    let output = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", test, "--ignored", "--nocapture"])
        .env(CHILD, "1")
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&output.stderr);
    assert!(!output.status.success() && text.contains("ido: "), "{text}");
    assert!(text.contains(message), "{text}");
}

#[test]
fn a_lock_elsewhere_is_in_no_record() {
    ends(
        "ends::stores_under_a_lock_elsewhere",
        "neither in the heap nor in a global variable",
    );
}

#[test]
#[ignore = "the other process of the test above"]
fn stores_under_a_lock_elsewhere() {
    if std::env::var_os(CHILD).is_none() {
        return;
    }
    with_heap(|root| unsafe {
        let mut lock = libc::PTHREAD_MUTEX_INITIALIZER;
        assert_eq!(__durum_ido_pthread_mutex_lock(&mut lock), 0);
        begin_set(root, Lock::Mutex(&mut lock), 0, 0);
    });
}

#[test]
fn two_locks_of_one_name_are_in_no_record() {
    ends(
        "ends::stores_under_a_lock_of_another_ones_name",
        "has the name of another one",
    );
}

#[test]
#[ignore = "the other process of the test above"]
fn stores_under_a_lock_of_another_ones_name() {
    if std::env::var_os(CHILD).is_none() {
        return;
    }
    with_heap(|root| unsafe {
        let both = Box::leak(Box::new([libc::PTHREAD_MUTEX_INITIALIZER; 2]));
        let table = both.each_mut().map(|lock| GlobalLock {
            place: ptr::from_mut(lock).cast(),
            size: size_of_val(lock) as u64,
            name: 7,
        });
        __durum_ido_register_locks(Box::leak(Box::new(table)).as_ptr(), 2);
        let lock = &raw mut both[1];
        assert_eq!(__durum_ido_pthread_mutex_lock(lock), 0);
        begin_set(root, Lock::Mutex(lock), 0, 0);
    });
}

#[test]
fn variables_of_two_files_are_two() {
    ends(
        "ends::has_two_variables_of_one_name",
        "two files of one name have the variable stack.c:head",
    );
}

#[test]
#[ignore = "the other process of the test above"]
fn has_two_variables_of_one_name() {
    if std::env::var_os(CHILD).is_none() {
        return;
    }
    with_heap(|_| unsafe {
        // What others see is the same one, in whatever modules it is.
        for name in [c"head", c"stack.c:head"] {
            let both = Box::leak(Box::new([(); 2].map(|()| Global {
                place: AtomicPtr::default(),
                name: name.as_ptr(),
                initial: ptr::from_ref(&0u64).cast(),
                size: 8,
                align: 8,
                ty: ptr::null(),
            })));
            let table: &'static [&Global; 2] = Box::leak(Box::new(both.each_ref()));
            __durum_ido_register_globals(table.as_ptr().cast(), 2);
            let [one, other] = table.map(|global| __durum_ido_global(global));
            assert_eq!(one, other);
        }
    });
}

#[test]
fn who_waits_lets_all_locks_go() {
    ends("ends::waits_with_two_locks", "holds 1 more");
}

#[test]
#[ignore = "the other process of the test above"]
fn waits_with_two_locks() {
    if std::env::var_os(CHILD).is_none() {
        return;
    }
    with_heap(|root| unsafe {
        let lock: *mut libc::pthread_mutex_t = nv_calloc(1, 64).cast();
        let cond: *mut libc::pthread_cond_t = nv_calloc(1, 64).cast();
        __durum_ido_pthread_mutex_lock(lock);
        __durum_ido_pthread_mutex_lock(&raw mut (*root).lock);
        __durum_ido_pthread_cond_wait(cond, lock);
    });
}

#[test]
fn what_was_not_begun_does_not_end() {
    ends(
        "ends::ends_what_was_not_begun",
        "durum_durable_end without durum_durable_begin",
    );
}

#[test]
#[ignore = "the other process of the test above"]
fn ends_what_was_not_begun() {
    if std::env::var_os(CHILD).is_none() {
        return;
    }
    with_heap(|root| unsafe {
        __durum_ido_pthread_mutex_lock(&raw mut (*root).lock);
        __durum_ido_durum_durable_end();
    });
}

#[test]
fn a_section_needs_a_heap() {
    ends(
        "ends::stores_without_a_heap",
        "set DURUM_HEAP, or call nv_open before",
    );
}

#[test]
#[ignore = "the other process of the test above"]
fn stores_without_a_heap() {
    if std::env::var_os(CHILD).is_none() {
        return;
    }
    unsafe {
        let mut lock = libc::PTHREAD_MUTEX_INITIALIZER;
        assert_eq!(__durum_ido_pthread_mutex_lock(&mut lock), 0);
        begin_set(std::ptr::null_mut(), Lock::Mutex(&mut lock), 0, 0);
    }
}

#[test]
fn locals_that_were_made_before_the_heap_do_not_last() {
    ends(
        "ends::needs_locals_of_before",
        "locals of a function that was entered before the heap was open",
    );
}

#[test]
#[ignore = "the other process of the test above"]
fn needs_locals_of_before() {
    if std::env::var_os(CHILD).is_none() {
        return;
    }
    let region = Region {
        code: SET << 16 | 1,
        line: 0,
        words: 1,
        flags: 2,
        addresses: [1, 0],
    };
    with_locals_of_before(|root, local| unsafe {
        assert_eq!(__durum_ido_pthread_mutex_lock(&raw mut (*root).lock), 0);
        let thread = __durum_ido_thread();
        let words = [local.expose_provenance() as u64];
        __durum_ido_record(thread, &region, words.as_ptr().cast());
    });
}

/// What no record needs may be anywhere; the heap's stack is used as soon as there is one.
#[test]
fn other_locals_may_come_before_the_heap() {
    let _alone = alone();
    on_a_thread(|| {
        with_locals_of_before(|root, local| unsafe {
            set(root, 0, 1);
            let thread = __durum_ido_thread();
            let later = __durum_ido_locals(thread, 64);
            let distance = later.addr().abs_diff(root.addr());
            assert!(distance < 1 << 40 && local.addr().abs_diff(root.addr()) > distance);
            set(root, 1, 2);
            __durum_ido_leave(thread, later);
            let values = (&raw const (*root).values).read();
            assert_eq!(values[..2], [1, 2]);
        });
        close().map_err(|error| error.to_string())
    })
    .unwrap();
}

/// With a local, and then a heap.
fn with_locals_of_before(body: impl FnOnce(*mut Root, *mut std::ffi::c_void)) {
    let local = unsafe { __durum_ido_other_locals(__durum_ido_thread(), 64) };
    let directory = scratch();
    let root = open(&directory.path().join("heap")).unwrap();
    body(root, local);
    unsafe { __durum_ido_leave(__durum_ido_thread(), local) };
}
