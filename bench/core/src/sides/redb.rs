//! redb, a B-tree of copied pages with one writer at a time.

use std::fs;
use std::path::{Path, PathBuf};

use redb::{Database, ReadableDatabase, ReadableTable, TableDefinition};

use crate::error::{Error, Result};
use crate::side::{self, PutsShape, Role, Side};

const NAME: &str = "redb";
const TABLE: TableDefinition<'_, u64, &[u8]> = TableDefinition::new("bench");

/// The peer, as its documentation uses it: a transaction for each put, with its default of durability, immediate.
#[derive(Debug, Default)]
pub struct Redb;

fn said<E: Into<redb::Error>>(error: E) -> Error {
    Error::side(NAME)(error.into())
}

impl Side for Redb {
    fn name(&self) -> &str {
        NAME
    }

    fn role(&self) -> Role {
        Role::Peer
    }

    fn domain(&self) -> &str {
        "file"
    }

    fn version(&self) -> Option<String> {
        let lock = include_str!("../../../Cargo.lock");
        let (_, rest) = lock.split_once("name = \"redb\"\nversion = \"")?;
        let (version, _) = rest.split_once('"')?;
        Some(format!("redb {version}"))
    }

    fn puts(&self, dir: &Path, shape: &PutsShape) -> Result<Box<dyn side::Puts>> {
        let path = dir.join(NAME);
        Ok(Box::new(Store {
            database: Database::create(&path).map_err(said)?,
            path,
            threads: shape.threads,
        }))
    }
}

struct Store {
    database: Database,
    path: PathBuf,
    threads: usize,
}

impl side::Puts for Store {
    fn handles(&mut self) -> Vec<Box<dyn side::Put + Send + '_>> {
        let database = &self.database;
        let handle = |_| Box::new(Handle { database }) as Box<dyn side::Put + Send>;
        (0..self.threads).map(handle).collect()
    }

    fn visit(&mut self, see: &mut dyn FnMut(u64, &[u8])) -> Result<()> {
        let table = self.database.begin_read().map_err(said)?;
        let table = table.open_table(TABLE).map_err(said)?;
        for entry in table.iter().map_err(said)? {
            let (key, value) = entry.map_err(said)?;
            see(key.value(), value.value());
        }
        Ok(())
    }
}

impl Drop for Store {
    fn drop(&mut self) {
        // A file that stays behind is found by the directory's owner, who removes the directory.
        let _ = fs::remove_file(&self.path);
    }
}

struct Handle<'d> {
    database: &'d Database,
}

impl side::Put for Handle<'_> {
    fn put(&mut self, key: u64, value: &[u8]) -> Result<()> {
        self.load(&[key], value)
    }

    fn load(&mut self, keys: &[u64], values: &[u8]) -> Result<()> {
        let write = self.database.begin_write().map_err(said)?;
        {
            let mut table = write.open_table(TABLE).map_err(said)?;
            let value_len = values.len() / keys.len();
            for (key, value) in keys.iter().zip(values.chunks_exact(value_len)) {
                table.insert(*key, value).map_err(said)?;
            }
        }
        write.commit().map_err(said)
    }
}
