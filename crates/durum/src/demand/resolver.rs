//! The thread that maps puddles for threads which are stopped at an access.
//!
//! Such a thread may hold any lock but a few (docs/internals/on-demand.md): the resolver takes no other, touches no
//! memory of a pool, and logs nothing.

use std::io;
use std::ops::Range;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use durum_persist::signals::Blocked;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::mm::{Advice, MprotectFlags};
use rustix::pipe::{PipeFlags, pipe_with};
use tracing::subscriber::NoSubscriber;

use super::{
    ASK_FOR_POOL, any_follows, any_may_wait, ask, does_work_for_stopped, works_for_stopped,
};
use crate::fault::{OnceInProcess, forked, puddles_come_later};
use crate::mapping::PAGE;
use crate::primitive::{futex_wait, futex_wake};
use crate::space::{entry_at, is_reserved};
use crate::userfaultfd::{Accesses, Mode, Userfaultfd};

/// What a thread asks that is in a signal handler. It stays on its stack until the answer is there.
struct Request {
    address: usize,
    /// Nothing was mapped there: a pool may be opened.
    may_open: bool,
    answer: AtomicU32,
}

/// How often both sides look before they sleep. Accesses to waiting puddles come one soon after the other, and waking a
/// thread on a processor that sleeps takes longer than mapping a puddle. Whoever else wants the processor gets it.
const LOOKS: usize = 100;

/// No answer yet.
const ASKED: u32 = 0;
const MAPPED: u32 = 1;
const REFUSED: u32 = 2;

/// What a process has of it.
#[derive(Debug)]
pub(crate) struct Resolver {
    /// Where handlers write the addresses of their requests.
    requests: OwnedFd,
    faults: io::Result<(Arc<Userfaultfd>, Accesses)>,
}

static RESOLVER: OnceInProcess<io::Result<Resolver>> = OnceInProcess::new();

/// The resolver of this process; its thread is started by the first call.
pub(crate) fn resolver() -> Result<&'static Resolver, &'static io::Error> {
    RESOLVER.get_or_init(Resolver::start).as_ref()
}

impl Resolver {
    fn start() -> io::Result<Self> {
        let open = |accesses| Ok((Arc::new(Userfaultfd::open(accesses, 0)?), accesses));
        let faults = open(Accesses::ProgramAndKernel).or_else(|_| open(Accesses::Program));
        let (asked, requests) = pipe_with(PipeFlags::CLOEXEC)?;
        let watched = faults.as_ref().ok().map(|(faults, _)| faults.clone());
        let thread = std::thread::Builder::new().name("durum-resolver".into());
        // The thread inherits the mask: the program's handlers run in the program's threads.
        let _blocked = Blocked::all();
        thread.spawn(move || run(&asked, watched.as_deref()))?;
        puddles_come_later(admit);
        Ok(Self { requests, faults })
    }

    /// Whose accesses a userfaultfd sees, if there is one.
    pub(crate) fn accesses(&self) -> Result<Accesses, &io::Error> {
        self.faults.as_ref().map(|(_, accesses)| *accesses)
    }
}

fn run(asked: &OwnedFd, faults: Option<&Userfaultfd>) {
    works_for_stopped();
    // What the service has to say while it is asked here: a subscriber may wait for a thread that is stopped.
    let _unheard = tracing::subscriber::set_default(NoSubscriber::default());
    let mut fds = vec![PollFd::new(asked, PollFlags::IN)];
    fds.extend(faults.map(|faults| PollFd::new(faults, PollFlags::IN)));
    let mut looks = LOOKS;
    loop {
        let at_once = Timespec::default();
        match poll(&mut fds, (looks < LOOKS).then_some(&at_once)) {
            Ok(0) => {
                looks += 1;
                rustix::thread::sched_yield();
                continue;
            }
            Ok(_) | Err(Errno::INTR | Errno::AGAIN) => looks = 0,
            // The descriptors were closed by somebody whose they are not.
            Err(_) => return,
        }
        if fds[0].revents().contains(PollFlags::IN) {
            answer(asked);
        }
        if let Some(faults) = faults {
            faults.stopped_at(|address| {
                let page = address & !(PAGE - 1);
                map(address);
                // Also where nothing is mapped: then the access ends in a signal.
                let _ = faults.wake(&(page..page + PAGE));
            });
        }
    }
}

fn map(address: usize) -> bool {
    ask(|waiting| Ok(waiting.map_for_access(address))).unwrap_or(false)
}

