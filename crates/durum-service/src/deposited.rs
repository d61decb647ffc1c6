//! The code that a client has deposited, to complete its sections when it is gone.

use std::path::Path;

use durum_format::{Uuid, code, puddle};

use crate::error::{Error, Result};
use crate::files;
use crate::processor;
use crate::reading;
use crate::registry::contents::Contents;

/// Where code cannot be used.
const CURE: &str = "run the program itself, which completes its sections";

/// The code of a client; `None` where it has deposited none.
///
/// # Errors
/// `FileMissing`, `Format`, `Damaged` for what is not whole; of the system.
pub(crate) fn code_of(store: &Path, contents: &Contents, client: Uuid) -> Result<Option<Vec<u8>>> {
    let Some((uuid, record)) = contents.code_of(client) else {
        return Ok(None);
    };
    let file = files::open(store, uuid, &record, false)?;
    let base = puddle::heap_offset(record.size);
    let head = reading::bytes(&file, base, code::HEAD_SIZE as u64)?;
    let head = code::Head::parse(&files::header_of(uuid, &record), &head);
    let head = head.map_err(|error| Error::format(file.path(), base, error, CURE))?;
    let bytes = reading::bytes(&file, base + code::HEAD_SIZE as u64, head.length)?;
    match head.is_of(&bytes) {
        true => Ok(Some(bytes)),
        false => Err(Error::Damaged {
            file: file.path().to_owned(),
            structure: "code that completes sections",
            offset: base,
            problem: "its checksum is another one".to_owned(),
            cure: CURE.into(),
        }),
    }
}

/// The same, to be run here.
///
/// # Errors
/// As [`code_of`], and [`ensure_code_runs_here`].
pub(crate) fn code_to_run(
    store: &Path,
    contents: &Contents,
    client: Uuid,
) -> Result<Option<Vec<u8>>> {
    let code = code_of(store, contents, client)?;
    if let (Some(code), Some((uuid, _))) = (&code, contents.code_of(client)) {
        ensure_code_runs_here(code, &files::puddle_path(store, uuid))?;
    }
    Ok(code)
}

/// Whether the processor has what code that completes sections was compiled for (docs/format/code.md). The code is that
/// of a file.
///
/// # Errors
/// `ProcessorLacks`; `Format`, where it says what no compiler does.
pub fn ensure_code_runs_here(code: &[u8], file: &Path) -> Result<()> {
    let needed = code::features(code).map_err(|error| Error::format(file, 0, error, CURE))?;
    let lacks = needed
        .into_iter()
        .filter(|feature| !processor::has(feature));
    let features: Vec<String> = lacks.map(str::to_owned).collect();
    match features.is_empty() {
        true => Ok(()),
        false => Err(Error::ProcessorLacks {
            file: file.to_owned(),
            features,
        }),
    }
}
