//! 128-bit names of stores, pools, puddles and clients.

use std::fmt;
use std::str::FromStr;

use crate::error::FormatError;

/// A 128-bit name, printed as `xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx`. Bytes lie on the media in the order printed.
///
/// ```
/// use durum_format::Uuid;
/// let uuid = Uuid::from_random([7; 16]);
/// assert_eq!(uuid.to_string(), "07070707-0707-4707-8707-070707070707");
/// assert_eq!(uuid.to_string().parse::<Uuid>()?, uuid);
/// # Ok::<(), durum_format::FormatError>(())
/// ```
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Uuid(pub [u8; 16]);

impl Uuid {
    /// The name that nothing has.
    pub const NIL: Self = Self([0; 16]);

    /// A version 4 name out of 16 random bytes: six of the 128 bits are overwritten with version and variant.
    pub const fn from_random(mut bytes: [u8; 16]) -> Self {
        bytes[6] = bytes[6] & 0x0f | 0x40;
        bytes[8] = bytes[8] & 0x3f | 0x80;
        Self(bytes)
    }

    /// Whether this is [`Uuid::NIL`].
    pub fn is_nil(&self) -> bool {
        self.0 == [0; 16]
    }
}

/// Bytes of a text.
const TEXT_LEN: usize = 36;
/// Where the bytes of a name stand in it, as two digits each; a hyphen stands between the groups.
const PLACES: [usize; 16] = [0, 2, 4, 6, 9, 11, 14, 16, 19, 21, 24, 26, 28, 30, 32, 34];

/// Registries are full of names, so the machinery of `fmt` would be most of what it takes to write one.
fn text_of(uuid: &Uuid) -> [u8; TEXT_LEN] {
    let mut text = [b'-'; TEXT_LEN];
    for (place, byte) in PLACES.into_iter().zip(uuid.0) {
        text[place] = digit(byte >> 4);
        text[place + 1] = digit(byte & 0xf);
    }
    text
}

fn uuid_of(text: &[u8]) -> Option<Uuid> {
    let text: &[u8; TEXT_LEN] = text.try_into().ok()?;
    let mut uuid = Uuid::NIL;
    for (place, byte) in PLACES.into_iter().zip(&mut uuid.0) {
        *byte = value(text[place])? << 4 | value(text[place + 1])?;
    }
    // The hyphens, too, are where they belong.
    (text_of(&uuid) == *text).then_some(uuid)
}

fn digit(value: u8) -> u8 {
    match value {
        0..=9 => b'0' + value,
        _ => b'a' + (value - 10),
    }
}

fn value(digit: u8) -> Option<u8> {
    match digit {
        b'0'..=b'9' => Some(digit - b'0'),
        b'a'..=b'f' => Some(digit - b'a' + 10),
        _ => None,
    }
}

impl fmt::Display for Uuid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = text_of(self);
        f.write_str(std::str::from_utf8(&text).unwrap_or_default())
    }
}

impl fmt::Debug for Uuid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl FromStr for Uuid {
    type Err = FormatError;

    /// Accepts exactly what [`fmt::Display`] prints, so that equal names have equal texts.
    fn from_str(text: &str) -> Result<Self, FormatError> {
        uuid_of(text.as_bytes())
            .ok_or_else(|| {
                let problem = format!(
                    "{text:?} is not of the form xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx in lowercase hex digits"
                );
                FormatError::damaged_text("uuid", problem)
            })
    }
}

/// A text for people, bytes for programs.
impl serde::Serialize for Uuid {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match serializer.is_human_readable() {
            true => {
                let text = text_of(self);
                serializer.serialize_str(std::str::from_utf8(&text).unwrap_or_default())
            }
            false => self.0.serialize(serializer),
        }
    }
}

impl<'de> serde::Deserialize<'de> for Uuid {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        if !deserializer.is_human_readable() {
            return Ok(Uuid(<[u8; 16]>::deserialize(deserializer)?));
        }
        let text = <std::borrow::Cow<'de, str>>::deserialize(deserializer)?;
        text.parse().map_err(serde::de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_that_are_not_exactly_a_uuid_are_refused() {
        let good = "01234567-89ab-cdef-0123-456789abcdef";
        assert_eq!(good.parse::<Uuid>().unwrap().to_string(), good);
        for bad in [
            "",
            "01234567-89ab-cdef-0123-456789abcde",
            "01234567-89ab-cdef-0123-456789abcdef0",
            "01234567-89AB-cdef-0123-456789abcdef",
            "0123456789ab-cdef-0123-456789abcdef--",
            "01234567-89ab-cdef-0123-456789abcdeg",
            "-1234567089ab-cdef-0123-456789abcdef",
            "0123456é-89ab-cdef-0123-456789abcde",
        ] {
            assert!(bad.parse::<Uuid>().is_err(), "{bad}");
        }
    }
}
