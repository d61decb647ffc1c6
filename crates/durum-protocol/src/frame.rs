//! How a message is cut into packets of a `SOCK_SEQPACKET` socket.
//!
//! ```text
//! 0   8   number of the request: an answer has that of its request; 0 for a note
//! 8   1   kind: 1 request, 2 answer, 3 note
//! 9   1   flags: bit 0 more parts follow, bit 1 the request is sent again
//! 10  2   zero
//! 12  4   bytes of the whole message, in all parts together
//! 16      a part of the message
//! ```
//!
//! Numbers are little-endian. Parts of one message follow each other, with nothing in between. Descriptors belong to
//! the packet that they come with.

use thiserror::Error;

/// The bytes before a part.
pub const HEADER: usize = 16;

/// The most bytes that a packet has, header included.
pub const PACKET_MAX: usize = 64 << 10;

/// The most descriptors that a packet carries.
pub const FILES_MAX: usize = 253;

/// The most bytes of a request: the text of a type, and what is said beside it.
pub const REQUEST_MAX: usize = (1 << 20) + 4096;

/// The most bytes of an answer.
pub const ANSWER_MAX: usize = 1 << 30;

const MORE: u8 = 1;
const AGAIN: u8 = 2;

/// What a message is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Somebody wants an answer.
    Request = 1,
    /// The answer to the request of the same number.
    Answer = 2,
    /// Something that needs no answer.
    Note = 3,
}

/// What stands before each part of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Frame {
    /// The number of the request.
    pub number: u64,
    /// What the message is.
    pub kind: Kind,
    /// Whether more parts follow; set by [`Frame::packets`].
    pub more: bool,
    /// Whether the request was sent before, and its answer may have been lost.
    pub again: bool,
    /// The bytes of the whole message; set by [`Frame::packets`].
    pub length: u32,
}

/// Why a packet was refused.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum FrameError {
    /// Shorter than a header.
    #[error("a packet of {0} bytes is too short for a header of {HEADER}")]
    Short(usize),
    /// A kind, a flag or a zero that there is not.
    #[error("byte {offset} of a packet's header is {found:#x}")]
    Header {
        /// Which byte.
        offset: usize,
        /// What it is.
        found: u8,
    },
    /// Longer than may be.
    #[error("a message of {length} bytes is longer than {max}")]
    Long {
        /// Its length in bytes.
        length: usize,
        /// The most that it may have.
        max: usize,
    },
    /// Parts that do not fit together.
    #[error("the parts of a message do not fit together: {0}")]
    Parts(&'static str),
    /// Bytes that are no message.
    #[error("the message cannot be read: {0}")]
    Message(String),
}

impl Frame {
    /// Of a request that is sent for the first time.
    pub fn request(number: u64) -> Frame {
        Frame {
            number,
            kind: Kind::Request,
            more: false,
            again: false,
            length: 0,
        }
    }

    /// Of the answer to this request.
    pub fn answer(self) -> Frame {
        Frame {
            kind: Kind::Answer,
            ..Frame::request(self.number)
        }
    }

    /// Of a note.
    pub fn note() -> Frame {
        Frame {
            kind: Kind::Note,
            ..Frame::request(0)
        }
    }

    /// The bytes of a header.
    pub fn encode(&self) -> [u8; HEADER] {
        let mut bytes = [0; HEADER];
        let flags = if self.more { MORE } else { 0 } | if self.again { AGAIN } else { 0 };
        bytes[..8].copy_from_slice(&self.number.to_le_bytes());
        bytes[8] = self.kind as u8;
        bytes[9] = flags;
        bytes[12..].copy_from_slice(&self.length.to_le_bytes());
        bytes
    }

    /// Reads a header, and gives the part behind it.
    ///
    /// # Errors
    /// `Short`, `Header`.
    pub fn decode(packet: &[u8]) -> Result<(Frame, &[u8]), FrameError> {
        let Some((head, part)) = packet.split_first_chunk::<HEADER>() else {
            return Err(FrameError::Short(packet.len()));
        };
        let wrong = |offset: usize| FrameError::Header {
            offset,
            found: head[offset],
        };
        let kind = match head[8] {
            1 => Kind::Request,
            2 => Kind::Answer,
            3 => Kind::Note,
            _ => return Err(wrong(8)),
        };
        if head[9] & !(MORE | AGAIN) != 0 {
            return Err(wrong(9));
        }
        if let Some(offset) = [10, 11].into_iter().find(|&at| head[at] != 0) {
            return Err(wrong(offset));
        }
        let number = |at: usize, len: usize| {
            let bytes = head[at..at + len].iter().rev();
            bytes.fold(0, |number: u64, &byte| number << 8 | u64::from(byte))
        };
        let frame = Frame {
            number: number(0, 8),
            kind,
            more: head[9] & MORE != 0,
            again: head[9] & AGAIN != 0,
            length: number(12, 4) as u32,
        };
        Ok((frame, part))
    }

    /// The packets of a message, one after the other: as many as its bytes and the descriptors beside it need.
    pub fn packets(self, message: &[u8], files: usize) -> impl Iterator<Item = Vec<u8>> {
        let count = message.len().div_ceil(PACKET_MAX - HEADER);
        // Of a message that carries descriptors each has a byte at least.
        let count = count
            .max(files.div_ceil(FILES_MAX))
            .clamp(1, message.len().max(1));
        let most = message.len().div_ceil(count);
        let count = message.len().div_ceil(most.max(1)).max(1);
        let part = move |at: usize| {
            let end = message.len().min((at + 1) * most);
            &message[(at * most).min(end)..end]
        };
        (0..count).map(move |at| {
            let frame = Frame {
                more: at + 1 < count,
                length: message.len() as u32,
                ..self
            };
            [&frame.encode()[..], part(at)].concat()
        })
    }
}

/// Puts the parts of a message together. Memory grows with what has come, never with what was said to come.
#[derive(Debug)]
pub struct Parts {
    max: usize,
    first: Option<Frame>,
    bytes: Vec<u8>,
}

impl Parts {
    /// For messages of at most so many bytes.
    pub fn new(max: usize) -> Parts {
        Parts {
            max,
            first: None,
            bytes: Vec::new(),
        }
    }

    /// Adds a packet. Gives the message when it is complete.
    ///
    /// # Errors
    /// [`FrameError`]; nothing more is to be read from whoever sent the packet.
    pub fn add(&mut self, packet: &[u8]) -> Result<Option<(Frame, Vec<u8>)>, FrameError> {
        let (frame, part) = Frame::decode(packet)?;
        let length = frame.length as usize;
        if length > self.max {
            return Err(FrameError::Long {
                length,
                max: self.max,
            });
        }
        let first = *self.first.get_or_insert(frame);
        if (Frame {
            more: true,
            ..frame
        }) != (Frame {
            more: true,
            ..first
        }) {
            return Err(FrameError::Parts("another message begins in between"));
        }
        let had = self.bytes.len() + part.len();
        if had > length || had == length && frame.more || part.is_empty() && frame.more {
            return Err(FrameError::Parts("they are longer than they say"));
        }
        self.bytes.extend_from_slice(part);
        if frame.more {
            return Ok(None);
        }
        if had < length {
            return Err(FrameError::Parts("they are shorter than they say"));
        }
        self.first = None;
        Ok(Some((first, std::mem::take(&mut self.bytes))))
    }
}
