//! From a value to an object's bytes.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;

use super::plan::{Members, Part, Plan, Repeats};
use super::scan::{Refused, Scanner};
use crate::types::Primitive;

/// What a pointer of a value says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reference {
    /// So far into the object of this number.
    Object {
        /// The number.
        number: u64,
        /// Bytes from its start.
        offset: u64,
    },
    /// An address that is no object's.
    Address(u64),
}

impl Plan {
    /// Reads the value of an object into its bytes, which are zero. `pointer` is told each pointer that is not null,
    /// with where in the object it lies, and gives the word that is put there.
    ///
    /// # Errors
    /// [`Refused`]; a part of the bytes was written.
    pub(super) fn read(
        &self,
        scanner: &mut Scanner<'_>,
        bytes: &mut [u8],
        pointer: &mut impl FnMut(usize, Reference) -> Result<u64, String>,
    ) -> Result<(), Refused> {
        let row = self.row(bytes.len());
        let row = row.ok_or_else(|| scanner.refuse("the object is shorter than its type"))?;
        let mut reader = Reader {
            scanner,
            bytes,
            pointer,
        };
        match row {
            1 => reader.part(&self.root, 0, 0),
            row => reader.elements(&self.root, 0, self.size as usize, row),
        }
    }
}

struct Reader<'r, 'l, F> {
    scanner: &'r mut Scanner<'l>,
    bytes: &'r mut [u8],
    pointer: &'r mut F,
}

impl<F: FnMut(usize, Reference) -> Result<u64, String>> Reader<'_, '_, F> {
    fn put(&mut self, at: usize, width: usize, word: u64) -> Result<(), Refused> {
        let word = word.to_le_bytes();
        let place = at.checked_add(width);
        let place = place.and_then(|end| self.bytes.get_mut(at..end));
        match (place, word.get(..width)) {
            (Some(place), Some(word)) => {
                place.copy_from_slice(word);
                Ok(())
            }
            _ => Err(self.scanner.refuse("the object has no room for this")),
        }
    }

    /// `base` is where the struct begins that the part lies in.
    fn part(&mut self, part: &Part, at: usize, base: usize) -> Result<(), Refused> {
        match part {
            Part::Number(primitive) => {
                let word = number(*primitive, self.scanner)?;
                self.put(at, primitive.size() as usize, word)
            }
            Part::Pointer => self.address(at),
            Part::Bytes(count) => {
                let len = self.count(*count, at, base, 1)?;
                self.some_bytes(at, len)
            }
            Part::Words => self.words(at),
            Part::Unsaid => match self.scanner.accept_word("null") {
                true => Ok(()),
                false => Err(self.scanner.refuse("what is volatile or reserved is null")),
            },
            Part::Struct(members) => self.members(members, at, at),
            Part::Variants {
                tag_offset,
                tag_width,
                size,
                has_pointers,
                cases,
            } => {
                if self.scanner.accept_word("null") {
                    return Ok(());
                }
                self.scanner.expect(b'{')?;
                let case = cases
                    .iter()
                    .find(|(_, name, _)| self.scanner.accept_word(name));
                match case {
                    Some((tag, _, members)) => {
                        if let Some(tag) = tag {
                            self.put(at + tag_offset, *tag_width, *tag)?;
                        }
                        self.scanner.expect(b':')?;
                        self.members(members, at, at)?;
                    }
                    None if !has_pointers && self.scanner.accept_word("\"base64\"") => {
                        self.scanner.expect(b':')?;
                        self.base64(at, *size)?;
                    }
                    None => return Err(self.scanner.refuse("the type has no such case")),
                }
                self.scanner.expect(b'}')
            }
            Part::Array {
                element,
                stride,
                count,
                ..
            } => {
                let count = self.count(*count, at, base, *stride)?;
                self.elements(element, at, *stride, count)
            }
        }
    }

    fn count(
        &self,
        count: Repeats,
        at: usize,
        base: usize,
        stride: usize,
    ) -> Result<usize, Refused> {
        let room = self.bytes.len().saturating_sub(at) / stride.max(1);
        let count = match count {
            Repeats::Tail => room,
            Repeats::Fixed(count) => count,
            Repeats::Length { offset, width } => {
                let mut word = [0; 8];
                let from = base.saturating_add(offset);
                let found = self.bytes.get(from..from.saturating_add(width));
                for (byte, found) in word.iter_mut().zip(found.unwrap_or_default()) {
                    *byte = *found;
                }
                usize::try_from(u64::from_le_bytes(word)).unwrap_or(usize::MAX)
            }
        };
        match count <= room {
            true => Ok(count),
            false => Err(self.scanner.refuse(format!(
                "there is room for {room} elements, and not {count}"
            ))),
        }
    }

    fn elements(
        &mut self,
        element: &Part,
        at: usize,
        stride: usize,
        count: usize,
    ) -> Result<(), Refused> {
        self.scanner.expect(b'[')?;
        if self.scanner.accept(b']') {
            return Ok(());
        }
        for index in 0..count {
            self.part(element, at + index * stride, at)?;
            if self.scanner.accept(b']') {
                return Ok(());
            }
            self.scanner.expect(b',')?;
        }
        Err(self
            .scanner
            .refuse(format!("there are more than {count} elements")))
    }

    fn members(&mut self, members: &Members, at: usize, base: usize) -> Result<(), Refused> {
        self.scanner.expect(b'{')?;
        for (index, member) in members.0.iter().enumerate() {
            if index > 0 {
                self.scanner.expect(b',')?;
            }
            self.scanner.member(&member.name)?;
            self.part(&member.part, at + member.offset, base)?;
        }
        self.scanner.expect(b'}')
    }

