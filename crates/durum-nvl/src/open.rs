//! Heaps are opened, made and closed. A heap is a pool; one with a path of its own is a store with the pool `heap`.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::Ordering;

use durum::{Address, Engine, Pool, PoolOptions, Store, StoreError, StoreOptions};

use crate::fatal::{Location, fatal};
use crate::handles::{self, Handle};
use crate::heap::{HEAPS_MAX, Heap};
use crate::layout::{HeapRoot, VERSION, field, put, word};
use crate::open_error::OpenError;
use crate::primitive::locked;
use crate::{free, roots, tx, types};

/// The pool of a store that is one heap.
const POOL: &str = "heap";
/// What makes a directory a store.
const STORE_FILE: &str = "durum.store";

/// How heaps are made and opened. From the environment in programs; tests say it themselves.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct HeapOptions {
    /// The engine of heaps that are made. Default: `DURUM_NVL_ENGINE` (`shadow`, `hybrid`, `twin`), or Shadow.
    pub engine: Option<Engine>,
    /// How their store is made and opened.
    pub store: StoreOptions,
}

impl HeapOptions {
    /// What the environment says.
    ///
    /// # Errors
    /// A name in `DURUM_NVL_ENGINE` that no engine has.
    pub fn from_environment() -> Result<Self, OpenError> {
        let engine = match std::env::var("DURUM_NVL_ENGINE") {
            Ok(name) => Some(Engine::from_name(&name).ok_or_else(|| {
                OpenError::Refused(
                    libc::EINVAL,
                    format!("DURUM_NVL_ENGINE is \"{name}\"; engines are shadow, hybrid and twin"),
                )
            })?),
            Err(_) => None,
        };
        Ok(Self {
            engine,
            store: StoreOptions::new(),
        })
    }
}

/// Stores of open heaps by their paths, or by the sockets of their services, and how many heaps of each are open.
type Stores = BTreeMap<PathBuf, (Store, usize)>;

/// Held while heaps are opened and closed.
static STORES: Mutex<Stores> = Mutex::new(Stores::new());

/// Which store and which pool a path names: a store directory itself, a name in one, or a pool of a service's store.
pub(crate) fn resolve(path: &Path) -> (PathBuf, String) {
    if let Some((store, pool)) = Address::split_pool(path) {
        return (store, pool.unwrap_or_else(|| POOL.to_owned()));
    }
    let is_store = |path: &Path| path.join(STORE_FILE).is_file();
    match (
        path.parent(),
        path.file_name().and_then(|name| name.to_str()),
    ) {
        (Some(parent), Some(name)) if !is_store(path) && is_store(parent) => {
            (parent.to_owned(), name.to_owned())
        }
        _ => (path.to_owned(), POOL.to_owned()),
    }
}

impl Heap {
    /// Opens the heap at `path`, after recovery; what nothing leads to is freed.
    ///
    /// # Errors
    /// Why that cannot be done. The heap is as before.
    pub fn open(path: &Path, options: &HeapOptions) -> Result<*mut Handle, OpenError> {
        let mut stores = locked(&STORES);
        let (store_path, pool_name) = resolve(path);
        roots::prepare();
        let store = find_store(&stores, &store_path)
            .map_or_else(|| Store::open(&store_path, options.store.clone()), Ok)
            .map_err(|error| OpenError::of_open(path, error))?;
        let pool = store
            .open_pool(&pool_name, PoolOptions::new())
            .map_err(|error| OpenError::of_open(path, error))?;
        Self::enter(&mut stores, path, &store_path, store, pool)
    }

    /// Makes a heap at `path` and opens it, with room for `size` bytes. It exists durably when this returns. `mode` is
    /// for the directory of a store that is made.
    ///
    /// # Errors
    /// Why that cannot be done, above all that it exists.
    pub fn create(
        path: &Path,
        size: u64,
        mode: u32,
        options: &HeapOptions,
    ) -> Result<*mut Handle, OpenError> {
        let mut stores = locked(&STORES);
        let (store_path, pool_name) = resolve(path);
        let engine = options.engine.unwrap_or(Engine::Shadow);
        let pool_options = PoolOptions::new().engine(engine);
        let known = find_store(&stores, &store_path);
        let (store, is_new) = match known {
            Some(store) => (store, false),
            None => match Store::create(&store_path, options.store.clone()) {
                Ok(store) => (store, true),
                Err(error @ durum::Error::Store(StoreError::StoreExists { .. })) => {
                    (open_instead(&store_path, options, error)?, false)
                }
                Err(error) => return Err(error.into()),
            },
        };
        let pool = store.create_pool(&pool_name, pool_options)?;
        if is_new {
            restrict(&store_path, mode)?;
        }
        if size > 0 {
            pool.reserve(size)?;
        }
        Self::enter(&mut stores, path, &store_path, store, pool)
    }

