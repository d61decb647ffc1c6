//! What the text files of a store share: the first line, with version, length and checksum, numbers in hex, and modes
//! in octal.

use std::ops::RangeInclusive;

use crate::crc::crc32c;
use crate::error::FormatError;

/// A first line is never longer than this behind its first words.
pub(crate) const LINE_MAX: usize = 80;

/// The first line of a file: `WORDS VERSION LENGTH CHECKSUM`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct FirstLine {
    /// Where what it speaks of begins: right behind the line feed.
    pub(crate) body: usize,
    /// The version of what it speaks of.
    pub(crate) version: u32,
    /// Bytes that it speaks of.
    pub(crate) length: u64,
    /// Their checksum, and where it stands.
    checksum: u32,
    checksum_offset: u64,
    /// What the file is.
    structure: &'static str,
}

impl FirstLine {
    /// Writes the line.
    pub(crate) fn encode(words: &str, version: u32, length: usize, checksum: u32) -> String {
        format!("{words}{version} {length} {checksum:#010x}\n")
    }

    /// Reads the line that begins with `words`, which end with a space, of one of the versions that this build reads.
    pub(crate) fn parse(
        structure: &'static str,
        words: &str,
        versions: RangeInclusive<u32>,
        bytes: &[u8],
    ) -> Result<FirstLine, FormatError> {
        let Some(rest) = bytes.strip_prefix(words.as_bytes()) else {
            return Err(FormatError::foreign_text(
                structure, structure, words, bytes,
            ));
        };
        let damaged = || {
            let words = words.trim_end();
            let problem =
                format!("the first line does not read \"{words} VERSION LENGTH CHECKSUM\"");
            FormatError::damaged_text(structure, problem)
        };
        let mut line = rest.iter().take(LINE_MAX);
        let line_len = line.position(|&byte| byte == b'\n').ok_or_else(damaged)?;
        let (line, _) = rest.split_at(line_len);
        let mut numbers = std::str::from_utf8(line).map_err(|_| damaged())?.split(' ');
        let found = numbers.next().and_then(decimal).ok_or_else(damaged)?;
        let found: u32 = found.try_into().map_err(|_| damaged())?;
        // Before anything else: a newer version may say the rest otherwise.
        if !versions.contains(&found) {
            let newest = *versions.end();
            FormatError::check_version(structure, words.len() as u64, found, newest)?;
        }
        let length = numbers.next().and_then(decimal).ok_or_else(damaged)?;
        let checksum = numbers.next().and_then(checksum).ok_or_else(damaged)?;
        if numbers.next().is_some() {
            return Err(damaged());
        }
        Ok(FirstLine {
            structure,
            version: found,
            body: words.len() + line_len + 1,
            length,
            checksum,
            checksum_offset: (words.len() + line_len - CHECKSUM_LEN) as u64,
        })
    }

    /// Checks that `body` is what the line speaks of.
    ///
    /// # Errors
    /// `Checksum`.
    pub(crate) fn check(&self, body: &[u8]) -> Result<(), FormatError> {
        let (found, offset) = (self.checksum, self.checksum_offset);
        FormatError::check_checksum(self.structure, offset, found, crc32c(body))
    }
}

/// Bytes of a checksum in a line: `0x` and eight digits.
const CHECKSUM_LEN: usize = 10;

/// A checksum as lines have it.
pub(crate) fn checksum(word: &str) -> Option<u32> {
    let word = (word.len() == CHECKSUM_LEN).then_some(word)?;
    parse_hex(word)?.try_into().ok()
}

/// A number without sign and leading zeros.
pub(crate) fn decimal(word: &str) -> Option<u64> {
    let canonical = word == "0" || !word.starts_with('0');
    let digits = word.bytes().all(|byte| byte.is_ascii_digit());
    (canonical && digits).then_some(word)?.parse().ok()
}

/// Numbers as `"0x…"`: people compare them with addresses, and no JSON reader rounds them.
pub(crate) mod hex {
    use std::fmt::LowerHex;

    use serde::{Deserialize, Deserializer, Serializer};

    use super::parse_hex;

    pub(crate) fn serialize<N: LowerHex, S: Serializer>(
        number: &N,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        serializer.collect_str(&format_args!("{number:#x}"))
    }

    pub(crate) fn deserialize<'de, N: TryFrom<u64>, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<N, D::Error> {
        let text = <std::borrow::Cow<'de, str>>::deserialize(deserializer)?;
        let number = parse_hex(&text).and_then(|number| number.try_into().ok());
        number.ok_or_else(|| {
            let bits = 8 * size_of::<N>();
            serde::de::Error::custom(format!("{text:?} is no hex number below 2^{bits}"))
        })
    }
}

/// A number that is a key, or a value of a map.
#[derive(PartialEq, Eq, PartialOrd, Ord, serde::Serialize, serde::Deserialize)]
pub(crate) struct Hex(#[serde(with = "hex")] pub(crate) u64);

/// A mode of a file as four octal digits, as people write it.
pub(crate) mod octal {
    use serde::{Deserialize, Deserializer, Serializer};

    pub(crate) fn serialize<S: Serializer>(mode: &u16, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(&format_args!("{mode:04o}"))
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<u16, D::Error> {
        let text = <std::borrow::Cow<'de, str>>::deserialize(deserializer)?;
        let is_mode = text.len() == 4 && text.bytes().all(|byte| matches!(byte, b'0'..=b'7'));
        let mode = is_mode.then(|| u16::from_str_radix(&text, 8).ok());
        mode.flatten().ok_or_else(|| {
            serde::de::Error::custom(format!("{text:?} is no mode of four octal digits"))
        })
    }
}

/// A number as `{:#x}` prints it.
pub(crate) fn parse_hex(text: &str) -> Option<u64> {
    let digits = text.strip_prefix("0x")?;
    let is_digit = |byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f');
    let digits = digits.bytes().all(is_digit).then_some(digits)?;
    u64::from_str_radix(digits, 16).ok()
}
