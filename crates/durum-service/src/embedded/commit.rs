//! The way of every change: the registry commit, then the catalog, then files that go.

use durum_format::Uuid;

use super::{Embedded, Open};
use crate::catalog;
use crate::error::{Error, Result};
use crate::files;
use crate::registry::CommitFailure;
use crate::registry::contents::Change;

impl Embedded {
    /// Commits a change that adds something. Durable on return, in the catalog too.
    ///
    /// Where there is no room for the catalog, the change is taken back with `undo`: the addition did not happen.
    pub(super) fn commit_addition(
        &self,
        open: &mut Open,
        changes: &[Change],
        undo: &[Change],
    ) -> Result<()> {
        self.commit_registry(open, changes)?;
        // ORDER: the catalog follows the registry before anything is handed out. So whatever a client does to its
        // grants, puddles and logs, a reader of the catalog knows of them.
        let Err(error) = self.replace_catalog(open) else {
            return Ok(());
        };
        self.commit_registry(open, undo)?;
        // Best effort: a stale catalog is made good at the next commit, and at the next open.
        open.catalog_is_stale = self.replace_catalog(open).is_err();
        Err(error)
    }

    /// Commits a change that removes something, then removes the files of `puddles`. Durable on return.
    ///
    /// It must work on a full disk: where there is no room for a new catalog, the files go first.
    pub(super) fn commit_removal(
        &self,
        open: &mut Open,
        changes: &[Change],
        puddles: &[Uuid],
    ) -> Result<()> {
        self.commit_registry(open, changes)?;
        // ORDER: registry, catalog, files. A file that goes before its registration leaves, after a crash, a puddle
        // without a file; one that goes before its line in the catalog leaves a catalog that names it.
        let catalog = self.replace_catalog(open);
        for uuid in puddles {
            files::remove(&self.path, *uuid)?;
        }
        match catalog {
            Ok(()) => Ok(()),
            Err(Error::StorageFull { .. }) => {
                if let Err(error) = self.replace_catalog(open) {
                    // The removal is durable. Readers see it in the next catalog.
                    open.catalog_is_stale = true;
                    tracing::warn!(store = %self.path.display(), %error, "the catalog is older than the registry");
                }
                Ok(())
            }
            Err(error) => {
                open.catalog_is_stale = true;
                Err(error)
            }
        }
    }

    fn commit_registry(&self, open: &mut Open, changes: &[Change]) -> Result<()> {
        match open.registry.commit(&mut open.contents, changes) {
            Ok(()) => Ok(()),
            Err(CommitFailure::Full { bytes }) => Err(Error::StorageFull {
                path: open.registry.path().to_owned(),
                bytes,
            }),
            Err(CommitFailure::Unknown(error)) => Err(error),
        }
    }

    fn replace_catalog(&self, open: &mut Open) -> Result<()> {
        catalog::replace(&self.path, &self.identity, &open.contents)?;
        open.catalog_is_stale = false;
        Ok(())
    }
}
