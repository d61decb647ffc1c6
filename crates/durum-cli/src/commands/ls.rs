//! `durum ls`: the pools of a store.

use std::io::Write;

use durum_service::{PoolSummary, ReadOnlyStore};
use serde_json::{Value, json};

use crate::args::Ls;
use crate::failure::Failure;
use crate::output::{self, size};

pub(crate) fn run(options: &Ls, out: &mut dyn Write) -> Result<(), Failure> {
    let store = ReadOnlyStore::open(&options.store)?;
    let pools = store.pools();
    if options.json {
        let pools: Vec<Value> = pools.iter().map(to_json).collect();
        return Ok(output::json(out, &json!({ "pools": pools }))?);
    }
    if pools.is_empty() {
        writeln!(out, "no pools")?;
        return Ok(());
    }
    let heading = ["POOL", "ENGINE", "SIZE", "PUDDLES", "STATE"];
    let mut rows = vec![heading.map(String::from).to_vec()];
    for pool in &pools {
        let state = match &pool.quarantine {
            Some(note) => format!("quarantined: {} ({})", note.reason, note.log.display()),
            None => "ok".into(),
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

fn to_json(pool: &PoolSummary) -> Value {
    json!({
        "name": pool.name,
        "uuid": pool.uuid.to_string(),
        "engine": pool.engine.name(),
        "bytes": pool.bytes,
        "puddles": pool.puddles,
        "quarantine": pool.quarantine.as_ref().map(|note| json!({ "log": note.log, "reason": note.reason })),
    })
}
