//! Whether a client in another process lives: a record lock that it holds on a file of its own, in `clients/`.
//!
//! A record lock ends with its process, however it ends; also when the process executes another program in its place,
//! because the descriptor is closed then. A forked child does not inherit it. So the lock is the truth, and whatever
//! else is noticed of a client is a reason to look at it. A service that starts again finds by it who lives, and so
//! does whoever opens the directory by its path.
//!
//! The client gets a descriptor for reading, and takes a read lock by it. It opens the file only once: closing any of
//! its descriptors would drop the lock. So a service and its clients are never one process.
//!
//! A program may lose the lock by accident: it closes all its descriptors. So the service writes into the file which
//! process it has seen with the lock. While that one lives, nobody takes the client for gone before it was asked. And
//! which pools the client reads, of which nothing else tells.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use durum_format::Uuid;
use durum_persist::Site;
use durum_persist::file::{self, MediaFile};
use durum_persist::own::OwnDescriptor;
use rustix::fs::FlockOperation;
use rustix::process::FlockType;

use crate::error::{Error, Result};
use crate::files;
use crate::lock::{self, Holder, StoreLock};
use crate::process::Process;
use crate::reading::{self, Role};

/// The directory of the files, in the store.
pub(crate) const CLIENTS_DIRECTORY: &str = "clients";

const CLIENT: Site = Site("client's liveness file");

/// The longest that a note of a process is. What it reads stands behind.
const NOTE_MAX: u64 = 256;

const ROLE: Role = Role {
    structure: "the liveness lock of a client",
    cure: "the next opener takes the client for gone",
};

/// Bytes of a pool's name in the file of a client.
const PLACE_BYTES: u64 = 16;

fn name_of(client: Uuid) -> PathBuf {
    Path::new(CLIENTS_DIRECTORY).join(client.to_string())
}

/// What is known of a client in another process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Life {
    /// A process holds its lock: which one, where the system tells.
    Certain(Option<u32>),
    /// Nobody holds its lock, and the process lives that held it: it has lost the lock, or executes another program.
    Doubtful(u32),
    /// Its process has ended.
    Gone,
}

impl Life {
    /// The process that may be writing for the client, where one is known.
    pub fn process(self) -> Option<u32> {
        match self {
            Life::Certain(pid) => pid,
            Life::Doubtful(pid) => Some(pid),
            Life::Gone => None,
        }
    }
}

/// Makes the file of a client, and gives the descriptor that the client takes its lock by.
///
/// Nothing of it is durable, nor has to be: after a power cut nobody lives.
pub(crate) fn make(store: &Path, client: Uuid) -> Result<MediaFile> {
    let directory = store.join(CLIENTS_DIRECTORY);
    match file::create_dir(&directory, CLIENT) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => {
            return Err(Error::io("making the directory", &directory, error));
        }
        _ => {}
    }
    files::ensure_file(&store.join(name_of(client)), "making a client's file")?;
    reading::open(store, name_of(client), ROLE, false)
}

/// The clients whose locks this process holds, with the process that took them: a forked child holds none.
static HELD: Mutex<Vec<(u32, Uuid)>> = Mutex::new(Vec::new());

/// The evidence for others that this process lives as a client. Dropping it says that the client is gone.
#[derive(Debug)]
pub struct Liveness {
    client: Uuid,
    owner: u32,
    /// The one descriptor of the file in this process.
    _file: OwnDescriptor,
}

impl Liveness {
    /// Takes the lock of a client by the descriptor that the service gave. To be called in the client's process.
    ///
    /// # Errors
    /// As the system says.
    pub fn hold(client: Uuid, file: OwnedFd) -> io::Result<Liveness> {
        let file = OwnDescriptor::new(file)?;
        rustix::fs::fcntl_lock(file.get()?, FlockOperation::NonBlockingLockShared)?;
        let owner = std::process::id();
        let mut held = HELD.lock().unwrap_or_else(PoisonError::into_inner);
        held.push((owner, client));
        Ok(Liveness {
            client,
            owner,
            _file: file,
        })
    }
}

impl Drop for Liveness {
    fn drop(&mut self) {
        let mut held = HELD.lock().unwrap_or_else(PoisonError::into_inner);
        held.retain(|row| *row != (self.owner, self.client));
    }
}

/// Writes down which process was seen with the lock of a client.
pub(crate) fn note(store: &Path, client: Uuid, pid: u32) -> Result<()> {
    let file = reading::open(store, name_of(client), ROLE, true)?;
    let process = Process::of(pid)
        .map_err(|error| Error::io("looking at a process", Path::new("/proc"), error))?;
    let written = file.write_all_at(format!("{process}\n").as_bytes(), 0);
    written.map_err(|error| Error::io("writing it", file.path(), error))
}

