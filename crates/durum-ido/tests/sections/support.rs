//! One heap at a time in a process, so one test at a time.

use std::path::Path;
use std::sync::{Mutex, MutexGuard, PoisonError};

use durum::{Domain, StoreOptions};
use durum_persist::Site;
use durum_persist::record::{Recorder, RecorderOptions, Trace};

use crate::program::{self, Root};
use crate::{handing, locals, memory, telling};

/// Closes the heap: the threads of a test that used it have ended, or wait.
pub fn close() -> durum::Result<()> {
    unsafe { durum_ido::close() }
}

/// Keeps other tests away. A heap that a failed test has left open is closed with it.
pub struct Alone(#[expect(dead_code, reason = "held")] MutexGuard<'static, ()>);

pub fn alone() -> Alone {
    static ALONE: Mutex<()> = Mutex::new(());
    program::register();
    memory::register();
    handing::register();
    locals::register();
    telling::register();
    Alone(ALONE.lock().unwrap_or_else(PoisonError::into_inner))
}

impl Drop for Alone {
    fn drop(&mut self) {
        let _ = close();
    }
}

/// A heap, on a thread of its own.
pub fn with_heap(body: impl FnOnce(*mut Root) + Send) {
    let _alone = alone();
    let directory = scratch();
    on_a_thread(|| {
        body(open(&directory.path().join("heap"))?);
        close().map_err(|error| error.to_string())
    })
    .unwrap();
}

pub fn scratch() -> tempfile::TempDir {
    tempfile::tempdir_in("/dev/shm").unwrap()
}

pub fn options() -> StoreOptions {
    StoreOptions::new()
        .domain(Domain::Dax)
        .base(0x3000_0000_0000u64)
        .checkpoint_thread(false)
}

/// Opens the heap, and gives its root.
pub fn open(path: &Path) -> Result<*mut Root, String> {
    durum_ido::open(path, &options()).map_err(|error| error.to_string())?;
    Ok(durum_ido::abi::nv_root(size_of::<Root>()).cast())
}

/// On a thread of its own: what it keeps of the heap goes away with it.
pub fn on_a_thread<R: Send>(body: impl FnOnce() -> Result<R, String> + Send) -> Result<R, String> {
    std::thread::scope(|scope| {
        let running = scope.spawn(body);
        running.join().unwrap_or_else(|_| Err("a panic".into()))
    })
}

/// What `body` does to a new heap, in which `before` has been done, is recorded, with one step left out.
pub fn recorded<T>(
    skip: Option<Site>,
    before: impl FnOnce(*mut Root) -> T + Send,
    body: impl FnOnce(*mut Root, T) + Send,
) -> Trace {
    let directory = scratch();
    let path = directory.path().join("heap");
    on_a_thread(|| {
        let root = open(&path)?;
        let made = before(root);
        let options = RecorderOptions {
            skip,
            ..RecorderOptions::default()
        };
        let recorder = Recorder::start(&path, options);
        body(root, made);
        let trace = recorder.stop();
        close().map_err(|error| error.to_string())?;
        Ok(trace)
    })
    .unwrap()
}
