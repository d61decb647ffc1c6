//! The code that is run: a copy in memory that nobody writes any more.

use std::fmt;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::fs::{MemfdFlags, SealFlags, fcntl_add_seals, fcntl_get_seals, memfd_create};
use sha2::{Digest, Sha256};

/// The SHA-256 of an executable's bytes: what it is known by.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Hash(pub [u8; 32]);

impl Hash {
    /// That of these bytes.
    pub fn of(bytes: &[u8]) -> Hash {
        Hash(Sha256::digest(bytes).into())
    }
}

impl fmt::Display for Hash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for Hash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// Why there is no code to run.
#[derive(Debug)]
#[non_exhaustive]
pub enum CodeError {
    /// The bytes are others than those that were expected.
    OtherBytes {
        /// What they are.
        found: Hash,
        /// What was asked for.
        expected: Hash,
    },
    /// Somebody could still write it.
    NotSealed,
    /// Of the system.
    System(io::Error),
}

impl fmt::Display for CodeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            CodeError::OtherBytes { found, expected } => write!(
                f,
                "the code {expected} was changed: its bytes are {found} now; put it back as it was"
            ),
            CodeError::NotSealed => f.write_str("somebody could still write the code"),
            CodeError::System(error) => write!(f, "no memory for a copy of the code: {error}"),
        }
    }
}

impl std::error::Error for CodeError {}

impl<E: Into<io::Error>> From<E> for CodeError {
    fn from(error: E) -> CodeError {
        CodeError::System(error.into())
    }
}

/// A static executable, in memory that nobody writes any more: what was compared is what runs.
#[derive(Debug)]
pub struct Code(OwnedFd);

impl Code {
    /// A copy of these bytes, if they are the expected ones. They may change meanwhile, as a file does that others have
    /// open: what is compared is the copy.
    ///
    /// # Errors
    /// `OtherBytes`; of the system.
    pub fn copied(bytes: &[u8], expected: Hash) -> Result<Code, CodeError> {
        let flags = MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING;
        // Where the kernel may ask for it, it is said that the file is to be executed.
        let file = memfd_create("durum-code", flags | MemfdFlags::EXEC)
            .or_else(|_| memfd_create("durum-code", flags))?;
        let mut rest = bytes;
        while !rest.is_empty() {
            let written = rustix::io::write(&file, rest)?;
            rest = rest.get(written..).unwrap_or_default();
        }
        // ORDER: nobody can change it from here on, and then it is compared.
        fcntl_add_seals(&file, SEALS)?;
        let found = hash_of(&file)?;
        match found == expected {
            true => Ok(Code(file)),
            false => Err(CodeError::OtherBytes { found, expected }),
        }
    }

    /// What somebody else has made with [`Code::copied`], and compared.
    ///
    /// # Errors
    /// `NotSealed`; of the system.
    pub(crate) fn sealed(file: OwnedFd) -> Result<Code, CodeError> {
        match fcntl_get_seals(&file)?.contains(SEALS) {
            true => Ok(Code(file)),
            false => Err(CodeError::NotSealed),
        }
    }
}

/// Nobody writes it any more, nor makes it longer or shorter.
const SEALS: SealFlags = SealFlags::WRITE
    .union(SealFlags::GROW)
    .union(SealFlags::SHRINK)
    .union(SealFlags::SEAL);

fn hash_of(file: &OwnedFd) -> io::Result<Hash> {
    let (mut hasher, mut part, mut at) = (Sha256::new(), vec![0; 64 << 10], 0);
    loop {
        let count = rustix::io::pread(file, &mut part[..], at)?;
        if count == 0 {
            return Ok(Hash(hasher.finalize().into()));
        }
        hasher.update(part.get(..count).unwrap_or_default());
        at += count as u64;
    }
}

impl AsFd for Code {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hash_is_that_of_the_standard() {
        let expected = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
        assert_eq!(Hash::of(b"abc").to_string(), expected);
    }

    #[test]
    fn what_was_compared_is_what_runs() {
        let (bytes, other) = (vec![7u8; 300_000], vec![8u8; 300_000]);
        let code = Code::copied(&bytes, Hash::of(&bytes)).unwrap();
        for refused in [
            rustix::io::pwrite(&code.0, b"x", 0).map(drop),
            rustix::fs::ftruncate(&code.0, 0),
            rustix::fs::ftruncate(&code.0, 1 << 20),
            fcntl_add_seals(&code.0, SealFlags::FUTURE_WRITE),
        ] {
            assert_eq!(refused.unwrap_err(), rustix::io::Errno::PERM);
        }
        let file = memfd_create("open", MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING).unwrap();
        fcntl_add_seals(&file, SealFlags::WRITE | SealFlags::GROW).unwrap();
        assert!(matches!(Code::sealed(file), Err(CodeError::NotSealed)));
        Code::sealed(code.0).unwrap();
        let error = Code::copied(&other, Hash::of(&bytes)).unwrap_err();
        assert!(matches!(error, CodeError::OtherBytes { .. }));
        assert!(
            error.to_string().contains(&Hash::of(&other).to_string()),
            "{error}"
        );
    }
}
