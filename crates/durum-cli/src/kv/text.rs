//! Keys and values as text: what a terminal shows, and what comes back unchanged.

/// How bytes are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Form {
    /// As text, with what would not be text, or end a field, behind a backslash.
    Escaped,
    /// As hexadecimal digits.
    Hex,
}

impl Form {
    pub(crate) fn write(self, bytes: &[u8]) -> String {
        match self {
            Form::Hex => bytes.iter().map(|byte| format!("{byte:02x}")).collect(),
            Form::Escaped => escape(bytes),
        }
    }

    /// The bytes of a text that `write` could have given.
    pub(crate) fn read(self, text: &[u8]) -> Result<Vec<u8>, String> {
        match self {
            Form::Hex => unhex(text),
            Form::Escaped => unescape(text),
        }
    }
}

fn escape(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len());
    for chunk in bytes.utf8_chunks() {
        for c in chunk.valid().chars() {
            match c {
                '\\' => text.push_str("\\\\"),
                '\t' => text.push_str("\\t"),
                '\n' => text.push_str("\\n"),
                c if c.is_control() => {
                    let mut bytes = [0; 4];
                    let bytes = c.encode_utf8(&mut bytes).bytes();
                    bytes.for_each(|byte| text += &format!("\\x{byte:02x}"));
                }
                c => text.push(c),
            }
        }
        for byte in chunk.invalid() {
            text += &format!("\\x{byte:02x}");
        }
    }
    text
}

fn unescape(text: &[u8]) -> Result<Vec<u8>, String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text;
    while let Some((&byte, more)) = rest.split_first() {
        rest = more;
        if byte != b'\\' {
            bytes.push(byte);
            continue;
        }
        let (&kind, more) = rest.split_first().ok_or("a backslash at the end")?;
        rest = more;
        match kind {
            b'\\' => bytes.push(b'\\'),
            b't' => bytes.push(b'\t'),
            b'n' => bytes.push(b'\n'),
            b'x' => {
                let (digits, more) = rest
                    .split_at_checked(2)
                    .ok_or("\\x without two hexadecimal digits")?;
                bytes.extend(unhex(digits)?);
                rest = more;
            }
            other => {
                let other = char::from(other);
                return Err(format!(
                    "\\{other} means nothing; a backslash is written \\\\"
                ));
            }
        }
    }
    Ok(bytes)
}

fn unhex(text: &[u8]) -> Result<Vec<u8>, String> {
    let digit = |c: u8| {
        char::from(c)
            .to_digit(16)
            .ok_or_else(|| format!("{:?} is no hexadecimal digit", char::from(c)))
    };
    if !text.len().is_multiple_of(2) {
        return Err("an odd number of hexadecimal digits".into());
    }
    text.chunks_exact(2)
        .map(|pair| Ok((digit(pair[0])? * 16 + digit(pair[1])?) as u8))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_bytes_come_back() {
        let bytes: Vec<u8> = (0..=255).chain("é\u{85}\\x41".bytes()).collect();
        for form in [Form::Escaped, Form::Hex] {
            let text = form.write(&bytes);
            assert!(!text.contains(['\t', '\n']));
            assert_eq!(form.read(text.as_bytes()).unwrap(), bytes);
        }
        assert_eq!(
            Form::Escaped.write("é\t\u{1}\\".as_bytes()),
            "é\\t\\x01\\\\"
        );
    }

    #[test]
    fn what_means_nothing_is_refused() {
        for text in ["\\", "\\q", "\\x1", "\\xzz"] {
            assert!(Form::Escaped.read(text.as_bytes()).is_err(), "{text}");
        }
        assert!(Form::Hex.read(b"123").is_err());
    }
}
