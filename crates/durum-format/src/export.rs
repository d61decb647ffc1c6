//! The manifest of an export: what its files are. `docs/format/export.md` tells the bytes.
//!
//! An export holds pools as they are in memory, with what is needed to have their pointers lead elsewhere (Puddles,
//! EuroSys'24, §3.5).

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::crc::{Crc, crc32c};
use crate::error::FormatError;
use crate::puddle::{PuddleHeader, PuddleKind};
use crate::registry::state::by_hex;
use crate::registry::{PoolRecord, PuddleRecord, State};
use crate::store::StoreHeader;
use crate::text::{FirstLine, hex};
use crate::types::{Meanings, text_has_history, text_has_other_case};
use crate::{EngineKind, Uuid};

/// The name of the file. In an export each puddle's file has the puddle's uuid as its name.
pub const FILE_NAME: &str = "durum.export";
/// The newest version that this build writes and reads.
pub const VERSION: u32 = 3;
/// The version of manifests in which types have a history, and none has a case for whatever else a tag says.
const VERSION_HISTORY: u32 = 2;
/// The version of manifests in which no type has a history: older builds read them.
pub const VERSION_MIN: u32 = 1;
/// So many bytes of the file tell by [`length`] how long it is.
pub const BEGINNING_BYTES: u64 = 128;
/// A manifest is never longer: more than a million puddles.
pub const BYTES_MAX: u64 = 256 << 20;

const STRUCTURE: &str = "export manifest";
const FIRST_WORDS: &str = "durum export ";

/// What an export holds.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Manifest {
    /// The store that it comes from.
    pub store: StoreHeader,
    /// The pool that was asked for.
    pub pool: Uuid,
    /// This pool, and those that were exported with it because pointers lead there.
    pub pools: BTreeMap<Uuid, ExportedPool>,
    /// Their puddles.
    pub puddles: BTreeMap<Uuid, ExportedPuddle>,
    /// The types of their objects: id and canonical text.
    #[serde(with = "by_hex")]
    pub types: BTreeMap<u64, String>,
    /// Objects of which nobody knows whether they hold pointers.
    pub untyped_objects: u64,
}

/// A pool of an export.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ExportedPool {
    /// Its name.
    pub name: String,
    /// The engine that ran its transactions.
    pub engine: EngineKind,
    /// The puddle with its root object.
    pub root_puddle: Uuid,
    /// What the ids of types mean that its program has changed.
    #[serde(default, skip_serializing_if = "Meanings::is_empty")]
    pub meanings: Meanings,
}

/// A puddle of an export.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ExportedPuddle {
    /// Its pool.
    pub owner: Uuid,
    /// Where it was mapped.
    #[serde(with = "hex")]
    pub address: u64,
    /// Its bytes.
    #[serde(with = "hex")]
    pub size: u64,
    /// What it holds.
    pub kind: PuddleKind,
    /// Whether it is the root puddle of its pool.
    pub is_root: bool,
    /// The [sum] of its contents.
    #[serde(with = "hex")]
    pub sum: u32,
}

impl ExportedPuddle {
    /// What the header of its file has to say.
    pub fn header(&self, uuid: Uuid) -> PuddleHeader {
        PuddleHeader {
            kind: self.kind,
            uuid,
            owner: self.owner,
            address: self.address,
            size: self.size,
            is_root: self.is_root,
        }
    }
}

/// The sum of a puddle's contents: CRC-32C of its file from [`IMMUTABLE_SIZE`](crate::puddle::IMMUTABLE_SIZE) on, given
/// in as many parts as one likes.
pub fn sum<'b>(parts: impl IntoIterator<Item = &'b [u8]>) -> u32 {
    let mut crc = Crc::new();
    parts.into_iter().for_each(|part| crc.update(part));
    crc.value()
}

