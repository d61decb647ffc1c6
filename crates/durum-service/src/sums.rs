//! What the contents of exported puddles sum up to.

use std::path::Path;

use durum_persist::file::MediaFile;

use crate::error::{Error, Result};
use crate::{reading, sparse};

/// What the contents of a puddle's file [sum up](durum_format::export::sum) to. What was never written is not read: of
/// an export that is most of a puddle with little in it.
pub(crate) fn sum_of(file: &MediaFile) -> Result<u32> {
    sparse::sum_written(file, reading::length(file)?)
}

/// Checks that the contents of a puddle, of which `place` tells, sum up to what was exported.
pub(crate) fn ensure_sum(place: &Path, found: u32, sum: Option<u32>) -> Result<()> {
    match sum {
        Some(sum) if sum != found => Err(Error::Damaged {
            file: place.to_owned(),
            structure: "puddle",
            offset: 0,
            problem: format!(
                "its contents sum up to {found:#010x}, those that were exported to {sum:#010x}"
            ),
            cure: "make the export again".into(),
        }),
        _ => Ok(()),
    }
}
