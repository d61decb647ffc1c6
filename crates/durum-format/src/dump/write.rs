//! From an object's bytes to a value.

use std::collections::BTreeMap;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;

use super::EXACT_MAX;
use super::plan::{Members, Part, Plan, Repeats};
use crate::types::{Primitive, says};

/// Where a pointer leads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum To {
    /// So far into the object of this number.
    Object {
        /// The number.
        number: u64,
        /// Bytes from its start.
        offset: u64,
    },
    /// To no object.
    Nowhere,
}

/// An object whose bytes do not fit its type.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{what} at byte {at} does not fit its type")]
pub struct Wrong {
    /// Where in the object.
    pub at: u64,
    /// What does not fit.
    pub what: &'static str,
}

impl Plan {
    /// Appends the value of an object; `to` is asked where each pointer leads that is not null.
    ///
    /// # Errors
    /// [`Wrong`]; a part of the value was appended.
    pub fn write(
        &self,
        bytes: &[u8],
        out: &mut Vec<u8>,
        to: &mut impl FnMut(u64) -> To,
    ) -> Result<(), Wrong> {
        let row = self.row(bytes.len()).ok_or(Wrong {
            at: 0,
            what: "the object",
        })?;
        let mut writer = Writer { bytes, out, to };
        match row {
            1 => writer.part(&self.root, 0, 0),
            row => {
                let stride = self.size as usize;
                writer.elements(&self.root, 0, stride, row, false)
            }
        }
    }
}

struct Writer<'w, F> {
    bytes: &'w [u8],
    out: &'w mut Vec<u8>,
    to: &'w mut F,
}

