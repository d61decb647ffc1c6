//! Change records: how one is written and read, and how whole ones are found among damage.

use std::io::{self, Write};

use super::Change;
use crate::Uuid;
use crate::crc::Crc;
use crate::text::{checksum, decimal};

const CHANGE_WORD: &str = "change ";
/// The line of a change record is never longer.
const CHANGE_LINE_MAX: usize = 64;
/// What a search looks at, in lengths of what it searches.
const SEARCH_FACTOR: usize = 4;

/// The record of commit number `sequence`.
pub fn encode_changes(store: Uuid, sequence: u64, changes: &[Change]) -> Vec<u8> {
    // No map has a key that is no text, and nothing in it can fail.
    encode_changes_within(store, sequence, changes, usize::MAX).unwrap_or_default()
}

/// As [`encode_changes`]. Nothing if the record has more than `max` bytes: what is too long is not written down to find
/// that out.
pub fn encode_changes_within(
    store: Uuid,
    sequence: u64,
    changes: &[Change],
    max: usize,
) -> Option<Vec<u8>> {
    let mut body = Limited {
        bytes: Vec::new(),
        max,
    };
    serde_json::to_writer(&mut body, changes).ok()?;
    let mut body = body.bytes;
    body.push(b'\n');
    let head = format!("{CHANGE_WORD}{sequence} {} ", body.len());
    let checksum = record_checksum(store, head.as_bytes(), &body);
    let mut bytes = format!("{head}{checksum:#010x}\n").into_bytes();
    bytes.append(&mut body);
    (bytes.len() <= max).then_some(bytes)
}

/// Takes so many bytes, and no more.
struct Limited {
    bytes: Vec<u8>,
    max: usize,
}

impl Write for Limited {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if bytes.len() > self.max - self.bytes.len() {
            return Err(io::ErrorKind::FileTooLarge.into());
        }
        self.bytes.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn record_checksum(store: Uuid, head: &[u8], body: &[u8]) -> u32 {
    let mut crc = Crc::new();
    crc.update(&store.0);
    crc.update(head);
    crc.update(body);
    crc.value()
}

/// A record that is whole.
pub(super) struct ChangeRecord {
    pub(super) sequence: u64,
    pub(super) changes: Vec<Change>,
    /// Of the whole record.
    pub(super) bytes: usize,
}

/// The record that begins with these bytes, if it is whole.
pub(super) fn parse_record(store: Uuid, bytes: &[u8]) -> Option<ChangeRecord> {
    ChangeLine::parse(bytes)?.record(store, bytes)
}

/// The line that a record begins with. Nothing in it is checked yet.
struct ChangeLine<'a> {
    sequence: u64,
    checksum: u32,
    /// The line up to the checksum.
    head: &'a str,
    body: &'a [u8],
}

impl<'a> ChangeLine<'a> {
    /// The line that `bytes` begin with, if they have as many as it speaks of.
    fn parse(bytes: &'a [u8]) -> Option<ChangeLine<'a>> {
        let line = bytes.get(..CHANGE_LINE_MAX).unwrap_or(bytes);
        let line_len = line.iter().position(|&byte| byte == b'\n')?;
        let line = std::str::from_utf8(line.get(..line_len)?).ok()?;
        let mut words = line.strip_prefix(CHANGE_WORD)?.split(' ');
        let sequence = decimal(words.next()?)?;
        let length = usize::try_from(decimal(words.next()?)?).ok()?;
        let word = words.next()?;
        let checksum = checksum(word)?;
        if words.next().is_some() {
            return None;
        }
        let start = line_len + 1;
        Some(ChangeLine {
            sequence,
            checksum,
            head: line.strip_suffix(word)?,
            body: bytes.get(start..start.checked_add(length)?)?,
        })
    }

    /// The record that begins with this line and these bytes, if it is whole.
    fn record(&self, store: Uuid, bytes: &[u8]) -> Option<ChangeRecord> {
        if record_checksum(store, self.head.as_bytes(), self.body) != self.checksum {
            return None;
        }
        let changes: Vec<Change> = serde_json::from_slice(self.body).ok()?;
        // As for the snapshot: one change has one text.
        let whole = encode_changes(store, self.sequence, &changes);
        (bytes.get(..whole.len())? == whole).then_some(ChangeRecord {
            sequence: self.sequence,
            changes,
            bytes: whole.len(),
        })
    }
}

/// Finds all whole records in some bytes, wherever they begin.
///
/// Records lie behind each other, so their lengths sum up to no more than the bytes, and one that is damaged adds no
/// more than that once. Lines that speak of more, over each other, are nobody's: the search ends there, else it would
/// take time in the square of the file's length.
pub(super) struct Search<'a> {
    store: Uuid,
    bytes: &'a [u8],
    at: usize,
    /// Bytes of bodies that may still be looked at.
    budget: usize,
    /// Whether it ended there.
    pub(super) is_over_budget: bool,
}

impl<'a> Search<'a> {
    pub(super) fn of(store: Uuid, bytes: &'a [u8]) -> Search<'a> {
        Search {
            store,
            bytes,
            at: 0,
            budget: bytes.len().saturating_mul(SEARCH_FACTOR),
            is_over_budget: false,
        }
    }
}

impl Iterator for Search<'_> {
    type Item = (usize, ChangeRecord);

    fn next(&mut self) -> Option<(usize, ChangeRecord)> {
        let word = CHANGE_WORD.as_bytes();
        while let Some(rest) = self.bytes.get(self.at..)
            && rest.len() >= word.len()
        {
            let offset = self.at;
            if rest.starts_with(word)
                && let Some(line) = ChangeLine::parse(rest)
            {
                let Some(budget) = self.budget.checked_sub(line.body.len()) else {
                    self.is_over_budget = true;
                    self.at = self.bytes.len();
                    return None;
                };
                self.budget = budget;
                if let Some(record) = line.record(self.store, rest) {
                    self.at += record.bytes;
                    return Some((offset, record));
                }
            }
            self.at += 1;
        }
        None
    }
}
