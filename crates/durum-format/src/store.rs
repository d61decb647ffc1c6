//! The file `durum.store`, which makes a directory a store: `docs/format/store.md`.

use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::Uuid;
use crate::consts::{ADDRESS_END, UNIT};
use crate::crc::crc32c;
use crate::error::FormatError;
use crate::text::{hex, parse_hex};

/// The name of the file in the store's directory.
pub const FILE_NAME: &str = "durum.store";
/// The version that this build writes and reads. It covers the whole store: each structure in it has one of its own.
pub const VERSION: u32 = 1;
/// The file is never longer than this.
pub const LEN_MAX: usize = 4096;

const STRUCTURE: &str = "store file";
const FIRST_LINE: &str = "durum store\n";
const VERSION_KEY: &str = "version = ";
const CHECKSUM_KEY: &str = "checksum = ";

/// What identifies a store.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StoreHeader {
    /// The store's name.
    pub uuid: Uuid,
    /// Where its address range begins: a multiple of [`UNIT`].
    #[serde(with = "hex")]
    pub base: u64,
    /// Bytes of its address range; a second one of this size lies behind it.
    #[serde(with = "hex")]
    pub size: u64,
    /// Where in the range the first puddle was placed: addresses are handed out upward from here, with wrap-around.
    #[serde(with = "hex")]
    pub start: u64,
    /// The persistence domain it was made for: a word of lowercase letters.
    pub domain: String,
}

impl StoreHeader {
    /// Checks what every store must fulfil.
    ///
    /// # Errors
    /// [`FormatError::Text`] says which value is impossible.
    pub fn validate(&self) -> Result<(), FormatError> {
        check_space(STRUCTURE, self.base, self.size)?;
        if !self.start.is_multiple_of(UNIT)
            || self.start < self.base
            || self.start - self.base >= self.size
        {
            return Err(damaged(format!(
                "start {:#x} is not a multiple of 2 MiB in the address range",
                self.start
            )));
        }
        if self.uuid.is_nil() {
            return Err(damaged("the uuid is all zero"));
        }
        check_domain(STRUCTURE, &self.domain)
    }

    /// The contents of the file.
    ///
    /// # Errors
    /// As [`StoreHeader::validate`].
    pub fn encode(&self) -> Result<String, FormatError> {
        self.validate()?;
        let Self {
            uuid,
            base,
            size,
            start,
            domain,
        } = self;
        let body = format!(
            "{FIRST_LINE}{VERSION_KEY}{VERSION}\nuuid = {uuid}\nbase = {base:#x}\nsize = {size:#x}\nstart = {start:#x}\n\
             domain = {domain}\n"
        );
        let checksum = crc32c(body.as_bytes());
        Ok(format!("{body}{CHECKSUM_KEY}{checksum:#010x}\n"))
    }

    /// Reads the contents of the file. Only what [`StoreHeader::encode`] gives is accepted, byte for byte.
    ///
    /// # Errors
    /// A foreign, newer, damaged or truncated file, told apart by [`FormatError::fault`].
    pub fn parse(bytes: &[u8]) -> Result<Self, FormatError> {
        let Some(rest) = bytes.strip_prefix(FIRST_LINE.as_bytes()) else {
            return Err(FormatError::foreign_text(
                STRUCTURE, "store", FIRST_LINE, bytes,
            ));
        };
        let version = || {
            let rest = rest.strip_prefix(VERSION_KEY.as_bytes())?;
            let digits = rest.iter().take_while(|byte| byte.is_ascii_digit()).count();
            let (digits, _) = rest.split_at(digits);
            std::str::from_utf8(digits).ok()?.parse().ok()
        };
        let version: u32 = version().ok_or_else(|| damaged("line 2 has no version"))?;
        let offset = (FIRST_LINE.len() + VERSION_KEY.len()) as u64;
        FormatError::check_version(STRUCTURE, offset, version, VERSION)?;
        if bytes.len() > LEN_MAX {
            return Err(damaged("it is longer than 4096 bytes"));
        }
        let text = std::str::from_utf8(bytes).map_err(|_| damaged("it is no UTF-8"))?;
        let parts = text.rfind(CHECKSUM_KEY).map(|at| text.split_at(at));
        let missing = || damaged("the checksum line is missing: the file is cut short");
        let (body, checksum) = parts.ok_or_else(missing)?;
        let found = checksum
            .strip_prefix(CHECKSUM_KEY)
            .and_then(|line| parse_hex(line.strip_suffix('\n')?));
        let found = found.and_then(|found| u32::try_from(found).ok());
        let found = found.ok_or_else(|| damaged("the checksum line has no checksum"))?;
        let offset = (body.len() + CHECKSUM_KEY.len()) as u64;
        FormatError::check_checksum(STRUCTURE, offset, found, crc32c(body.as_bytes()))?;
        let mut lines = body.lines().skip(2);
        let mut value = |key: &'static str| {
            let line = lines.next();
            let value = line.and_then(|line| line.strip_prefix(key)?.strip_prefix(" = "));
            value.ok_or_else(|| damaged(format!("the line with {key} is missing")))
        };
        let number = |text| parse_hex(text).ok_or_else(|| damaged("an address is no hex number"));
        let header = Self {
            uuid: Uuid::from_str(value("uuid")?)?,
            base: number(value("base")?)?,
            size: number(value("size")?)?,
            start: number(value("start")?)?,
            domain: value("domain")?.into(),
        };
        if header.encode()? != text {
            let problem = "it says more, or says it otherwise, than this version writes it";
            return Err(damaged(problem));
        }
        Ok(header)
    }
}

fn damaged(problem: impl Into<String>) -> FormatError {
    FormatError::damaged_text(STRUCTURE, problem)
}

/// A store's range and the one behind it must be mappable.
pub(crate) fn check_space(
    structure: &'static str,
    base: u64,
    size: u64,
) -> Result<(), FormatError> {
    let end = size.checked_mul(2).and_then(|both| base.checked_add(both));
    let fits = end.is_some_and(|end| end <= ADDRESS_END);
    if base == 0 || size == 0 || !base.is_multiple_of(UNIT) || !size.is_multiple_of(UNIT) || !fits {
        let problem = format!(
            "the address range of {size:#x} bytes at {base:#x}, and the one behind it, must be multiples of 2 MiB below 2^47"
        );
        return Err(FormatError::damaged_text(structure, problem));
    }
    Ok(())
}

pub(crate) fn check_domain(structure: &'static str, domain: &str) -> Result<(), FormatError> {
    if domain.is_empty()
        || domain.len() > 32
        || !domain.bytes().all(|byte| byte.is_ascii_lowercase())
    {
        let problem = format!("{domain:?} names no persistence domain: 1 to 32 lowercase letters");
        return Err(FormatError::damaged_text(structure, problem));
    }
    Ok(())
}
