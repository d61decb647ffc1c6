//! Bytes as text, where they are that.

use super::place::Elements;
use super::read::Reader;
use super::{Content, List, ListKind, Object, Objects};

/// Bytes of a text or of plain bytes that are shown at least, and how many for each element that is.
const BYTES_MIN: usize = 64;
const BYTES_PER_ELEMENT: usize = 4;
/// Bytes that are read to find where a text ends.
const TEXT_READ: u64 = 4096;
/// Bytes of a number that is made of bytes of no type.
const WORD: u64 = 8;

impl<O: Objects + ?Sized> Reader<'_, '_, O> {
    /// Bytes of a text, or plain ones, that are shown at most.
    fn bytes_max(&self) -> usize {
        (self.limits.elements.saturating_mul(BYTES_PER_ELEMENT)).max(BYTES_MIN)
    }

    /// Notes that so many bytes of a text, or of plain ones, are shown.
    fn cut_bytes(&mut self, shown: u64, all: u64) {
        if shown < all {
            self.cuts.cut(all.div_ceil(BYTES_PER_ELEMENT as u64), false);
        }
    }

    /// Bytes, as text if they are that. A text in C ends with its first zero.
    pub(super) fn bytes(&mut self, address: u64, end: u64, length: u64, is_c: bool) -> Content {
        let most = self.bytes_max();
        let read = length.min((most as u64).max(TEXT_READ));
        let bytes = match self.memory.bytes(address, end, read) {
            Ok(bytes) => bytes,
            Err(why) => return Content::Invalid(why),
        };
        let unread = length - read;
        let text_end = bytes.iter().position(|byte| *byte == 0);
        let (text, rest) = bytes.split_at(text_end.unwrap_or(bytes.len()));
        let is_whole = text_end.is_some() || unread == 0;
        let is_end = is_c || rest.iter().all(|byte| *byte == 0);
        match readable(text, !is_whole) {
            Some(found) if is_end && (is_c || !text.is_empty()) => {
                let shown = floor_char_boundary(found, most);
                let unread = if is_whole { 0 } else { unread };
                self.cut_bytes(shown as u64, text.len() as u64 + unread);
                Content::Text {
                    text: found.get(..shown).unwrap_or_default().to_owned(),
                    omitted: (text.len() - shown) as u64 + unread,
                }
            }
            _ => {
                let shown = bytes.get(..most).unwrap_or(&bytes);
                self.cut_bytes(shown.len() as u64, length);
                Content::Bytes {
                    omitted: length - shown.len() as u64,
                    bytes: shown.to_vec(),
                }
            }
        }
    }

    /// An object of which nothing but its bytes is known.
    pub(super) fn untyped(&mut self, object: &Object) -> Content {
        let end = object.start.saturating_add(object.size);
        let before = self.cuts.clone();
        let content = self.bytes(object.start, end, object.size, false);
        let is_plain = matches!(&content, Content::Bytes { bytes, omitted } if *omitted > 0
            || bytes.iter().any(|byte| *byte != 0));
        if !is_plain || !object.size.is_multiple_of(WORD) {
            return Content::Untyped {
                size: object.size,
                content: Box::new(content),
            };
        }
        self.cuts = before;
        let count = object.size / WORD;
        let shown = count.min(self.limits.elements as u64);
        let mut list = List {
            kind: ListKind::Array,
            count,
            vacant: 0,
            filled: count,
            is_at_least: false,
            elements: Vec::new(),
            is_cut: shown < count,
        };
        for at in 0..shown {
            let word = self.memory.unsigned(object.start + at * WORD, end, WORD);
            let word = word.map_or_else(Content::Invalid, Content::Word);
            list.elements.push((at, word));
        }
        if list.is_cut {
            self.cuts.cut(count, false);
        }
        Content::Untyped {
            size: object.size,
            content: Box::new(Content::List(list)),
        }
    }

    /// A text of the typed interface, which is UTF-8.
    pub(super) fn text(&mut self, elements: &Elements<'_>) -> Content {
        let place = elements.at(0);
        let shown = elements.count.min(self.bytes_max() as u64);
        let bytes = match self.memory.bytes(place.address, place.end, shown) {
            Ok(bytes) if shown > 0 => bytes,
            Ok(_) => Vec::new(),
            Err(why) => return Content::Invalid(why),
        };
        let found = match std::str::from_utf8(&bytes) {
            Ok(text) => text,
            // A character that is cut is no damage.
            Err(error) if shown < elements.count && error.error_len().is_none() => {
                let whole = bytes.get(..error.valid_up_to()).unwrap_or_default();
                std::str::from_utf8(whole).unwrap_or_default()
            }
            Err(error) => {
                let at = error.valid_up_to();
                return Content::Invalid(format!("the text is not UTF-8 from byte {at} on"));
            }
        };
        self.cut_bytes(shown, elements.count);
        Content::Text {
            text: found.to_owned(),
            omitted: elements.count - found.len() as u64,
        }
    }
}

/// Bytes as text, if they are that; where they are cut, as far as they are whole characters.
fn readable(bytes: &[u8], is_cut: bool) -> Option<&str> {
    let text = match std::str::from_utf8(bytes) {
        Ok(text) => text,
        Err(error) if is_cut && error.error_len().is_none() => {
            std::str::from_utf8(bytes.get(..error.valid_up_to())?).ok()?
        }
        Err(_) => return None,
    };
    let is_readable = |char: char| !char.is_control() || matches!(char, '\n' | '\t' | '\r');
    text.chars().all(is_readable).then_some(text)
}

/// The last end of a character at or before `most` bytes.
fn floor_char_boundary(text: &str, most: usize) -> usize {
    let most = most.min(text.len());
    let mut ends = (0..=most).rev();
    ends.find(|end| text.is_char_boundary(*end)).unwrap_or(0)
}
