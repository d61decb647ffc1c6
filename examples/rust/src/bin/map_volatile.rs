//! A hash map from numbers to numbers, changed by commands on standard input: one a line, each with one line of answer.
//!
//!     insert KEY VALUE    puts a value under a key; answers with the one that was there
//!     add KEY VALUE       adds to what is there, or to 0
//!     remove KEY          takes the key with its value
//!     find KEY            tells the value
//!     clear               takes all
//!     length, sum, print

use std::error::Error;
use std::io::stdin;
use std::str::FromStr;

type Link = Option<Box<Entry>>;

pub(crate) struct Entry {
    pub(crate) key: u64,
    pub(crate) value: u64,
    next: Link,
}

/// Entries in chains, which are as short as one entry on average.
#[derive(Default)]
pub(crate) struct Map {
    chains: Vec<Link>,
    length: usize,
}

impl Map {
    /// Puts a value under a key, and gives the one that was there.
    pub(crate) fn insert(&mut self, key: u64, value: u64) -> Option<u64> {
        if let Some(old) = self.find_mut(key) {
            return Some(std::mem::replace(old, value));
        }
        if self.length >= self.chains.len() {
            self.grow();
        }
        let at = self.chain_of(key);
        let next = self.chains[at].take();
        self.chains[at] = Some(Box::new(Entry { key, value, next }));
        self.length += 1;
        None
    }

    /// Makes room for twice as many, and puts every entry into its new chain.
    fn grow(&mut self) {
        let mut old = std::mem::take(&mut self.chains);
        let twice = (old.len() * 2).max(8);
        self.chains.resize_with(twice, || None);
        for mut rest in old.drain(..) {
            while let Some(mut entry) = rest {
                rest = entry.next.take();
                let at = self.chain_of(entry.key);
                entry.next = self.chains[at].take();
                self.chains[at] = Some(entry);
            }
        }
    }

    /// Takes a key out, and gives its value.
    pub(crate) fn remove(&mut self, key: u64) -> Option<u64> {
        if self.chains.is_empty() {
            return None;
        }
        let at = self.chain_of(key);
        let mut link = &mut self.chains[at];
        while link.as_ref().is_some_and(|entry| entry.key != key) {
            match link {
                Some(entry) => link = &mut entry.next,
                None => break,
            }
        }
        let mut entry = link.take()?;
        *link = entry.next.take();
        self.length -= 1;
        Some(entry.value)
    }

    pub(crate) fn find(&self, key: u64) -> Option<u64> {
        let mut at = self.chains.get(self.chain_of(key))?.as_deref();
        while let Some(entry) = at {
            if entry.key == key {
                return Some(entry.value);
            }
            at = entry.next.as_deref();
        }
        None
    }

    fn find_mut(&mut self, key: u64) -> Option<&mut u64> {
        let at = self.chain_of(key);
        let mut at = self.chains.get_mut(at)?.as_deref_mut();
        while let Some(entry) = at {
            if entry.key == key {
                return Some(&mut entry.value);
            }
            at = entry.next.as_deref_mut();
        }
        None
    }

    /// The number of a key's chain. Keys that follow each other are spread by a multiplication (Knuth).
    fn chain_of(&self, key: u64) -> usize {
        let hash = key.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 32;
        hash as usize % self.chains.len().max(1)
    }

    fn clear(&mut self) {
        self.chains.clear();
        self.length = 0;
    }

    /// All entries, in no order.
    pub(crate) fn entries(&self) -> impl Iterator<Item = &Entry> {
        self.chains.iter().flat_map(|chain| {
            std::iter::successors(chain.as_deref(), |entry| entry.next.as_deref())
        })
    }

    /// Whether every entry is where it is looked for, and they are as many as the map says.
    fn is_consistent(&self) -> bool {
        let is_found = |entry: &Entry| self.find(entry.key) == Some(entry.value);
        self.entries().all(is_found) && self.entries().count() == self.length
    }

    /// All entries as text, in the order of their keys.
    fn print(&self) -> String {
        let mut entries: Vec<&Entry> = self.entries().collect();
        entries.sort_by_key(|entry| entry.key);
        let text = |entry: &&Entry| format!("{}={}", entry.key, entry.value);
        entries.iter().map(text).collect::<Vec<_>>().join(" ")
    }

    /// Does what a line asks for.
    fn execute(&mut self, line: &str) -> Result<String, String> {
        let words: Vec<&str> = line.split_whitespace().collect();
        match words[..] {
            ["insert", key, value] => found(self.insert(number(key)?, number(value)?)),
            ["add", key, value] => {
                let (key, value) = (number(key)?, number::<u64>(value)?);
                let sum = self.find(key).unwrap_or(0).wrapping_add(value);
                found(self.insert(key, sum))
            }
            ["remove", key] => found(self.remove(number(key)?)),
            ["find", key] => found(self.find(number(key)?)),
            ["clear"] => {
                self.clear();
                Ok("done".to_owned())
            }
            ["length"] => Ok(self.length.to_string()),
            ["sum"] => Ok(self
                .entries()
                .map(|entry| entry.value)
                .sum::<u64>()
                .to_string()),
            ["print"] if self.is_consistent() => Ok(self.print()),
            ["print"] => Err("the map is broken".to_owned()),
            _ => Err(format!("no such command: {line}")),
        }
    }
}

fn number<N: FromStr>(word: &str) -> Result<N, String> {
    word.parse().map_err(|_| format!("not a number: {word}"))
}

fn found<T: ToString>(what: Option<T>) -> Result<String, String> {
    Ok(what.map_or_else(|| "none".to_owned(), |what| what.to_string()))
}

fn main() -> Result<(), Box<dyn Error>> {
    let mut map = Map::default();
    for line in stdin().lines() {
        let line = line?;
        let answer = map.execute(&line);
        println!("{}", answer.unwrap_or_else(|error| error));
    }
    Ok(())
}
