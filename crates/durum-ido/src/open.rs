//! How a heap is opened or made, and the sections that it was left in are completed.

use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};

use durum::primitive::locked;
use durum::{
    Address, Domain, Engine, InterruptedSections, Pool, PoolOptions, Store, StoreError,
    StoreOptions,
};

use crate::alloc;
use crate::fatal::fatal;
use crate::globals;
use crate::heap::{self, Heap, VERSION};
use crate::layout::HeapRoot;
use crate::open_error::{OpenError, refuse};
use crate::reach::{self, EPOCH_END};
use crate::resume::Whose;
use crate::{resume, slots, stats, thread};

/// A heap is open, and its sections are completed.
static IS_OPEN: AtomicBool = AtomicBool::new(false);
/// The pool of the store, where nothing else is said.
const POOL: &str = "heap";

/// Opens the heap at `path`, or makes it: the pool `heap` of the store in that directory, or the pool of a service's
/// store that an address names (`durum:POOL`). Sections that its former program was in are completed when this returns.
///
/// What is in the heap is durable; the heap itself is when this returns.
///
/// # Errors
/// `Refused` where a heap is open already, on a file system that is no memory, and for a pool of another kind; else
/// what the store says. No heap is open then.
pub fn open(path: &Path, options: &StoreOptions) -> Result<(), OpenError> {
    static OPENING: Mutex<()> = Mutex::new(());
    stats::begin_if_wanted();
    let _one_at_a_time = locked(&OPENING);
    if let Some(open) = heap::path() {
        let open = open.display();
        return refuse(format!(
            "the heap {open} is open already, and a program has one: use that"
        ));
    }
    let (place, name) = match Address::split_pool(path) {
        Some((service, name)) => (service, name.unwrap_or_else(|| POOL.to_owned())),
        None => (path.to_owned(), POOL.to_owned()),
    };
    check_directory(&place)?;
    // What is the program's own is completed by the program.
    let store = Store::open_or_create(&place, options.clone().run_code(false))?;
    if store.info().domain == Domain::File {
        return Err(not_memory(path));
    }
    let (pool, interrupted) = open_pool(&store, &name, options.run_code)?;
    adopt(store, pool, interrupted)
}

/// Opens what a client has left that is gone, as the one that a service has started for that, and completes its
/// sections, by a connection to the service. Durable when this returns; the heap is closed again.
///
/// # Errors
/// `Refused` for what this code cannot complete; else what the service says. The client's pools are as before, or as
/// sections have left them that have gone on.
pub fn complete(connection: OwnedFd) -> Result<(), OpenError> {
    let store = Store::given(connection, &StoreOptions::new())?;
    let left = store.interrupted()?;
    let taken: Vec<InterruptedSections> = (left.into_iter())
        .map(|left| store.take_over_heap(left))
        .collect::<durum::Result<_>>()?;
    let mut pools = taken.iter().flat_map(InterruptedSections::pools);
    let (Some(pool), None) = (pools.next().cloned(), pools.next()) else {
        return refuse(
            "sections of a program that has one pool can be completed: run the program itself"
                .to_owned(),
        );
    };
    adopt(store, pool, taken)?;
    // SAFETY: the threads of sections have ended, and there are no others in a process that only completes.
    Ok(unsafe { close() }?)
}

/// A pool is the program's heap, and what is interrupted in it is completed.
fn adopt(store: Store, pool: Pool, interrupted: Vec<InterruptedSections>) -> Result<(), OpenError> {
    let (path, name) = (store.info().path.clone(), pool.name().to_owned());
    if pool.engine() != Engine::Hybrid {
        let (place, engine) = (path.display(), pool.engine().name());
        return refuse(format!(
            "the pool \"{name}\" of {place} is of the engine {engine}, and sections are completed in place: make a heap at another path"
        ));
    }
    pool.admit_sections();
    let root = pool.root::<HeapRoot>()?;
    let epoch = begin_epoch(&pool, root, &path)?;
    let info = store.info();
    reach::open(info.base, info.space_size, epoch);
    slots::open(store.clone(), reach::opening());
    thread::tell_of_store();
    let store_range = info.base..info.base + info.space_size;
    let left = resume::read(&interrupted, store_range, &pool);
    // Sections that go on use it.
    heap::publish(Heap { pool, root, store });
    let completed = left.map(resume::run);
    let ended = completed.and_then(|freed| resume::done(interrupted, freed));
    match ended {
        Ok(()) => {
            IS_OPEN.store(true, Ordering::Release);
            Ok(())
        }
        Err(error) => {
            // What is said is why it was not opened.
            // SAFETY: the threads of sections have ended, and the program is not told of the heap.
            let _ = unsafe { close() };
            Err(error)
        }
    }
}

