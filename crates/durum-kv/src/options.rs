//! How a database is opened, read and written.

use std::fmt;
use std::sync::Arc;

use durum::{Durability, Engine, StoreOptions};

use crate::comparator::{Comparator, Keys};
use crate::snapshot::Snapshot;

/// Functions that set a field each.
macro_rules! setters {
    ($($field:ident: $type:ty,)*) => { $(
        #[doc = concat!("Sets the field `", stringify!($field), "`.")]
        #[must_use]
        pub fn $field(mut self, $field: $type) -> Self {
            self.$field = $field.into();
            self
        }
    )* };
}

/// How a database is opened.
#[derive(Clone)]
#[non_exhaustive]
pub struct Options {
    /// Make a database where there is none. Default: off, and opening nothing is an error.
    pub create_if_missing: bool,
    /// Refuse a database that is there already. Default: off.
    pub error_if_exists: bool,
    /// Open it for reading only, which needs no right to write it: any number of programs may do so at the same time,
    /// where a service serves the store ([`durum::PoolOptions::read_only`]). It has to be there. Default: off.
    pub read_only: bool,
    /// Check every record when the database is opened, which reads all of it. Default: off.
    pub paranoid_checks: bool,
    /// The order of keys; the same each time. Default: the order of their bytes.
    pub comparator: Option<Arc<dyn Comparator>>,
    /// The engine that makes writes durable. Fixed when the database is made. Default: Shadow.
    pub engine: Engine,
    /// How the store is opened that the database lies in.
    pub store: StoreOptions,
    /// Make guides anew, by the row of so many leaves.
    pub(crate) leaves: Option<usize>,
}

impl fmt::Debug for Options {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Options")
            .field("create_if_missing", &self.create_if_missing)
            .field("error_if_exists", &self.error_if_exists)
            .field("read_only", &self.read_only)
            .field("paranoid_checks", &self.paranoid_checks)
            .field("comparator", &self.keys())
            .field("engine", &self.engine)
            .field("store", &self.store)
            .finish()
    }
}

impl Default for Options {
    fn default() -> Self {
        Self {
            create_if_missing: false,
            error_if_exists: false,
            read_only: false,
            paranoid_checks: false,
            comparator: None,
            engine: Engine::Shadow,
            store: StoreOptions::new(),
            leaves: None,
        }
    }
}

impl Options {
    /// The defaults.
    pub fn new() -> Self {
        Self::default()
    }

    setters! {
        create_if_missing: bool,
        error_if_exists: bool,
        read_only: bool,
        paranoid_checks: bool,
        comparator: Arc<dyn Comparator>,
        engine: Engine,
        store: StoreOptions,
    }

    pub(crate) fn keys(&self) -> Keys {
        match &self.comparator {
            Some(comparator) => Keys::Custom(comparator.clone()),
            None => Keys::Bytewise,
        }
    }
}

/// How a database is read.
#[derive(Clone, Copy, Debug, Default)]
#[non_exhaustive]
pub struct ReadOptions<'s> {
    /// Read what was there when the snapshot was taken. Default: what is there now.
    pub snapshot: Option<&'s Snapshot>,
    /// Compare what is read with its checksums: the record of a key; all those of the leaf where a key would be that is
    /// not found, and of each leaf that an iterator comes to. Default: off.
    pub verify_checksums: bool,
}

impl<'s> ReadOptions<'s> {
    /// The defaults.
    pub fn new() -> Self {
        Self::default()
    }

    setters! {
        snapshot: &'s Snapshot,
        verify_checksums: bool,
    }
}

/// How a database is written.
#[derive(Clone, Copy, Debug, Default)]
#[non_exhaustive]
pub struct WriteOptions {
    /// When the write is durable. Default: as the database is set ([`Db::set_durability`](crate::Db::set_durability)),
    /// which is when it returns unless somebody has said otherwise. A buffered one, which costs no fence and no sync,
    /// is so within [`StoreOptions::buffered_window`].
    pub durability: Option<Durability>,
}

impl WriteOptions {
    /// The defaults.
    pub fn new() -> Self {
        Self::default()
    }

    setters! {
        durability: Durability,
    }
}
