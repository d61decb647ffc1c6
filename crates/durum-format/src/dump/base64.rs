//! Base64 (RFC 4648, with padding).

const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

/// Appends bytes as base64.
pub(super) fn encode(bytes: &[u8], out: &mut Vec<u8>) {
    for chunk in bytes.chunks(3) {
        let word = chunk
            .iter()
            .fold(0_u32, |word, byte| word << 8 | u32::from(*byte))
            << (8 * (3 - chunk.len()));
        for at in 0..4 {
            let digit = DIGITS[(word >> (18 - 6 * at) & 63) as usize];
            out.push(if at <= chunk.len() { digit } else { b'=' });
        }
    }
}

/// Reads base64 into `bytes`, and tells how many it was; `None` for what is none, or has no room.
pub(super) fn decode(text: &[u8], bytes: &mut [u8]) -> Option<usize> {
    if !text.len().is_multiple_of(4) {
        return None;
    }
    let mut used = 0;
    let chunks = text.len() / 4;
    for (at, chunk) in text.chunks_exact(4).enumerate() {
        let padding = chunk.iter().rev().take_while(|digit| **digit == b'=');
        let padding = padding.count();
        if padding > 2 || (padding > 0 && at + 1 < chunks) {
            return None;
        }
        let mut word = 0_u32;
        for digit in chunk {
            word = word << 6 | value(*digit, padding)?;
        }
        let all = word.to_be_bytes();
        let found = all.get(1..4 - padding)?;
        // The bits of a byte that is not there.
        if all.get(4 - padding..)?.iter().any(|byte| *byte != 0) {
            return None;
        }
        bytes
            .get_mut(used..used + found.len())?
            .copy_from_slice(found);
        used += found.len();
    }
    Some(used)
}

fn value(digit: u8, padding: usize) -> Option<u32> {
    Some(match digit {
        b'A'..=b'Z' => u32::from(digit - b'A'),
        b'a'..=b'z' => u32::from(digit - b'a') + 26,
        b'0'..=b'9' => u32::from(digit - b'0') + 52,
        b'+' => 62,
        b'/' => 63,
        b'=' if padding > 0 => 0,
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_come_back_and_nothing_else_is_read() {
        for (bytes, text) in [
            (&b""[..], &b""[..]),
            (b"f", b"Zg=="),
            (b"fo", b"Zm8="),
            (b"foo", b"Zm9v"),
            (b"\xff\xfe\xfd\xfc", b"//79/A=="),
        ] {
            let mut out = Vec::new();
            encode(bytes, &mut out);
            assert_eq!(out, text);
            let mut back = [0; 4];
            assert_eq!(decode(text, &mut back), Some(bytes.len()));
            assert_eq!(&back[..bytes.len()], bytes);
        }
        for text in [
            "Zg=", "Zg==Zg==", "Zh==", "Z===", "====", "Zm9v!", "Zm9vYmFy",
        ] {
            assert_eq!(decode(text.as_bytes(), &mut [0; 4]), None, "{text}");
        }
    }
}
