//! Types in the registry: canonical texts, checked before they are recorded.

use durum_format::types::{Descriptor, Registry as Types, registry::RegisterError};

use crate::error::{Error, Result};

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
