//! `PString`: UTF-8 text.

use std::borrow::{Borrow, Cow};
use std::fmt;
use std::ops::Deref;
use std::panic::{RefUnwindSafe, UnwindSafe};

use durum_format::types::Type;

use super::vec::PVec;
use crate::described::{Described, Walk};
use crate::typed::as_target::as_target;
use crate::typed::journal::{self, Journal};
use crate::typed::layout::structure;
use crate::typed::pointer_kind::Pointers;
use crate::typed::pool_id::PoolId;
use crate::typed::pool_type::PoolType;
use crate::typed::psafe::PSafe;
use crate::typed::values::{PClone, Root};

/// A string in the pool.
#[repr(transparent)]
pub struct PString<P: PoolType> {
    bytes: PVec<u8, P>,
}

impl<P: PoolType> PString<P> {
    /// A string with this text.
    pub fn new(text: &str, j: &Journal<P>) -> Self {
        let mut bytes = PVec::new();
        if !text.is_empty() {
            bytes.reserve_exact(text.len(), j);
            bytes.extend_from_slice(text.as_bytes(), j);
        }
        Self { bytes }
    }

    /// The text.
    pub fn as_str(&self) -> &str {
        self
    }

    /// Bytes that there is room for.
    pub fn capacity(&self) -> usize {
        self.bytes.capacity()
    }

    /// Makes room for so many more bytes.
    pub fn reserve(&mut self, additional: usize, j: &Journal<P>) {
        self.bytes.reserve(additional, j);
    }

    /// Appends text.
    pub fn push_str(&mut self, text: &str, j: &Journal<P>) {
        self.bytes.extend_from_slice(text.as_bytes(), j);
    }

    /// Appends a character.
    pub fn push(&mut self, char: char, j: &Journal<P>) {
        self.push_str(char.encode_utf8(&mut [0; 4]), j);
    }

    /// Takes the last character out.
    pub fn pop(&mut self) -> Option<char> {
        let char = self.chars().next_back()?;
        self.bytes.truncate(self.len() - char.len_utf8());
        Some(char)
    }

    /// Inserts text before byte `at`.
    ///
    /// # Panics
    /// If that is not at the border of a character.
    #[track_caller]
    pub fn insert_str(&mut self, at: usize, text: &str, j: &Journal<P>) {
        let tail = self[at..].to_owned();
        self.bytes.truncate(at);
        self.push_str(text, j);
        self.push_str(&tail, j);
    }

    /// Inserts a character before byte `at`.
    ///
    /// # Panics
    /// As [`PString::insert_str`].
    #[track_caller]
    pub fn insert(&mut self, at: usize, char: char, j: &Journal<P>) {
        self.insert_str(at, char.encode_utf8(&mut [0; 4]), j);
    }

    /// Takes the character at byte `at` out.
    ///
    /// # Panics
    /// If no character begins there.
    #[track_caller]
    pub fn remove(&mut self, at: usize) -> char {
        let char = self[at..].chars().next();
        let char = char.expect("a character is taken out where there is one");
        self.bytes.drain(at..at + char.len_utf8());
        char
    }

    /// Keeps the characters for which `keep` is true.
    pub fn retain(&mut self, mut keep: impl FnMut(char) -> bool) {
        let kept: String = self.chars().filter(|char| keep(*char)).collect();
        if kept.len() < self.len() {
            // No more than there was, so nothing is allocated.
            self.bytes[..kept.len()].copy_from_slice(kept.as_bytes());
            self.bytes.truncate(kept.len());
        }
    }

    /// Gives back the room beyond the text.
    pub fn shrink_to_fit(&mut self, j: &Journal<P>) {
        self.bytes.shrink_to_fit(j);
    }

    /// Drops what comes from byte `len` on.
    ///
    /// # Panics
    /// If that is not at the border of a character.
    #[track_caller]
    pub fn truncate(&mut self, len: usize) {
        if len < self.len() {
            assert!(
                self.is_char_boundary(len),
                "byte {len} is inside a character"
            );
            self.bytes.truncate(len);
        }
    }

    /// Drops all text. The room stays.
    pub fn clear(&mut self) {
        self.bytes.clear();
    }
}

impl<P: PoolType> Deref for PString<P> {
    type Target = str;

    #[inline]
    fn deref(&self) -> &str {
        // SAFETY: only whole characters are ever stored.
        unsafe { std::str::from_utf8_unchecked(&self.bytes) }
    }
}

// SAFETY: transparent.
unsafe impl<P: PoolType> Described for PString<P> {
    fn name() -> Option<Cow<'static, str>> {
        Some(Cow::Borrowed("PString"))
    }

    fn layout(walk: &mut Walk) -> Type<String> {
        structure!("PString", { bytes: PVec::<u8, P>::layout(walk) })
    }
}

// SAFETY: as a vector of bytes.
unsafe impl<P: PoolType> PSafe for PString<P> {
    type Threads = ();
    type Kind = Pointers;
    const OWNERS: bool = true;
    const WORDS: bool = false;
    const POOL: PoolId = P::ID;
    const ZERO_IS_VALUE: bool = PVec::<u8, P>::ZERO_IS_VALUE;

    #[inline]
    fn owners(&self) -> i64 {
        self.bytes.owners()
    }
}

impl<P: PoolType> UnwindSafe for PString<P> {}
impl<P: PoolType> RefUnwindSafe for PString<P> {}

impl<P: PoolType> Default for PString<P> {
    fn default() -> Self {
        Self { bytes: PVec::new() }
    }
}

impl<P: PoolType> Root<P> for PString<P> {
    fn init(_: &Journal<P>) -> Self {
        Self::default()
    }
}

impl<P: PoolType> PClone<P> for PString<P> {
    fn pclone(&self, j: &Journal<P>) -> Self {
        Self::new(self, j)
    }
}

impl<P: PoolType> FromIterator<char> for PString<P> {
    /// # Panics
    /// Outside of a transaction on the pool.
    fn from_iter<I: IntoIterator<Item = char>>(chars: I) -> Self {
        let text: String = chars.into_iter().collect();
        Self::new(&text, journal::current_journal())
    }
}

impl<'a, P: PoolType> FromIterator<&'a str> for PString<P> {
    /// # Panics
    /// Outside of a transaction on the pool.
    fn from_iter<I: IntoIterator<Item = &'a str>>(parts: I) -> Self {
        let text: String = parts.into_iter().collect();
        Self::new(&text, journal::current_journal())
    }
}

impl<P: PoolType> fmt::Write for PString<P> {
    /// # Panics
    /// Outside of a transaction on the pool.
    fn write_str(&mut self, text: &str) -> fmt::Result {
        self.push_str(text, journal::current_journal());
        Ok(())
    }
}

impl<P: PoolType> Borrow<str> for PString<P> {
    fn borrow(&self) -> &str {
        self
    }
}

impl<P: PoolType> AsRef<str> for PString<P> {
    fn as_ref(&self) -> &str {
        self
    }
}

impl<P: PoolType> PartialEq<str> for PString<P> {
    fn eq(&self, other: &str) -> bool {
        self.as_str() == other
    }
}

impl<P: PoolType> PartialEq<&str> for PString<P> {
    fn eq(&self, other: &&str) -> bool {
        self.as_str() == *other
    }
}

as_target! {
    [P: PoolType] PString<P>: Debug Display PartialEq Eq PartialOrd Ord Hash;
}
