//! Pools as they are at one moment, for somebody who watches the program: a [snapshot](crate::Pool::snapshot) in a
//! directory of theirs.

use std::os::fd::{AsRawFd, OwnedFd};
use std::path::Path;
use std::sync::Arc;

use durum_protocol::watching::{SHOWN, Told, Why};
use durum_service::Error::PointersLeave;

use crate::error::{Error, ErrorKind, Result};
use crate::opened::{Pool, PoolInner, StoreInner};
use crate::snapshot::SnapshotOptions;

/// Shows the pools of these names, or all that are open for writing.
pub(super) fn show(store: &Arc<StoreInner>, names: &[String], directory: &OwnedFd) -> Told {
    match export(store, names, directory) {
        Ok(()) => Told::Shown,
        Err(error) => Told::NotShown {
            why: match (&error, error.kind()) {
                (Error::Store(PointersLeave { .. }), _) => Why::NeedsMore,
                (_, ErrorKind::User | ErrorKind::Caller) => Why::Refused,
                (_, ErrorKind::Data) => Why::Damaged,
                (_, ErrorKind::System) => Why::Failed,
            },
            problem: error.to_string(),
        },
    }
}

fn export(store: &Arc<StoreInner>, names: &[String], directory: &OwnedFd) -> Result<()> {
    let open = store.all_open_pools().into_iter();
    // Others may be closed meanwhile.
    let open = open.filter_map(|pool| pool.downcast::<PoolInner>().ok());
    let open = open.filter(|pool| !pool.is_read_only);
    let wanted = open.filter(|pool| names.is_empty() || names.contains(&pool.name));
    let pools = wanted.map(|inner| Pool { inner, _tie: None });
    let pools: Vec<Pool> = pools.collect();
    let is_open = |name: &&String| pools.iter().any(|pool| pool.name() == *name);
    if let Some(name) = names.iter().find(|name| !is_open(name)) {
        let pool = name.clone();
        return Err(durum_service::Error::PoolNotOpen { pool }.into());
    }
    let Some((first, others)) = pools.split_first() else {
        let pool = "*".to_owned();
        return Err(durum_service::Error::PoolNotOpen { pool }.into());
    };
    // Whatever the directory is called, and wherever it is moved, it is this one.
    let place = format!("/proc/self/fd/{}", directory.as_raw_fd());
    let mut options = SnapshotOptions::new();
    options.with = others.to_vec();
    first.snapshot(Path::new(&place).join(SHOWN), &options)?;
    Ok(())
}
