//! Stores: made, opened, closed.

use std::ffi::{CStr, OsStr, c_char, c_int};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::time::Duration;

use client::{Delays, Domain, Follow, PuddleMapping, Store};

use crate::guard::{Failure, Result, handle, pointer, status};

/// The domain that the store's file system has.
pub const DURUM_DOMAIN_DETECT: u32 = 0;
/// Persistent memory: survives power loss.
pub const DURUM_DOMAIN_DAX: u32 = 1;
/// Memory (tmpfs): survives the end of the process only.
pub const DURUM_DOMAIN_DRAM: u32 = 2;
/// An ordinary file system, synced at each commit: survives power loss.
pub const DURUM_DOMAIN_FILE: u32 = 3;
/// Memory with the delays of STT-RAM, for measurements.
pub const DURUM_DOMAIN_EMULATED_STT_RAM: u32 = 4;
/// Memory with the delays of phase-change memory, for measurements.
pub const DURUM_DOMAIN_EMULATED_PCM: u32 = 5;

/// As the environment variable DURUM_MAPPING says (`eager`, `on-demand`, `userfaultfd`, `signal`); DURUM_MAPPING_EAGER
/// where it is not set.
pub const DURUM_MAPPING_DEFAULT: u32 = 0;
/// Puddles are mapped when their pool is opened.
pub const DURUM_MAPPING_EAGER: u32 = 1;
/// Puddles are mapped when they are needed: by userfaultfd where the system has it, else by a SIGSEGV handler, else as
/// DURUM_MAPPING_EAGER.
pub const DURUM_MAPPING_ON_DEMAND: u32 = 2;
/// Puddles are mapped when they are needed: the kernel stops a thread that accesses one, and a thread of durum's maps
/// it.
pub const DURUM_MAPPING_USERFAULTFD: u32 = 3;
/// Puddles are mapped when they are needed: a SIGSEGV handler asks a thread of durum's. The program must not block that
/// signal, nor take the handler away.
pub const DURUM_MAPPING_SIGNAL: u32 = 4;

/// On the FILE domain, commits write home what was logged themselves; no thread of the store's does.
pub const DURUM_STORE_NO_CHECKPOINT_THREAD: u32 = 1;
/// DURUM_BUFFERED transactions are durable when their commit returns: the window is 0.
pub const DURUM_STORE_NO_BUFFERING: u32 = 2;
/// Objects without a known type hold no pointers. Of two stores of a process that have the same addresses, as copies of
/// one store have, the one that is opened later is moved to others; with such objects that needs this promise.
pub const DURUM_STORE_UNTYPED_HOLD_NO_POINTERS: u32 = 4;
/// An access to a pool of the store that is not open, through a pointer in another pool, is SIGSEGV. Where none of the
/// DURUM_STORE_FOLLOW_* is set, this is so with DURUM_MAPPING_EAGER, and else it is as DURUM_STORE_FOLLOW_WRITING.
pub const DURUM_STORE_FOLLOW_NEVER: u32 = 8;
/// An access to a pool of the store that is not open opens it for reading only, until the last handle of the store is
/// closed. Where the service refuses, it is SIGSEGV, and the log says which pool and why. It takes a handler of
/// SIGSEGV, which the program must not take away; a system call that is given such an address fails with EFAULT.
pub const DURUM_STORE_FOLLOW_READING: u32 = 16;
/// As DURUM_STORE_FOLLOW_READING, but the pool is opened for writing where the user may write it.
pub const DURUM_STORE_FOLLOW_WRITING: u32 = 32;
/// Code that programs have left to complete their sections (durumcc -fido) is not run when their pools are opened.
pub const DURUM_STORE_NO_CODE: u32 = 64;
/// Others of the same user may watch the program while it has the store open (`durum stat --watch`): a thread of the
/// store's answers them at a socket in $XDG_RUNTIME_DIR/durum, /run/user/UID/durum or /tmp/durum-UID. Nothing of the
/// program waits for them.
pub const DURUM_STORE_OBSERVE: u32 = 128;
/// No thread of the store's makes pages ahead of a pool of the Shadow engine that grows: commits wait for them.
pub const DURUM_STORE_NO_PAGES_AHEAD: u32 = 256;

