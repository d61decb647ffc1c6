//! An open pool of the typed interface.

use std::path::Path;

use durum::typed::{OpenOptions, PSafe, PoolType, Root, RootGuard};
use durum::{Engine, PoolOptions};

use super::durum::pool::TempDir;
use crate::error::{Error, Result};

/// A pool in a directory of its own, which goes last.
pub(super) struct Open<T: PSafe, P: PoolType> {
    /// Of the side.
    pub(super) name: &'static str,
    pub(super) root: RootGuard<T, P>,
    _dir: TempDir,
}

impl<T: Root<P>, P: PoolType> Open<T, P> {
    pub(super) fn new(name: &'static str, engine: Engine, dir: &Path) -> Result<Self> {
        let path = dir.join(name);
        let pool = PoolOptions::new().engine(engine);
        let options = OpenOptions::new().create(true).pool(pool);
        Ok(Open {
            name,
            root: P::open(&path, options).map_err(Error::side(name))?,
            _dir: TempDir(path),
        })
    }
}
