//! The file `catalog`: what the registry says, for all who only read. Replaced after each registry commit.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsStr;
use std::io;
use std::path::{Path, PathBuf};

use durum_format::catalog::{
    self as format, Catalog, ClientRecord, Grant, GrantMode, QuarantineRecord, TypeRecord,
};
use durum_format::store::StoreHeader;
use durum_format::{FormatError, Uuid};
use durum_persist::Site;
use durum_persist::file::{self, MediaFile};

use crate::error::{Error, Result};
use crate::files::{self, grown};
use crate::model::EngineKind;
use crate::reading::{self, Role};
use crate::registry::contents::{Contents, PoolRecord, PuddleRecord, QuarantinedLog};

use durum_format::catalog::FILE_NAME as CATALOG_FILE;
/// The next catalog, until it is renamed.
const TEMPORARY_FILE: &str = "catalog.new";

const CATALOG: Site = Site("catalog");
const CATALOG_NAME: Site = Site("catalog's name");

/// The catalog's path.
pub(crate) fn path(store: &Path) -> PathBuf {
    store.join(CATALOG_FILE)
}

/// Whether a file of that name in the store directory is a catalog, or the beginning of one.
pub(crate) fn is_ours(name: &OsStr) -> bool {
    name == CATALOG_FILE || name == TEMPORARY_FILE
}

/// Files that a crash while the catalog is replaced leaves.
pub(crate) fn leftovers(store: &Path) -> Vec<PathBuf> {
    vec![store.join(TEMPORARY_FILE)]
}

/// Replaces the catalog. Durable on return; after an error it is the old one or the new one, whole.
pub(crate) fn replace(store: &Path, identity: &StoreHeader, contents: &Contents) -> Result<()> {
    let bytes = to_catalog(identity, contents)
        .encode()
        .map_err(|source| refusal(store, source))?;
    replace_file(
        store,
        CATALOG_FILE,
        TEMPORARY_FILE,
        &bytes,
        CATALOG,
        CATALOG_NAME,
    )
}

/// Reads and validates the catalog. Writes nothing.
pub(crate) fn read(store: &Path) -> Result<Catalog> {
    let role = Role {
        structure: "the catalog",
        cure: CURE,
    };
    let file = reading::open(store, CATALOG_FILE, role, false)?;
    let bytes = reading::whole(&file, format::HEAD_MAX as u64, |head, length| {
        // One byte more than is valid, so that a longer file is noticed.
        let wanted = format::file_len(head).map_err(|source| refusal(store, source))?;
        Ok(length.min(wanted.saturating_add(1)))
    })?;
    Catalog::parse(&bytes).map_err(|source| refusal(store, source))
}

const CURE: &str = "rewrite it from the registry: `durum check --repair`";

fn refusal(store: &Path, source: FormatError) -> Error {
    Error::Format {
        file: path(store),
        base: 0,
        source: Box::new(source),
        cure: CURE,
    }
}

/// The catalog that says what the registry says.
///
/// A client whose logs are quarantined stays in it with its grants: they tell which pools its logs concern.
pub(crate) fn to_catalog(identity: &StoreHeader, contents: &Contents) -> Catalog {
    let mut members: BTreeMap<Uuid, Vec<Uuid>> = BTreeMap::new();
    for (uuid, record) in &contents.puddles {
        if record.kind.holds_objects() {
            members.entry(record.owner).or_default().push(*uuid);
        }
    }
    let members_of = |pool: Uuid| members.get(&pool).cloned().unwrap_or_default();
    let mut clients: BTreeMap<Uuid, ClientRecord> = BTreeMap::new();
    let mut client =
        |uuid: Uuid, log_space: Option<Uuid>, pools: &mut dyn Iterator<Item = Uuid>| {
            let record = clients.entry(uuid).or_insert_with(|| ClientRecord {
                uuid,
                log_space,
                grants: Vec::new(),
            });
            record
                .grants
                .extend(pools.flat_map(members_of).map(|puddle| Grant {
                    puddle,
                    mode: GrantMode::Write,
                }));
        };
    for &uuid in &contents.clients {
        let log_space = contents.log_space_of(uuid);
        client(uuid, log_space, &mut contents.granted_pools(uuid));
    }
    for &(pool, uuid) in &contents.marks {
        client(uuid, None, &mut std::iter::once(pool));
    }
    Catalog {
        store: identity.uuid,
        commit: contents.sequence,
        base: identity.base,
        size: identity.size,
        domain: identity.domain.clone(),
        clean: contents.is_clean(),
        pools: contents
            .pools
            .iter()
            .map(|(uuid, record)| format::PoolRecord {
                name: record.name.clone(),
                uuid: *uuid,
                engine: record.engine.name().to_owned(),
                root: record.root_puddle,
                puddles: members_of(*uuid),
            })
            .collect(),
        puddles: contents
            .puddles
            .iter()
            .map(|(uuid, record)| format::PuddleRecord {
                uuid: *uuid,
                owner: record.owner,
                kind: record.kind,
                address: record.address,
                size: record.size,
                file: files::relative_path(*uuid, contents.is_quarantined_file(*uuid)),
            })
            .collect(),
        types: contents
            .types
            .iter()
            .map(|(id, text)| TypeRecord {
                id: *id,
                text: text.clone(),
            })
            .collect(),
        clients: clients.into_values().collect(),
        quarantine: contents
            .quarantine
            .iter()
            .map(|(puddle, log)| QuarantineRecord {
                log_id: log.log_id,
                puddle: *puddle,
                continuations: log.continuations.clone(),
                client: log.client,
                reason: log.reason.clone(),
            })
            .collect(),
    }
}