impl<F: FnMut(u64) -> To> Writer<'_, F> {
    fn slice(&self, at: usize, len: usize) -> Result<&[u8], Wrong> {
        let end = at.checked_add(len);
        let found = end.and_then(|end| self.bytes.get(at..end));
        found.ok_or(Wrong {
            at: at as u64,
            what: "the part",
        })
    }

    fn raw(&self, at: usize, width: usize) -> Result<u64, Wrong> {
        let mut word = [0; 8];
        let found = self.slice(at, width)?;
        for (byte, found) in word.iter_mut().zip(found) {
            *byte = *found;
        }
        Ok(u64::from_le_bytes(word))
    }

    /// `base` is where the struct begins that the part lies in.
    fn part(&mut self, part: &Part, at: usize, base: usize) -> Result<(), Wrong> {
        match part {
            Part::Number(primitive) => {
                let raw = self.raw(at, primitive.size() as usize)?;
                number(*primitive, raw, self.out);
            }
            Part::Pointer => match self.raw(at, 8)? {
                0 => self.out.extend_from_slice(b"null"),
                address => self.pointer(address),
            },
            Part::Bytes(count) => {
                let len = self.count(*count, at, base, 1)?;
                let end = at.saturating_add(len);
                let bytes = self.bytes.get(at..end).ok_or(Wrong {
                    at: at as u64,
                    what: "the part",
                })?;
                bytes_of(bytes, self.out);
            }
            Part::Words => self.words(at),
            Part::Unsaid => self.out.extend_from_slice(b"null"),
            Part::Struct(members) => self.members(members, at, at)?,
            Part::Variants {
                tag_offset,
                tag_width,
                size,
                has_pointers,
                cases,
            } => {
                let tag = self.raw(at + tag_offset, *tag_width)?;
                match cases.iter().find(|(number, ..)| says(*number, tag)) {
                    Some((_, name, members)) => {
                        self.out.push(b'{');
                        self.out.extend_from_slice(name.as_bytes());
                        self.out.push(b':');
                        self.members(members, at, at)?;
                        self.out.push(b'}');
                    }
                    // Nothing is stored in this place.
                    None if is_zero(self.slice(at, *size)?) => self.out.extend_from_slice(b"null"),
                    // Places without a value keep what was there, if that are no pointers.
                    None if !has_pointers => {
                        let bytes = self.bytes.get(at..at + size).unwrap_or_default();
                        base64_of(trimmed(bytes), self.out);
                    }
                    None => {
                        return Err(Wrong {
                            at: (at + tag_offset) as u64,
                            what: "the tag",
                        });
                    }
                }
            }
            Part::Array {
                element,
                stride,
                count,
                is_dense,
            } => {
                let count = self.count(*count, at, base, *stride)?;
                self.elements(element, at, *stride, count, *is_dense)?;
            }
        }
        Ok(())
    }

    fn count(&self, count: Repeats, at: usize, base: usize, stride: usize) -> Result<usize, Wrong> {
        let room = self.bytes.len().saturating_sub(at) / stride.max(1);
        let count = match count {
            Repeats::Tail => room,
            Repeats::Fixed(count) => count,
            Repeats::Length { offset, width } => {
                let count = self.raw(base + offset, width)?;
                usize::try_from(count).unwrap_or(usize::MAX)
            }
        };
        match count <= room {
            true => Ok(count),
            false => Err(Wrong {
                at: at as u64,
                what: "the number of elements",
            }),
        }
    }

    /// Elements; those at the end that are zero are left out, where that says the same.
    fn elements(
        &mut self,
        element: &Part,
        at: usize,
        stride: usize,
        count: usize,
        is_dense: bool,
    ) -> Result<(), Wrong> {
        let count = match is_dense {
            true => {
                let all = self.slice(at, stride.saturating_mul(count))?;
                let last = all.iter().rposition(|byte| *byte != 0);
                last.map_or(0, |last| last / stride.max(1) + 1)
            }
            false => count,
        };
        self.out.push(b'[');
        for index in 0..count {
            if index > 0 {
                self.out.push(b',');
            }
            self.part(element, at + index * stride, at)?;
        }
        self.out.push(b']');
        Ok(())
    }

    fn members(&mut self, members: &Members, at: usize, base: usize) -> Result<(), Wrong> {
        self.out.push(b'{');
        for (index, member) in members.0.iter().enumerate() {
            if index > 0 {
                self.out.push(b',');
            }
            self.out.extend_from_slice(member.name.as_bytes());
            self.out.push(b':');
            self.part(&member.part, at + member.offset, base)?;
        }
        self.out.push(b'}');
        Ok(())
    }

    /// The bytes of an object without a type, and its words that are addresses of objects.
    fn words(&mut self, at: usize) {
        let mut rest = self.bytes.get(at..).unwrap_or_default().to_vec();
        let mut pointers = BTreeMap::new();
        // Structs may be packed. What is aligned is more likely one than what reaches over it.
        let places = 0..rest.len().saturating_sub(7);
        let packed = places.clone().filter(|place| !place.is_multiple_of(8));
        for place in places.step_by(8).chain(packed) {
            let Some(word) = rest.get_mut(place..).and_then(|it| it.first_chunk_mut()) else {
                continue;
            };
            let address = u64::from_le_bytes(*word);
            let mut overlapping = pointers.range(place.saturating_sub(7)..place + 8);
            if address != 0 && overlapping.next().is_none() && (self.to)(address) != To::Nowhere {
                pointers.insert(place, address);
                *word = [0; 8];
            }
        }
        self.out.extend_from_slice(b"{\"bytes\":");
        bytes_of(&rest, self.out);
        self.out.extend_from_slice(b",\"pointers\":[");
        for (index, (place, address)) in pointers.into_iter().enumerate() {
            self.out
                .extend_from_slice(if index > 0 { b",[" } else { b"[" });
            decimal(place as u64, self.out);
            self.out.push(b',');
            self.pointer(address);
            self.out.push(b']');
        }
        self.out.extend_from_slice(b"]}");
    }

    fn pointer(&mut self, address: u64) {
        match (self.to)(address) {
            To::Object { number, offset: 0 } => decimal(number, self.out),
            To::Object { number, offset } => {
                self.out.push(b'[');
                decimal(number, self.out);
                self.out.push(b',');
                decimal(offset, self.out);
                self.out.push(b']');
            }
            To::Nowhere => {
                let text = format!("{{\"address\":\"{address:#x}\"}}");
                self.out.extend_from_slice(text.as_bytes());
            }
        }
    }
}

fn is_zero(bytes: &[u8]) -> bool {
    bytes.iter().all(|byte| *byte == 0)
}

/// Appends a number.
pub(super) fn decimal(mut number: u64, out: &mut Vec<u8>) {
    let mut digits = [0; 20];
    let mut at = digits.len();
    loop {
        at -= 1;
        digits[at] = b'0' + (number % 10) as u8;
        number /= 10;
        if number == 0 {
            break;
        }
    }
    out.extend_from_slice(&digits[at..]);
}

