//! The state of a store's pools, for those who only look.

use std::path::Path;

use durum_service::{FileProblem, LostFile, PoolSummary, ReadOnlyStore, RefusedPool};
use serde_json::{Value, json};

use super::recover;
use crate::failure::Failure;
use crate::output::{count, list};

/// What to do about pools whose own files are damaged, as a clause. No repair makes data out of nothing.
pub(crate) fn advice(store: &Path, pools: &[&str]) -> String {
    let (what, its, it, is) = match pools {
        [_] => ("pool", "its", "the pool", "is"),
        _ => ("pools", "their", "a pool", "are"),
    };
    format!(
        "only {what} {} {is} concerned, others can be opened: put {its} files back as they were, restore a copy of the whole store, \
         or drop {it}: `durum rm {} {}`",
        list(pools.iter().map(|pool| format!("\"{pool}\""))),
        store.display(),
        match pools {
            [pool] => pool,
            _ => "POOL",
        }
    )
}

/// What a line says of a pool that can be used.
pub(crate) const OK: &str = "ok";

/// What is wrong with pools of a store.
pub(crate) struct States<'a> {
    /// As messages name the store.
    store: &'a Path,
    reader: &'a ReadOnlyStore,
    pools: &'a [PoolSummary],
    lost: Vec<LostFile>,
}

impl<'a> States<'a> {
    /// Looks at the files of all pools, and not into them.
    pub(crate) fn of(
        store: &'a Path,
        reader: &'a ReadOnlyStore,
        pools: &'a [PoolSummary],
    ) -> Result<States<'a>, Failure> {
        Ok(States {
            store,
            reader,
            pools,
            lost: reader.lost_files()?,
        })
    }

    pub(crate) fn refused(&self, pool: &str) -> Option<&RefusedPool> {
        let mut refused = self.reader.pending().refused.iter();
        refused.find(|refused| refused.name == pool)
    }

    fn lost_of(&self, pool: &str) -> impl Iterator<Item = &LostFile> {
        self.lost.iter().filter(move |lost| lost.pool == pool)
    }

    /// A pool's state, in a line.
    pub(crate) fn line(&self, pool: &PoolSummary) -> String {
        // What keeps it from its recovery names the file, too.
        if let (None, Some(refused)) = (&pool.quarantine, self.refused(&pool.name)) {
            return format!("refused: {}", refused.reason);
        }
        let note = pool.quarantine.as_ref();
        let note =
            note.map(|note| format!("quarantined: {} ({})", note.reason, note.log.display()));
        let clients = self.reader.interrupted_in(&pool.name);
        let interrupted = clients.map(|client| format!("interrupted: {}", client.reason()));
        let lost = self.lost_line(&pool.name);
        let all: Vec<String> = note.into_iter().chain(interrupted).chain(lost).collect();
        match all.as_slice() {
            [] => OK.into(),
            all => all.join("; "),
        }
    }

    /// The first file of a pool that cannot be used, and how many more there are.
    fn lost_line(&self, pool: &str) -> Option<String> {
        let mut lost = self.lost_of(pool);
        let first = lost.next()?;
        Some(match lost.count() {
            0 => first.to_string(),
            more => format!("{first}, and {} more", count(more as u64, "file")),
        })
    }

    /// The names of pools whose files cannot be used, with the files.
    pub(crate) fn damaged(&self) -> Option<String> {
        let lines = self.pools.iter().filter_map(|pool| {
            let line = self.lost_line(&pool.name)?;
            Some(format!("{}: {line}", pool.name))
        });
        let lines: Vec<String> = lines.collect();
        (!lines.is_empty()).then(|| lines.join("; "))
    }

    pub(crate) fn quarantined(&self) -> Vec<&str> {
        let pools = self.pools.iter();
        let pools = pools.filter(|pool| pool.quarantine.is_some());
        pools.map(|pool| pool.name.as_str()).collect()
    }

    /// The files of a pool that cannot be used.
    pub(crate) fn files_to_json(&self, pool: &str) -> Value {
        let files = self.lost_of(pool).map(|lost| {
            json!({
                "file": lost.file,
                "problem": lost.problem.name(),
                "text": lost.to_string(),
            })
        });
        files.collect()
    }

    /// Who has left sections in a pool.
    pub(crate) fn interrupted_to_json(&self, pool: &str) -> Value {
        let clients = self.reader.interrupted_in(pool);
        clients.map(recover::interrupted_to_json).collect()
    }

    /// Those of all pools.
    pub(crate) fn all_files_to_json(&self) -> Value {
        let pools = self.pools.iter();
        let damaged = pools.filter(|pool| self.lost_of(&pool.name).next().is_some());
        let damaged = damaged
            .map(|pool| json!({ "pool": pool.name, "files": self.files_to_json(&pool.name) }));
        damaged.collect()
    }

    /// The failure that tells of pools that cannot be used; none where all can.
    pub(crate) fn outcome(&self) -> Result<(), Failure> {
        let store = self.store;
        // Of refused pools the reason is told below.
        let lost = self.lost.iter();
        let lost: Vec<&LostFile> = lost
            .filter(|lost| self.refused(&lost.pool).is_none())
            .collect();
        let Some(first) = lost.first() else {
            return recover::outcome(store, self.reader.pending(), &self.quarantined());
        };
        let mut names: Vec<&str> = lost.iter().map(|lost| lost.pool.as_str()).collect();
        names.dedup();
        let is_unreadable = |lost: &&LostFile| matches!(lost.problem, FileProblem::Unreadable(_));
        let text = format!(
            "{}: {} cannot be opened: {}; {first}; ",
            store.display(),
            count(names.len() as u64, "pool"),
            list(&names)
        );
        if lost.iter().all(is_unreadable) {
            let cure = "let this user read it, and write it to open the store (`chmod`, `chown`), or be its owner";
            return Err(Failure::Unreadable(format!("{text}{cure}")));
        }
        let advice = advice(store, &names);
        Err(Failure::Damaged(format!("{text}{advice}")))
    }
}
