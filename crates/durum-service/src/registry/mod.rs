//! The registry: what the store holds, in a redb database that only the one writer opens.
//!
//! It is read once, on a private copy in memory, so that redb's repair of an unclean end, and any surprise
//! in damaged bytes, happens there; only after everything validated is the file itself opened for writing. Then each change is one
//! commit, in two phases: after a crash the registry is that of the last commit that returned, or of the one under way.

mod backend;
pub(crate) mod contents;
mod read;
mod record;

use std::path::{Path, PathBuf};

use durum_persist::file::MediaFile;
use redb::{Database, TableDefinition, WriteTransaction};

use self::backend::{FileBackend, FullWatch};
use self::contents::{Change, Contents};
use crate::error::{Error, Result};
use crate::reading::{self, Role};

pub(crate) use self::backend::is_full;
pub(crate) use self::read::read;

/// The registry's file in the store directory.
pub(crate) const REGISTRY_FILE: &str = "registry.redb";

type Table = TableDefinition<'static, &'static [u8], &'static [u8]>;

const META: Table = TableDefinition::new("meta");
const POOLS: Table = TableDefinition::new("pools");
const PUDDLES: Table = TableDefinition::new("puddles");
const CLIENTS: Table = TableDefinition::new("clients");
const GRANTS: Table = TableDefinition::new("grants");
const LOG_SPACES: Table = TableDefinition::new("log-spaces");
const TYPES: Table = TableDefinition::new("types");
const QUARANTINE: Table = TableDefinition::new("quarantine");
const MARKS: Table = TableDefinition::new("quarantined-pools");

const TABLES: [Table; 9] = [
    META, POOLS, PUDDLES, CLIENTS, GRANTS, LOG_SPACES, TYPES, QUARANTINE, MARKS,
];

const META_STORE: &[u8] = b"store";
const META_SEQUENCE: &[u8] = b"sequence";
const META_CURSOR: &[u8] = b"cursor";

/// redb keeps pages in memory; the registry is small.
const CACHE_BYTES: usize = 4 << 20;

const CURE: &str = "restore a copy of the store, or rebuild the registry from the catalog: \
                    `durum check --repair`";

/// The open registry.
#[derive(Debug)]
pub(crate) struct Registry {
    path: PathBuf,
    /// Absent only while it is opened again after a full disk, and after that failed.
    database: Option<Database>,
    full: FullWatch,
    is_poisoned: bool,
}

/// Why a commit failed.
#[derive(Debug)]
pub(crate) enum CommitFailure {
    /// There was no room. Nothing was committed, and the registry goes on.
    Full {
        /// The bytes wanted.
        bytes: u64,
    },
    /// What is on the media is unknown until the store is opened again.
    Unknown(Error),
}

impl Registry {
    /// Makes a new registry file that says `contents`. The file's bytes are durable on return, its name is not.
    pub(crate) fn create(path: &Path, contents: &Contents) -> Result<Registry> {
        let file = MediaFile::create_new(path)
            .map_err(|error| system("creating the registry", path, error))?;
        let mut registry = Registry::over(path, file)?;
        registry
            .write(|transaction| {
                for table in TABLES {
                    transaction.open_table(table)?;
                }
                put(
                    transaction,
                    META,
                    META_STORE,
                    &record::encode_uuid(contents.store),
                )?;
                put_numbers(transaction, contents)?;
                write_changes(transaction, &everything(contents))
            })
            .map_err(|error| registry.creation_failed(error))?;
        Ok(registry)
    }

    /// Opens the registry file for writing. Its bytes were validated before, by [`read`].
    pub(crate) fn open(path: &Path) -> Result<Registry> {
        Registry::over(path, open_file(path, true)?)
    }

    fn over(path: &Path, file: MediaFile) -> Result<Registry> {
        let (backend, full) = FileBackend::new(file);
        let database = builder().create_with_backend(backend);
        match database {
            Ok(database) => Ok(Registry {
                path: path.to_owned(),
                database: Some(database),
                full,
                is_poisoned: false,
            }),
            Err(error) => match full.bytes() {
                Some(bytes) => Err(Error::StorageFull {
                    path: path.to_owned(),
                    bytes,
                }),
                None => Err(refusal(path, error.into())),
            },
        }
    }

