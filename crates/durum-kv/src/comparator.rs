//! The order of keys.

use std::cmp::Ordering;
use std::fmt;
use std::sync::Arc;

/// The name of the order of bytes, which is the default. LevelDB calls it so.
pub const BYTEWISE: &str = "leveldb.BytewiseComparator";

/// An order of keys.
///
/// The order is total and never changes, not between two runs of the program either: the database is read by it. What
/// it takes for equal is one key. The name is stored with the database, and opening it with another is refused; choose
/// a new name when the order changes.
pub trait Comparator: Send + Sync {
    /// Compares two keys. It must not panic, and not use the database, which may be about to change.
    fn compare(&self, a: &[u8], b: &[u8]) -> Ordering;

    /// The comparator's name.
    fn name(&self) -> &str;
}

/// The order of a database's keys.
#[derive(Clone)]
pub(crate) enum Keys {
    /// That of their bytes, which heads make fast ([`Sorted`](crate::sorted::Sorted)).
    Bytewise,
    Custom(Arc<dyn Comparator>),
}

impl fmt::Debug for Keys {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl Keys {
    #[inline]
    pub(crate) fn compare(&self, a: &[u8], b: &[u8]) -> Ordering {
        match self {
            Keys::Bytewise => a.cmp(b),
            Keys::Custom(comparator) => comparator.compare(a, b),
        }
    }

    pub(crate) fn name(&self) -> &str {
        match self {
            Keys::Bytewise => BYTEWISE,
            Keys::Custom(comparator) => comparator.name(),
        }
    }

    /// A key that is larger than `below` and at most `above`, short where the order allows it.
    pub(crate) fn separator<'a>(&self, below: &[u8], above: &'a [u8]) -> &'a [u8] {
        match self {
            Keys::Bytewise => {
                // `above` is larger, so it goes on where they part.
                &above[..(common(below, above) + 1).min(above.len())]
            }
            Keys::Custom(_) => above,
        }
    }
}

/// How many bytes two keys begin with in common.
pub(crate) fn common(a: &[u8], b: &[u8]) -> usize {
    a.iter().zip(b).take_while(|(a, b)| a == b).count()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_separator_parts_two_keys() {
        for (below, above) in [
            (&b"apple"[..], &b"apricot"[..]),
            (b"a", b"ab"),
            (b"", b"\0"),
            (b"ab\xff", b"b"),
        ] {
            let separator = Keys::Bytewise.separator(below, above);
            assert!(below < separator && separator <= above, "{separator:?}");
        }
        assert_eq!(Keys::Bytewise.separator(b"apple", b"apricot"), b"apr");
    }
}
