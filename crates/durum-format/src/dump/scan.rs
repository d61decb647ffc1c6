//! One line of JSON, read from left to right.

use std::borrow::Cow;

/// Why a line is not read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("byte {column}: {problem}")]
pub struct Refused {
    /// Where in the line, from 1.
    pub column: usize,
    /// What is wrong there.
    pub problem: String,
}

/// The rest of a line.
pub(super) struct Scanner<'l> {
    line: &'l [u8],
    at: usize,
}

impl<'l> Scanner<'l> {
    pub(super) fn of(line: &'l [u8]) -> Self {
        Self::from(line, 0)
    }

    pub(super) fn from(line: &'l [u8], at: usize) -> Self {
        Self { line, at }
    }

    /// How much of the line was read.
    pub(super) fn at(&self) -> usize {
        self.at
    }

    pub(super) fn refuse(&self, problem: impl Into<String>) -> Refused {
        Refused {
            column: self.at + 1,
            problem: problem.into(),
        }
    }

    /// The next byte that is no blank.
    pub(super) fn peek(&mut self) -> Option<u8> {
        while let Some(byte) = self.line.get(self.at) {
            if !matches!(byte, b' ' | b'\t' | b'\r') {
                return Some(*byte);
            }
            self.at += 1;
        }
        None
    }

    /// Goes past this byte, if it is the next one.
    pub(super) fn accept(&mut self, byte: u8) -> bool {
        let found = self.peek() == Some(byte);
        self.at += usize::from(found);
        found
    }

    pub(super) fn expect(&mut self, byte: u8) -> Result<(), Refused> {
        match self.accept(byte) {
            true => Ok(()),
            false => Err(self.refuse(format!("`{}` is missing", char::from(byte)))),
        }
    }

    /// Goes past this word, if it is next.
    pub(super) fn accept_word(&mut self, word: &str) -> bool {
        self.peek();
        let rest = self.line.get(self.at..).unwrap_or_default();
        let found = rest.starts_with(word.as_bytes());
        self.at += if found { word.len() } else { 0 };
        found
    }

    /// A member's name, between quotes, and what stands behind it.
    pub(super) fn member(&mut self, quoted: &str) -> Result<(), Refused> {
        match self.accept_word(quoted) {
            true => self.expect(b':'),
            false => Err(self.refuse(format!("the member {quoted} is missing"))),
        }
    }

    /// The end of the line.
    pub(super) fn end(&mut self) -> Result<(), Refused> {
        match self.peek() {
            None => Ok(()),
            Some(_) => Err(self.refuse("the line should end here")),
        }
    }

    /// The digits and signs of a number.
    pub(super) fn digits(&mut self) -> Result<&'l str, Refused> {
        self.peek();
        let rest = self.line.get(self.at..).unwrap_or_default();
        let is_part = |byte: &u8| byte.is_ascii_digit() || b"+-.eE".contains(byte);
        let end = rest.iter().position(|byte| !is_part(byte));
        let digits = rest.get(..end.unwrap_or(rest.len())).unwrap_or_default();
        if digits.is_empty() {
            return Err(self.refuse("a number is missing"));
        }
        self.at += digits.len();
        std::str::from_utf8(digits).map_err(|_| self.refuse("a number is missing"))
    }

    /// A whole number, as it is or as text.
    pub(super) fn whole<N: std::str::FromStr>(&mut self) -> Result<N, Refused> {
        let is_text = self.accept(b'"');
        let before = self.at;
        let digits = self.digits()?;
        let number = digits.parse().map_err(|_| Refused {
            column: before + 1,
            problem: "that number does not fit".to_owned(),
        })?;
        if is_text {
            self.expect(b'"')?;
        }
        Ok(number)
    }

    /// A number as `"0x…"`.
    pub(super) fn hex(&mut self) -> Result<u64, Refused> {
        let text = self.string()?;
        let text = std::str::from_utf8(&text).ok();
        let number = text.and_then(crate::text::parse_hex);
        number.ok_or_else(|| self.refuse("a number like \"0x1f\" is missing"))
    }

    /// The bytes of a string.
    pub(super) fn string(&mut self) -> Result<Cow<'l, [u8]>, Refused> {
        self.expect(b'"')?;
        let rest = self.line.get(self.at..).unwrap_or_default();
        let end = rest.iter().position(|byte| matches!(byte, b'"' | b'\\'));
        let end = end.ok_or_else(|| self.refuse("the string does not end"))?;
        let (plain, special) = rest.split_at(end);
        let found = match special.first() {
            Some(b'"') => {
                self.at += end + 1;
                Cow::Borrowed(plain)
            }
            _ => Cow::Owned(self.escaped()?),
        };
        match std::str::from_utf8(&found) {
            Ok(_) => Ok(found),
            Err(_) => Err(self.refuse("the string is not UTF-8")),
        }
    }

    fn escaped(&mut self) -> Result<Vec<u8>, Refused> {
        let mut bytes = Vec::new();
        loop {
            let byte = self.next()?;
            match byte {
                b'"' => return Ok(bytes),
                b'\\' => {
                    let byte = match self.next()? {
                        b'u' => {
                            let char = self.unicode()?;
                            bytes.extend_from_slice(char.encode_utf8(&mut [0; 4]).as_bytes());
                            continue;
                        }
                        b'n' => b'\n',
                        b't' => b'\t',
                        b'r' => b'\r',
                        b'b' => 8,
                        b'f' => 12,
                        byte @ (b'"' | b'\\' | b'/') => byte,
                        _ => return Err(self.refuse("an escape that JSON does not have")),
                    };
                    bytes.push(byte);
                }
                byte => bytes.push(byte),
            }
        }
    }

    fn next(&mut self) -> Result<u8, Refused> {
        let byte = self.line.get(self.at).copied();
        self.at += 1;
        byte.ok_or_else(|| self.refuse("the string does not end"))
    }

    fn unicode(&mut self) -> Result<char, Refused> {
        let first = self.four_digits()?;
        let code = match first {
            0xd800..0xdc00 => {
                let is_next = self.next()? == b'\\' && self.next()? == b'u';
                match is_next.then(|| self.four_digits()).transpose()? {
                    Some(second @ 0xdc00..0xe000) => {
                        0x1_0000 + ((first - 0xd800) << 10) + (second - 0xdc00)
                    }
                    _ => return Err(self.refuse("half of a character")),
                }
            }
            code => code,
        };
        char::from_u32(code).ok_or_else(|| self.refuse("half of a character"))
    }

    fn four_digits(&mut self) -> Result<u32, Refused> {
        let mut number = 0;
        for _ in 0..4 {
            let digit = char::from(self.next()?).to_digit(16);
            number = number << 4 | digit.ok_or_else(|| self.refuse("four digits are missing"))?;
        }
        Ok(number)
    }
}
