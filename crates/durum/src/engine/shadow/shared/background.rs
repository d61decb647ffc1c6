//! A thread that works for a store in the background, and lets it close.

use std::mem::ManuallyDrop;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use durum_persist::count;
use durum_persist::signals::Blocked;

use crate::fault::forked;
use crate::opened::StoreInner;
use crate::primitive::locked;

/// What a step of the work asks for.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Next {
    /// The next step after this time, or when the thread is woken.
    After(Duration),
    /// The next step when the thread is woken.
    WhenWoken,
}

/// A thread that runs until it is stopped or the store is gone.
#[derive(Debug)]
pub(crate) struct Background {
    /// Not dropped but joined: in a forked child the thread is not there, and its handle may already mean another one.
    thread: ManuallyDrop<JoinHandle<()>>,
    stopped: Arc<AtomicBool>,
}

impl Background {
    /// Starts it, with a nap of `first`. `None` if the system gives no thread.
    pub(crate) fn start(
        name: &'static str,
        store: &Arc<StoreInner>,
        first: Next,
        mut step: impl FnMut(&StoreInner) -> Next + Send + 'static,
    ) -> Option<Self> {
        let stopped = Arc::new(AtomicBool::new(false));
        let (store, told) = (Arc::downgrade(store), stopped.clone());
        let thread = thread::Builder::new().name(name.into());
        // It inherits the mask: the program's handlers run in the program's threads.
        let blocked = Blocked::all();
        let thread = thread.spawn(move || run(&store, &told, first, &mut step));
        drop(blocked);
        let thread = thread
            .inspect_err(
                |error| tracing::warn!(%error, name, "no thread for work in the background"),
            )
            .ok()?;
        Some(Self {
            thread: ManuallyDrop::new(thread),
            stopped,
        })
    }

    /// The next step is made now; if one is being made, behind that.
    pub(crate) fn wake(&self) {
        self.thread.thread().unpark();
    }

    /// Ends the thread, and waits for that.
    pub(crate) fn stop(self) {
        self.stopped.store(true, Ordering::Release);
        self.wake();
        // A panic in it has poisoned the store, if anything was at stake.
        let _ = ManuallyDrop::into_inner(self.thread).join();
    }

    /// Has the thread end, some time.
    fn let_go(self) {
        self.stopped.store(true, Ordering::Release);
        self.wake();
        drop(ManuallyDrop::into_inner(self.thread));
    }
}

/// A thread that is started when it is first woken, and makes a step each time.
#[derive(Debug, Default)]
pub(super) struct Sleeper(Mutex<Option<Background>>);

impl Sleeper {
    /// False if the system gives no thread.
    pub(super) fn wake(
        &self,
        name: &'static str,
        store: &Arc<StoreInner>,
        step: fn(&StoreInner) -> Next,
    ) -> bool {
        let mut thread = locked(&self.0);
        if thread.is_none() {
            *thread = Background::start(name, store, Next::WhenWoken, step);
        }
        if let Some(thread) = &*thread {
            thread.wake();
        }
        thread.is_some()
    }

    /// Ends the thread, if there is one; the next who wakes it starts another.
    pub(super) fn stop(&self) {
        let thread = locked(&self.0).take();
        if let Some(thread) = thread {
            thread.stop();
        }
    }
}

/// A thread that was woken behind the last pool's close, by a commit to a pool of another engine, finds that the store
/// is gone. Nobody waits for it: it may be the one that had the store last.
impl Drop for Sleeper {
    fn drop(&mut self) {
        let thread = (self.0.get_mut()).unwrap_or_else(PoisonError::into_inner);
        if !forked()
            && let Some(thread) = thread.take()
        {
            thread.let_go();
        }
    }
}

/// The thread. Between its steps it does not hold the store, so that the store can close.
fn run(
    store: &Weak<StoreInner>,
    stopped: &AtomicBool,
    mut next: Next,
    step: &mut dyn FnMut(&StoreInner) -> Next,
) {
    count::mark_background_thread();
    loop {
        match next {
            Next::After(time) => thread::park_timeout(time),
            Next::WhenWoken => thread::park(),
        }
        if stopped.load(Ordering::Acquire) {
            return;
        }
        // Whoever stops this thread holds the store until it has ended: this is never the last handle.
        let Some(store) = store.upgrade() else {
            return;
        };
        next = step(&store);
    }
}