const FOLLOWS: u32 =
    DURUM_STORE_FOLLOW_NEVER | DURUM_STORE_FOLLOW_READING | DURUM_STORE_FOLLOW_WRITING;

/// An open store. Opaque.
#[derive(Debug)]
pub struct StoreHandle(pub(crate) Store);

/// How a store is made and opened. Start from DURUM_STORE_OPTIONS_INIT.
#[derive(Debug)]
#[repr(C)]
pub struct StoreOptions {
    /// sizeof(durum_store_options).
    pub struct_size: u64,
    /// The base of the store's address range, a multiple of 2 MiB; fixed when the store is made. 0: durum's choice.
    pub base: u64,
    /// One of DURUM_DOMAIN_*. Claiming DAX for a file system that is not loses data.
    pub domain: u32,
    /// What a crash may lose of DURUM_BUFFERED transactions, in microseconds before it. 0: durum's choice, 10,000
    /// (DURUM_STORE_NO_BUFFERING: none).
    pub buffered_window_us: u32,
    /// Bytes that the logs of SHADOW pools may grow to before a commit waits until home places are up to date: recovery
    /// reads about that much. 0: durum's choice, 64 MiB.
    pub log_max: u64,
    /// Bytes of private memory that SHADOW pools may keep together; above, pages are given back, so that a pool may be
    /// larger than memory (docs/internals/engines.md says what a program has to know about it). 0: durum's choice, a
    /// quarter of the memory that the process may use; 1: as little as can be; UINT64_MAX: no limit.
    pub private_max: u64,
    /// Bytes of addresses for the puddles of the store, a multiple of 2 MiB; fixed when the store is made. 0: durum's
    /// choice, 1 TiB. A process reserves twice as much where its limit of address space (`ulimit -v`) lets it, and what
    /// it needs where not.
    pub space: u64,
    /// Bytes by which pools may grow while the store is open for which addresses are reserved when it is opened, where
    /// the process cannot reserve all of the space. 0: none; pools grow until the limit is met.
    pub growth: u64,
    /// DURUM_STORE_* in any combination.
    pub flags: u32,
    /// One of DURUM_MAPPING_*. Where puddles are mapped when they are needed, a system call that is given an address in
    /// one that is not mapped yet fails with EFAULT: call durum_touch before.
    pub mapping: u32,
}

