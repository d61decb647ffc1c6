//! Values of options that are more than their type says.

/// A depth that the stack has room for.
pub(super) fn depth(text: &str) -> Result<usize, String> {
    match text.parse() {
        Ok(depth) if depth <= 500 => Ok(depth),
        _ => Err("give a number up to 500".into()),
    }
}

/// A time that is worth while to wait.
pub(super) fn seconds(text: &str) -> Result<f64, String> {
    match text.parse() {
        Ok(seconds) if (0.1..=3600.0).contains(&seconds) => Ok(seconds),
        _ => Err("give a number from 0.1 to 3600".into()),
    }
}

/// A number, decimal or with `0x` in front.
pub(super) fn number(text: &str) -> Result<u64, String> {
    let digits = text.replace('_', "");
    let parsed = match digits.strip_prefix("0x") {
        Some(hex) => u64::from_str_radix(hex, 16),
        None => digits.parse(),
    };
    parsed.map_err(|_| "give a number like 4096 or 0x200000000000".into())
}
