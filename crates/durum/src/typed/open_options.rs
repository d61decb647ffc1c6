//! How a pool is opened under a pool type.

use std::ops::BitOr;

use crate::Engine;
use crate::options::{PoolOptions, StoreOptions, setters};

/// How a pool is opened, as flags (Corundum §3.2). Two are combined by `|`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Flags(u32);

impl Flags {
    /// It must exist.
    pub const OPEN: Self = Self(0);
    /// It is made if it does not exist.
    pub const CREATE: Self = Self(1);
    /// It must not exist, and is made.
    pub const NEW: Self = Self(2);
    /// Its transactions run on the Hybrid engine, not on Shadow; one that was made for another engine is refused.
    pub const HYBRID: Self = Self(4);
    /// The same for the Twin engine: one at a time.
    pub const TWIN: Self = Self(8);
    /// It is opened for reading only, and must exist ([`PoolOptions::read_only`]).
    pub const READ_ONLY: Self = Self(16);

    fn has(self, flag: Self) -> bool {
        self.0 & flag.0 != 0
    }
}

impl BitOr for Flags {
    type Output = Self;

    fn bitor(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }
}

/// How a pool is opened.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct OpenOptions {
    /// It is made if it does not exist and is not for reading only. Default: no.
    pub create: bool,
    /// It must not exist. Default: no.
    pub new: bool,
    /// How its store is opened, or made.
    pub store: StoreOptions,
    /// How the pool is used, and made.
    pub pool: PoolOptions,
    /// The engine that it runs on: a pool that is made is made for it, and one that was made for another is refused.
    /// Default: any, and what `pool` says for one that is made.
    pub engine: Option<Engine>,
    /// Look for threads that wait for each other's [`PMutex`](super::PMutex), and panic in one of them: the message
    /// names each mutex by its type, its pool and its address, which is that of a reference to it. Default: with
    /// `debug_assertions`, as in a build without `--release`.
    pub find_deadlocks: bool,
}

impl Default for OpenOptions {
    fn default() -> Self {
        Self {
            create: false,
            new: false,
            store: StoreOptions::default(),
            pool: PoolOptions::default(),
            engine: None,
            find_deadlocks: cfg!(debug_assertions),
        }
    }
}

impl OpenOptions {
    /// The defaults: the pool must exist.
    pub fn new() -> Self {
        Self::default()
    }
}

setters! {
    OpenOptions:
    create(create: bool);
    store(options: StoreOptions);
    pool(options: PoolOptions);
    engine(engine: Engine);
    find_deadlocks(find: bool);
}

impl From<Flags> for OpenOptions {
    fn from(flags: Flags) -> Self {
        let mut options = Self::new().create(flags.has(Flags::CREATE));
        options.new = flags.has(Flags::NEW);
        options.pool.read_only = flags.has(Flags::READ_ONLY);
        if flags.has(Flags::HYBRID) {
            options.engine = Some(Engine::Hybrid);
        }
        if flags.has(Flags::TWIN) {
            options.engine = Some(Engine::Twin);
        }
        options
    }
}

impl From<u32> for OpenOptions {
    /// The bits of [`Flags`]; as in the paper, 0 opens what exists.
    fn from(flags: u32) -> Self {
        Flags(flags).into()
    }
}

impl From<i32> for OpenOptions {
    /// As from `u32`: what a plain `0` is.
    fn from(flags: i32) -> Self {
        Flags(flags as u32).into()
    }
}