impl StoreOptions {
    /// # Safety
    /// NULL, or readable options.
    unsafe fn read(options: *const Self) -> Result<client::StoreOptions> {
        let defaults = client::StoreOptions::new();
        // SAFETY: as the caller promises.
        let Some(options) = (unsafe { options.as_ref() }) else {
            return Ok(defaults);
        };
        let flags = DURUM_STORE_NO_CHECKPOINT_THREAD
            | DURUM_STORE_NO_BUFFERING
            | DURUM_STORE_UNTYPED_HOLD_NO_POINTERS
            | DURUM_STORE_NO_CODE
            | DURUM_STORE_OBSERVE
            | DURUM_STORE_NO_PAGES_AHEAD
            | FOLLOWS;
        let is_known = options.flags & !flags == 0;
        if options.struct_size != size_of::<Self>() as u64 || !is_known {
            return Err(Failure::argument(
                "the store options were not made with DURUM_STORE_OPTIONS_INIT of this version",
            ));
        }
        let defaults = match options.flags & FOLLOWS {
            0 => defaults,
            DURUM_STORE_FOLLOW_NEVER => defaults.follow(Follow::Never),
            DURUM_STORE_FOLLOW_READING => defaults.follow(Follow::Reading),
            DURUM_STORE_FOLLOW_WRITING => defaults.follow(Follow::Writing),
            _ => {
                let text = "one of DURUM_STORE_FOLLOW_* can be set, and no two";
                return Err(Failure::argument(text));
            }
        };
        let with_base = match options.base {
            0 => defaults,
            base => defaults.base(base),
        };
        let read = match options.buffered_window_us {
            _ if options.flags & DURUM_STORE_NO_BUFFERING != 0 => {
                with_base.buffered_window(Duration::ZERO)
            }
            0 => with_base,
            micros => with_base.buffered_window(Duration::from_micros(micros.into())),
        };
        let read = match options.log_max {
            0 => read,
            bytes => read.log_max(bytes),
        };
        let read = match options.private_max {
            0 => read,
            bytes => read.private_max(bytes),
        };
        let read = match options.space {
            0 => read,
            bytes => read.space(bytes),
        };
        let read = read.growth(options.growth);
        let read = match options.mapping {
            DURUM_MAPPING_DEFAULT => read,
            DURUM_MAPPING_EAGER => read.mapping(PuddleMapping::Eager),
            DURUM_MAPPING_ON_DEMAND => read.mapping(PuddleMapping::OnDemand),
            DURUM_MAPPING_USERFAULTFD => read.mapping(PuddleMapping::Userfaultfd),
            DURUM_MAPPING_SIGNAL => read.mapping(PuddleMapping::Signal),
            other => return Err(Failure::argument(format!("{other} is no DURUM_MAPPING_*"))),
        };
        let read = read.checkpoint_thread(options.flags & DURUM_STORE_NO_CHECKPOINT_THREAD == 0);
        let read = read.pages_ahead(options.flags & DURUM_STORE_NO_PAGES_AHEAD == 0);
        let read = read.run_code(options.flags & DURUM_STORE_NO_CODE == 0);
        let read = read.observe(options.flags & DURUM_STORE_OBSERVE != 0);
        let read = read
            .untyped_hold_no_pointers(options.flags & DURUM_STORE_UNTYPED_HOLD_NO_POINTERS != 0);
        Ok(match options.domain {
            DURUM_DOMAIN_DETECT => read,
            DURUM_DOMAIN_DAX => read.domain(Domain::Dax),
            DURUM_DOMAIN_DRAM => read.domain(Domain::Dram),
            DURUM_DOMAIN_FILE => read.domain(Domain::File),
            DURUM_DOMAIN_EMULATED_STT_RAM => read.domain(Domain::Emulated(Delays::STT_RAM)),
            DURUM_DOMAIN_EMULATED_PCM => read.domain(Domain::Emulated(Delays::PCM)),
            other => return Err(Failure::argument(format!("{other} is no DURUM_DOMAIN_*"))),
        })
    }
}

/// # Safety
/// NULL, or a string that ends with a NUL byte.
pub(crate) unsafe fn path<'a>(path: *const c_char) -> Result<&'a Path> {
    if path.is_null() {
        return Err(Failure::argument("the path is NULL"));
    }
    // SAFETY: as the caller promises. Paths are bytes here: any that the system knows can be opened.
    let bytes = unsafe { CStr::from_ptr(path) }.to_bytes();
    Ok(Path::new(OsStr::from_bytes(bytes)))
}

/// # Safety
/// Arguments as the conventions say.
unsafe fn open<'a>(
    path: *const c_char,
    options: *const StoreOptions,
    how: impl FnOnce(&'a Path, client::StoreOptions) -> client::Result<Store>,
) -> *mut StoreHandle {
    pointer(|| {
        // SAFETY: strings and options as the conventions say.
        let (path, options) = unsafe { (self::path(path)?, StoreOptions::read(options)?) };
        Ok(Box::into_raw(Box::new(StoreHandle(how(path, options)?))))
    })
}