/// What the catalog says, as the registry has it. The place of the next puddle is not in it: the start stands in.
pub(crate) fn to_contents(
    store: &Path,
    identity: &StoreHeader,
    catalog: &Catalog,
) -> Result<Contents> {
    let mut contents = Contents {
        store: catalog.store,
        sequence: catalog.commit,
        cursor: identity.start,
        ..Contents::default()
    };
    let mut roots = BTreeSet::new();
    for pool in &catalog.pools {
        let Some(engine) = EngineKind::from_name(&pool.engine) else {
            return Err(Error::Damaged {
                file: path(store),
                structure: "catalog",
                offset: 0,
                problem: format!(
                    "pool {:?} has the engine {:?}, which this build does not know",
                    pool.name, pool.engine
                ),
                cure: "use a build of durum that knows it",
            });
        };
        roots.insert(pool.root);
        contents.pools.insert(
            pool.uuid,
            PoolRecord {
                name: pool.name.clone(),
                engine,
                root_puddle: pool.root,
            },
        );
    }
    for puddle in &catalog.puddles {
        contents.puddles.insert(
            puddle.uuid,
            PuddleRecord {
                owner: puddle.owner,
                address: puddle.address,
                size: puddle.size,
                kind: puddle.kind,
                is_root: roots.contains(&puddle.uuid),
            },
        );
    }
    for log in &catalog.quarantine {
        contents.quarantine.insert(
            log.puddle,
            QuarantinedLog {
                log_id: log.log_id,
                continuations: log.continuations.clone(),
                client: log.client,
                reason: log.reason.clone(),
            },
        );
    }
    for client in &catalog.clients {
        let pools: BTreeSet<Uuid> = client
            .grants
            .iter()
            .filter_map(|grant| Some(contents.puddles.get(&grant.puddle)?.owner))
            .collect();
        if catalog
            .quarantine
            .iter()
            .any(|log| log.client == client.uuid)
        {
            contents
                .marks
                .extend(pools.into_iter().map(|pool| (pool, client.uuid)));
            continue;
        }
        contents.clients.insert(client.uuid);
        if let Some(space) = client.log_space {
            contents.log_spaces.insert(space, client.uuid);
        }
        contents
            .grants
            .extend(pools.into_iter().map(|pool| (client.uuid, pool)));
    }
    contents.types = catalog
        .types
        .iter()
        .map(|record| (record.id, record.text.clone()))
        .collect();
    Ok(contents)
}

/// Replaces a small file of the store as a whole.
pub(crate) fn replace_file(
    store: &Path,
    name: &str,
    temporary_name: &str,
    bytes: &[u8],
    site: Site,
    name_site: Site,
) -> Result<()> {
    let path = store.join(name);
    let temporary = store.join(temporary_name);
    let failed =
        |operation| move |error: io::Error| grown(operation, &path, bytes.len() as u64, error);
    match file::remove(&temporary, site) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => {
            return Err(Error::io("removing a leftover", &temporary, error));
        }
        _ => {}
    }
    let write = || {
        let next = MediaFile::create_new(&temporary)?;
        next.write_all_at(bytes, 0)?;
        // ORDER: the bytes are durable before the name leads to them; else a crash leaves a torn file in the place of
        // a whole one.
        next.sync(site)?;
        file::rename(&temporary, &store.join(name), name_site)
    };
    if let Err(error) = write() {
        // Gives the room back. Should this fail as well, the next opener removes it.
        let _ = file::remove(&temporary, site);
        return Err(failed("replacing a file")(error));
    }
    // ORDER: the new name is durable before the caller goes on to what the file tells about.
    file::sync_dir(store, name_site)
        .map_err(|error| Error::io("syncing the directory", store, error))
}
