//! Stopping all other threads: each gets a signal, and waits in its handler until it may go on. Its registers are on
//! its stack meanwhile, where the kernel has put them.
//!
//! While threads are stopped the caller asks the kernel only, and no allocator: a stopped thread may hold its lock, or
//! any other.

use std::mem::MaybeUninit;
use std::ptr;
use std::sync::Once;
use std::sync::atomic::{AtomicI32, AtomicU32, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

/// Odd while threads are to stop. Never reset, so that a signal that comes late finds another number.
static GENERATION: AtomicU32 = AtomicU32::new(0);
/// Threads that were told in this generation.
static THREADS: [Thread; THREADS_MAX] = [const { Thread::none() }; THREADS_MAX];
static COUNT: AtomicUsize = AtomicUsize::new(0);
const THREADS_MAX: usize = 8192;

/// Who has not stopped by then blocks the signal, and nothing is freed.
const PATIENCE: Duration = Duration::from_secs(1);

struct Thread {
    id: AtomicI32,
    /// The generation in which it has stopped.
    stopped: AtomicU32,
}

impl Thread {
    const fn none() -> Self {
        Self {
            id: AtomicI32::new(0),
            stopped: AtomicU32::new(0),
        }
    }
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
        futex(libc::FUTEX_WAIT | libc::FUTEX_PRIVATE_FLAG, generation);
    }
    // SAFETY: the place of this thread's errno.
    unsafe { *libc::__errno_location() = errno };
}

fn futex(operation: i32, value: u32) {
    // SAFETY: the futex is a static; nothing else is passed.
    unsafe {
        libc::syscall(
            libc::SYS_futex,
            GENERATION.as_ptr(),
            operation,
            value,
            ptr::null::<libc::timespec>(),
        )
    };
}

/// All other threads are stopped while this lives.
pub(super) struct Stopped(());

impl Drop for Stopped {
    fn drop(&mut self) {
        GENERATION.fetch_add(1, Ordering::AcqRel);
        futex(libc::FUTEX_WAKE | libc::FUTEX_PRIVATE_FLAG, i32::MAX as u32);
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
        let pause = libc::timespec {
            tv_sec: 0,
            tv_nsec: 20_000,
        };
        // SAFETY: no arguments, or a duration.
        let _ = unsafe {
            match rounds {
                0..20 => libc::sched_yield(),
                _ => libc::nanosleep(&pause, ptr::null_mut()),
            }
        };
    }
    Some(())
}

/// Sends the signal to threads that were not told yet.
fn tell_new_threads() -> Option<()> {
    // SAFETY: a C string; flags only.
    let directory = unsafe {
        libc::open(
            c"/proc/self/task".as_ptr(),
            libc::O_RDONLY | libc::O_DIRECTORY | libc::O_CLOEXEC,
        )
    };
    (directory >= 0).then_some(())?;
    let told = tell_all_in(directory);
    // SAFETY: our own.
    unsafe { libc::close(directory) };
    told
}

#[repr(C, align(8))]
struct Entries([u8; 16 << 10]);

fn tell_all_in(directory: i32) -> Option<()> {
    // SAFETY: no arguments.
    let (process, this) = unsafe { (libc::getpid(), libc::gettid()) };
    let mut entries = Entries([0; 16 << 10]);
    loop {
        // SAFETY: the buffer and its size.
        let filled = unsafe {
            libc::syscall(
                libc::SYS_getdents64,
                directory,
                entries.0.as_mut_ptr(),
                entries.0.len(),
            )
        };
        let mut rest = &entries.0[..usize::try_from(filled).ok()?];
        if rest.is_empty() {
            return Some(());
        }
        // inode, offset, length of the entry (at 16), kind, name (at 19).
        while let Some(length) = rest.get(16..18) {
            let length = usize::from(u16::from_ne_bytes([length[0], length[1]]));
            let name = rest.get(19..length)?;
            rest = rest.get(length..)?;
            let Some(id) = number(name) else {
                continue;
            };
            if id != this && !is_known(id) {
                tell(process, id)?;
            }
        }
    }
}

fn number(name: &[u8]) -> Option<i32> {
    let digits = name.split(|byte| *byte == 0).next()?;
    let is_number = !digits.is_empty() && digits.iter().all(u8::is_ascii_digit);
    is_number.then(|| {
        digits
            .iter()
            .fold(0, |number, digit| number * 10 + i32::from(digit - b'0'))
    })
}

fn is_known(id: i32) -> bool {
    let count = COUNT.load(Ordering::Relaxed);
    THREADS[..count]
        .iter()
        .any(|thread| thread.id.load(Ordering::Relaxed) == id)
}

fn tell(process: i32, id: i32) -> Option<()> {
    let at = COUNT.load(Ordering::Relaxed);
    let thread = THREADS.get(at)?;
    thread.id.store(id, Ordering::Relaxed);
    thread.stopped.store(0, Ordering::Relaxed);
    COUNT.store(at + 1, Ordering::Release);
    // SAFETY: numbers only. A thread that has ended is found out by `need_not_stop`.
    unsafe { libc::syscall(libc::SYS_tgkill, process, id, signal()) };
    Some(())
}

/// Whether the thread is gone, or only waits to be told of; or is one of durum's own, which block signals, and have no
/// pointers of the program's.
fn need_not_stop(id: i32) -> bool {
    let mut path = *b"/proc/self/task/0000000000/status\0";
    let mut rest = id;
    for place in path[16..26].iter_mut().rev() {
        *place = b'0' + (rest % 10) as u8;
        rest /= 10;
    }
    // The kernel knows no numbers with leading zeros.
    let zeros = path[16..26]
        .iter()
        .take_while(|digit| **digit == b'0')
        .count();
    path.copy_within(16 + zeros.., 16);
    let mut text = [0u8; 4096];
    // SAFETY: a C string; the buffer and its size; our own file.
    let read = unsafe {
        let file = libc::open(path.as_ptr().cast(), libc::O_RDONLY | libc::O_CLOEXEC);
        if file < 0 {
            return true;
        }
        let read = libc::read(file, text.as_mut_ptr().cast(), text.len());
        libc::close(file);
        read
    };
    let Ok(read @ 1..) = usize::try_from(read) else {
        return true;
    };
    is_out_of_the_way(&text[..read], signal())
}

/// What /proc/self/task/N/status says of it.
fn is_out_of_the_way(status: &[u8], signal: i32) -> bool {
    let field = |name: &[u8]| {
        let mut lines = status.split(|byte| *byte == b'\n');
        lines.find_map(|line| line.strip_prefix(name)?.strip_prefix(b":\t"))
    };
    let has_ended = matches!(field(b"State"), Some([b'Z' | b'X', ..]));
    let is_ours = field(b"Name").is_some_and(|name| name.starts_with(b"durum-"));
    let blocked = field(b"SigBlk").and_then(super::maps::hex).unwrap_or(0);
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