/// The pools that a client in another process has open for reading, for the service that comes after this one: nothing
/// of it is durable, as the file is not. Behind the note of its process the file has sixteen bytes for each, a pool's
/// name or zeros. So a change is one write, which a service that is killed has made or has not.
pub(crate) fn reads(store: &Path, client: Uuid) -> Result<Vec<Uuid>> {
    let file = reading::open(store, name_of(client), ROLE, false)?;
    let pools = places(&file)?.into_iter();
    Ok(pools.filter(|pool| !pool.is_nil()).collect())
}

/// Notes that a client in another process reads pools.
pub(crate) fn note_reading(store: &Path, client: Uuid, pools: &[Uuid]) -> Result<()> {
    let changes = pools.iter().map(|pool| (Uuid::NIL, *pool));
    change_places(store, client, changes)
}

/// Notes that it reads one no more.
pub(crate) fn note_read(store: &Path, client: Uuid, pool: Uuid) -> Result<()> {
    change_places(store, client, [(pool, Uuid::NIL)].into_iter())
}

/// Puts each second name in the first place of the first one, or behind all.
fn change_places(
    store: &Path,
    client: Uuid,
    changes: impl Iterator<Item = (Uuid, Uuid)>,
) -> Result<()> {
    // A client of this process has no file: it ends with its service.
    let file = match reading::open(store, name_of(client), ROLE, true) {
        Err(Error::FileMissing { .. }) => return Ok(()),
        opened => opened?,
    };
    let mut places = places(&file)?;
    for (old, new) in changes {
        let found = places.iter().position(|place| *place == old);
        let at = found.unwrap_or(places.len());
        file.write_all_at(&new.0, NOTE_MAX + at as u64 * PLACE_BYTES)
            .map_err(|error| Error::io("noting what a client reads", file.path(), error))?;
        match places.get_mut(at) {
            Some(place) => *place = new,
            None => places.push(new),
        }
    }
    Ok(())
}

fn places(file: &MediaFile) -> Result<Vec<Uuid>> {
    let length = reading::length(file)?.saturating_sub(NOTE_MAX);
    let bytes = reading::bytes(file, NOTE_MAX, length)?;
    let (places, _) = bytes.as_chunks::<{ PLACE_BYTES as usize }>();
    Ok(places.iter().map(|place| Uuid(*place)).collect())
}

/// A client's file, kept open to be looked at again and again. Not for the client's own process, which would lose its
/// lock with the descriptor.
#[derive(Debug)]
pub struct Watched {
    client: Uuid,
    /// Absent where there is none, or where this process holds the lock.
    file: Option<MediaFile>,
}

impl Watched {
    pub(crate) fn open(store: &Path, client: Uuid) -> Result<Watched> {
        let held = HELD.lock().unwrap_or_else(PoisonError::into_inner);
        let file = match held.contains(&(std::process::id(), client)) {
            true => None,
            false => match reading::open(store, name_of(client), ROLE, false) {
                Err(Error::FileMissing { .. }) => None,
                opened => Some(opened?),
            },
        };
        Ok(Watched { client, file })
    }

    /// Whether the client lives.
    ///
    /// # Errors
    /// `Io`.
    pub fn life(&self) -> Result<Life> {
        let this = std::process::id();
        let held = HELD.lock().unwrap_or_else(PoisonError::into_inner);
        if held.contains(&(this, self.client)) {
            return Ok(Life::Certain(Some(this)));
        }
        drop(held);
        self.file.as_ref().map_or(Ok(Life::Gone), told_by)
    }
}

/// Whether a client lives.
pub(crate) fn life(store: &Path, client: Uuid) -> Result<Life> {
    let this = std::process::id();
    // Held while the file is opened: whoever takes the lock here meanwhile would lose it when we close the file.
    let held = HELD.lock().unwrap_or_else(PoisonError::into_inner);
    if held.contains(&(this, client)) {
        return Ok(Life::Certain(Some(this)));
    }
    let file = match reading::open(store, name_of(client), ROLE, false) {
        Err(Error::FileMissing { .. }) => return Ok(Life::Gone),
        opened => opened?,
    };
    told_by(&file)
}

/// What a client's file tells of it.
fn told_by(file: &MediaFile) -> Result<Life> {
    let holder = lock::holder(file, FlockType::WriteLock)
        .map_err(|errno| Error::io("asking for the lock", file.path(), errno.into()))?;
    if let Holder::Process(pid) = holder {
        return Ok(Life::Certain(pid));
    }
    let text = reading::bytes(file, 0, reading::length(file)?.min(NOTE_MAX))?;
    let text = String::from_utf8_lossy(&text);
    let note = text.lines().next();
    let process = note.and_then(|note| note.parse::<Process>().ok());
    Ok(match process {
        Some(process) if process.lives() => Life::Doubtful(process.pid),
        _ => Life::Gone,
    })
}

