//! Puddle files: how they come, how they are opened, how they go.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use durum_format::error::FormatError;
use durum_format::puddle::PuddleKind;
use durum_format::puddle::{self, IMMUTABLE_SIZE, PuddleHeader};
use durum_format::registry::{Origin, PuddleRecord};
use durum_format::{UNIT, Uuid};
use durum_persist::Site;
use durum_persist::beneath::Directory;
use durum_persist::file::{self, MediaFile};

use crate::error::{Error, Result};
use crate::reading::{self, Role};

/// The directory of the puddle files in the store directory.
pub(crate) const PUDDLE_DIRECTORY: &str = "puddles";
/// The directory of logs that failed validation.
pub(crate) const QUARANTINE_DIRECTORY: &str = "quarantine";

/// Puddles of objects from this size on get large pages: of what a store begins with, little may ever be used.
const LARGE_MIN: u64 = 2 * UNIT;

const CREATION: Site = Site("new puddle");
const CREATION_NAME: Site = Site("new puddle's name");
const REMOVAL: Site = Site("puddle removal");

const QUARANTINE: Site = Site("directory of quarantined logs");

const RESTORE: &str = "restore a copy of the store";
/// Of a file of a pool: an older one beside newer ones is a pool that never was.
pub(crate) const BRING_BACK: &str = "put this very file back, or restore a copy of the whole store";
const MAKE_ANEW: &str = "make it anew: `durum check --repair`, or restore a copy of the store";

/// The file of a puddle.
pub(crate) fn puddle_path(store: &Path, uuid: Uuid) -> PathBuf {
    store.join(PUDDLE_DIRECTORY).join(uuid.to_string())
}

/// The file of a quarantined log.
pub(crate) fn quarantine_path(store: &Path, uuid: Uuid) -> PathBuf {
    store.join(QUARANTINE_DIRECTORY).join(uuid.to_string())
}

/// The file of a puddle, relative to the store.
pub(crate) fn relative_path(uuid: Uuid, is_quarantined: bool) -> String {
    let directory = match is_quarantined {
        true => QUARANTINE_DIRECTORY,
        false => PUDDLE_DIRECTORY,
    };
    format!("{directory}/{uuid}")
}

/// Where the file of a puddle is at the moment, relative to the store: the step into quarantine may still be ahead of
/// it.
pub(crate) fn current_path(store: &Path, uuid: Uuid, is_quarantined: bool) -> String {
    let is_there = || fs::symlink_metadata(quarantine_path(store, uuid)).is_ok();
    relative_path(uuid, is_quarantined && is_there())
}

/// Checks that the directories of the store are there, in the store itself.
pub(crate) fn check_directories(store: &Path) -> Result<()> {
    check_directory(store, PUDDLE_DIRECTORY, RESTORE)?;
    check_directory(store, QUARANTINE_DIRECTORY, MAKE_ANEW)
}

fn check_directory(store: &Path, name: &str, cure: &'static str) -> Result<()> {
    find_directory(store, name, cure).map(drop)
}

/// The directory of the store's puddles.
///
/// # Errors
/// `FileMissing`, `NotAFile`, `Io`.
pub(crate) fn puddle_directory(store: &Path) -> Result<Directory> {
    find_directory(store, PUDDLE_DIRECTORY, RESTORE)
}

fn find_directory(store: &Path, name: &str, cure: &'static str) -> Result<Directory> {
    let structure = "a directory of the store";
    reading::find_directory(store, name, Role { structure, cure })
}

/// Files that are kept open for whoever comes back to them.
const KEPT_MAX: usize = 64;

/// The puddle files of a store, for whoever opens many: their directory is found once, and to some of them one comes
/// back.
#[derive(Debug)]
pub(crate) struct Puddles {
    store: PathBuf,
    directory: Directory,
    /// With whether they may be written.
    kept: Mutex<BTreeMap<(Uuid, bool), Arc<MediaFile>>>,
}

