//! The functions of the threads' library under the names that compiled code calls (docs/reference/ido-ir.md):
//! parameters and results are those of the functions without `__durum_ido_`. A lock that is let go last ends the
//! section: what that has stored is durable before the lock is free.

use std::ffi::c_int;

use libc::{
    clockid_t, pthread_cond_t, pthread_condattr_t, pthread_mutex_t, pthread_mutexattr_t,
    pthread_rwlock_t, pthread_rwlockattr_t, pthread_spinlock_t, timespec,
};

use crate::held::Mode::{Exclusive, Shared};
use crate::locks::cond::Until;
use crate::locks::{c11, cond, mutex, rwlock, spin};

/// `function(parameters) -> result = body;`: each is exported under its name with `__durum_ido_`.
macro_rules! exported {
    ($($name:ident = $like:literal, ($($argument:ident: $type:ty),*) $(-> $out:ty)?, $body:expr;)+) => {
        $(
            #[doc = concat!("As `", $like, "`.")]
            ///
            /// # Safety
            /// As there.
            #[unsafe(no_mangle)]
            pub unsafe extern "C" fn $name($($argument: $type),*) $(-> $out)? {
                // SAFETY: as the caller promises.
                unsafe { $body }
            }
        )+
    };
}

type Mutex = *mut pthread_mutex_t;
type RwLock = *mut pthread_rwlock_t;
type Spin = *mut pthread_spinlock_t;
type Cond = *mut pthread_cond_t;
type Time = *const timespec;