    /// Commits `changes` and applies them to the copy in memory. Durable on return.
    ///
    /// On failure the copy is as before.
    pub(crate) fn commit(
        &mut self,
        contents: &mut Contents,
        changes: &[Change],
    ) -> Result<(), CommitFailure> {
        let mut next = contents.clone();
        for change in changes {
            next.apply(change);
        }
        next.sequence += 1;
        let written = self.write(|transaction| {
            put_numbers(transaction, &next)?;
            write_changes(transaction, changes)
        });
        match written {
            Ok(()) => {
                *contents = next;
                Ok(())
            }
            Err(error) => Err(self.commit_failed(contents, error)),
        }
    }

    /// After a failed commit: a full disk is found before anything of the commit is on the media, because room is
    /// reserved first. Then the file is opened again and says what it said before. Anything else, and
    /// what is on the media is unknown.
    fn commit_failed(&mut self, contents: &Contents, error: redb::Error) -> CommitFailure {
        let unknown = |registry: &mut Registry, error| {
            registry.is_poisoned = true;
            CommitFailure::Unknown(failure(&registry.path, error))
        };
        let Some(bytes) = self.full.bytes() else {
            return unknown(self, error);
        };
        // redb refuses all work after an error of its file, and writes nothing when it is dropped.
        self.database = None;
        match read(&self.path).and_then(|found| Ok((found, Registry::open(&self.path)?))) {
            Ok((found, registry)) if found == *contents => {
                *self = registry;
                CommitFailure::Full { bytes }
            }
            _ => unknown(self, error),
        }
    }