impl Puddles {
    /// Those of the store.
    ///
    /// # Errors
    /// `FileMissing`, `NotAFile`, `Io`: of their directory.
    pub(crate) fn of(store: &Path) -> Result<Puddles> {
        Ok(Puddles {
            store: store.to_owned(),
            directory: puddle_directory(store)?,
            kept: Mutex::default(),
        })
    }

    /// The store's directory.
    pub(crate) fn store(&self) -> &Path {
        &self.store
    }

    /// As [`open`].
    pub(crate) fn open(
        &self,
        uuid: Uuid,
        record: &PuddleRecord,
        writable: bool,
    ) -> Result<MediaFile> {
        let name = uuid.to_string();
        let file = reading::open_in(&self.directory, &name, role_of(record), writable)?;
        ensure_opened(&file, uuid, record)?;
        Ok(file)
    }

    /// As [`Puddles::open`]; who opens it again before this is [forgotten](Puddles::forget) finds it open. Length and
    /// header are looked at again: others may write to it.
    pub(crate) fn open_kept(
        &self,
        uuid: Uuid,
        record: &PuddleRecord,
        writable: bool,
    ) -> Result<Arc<MediaFile>> {
        let kept = self.kept().get(&(uuid, writable)).cloned();
        if let Some(file) = kept {
            ensure_is(&file, uuid, record)?;
            return Ok(file);
        }
        let file = Arc::new(self.open(uuid, record, writable)?);
        let mut kept = self.kept();
        if kept.len() < KEPT_MAX {
            kept.insert((uuid, writable), file.clone());
        }
        Ok(file)
    }

    /// Closes what is kept open.
    pub(crate) fn forget(&self) {
        self.kept().clear();
    }

