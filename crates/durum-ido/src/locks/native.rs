//! The functions of the system's threads, for locks that lie elsewhere, that the crate `libc` does not have.

use std::ffi::c_int;

use libc::{clockid_t, pthread_cond_t, pthread_mutex_t, pthread_rwlock_t, timespec};

unsafe extern "C" {
    pub(crate) fn pthread_mutex_clocklock(
        lock: *mut pthread_mutex_t,
        clock: clockid_t,
        at: *const timespec,
    ) -> c_int;
    pub(crate) fn pthread_rwlock_timedrdlock(
        lock: *mut pthread_rwlock_t,
        at: *const timespec,
    ) -> c_int;
    pub(crate) fn pthread_rwlock_timedwrlock(
        lock: *mut pthread_rwlock_t,
        at: *const timespec,
    ) -> c_int;
    pub(crate) fn pthread_rwlock_clockrdlock(
        lock: *mut pthread_rwlock_t,
        clock: clockid_t,
        at: *const timespec,
    ) -> c_int;
    pub(crate) fn pthread_rwlock_clockwrlock(
        lock: *mut pthread_rwlock_t,
        clock: clockid_t,
        at: *const timespec,
    ) -> c_int;
    pub(crate) fn pthread_cond_clockwait(
        cond: *mut pthread_cond_t,
        lock: *mut pthread_mutex_t,
        clock: clockid_t,
        at: *const timespec,
    ) -> c_int;
    pub(crate) fn pthread_mutexattr_gettype(
        attributes: *const libc::pthread_mutexattr_t,
        kind: *mut c_int,
    ) -> c_int;
    pub(crate) fn mtx_init(lock: *mut pthread_mutex_t, kind: c_int) -> c_int;
    pub(crate) fn mtx_destroy(lock: *mut pthread_mutex_t);
    pub(crate) fn mtx_lock(lock: *mut pthread_mutex_t) -> c_int;
    pub(crate) fn mtx_trylock(lock: *mut pthread_mutex_t) -> c_int;
    pub(crate) fn mtx_timedlock(lock: *mut pthread_mutex_t, at: *const timespec) -> c_int;
    pub(crate) fn mtx_unlock(lock: *mut pthread_mutex_t) -> c_int;
    pub(crate) fn cnd_init(cond: *mut pthread_cond_t) -> c_int;
}