    fn enter(
        stores: &mut Stores,
        path: &Path,
        store_path: &Path,
        store: Store,
        pool: Pool,
    ) -> Result<*mut Handle, OpenError> {
        if handles::open_heaps().any(|heap| heap.pool.key() == pool.key()) {
            return Err(OpenError::Refused(
                libc::EBUSY,
                format!(
                    "the heap \"{}\" is open already in this process: use the handle that the program has",
                    path.display()
                ),
            ));
        }
        let Some((index, handle)) = handles::reserve() else {
            return Err(OpenError::Refused(
                libc::EMFILE,
                format!("{HEAPS_MAX} heaps are open, and more cannot be: close one"),
            ));
        };
        let root = make_root(&pool)?;
        let known = stores.entry(canonical(store_path));
        known.or_insert_with(|| (store.clone(), 0)).1 += 1;
        let heap = Box::new(Heap::new(handle, path, store, pool, root));
        // Nothing volatile leads into it yet, so whatever is on the zero list goes.
        free::everything_listed(&heap);
        // Those that a crash has left were fresh and were not counted.
        heap.fresh.store(0, Ordering::Release);
        Ok(handles::publish(index, Box::into_raw(heap)))
    }

    /// Closes a heap: what nothing in it leads to is freed first. One that is not open, or that a transaction has, ends
    /// the program.
    pub(crate) fn close(handle: *mut Handle, at: Location) {
        if tx::is_running() {
            fatal!(
                at,
                "a heap is closed inside of a transaction; close it behind that"
            );
        }
        tx::make_dirty_durable(at);
        let mut stores = locked(&STORES);
        // SAFETY: made by `enter`, and nobody finds it or uses it any more.
        let heap = unsafe { Box::from_raw(handles::forget(handle, at)) };
        if !heap.is_of_parent() {
            free::everything_listed(&heap);
        }
        let store = heap.store.clone();
        // The pool closes here, and the store with its last heap.
        drop(heap);
        let client = store.info().client;
        let known = stores
            .iter_mut()
            .find(|(_, (known, _))| known.info().client == client);
        let Some((path, (_, heaps))) = known else {
            return;
        };
        *heaps -= 1;
        if *heaps == 0 {
            let path = path.clone();
            stores.remove(&path);
            // What was committed is durable whether or not that can be recorded; the next opener recovers.
            let _ = store.close();
        }
    }
}

/// The store in whose way a new one would be: a crash may have left a store without its pool, and a store may get a
/// further heap. `exists` is the error where it is none.
fn open_instead(
    path: &Path,
    options: &HeapOptions,
    exists: durum::Error,
) -> Result<Store, OpenError> {
    match Store::open(path, options.store.clone()) {
        // What there is to say of a service says whoever asks it.
        opened if matches!(Address::parse(path), Address::Service(_)) => Ok(opened?),
        Err(durum::Error::Store(StoreError::StoreMissing { .. })) => Err(exists.into()),
        Err(_) if !path.is_dir() => Err(exists.into()),
        // Parts of a store, too, are a store: what is missing can be made anew, and its user must not remove the rest.
        opened => Ok(opened?),
    }
}

fn canonical(path: &Path) -> PathBuf {
    let (Address::Directory(path) | Address::Service(path)) = Address::parse(path);
    path.canonicalize().unwrap_or(path)
}

fn find_store(stores: &Stores, path: &Path) -> Option<Store> {
    let known = stores.get(&canonical(path));
    known.map(|(store, _)| store.clone())
}

/// The root object of the pool, made now if it has none.
fn make_root(pool: &Pool) -> Result<usize, OpenError> {
    let id = pool.ensure_described(types::heap_type())?;
    pool.ensure_described(types::proxy_type())?;
    let mut root = 0;
    pool.transaction(|tx| {
        let is_new = pool.root_type()?.is_none();
        let object = pool.root_bytes(id, size_of::<HeapRoot>(), 8)?;
        root = object.expose_provenance();
        if is_new {
            // SAFETY: the root object is 32 bytes, and nobody else knows it yet.
            unsafe {
                tx.add_bytes(object, size_of::<HeapRoot>(), Default::default())?;
                put(field!(root, HeapRoot, version), VERSION);
            }
        }
        Ok::<_, durum::Error>(())
    })?;
    // SAFETY: the root object, which is there as long as the pool is open.
    match unsafe { word(field!(root, HeapRoot, version)) } {
        VERSION => Ok(root),
        other => Err(OpenError::Refused(
            libc::EINVAL,
            format!("the heap has layout {other}, and this version of durum has {VERSION}"),
        )),
    }
}

/// Gives the store directory the permissions of a heap: who may read it may also search it.
fn restrict(path: &Path, mode: u32) -> Result<(), OpenError> {
    use std::os::unix::fs::PermissionsExt;
    let mode = if mode == 0 { 0o600 } else { mode & 0o777 };
    let mode = mode | (mode >> 2 & 0o111);
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).map_err(|error| {
        OpenError::Refused(
            error.raw_os_error().unwrap_or(libc::EIO),
            format!(
                "the permissions of \"{}\" cannot be set: {error}",
                path.display()
            ),
        )
    })
}