exported! {
    __durum_ido_pthread_mutex_init = "pthread_mutex_init", (lock: Mutex, attributes: *const pthread_mutexattr_t) -> c_int,
        mutex::init(lock, attributes);
    __durum_ido_pthread_mutex_destroy = "pthread_mutex_destroy", (lock: Mutex) -> c_int,
        mutex::destroy(lock);
    __durum_ido_pthread_mutex_lock = "pthread_mutex_lock", (lock: Mutex) -> c_int,
        mutex::lock(lock);
    __durum_ido_pthread_mutex_trylock = "pthread_mutex_trylock", (lock: Mutex) -> c_int,
        mutex::try_lock(lock);
    __durum_ido_pthread_mutex_timedlock = "pthread_mutex_timedlock", (lock: Mutex, at: Time) -> c_int,
        mutex::lock_until(lock, libc::CLOCK_REALTIME, at);
    __durum_ido_pthread_mutex_clocklock = "pthread_mutex_clocklock", (lock: Mutex, clock: clockid_t, at: Time) -> c_int,
        mutex::lock_until(lock, clock, at);
    __durum_ido_pthread_mutex_unlock = "pthread_mutex_unlock", (lock: Mutex) -> c_int,
        mutex::unlock(lock);
    __durum_ido_pthread_rwlock_init = "pthread_rwlock_init", (lock: RwLock, attributes: *const pthread_rwlockattr_t) -> c_int,
        rwlock::init(lock, attributes);
    __durum_ido_pthread_rwlock_destroy = "pthread_rwlock_destroy", (lock: RwLock) -> c_int,
        rwlock::destroy(lock);
    __durum_ido_pthread_rwlock_rdlock = "pthread_rwlock_rdlock", (lock: RwLock) -> c_int,
        rwlock::lock(lock, Shared);
    __durum_ido_pthread_rwlock_wrlock = "pthread_rwlock_wrlock", (lock: RwLock) -> c_int,
        rwlock::lock(lock, Exclusive);
    __durum_ido_pthread_rwlock_tryrdlock = "pthread_rwlock_tryrdlock", (lock: RwLock) -> c_int,
        rwlock::try_lock(lock, Shared);
    __durum_ido_pthread_rwlock_trywrlock = "pthread_rwlock_trywrlock", (lock: RwLock) -> c_int,
        rwlock::try_lock(lock, Exclusive);
    __durum_ido_pthread_rwlock_timedrdlock = "pthread_rwlock_timedrdlock", (lock: RwLock, at: Time) -> c_int,
        rwlock::lock_until(lock, Shared, None, at);
    __durum_ido_pthread_rwlock_timedwrlock = "pthread_rwlock_timedwrlock", (lock: RwLock, at: Time) -> c_int,
        rwlock::lock_until(lock, Exclusive, None, at);
    __durum_ido_pthread_rwlock_clockrdlock = "pthread_rwlock_clockrdlock", (lock: RwLock, clock: clockid_t, at: Time) -> c_int,
        rwlock::lock_until(lock, Shared, Some(clock), at);
    __durum_ido_pthread_rwlock_clockwrlock = "pthread_rwlock_clockwrlock", (lock: RwLock, clock: clockid_t, at: Time) -> c_int,
        rwlock::lock_until(lock, Exclusive, Some(clock), at);
    __durum_ido_pthread_rwlock_unlock = "pthread_rwlock_unlock", (lock: RwLock) -> c_int,
        rwlock::unlock(lock);
    __durum_ido_pthread_spin_init = "pthread_spin_init", (lock: Spin, shared: c_int) -> c_int,
        spin::init(lock, shared);
    __durum_ido_pthread_spin_destroy = "pthread_spin_destroy", (lock: Spin) -> c_int,
        spin::destroy(lock);
    __durum_ido_pthread_spin_lock = "pthread_spin_lock", (lock: Spin) -> c_int,
        spin::lock(lock);
    __durum_ido_pthread_spin_trylock = "pthread_spin_trylock", (lock: Spin) -> c_int,
        spin::try_lock(lock);
    __durum_ido_pthread_spin_unlock = "pthread_spin_unlock", (lock: Spin) -> c_int,
        spin::unlock(lock);
    __durum_ido_pthread_cond_init = "pthread_cond_init", (cond: Cond, attributes: *const pthread_condattr_t) -> c_int,
        cond::init(cond, attributes);
    __durum_ido_pthread_cond_destroy = "pthread_cond_destroy", (cond: Cond) -> c_int,
        cond::destroy(cond);
    __durum_ido_pthread_cond_wait = "pthread_cond_wait", (cond: Cond, lock: Mutex) -> c_int,
        cond::wait(cond, lock, Until::Signal);
    __durum_ido_pthread_cond_timedwait = "pthread_cond_timedwait", (cond: Cond, lock: Mutex, at: Time) -> c_int,
        cond::wait(cond, lock, Until::Time(at));
    __durum_ido_pthread_cond_clockwait = "pthread_cond_clockwait", (cond: Cond, lock: Mutex, clock: clockid_t, at: Time) -> c_int,
        cond::wait(cond, lock, Until::Clock(clock, at));
    __durum_ido_pthread_cond_signal = "pthread_cond_signal", (cond: Cond) -> c_int,
        cond::signal(cond);
    __durum_ido_pthread_cond_broadcast = "pthread_cond_broadcast", (cond: Cond) -> c_int,
        cond::broadcast(cond);
    __durum_ido_mtx_init = "mtx_init", (lock: Mutex, kind: c_int) -> c_int,
        c11::mtx_init(lock, kind);
    __durum_ido_mtx_destroy = "mtx_destroy", (lock: Mutex),
        c11::mtx_destroy(lock);
    __durum_ido_mtx_lock = "mtx_lock", (lock: Mutex) -> c_int,
        c11::mtx_lock(lock);
    __durum_ido_mtx_trylock = "mtx_trylock", (lock: Mutex) -> c_int,
        c11::mtx_trylock(lock);
    __durum_ido_mtx_timedlock = "mtx_timedlock", (lock: Mutex, at: Time) -> c_int,
        c11::mtx_timedlock(lock, at);
    __durum_ido_mtx_unlock = "mtx_unlock", (lock: Mutex) -> c_int,
        c11::mtx_unlock(lock);
    __durum_ido_cnd_init = "cnd_init", (cond: Cond) -> c_int,
        c11::cnd_init(cond);
    __durum_ido_cnd_destroy = "cnd_destroy", (cond: Cond),
        _ = cond::destroy(cond);
    __durum_ido_cnd_wait = "cnd_wait", (cond: Cond, lock: Mutex) -> c_int,
        c11::cnd_wait(cond, lock, Until::Signal);
    __durum_ido_cnd_timedwait = "cnd_timedwait", (cond: Cond, lock: Mutex, at: Time) -> c_int,
        c11::cnd_wait(cond, lock, Until::Time(at));
    __durum_ido_cnd_signal = "cnd_signal", (cond: Cond) -> c_int,
        cond::signal(cond);
    __durum_ido_cnd_broadcast = "cnd_broadcast", (cond: Cond) -> c_int,
        cond::broadcast(cond);
}
