//! What the tests share: a heap on each engine, nodes, the words of a header, a part of a test in another process.

use std::ffi::{CStr, c_void};
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use std::ptr::null;

pub use crate::processes::directory;
use durum::Engine;
pub use durum_nvl::abi::*;
use durum_nvl::{Handle, Heap, HeapOptions};
use durum_service::{CheckOptions, Leaks, Severity};

pub const ENGINES: [Engine; 3] = [Engine::Shadow, Engine::Hybrid, Engine::Twin];

/// `struct node { long value; nvl struct node *next, *other; nvl struct node *nvl_wp back; }`
#[repr(C)]
pub struct Node {
    pub value: i64,
    pub next: *mut Node,
    pub other: *mut Node,
    pub back: usize,
}

pub const NODE: &CStr = c"nvl1 32 8 00000000000000aa\nstruct \"node\"(32,8){0:\"value\":i64;8:\"next\":*0;16:\"other\":*0;24:\"back\":~0;}\n";
pub const LONG: &CStr = c"nvl1 8 8 00000000000000bb\ni64\n";
/// Rows of pointers to nodes.
pub const SLOT: &CStr = c"nvl1 8 8 00000000000000cc\n*1\nstruct \"node\"(32,8){0:\"value\":i64;8:\"next\":*1;16:\"other\":*1;24:\"back\":~1;}\n";

/// A heap in a directory of its own.
pub struct Place {
    pub dir: tempfile::TempDir,
    pub options: HeapOptions,
    pub heap: *mut Handle,
}

pub fn options(engine: Engine) -> HeapOptions {
    let mut options = HeapOptions::default();
    options.engine = Some(engine);
    options
}

impl Place {
    pub fn new(engine: Engine) -> Self {
        Self::with(options(engine))
    }

    pub fn with(options: HeapOptions) -> Self {
        let dir = tempfile::tempdir_in("/dev/shm").unwrap();
        let heap = Heap::create(&dir.path().join("heap"), 0, 0, &options).unwrap();
        Self { dir, options, heap }
    }

    pub fn path(&self) -> PathBuf {
        self.dir.path().join("heap")
    }

    /// Closes the heap and opens it.
    pub fn reopen(&mut self) {
        self.close();
        self.heap = Heap::open(&self.path(), &self.options).unwrap();
    }

    pub fn close(&mut self) {
        unsafe { nvl_close(self.heap) };
        self.heap = std::ptr::null_mut();
    }

    pub fn node(&self, value: i64) -> *mut Node {
        node(self.heap, value)
    }

    pub fn root(&self) -> *mut Node {
        unsafe { __nvl_get_root(self.heap, NODE.as_ptr()).cast() }
    }

    pub fn set_root(&self, root: *mut Node) {
        unsafe { __nvl_set_root(self.heap, root.cast(), NODE.as_ptr()) };
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            self.close();
        }
    }
}

pub fn node(heap: *mut Handle, value: i64) -> *mut Node {
    unsafe {
        let node: *mut Node = __nvl_alloc(heap, 1, size_of::<Node>(), NODE.as_ptr()).cast();
        (*node).value = value;
        node
    }
}

/// `*slot = value` for a strong pointer.
pub fn store<T>(slot: *mut *mut T, value: *mut T) {
    unsafe { __nvl_store_ptr(slot.cast(), value.cast()) };
}

/// A transaction on one heap.
pub fn transaction<R>(heap: *mut Handle, body: impl FnOnce(*mut TxBlock) -> R) -> R {
    let mut block = std::mem::MaybeUninit::<TxBlock>::uninit();
    let heaps = [heap.cast_const()];
    unsafe {
        __nvl_tx_begin(block.as_mut_ptr(), 0, 1, heaps.as_ptr());
        let result = body(block.as_mut_ptr());
        __nvl_tx_end(block.as_mut_ptr());
        result
    }
}

/// What a header says: strong pointers, state, elements. (docs/reference/nvl-runtime.md)
pub fn header<T>(data: *const T) -> (u64, u64, u64) {
    let words = data.cast::<u64>();
    unsafe { (*words.sub(2), *words.sub(1), *words.sub(6)) }
}

pub const FRESH: u64 = 1;
pub const LISTED: u64 = 2;

pub fn strong<T>(data: *const T) -> u64 {
    header(data).0
}

/// Checks a store that is closed: it has no damage. How many objects nothing leads to.
pub fn leaks(path: &Path) -> u64 {
    let report = durum_service::check(path, &CheckOptions::default()).unwrap();
    let worst = report
        .findings
        .iter()
        .find(|one| one.severity > Severity::Leak);
    assert!(worst.is_none(), "{}", worst.unwrap());
    match report.pools.first().unwrap().leaks {
        Leaks::Judged { objects, .. } => objects,
        ref other => panic!("{other:?}"),
    }
}

/// Objects of the pool, the root object among them.
pub fn objects(path: &Path) -> u64 {
    let report = durum_service::check(path, &CheckOptions::default()).unwrap();
    report.pools.first().unwrap().objects
}

/// Starts the ignored test `name` in a process of its own, with `dir` to work in; what it says on its standard error
/// can be read.
pub fn start(name: &str, dir: &Path) -> Child {
    let mut command = crate::processes::command(name, dir);
    command.stderr(Stdio::piped()).spawn().unwrap()
}

pub fn untyped<T>(pointer: *mut T) -> *const c_void {
    if pointer.is_null() {
        null()
    } else {
        pointer.cast()
    }
}
