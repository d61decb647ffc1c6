//! What may befall a process that has puddles mapped: media errors while it accesses them, and forks.
//!
//! When a page of a mapped file cannot be read (a truncated file, a bad block), the kernel sends SIGBUS. The handler
//! replaces the page by a private one and poisons the puddle's pool with file and offset, so that the program
//! goes on to the next operation, which returns the error. It does so for durum's own accesses, made inside
//! [`guarded`], and for the program's where the pool was opened with `PoolOptions::survive_media_errors`. Of an address
//! where a puddle may be on its way it waits for that. Any other SIGBUS goes to whoever handled it before.

use std::cell::Cell;
use std::marker::PhantomData;
use std::sync::atomic::{AtomicPtr, AtomicU32, AtomicUsize, Ordering, compiler_fence};
use std::sync::{Mutex, OnceLock};

use crate::error::{Error, Result};
use crate::mapping::mapping_at;
use crate::primitive::locked;
use crate::signals::{Handler, action_of, set_action};
use crate::window;

thread_local! {
    /// How many guarded sections this thread is in. Const and without destructor: safe to touch in a signal handler.
    static GUARDED: Cell<u32> = const { Cell::new(0) };
}

/// While it lives, touching a bad page poisons the pool instead of killing the process.
#[derive(Debug)]
pub(crate) struct Guard(PhantomData<*mut ()>);

impl Guard {
    #[inline(always)]
    pub(crate) fn new() -> Self {
        GUARDED.with(|depth| depth.set(depth.get() + 1));
        // ORDER (of a signal handler): the compiler moves no access out of the section, and does not take the count for
        // unchanged.
        compiler_fence(Ordering::SeqCst);
        Self(PhantomData)
    }
}

impl Drop for Guard {
    #[inline(always)]
    fn drop(&mut self) {
        compiler_fence(Ordering::SeqCst);
        GUARDED.with(|depth| depth.set(depth.get() - 1));
    }
}

/// Runs `access`, in which touching a bad page poisons the pool instead of killing the process.
///
/// What was read from a bad page is zero; the caller asks the pool for poison before it believes it.
#[inline(always)]
pub(crate) fn guarded<R>(access: impl FnOnce() -> R) -> R {
    let _guard = Guard::new();
    access()
}

/// What hardly ever happens, in one word, so that those who go the short way look at it once.
static RARE: AtomicU32 = AtomicU32::new(0);
/// A page of a puddle has failed: a closer look is needed.
const FAILED: u32 = 1;
/// This process was forked while stores were open: their puddles are not mapped here.
const FORKED: u32 = 2;

/// Whether any page of any puddle has failed in this process, or it was forked while stores were open.
#[inline(always)]
pub(crate) fn failed_or_forked() -> bool {
    RARE.load(Ordering::Relaxed) != 0
}

/// Whether any page of any puddle has failed in this process.
#[inline(always)]
pub(crate) fn media_failed() -> bool {
    RARE.load(Ordering::Relaxed) & FAILED != 0
}

/// Whether this process was forked while stores were open: their puddles are not mapped here. A child that was forked
/// when all were closed is a process like any other.
#[inline(always)]
pub(crate) fn forked() -> bool {
    RARE.load(Ordering::Relaxed) & FORKED != 0
}

/// Refuses what needs puddles, where they are not mapped.
#[inline]
pub(crate) fn check_forked() -> Result<()> {
    match forked() {
        true => Err(Error::Forked),
        false => Ok(()),
    }
}

/// The stores that this process has open.
static OPEN_STORES: AtomicUsize = AtomicUsize::new(0);
/// Different in a process and in its forks.
static PROCESS: AtomicU32 = AtomicU32::new(1);

/// A store is being opened. Makes `forked` tell the truth in children from now on.
pub(crate) fn store_opens() {
    extern "C" fn in_child() {
        PROCESS.fetch_add(1, Ordering::Relaxed);
        if OPEN_STORES.load(Ordering::Relaxed) > 0 {
            RARE.fetch_or(FORKED, Ordering::Relaxed);
            window::close_in_child();
        }
    }
    static ONCE: std::sync::Once = std::sync::Once::new();
    // SAFETY: the handler changes atomics only.
    ONCE.call_once(|| unsafe {
        libc::pthread_atfork(None, None, Some(in_child));
    });
    OPEN_STORES.fetch_add(1, Ordering::Relaxed);
}

/// Nothing of a store is mapped any more, and no thread of its own runs.
pub(crate) fn store_is_closed() {
    OPEN_STORES.fetch_sub(1, Ordering::Relaxed);
}

