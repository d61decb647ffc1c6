//! Stores that know of more than there is: pools and puddles whose files nobody opens.

use std::path::Path;

use durum_bench_core::error::{Error, Result};
use durum_format::registry::{Change, Room, State, encode_snapshot, parse};

use crate::said;

/// Enters something in the registry of a store that nobody has open.
pub(crate) fn change(path: &Path, changes: impl FnOnce(&State) -> Vec<Change>) -> Result<()> {
    let registry = path.join("registry");
    let bytes = std::fs::read(&registry).map_err(Error::file(&registry))?;
    let mut state = parse(&bytes).map_err(said)?.state;
    let changes = changes(&state);
    state.commit(&changes);
    let mut bytes = encode_snapshot(&state).map_err(said)?;
    let room = Room::of(&bytes).map_err(said)?;
    bytes.resize(room.end as usize, 0);
    for name in ["registry", "registry.copy"] {
        let path = path.join(name);
        std::fs::write(&path, &bytes).map_err(Error::file(path))?;
    }
    Ok(())
}