    /// The bytes of an object without a type; then which words of it are pointers, and zero until then.
    fn words(&mut self, at: usize) -> Result<(), Refused> {
        let room = self.bytes.len().saturating_sub(at);
        self.scanner.expect(b'{')?;
        self.scanner.member("\"bytes\"")?;
        self.some_bytes(at, room)?;
        self.scanner.expect(b',')?;
        self.scanner.member("\"pointers\"")?;
        self.scanner.expect(b'[')?;
        let mut next = 0;
        if !self.scanner.accept(b']') {
            loop {
                self.scanner.expect(b'[')?;
                let place: usize = self.scanner.whole()?;
                if place < next || place > room.saturating_sub(8) {
                    let problem = format!("there is no pointer at {place}, behind the one before");
                    return Err(self.scanner.refuse(problem));
                }
                next = place + 8;
                self.scanner.expect(b',')?;
                self.address(at + place)?;
                self.scanner.expect(b']')?;
                if !self.scanner.accept(b',') {
                    break;
                }
            }
            self.scanner.expect(b']')?;
        }
        self.scanner.expect(b'}')
    }

    fn address(&mut self, at: usize) -> Result<(), Refused> {
        let reference = match self.scanner.peek() {
            Some(b'n') if self.scanner.accept_word("null") => return Ok(()),
            Some(b'[') => {
                self.scanner.expect(b'[')?;
                let number = self.scanner.whole()?;
                self.scanner.expect(b',')?;
                let offset = self.scanner.whole()?;
                self.scanner.expect(b']')?;
                Reference::Object { number, offset }
            }
            Some(b'{') => {
                self.scanner.expect(b'{')?;
                self.scanner.member("\"address\"")?;
                let address = self.scanner.hex()?;
                self.scanner.expect(b'}')?;
                Reference::Address(address)
            }
            _ => Reference::Object {
                number: self.scanner.whole()?,
                offset: 0,
            },
        };
        let word = (self.pointer)(at, reference);
        let word = word.map_err(|problem| self.scanner.refuse(problem))?;
        self.put(at, 8, word)
    }

    fn some_bytes(&mut self, at: usize, len: usize) -> Result<(), Refused> {
        if self.scanner.accept(b'{') {
            self.scanner.member("\"base64\"")?;
            self.base64(at, len)?;
            return self.scanner.expect(b'}');
        }
        let found = self.scanner.string()?;
        let end = at.saturating_add(found.len());
        match self.bytes.get_mut(at..end) {
            Some(place) if found.len() <= len => {
                place.copy_from_slice(&found);
                Ok(())
            }
            _ => Err(self.scanner.refuse(format!(
                "there is room for {len} bytes, and not {}",
                found.len()
            ))),
        }
    }

    fn base64(&mut self, at: usize, len: usize) -> Result<(), Refused> {
        let text = self.scanner.string()?;
        let place = self.bytes.get_mut(at..at.saturating_add(len));
        match place.and_then(|place| STANDARD.decode_slice(text, place).ok()) {
            Some(_) => Ok(()),
            None => Err(self.scanner.refuse("that is no base64, or has no room")),
        }
    }
}

fn number(primitive: Primitive, scanner: &mut Scanner<'_>) -> Result<u64, Refused> {
    let bits = 8 * primitive.size();
    let fits = |scanner: &Scanner<'_>, word: u64| match bits == 64 || word >> bits == 0 {
        true => Ok(word),
        false => Err(scanner.refuse(format!("that is no {}", primitive.name()))),
    };
    let is_bits = matches!(
        primitive,
        Primitive::F32 | Primitive::F64 | Primitive::Bool | Primitive::Char
    );
    if is_bits && scanner.accept(b'{') {
        scanner.member("\"bits\"")?;
        let word = scanner.hex()?;
        scanner.expect(b'}')?;
        return fits(scanner, word);
    }
    match primitive {
        Primitive::U8 | Primitive::U16 | Primitive::U32 | Primitive::U64 => {
            let word = scanner.whole()?;
            fits(scanner, word)
        }
        Primitive::I8 | Primitive::I16 | Primitive::I32 | Primitive::I64 => {
            let word: i64 = scanner.whole()?;
            let unused = 64 - bits;
            match word << unused >> unused == word {
                true => Ok(word as u64),
                false => Err(scanner.refuse(format!("that is no {}", primitive.name()))),
            }
        }
        Primitive::F32 => {
            let number: Option<f32> = scanner.digits()?.parse().ok();
            let number = number.filter(|number| number.is_finite());
            let number = number.ok_or_else(|| scanner.refuse("that is no f32"))?;
            Ok(number.to_bits().into())
        }
        Primitive::F64 => {
            let number: Option<f64> = scanner.digits()?.parse().ok();
            let number = number.filter(|number| number.is_finite());
            let number = number.ok_or_else(|| scanner.refuse("that is no f64"))?;
            Ok(number.to_bits())
        }
        Primitive::Bool => match (scanner.accept_word("true"), scanner.accept_word("false")) {
            (true, _) => Ok(1),
            (_, true) => Ok(0),
            _ => Err(scanner.refuse("true or false is missing")),
        },
        Primitive::Char => {
            let text = scanner.string()?;
            let mut chars = std::str::from_utf8(&text).unwrap_or_default().chars();
            match (chars.next(), chars.next()) {
                (Some(char), None) => Ok(u64::from(u32::from(char))),
                _ => Err(scanner.refuse("that is not one character")),
            }
        }
    }
}
