//! Pools whose types have changed, made anew by programs in any language: what the typed interface and C have in
//! common.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use durum_format::migrate::Rules;
use durum_protocol::Address;
use durum_service::{
    Embedded, Functions, MigrateReport, Migration, OldPuddle, OpenOptions, ReadOnlyStore, Service,
};
pub use durum_service::{MigrateOptions, NewTypes};

use crate::error::{Error, Result};
use crate::old_memory::OldMemory;

/// A function for the values of one type: the old one's address, the new one's bytes, which are zero.
pub type Make<'f> = Box<dyn Fn(usize, &mut [u8]) -> std::result::Result<(), String> + 'f>;

/// How a pool is migrated by a program.
#[doc(hidden)]
pub struct ByProgram<'f> {
    /// What becomes of its types.
    pub rules: Rules,
    /// The types that the program has now.
    pub types: NewTypes,
    /// The functions that the rules name.
    pub functions: Vec<Make<'f>>,
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
        if !reader.is_clean() && !self.functions.is_empty() {
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
            memory: match self.functions.is_empty() {
                true => None,
                false => Some(OldMemory::of(base, size, directory)?),
            },
            failed: None,
        })
    }
}

/// The functions, while they are asked.
struct Asked<'m> {
    functions: &'m [Make<'m>],
    /// Where the old values are, if functions look at them.
    memory: Option<OldMemory>,
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
        let Some(memory) = &mut self.memory else {
            return Ok(());
        };
        memory.map(puddles).map_err(|error| {
            let kind = error.kind();
            let text = error.to_string();
            self.failed = Some(error);
            durum_service::Error::Told { kind, text }
        })
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
}
