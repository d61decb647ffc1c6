//! Types of C++ under the names that a programmer writes.

use std::collections::{BTreeSet, HashMap};
use std::fmt::{self, Write};

use cpp_demangle::Symbol;

/// A name that grows longer than this is left as it is: nobody believes that it comes from a compiler.
const LENGTH_MAX: usize = 1024;

/// What stands before the name of a type.
const BEFORE: &str = "typeinfo name for ";

struct Bounded(String);

impl Write for Bounded {
    fn write_str(&mut self, part: &str) -> fmt::Result {
        self.0.push_str(part);
        match self.0.len() <= LENGTH_MAX {
            true => Ok(()),
            false => Err(fmt::Error),
        }
    }
}

/// The name of a type as C++ has it, if it is what `typeid` gives: classes in namespaces, with their arguments.
pub(crate) fn for_people(name: &str) -> String {
    // No name in C or Rust begins with a digit.
    let is_nested = name.starts_with('N') && name.ends_with('E');
    let is_mangled = is_nested || name.starts_with(|first: char| first.is_ascii_digit());
    let written = is_mangled.then(|| demangled(name)).flatten();
    written.unwrap_or_else(|| name.to_owned())
}

fn demangled(name: &str) -> Option<String> {
    let symbol = Symbol::new(format!("_ZTS{name}")).ok()?;
    let mut out = Bounded(String::new());
    let options = cpp_demangle::DemangleOptions::new();
    symbol.structured_demangle(&mut out, &options).ok()?;
    out.0.strip_prefix(BEFORE).map(str::to_owned)
}

/// A name in C++ without the namespaces and types that it is in, and without arguments.
pub(crate) fn last_part(name: &str) -> &str {
    let (mut depth, mut start) = (0_usize, 0);
    for (at, byte) in name.bytes().enumerate() {
        match byte {
            b'<' | b'(' => depth += 1,
            b'>' | b')' => depth = depth.saturating_sub(1),
            b':' if depth == 0 => start = at + 1,
            _ => {}
        }
    }
    let last = name.get(start..).unwrap_or(name);
    last.split('<').next().unwrap_or(last).trim()
}

/// The last parts of names by the whole ones, where no two of them have the same.
pub(crate) fn short(names: &BTreeSet<String>) -> HashMap<String, String> {
    let mut by_part = HashMap::<&str, Vec<&String>>::new();
    for name in names {
        by_part.entry(last_part(name)).or_default().push(name);
    }
    let alone = by_part
        .into_iter()
        .filter_map(|(part, names)| match names[..] {
            [name] if !part.is_empty() => Some((name.clone(), part.to_owned())),
            _ => None,
        });
    alone.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_part_is_enough_where_it_is_alone() {
        for (name, last) in [
            (
                "hash_map<unsigned long, (unsigned long)0, a::b>::node",
                "node",
            ),
            ("a::tested<list<int> >", "tested"),
            ("account", "account"),
            ("events row", "events row"),
        ] {
            assert_eq!(last_part(name), last);
        }
        let names = ["a::node", "b::node", "b::bucket"].map(str::to_owned);
        let short = short(&names.into());
        assert_eq!(short.len(), 1, "{short:?}");
        assert_eq!(short["b::bucket"], "bucket");
    }

    #[test]
    fn names_of_cpp_are_as_they_are_written() {
        for (name, written) in [
            ("N5durum6stringE", "durum::string"),
            (
                "N5durum3mapIiNS_6stringESt4lessIvEEE",
                "durum::map<int, durum::string, std::less<void> >",
            ),
            (
                "8tree_mapImm4lockE",
                "tree_map<unsigned long, unsigned long, lock>",
            ),
            ("3d", "3d"),
            ("Node", "Node"),
            ("NE", "NE"),
            ("N5durum", "N5durum"),
            ("counted N1aE", "counted N1aE"),
        ] {
            assert_eq!(for_people(name), written);
        }
        // Each argument is twice the one before.
        let mut name = "N1aIiiE".to_owned();
        for at in 0..30 {
            name = format!("N1aI{name}ES{}_E", at);
        }
        assert!(for_people(&name).len() <= name.len().max(LENGTH_MAX));
    }
}