    fn kept(&self) -> MutexGuard<'_, BTreeMap<(Uuid, bool), Arc<MediaFile>>> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Whether what [`check_directories`] found is made good by [`repair_directories`].
pub(crate) fn can_repair(found: &Result<()>) -> bool {
    let quarantine = Path::new(QUARANTINE_DIRECTORY);
    matches!(found, Err(Error::FileMissing { file, .. }) if file.ends_with(quarantine))
}

/// As [`check_directories`], but makes the directory of quarantined logs where it is missing, as it is where a backup
/// leaves empty directories out. Durable on return. Tells whether it was made.
pub(crate) fn repair_directories(store: &Path) -> Result<bool> {
    check_directory(store, PUDDLE_DIRECTORY, RESTORE)?;
    let found = check_directory(store, QUARANTINE_DIRECTORY, MAKE_ANEW);
    if !matches!(found, Err(Error::FileMissing { .. })) {
        return found.map(|()| false);
    }
    let directory = store.join(QUARANTINE_DIRECTORY);
    file::create_dir(&directory, QUARANTINE)
        .map_err(|error| grown("making a directory", &directory, 0, error))?;
    // ORDER: the directory is durable before anybody is told of it and opens the store, who moves logs into it.
    sync_dir(store, QUARANTINE)?;
    Ok(true)
}

/// What the header of a registered puddle has to say.
pub(crate) fn header_of(uuid: Uuid, record: &PuddleRecord) -> PuddleHeader {
    PuddleHeader {
        kind: record.kind,
        uuid,
        owner: record.owner,
        address: record.address,
        size: record.size,
        is_root: record.is_root,
    }
}

/// What the header of a puddle says that was imported and is as it came.
pub(crate) fn header_before(record: &PuddleRecord, origin: &Origin) -> PuddleHeader {
    PuddleHeader {
        owner: origin.owner,
        address: origin.address,
        is_root: origin.is_root,
        ..header_of(origin.uuid, record)
    }
}

/// What the registry has to say of a puddle with this header.
pub(crate) fn record_of(header: &PuddleHeader) -> PuddleRecord {
    PuddleRecord {
        owner: header.owner,
        address: header.address,
        size: header.size,
        kind: header.kind,
        is_root: header.is_root,
        is_stale: false,
        origin: None,
    }
}

/// Makes a puddle's file, zero behind its header. File and name are durable on return.
///
/// On an error nothing is left behind.
pub(crate) fn create(store: &Path, header: &PuddleHeader) -> Result<MediaFile> {
    let path = puddle_path(store, header.uuid);
    let file = create_at(&path, header)?;
    // ORDER: the name is durable before the registry names the puddle; else a crash leaves a registered
    // puddle without a file.
    match file::sync_dir(&store.join(PUDDLE_DIRECTORY), CREATION_NAME) {
        Ok(()) => Ok(file),
        Err(error) => {
            // Should this fail as well, the file is an orphan and goes at the next open.
            let _ = file::remove(&path, REMOVAL);
            Err(grown("making a puddle", &path, header.file_size(), error))
        }
    }
}

/// As [`create`], with any name, which is not durable yet.
pub(crate) fn create_at(path: &Path, header: &PuddleHeader) -> Result<MediaFile> {
    let failed = |operation| {
        let size = header.file_size();
        move |error| grown(operation, path, size, error)
    };
    let file = MediaFile::create_new(path).map_err(failed("creating a puddle"))?;
    match fill(&file, header) {
        Ok(()) => Ok(file),
        Err(error) => {
            let _ = file::remove(path, REMOVAL);
            Err(failed("making a puddle")(error))
        }
    }
}

/// As [`create_at`], without a name in a directory: it is gone when nobody has it open any more.
pub(crate) fn create_nameless(directory: &Path, header: &PuddleHeader) -> Result<MediaFile> {
    let path = directory.join("puddle without a name");
    let failed = |error| grown("making a puddle", &path, header.file_size(), error);
    let file = MediaFile::nameless(directory, &path).map_err(failed)?;
    fill(&file, header).map_err(failed)?;
    Ok(file)
}

fn fill(file: &MediaFile, header: &PuddleHeader) -> io::Result<()> {
    // Of a log most is never used, and recovery asks the file system which part was.
    match header.kind.holds_objects() && header.size >= LARGE_MIN {
        true => file.allocate_large(header.file_size(), CREATION)?,
        false => file.allocate(header.file_size(), CREATION)?,
    }
    file.write_all_at(&puddle::encode(header), 0)?;
    // ORDER: header and length are durable before the registry names the puddle; else a crash leaves a
    // registered puddle that no opener accepts.
    file.sync(CREATION)
}

/// Opens a registered puddle and checks that the file is the puddle of the record: length and header.
pub(crate) fn open(
    store: &Path,
    uuid: Uuid,
    record: &PuddleRecord,
    writable: bool,
) -> Result<MediaFile> {
    open_at(store, &relative_path(uuid, false), uuid, record, writable)
}

/// Opens the file of a puddle again for somebody who has it mapped, for reading. What is wrong with its bytes they find
/// out where they read them.
pub(crate) fn reopen(store: &Path, uuid: Uuid, record: &PuddleRecord) -> Result<MediaFile> {
    reading::open(store, relative_path(uuid, false), role_of(record), false)
}

fn role_of(record: &PuddleRecord) -> Role {
    Role {
        structure: kind_name(record.kind),
        cure: match record.kind.holds_objects() {
            true => BRING_BACK,
            false => RESTORE,
        },
    }
}

/// As [`open`], for a file that may have another name in the store's directory.
pub(crate) fn open_at(
    store: &Path,
    name: &str,
    uuid: Uuid,
    record: &PuddleRecord,
    writable: bool,
) -> Result<MediaFile> {
    let file = reading::open(store, name, role_of(record), writable)?;
    ensure_opened(&file, uuid, record)?;
    Ok(file)
}

/// Checks that an open file is the puddle of the record: length and header.
pub(crate) fn ensure_is(file: &MediaFile, uuid: Uuid, record: &PuddleRecord) -> Result<()> {
    ensure_header(file, length_of(file)?, uuid, record)
}

/// As [`ensure_is`], for one that was just opened.
fn ensure_opened(file: &MediaFile, uuid: Uuid, record: &PuddleRecord) -> Result<()> {
    ensure_header(file, file.len_at_opening(), uuid, record)
}

fn ensure_header(file: &MediaFile, length: u64, uuid: Uuid, record: &PuddleRecord) -> Result<()> {
    let cure = role_of(record).cure;
    let expected = header_of(uuid, record);
    // What came by an import says what it was there until its contents were looked at, and then the one or the other.
    let (expected, found) = match (record.is_stale, record.origin) {
        (false, _) => (expected, header_in(file, length, cure, puddle::parse)?),
        (true, None) => {
            let moved = |head: &[u8], length| puddle::parse_moved(head, length, &expected);
            (expected, header_in(file, length, cure, moved)?)
        }
        (true, Some(origin)) => {
            let before = header_before(record, &origin);
            let between =
                |head: &[u8], length| puddle::parse_between(head, length, &before, &expected);
            match origin.sum {
                Some(_) => (before, header_in(file, length, cure, puddle::parse)?),
                None => (expected, header_in(file, length, cure, between)?),
            }
        }
    };
    if found != expected {
        return Err(Error::Damaged {
            file: file.path().to_owned(),
            structure: "puddle header",
            offset: 0,
            problem: difference(&found, &expected),
            cure: cure.into(),
        });
    }
    Ok(())
}

/// What a header says that is not what the registry says, in words.
fn difference(found: &PuddleHeader, expected: &PuddleHeader) -> String {
    let owner = |header: &PuddleHeader| match header.kind.holds_objects() {
        true => format!("pool {}", header.owner),
        false => format!("client {}", header.owner),
    };
    if (found.uuid, found.owner) != (expected.uuid, expected.owner) {
        return format!(
            "this is the file of puddle {} of {}, not of puddle {} of {}",
            found.uuid,
            owner(found),
            expected.uuid,
            owner(expected)
        );
    }
    let words = |header: &PuddleHeader| {
        let root = match header.is_root {
            true => " with the root",
            false => "",
        };
        let kind = kind_name(header.kind);
        let (size, address) = (header.size, header.address);
        format!("{kind}{root} of {size} bytes at {address:#x}")
    };
    format!(
        "it says that this is {}, the registry says {}",
        words(found),
        words(expected)
    )
}

/// An error met at a file of a pool, with the cures that help there: others are whole.
pub(crate) fn of_pool(mut error: Error, store: &Path, pool: &str) -> Error {
    if let Error::Format { cure, .. }
    | Error::Damaged { cure, .. }
    | Error::FileMissing { cure, .. }
    | Error::NotAFile { cure, .. } = &mut error
    {
        *cure = format!(
            "only pool \"{pool}\" is concerned, others can be opened; {BRING_BACK}, or drop the pool: `durum rm {} {pool}`",
            store.display()
        )
        .into();
    }
    error
}

fn length_of(file: &MediaFile) -> Result<u64> {
    file.len()
        .map_err(|error| Error::io("stat of a puddle", file.path(), error))
}

/// Reads the immutable part of a puddle file's header, and has `parse` validate it.
fn header_in(
    file: &MediaFile,
    length: u64,
    cure: &'static str,
    parse: impl FnOnce(&[u8], u64) -> Result<PuddleHeader, FormatError>,
) -> Result<PuddleHeader> {
    let path = file.path();
    let mut buffer = [0; IMMUTABLE_SIZE as usize];
    let head = &mut buffer[..length.min(IMMUTABLE_SIZE) as usize];
    reading::exact(file, 0, head, "reading a puddle header")?;
    parse(head, length).map_err(|source| Error::format(path, 0, source, cure))
}

/// Removes a puddle's file after its registration is durably gone.
///
/// Not synced: should the name come back after a crash, the registry lists it as being removed, and it goes at the next
/// open.
pub(crate) fn remove(store: &Path, uuid: Uuid) -> Result<()> {
    remove_if_there(&puddle_path(store, uuid), REMOVAL, "removing a puddle").map(drop)
}

/// Removes a file or an empty directory, and tells whether it was there. An error says that this happened while
/// `operation`. Not synced.
pub(crate) fn remove_if_there(path: &Path, site: Site, operation: &'static str) -> Result<bool> {
    match file::remove(path, site) {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(error) => Err(Error::io(operation, path, error)),
    }
}

/// Makes a directory, unless anything of that name is there. Not synced.
pub(crate) fn ensure_directory(path: &Path, site: Site) -> Result<()> {
    match file::create_dir(path, site) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => {
            Err(grown("making a directory", path, 0, error))
        }
        _ => Ok(()),
    }
}

