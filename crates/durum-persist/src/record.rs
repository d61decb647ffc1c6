//! Recording of media operations, for crash tests.
//!
//! While a [`Recorder`] is attached, every operation of [`crate::line`] and [`crate::file`] on files below its
//! root becomes an [`Event`] of a [`Trace`], in one total order over all threads. [`crate::simulate`] then tries
//! crashes at each event.
//!
//! A program's own stores to mapped memory go through no function of ours. In regions that were announced with
//! `watch` they are found by comparing memory with what the trace says: all of it at each [`api`] mark, the lines
//! concerned before each store and write-back of ours.
//!
//! Only threads that take part are recorded: the one that started the recorder, those that touched a file
//! below the root, and those that called [`join_thread`]. So other tests of the same process do not disturb.

use std::cell::Cell;
use std::path::Path;
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::Site;
use crate::file::MediaFile;
pub use crate::recording::{Data, Event, EventKind, FileId, Note, RecorderOptions, Trace, active};
use crate::recording::{Region, hook};

/// Marks a call of the program's into the library. A crash point of its own, and the moment at which the program's own
/// stores to watched regions are looked for.
#[inline]
pub fn api(name: &'static str) {
    if active() {
        hook::api(name);
    }
}

/// Marks a fact for the check of a crash test, typically `note("acknowledged", operation)`: at later crash
/// points [`CrashPoint::last_note`](crate::simulate::CrashPoint::last_note) gives it back.
#[inline]
pub fn note(name: &'static str, value: u64) {
    if active() {
        hook::note(name, value);
    }
}

/// Whether the recorder that is attached wants this step to be forgotten ([`RecorderOptions::skip`]). For steps of a
/// program that keep an order by other means than write-backs and fences, by waiting for another thread above all: the
/// program asks here before it takes one.
#[inline]
pub fn leaves_out(step: Site) -> bool {
    active() && hook::leaves_out(step)
}

/// Lets the calling thread take part in the recording from now on, even before it touches a recorded file.
pub fn join_thread() {
    if active() {
        hook::join_thread();
    }
}

/// Announces that `len` bytes at `addr` are a shared mapping of `file` from `file_offset` on. With `watch`, the
/// program's own stores there are recorded. To be called for every shared mapping of media, whether or not a recorder
/// is attached: one may be attached later. Private mappings are not media and are not announced.
///
/// # Safety
/// The range stays mapped and readable until [`unmapped`] is called for it. With `watch`, the program changes it by
/// stores to aligned words that may be read atomically at the same time.
pub unsafe fn mapped(addr: *const u8, len: usize, file: &MediaFile, file_offset: u64, watch: bool) {
    hook::mapped(Region {
        addr: addr as usize,
        len,
        file: file.key(),
        file_offset,
        watch,
    });
}

/// Ends what [`mapped`] began, for a whole region or a part of it. To be called *before* the memory is unmapped.
pub fn unmapped(addr: *const u8, len: usize) {
    hook::unmapped(addr as usize, len);
}

/// An attached recorder. There is at most one in a process; starting another one waits until the first has stopped.
#[derive(Debug)]
pub struct Recorder {
    stopped: bool,
    _only_one: MutexGuard<'static, ()>,
}

impl Recorder {
    /// Attaches a recorder to everything below the directory `root`. Its present contents are taken as durable.
    ///
    /// # Panics
    /// If the directory cannot be read, or if this thread already has a recorder (it would wait for itself).
    pub fn start(root: &Path, options: RecorderOptions) -> Recorder {
        assert!(
            !HAS_RECORDER.get(),
            "this thread already has a recorder: stop it first"
        );
        let only_one = ONLY_ONE.lock().unwrap_or_else(PoisonError::into_inner);
        HAS_RECORDER.set(true);
        let recorder = Recorder {
            stopped: false,
            _only_one: only_one,
        };
        if let Err(error) = hook::start(root, options) {
            panic!("cannot record below {}: {error}", root.display());
        }
        recorder
    }

    /// Detaches the recorder and gives the trace.
    ///
    /// # Panics
    /// If the recorded directory cannot be read any more.
    pub fn stop(mut self) -> Trace {
        self.stopped = true;
        match hook::stop() {
            Ok(trace) => trace,
            Err(error) => panic!("cannot read the recorded directory: {error}"),
        }
    }
}

impl Drop for Recorder {
    fn drop(&mut self) {
        if !self.stopped {
            hook::abandon();
        }
        HAS_RECORDER.set(false);
    }
}

static ONLY_ONE: Mutex<()> = Mutex::new(());

thread_local! {
    static HAS_RECORDER: Cell<bool> = const { Cell::new(false) };
}