/// The clients of which there are files, living or not.
pub(crate) fn known(store: &Path) -> Result<Vec<Uuid>> {
    let directory = store.join(CLIENTS_DIRECTORY);
    let failed = |error| Error::io("listing the clients", &directory, error);
    let entries = match fs::read_dir(&directory) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        entries => entries.map_err(failed)?,
    };
    let mut known = Vec::new();
    for entry in entries {
        let name = entry.map_err(failed)?.file_name();
        known.extend(name.to_str().and_then(|name| name.parse::<Uuid>().ok()));
    }
    Ok(known)
}

/// The clients that may live.
pub(crate) fn living(store: &Path) -> Result<BTreeMap<Uuid, Life>> {
    let mut living = BTreeMap::new();
    for client in known(store)? {
        match life(store, client)? {
            Life::Gone => {}
            lives => drop(living.insert(client, lives)),
        }
    }
    Ok(living)
}

/// Removes the files of clients that do not live.
pub(crate) fn forget_others(store: &Path, living: &BTreeMap<Uuid, Life>) -> Result<()> {
    let known = known(store)?.into_iter();
    known
        .filter(|client| !living.contains_key(client))
        .try_for_each(|client| forget(store, client))
}

/// Who writes in the store: whoever holds it, else a client whose service has ended.
pub(crate) fn current_writer(store: &Path) -> Result<Holder> {
    Ok(match lock::current_writer(store)? {
        Holder::Nobody => match living(store)?.values().next() {
            Some(life) => Holder::Process(life.process()),
            None => Holder::Nobody,
        },
        held => held,
    })
}

/// As [`StoreLock::acquire`], for one who cannot serve clients: there must be none that lives.
pub(crate) fn acquire(store: &Path) -> Result<StoreLock> {
    when_nobody_lives(store, || StoreLock::acquire(store))
}

/// As [`StoreLock::share`]; there must be no client that lives.
pub(crate) fn share(store: &Path) -> Result<Option<StoreLock>> {
    when_nobody_lives(store, || StoreLock::share(store))
}

/// For a client to end that is about to: code that completes sections ends with who has it run, and that one may have
/// been killed a moment ago and be started again.
const ENDING_TIME: Duration = Duration::from_secs(1);

/// Whoever waits for that has the store's lock for a moment only. Another one that finds it taken asks again so long.
const LOOKING_TIME: Duration = Duration::from_millis(20);

/// Takes a lock, while there is no client that lives. Who waits for one to end has no lock: a service may come
/// meanwhile, and takes it at its first attempt.
fn when_nobody_lives<T>(store: &Path, take: impl Fn() -> Result<T>) -> Result<T> {
    let began = Instant::now();
    let (mut patience, mut may_take) = (LOOKING_TIME, true);
    loop {
        let is_over = began.elapsed() >= patience;
        if may_take || is_over {
            // One that lives may have come since it was looked for.
            match take().and_then(|lock| ensure_nobody(store).map(|()| lock)) {
                Err(Error::StoreBusy { .. }) if !is_over => {}
                Err(Error::StoreServed { .. }) if began.elapsed() < ENDING_TIME => {
                    patience = ENDING_TIME;
                }
                taken => return taken,
            }
        }
        thread::sleep(Duration::from_millis(2));
        may_take = ensure_nobody(store).is_ok() || patience == LOOKING_TIME;
    }
}

fn ensure_nobody(store: &Path) -> Result<()> {
    match living(store)?.values().next() {
        None => Ok(()),
        Some(life) => Err(Error::StoreServed {
            path: store.to_owned(),
            pid: life.process(),
        }),
    }
}

/// Removes the file of a client that is gone.
pub(crate) fn forget(store: &Path, client: Uuid) -> Result<()> {
    let path = store.join(name_of(client));
    files::remove_if_there(&path, CLIENT, "removing a client's file").map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Else no service could come, nor could two who open a directory wait beside each other.
    #[test]
    fn who_waits_for_a_client_to_end_keeps_nobody_from_the_lock() {
        let directory = tempfile::tempdir().unwrap();
        let (store, client) = (directory.path(), Uuid([7; 16]));
        let file = make(store, client)
            .unwrap()
            .as_fd()
            .try_clone_to_owned()
            .unwrap();
        let lives = Liveness::hold(client, file).unwrap();
        let is_there = |lock: Result<StoreLock>| drop(lock.unwrap());
        thread::scope(|scope| {
            let waiting = [(); 2].map(|()| scope.spawn(|| acquire(store).map(drop)));
            let until = Instant::now() + ENDING_TIME / 2;
            // Each has looked once by then.
            thread::sleep(ENDING_TIME / 4);
            while Instant::now() < until {
                is_there(StoreLock::acquire(store));
            }
            assert!(waiting.iter().all(|waiting| !waiting.is_finished()));
            drop(lives);
            for waits in waiting {
                waits.join().unwrap().unwrap();
            }
        });
    }
}