/// Closes the heap, for tests: a program that ends leaves it as it is. No thread is in a section, and no other one
/// uses the heap any more.
///
/// # Errors
/// What the store says. The next opener recovers.
///
/// # Safety
/// No other thread is in a function of this crate, nor calls one before a heap is open again.
pub unsafe fn close() -> durum::Result<()> {
    IS_OPEN.store(false, Ordering::Release);
    alloc::close();
    globals::forget();
    // SAFETY: as the caller promises.
    unsafe { heap::close() }
}

/// The first use of the heap opens that of `DURUM_HEAP`, if none is open. The program ends where it cannot be opened;
/// without a name nothing happens, and whoever needs a heap says so.
pub(crate) fn open_of_environment() {
    // A section that goes on is a part of an opening.
    // SAFETY: the thread's own.
    if IS_OPEN.load(Ordering::Acquire) || unsafe { (*thread::current()).is_resuming } != 0 {
        return;
    }
    __durum_ido_open();
}

/// Code that only completes sections has another function in this place, and so nothing that leads to stores by their
/// paths (docs/reference/ido-ir.md).
#[unsafe(no_mangle)]
#[inline(never)]
extern "C" fn __durum_ido_open() {
    let Some(path) = std::env::var_os("DURUM_HEAP") else {
        return;
    };
    // Another thread may have been first.
    if let Err(error) = open(Path::new(&path), &StoreOptions::new())
        && !heap::is_open()
    {
        fatal!("DURUM_HEAP: {}: {error}", Path::new(&path).display());
    }
}

/// Opens the pool, and takes over what has interrupted sections in it.
fn open_pool(
    store: &Store,
    name: &str,
    runs_code: bool,
) -> durum::Result<(Pool, Vec<InterruptedSections>)> {
    let mut interrupted = Vec::new();
    loop {
        let options = PoolOptions::new().engine(Engine::Hybrid);
        match store.open_or_create_pool(name, options) {
            // A service learns of them when it has seen their program end, for which opening the pool waits.
            Err(error @ durum::Error::Store(StoreError::PoolInterrupted { .. })) => {
                let ours = resume::take_over(store, name, Whose::Ours)?;
                // Another build has left its code, or nobody has.
                if ours.is_empty() && !(runs_code && store.complete_by_code(name)?) {
                    let others = resume::take_over(store, name, Whose::Anybodys)?;
                    if others.is_empty() {
                        return Err(error);
                    }
                    interrupted.extend(others);
                }
                interrupted.extend(ours);
            }
            pool => return Ok((pool?, interrupted)),
        }
    }
}

fn not_memory(path: &Path) -> OpenError {
    let path = path.display();
    OpenError::Refused(format!(
        "{path} lies on a file system where stores to memory do not last, and sections have nothing else: make the heap on persistent memory (DAX) or in /dev/shm"
    ))
}

/// Refuses a place before anything is made there.
fn check_directory(path: &Path) -> Result<(), OpenError> {
    if matches!(Address::parse(path), Address::Service(_)) {
        return Ok(());
    }
    let directory = match path.parent() {
        Some(parent) if parent.as_os_str().is_empty() => PathBuf::from("."),
        Some(parent) => parent.to_owned(),
        None => return Ok(()),
    };
    match durum_persist::domain::detect(&directory) {
        Ok(Domain::File) if !path.exists() => Err(not_memory(path)),
        _ => Ok(()),
    }
}

/// Counts this opening, durably.
fn begin_epoch(pool: &Pool, root: *mut HeapRoot, path: &Path) -> Result<u32, OpenError> {
    // SAFETY: the root object, which nobody else knows yet.
    let (version, last) = unsafe { ((*root).version, (*root).epoch) };
    if version > VERSION {
        let path = path.display();
        return refuse(format!(
            "{path} is of version {version}, and this program knows {VERSION}: use a later one"
        ));
    }
    // What bears the same number after so many openings was left by no crash that anybody remembers.
    let epoch = match u32::try_from(last + 1) {
        Ok(epoch) if epoch < EPOCH_END => epoch,
        _ => 1,
    };
    pool.transaction(|tx| {
        // SAFETY: the root object, which nobody else knows yet.
        unsafe {
            tx.set(&raw mut (*root).version, VERSION)?;
            tx.set(&raw mut (*root).epoch, u64::from(epoch))
        }
    })?;
    Ok(epoch)
}
