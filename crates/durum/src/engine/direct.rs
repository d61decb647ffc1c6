//! Direct: changes in place and one fence, which is what durability costs without atomicity. For benchmarks: a crash
//! within a commit leaves any part of it.
//!
//! An abort puts memory back as it was. The media follow when the range is announced again.

use std::ops::Range;

use durum_persist::Site;

use super::in_place::{apply, check_media, write_back_announced, write_file};
use super::{check_failed, put_back};
use crate::alloc::Puddle;
use crate::error::{Result, Step};
use crate::fault::guarded;
use crate::opened::{Engine, Facts, PoolInner, TxState};

const COMMIT_WRITE: Site = Site("direct.commit: write back");
const COMMIT_FENCE: Site = Site("direct.commit: fence");
const PERSIST_WRITE: Site = Site("direct.persist: write back");
const PERSIST_FENCE: Site = Site("direct.persist: fence");

/// The engine, which keeps nothing.
#[derive(Debug)]
pub(super) struct Direct;

impl Engine for Direct {
    fn facts(&self) -> Facts {
        Facts {
            commits_with_others: true,
            works_in_place: true,
            ..Facts::default()
        }
    }

    fn commit(&self, tx: &mut TxState) -> Step {
        let is_private = tx.pools[0].store.private;
        match is_private {
            false => write_back_announced(&tx.announced, COMMIT_WRITE),
            true => tx.announced.try_for_each(false, |address, len| {
                // ORDER: durable with the fence below.
                write_file(&mut tx.barrier, address, len, COMMIT_WRITE)
            })?,
        }
        guarded(|| apply(tx, COMMIT_WRITE))?;
        // ORDER: durable when the commit returns; nothing is said of a crash before.
        tx.barrier.fence(is_private, COMMIT_FENCE)?;
        check_media(&tx.pools)?;
        Ok(())
    }

    fn abort(&self, tx: &mut TxState) {
        guarded(|| put_back(&tx.backups, |_| {}));
    }

    fn persist(
        &self,
        tx: &mut TxState,
        pool: &PoolInner,
        ranges: &[(&Puddle, Range<usize>)],
    ) -> Result<()> {
        for (puddle, range) in ranges {
            let (address, len) = (range.start, range.len());
            // ORDER: durable with the fence below.
            guarded(|| tx.barrier.write_back(puddle, address, len, PERSIST_WRITE))?;
        }
        // ORDER: durable on return; that is what the caller asked for.
        tx.barrier.fence(pool.store.private, PERSIST_FENCE)?;
        check_failed(ranges)
    }
}
