//! Stopping all other threads: each gets a signal, and waits in its handler until it may go on. Its registers are on
//! its stack meanwhile, where the kernel has put them.
//!
//! While threads are stopped the caller asks the kernel only, and no allocator: a stopped thread may hold its lock, or
//! any other.

use std::ffi::CStr;
use std::io::Write;
use std::mem::MaybeUninit;
use std::ptr;
use std::sync::Once;
use std::sync::atomic::{AtomicI32, AtomicU32, AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use rustix::fs::{OFlags, RawDir};
use rustix::thread::{futex, gettid};

use super::maps::{hex, open};

/// Odd while threads are to stop. Never reset, so that a signal that comes late finds another number.
static GENERATION: AtomicU32 = AtomicU32::new(0);
/// Threads that were told in this generation.
static THREADS: [Thread; THREADS_MAX] = [const {
    Thread {
        id: AtomicI32::new(0),
        stopped: AtomicU32::new(0),
    }
}; THREADS_MAX];
static COUNT: AtomicUsize = AtomicUsize::new(0);
const THREADS_MAX: usize = 8192;

/// Who has not stopped by then blocks the signal, and nothing is freed.
const PATIENCE: Duration = Duration::from_secs(1);

struct Thread {
    id: AtomicI32,
    /// The generation in which it has stopped.
    stopped: AtomicU32,
}

/// The signal: one that the C library does not use, and few programs.
fn signal() -> i32 {
    libc::SIGRTMAX() - 4
}

/// Installs the handler.
pub(super) fn install() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        // SAFETY: an empty action, then the fields that count; the handler does only what handlers may.
        unsafe {
            let mut action: libc::sigaction = MaybeUninit::zeroed().assume_init();
            action.sa_sigaction = handler as *const () as usize;
            // Calls of the program that wait go on afterwards.
            action.sa_flags = libc::SA_RESTART;
            libc::sigfillset(&mut action.sa_mask);
            libc::sigaction(signal(), &action, ptr::null_mut());
        }
    });
}

extern "C" fn handler(_: i32) {
    // ORDER: the generation is read before the thread says that it has stopped; else it could wait for the end of the
    // next stop, of which nobody counts it.
    let generation = GENERATION.load(Ordering::Acquire);
    if generation.is_multiple_of(2) {
        return;
    }
    // SAFETY: no arguments; the place of this thread's errno.
    let (id, errno) = unsafe { (libc::gettid(), *libc::__errno_location()) };
    let count = COUNT.load(Ordering::Acquire);
    let Some(thread) = THREADS[..count]
        .iter()
        .find(|thread| thread.id.load(Ordering::Relaxed) == id)
    else {
        return;
    };
    // Release: what the thread has stored is seen by whoever reads its memory now.
    thread.stopped.store(generation, Ordering::Release);
    while GENERATION.load(Ordering::Acquire) == generation {
        let _ = futex::wait(&GENERATION, futex::Flags::PRIVATE, generation, None);
    }
    // SAFETY: the place of this thread's errno.
    unsafe { *libc::__errno_location() = errno };
}

/// All other threads are stopped while this lives.
pub(super) struct Stopped(());

impl Drop for Stopped {
    fn drop(&mut self) {
        GENERATION.fetch_add(1, Ordering::AcqRel);
        let _ = futex::wake(&GENERATION, futex::Flags::PRIVATE, i32::MAX as u32);
    }
}

/// Stops all other threads; `None` if one does not. One caller at a time.
pub(super) fn all() -> Option<Stopped> {
    COUNT.store(0, Ordering::Release);
    let generation = GENERATION.fetch_add(1, Ordering::AcqRel) + 1;
    let stopped = Stopped(());
    let until = Instant::now() + PATIENCE;
    // A thread that runs may make others: all have stopped when a list shows nobody new.
    loop {
        let known = COUNT.load(Ordering::Relaxed);
        tell_new_threads()?;
        let count = COUNT.load(Ordering::Relaxed);
        if count == known {
            return Some(stopped);
        }
        for thread in &THREADS[known..count] {
            wait_for(thread, generation, until)?;
        }
    }
}

