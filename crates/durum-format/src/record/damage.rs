//! What is wrong with records that no crash explains.

use crate::Uuid;

/// What no crash leaves behind: nothing of these logs may be replayed, nor dropped.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Damage {
    /// A record is gone that was durable when a later one was written.
    #[error(
        "record {stamp} of log {log} lies at offset {offset:#x} of puddle {ring}, but record {missing} before it, which was durable \
         when it was written, is missing"
    )]
    Lost {
        /// The stamp of the later one.
        stamp: u64,
        /// Its log.
        log: u32,
        /// The puddle that the later one lies in.
        ring: Uuid,
        /// Where in it, in bytes.
        offset: u64,
        /// The stamp of the one that is gone.
        missing: u64,
    },
    /// Two whole records have the same stamp.
    #[error("record {stamp} is there twice: in the puddles {first} and {second}")]
    Twice {
        /// The stamp.
        stamp: u64,
        /// A puddle with such a record.
        first: Uuid,
        /// Another one, or the same.
        second: Uuid,
    },
    /// A transaction changes bytes that it says are home already.
    #[error(
        "record {stamp} lies at offset {offset:#x} of puddle {ring}, and says twice what is at {target:#x}, which went home with it"
    )]
    NotFresh {
        /// The stamp.
        stamp: u64,
        /// The puddle that the record lies in.
        ring: Uuid,
        /// Where in it, in bytes.
        offset: u64,
        /// Where the bytes are that it changes.
        target: u64,
    },
}

/// Why the records cannot be replayed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ReplayError<E> {
    /// The records themselves.
    #[error(transparent)]
    Damage(#[from] Damage),
    /// What a record says went home with it could not be read there.
    #[error("record {stamp} went home with {len} bytes at {target:#x}: {reason}")]
    Contents {
        /// The stamp.
        stamp: u64,
        /// The puddle that the record lies in.
        ring: Uuid,
        /// The range's address.
        target: u64,
        /// Its bytes.
        len: u64,
        /// Why.
        reason: E,
    },
}

impl<E> ReplayError<E> {
    /// The puddle that shows it.
    pub fn ring(&self) -> Uuid {
        match self {
            Self::Damage(damage) => damage.ring(),
            Self::Contents { ring, .. } => *ring,
        }
    }
}

impl Damage {
    /// The puddle that shows it.
    pub fn ring(&self) -> Uuid {
        match *self {
            Self::Lost { ring, .. } | Self::NotFresh { ring, .. } => ring,
            Self::Twice { second, .. } => second,
        }
    }
}
