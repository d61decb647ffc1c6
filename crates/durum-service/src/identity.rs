//! The file `durum.store`: which store this is and where its puddles lie. Made once, never changed.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use durum_format::error::Fault;
use durum_format::store::{FILE_NAME, LEN_MAX, StoreHeader};
use durum_persist::Site;
use durum_persist::domain::Domain;

use crate::directory::{UNFINISHED_FILE, is_free};
use crate::error::{Error, Result};
use crate::files;
use crate::reading::{self, Role};
use crate::registry;

const TEMPORARY_FILE: &str = "durum.store.new";

const IDENTITY: Site = Site("store identity");
const IDENTITY_NAME: Site = Site("store identity's name");

const STRUCTURE: &str = "the store's identity";
const CURE: &str = "restore a copy of the store";
/// The registry repeats what the identity says.
const CURE_BY_REGISTRY: &str =
    "make it anew from the registry: `durum check --repair`, or restore a copy of the store";

/// The path of the file.
pub(crate) fn path(store: &Path) -> PathBuf {
    store.join(FILE_NAME)
}

/// Whether a file of that name in a store directory is the identity, or the beginning of one.
pub(crate) fn is_ours(name: &OsStr) -> bool {
    name == FILE_NAME || name == TEMPORARY_FILE
}

/// Reads and validates the identity of the store in a directory.
pub(crate) fn read(store: &Path) -> Result<StoreHeader> {
    let path = path(store);
    // A store that is not finished never was one.
    let has_registry = !store.join(UNFINISHED_FILE).exists() && registry::is_there(store);
    let cure = match has_registry {
        true => CURE_BY_REGISTRY,
        false => CURE,
    };
    let role = Role {
        structure: STRUCTURE,
        cure,
    };
    let file = reading::open(store, FILE_NAME, role, false).map_err(|error| match error {
        Error::FileMissing { .. } if !has_registry => Error::StoreMissing {
            path: store.to_owned(),
            missing: if store.join(UNFINISHED_FILE).exists() {
                "durum.store: a crash came while the store was made, and it"
            } else {
                FILE_NAME
            },
            can_be_made: is_free(store).unwrap_or(false),
        },
        other => other,
    })?;
    // One byte more than is valid, so that a longer file is noticed.
    let bytes = reading::whole(&file, LEN_MAX as u64 + 1, |head, _| Ok(head.len() as u64))?;
    StoreHeader::parse(&bytes).map_err(|source| match source.fault() {
        // A directory with a registry is a store, and not a wrong path.
        Fault::Foreign if has_registry => Error::Damaged {
            file: path,
            structure: STRUCTURE,
            offset: 0,
            problem: "it does not begin as one does".to_owned(),
            cure: cure.into(),
        },
        _ => Error::format(&path, 0, source, cure),
    })
}

/// Writes the identity of a new store. Durable on return, its name included.
pub(crate) fn write(store: &Path, identity: &StoreHeader) -> Result<()> {
    let text = identity.encode().map_err(|error| Error::Options {
        reason: error.to_string(),
    })?;
    let bytes = text.as_bytes();
    files::replace_file(
        store,
        FILE_NAME,
        TEMPORARY_FILE,
        bytes,
        IDENTITY,
        IDENTITY_NAME,
    )
}

/// The word for a domain, as the identity and the catalog have it.
pub(crate) fn domain_name(domain: Domain) -> &'static str {
    match domain {
        Domain::Dax => "dax",
        Domain::Dram => "dram",
        Domain::File => "file",
        Domain::Emulated(_) => "emulated",
        _ => "other",
    }
}
