//! The code that a client has deposited, to complete its sections when it is gone, and what it tells of them.

use std::path::Path;

use durum_format::code::places::Places;
use durum_format::section::Code;
use durum_format::{Uuid, code, puddle};
use durum_persist::file::MediaFile;

use crate::error::{Error, Result};
use crate::files::{self, Puddles};
use crate::processor;
use crate::reading;
use crate::registry::contents::{Contents, PuddleRecord};

/// Where code cannot be used.
const CURE: &str = "run the program itself, which completes its sections";

/// Bytes that a client's places have in words, which are kept as long as its sections wait. Of more, hash and number
/// are told.
const TOLD_MAX: usize = 16 << 10;

/// The code of a client; `None` where it has deposited none.
///
/// # Errors
/// `FileMissing`, `Format`, `Damaged` for what is not whole; of the system.
pub(crate) fn code_of(store: &Path, contents: &Contents, client: Uuid) -> Result<Option<Vec<u8>>> {
    let Some((uuid, record)) = contents.code_of(client) else {
        return Ok(None);
    };
    let file = files::open(store, uuid, &record, false)?;
    let (base, head) = head_of(&file, uuid, &record)?;
    let bytes = reading::bytes(&file, base + code::HEAD_SIZE as u64, head.length)?;
    match head.is_of(&bytes) {
        true => Ok(Some(bytes)),
        false => Err(damaged(&file, base, "code that completes sections")),
    }
}

/// Where the heap of a deposit begins in its file, and what its head says.
fn head_of(file: &MediaFile, uuid: Uuid, record: &PuddleRecord) -> Result<(u64, code::Head)> {
    let base = puddle::heap_offset(record.size);
    let head = reading::bytes(file, base, code::HEAD_SIZE as u64)?;
    let head = code::Head::parse(&files::header_of(uuid, record), &head);
    let head = head.map_err(|error| Error::format(file.path(), base, error, CURE))?;
    Ok((base, head))
}

fn damaged(file: &MediaFile, offset: u64, structure: &'static str) -> Error {
    Error::Damaged {
        file: file.path().to_owned(),
        structure,
        offset,
        problem: "its checksum is another one".to_owned(),
        cure: CURE.into(),
    }
}

/// What a program has deposited of its functions, checked by `read`; `None` where there is nothing.
fn with_places<T>(
    file: &MediaFile,
    uuid: Uuid,
    record: &PuddleRecord,
    read: impl FnOnce(&Places<'_>) -> T,
) -> Result<Option<T>> {
    let (base, head) = head_of(file, uuid, record)?;
    if head.places_length == 0 {
        return Ok(None);
    }
    let base = base + head.places_offset();
    let bytes = reading::bytes(file, base, head.places_length)?;
    if !head.is_of_places(&bytes) {
        return Err(damaged(file, base, "places of code"));
    }
    let places = Places::parse(&bytes);
    let places = places.map_err(|error| Error::format(file.path(), base, error, CURE))?;
    Ok(Some(read(&places)))
}

/// That what a client has deposited is whole.
///
/// # Errors
/// As [`code_of`].
pub(crate) fn check(store: &Path, contents: &Contents, client: Uuid) -> Result<()> {
    code_of(store, contents, client)?;
    let Some((uuid, record)) = contents.code_of(client) else {
        return Ok(());
    };
    let file = files::open(store, uuid, &record, false)?;
    with_places(&file, uuid, &record, |_| ()).map(drop)
}

/// What a program tells of the sections that it has left.
pub(crate) struct Told {
    /// Which one it was.
    pub(crate) program: String,
    /// Where they go on.
    pub(crate) places: Vec<String>,
}

/// What the program of a client that is gone has deposited of these sections. It is a stranger's text, and for messages
/// only: nothing where it cannot be read, which `durum check` tells.
pub(crate) fn describe(
    puddles: &Puddles,
    contents: &Contents,
    client: Uuid,
    sections: &[Code],
) -> Option<Told> {
    let (uuid, record) = contents.code_of(client)?;
    let file = puddles.open(uuid, &record, false).ok()?;
    let mut left = TOLD_MAX;
    let tell = |places: &Places<'_>| Told {
        program: places.told(),
        places: (sections.iter())
            .map(|code| {
                let place = places.find(*code).map(|place| place.to_string());
                let place = place.filter(|place| place.len() <= left);
                left -= place.as_ref().map_or(0, String::len);
                place.unwrap_or_else(|| code.to_string())
            })
            .collect(),
    };
    with_places(&file, uuid, &record, tell).ok()?
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
    let others = code::architecture(code).filter(|name| *name != std::env::consts::ARCH);
    let features: Vec<String> = match others {
        // What its features are called there says nothing here.
        Some(architecture) => vec![format!("the architecture {architecture}")],
        None => {
            let lacks = needed
                .into_iter()
                .filter(|feature| !processor::has(feature));
            lacks.map(str::to_owned).collect()
        }
    };
    match features.is_empty() {
        true => Ok(()),
        false => Err(Error::ProcessorLacks {
            file: file.to_owned(),
            features,
        }),
    }
}
