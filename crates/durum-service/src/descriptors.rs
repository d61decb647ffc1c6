//! Types in the registry: canonical texts, checked before they are recorded.

use durum_format::Uuid;
use durum_format::types::{Descriptor, Meanings, Registry as Types, registry::RegisterError};

use crate::error::{Error, Result};
use crate::registry::contents::Contents;

/// Parses a canonical text and checks that it belongs to the id. Returns it with all the types that its pointers reach:
/// whatever is recorded can be followed.
pub(crate) fn check_type(id: u64, text: &str) -> Result<Vec<(u64, String)>> {
    let refuse = |reason: String| Error::TypeRefused { id, reason };
    let descriptor = Descriptor::parse(text).map_err(|error| refuse(error.to_string()))?;
    if descriptor.id() != id {
        return Err(refuse(format!(
            "its text has the id {:#018x}",
            descriptor.id()
        )));
    }
    (0..descriptor.lines())
        .map(|line| {
            let reached = descriptor
                .target(line)
                .map_err(|error| refuse(error.to_string()))?;
            Ok((reached.id(), reached.text().to_owned()))
        })
        .collect()
}

/// Adds a text that was recorded to the types that are known.
pub(crate) fn register(types: &mut Types, id: u64, text: &str) -> Result<()> {
    let refused = |error: RegisterError| Error::TypeRefused {
        id,
        reason: error.to_string(),
    };
    types.register_text(text).map(drop).map_err(refused)
}

/// What ids mean in a pool once its root, which is an `old`, is a `new`.
///
/// # Errors
/// `TypeRefused`.
pub(crate) fn changed(contents: &Contents, pool: Uuid, old: u64, new: u64) -> Result<Meanings> {
    let refuse = |reason: String| Error::TypeRefused { id: new, reason };
    let parsed = |id: u64| {
        let text = contents.types.get(&id);
        let text = text.ok_or_else(|| refuse(format!("the type {id:#018x} is not registered")))?;
        Descriptor::parse(text).map_err(|error| refuse(error.to_string()))
    };
    let meanings = contents.meanings_of(pool);
    let (was, is) = (parsed(meanings.of(old))?, parsed(new)?);
    let changed = meanings.after(&was, &is);
    let changed =
        changed.map_err(|obstacle| refuse(format!("the pool has another type: {obstacle}")))?;
    let is_unknown = |id: &u64| !contents.types.contains_key(id);
    let unknown = changed
        .iter()
        .flat_map(|(old, new)| [old, new])
        .find(is_unknown);
    match unknown {
        Some(id) => Err(refuse(format!("the type {id:#018x} is not registered"))),
        None => Ok(changed),
    }
}
