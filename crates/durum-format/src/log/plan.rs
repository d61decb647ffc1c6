//! What recovery has to do for a log: nothing, roll back, or roll forward.

use super::parse::{Entry, ParsedLog};
use super::{EntryKind, Order, RangeWord};
use crate::crc::Crc;
use crate::home::Answer;

/// One write to a home location.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Write<'a> {
    /// These bytes go to the target.
    Copy {
        /// Where to.
        target: u64,
        /// What.
        data: &'a [u8],
    },
    /// These bits of the 8-byte word become 1.
    SetBits {
        /// The word, 8-byte aligned.
        target: u64,
        /// The bits.
        mask: u64,
    },
    /// These bits of the 8-byte word become 0.
    ClearBits {
        /// The word, 8-byte aligned.
        target: u64,
        /// The bits.
        mask: u64,
    },
}

impl<'a> Write<'a> {
    /// The range that is written: address and bytes.
    pub fn range(&self) -> (u64, u64) {
        match *self {
            Self::Copy { target, data } => (target, data.len() as u64),
            Self::SetBits { target, .. } | Self::ClearBits { target, .. } => (target, 8),
        }
    }

    fn of(entry: &Entry<'a>) -> Option<Self> {
        let target = entry.target;
        match (entry.kind, entry.mask()) {
            (EntryKind::Copy, _) => Some(Self::Copy {
                target,
                data: entry.data,
            }),
            (EntryKind::SetBits, Some(mask)) => Some(Self::SetBits { target, mask }),
            (EntryKind::ClearBits, Some(mask)) => Some(Self::ClearBits { target, mask }),
            _ => None,
        }
    }
}

/// What is to be done, with the writes in the order in which they must be applied.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Plan<'a> {
    /// No write: the log is idle, or its transaction left nothing behind and needs nothing more.
    Nothing,
    /// The transaction did not commit: these writes undo it.
    RollBack(Vec<Write<'a>>),
    /// The transaction committed: these writes complete it.
    RollForward(Vec<Write<'a>>),
}

impl<'a> Plan<'a> {
    /// The writes, whatever they are for.
    pub fn writes(&self) -> &[Write<'a>] {
        match self {
            Self::Nothing => &[],
            Self::RollBack(writes) | Self::RollForward(writes) => writes,
        }
    }
}

/// Why a log must not be replayed, though it is readable.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PlanError<E> {
    /// An entry writes where the client may not.
    #[error(
        "log: the entry at offset {offset:#x} of puddle {area} writes {len} bytes at {target:#x}, which is not inside one \
         data puddle that its client may write"
    )]
    NotGranted {
        /// Which puddle of the chain the entry lies in.
        area: usize,
        /// Where in its entry area the entry begins.
        offset: usize,
        /// The address it writes.
        target: u64,
        /// Bytes it writes.
        len: u64,
    },
    /// The contents that the seal vouches for could not be had.
    #[error("log: the {len} bytes at {target:#x} that the seal vouches for: {source}")]
    Contents {
        /// The range's address.
        target: u64,
        /// Its bytes.
        len: u64,
        /// Why.
        source: E,
    },
}

/// Whether the seal of a log holds: then its transaction committed. `None` where that cannot be said before the bytes
/// that the seal is about can be read. A log without a seal is not sealed, nor is one whose seal is about bytes that
/// were given up.
///
/// `contents` appends what lies at an address to a checksum; it fails for ranges that the client may not write.
///
/// The answer is about home as the crash left it: who recovers a part of the transaction and keeps another one keeps
/// the answer, too.
///
/// # Errors
/// The log is to be quarantined.
pub fn sealed<E>(
    log: &ParsedLog<'_>,
    mut contents: impl FnMut(u64, u64, &mut Crc) -> Result<Answer, E>,
) -> Result<Option<bool>, PlanError<E>> {
    let Some(seal) = log.seal else {
        return Ok(Some(false));
    };
    let mut crc = log.salt.crc();
    let (mut waits, mut given_up) = (false, false);
    for (target, len) in seal.ranges() {
        let answer = contents(target, len, &mut crc).map_err(|source| PlanError::Contents {
            target,
            len,
            source,
        })?;
        waits |= answer == Answer::Waits;
        given_up |= answer == Answer::GivenUp;
    }
    Ok(match (given_up, waits) {
        (true, _) => Some(false),
        (false, true) => None,
        (false, false) => Some(crc.value() == seal.contents),
    })
}

/// Decides what recovery does with a log.
///
/// A log whose seal holds ([`sealed`]) counts as in range (2,4); otherwise the range word decides.
/// `granted` says whether a client may write `len` bytes at an address (inside one data puddle, not in the immutable
/// part of its header: [`PuddleHeader::admits`](crate::puddle::PuddleHeader::admits)).
///
/// Applying the plan again, wholly or in part, before applying it wholly gives the same result.
///
/// # Errors
/// The log is to be quarantined; nothing was written.
pub fn plan<'a, E>(
    log: &ParsedLog<'a>,
    sealed: bool,
    mut granted: impl FnMut(u64, u64) -> bool,
) -> Result<Plan<'a>, PlanError<E>> {
    let range = if sealed {
        RangeWord::redo(log.range.generation)
    } else {
        log.range
    };
    let mut undoes = false;
    let mut writes = Vec::new();
    for entry in log.select(range).filter(|entry| !entry.flags.is_volatile()) {
        let Some(write) = Write::of(entry) else {
            continue;
        };
        let (target, len) = write.range();
        if !granted(target, len) {
            return Err(PlanError::NotGranted {
                area: entry.area,
                offset: entry.offset,
                target,
                len,
            });
        }
        undoes |= entry.order == Order::Reverse;
        writes.push(write);
    }
    Ok(match (writes.is_empty(), sealed || !undoes) {
        (true, _) => Plan::Nothing,
        (false, true) => Plan::RollForward(writes),
        (false, false) => Plan::RollBack(writes),
    })
}

impl<'a> ParsedLog<'a> {
    /// The entries that `range` admits, volatile ones included, in the order of replay: those of [`Order::Reverse`]
    /// from the last to the first, then those of [`Order::Forward`] from the first to the last.
    pub fn select(&self, range: RangeWord) -> impl Iterator<Item = &Entry<'a>> {
        let admitted = move |order| {
            move |entry: &&Entry<'a>| {
                let replays = !matches!(entry.kind, EntryKind::Seal | EntryKind::Chain);
                replays && entry.order == order && range.admits(entry.sequence)
            }
        };
        let reverse = self.entries.iter().rev().filter(admitted(Order::Reverse));
        reverse.chain(self.entries.iter().filter(admitted(Order::Forward)))
    }
}
