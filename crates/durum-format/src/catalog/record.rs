//! What the catalog tells about each thing. Addresses, sizes and ids are hex texts in the file.

use serde::{Deserialize, Serialize};

use crate::Uuid;
use crate::puddle::PuddleKind;
use crate::text::hex;

/// A pool.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PoolRecord {
    /// Its name: 1 to 255 bytes without control characters and `/`.
    pub name: String,
    /// Its uuid, which is the owner in the headers of its puddles.
    pub uuid: Uuid,
    /// The engine chosen at its creation: a word of lowercase letters.
    pub engine: String,
    /// The puddle with its root object; one of `puddles`.
    pub root: Uuid,
    /// Its puddles, each exactly once.
    pub puddles: Vec<Uuid>,
}

/// A puddle.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PuddleRecord {
    /// Its uuid.
    pub uuid: Uuid,
    /// The pool or client that it belongs to.
    pub owner: Uuid,
    /// What it holds.
    pub kind: PuddleKind,
    /// Where it is mapped.
    #[serde(with = "hex")]
    pub address: u64,
    /// Its bytes.
    #[serde(with = "hex")]
    pub size: u64,
    /// Its file: a path relative to the store's directory, without `..`.
    pub file: String,
}

/// A type descriptor.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TypeRecord {
    /// The hash of the text.
    #[serde(with = "hex")]
    pub id: u64,
    /// The canonical text.
    pub text: String,
}

/// What a client may do to a puddle.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum GrantMode {
    /// Read it.
    Read,
    /// Write it, also through its logs.
    Write,
}

/// Permission for one puddle, recorded before the client gets it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Grant {
    /// The puddle, one that holds data.
    pub puddle: Uuid,
    /// What the client may do.
    pub mode: GrantMode,
}

/// A client: a process that opened pools of the store.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ClientRecord {
    /// Its uuid, which is the owner in the headers of its log puddles.
    pub uuid: Uuid,
    /// Its log space puddle, once it has one.
    pub log_space: Option<Uuid>,
    /// What it may do, at most one for each puddle.
    pub grants: Vec<Grant>,
}

/// A log that is kept but not replayed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct QuarantineRecord {
    /// The log's id, 0 where its header could not be read.
    #[serde(with = "hex")]
    pub log_id: u64,
    /// Its first puddle, or the log space puddle where that is what is damaged.
    pub puddle: Uuid,
    /// Further puddles that belong to it and are kept with it.
    pub continuations: Vec<Uuid>,
    /// The client that wrote it.
    pub client: Uuid,
    /// What is wrong with it.
    pub reason: String,
}