/// Makes an empty file, unless anything of that name is there. Its name is not synced.
pub(crate) fn ensure_file(path: &Path, operation: &'static str) -> Result<()> {
    match MediaFile::create_new(path) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => {
            Err(grown(operation, path, 0, error))
        }
        _ => Ok(()),
    }
}

/// Makes the names in a directory durable.
pub(crate) fn sync_dir(path: &Path, site: Site) -> Result<()> {
    file::sync_dir(path, site).map_err(|error| Error::io("syncing the directory", path, error))
}

/// What a puddle holds, in words.
pub(crate) fn kind_name(kind: PuddleKind) -> &'static str {
    match kind {
        PuddleKind::Data | PuddleKind::Twin => "a data puddle",
        PuddleKind::Log => "a log puddle",
        PuddleKind::LogSpace => "a log space puddle",
        PuddleKind::Records => "a puddle of redo records",
        PuddleKind::Sections => "a puddle of sections",
        PuddleKind::Code => "a puddle of code",
    }
}

/// An error of an operation that makes a file grow to `bytes`.
pub(crate) fn grown(operation: &'static str, path: &Path, bytes: u64, error: io::Error) -> Error {
    if is_full(&error) {
        Error::StorageFull {
            path: path.to_owned(),
            bytes,
        }
    } else {
        Error::io(operation, path, error)
    }
}

