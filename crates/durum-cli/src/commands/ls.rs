//! `durum ls`: the pools of a store.

use std::io::Write;

use durum_service::{PoolSummary, ReadOnlyStore, RefusedPool};
use serde_json::{Value, json};

use super::recover;
use crate::args::Ls;
use crate::failure::Failure;
use crate::output::{self, size};

pub(crate) fn run(options: &Ls, out: &mut dyn Write) -> Result<(), Failure> {
    let store = ReadOnlyStore::open(&options.store)?;
    let pools = store.pools();
    let refused = |pool: &PoolSummary| {
        let mut refused = store.pending().refused.iter();
        refused.find(|refused| refused.name == pool.name)
    };
    if options.json {
        let pools = pools.iter().map(|pool| to_json(pool, refused(pool)));
        let pools: Vec<Value> = pools.collect();
        return Ok(output::json(out, &json!({ "pools": pools }))?);
    }
    if pools.is_empty() {
        writeln!(out, "no pools")?;
        return Ok(());
    }
    let heading = ["POOL", "ENGINE", "SIZE", "PUDDLES", "STATE"];
    let mut rows = vec![heading.map(String::from).to_vec()];
    for pool in &pools {
        let state = match (&pool.quarantine, refused(pool)) {
            (Some(note), _) => format!("quarantined: {} ({})", note.reason, note.log.display()),
            (None, Some(refused)) => format!("refused: {}", refused.reason),
            (None, None) => "ok".into(),
        };
        rows.push(vec![
            pool.name.clone(),
            pool.engine.name().into(),
            size(pool.bytes),
            pool.puddles.to_string(),
            state,
        ]);
    }
    Ok(output::table(out, &rows, &[2, 3])?)
}

fn to_json(pool: &PoolSummary, refused: Option<&RefusedPool>) -> Value {
    json!({
        "name": pool.name,
        "uuid": pool.uuid.to_string(),
        "engine": pool.engine.name(),
        "bytes": pool.bytes,
        "puddles": pool.puddles,
        "refused": refused.map(recover::refused_to_json),
        "quarantine": pool.quarantine.as_ref().map(|note| json!({ "log": note.log, "reason": note.reason })),
    })
}
