//! What the contents of exported puddles sum up to.

use std::path::Path;

use durum_format::crc::Crc;
use durum_format::puddle::IMMUTABLE_SIZE;
use durum_persist::file::MediaFile;

use crate::error::{Error, Result};
use crate::reading;

/// Bytes summed up at a time.
const SUM_BYTES: u64 = 256 << 10;

/// What the contents of a puddle's file [sum up](durum_format::export::sum) to.
pub(crate) fn sum_of(file: &MediaFile) -> Result<u32> {
    let length = reading::length(file)?;
    let mut buffer = Vec::new();
    let mut crc = Crc::new();
    let mut at = IMMUTABLE_SIZE;
    while at < length {
        let part = SUM_BYTES.min(length - at);
        if buffer.len() as u64 != part {
            buffer.clear();
            reading::lengthen(&mut buffer, file.path(), part)?;
        }
        reading::exact(file, at, &mut buffer, "reading a puddle")?;
        crc.update(&buffer);
        at += part;
    }
    Ok(crc.value())
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