fn wait_for(thread: &Thread, generation: u32, until: Instant) -> Option<()> {
    let mut rounds = 0u32;
    while thread.stopped.load(Ordering::Acquire) != generation {
        rounds += 1;
        if rounds % 64 == 8 && need_not_stop(thread.id.load(Ordering::Relaxed)) {
            return Some(());
        }
        if rounds.is_multiple_of(16) && Instant::now() > until {
            return None;
        }
        match rounds {
            0..20 => thread::yield_now(),
            _ => thread::sleep(Duration::from_micros(20)),
        }
    }
    Some(())
}

/// Sends the signal to threads that were not told yet.
fn tell_new_threads() -> Option<()> {
    let directory = open(c"/proc/self/task", OFlags::DIRECTORY)?;
    let mut buffer = [MaybeUninit::uninit(); 16 << 10];
    let mut entries = RawDir::new(directory, &mut buffer);
    let this = gettid().as_raw_nonzero().get();
    while let Some(entry) = entries.next() {
        // Others are "." and "..".
        let entry = entry.ok()?;
        if let Ok(id) = entry.file_name().to_str().ok()?.parse()
            && id != this
            && !is_known(id)
        {
            tell(id)?;
        }
    }
    Some(())
}

fn is_known(id: i32) -> bool {
    let count = COUNT.load(Ordering::Relaxed);
    THREADS[..count]
        .iter()
        .any(|thread| thread.id.load(Ordering::Relaxed) == id)
}

fn tell(id: i32) -> Option<()> {
    let at = COUNT.load(Ordering::Relaxed);
    let thread = THREADS.get(at)?;
    thread.id.store(id, Ordering::Relaxed);
    thread.stopped.store(0, Ordering::Relaxed);
    COUNT.store(at + 1, Ordering::Release);
    // SAFETY: numbers only. A thread that has ended is found out by `need_not_stop`.
    unsafe { libc::syscall(libc::SYS_tgkill, libc::getpid(), id, signal()) };
    Some(())
}

/// Whether the thread is gone, or only waits to be told of; or is one of durum's own, which block signals, and have no
/// pointers of the program's.
fn need_not_stop(id: i32) -> bool {
    let mut path = [0; 64];
    // Behind what is written zeros are left, which end the string.
    let _ = write!(&mut path[..], "/proc/self/task/{id}/status");
    let path = CStr::from_bytes_until_nul(&path).ok();
    let Some(file) = path.and_then(|path| open(path, OFlags::empty())) else {
        return true;
    };
    let mut text = [0; 4096];
    match rustix::io::read(&file, &mut text) {
        Ok(read @ 1..) => is_out_of_the_way(&text[..read], signal()),
        _ => true,
    }
}

/// What /proc/self/task/N/status says of it.
fn is_out_of_the_way(status: &[u8], signal: i32) -> bool {
    let field = |name: &[u8]| {
        let mut lines = status.split(|byte| *byte == b'\n');
        lines.find_map(|line| line.strip_prefix(name)?.strip_prefix(b":\t"))
    };
    let has_ended = matches!(field(b"State"), Some([b'Z' | b'X', ..]));
    let is_ours = field(b"Name").is_some_and(|name| name.starts_with(b"durum-"));
    let blocked = field(b"SigBlk").and_then(hex).unwrap_or(0);
    has_ended || is_ours && blocked >> (signal - 1) & 1 == 1
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_need_not_stop() {
        let status = |name: &str, state: &str, blocked: u64| {
            format!("Name:\t{name}\nUmask:\t0022\nState:\t{state}\nSigBlk:\t{blocked:016x}\n")
        };
        let is_out = |status: String| is_out_of_the_way(status.as_bytes(), 60);
        assert!(is_out(status("main", "Z (zombie)", 0)));
        assert!(is_out(status("durum-flusher", "S (sleeping)", 1 << 59)));
        assert!(!is_out(status("durum-like", "S (sleeping)", 1 << 58)));
        assert!(!is_out(status("worker", "R (running)", !0)));
        assert!(!is_out(String::new()));
    }
}
