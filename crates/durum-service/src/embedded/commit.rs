//! The way of every change: the registry commit, and only then files that go.

use durum_format::Uuid;

use super::{Embedded, Open};
use crate::error::Result;
use crate::files;
use crate::registry::Purpose;
use crate::registry::contents::Change;

impl Embedded {
    /// Commits a change that adds something. Durable on return.
    pub(super) fn commit_addition(&self, open: &mut Open, changes: &[Change]) -> Result<()> {
        self.commit(open, changes, Purpose::Addition)
    }

    /// Commits a change that removes something, then removes the files of `puddles`. Durable on return, also on a full
    /// disk.
    pub(super) fn commit_removal(
        &self,
        open: &mut Open,
        changes: &[Change],
        puddles: &[Uuid],
    ) -> Result<()> {
        // ORDER: the registry, then files. A file that goes before its registration leaves, after a crash, a puddle
        // without a file.
        self.commit(open, changes, Purpose::Removal)?;
        for uuid in puddles {
            files::remove(&self.path, *uuid)?;
            open.unlinked.push(*uuid);
        }
        Ok(())
    }

    fn commit(&self, open: &mut Open, changes: &[Change], purpose: Purpose) -> Result<()> {
        // The registry lists a removed puddle until its file is gone durably. It hears of that with the next commit: no
        // hurry, and no sync of its own.
        let gone = open.gone.iter().map(|uuid| Change::FileGone(*uuid));
        let changes: Vec<Change> = gone.chain(changes.iter().cloned()).collect();
        let committed = open.registry.commit(&mut open.contents, &changes, purpose);
        committed.map_err(|failure| failure.into_error(&open.registry))?;
        open.gone.clear();
        Ok(())
    }
}
