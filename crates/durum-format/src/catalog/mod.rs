//! The file `catalog`, a copy of the registry that read-only tools use: `docs/format/catalog.md`.
//!
//! [`record`] has what it holds, [`Catalog::validate`] checks what must be true of it, this file its outer form.

pub mod record;
mod validate;

pub use record::{
    ClientRecord, Grant, GrantMode, PoolRecord, PuddleRecord, QuarantineRecord, TypeRecord,
};

use serde::{Deserialize, Serialize};

use crate::Uuid;
use crate::crc::crc32c;
use crate::error::FormatError;
use crate::text::{FirstLine, LINE_MAX, hex};

/// The name of the file in the store's directory.
pub const FILE_NAME: &str = "catalog";
/// The version that this build writes and reads.
pub const VERSION: u32 = 1;

const STRUCTURE: &str = "catalog";
const FIRST_WORDS: &str = "durum catalog ";
/// So many bytes from the start of the file hold its first line.
pub const HEAD_MAX: usize = FIRST_WORDS.len() + LINE_MAX;

/// Everything that a store knows about itself, apart from the objects in it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Catalog {
    /// The store's name.
    pub store: Uuid,
    /// Counts the registry commits; two catalogs of a store are told apart by it.
    pub commit: u64,
    /// Where its address range begins.
    #[serde(with = "hex")]
    pub base: u64,
    /// Bytes of its address range.
    #[serde(with = "hex")]
    pub size: u64,
    /// The persistence domain: a word of lowercase letters.
    pub domain: String,
    /// Whether the store was closed with all logs drained. False while it is open.
    pub clean: bool,
    /// Its pools.
    pub pools: Vec<PoolRecord>,
    /// Its puddles, of all kinds.
    pub puddles: Vec<PuddleRecord>,
    /// Descriptors of the types in its pools.
    pub types: Vec<TypeRecord>,
    /// Who has written, or may write, to its pools since their logs were last drained.
    pub clients: Vec<ClientRecord>,
    /// Logs that were not replayed because they are damaged.
    pub quarantine: Vec<QuarantineRecord>,
}

impl Catalog {
    /// A store without contents.
    pub fn empty(store: Uuid, base: u64, size: u64, domain: impl Into<String>) -> Self {
        Self {
            store,
            commit: 0,
            base,
            size,
            domain: domain.into(),
            clean: true,
            pools: Vec::new(),
            puddles: Vec::new(),
            types: Vec::new(),
            clients: Vec::new(),
            quarantine: Vec::new(),
        }
    }

    /// The contents of the file.
    ///
    /// # Errors
    /// As [`Catalog::validate`].
    pub fn encode(&self) -> Result<Vec<u8>, FormatError> {
        self.validate()?;
        let mut body = serde_json::to_vec_pretty(self)
            .map_err(|error| FormatError::damaged_text(STRUCTURE, error.to_string()))?;
        body.push(b'\n');
        let mut file =
            FirstLine::encode(FIRST_WORDS, VERSION, body.len(), crc32c(&body)).into_bytes();
        file.append(&mut body);
        Ok(file)
    }

    /// Reads and checks the contents of the file.
    ///
    /// # Errors
    /// A foreign, newer, damaged or truncated file, told apart by [`FormatError::fault`]; contents that contradict
    /// themselves.
    pub fn parse(bytes: &[u8]) -> Result<Self, FormatError> {
        let body = checked_body(bytes)?;
        let catalog: Self = serde_json::from_slice(body).map_err(|error| {
            FormatError::damaged_text(STRUCTURE, format!("behind the first line: {error}"))
        })?;
        catalog.validate()?;
        Ok(catalog)
    }
}

/// How long the file is, by its first line. `head` is its first [`HEAD_MAX`] bytes, or all of it.
///
/// # Errors
/// As [`Catalog::parse`].
pub fn file_len(head: &[u8]) -> Result<u64, FormatError> {
    let first = FirstLine::parse(STRUCTURE, FIRST_WORDS, VERSION..=VERSION, head)?;
    Ok((first.body as u64).saturating_add(first.length))
}

/// What follows the first line, once version, length and checksum are right.
fn checked_body(bytes: &[u8]) -> Result<&[u8], FormatError> {
    let line = FirstLine::parse(STRUCTURE, FIRST_WORDS, VERSION..=VERSION, bytes)?;
    let (_, body) = bytes.split_at(line.body);
    let (needed, found) = (line.length, body.len() as u64);
    if found < needed {
        return Err(FormatError::Truncated {
            structure: STRUCTURE,
            needed,
            found,
        });
    }
    if found > needed {
        let problem =
            format!("more bytes follow the first line than the {needed} of which it speaks");
        return Err(FormatError::damaged_text(STRUCTURE, problem));
    }
    line.check(body)?;
    Ok(body)
}
