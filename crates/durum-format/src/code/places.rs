//! Where the sections of a program go on, for a person: the function, the file and the line of each region, and which
//! program it was. It lies behind the code that a client has deposited.
//!
//! A client could write what it wants there. So nothing depends on it but what a message says.

use std::fmt::{self, Write};

use zerocopy::FromBytes;
use zerocopy::little_endian::{U16, U32, U64};

use crate::error::{FormatError, check_zero};
use crate::section::Code;

/// The most bytes of a name. Writers cut longer ones.
pub const TEXT_MAX: usize = 1024;
/// The most bytes of all.
pub const PLACES_MAX: u64 = 16 << 20;

const STRUCTURE: &str = "places of code";

/// What a program tells of its functions.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Places<'a> {
    /// What the program's file is called.
    pub program: &'a str,
    /// What tells its build from others, in hex.
    pub build: &'a str,
    /// Its functions, in order of their hashes, each once.
    pub functions: Vec<Function<'a>>,
}

/// A function in which sections go on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Function<'a> {
    /// Of its code: 48 bits.
    pub hash: u64,
    /// As the linker knows it.
    pub name: &'a str,
    /// What it was compiled from.
    pub file: &'a str,
    /// Where its regions begin, from the one with the number 1 on; 0 where that is not known.
    pub lines: Vec<u32>,
}

/// Where a section goes on, in words: `push, queue.c:66`. What a terminal would not print is escaped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place<'p> {
    /// The function.
    pub function: &'p Function<'p>,
    /// The line of the region, if it is known.
    pub line: Option<u32>,
}

impl<'a> Places<'a> {
    /// As it lies behind the code. Functions are put in order, and texts are cut.
    pub fn encode(mut self) -> Vec<u8> {
        self.functions.sort_by_key(|function| function.hash);
        self.functions.dedup_by_key(|function| function.hash);
        let mut bytes = Vec::new();
        put_text(&mut bytes, self.program);
        put_text(&mut bytes, self.build);
        bytes.extend((self.functions.len() as u32).to_le_bytes());
        for function in &self.functions {
            let lines = function.lines.get(..usize::from(u16::MAX));
            let lines = lines.unwrap_or(&function.lines);
            bytes.extend(function.hash.to_le_bytes());
            bytes.extend((lines.len() as u16).to_le_bytes());
            bytes.extend([0; 2]);
            bytes.extend(lines.iter().flat_map(|line| line.to_le_bytes()));
            put_text(&mut bytes, function.name);
            put_text(&mut bytes, function.file);
        }
        bytes
    }

    /// Reads all of it.
    ///
    /// # Errors
    /// `Truncated`, also where more follows; `Field`, `Text`, `Reserved` for what no writer leaves.
    pub fn parse(bytes: &'a [u8]) -> Result<Self, FormatError> {
        let mut rest = Rest { bytes, at: 0 };
        let (program, build) = (rest.text("program")?, rest.text("build")?);
        let count = rest.take::<U32>()?.get();
        // What is reserved for them comes from what is there.
        let mut functions: Vec<Function<'a>> = Vec::new();
        for _ in 0..count {
            let at = rest.at;
            let hash = rest.take::<U64>()?.get();
            let last = functions.last().map_or(0, |last| last.hash);
            if hash <= last || hash >> 48 != 0 {
                let expected = format!("more than {last:#x}, in 48 bits");
                return Err(FormatError::field(STRUCTURE, "hash", at, hash, expected));
            }
            let count = rest.take::<U16>()?.get();
            let at = rest.at;
            check_zero(STRUCTURE, at, rest.bytes(2)?)?;
            let lines = rest.bytes(usize::from(count) * 4)?;
            let lines = lines.as_chunks::<4>().0.iter();
            functions.push(Function {
                hash,
                lines: lines.map(|line| u32::from_le_bytes(*line)).collect(),
                name: rest.text("name")?,
                file: rest.text("file")?,
            });
        }
        match rest.bytes {
            [] => Ok(Self {
                program,
                build,
                functions,
            }),
            more => Err(FormatError::Truncated {
                structure: STRUCTURE,
                needed: rest.at,
                found: rest.at + more.len() as u64,
            }),
        }
    }

    /// Where a section goes on; `None`, if the program has no such function.
    pub fn find(&self, code: Code) -> Option<Place<'_>> {
        let hash = code.function();
        let found = self
            .functions
            .binary_search_by_key(&hash, |function| function.hash);
        let function = self.functions.get(found.ok()?)?;
        let index = usize::from(code.region()).checked_sub(1);
        let line = index.and_then(|index| function.lines.get(index)).copied();
        Some(Place {
            function,
            line: line.filter(|line| *line != 0),
        })
    }

    /// Which program it was, in words: `queue, build 3f2a81`.
    pub fn told(&self) -> String {
        let (program, build) = (Shown(self.program), Shown(self.build));
        format!("{program}, build {build}")
    }
}

impl fmt::Display for Place<'_> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (name, file) = (Shown(self.function.name), Shown(self.function.file));
        match self.line {
            Some(line) => write!(out, "{name}, {file}:{line}"),
            None => write!(out, "{name}, {file}"),
        }
    }
}

/// A stranger's text, for a message.
struct Shown<'t>(&'t str);

impl fmt::Display for Shown<'_> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        for letter in self.0.chars() {
            match letter {
                '"' | '\'' | '\\' => out.write_char(letter)?,
                letter => write!(out, "{}", letter.escape_debug())?,
            }
        }
        Ok(())
    }
}

/// A text: how many bytes it has, and these.
fn put_text(bytes: &mut Vec<u8>, text: &str) {
    let mut end = text.len().min(TEXT_MAX);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    let text = text.get(..end).unwrap_or_default();
    bytes.extend((text.len() as u16).to_le_bytes());
    bytes.extend(text.bytes());
}

/// What was not read yet.
struct Rest<'a> {
    bytes: &'a [u8],
    at: u64,
}

impl<'a> Rest<'a> {
    fn bytes(&mut self, count: usize) -> Result<&'a [u8], FormatError> {
        let Some((bytes, rest)) = self.bytes.split_at_checked(count) else {
            return Err(FormatError::Truncated {
                structure: STRUCTURE,
                needed: self.at + count as u64,
                found: self.at + self.bytes.len() as u64,
            });
        };
        (self.bytes, self.at) = (rest, self.at + count as u64);
        Ok(bytes)
    }

    fn take<T: FromBytes + zerocopy::Unaligned>(&mut self) -> Result<T, FormatError> {
        let at = self.at;
        let bytes = self.bytes(size_of::<T>())?;
        T::read_from_bytes(bytes).map_err(|_| FormatError::Truncated {
            structure: STRUCTURE,
            needed: at + size_of::<T>() as u64,
            found: at,
        })
    }

    fn text(&mut self, field: &'static str) -> Result<&'a str, FormatError> {
        let at = self.at;
        let length = self.take::<U16>()?.get();
        if usize::from(length) > TEXT_MAX {
            let expected = format!("up to {TEXT_MAX} bytes");
            return Err(FormatError::field(STRUCTURE, field, at, length, expected));
        }
        let bytes = self.bytes(usize::from(length))?;
        std::str::from_utf8(bytes).map_err(|_| {
            let problem = format!("{field} at offset {at} is no text in UTF-8");
            FormatError::damaged_text(STRUCTURE, problem)
        })
    }
}