/// Opens the store in the directory `path`. If its last user died, its logs are replayed first, without that program's
/// code.
///
/// `durum:` is the store of this machine's service (durumd), `durum+unix:SOCKET` that of the service at a socket. Other
/// programs use it at the same time; each pool is one program's. A directory of such a name is `./durum:`.
///
/// `options` may be NULL: the defaults. Close the store with durum_store_close.
///
/// Returns NULL on failure; the store is as before then:
/// DURUM_E_STORE_MISSING nothing is there; DURUM_E_STORE_BUSY another process, or this one, has it open;
/// DURUM_E_ADDRESS_CONFLICT its addresses are taken in this process; DURUM_E_ADDRESS_SPACE the process gets none;
/// DURUM_E_FORMAT it is of another version; DURUM_E_DAMAGED, DURUM_E_QUARANTINED, DURUM_E_REGISTRY_OLDER what the
/// message says; DURUM_E_STORE_SERVED a client of its service lives, which has ended; DURUM_E_SERVICE_GONE no service
/// is at the socket; DURUM_E_OPTIONS the service works in another domain; DURUM_E_USER no store can be at the path, or
/// the service does not admit this user; DURUM_E_ARGUMENT, DURUM_E_IO.
#[unsafe(no_mangle)]
#[must_use]
pub unsafe extern "C" fn durum_store_open(
    path: *const c_char,
    options: *const StoreOptions,
) -> *mut StoreHandle {
    // SAFETY: as the caller promises.
    unsafe { open(path, options, Store::open) }
}

/// Makes a store in the directory `path`, which must not exist yet, and opens it. It exists durably on return.
///
/// Returns NULL on failure, and leaves nothing behind:
/// DURUM_E_STORE_EXISTS, for a service's store always; DURUM_E_USER no store can be made at the path, whose parent
/// directory is missing, say; DURUM_E_OPTIONS a base that no store can have; DURUM_E_STORAGE_FULL, DURUM_E_IO,
/// DURUM_E_ARGUMENT; DURUM_E_ADDRESS_CONFLICT the store was made, but something else uses its addresses in this
/// process.
#[unsafe(no_mangle)]
#[must_use]
pub unsafe extern "C" fn durum_store_create(
    path: *const c_char,
    options: *const StoreOptions,
) -> *mut StoreHandle {
    // SAFETY: as the caller promises.
    unsafe { open(path, options, Store::create) }
}

/// Opens the store in the directory `path`, or makes it if nothing is there. Returns NULL on failure, with the codes of
/// durum_store_open and durum_store_create.
#[unsafe(no_mangle)]
#[must_use]
pub unsafe extern "C" fn durum_store_open_or_create(
    path: *const c_char,
    options: *const StoreOptions,
) -> *mut StoreHandle {
    // SAFETY: as the caller promises.
    unsafe { open(path, options, Store::open_or_create) }
}

/// The persistence domain of the store, one of DURUM_DOMAIN_*: what its commits survive. DURUM_DOMAIN_DETECT if `store`
/// is NULL.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn durum_store_domain(store: *const StoreHandle) -> u32 {
    // SAFETY: a live handle, as the conventions say.
    match unsafe { handle(store, "the store") } {
        Ok(store) => match store.0.info().domain {
            Domain::Dax => DURUM_DOMAIN_DAX,
            Domain::Dram => DURUM_DOMAIN_DRAM,
            Domain::File => DURUM_DOMAIN_FILE,
            Domain::Emulated(Delays::STT_RAM) => DURUM_DOMAIN_EMULATED_STT_RAM,
            Domain::Emulated(_) => DURUM_DOMAIN_EMULATED_PCM,
            _ => DURUM_DOMAIN_DETECT,
        },
        Err(_) => DURUM_DOMAIN_DETECT,
    }
}

/// Closes the pools that are open because pointers led there (DURUM_STORE_FOLLOW_*) and that the program has no handle
/// of, so that others may have them. The next access opens them again. NULL is allowed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn durum_store_let_go(store: *const StoreHandle) {
    // SAFETY: NULL, or a live handle, as the conventions say.
    if let Some(store) = unsafe { store.as_ref() } {
        store.0.let_go();
    }
}

/// Gives the handle back. NULL is allowed. The store itself closes when its last pool and log are closed, too; what was
/// committed is durable whether it is closed or not.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn durum_store_close(store: *mut StoreHandle) -> c_int {
    status(|| {
        if !store.is_null() {
            // SAFETY: made by `open`, and not used after this call, as the conventions say.
            drop(unsafe { Box::from_raw(store) });
        }
        Ok(())
    })
}
