//! A key-value store for text, changed by commands on standard input: one a line, each with one line of answer.
//!
//!     put KEY VALUE       puts a value, to the end of the line, under a key
//!     append KEY VALUE    adds text to the end of a value
//!     rename KEY KEY      moves a value to another key
//!     delete KEY          takes the key with its value
//!     get KEY             tells the value
//!     keys PREFIX         tells the keys that begin so
//!     clear               takes all
//!     length, print

use durum::typed::*;
use std::error::Error;
use std::io::stdin;

durum::pool!(pub(crate) P);

#[derive(PSafe)]
#[repr(C)]
pub(crate) struct Pair {
    /// Of the key: most other keys need not be looked at.
    hash: u64,
    pub(crate) key: PString<P>,
    pub(crate) value: PString<P>,
}

/// Pairs in buckets, each with two on average.
#[derive(PSafe, Root)]
#[repr(C)]
pub(crate) struct Store {
    buckets: PVec<PVec<Pair, P>, P>,
    length: usize,
}

impl Store {
    /// Puts a value under a key. Whether there was another one.
    pub(crate) fn put(&mut self, key: &str, value: &str, j: &Journal<P>) -> bool {
        if let Some(old) = self.get_mut(key) {
            old.clear();
            old.push_str(value, j);
            return true;
        }
        if self.length >= self.buckets.len() * 2 {
            self.grow(j);
        }
        let hash = hash_of(key);
        let bucket = self.bucket_of(hash);
        let pair = Pair {
            hash,
            key: PString::new(key, j),
            value: PString::new(value, j),
        };
        self.buckets[bucket].push(pair, j);
        self.length += 1;
        false
    }

    /// Adds text to a value, which is empty if it was not there.
    pub(crate) fn append(&mut self, key: &str, more: &str, j: &Journal<P>) {
        match self.get_mut(key) {
            Some(value) => value.push_str(more, j),
            None => drop(self.put(key, more, j)),
        }
    }

    /// Moves a value to another key, if it is there.
    fn rename(&mut self, from: &str, to: &str, j: &Journal<P>) -> bool {
        let Some(pair) = self.take(from) else {
            return false;
        };
        self.put(to, &pair.value, j);
        true
    }

    pub(crate) fn delete(&mut self, key: &str) -> bool {
        self.take(key).is_some()
    }

    fn take(&mut self, key: &str) -> Option<Pair> {
        let (bucket, at) = self.place_of(key)?;
        self.length -= 1;
        Some(self.buckets[bucket].swap_remove(at))
    }

    pub(crate) fn get(&self, key: &str) -> Option<&str> {
        let (bucket, at) = self.place_of(key)?;
        Some(&self.buckets[bucket][at].value)
    }

    fn get_mut(&mut self, key: &str) -> Option<&mut PString<P>> {
        let (bucket, at) = self.place_of(key)?;
        Some(&mut self.buckets[bucket][at].value)
    }

    /// The bucket of a key that is there, and its place in that.
    fn place_of(&self, key: &str) -> Option<(usize, usize)> {
        let hash = hash_of(key);
        let bucket = self.bucket_of(hash);
        let mut pairs = self.buckets.get(bucket)?.iter();
        let at = pairs.position(|pair| pair.hash == hash && pair.key == key)?;
        Some((bucket, at))
    }

    fn bucket_of(&self, hash: u64) -> usize {
        hash as usize % self.buckets.len().max(1)
    }

    /// Makes twice as many buckets, and puts every pair into its new one.
    fn grow(&mut self, j: &Journal<P>) {
        let mut old = std::mem::take(&mut self.buckets);
        let twice = (old.len() * 2).max(4);
        self.buckets.resize_with(twice, PVec::new, j);
        for mut bucket in old.drain(..) {
            for pair in bucket.drain(..) {
                let bucket = self.bucket_of(pair.hash);
                self.buckets[bucket].push(pair, j);
            }
        }
    }

    fn clear(&mut self) {
        self.buckets.clear();
        self.length = 0;
    }

    /// The pairs whose keys begin so, in the order of the keys.
    pub(crate) fn pairs(&self, prefix: &str) -> Vec<&Pair> {
        let all = self.buckets.iter().flat_map(|bucket| bucket.iter());
        let mut pairs: Vec<&Pair> = all.filter(|pair| pair.key.starts_with(prefix)).collect();
        pairs.sort_by_key(|pair| pair.key.as_str());
        pairs
    }

    /// Whether every pair is where it is looked for, and they are as many as the store says.
    fn is_consistent(&self) -> bool {
        let pairs = self.pairs("");
        let is_found = |pair: &&Pair| self.get(&pair.key) == Some(pair.value.as_str());
        pairs.len() == self.length && pairs.iter().all(is_found)
    }

    /// Does what a line asks for.
    fn execute(&mut self, line: &str, j: &Journal<P>) -> Result<String, String> {
        let words: Vec<&str> = line.splitn(3, ' ').collect();
        match words[..] {
            ["put", key, value] => yes(self.put(key, value, j)),
            ["append", key, value] => {
                self.append(key, value, j);
                Ok("done".to_owned())
            }
            ["rename", from, to] => yes(self.rename(from, to, j)),
            ["delete", key] => yes(self.delete(key)),
            ["get", key] => Ok(self.get(key).unwrap_or("none").to_owned()),
            ["keys", prefix] => text(&self.pairs(prefix), |pair| pair.key.to_string()),
            ["clear"] => {
                self.clear();
                Ok("done".to_owned())
            }
            ["length"] => Ok(self.length.to_string()),
            ["print"] if self.is_consistent() => text(&self.pairs(""), |pair| {
                format!("{}={}", pair.key, pair.value)
            }),
            ["print"] => Err("the store is broken".to_owned()),
            _ => Err(format!("no such command: {line}")),
        }
    }
}

/// By FNV-1a. The hashers of std may differ from one version to the next.
fn hash_of(key: &str) -> u64 {
    key.bytes().fold(0xCBF2_9CE4_8422_2325, |hash: u64, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01B3)
    })
}

fn text(pairs: &[&Pair], one: fn(&Pair) -> String) -> Result<String, String> {
    let texts: Vec<String> = pairs.iter().map(|pair| one(pair)).collect();
    Ok(texts.join(", "))
}

fn yes(whether: bool) -> Result<String, String> {
    Ok(if whether { "yes" } else { "no" }.to_owned())
}

fn main() -> Result<(), Box<dyn Error>> {
    let store = P::open::<PRefCell<Store, P>>("store.store", Flags::CREATE)?;
    for line in stdin().lines() {
        let line = line?;
        let answer = P::transaction(|j| store.borrow_mut(j).execute(&line, j))?;
        println!("{}", answer.unwrap_or_else(|error| error));
    }
    Ok(())
}
