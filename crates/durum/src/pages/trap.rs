//! A handler notes which pages were written: the puddle is read-only, and the first store to a page sends SIGSEGV.

use std::ops::Range;
use std::sync::atomic::{AtomicPtr, AtomicU64, Ordering};
use std::sync::{Mutex, OnceLock};

use rustix::mm::MprotectFlags;

use super::hold;
use super::protect::{is_repeated, protect};
use crate::demand;
use crate::error::{Error, Result};
use crate::fault::forward;
use crate::mapping::{Mapping, PAGE, mapping_at};
use crate::primitive::locked;
use crate::signals;
use crate::tracking::{Tracking, Trap};

pub(super) fn start(puddle: &Mapping, heap: Range<usize>) -> Result<()> {
    let trap = &puddle.tracking.trap;
    let pages = puddle.size / PAGE;
    let written = trap
        .written
        .get_or_init(|| (0..pages.div_ceil(64)).map(|_| AtomicU64::new(0)).collect());
    for word in written {
        word.store(0, Ordering::Relaxed);
    }
    trap.is_full.store(false, Ordering::Relaxed);
    install()?;
    // Before the first page can fault.
    trap.is_armed.store(true, Ordering::Release);
    protect(heap.clone(), MprotectFlags::READ).map_err(|error| {
        disarm(trap, heap);
        Error::system("protecting a puddle's pages", error)
    })
}

fn disarm(trap: &Trap, heap: Range<usize>) {
    // Where it cannot be undone, the handler goes on to make pages writable one by one.
    if protect(heap, MprotectFlags::READ | MprotectFlags::WRITE).is_ok() {
        trap.is_armed.store(false, Ordering::Release);
        uninstall();
    }
}

pub(super) fn stop(puddle: &Mapping, heap: Range<usize>, found: &mut Vec<Range<usize>>) {
    let trap = &puddle.tracking.trap;
    disarm(trap, heap.clone());
    if trap.is_full.load(Ordering::Relaxed) {
        found.push(heap);
        return;
    }
    for (index, word) in trap.written.get().into_iter().flatten().enumerate() {
        let mut rest = word.load(Ordering::Relaxed);
        while rest != 0 {
            let page = puddle.address + (index * 64 + rest.trailing_zeros() as usize) * PAGE;
            rest &= rest - 1;
            match found.last_mut() {
                Some(last) if last.end == page => last.end += PAGE,
                _ => found.push(page..page + PAGE),
            }
        }
    }
}

pub(super) fn is_armed(trap: &Trap) -> bool {
    trap.is_armed.load(Ordering::Acquire)
}

/// Notes a store and lets it happen; false if it is none of ours. Async-signal-safe.
fn admit(trap: &Trap, puddle: &Mapping, address: usize) -> bool {
    if !is_armed(trap) || !puddle.contains(address, 1) {
        return false;
    }
    let page = (address - puddle.address) / PAGE;
    let Some(word) = trap.written.get().and_then(|words| words.get(page / 64)) else {
        return false;
    };
    // Noted before the store can happen.
    let before = word.fetch_or(1 << (page % 64), Ordering::AcqRel);
    let is_again = before >> (page % 64) & 1 == 1;
    let start = puddle.address + page * PAGE;
    let open = MprotectFlags::READ | MprotectFlags::WRITE;
    if protect(start..start + PAGE, open).is_ok() {
        // Another thread may have come first. The same one comes again and again only with what this does not help
        // against: a call to an address in the pool.
        return !is_again || !is_repeated(address);
    }
    // Each page that is not like its neighbours counts as a mapping, of which a process may have so many only.
    trap.is_full.store(true, Ordering::Release);
    protect(puddle.heap(), open).is_ok()
}

/// Who handles SIGSEGV while no puddle is tracked, and how many are.
static INSTALLED: Mutex<(usize, Option<libc::sigaction>)> = Mutex::new((0, None));
/// The same for the handler; a leaked box, as a handler may be reading the one before.
static PREVIOUS: AtomicPtr<libc::sigaction> = AtomicPtr::new(std::ptr::null_mut());

fn set_action(new: Option<&libc::sigaction>) -> Result<libc::sigaction> {
    signals::set_action(libc::SIGSEGV, new)
        .map_err(|error| Error::system("handling SIGSEGV", error))
}

/// Installs the handler, if no other puddle's tracking has. Only while it is needed, until [`stay_installed`]: so one
/// that the program installs meanwhile, or has installed, keeps its place.
fn install() -> Result<()> {
    let mut installed = locked(&INSTALLED);
    if installed.0 == 0 {
        let present = set_action(None)?;
        // SAFETY: null, or a leaked box.
        let known = unsafe { PREVIOUS.load(Ordering::Acquire).as_ref() };
        if known.is_none_or(|known| {
            (known.sa_sigaction, known.sa_flags) != (present.sa_sigaction, present.sa_flags)
        }) {
            // Remembered before the handler can run.
            PREVIOUS.store(Box::into_raw(Box::new(present)), Ordering::Release);
        }
        set_action(Some(&signals::action_of(handler)))?;
        installed.1 = Some(present);
    }
    installed.0 += 1;
    Ok(())
}

/// The counterpart of `install`.
fn uninstall() {
    let mut installed = locked(&INSTALLED);
    installed.0 -= 1;
    if installed.0 == 0
        && let Some(previous) = installed.1.take()
        && let Ok(present) = set_action(None)
        && present.sa_sigaction == handler as *const () as usize
    {
        // A failure leaves ours, which hands on what it does not know.
        let _ = set_action(Some(&previous));
    }
}

/// Installs the handler for good: a store that faulted while pages were held may get to it at any time later. False
/// where another one has taken its place, which may or may not know of it.
pub(super) fn stay_installed() -> bool {
    static STAYS: OnceLock<bool> = OnceLock::new();
    *STAYS.get_or_init(|| install().is_ok())
        && set_action(None)
            .is_ok_and(|present| present.sa_sigaction == handler as *const () as usize)
}

/// Async-signal-safe: reads atomics, makes one `mprotect` system call, stores to atomics; or waits.
extern "C" fn handler(signal: libc::c_int, info: *mut libc::siginfo_t, context: *mut libc::c_void) {
    // SAFETY: the kernel passes a valid siginfo to a SA_SIGINFO handler; SIGSEGV fills the address.
    let address = unsafe { (*info).si_addr() } as usize;
    let mapping = mapping_at(address);
    let is_ours = mapping.is_some_and(|puddle| {
        // SAFETY: puddles in the table are alive while mapped.
        let puddle = unsafe { puddle.as_ref() };
        let Tracking { trap, hold, .. } = &puddle.tracking;
        match is_armed(trap) {
            true => admit(trap, puddle, address),
            false => {
                puddle.contains(address, 1) && hold::admit(hold, address)
                    // It came between the access and the signal.
                    || hold.times.load(Ordering::Acquire) == 0
                        && demand::may_have_been_mapped(address)
                        && !is_repeated(address)
            }
        }
    });
    let is_admitted = || match mapping {
        // A store to a pool that is only read is one that nobody admits.
        Some(_) => demand::admit(address),
        None => demand::admit_or_open(address),
    };
    if !is_ours && !is_admitted() {
        // SAFETY: null, or a leaked box.
        let previous = unsafe { PREVIOUS.load(Ordering::Acquire).as_ref() };
        forward(previous, signal, info, context);
    }
}