/// Whether an error says that there is no room.
pub(crate) fn is_full(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded | io::ErrorKind::FileTooLarge
    )
}

/// Replaces a small file of the store as a whole.
pub(crate) fn replace_file(
    store: &Path,
    name: &str,
    temporary_name: &str,
    bytes: &[u8],
    site: Site,
    name_site: Site,
) -> Result<()> {
    let path = store.join(name);
    let temporary = store.join(temporary_name);
    remove_if_there(&temporary, site, "removing a leftover")?;
    let write = || {
        let next = MediaFile::create_new(&temporary)?;
        next.write_all_at(bytes, 0)?;
        // ORDER: the bytes are durable before the name leads to them; else a crash leaves a torn file in the place of
        // a whole one.
        next.sync(site)?;
        file::rename(&temporary, &path, name_site)
    };
    if let Err(error) = write() {
        // Gives the room back. Should this fail as well, the next opener removes it.
        let _ = file::remove(&temporary, site);
        let bytes = bytes.len() as u64;
        return Err(grown("replacing a file", &path, bytes, error));
    }
    // ORDER: the new name is durable before the caller goes on to what the file tells about.
    sync_dir(store, name_site)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{CreateOptions, Embedded, EngineKind, PoolSpec, Service};

    /// One who opens ten thousand looks once for the way to them: what has its name later is nothing to it.
    #[test]
    fn the_directory_of_puddles_is_found_once() {
        let place = tempfile::tempdir().unwrap();
        let path = place.path().join("store");
        let store = Embedded::create(&path, &CreateOptions::default()).unwrap();
        let spec = PoolSpec::new(EngineKind::Hybrid);
        let pool = store.create_pool("a", &spec).unwrap();
        let record = PuddleRecord {
            owner: pool.uuid,
            address: pool.root.address,
            size: pool.root.size,
            kind: pool.root.kind,
            is_root: true,
            is_stale: false,
            origin: None,
        };
        let puddles = Puddles::of(&path).unwrap();
        puddles.open(pool.root.uuid, &record, false).unwrap();
        let moved = path.join("moved");
        fs::rename(path.join(PUDDLE_DIRECTORY), &moved).unwrap();
        puddles.open(pool.root.uuid, &record, false).unwrap();
        fs::rename(&moved, path.join(PUDDLE_DIRECTORY)).unwrap();
    }
}
