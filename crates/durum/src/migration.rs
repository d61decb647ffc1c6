//! Pools whose types have changed, made anew by programs in any language: what the typed interface and C have in
//! common.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use durum_format::migrate::Rules;
use durum_protocol::Address;
use durum_service::{
    Embedded, Functions, Migration, OldPuddle, OpenOptions, ReadOnlyStore, Service,
};
pub use durum_service::{
    MigrateOptions, MigrateReport, NewHeap, NewPuddles, NewTypes, Result as StoreResult, Room,
};

use crate::error::{Error, Result};
use crate::migration_memory::MigrationMemory;

/// A function for the values of one type: the old one's address, the new one's bytes, which are zero.
pub type Make<'f> = Box<dyn Fn(usize, &mut [u8]) -> std::result::Result<(), String> + 'f>;

/// Builds the map at an address anew; gives the reason where that cannot be.
pub type Build<'f> = dyn Fn(usize, &mut NewPuddles, &mut Room) -> durum_service::Result<std::result::Result<(), String>>
    + 'f;

/// How maps of one type are built anew.
#[derive(Clone, Copy)]
pub struct Rebuild<'f> {
    /// Does it.
    pub build: &'f Build<'f>,
    /// Bytes of room that it takes, by those of the map, in a pool of so many.
    pub room: &'f (dyn Fn(&[u8], u64) -> u64 + 'f),
}

/// A map says something that cannot be.
pub const DAMAGED: &str =
    "it is damaged: it says more than its objects hold; `durum check` looks at everything";

/// What a map holds cannot be one of its keys.
pub const NO_KEY: &str = "it is damaged: what lies in the place of a key is no value of its type";

/// How a pool is migrated by a program.
#[doc(hidden)]
pub struct ByProgram<'f> {
    /// What becomes of its types.
    pub rules: Rules,
    /// The types that the program has now.
    pub types: NewTypes,
    /// The functions that the rules name.
    pub functions: Vec<Make<'f>>,
    /// Those that build maps anew.
    pub rebuilds: Vec<Rebuild<'f>>,
    /// How.
    pub options: MigrateOptions,
}

impl std::fmt::Debug for ByProgram<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ByProgram")
            .field("rules", &self.rules)
            .field("types", &self.types)
            .field("options", &self.options)
            .finish_non_exhaustive()
    }
}

impl ByProgram<'_> {
    /// Makes a pool anew, or tells what that would do.
    ///
    /// # Errors
    /// `NotMigrated`; those of [`Embedded::migrate_pool`].
    pub fn run(&self, path: &Path, pool: &str, is_plan: bool) -> Result<MigrateReport> {
        let directory = match Address::parse(path) {
            Address::Directory(directory) => directory,
            Address::Service(_) => return Err(Error::NotMigrated { path: path.into() }),
        };
        match is_plan {
            true => self.plan(directory, pool),
            false => self.migrate(&directory, pool),
        }
    }

    fn plan(&self, directory: PathBuf, pool: &str) -> Result<MigrateReport> {
        let reader = ReadOnlyStore::open(&directory)?;
        // Functions look at memory, to which recovery has not been.
        let looks = !self.functions.is_empty() || !self.rebuilds.is_empty();
        if !reader.is_clean() && looks {
            return Err(durum_service::Error::StoreDirty { path: directory }.into());
        }
        let mut asked = self.asked((reader.base(), reader.space_size()), &directory)?;
        let plan = durum_service::plan_migration(&reader, pool, &mut asked.of(self), &self.options);
        asked.told(plan)
    }

    fn migrate(&self, directory: &Path, pool: &str) -> Result<MigrateReport> {
        let store = Embedded::open(directory, OpenOptions::default())?;
        let info = store.info();
        let mut asked = self.asked((info.base, info.space_size), directory)?;
        let report = store.migrate_pool(pool, &mut asked.of(self), &self.options);
        let closed = store.close();
        let report = asked.told(report)?;
        closed?;
        Ok(report)
    }

    fn asked(&self, (base, size): (u64, u64), directory: &Path) -> Result<Asked<'_>> {
        Ok(Asked {
            functions: &self.functions,
            rebuilds: &self.rebuilds,
            memory: match self.functions.is_empty() {
                true => None,
                false => Some(MigrationMemory::of(base, size, directory)?),
            },
            new_memory: match self.rebuilds.is_empty() {
                true => None,
                false => Some(MigrationMemory::of(base, size, directory)?),
            },
            failed: None,
        })
    }
}

/// The functions, while they are asked.
struct Asked<'m> {
    functions: &'m [Make<'m>],
    rebuilds: &'m [Rebuild<'m>],
    /// Where the old values are, if functions look at them.
    memory: Option<MigrationMemory>,
    /// Where the new ones are, if maps are built anew of them.
    new_memory: Option<MigrationMemory>,
    /// Why they are not there.
    failed: Option<Error>,
}

impl Asked<'_> {
    fn of(&mut self, by: &ByProgram<'_>) -> Migration<'_> {
        Migration {
            rules: Arc::new(by.rules.clone()),
            types: Some(by.types.clone()),
            functions: Some(self),
        }
    }

    /// An error that the service tells in words only.
    fn kept(&mut self, result: Result<()>) -> durum_service::Result<()> {
        result.map_err(|error| {
            let kind = error.kind();
            let text = error.to_string();
            self.failed = Some(error);
            durum_service::Error::Told { kind, text }
        })
    }

    /// What came of it.
    fn told(self, report: durum_service::Result<MigrateReport>) -> Result<MigrateReport> {
        match self.failed {
            Some(error) => Err(error),
            None => Ok(report?),
        }
    }
}

impl Functions for Asked<'_> {
    fn begin(&mut self, puddles: &[OldPuddle<'_>]) -> durum_service::Result<()> {
        let mapped = self.memory.as_mut().map(|memory| memory.map(puddles));
        self.kept(mapped.unwrap_or(Ok(())))
    }

    fn make(
        &mut self,
        function: usize,
        address: u64,
        _: &[u8],
        new: &mut [u8],
    ) -> std::result::Result<(), String> {
        match self.functions.get(function) {
            Some(make) => make(address as usize, new),
            None => Err("there is no such function".to_owned()),
        }
    }

    fn begin_rebuilding(&mut self, puddles: &[OldPuddle<'_>]) -> durum_service::Result<()> {
        let looked = self.new_memory.as_mut().map(|memory| {
            memory.map(puddles)?;
            memory.forget()
        });
        self.kept(looked.unwrap_or(Ok(())))
    }

    fn room(&self, function: usize, map: &[u8], most: u64) -> u64 {
        let rebuild = self.rebuilds.get(function);
        rebuild.map_or(0, |rebuild| (rebuild.room)(map, most))
    }

    fn rebuild(
        &mut self,
        function: usize,
        address: u64,
        new: &mut NewPuddles,
        room: &mut Room,
    ) -> durum_service::Result<std::result::Result<(), String>> {
        match self.rebuilds.get(function) {
            Some(rebuild) => (rebuild.build)(address as usize, new, room),
            None => Ok(Err("there is no such function".to_owned())),
        }
    }
}