    /// Whether a commit failed and what is on the media is unknown. Then nothing more may be committed.
    pub(crate) fn is_poisoned(&self) -> bool {
        self.is_poisoned
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    fn creation_failed(&self, error: redb::Error) -> Error {
        match self.full.bytes() {
            Some(bytes) => Error::StorageFull {
                path: self.path.clone(),
                bytes,
            },
            None => failure(&self.path, error),
        }
    }

    fn write(
        &mut self,
        change: impl FnOnce(&WriteTransaction) -> Result<(), redb::Error>,
    ) -> Result<(), redb::Error> {
        let Some(database) = &self.database else {
            return Err(redb::Error::DatabaseClosed);
        };
        let mut transaction = database.begin_write()?;
        // One phase would let a crash make damage look like a commit that never ended, and the commit before
        // it would be taken instead: a grant could be lost in silence.
        transaction.set_two_phase_commit(true);
        change(&transaction)?;
        transaction.commit()?;
        Ok(())
    }
}

/// Opens the registry's file, which lies in the store's directory itself.
fn open_file(path: &Path, writable: bool) -> Result<MediaFile> {
    let role = Role {
        structure: "the registry",
        cure: CURE,
    };
    let store = path.parent().unwrap_or(path);
    reading::open(store, REGISTRY_FILE, role, writable)
}

fn builder() -> redb::Builder {
    let mut builder = Database::builder();
    builder.set_cache_size(CACHE_BYTES);
    builder
}

fn put(
    transaction: &WriteTransaction,
    table: Table,
    key: &[u8],
    value: &[u8],
) -> Result<(), redb::Error> {
    transaction.open_table(table)?.insert(key, value)?;
    Ok(())
}

fn remove(transaction: &WriteTransaction, table: Table, key: &[u8]) -> Result<(), redb::Error> {
    transaction.open_table(table)?.remove(key)?;
    Ok(())
}

fn put_numbers(transaction: &WriteTransaction, contents: &Contents) -> Result<(), redb::Error> {
    for (key, number) in [
        (META_SEQUENCE, contents.sequence),
        (META_CURSOR, contents.cursor),
    ] {
        put(transaction, META, key, &record::encode_number(number))?;
    }
    Ok(())
}

fn write_changes(transaction: &WriteTransaction, changes: &[Change]) -> Result<(), redb::Error> {
    for change in changes {
        match change {
            // Written with the sequence.
            Change::Cursor(_) => {}
            Change::PutPool(uuid, pool) => {
                put(transaction, POOLS, &uuid.0, &record::encode_pool(pool))?;
            }
            Change::RemovePool(uuid) => remove(transaction, POOLS, &uuid.0)?,
            Change::PutPuddle(uuid, puddle) => {
                put(
                    transaction,
                    PUDDLES,
                    &uuid.0,
                    &record::encode_puddle(puddle),
                )?;
            }
            Change::RemovePuddle(uuid) => remove(transaction, PUDDLES, &uuid.0)?,
            Change::PutClient(uuid) => put(transaction, CLIENTS, &uuid.0, &record::PRESENT)?,
            Change::RemoveClient(uuid) => remove(transaction, CLIENTS, &uuid.0)?,
            Change::PutGrant(client, pool) => {
                let key = record::pair_key(*client, *pool);
                put(transaction, GRANTS, &key, &record::PRESENT)?;
            }
            Change::RemoveGrant(client, pool) => {
                remove(transaction, GRANTS, &record::pair_key(*client, *pool))?;
            }
            Change::PutLogSpace(puddle, client) => {
                let value = record::encode_uuid(*client);
                put(transaction, LOG_SPACES, &puddle.0, &value)?;
            }
            Change::RemoveLogSpace(puddle) => remove(transaction, LOG_SPACES, &puddle.0)?,
            Change::PutType(id, text) => {
                let value = record::encode_text(text);
                put(transaction, TYPES, &record::type_key(*id), &value)?;
            }
            Change::RemoveType(id) => remove(transaction, TYPES, &record::type_key(*id))?,
            Change::PutQuarantine(puddle, log) => {
                put(transaction, QUARANTINE, &puddle.0, &record::encode_log(log))?;
            }
            Change::RemoveQuarantine(puddle) => remove(transaction, QUARANTINE, &puddle.0)?,
            Change::PutMark(pool, client) => {
                let key = record::pair_key(*pool, *client);
                put(transaction, MARKS, &key, &record::PRESENT)?;
            }
            Change::RemoveMark(pool, client) => {
                remove(transaction, MARKS, &record::pair_key(*pool, *client))?;
            }
        }
    }
    Ok(())
}

/// The changes that make an empty registry say `contents`.
fn everything(contents: &Contents) -> Vec<Change> {
    let mut changes = Vec::new();
    let pools = contents.pools.iter();
    changes.extend(pools.map(|(uuid, record)| Change::PutPool(*uuid, record.clone())));
    let puddles = contents.puddles.iter();
    changes.extend(puddles.map(|(uuid, record)| Change::PutPuddle(*uuid, *record)));
    changes.extend(contents.clients.iter().map(|uuid| Change::PutClient(*uuid)));
    let grants = contents.grants.iter();
    changes.extend(grants.map(|(client, pool)| Change::PutGrant(*client, *pool)));
    let spaces = contents.log_spaces.iter();
    changes.extend(spaces.map(|(puddle, client)| Change::PutLogSpace(*puddle, *client)));
    let types = contents.types.iter();
    changes.extend(types.map(|(id, text)| Change::PutType(*id, text.clone())));
    let logs = contents.quarantine.iter();
    changes.extend(logs.map(|(puddle, log)| Change::PutQuarantine(*puddle, log.clone())));
    let marks = contents.marks.iter();
    changes.extend(marks.map(|(pool, client)| Change::PutMark(*pool, *client)));
    changes
}

fn damaged(path: &Path, problem: String) -> Error {
    Error::Damaged {
        file: path.to_owned(),
        structure: "registry",
        offset: 0,
        problem,
        cure: CURE,
    }
}

fn system(operation: &'static str, path: &Path, error: std::io::Error) -> Error {
    if is_full(&error) {
        return Error::StorageFull {
            path: path.to_owned(),
            bytes: 0,
        };
    }
    Error::io(operation, path, error)
}

/// An error of redb when it opens a file that was validated before: the system's, or somebody changes it meanwhile.
fn refusal(path: &Path, error: redb::Error) -> Error {
    match error {
        redb::Error::Io(error)
            if !matches!(
                error.kind(),
                std::io::ErrorKind::UnexpectedEof | std::io::ErrorKind::InvalidData
            ) =>
        {
            system("reading the registry", path, error)
        }
        other => damaged(path, other.to_string()),
    }
}

/// An error of redb while it writes.
fn failure(path: &Path, error: redb::Error) -> Error {
    let error = match error {
        redb::Error::Io(error) => error,
        other => std::io::Error::other(other.to_string()),
    };
    system("a registry commit", path, error)
}
