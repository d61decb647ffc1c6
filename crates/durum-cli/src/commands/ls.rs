//! `durum ls`: the pools of a store.

use std::io::Write;

use durum_service::{PoolSummary, ReadOnlyStore};
use serde_json::{Value, json};

use super::state::{self, States};
use super::{recover, rights};
use crate::args::Ls;
use crate::color;
use crate::failure::Failure;
use crate::output::{self, size};
use crate::place::Place;

pub(crate) fn run(options: &Ls, out: &mut dyn Write) -> Result<(), Failure> {
    let place = Place::of(&options.store);
    let store = place.read()?;
    let mut pools = store.pools();
    if let Some(name) = place.pool(None)? {
        pools.retain(|pool| pool.name == name);
    }
    list(&store, &pools, options.json, out)
}

/// Tells of pools of a store.
pub(crate) fn list(
    store: &ReadOnlyStore,
    pools: &[PoolSummary],
    as_json: bool,
    out: &mut dyn Write,
) -> Result<(), Failure> {
    let states = States::of(store.name(), store, pools)?;
    if as_json {
        output::json(
            out,
            &json!({
                "clean": store.is_clean(),
                "writer": store.writer()?,
                "pools": all_to_json(pools, &states),
            }),
        )?;
        return states.outcome();
    }
    if pools.is_empty() {
        writeln!(out, "no pools")?;
        return Ok(());
    }
    let mut rows = output::heading("POOL|ENGINE|SIZE|PUDDLES|MODE|OWNER|GROUP|STATE");
    for pool in pools {
        let [mode, owner, group] = rights::columns(&pool.rights);
        rows.push(vec![
            pool.name.clone(),
            pool.engine.name().into(),
            size(pool.bytes),
            pool.puddles.to_string(),
            mode,
            owner,
            group,
            state(&states, pool),
        ]);
    }
    output::table(out, &rows, &[2, 3])?;
    if store.served().is_none() && !store.is_clean() && store.writer()?.is_none() {
        let pending = store.pending();
        writeln!(
            out,
            "{} the store was not closed in order: the next program that opens it recovers it ({} rolled back, {} forward)",
            color::out(color::WARNING, "note:"),
            output::count(pending.rolled_back, "transaction"),
            output::grouped(pending.rolled_forward)
        )?;
    }
    states.outcome()
}

/// The last column, so that its colours push nothing aside.
fn state(states: &States<'_>, pool: &PoolSummary) -> String {
    match states.line(pool) {
        line if line == state::OK => line,
        line => color::out(color::BAD, line).to_string(),
    }
}

/// What is told of pools in JSON.
pub(crate) fn all_to_json(pools: &[PoolSummary], states: &States<'_>) -> Vec<Value> {
    pools.iter().map(|pool| to_json(pool, states)).collect()
}

fn to_json(pool: &PoolSummary, states: &States<'_>) -> Value {
    json!({
        "name": pool.name,
        "uuid": pool.uuid.to_string(),
        "engine": pool.engine.name(),
        "bytes": pool.bytes,
        "puddles": pool.puddles,
        "mode": format!("{:04o}", pool.rights.mode),
        "uid": pool.rights.uid,
        "gid": pool.rights.gid,
        "refused": states.refused(&pool.name).map(recover::refused_to_json),
        "interrupted": states.interrupted_to_json(&pool.name),
        "damaged_files": states.files_to_json(&pool.name),
        "quarantine": pool.quarantine.as_ref().map(|note| json!({ "log": note.log, "reason": note.reason })),
    })
}