fn number(primitive: Primitive, raw: u64, out: &mut Vec<u8>) {
    let mut exact = |negative: bool, number: u64| {
        let is_text = number > EXACT_MAX;
        if is_text {
            out.push(b'"');
        }
        if negative {
            out.push(b'-');
        }
        decimal(number, out);
        if is_text {
            out.push(b'"');
        }
    };
    match primitive {
        Primitive::U8 | Primitive::U16 | Primitive::U32 | Primitive::U64 => exact(false, raw),
        Primitive::I8 | Primitive::I16 | Primitive::I32 | Primitive::I64 => {
            let unused = 64 - 8 * primitive.size();
            let number = (raw << unused) as i64 >> unused;
            exact(number < 0, number.unsigned_abs());
        }
        Primitive::F32 if f32::from_bits(raw as u32).is_finite() => {
            out.extend_from_slice(format!("{:?}", f32::from_bits(raw as u32)).as_bytes());
        }
        Primitive::F64 if f64::from_bits(raw).is_finite() => {
            out.extend_from_slice(format!("{:?}", f64::from_bits(raw)).as_bytes());
        }
        Primitive::Bool if raw < 2 => {
            out.extend_from_slice(if raw == 1 { b"true" } else { b"false" });
        }
        Primitive::Char if char::from_u32(raw as u32).is_some() => {
            let char = char::from_u32(raw as u32).unwrap_or_default();
            text(char.encode_utf8(&mut [0; 4]), out);
        }
        // No number, truth value or character: its bits.
        Primitive::F32 | Primitive::F64 | Primitive::Bool | Primitive::Char => {
            out.extend_from_slice(format!("{{\"bits\":\"{raw:#x}\"}}").as_bytes());
        }
    }
}

/// Bytes without the zeros at their end.
fn trimmed(bytes: &[u8]) -> &[u8] {
    let end = bytes.iter().rposition(|byte| *byte != 0);
    bytes
        .get(..end.map_or(0, |end| end + 1))
        .unwrap_or_default()
}

/// Appends bytes without the zeros at their end: text as text, others as base64.
fn bytes_of(bytes: &[u8], out: &mut Vec<u8>) {
    let bytes = trimmed(bytes);
    match std::str::from_utf8(bytes) {
        Ok(found) => text(found, out),
        Err(_) => base64_of(bytes, out),
    }
}

fn base64_of(bytes: &[u8], out: &mut Vec<u8>) {
    out.extend_from_slice(b"{\"base64\":\"");
    out.extend_from_slice(STANDARD.encode(bytes).as_bytes());
    out.extend_from_slice(b"\"}");
}

/// Appends a text as JSON has it. What controls a terminal is escaped.
pub(super) fn text(text: &str, out: &mut Vec<u8>) {
    out.push(b'"');
    let mut rest = text.as_bytes();
    while let Some(at) = rest.iter().position(|byte| needs_escape(*byte)) {
        let (plain, special) = rest.split_at(at);
        out.extend_from_slice(plain);
        let mut len = 1;
        match special[0] {
            b'"' => out.extend_from_slice(b"\\\""),
            b'\\' => out.extend_from_slice(b"\\\\"),
            b'\n' => out.extend_from_slice(b"\\n"),
            b'\t' => out.extend_from_slice(b"\\t"),
            b'\r' => out.extend_from_slice(b"\\r"),
            byte @ (0..0x20 | 0x7f) => {
                out.extend_from_slice(format!("\\u{byte:04x}").as_bytes());
            }
            // U+0080 to U+009F, which terminals take for commands, too; others are as they are.
            lead => match special.get(1) {
                Some(byte) if lead == 0xc2 && *byte < 0xa0 => {
                    out.extend_from_slice(format!("\\u{byte:04x}").as_bytes());
                    len = 2;
                }
                _ => out.push(lead),
            },
        }
        rest = &special[len..];
    }
    out.extend_from_slice(rest);
    out.push(b'"');
}

fn needs_escape(byte: u8) -> bool {
    byte < 0x20 || matches!(byte, b'"' | b'\\' | 0x7f | 0xc2)
}
