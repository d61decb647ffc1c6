//! A check of what a service serves: this process reads the pools, and the service knows only that they are read.

use std::collections::BTreeSet;

use super::{CheckOptions, CheckReport, Severity, damaged_pools, reach, structure};
use crate::error::{Error, ErrorKind, Result};
use crate::files;
use crate::inspect::ReadOnlyStore;

/// Checks the pools of a store that a service serves, or the one of this name. Writes nothing. Nobody can write a pool
/// while it is checked.
///
/// A pool that somebody writes is not looked at, as a note says, nor is it known then what it leads to. Files that
/// belong to nothing are told to root and the service's user.
///
/// # Errors
/// `PoolMissing`, `PoolBusy` for the one that is named; those of the service; `Stopped`; `Io`.
pub fn check_served(
    reader: &mut ReadOnlyStore,
    pool: Option<&str>,
    options: &CheckOptions,
) -> Result<CheckReport> {
    // All of them before the first is looked at: pointers lead from one to another.
    let refused = reader.look(pool)?;
    let reader = &*reader;
    let mut report = CheckReport {
        pending: reader.pending().clone(),
        ..CheckReport::default()
    };
    if pool.is_none() {
        match reader.strays_of_service() {
            Ok(strays) => report.tell_strays(&strays.unwrap_or_default(), true),
            // It is older than this.
            Err(error) if error.kind() == ErrorKind::User => {
                let text = format!("files that belong to nothing were not looked for: {error}");
                report.add(Severity::Note, reader.path(), None, text);
            }
            Err(error) => return Err(error),
        }
    }
    report.tell_refused(reader);
    report.tell_quarantined(reader);
    let pools = reader.pools();
    for (name, error) in refused {
        match error {
            // They are told of above.
            Error::PoolRefused { .. } | Error::PoolQuarantined { .. } => {}
            error if error.kind() == ErrorKind::Data => {
                let summary = pools.iter().find(|pool| pool.name == name);
                let file = summary.map(|pool| files::puddle_path(reader.path(), pool.root_puddle));
                report.absorb(file.as_deref().unwrap_or(reader.path()), error)?;
            }
            error if pool.is_none() => {
                let text = format!("it was not looked at: {error}");
                report.add(Severity::Note, reader.path(), None, text);
            }
            error => return Err(error),
        }
    }
    let objects = structure::check(reader, options, &mut report)?;
    reach::check(reader, &objects, options, &mut report)?;
    if let Some(name) = pool {
        // Others may be held, too, and help to judge what leads where.
        let wanted = pools.iter().find(|pool| pool.name == name);
        let puddles = reader.puddles().into_iter();
        let of_others =
            puddles.filter(|puddle| wanted.is_none_or(|pool| pool.uuid != puddle.owner));
        let files: BTreeSet<_> = of_others
            .map(|puddle| files::puddle_path(reader.path(), puddle.uuid))
            .collect();
        report.findings.retain(|found| !files.contains(&found.file));
        report.pools.retain(|pool| pool.name == name);
    }
    report.damaged = damaged_pools(reader, &report);
    Ok(report)
}
