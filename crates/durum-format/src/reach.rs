//! How far a puddle of a client's logs was ever used: whoever reads it need not look further.
//!
//! One word on the media, which is made durable by the fence that makes the entries durable which need it: what lies
//! behind it is such as no fence made durable (`docs/format/log.md`).

use crate::consts::LINE;
use crate::error::FormatError;

/// How far a puddle of logs or records was ever used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reach {
    /// Bytes from the beginning of its entries or segments on, a multiple of 64: nothing ends behind them.
    pub bytes: u64,
    /// The log went on from this puddle in another one, now or earlier. Of records it is never set.
    pub is_chained: bool,
}

impl Reach {
    /// The word on the media. Its high half is the complement of the low one, so that no word that was lost or changed
    /// passes for it.
    pub fn to_u64(self) -> u64 {
        let low = (self.bytes / LINE) << 1 | u64::from(self.is_chained);
        let low = low & u64::from(u32::MAX);
        low | (low ^ u64::from(u32::MAX)) << 32
    }

    /// Reads the word at `offset` of `structure`, which may be used for `capacity` bytes. `None` where the writer says
    /// nothing: what it wrote may be everywhere, and a log may go on.
    ///
    /// # Errors
    /// [`FormatError::Field`] for a word that no writer makes.
    pub fn from_u64(
        word: u64,
        capacity: u64,
        structure: &'static str,
        offset: u64,
    ) -> Result<Option<Self>, FormatError> {
        if word == 0 {
            return Ok(None);
        }
        let reach = Self {
            bytes: (word & u64::from(u32::MAX)) >> 1 << LINE.trailing_zeros(),
            is_chained: word & 1 != 0,
        };
        match reach.to_u64() == word && reach.bytes <= capacity {
            true => Ok(Some(reach)),
            false => {
                let expected = "0, or lines that are there beside their complement";
                Err(FormatError::field(
                    structure, "reach", offset, word, expected,
                ))
            }
        }
    }
}
