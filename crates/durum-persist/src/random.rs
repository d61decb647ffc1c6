//! Random numbers of the system.

use std::io;

use rustix::io::Errno;
use rustix::rand::{GetRandomFlags, getrandom};

/// Fills a row of bytes with random ones. By the system call: no file is opened, as code in bounds has none.
///
/// # Errors
/// As the system says.
pub fn fill(mut bytes: &mut [u8]) -> io::Result<()> {
    while !bytes.is_empty() {
        match getrandom(&mut *bytes, GetRandomFlags::empty()) {
            Ok(filled) => bytes = bytes.split_at_mut(filled).1,
            Err(Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_bytes_are_drawn() {
        let mut bytes = [0; 4096];
        fill(&mut bytes).unwrap();
        assert!(bytes.chunks(16).all(|row| row != [0; 16]));
    }
}
