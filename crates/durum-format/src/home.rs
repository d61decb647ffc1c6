//! What recovery learns when it asks whether bytes of a transaction are at their home locations.

use serde::{Deserialize, Serialize};

use crate::Uuid;
use crate::text::hex;

/// What came of asking for the bytes at a range of addresses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Answer {
    /// They were read and appended to the checksum.
    Seen,
    /// They cannot be read now, and may be later: what depends on them waits.
    Waits,
    /// They belong to a pool whose part of the transaction was given up: nobody will read them.
    GivenUp,
}

/// Whether a transaction committed that only home could tell of. Once a part of it was recovered, home cannot be asked
/// again: what it said is kept with the other parts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Verdict {
    /// The puddle of its last record, or the first puddle of its log.
    pub puddle: Uuid,
    /// The stamp of that record, or the generation of the log.
    #[serde(with = "hex")]
    pub stamp: u64,
    /// Whether it committed.
    pub counts: bool,
}