/// What a process asks the kernel for once, for itself alone: a forked child has to ask again.
pub(crate) struct OnceInProcess<T: Send + Sync + 'static> {
    /// Leaked: there are no more of them than forks.
    known: AtomicPtr<(u32, T)>,
    making: Mutex<()>,
}

impl<T: Send + Sync + 'static> OnceInProcess<T> {
    pub(crate) const fn new() -> Self {
        Self {
            known: AtomicPtr::new(std::ptr::null_mut()),
            making: Mutex::new(()),
        }
    }

    pub(crate) fn get_or_init(&self, make: impl FnOnce() -> T) -> &'static T {
        self.known().unwrap_or_else(|| {
            let _one_at_a_time = locked(&self.making);
            self.known().unwrap_or_else(|| {
                let made = Box::leak(Box::new((PROCESS.load(Ordering::Relaxed), make())));
                self.known.store(made, Ordering::Release);
                &made.1
            })
        })
    }

    /// What was made. Async-signal-safe.
    pub(crate) fn known(&self) -> Option<&'static T> {
        // SAFETY: null, or a leaked box.
        let known = unsafe { self.known.load(Ordering::Acquire).as_ref() }?;
        (known.0 == PROCESS.load(Ordering::Relaxed)).then_some(&known.1)
    }
}

static PREVIOUS: OnceLock<libc::sigaction> = OnceLock::new();

/// Waits for whoever may be mapping a puddle at an address. Whether there is one now.
static WAIT: OnceLock<fn(usize) -> bool> = OnceLock::new();

/// Puddles are mapped while threads access them from now on: a thread may find a bad page of one that is not in the
/// table yet. `wait` is async-signal-safe.
pub(crate) fn puddles_come_later(wait: fn(usize) -> bool) {
    let _ = WAIT.set(wait);
}

/// Installs the handler, once in a process.
pub(crate) fn install() {
    static ONCE: std::sync::Once = std::sync::Once::new();
    ONCE.call_once(|| {
        // Remembered before the handler can run. Neither call fails: the signal is one that can be handled.
        if let Ok(previous) = set_action(libc::SIGBUS, None) {
            let _ = PREVIOUS.set(previous);
        }
        let _ = set_action(libc::SIGBUS, Some(&action_of(handler)));
    });
}

/// Async-signal-safe: reads atomics, makes one `mmap` system call, stores to atomics; or waits.
extern "C" fn handler(signal: libc::c_int, info: *mut libc::siginfo_t, context: *mut libc::c_void) {
    // SAFETY: the kernel passes a valid siginfo to a SA_SIGINFO handler; SIGBUS fills the address.
    let address = unsafe { (*info).si_addr() } as usize;
    if let Some(puddle) = mapping_at(address) {
        // SAFETY: puddles in the table are alive while mapped.
        let puddle = unsafe { puddle.as_ref() };
        if GUARDED.with(Cell::get) > 0 || puddle.survive || window::reads(address) {
            let page = address & !0xfff;
            // SAFETY: the page lies inside a puddle mapping of ours and cannot be read any more; a private zero page
            // in its place takes no data away.
            let replaced = unsafe {
                libc::mmap(
                    page as *mut libc::c_void,
                    4096,
                    libc::PROT_READ | libc::PROT_WRITE,
                    libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_FIXED,
                    -1,
                    0,
                )
            };
            if replaced as usize == page {
                puddle.poison_at(page);
                RARE.fetch_or(FAILED, Ordering::Release);
                return;
            }
        }
    } else if WAIT.get().is_some_and(|wait| wait(address)) {
        // The access is made again, and tells about a puddle that is in the table.
        return;
    }
    forward(PREVIOUS.get(), signal, info, context);
}

/// Hands a signal that is none of ours to the handler that was there before.
pub(crate) fn forward(
    previous: Option<&libc::sigaction>,
    signal: libc::c_int,
    info: *mut libc::siginfo_t,
    context: *mut libc::c_void,
) {
    match previous.map(|action| (action.sa_sigaction, action.sa_flags)) {
        Some((handler, flags)) if handler != libc::SIG_DFL && handler != libc::SIG_IGN => {
            if flags & libc::SA_SIGINFO != 0 {
                // SAFETY: an action with SA_SIGINFO has a three-argument handler.
                let handler: Handler = unsafe { std::mem::transmute(handler) };
                handler(signal, info, context);
            } else {
                // SAFETY: an action without SA_SIGINFO has a one-argument handler.
                let handler: extern "C" fn(libc::c_int) = unsafe { std::mem::transmute(handler) };
                handler(signal);
            }
        }
        // SAFETY: back to the default; the access faults again when the handler returns, and the process ends as it
        // would have.
        _ => unsafe {
            libc::signal(signal, libc::SIG_DFL);
        },
    }
}
