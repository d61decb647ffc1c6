//! What registry and copy say, and `durum.store`.

use std::path::Path;

use durum_format::store::StoreHeader;

use super::{CheckReport, Severity, keep};
use crate::directory::UNFINISHED_FILE;
use crate::error::{Error, Result};
use crate::identity;
use crate::registry::contents::Contents;
use crate::registry::takeover;
use crate::registry::{self, Remains};

/// What a store says about itself.
pub(super) struct Registered {
    pub(super) contents: Option<Contents>,
    /// Whether the registry itself was read: only then it is known what belongs to the store.
    pub(super) is_complete: bool,
}

impl Registered {
    pub(super) fn read(
        path: &Path,
        identity: &StoreHeader,
        report: &mut CheckReport,
    ) -> Result<Registered> {
        let registry_path = path.join(registry::NAMES[0]);
        let copy_path = path.join(registry::NAMES[1]);
        let found = registry::read(path, identity);
        let Some(found) = keep(found, &registry_path, report)? else {
            let contents = Remains::read(path).salvage(Some(identity));
            report.can_repair |= contents.is_some();
            return Ok(Registered {
                contents,
                is_complete: false,
            });
        };
        if found.is_before() {
            let text = "a store of the form before: the next opener takes it over";
            report.add(Severity::Note, &path.join(takeover::FILES[0]), None, text);
        } else if let Some(error) = found.lost_copy() {
            let text =
                format!("{error}; the registry is whole, and the next opener makes the copy anew");
            report.can_repair = true;
            report.add(Severity::Damage, &copy_path, None, text);
        } else if !found.has_copy() {
            let text = "a crash left it behind the registry; the next opener makes it anew";
            report.add(Severity::Note, &copy_path, None, text);
        }
        Ok(Registered {
            contents: Some(found.contents),
            is_complete: true,
        })
    }
}

/// The store's identity: by `durum.store`, or by the registry where that file is damaged or gone. `None` as the second
/// part where nothing is wrong.
pub(super) fn identity(path: &Path) -> Result<(StoreHeader, Option<Error>)> {
    let error = match identity::read(path) {
        Ok(identity) => return Ok((identity, None)),
        Err(error) => error,
    };
    let is_damaged = match &error {
        // A store that is not finished never was one.
        Error::StoreMissing { .. } => !path.join(UNFINISHED_FILE).exists(),
        Error::Format { source, .. } => source.fault() != durum_format::Fault::OtherVersion,
        Error::NotAFile { .. } => false,
        other => other.kind() == crate::ErrorKind::Data,
    };
    match is_damaged.then(|| Remains::read(path).salvage(None)) {
        Some(Some(contents)) => Ok((contents.store.clone(), Some(error))),
        _ => Err(error),
    }
}
