//! Pointers of an object that are made to lead elsewhere, as its type descriptor shows them.

use std::path::Path;

use durum_format::types::Descriptor;

use crate::error::{Error, Result};
use crate::roles;

/// Asks `elsewhere` for each pointer of an object where it is to lead, and has it lead there; `None` leaves it as it
/// is. An object whose value is gone has no pointers. The object begins at `offset` in `file`, for errors.
///
/// # Errors
/// `Damaged`: it does not fit its type; nothing was changed.
pub(crate) fn pointers(
    descriptor: &Descriptor,
    object: &mut [u8],
    (file, offset): (&Path, u64),
    mut elsewhere: impl FnMut(u64) -> Option<u64>,
) -> Result<()> {
    if roles::is_husk(descriptor, object) {
        return Ok(());
    }
    let misfit = |error| Error::Damaged {
        file: file.to_owned(),
        structure: "object",
        offset,
        problem: format!(
            "it does not fit its type {}: {error}",
            descriptor.name().unwrap_or("without a name")
        ),
        cure: "`durum check` tells more; restore a copy of the store".into(),
    };
    for pointer in descriptor.pointers(object).map_err(misfit)? {
        let at = usize::try_from(pointer.offset).unwrap_or(usize::MAX);
        let rest = object.get_mut(at..);
        if let Some(word) = rest.and_then(|rest| rest.first_chunk_mut::<8>())
            && let Some(address) = elsewhere(u64::from_le_bytes(*word))
        {
            *word = address.to_le_bytes();
        }
    }
    Ok(())
}
