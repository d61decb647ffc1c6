//! The thread that opens pools for threads which are stopped at an access to one that is not open.
//!
//! Not the resolver: while a pool is recovered and opened, others go on to get what waits in pools that are open. The
//! same rules hold for it (docs/internals/on-demand.md): it takes few locks, touches no memory of a pool that waits,
//! and logs nothing itself.

use std::collections::VecDeque;
use std::sync::mpsc::channel;
use std::sync::{Condvar, Mutex};
use std::time::Duration;

use durum_persist::signals::Blocked;
use tracing::subscriber::NoSubscriber;

use super::{Refusal, ask, follow, works_for_stopped};
use crate::fault::OnceInProcess;
use crate::primitive::{locked, waited};
use crate::space::entry_at;

/// How long a thread that is refused waits until the log says why: mostly the signal ends the process. Longer it must
/// not wait, as it may hold what the log waits for.
const TELLING_TIME: Duration = Duration::from_secs(1);

/// What is done with the answer.
pub(super) type Answer = Box<dyn FnOnce(bool) + Send>;

static ASKED: Mutex<VecDeque<(usize, Answer)>> = Mutex::new(VecDeque::new());
static COMES: Condvar = Condvar::new();
static RUNS: OnceInProcess<bool> = OnceInProcess::new();

/// Has the pool opened that an address lies in. Whether there is now one, `answer` is told, if this is true.
pub(super) fn ask_for(address: usize, answer: Answer) -> bool {
    let runs = *RUNS.get_or_init(|| {
        let thread = std::thread::Builder::new().name("durum-opener".into());
        let _blocked = Blocked::all();
        thread.spawn(run).is_ok()
    });
    if runs {
        locked(&ASKED).push_back((address, answer));
        COMES.notify_one();
    }
    runs
}

fn run() {
    works_for_stopped();
    let _unheard = tracing::subscriber::set_default(NoSubscriber::default());
    loop {
        let mut asked = locked(&ASKED);
        let (address, answer) = loop {
            match asked.pop_front() {
                Some(next) => break next,
                None => asked = waited(&COMES, asked),
            }
        };
        drop(asked);
        answer(open(address));
    }
}

/// Whether there is something at the address now, or on its way.
fn open(address: usize) -> bool {
    let is_there = || {
        let waits = ask(|waiting| Ok(waiting.map_for_access(address)));
        waits.unwrap_or(false) || entry_at(address).is_some()
    };
    // Somebody else may have come first.
    if is_there() {
        return true;
    }
    match follow(address) {
        Ok(None) => false,
        Ok(Some(pool)) => {
            tell(Duration::ZERO, move || {
                tracing::info!(pool, "an access led to a pool that was not open: it is now");
            });
            true
        }
        Err(refusal) => {
            tell(TELLING_TIME, move || {
                let Refusal { pool, error } = refusal;
                tracing::error!(
                    pool,
                    address = format_args!("{address:#x}"),
                    %error,
                    "an access led to a pool that is not open and cannot be opened: SIGSEGV"
                );
            });
            false
        }
    }
}

/// Lets another thread tell, and waits for it at most so long.
fn tell(time: Duration, what: impl FnOnce() + Send + 'static) {
    let (told, done) = channel();
    let thread = std::thread::Builder::new().name("durum-teller".into());
    let telling = thread.spawn(move || {
        what();
        // Nobody may be waiting any more.
        let _ = told.send(());
    });
    if telling.is_ok() {
        let _ = done.recv_timeout(time);
    }
}