/// Does what handlers have asked for.
fn answer(asked: &OwnedFd) {
    let mut pointers = [0; 64 * size_of::<usize>()];
    let Ok(len) = rustix::io::read(asked, &mut pointers) else {
        return;
    };
    for pointer in pointers[..len].as_chunks().0 {
        let pointer: *const Request =
            std::ptr::with_exposed_provenance(usize::from_ne_bytes(*pointer));
        // SAFETY: it stays where it is until it is answered.
        let request = unsafe { &*pointer };
        let is_mapped = map(request.address);
        if let Some(ask_for_pool) = ASK_FOR_POOL.get()
            && !is_mapped
            && request.may_open
            && any_follows()
        {
            let place = pointer.expose_provenance();
            let answer = move |is_there| {
                let request = std::ptr::with_exposed_provenance(place);
                // SAFETY: as above, and nobody else answers it.
                unsafe { Request::answer(request, is_there) };
            };
            if ask_for_pool(request.address, Box::new(answer)) {
                continue;
            }
        }
        // SAFETY: as above.
        unsafe { Request::answer(request, is_mapped) };
    }
}

impl Request {
    /// # Safety
    /// It has no answer yet.
    unsafe fn answer(request: *const Self, is_there: bool) {
        let answer = if is_there { MAPPED } else { REFUSED };
        // SAFETY: it stays where it is until it is answered.
        let word = unsafe { &(*request).answer };
        word.store(answer, Ordering::Release);
        // The request may be gone by now; the kernel looks for sleepers at its address, and finds none or one that
        // looks again.
        futex_wake(word);
    }
}

/// Whether something may have been mapped at an address since an access to it sent SIGSEGV. Async-signal-safe.
pub(crate) fn may_have_been_mapped(address: usize) -> bool {
    RESOLVER.known().is_some() && entry_at(address).is_some()
}

/// Has a puddle mapped that a thread has accessed; false if none waits there. For handlers of SIGSEGV and SIGBUS:
/// async-signal-safe, and leaves `errno` alone.
pub(crate) fn admit(address: usize) -> bool {
    any_may_wait() && ask_resolver(address, false)
}

/// The same where nothing was mapped when the thread accessed it: the pool is opened that lies there, if there is one
/// ([`Follow`](super::Follow)). For the handler of SIGSEGV.
pub(crate) fn admit_or_open(address: usize) -> bool {
    (any_may_wait() || any_follows()) && ask_resolver(address, true)
}

fn ask_resolver(address: usize, may_open: bool) -> bool {
    // Of other addresses nobody asks: the thread may have what the resolver waits for.
    if !is_reserved(address) || forked() || does_work_for_stopped() {
        return false;
    }
    let Some(Ok(resolver)) = RESOLVER.known() else {
        return false;
    };
    let request = Request {
        address,
        may_open,
        answer: AtomicU32::new(ASKED),
    };
    let pointer = std::ptr::from_ref(&request).expose_provenance();
    // A pipe takes so few bytes whole or not at all.
    while let Err(errno) = rustix::io::write(&resolver.requests, &pointer.to_ne_bytes()) {
        if errno != Errno::INTR {
            return false;
        }
    }
    let mut looks = 0;
    while request.answer.load(Ordering::Acquire) == ASKED {
        if looks < LOOKS {
            looks += 1;
            rustix::thread::sched_yield();
        } else {
            futex_wait(&request.answer, ASKED);
        }
    }
    request.answer.load(Ordering::Acquire) == MAPPED
}

/// Makes a placeholder of reserved addresses: a thread that accesses it is stopped, until something is mapped there.
pub(crate) fn put_placeholder(range: &Range<usize>) -> io::Result<()> {
    let missing = || io::Error::from(io::ErrorKind::Unsupported);
    let resolver = resolver().map_err(|_| missing())?;
    let (faults, _) = resolver.faults.as_ref().map_err(|_| missing())?;
    let start = std::ptr::with_exposed_provenance_mut(range.start);
    // SAFETY: addresses that are reserved for a puddle, and where nothing is mapped.
    unsafe {
        rustix::mm::madvise(start, range.len(), Advice::LinuxDontFork)?;
        // Where the program has locked its memory, the kernel would make pages now, and nobody would be stopped.
        let _ = rustix::mm::munlock(start, range.len());
    }
    // Before anybody can access it.
    faults.register(range, Mode::Missing)?;
    // SAFETY: as above.
    unsafe {
        let access = MprotectFlags::READ | MprotectFlags::WRITE;
        rustix::mm::mprotect(start, range.len(), access)?;
    }
    Ok(())
}