impl Manifest {
    /// Checks what must be true of a store with these pools and nothing else, and that the pool that was asked for is
    /// one of them.
    ///
    /// # Errors
    /// [`FormatError::Text`] names the first contradiction.
    pub fn validate(&self) -> Result<(), FormatError> {
        if !self.pools.contains_key(&self.pool) {
            let problem = format!("pool {} was asked for, and is none of its pools", self.pool);
            return Err(FormatError::damaged_text(STRUCTURE, problem));
        }
        let pools = self.pools.iter().map(|(uuid, pool)| {
            let record = PoolRecord {
                name: pool.name.clone(),
                engine: pool.engine,
                root_puddle: pool.root_puddle,
                rights: None,
                damage: None,
                meanings: pool.meanings.clone(),
            };
            (*uuid, record)
        });
        let puddles = self.puddles.iter().map(|(uuid, puddle)| {
            let record = PuddleRecord {
                owner: puddle.owner,
                address: puddle.address,
                size: puddle.size,
                kind: puddle.kind,
                is_root: puddle.is_root,
                is_stale: false,
                origin: None,
            };
            (*uuid, record)
        });
        let state = State {
            pools: pools.collect(),
            puddles: puddles.collect(),
            types: self.types.clone(),
            ..State::new(self.store.clone())
        };
        state.validate()
    }

    /// The version of its file: the oldest that can say this.
    fn version(&self) -> u32 {
        if self.types.values().any(|text| text_has_other_case(text)) {
            return VERSION;
        }
        let has_history = self.types.values().any(|text| text_has_history(text));
        match has_history || self.pools.values().any(|pool| !pool.meanings.is_empty()) {
            true => VERSION_HISTORY,
            false => VERSION_MIN,
        }
    }

    /// The file that says it.
    ///
    /// # Errors
    /// As [`Manifest::validate`].
    pub fn encode(&self) -> Result<Vec<u8>, FormatError> {
        self.validate()?;
        let body = self.body()?;
        let line = FirstLine::encode(FIRST_WORDS, self.version(), body.len(), crc32c(&body));
        let mut bytes = line.into_bytes();
        bytes.extend_from_slice(&body);
        Ok(bytes)
    }

    fn body(&self) -> Result<Vec<u8>, FormatError> {
        let body = serde_json::to_vec_pretty(self);
        let mut body =
            body.map_err(|error| FormatError::damaged_text(STRUCTURE, error.to_string()))?;
        body.push(b'\n');
        Ok(body)
    }
}

/// How many bytes a manifest has that begins with these: [`BEGINNING_BYTES`] of them, or the whole file.
///
/// # Errors
/// A foreign, newer or damaged first line.
pub fn length(beginning: &[u8]) -> Result<u64, FormatError> {
    let line = first_line(beginning)?;
    let length = line.length.saturating_add(line.body as u64);
    match length > BYTES_MAX {
        true => Err(FormatError::damaged_text(
            STRUCTURE,
            format!(
                "the first line speaks of {length} bytes, and no manifest has more than {BYTES_MAX}"
            ),
        )),
        false => Ok(length),
    }
}

fn first_line(bytes: &[u8]) -> Result<FirstLine, FormatError> {
    FirstLine::parse(STRUCTURE, FIRST_WORDS, VERSION_MIN..=VERSION, bytes)
}

/// Reads and checks a whole file.
///
/// # Errors
/// A foreign, newer, damaged or truncated file, told apart by [`FormatError::fault`]; contents that contradict
/// themselves.
pub fn parse(bytes: &[u8]) -> Result<Manifest, FormatError> {
    let (needed, found) = (length(bytes)?, bytes.len() as u64);
    let line = first_line(bytes)?;
    if found < needed {
        return Err(FormatError::Truncated {
            structure: STRUCTURE,
            needed,
            found,
        });
    }
    let damaged = |problem: String| FormatError::damaged_text(STRUCTURE, problem);
    if found > needed {
        return Err(damaged(format!(
            "it has {found} bytes, and its first line speaks of {needed}"
        )));
    }
    let body = bytes.get(line.body..).unwrap_or_default();
    line.check(body)?;
    let manifest: Manifest =
        serde_json::from_slice(body).map_err(|error| damaged(error.to_string()))?;
    // One manifest has one text.
    if manifest.body()? != body || manifest.version() != line.version {
        return Err(damaged(
            "it is not written as this version writes it".to_owned(),
        ));
    }
    manifest.validate()?;
    Ok(manifest)
}
