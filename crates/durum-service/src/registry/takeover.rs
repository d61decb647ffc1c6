//! Stores of the form before: a database `registry.redb`, and a file `catalog` that repeated it after each of its
//! commits (`docs/format/catalog.md`).
//!
//! Such a store is taken over by its next opener, out of the catalog alone. That was written after the database and
//! before anybody was told of a commit, and before any file went; so what the database may have had more was never
//! acknowledged: a puddle that nobody got, a grant that nobody used, a removal whose files are still there, a recovery
//! that is done again with the same result. One case is left, a removal on a full disk: there files went before the
//! catalog was written. So a client is taken for ended if none of its files is there.

use std::collections::BTreeSet;
use std::path::Path;

use durum_format::catalog::{self as format, Catalog, FILE_NAME as CATALOG_FILE, Grant};
use durum_format::registry::State;
use durum_format::store::StoreHeader;
use durum_format::types::Meanings;
use durum_format::{EngineKind, FormatError, Uuid};
use durum_persist::Site;

use crate::error::{Error, Result};
use crate::files;
use crate::reading::{self, Role};
use crate::registry::contents::{Contents, PoolRecord, PuddleRecord, QuarantinedLog};

/// The files of the form before, and what a crash left of the next ones.
pub(crate) const FILES: [&str; 4] = [
    CATALOG_FILE,
    "catalog.new",
    "registry.redb",
    "registry.redb.new",
];

const TAKEN_OVER: Site = Site("files of the form before");

const CURE: &str =
    "open the store once with the durum that wrote it, or restore a copy of the store";

/// Whether a store has the file out of which it is taken over.
pub(crate) fn is_before(store: &Path) -> bool {
    FILES
        .iter()
        .any(|name| store.join(name).symlink_metadata().is_ok())
}

/// Removes the files of the form before. Their absence is durable on return.
pub(crate) fn remove(store: &Path) -> Result<()> {
    if !is_before(store) {
        return Ok(());
    }
    for name in FILES {
        let operation = "removing a file of the form before";
        files::remove_if_there(&store.join(name), TAKEN_OVER, operation)?;
    }
    // ORDER: they are gone before the registry has its first commit; else a crash shows an older durum a store that it
    // opens without that commit.
    files::sync_dir(store, TAKEN_OVER)
}

/// What the registry of such a store says. Writes nothing.
pub(crate) fn read(store: &Path, identity: &StoreHeader) -> Result<Contents> {
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
    let catalog = Catalog::parse(&bytes).map_err(|source| refusal(store, source))?;
    if (catalog.store, catalog.base, catalog.size) != (identity.uuid, identity.base, identity.size)
    {
        let problem = format!(
            "it belongs to the store {} at {:#x}, durum.store says {} at {:#x}",
            catalog.store, catalog.base, identity.uuid, identity.base
        );
        return Err(damaged(store, problem));
    }
    let contents = to_contents(store, identity, &catalog)?;
    let contents = forget_ended(store, contents);
    contents
        .validate()
        .map_err(|source| refusal(store, source))?;
    Ok(contents)
}

fn refusal(store: &Path, source: FormatError) -> Error {
    Error::format(&store.join(CATALOG_FILE), 0, source, CURE)
}

fn damaged(store: &Path, problem: String) -> Error {
    Error::Damaged {
        file: store.join(CATALOG_FILE),
        structure: "catalog",
        offset: 0,
        problem,
        cure: CURE.into(),
    }
}

/// Forgets clients none of whose files is there.
fn forget_ended(store: &Path, mut contents: Contents) -> Contents {
    let clients: Vec<Uuid> = contents.clients.iter().copied().collect();
    for client in clients {
        let (changes, puddles) = contents.ending_of(client);
        let is_gone = |uuid: &Uuid| files::puddle_path(store, *uuid).symlink_metadata().is_err();
        if !puddles.is_empty() && puddles.iter().all(is_gone) {
            tracing::warn!(%client, "the files of a client are gone: it ended on a full disk");
            let mut state = contents.into_state();
            let sequence = state.sequence;
            state.commit(&changes);
            state.sequence = sequence;
            state.removing.clear();
            state.coming.clear();
            contents = Contents::of(state);
        }
    }
    contents
}

/// What the catalog says, as the registry has it. The place of the next puddle is not in it: the start stands in.
fn to_contents(store: &Path, identity: &StoreHeader, catalog: &Catalog) -> Result<Contents> {
    let mut contents = State::new(identity.clone());
    contents.sequence = catalog.commit;
    let mut roots = BTreeSet::new();
    for pool in &catalog.pools {
        let Some(engine) = EngineKind::from_name(&pool.engine) else {
            let problem = format!(
                "pool {:?} has the engine {:?}, which this build does not know",
                pool.name, pool.engine
            );
            return Err(damaged(store, problem));
        };
        roots.insert(pool.root);
        let record = PoolRecord {
            rights: None,
            damage: None,
            meanings: Meanings::default(),
            name: pool.name.clone(),
            engine,
            root_puddle: pool.root,
        };
        contents.pools.insert(pool.uuid, record);
    }
    for puddle in &catalog.puddles {
        let record = PuddleRecord {
            owner: puddle.owner,
            address: puddle.address,
            size: puddle.size,
            kind: puddle.kind,
            is_root: roots.contains(&puddle.uuid),
            is_stale: false,
            origin: None,
        };
        contents.puddles.insert(puddle.uuid, record);
    }
    for log in &catalog.quarantine {
        let record = QuarantinedLog {
            log_id: log.log_id,
            continuations: log.continuations.clone(),
            client: log.client,
            reason: log.reason.clone(),
        };
        contents.quarantine.insert(log.puddle, record);
    }
    for client in &catalog.clients {
        let uuid = client.uuid;
        let owner = |grant: &Grant| Some(contents.puddles.get(&grant.puddle)?.owner);
        let pools: BTreeSet<Uuid> = client.grants.iter().filter_map(owner).collect();
        let pools = pools.into_iter();
        if catalog.quarantine.iter().any(|log| log.client == uuid) {
            contents.marks.extend(pools.map(|pool| (pool, uuid)));
            continue;
        }
        contents.clients.insert(uuid);
        if let Some(space) = client.log_space {
            contents.log_spaces.insert(space, uuid);
        }
        contents.grants.extend(pools.map(|pool| (uuid, pool)));
    }
    let types = catalog.types.iter();
    contents.types = types.map(|it| (it.id, it.text.clone())).collect();
    Ok(Contents::of(contents))
}
