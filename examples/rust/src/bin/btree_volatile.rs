//! A B+tree of fan-out 8 from numbers to numbers, changed by commands on standard input: one a line, each with one line
//! of answer.
//!
//!     insert KEY VALUE    puts a value under a key; answers with the one that was there
//!     remove KEY          takes the key with its value
//!     find KEY            tells the value
//!     range FROM TO       tells all from one key up to, but without, another
//!     clear               takes all
//!     length, depth, print

use std::error::Error;
use std::io::stdin;
use std::mem;
use std::str::FromStr;

/// Entries or children of a node, at most. Below the top it has at least half as many.
const FANOUT: usize = 8;

#[derive(Default)]
struct Node {
    length: usize,
    /// The first `length` count, and are in order. One of a child is not greater than any in the child.
    keys: [u64; FANOUT],
    /// Values at the bottom, nodes above.
    items: [Item; FANOUT],
}

#[derive(Default)]
enum Item {
    #[default]
    Nothing,
    Value(u64),
    Node(Box<Node>),
}

#[derive(Default)]
pub(crate) struct Tree {
    top: Box<Node>,
    length: usize,
}

impl Tree {
    /// Puts a value under a key, and gives the one that was there.
    pub(crate) fn insert(&mut self, key: u64, value: u64) -> Option<u64> {
        if self.top.length == FANOUT {
            let old = mem::take(&mut *self.top);
            self.top.put(0, old.keys[0], Item::Node(Box::new(old)));
        }
        let old = self.top.insert(key, value);
        self.length += usize::from(old.is_none());
        old
    }

    /// Takes a key out, and gives its value.
    pub(crate) fn remove(&mut self, key: u64) -> Option<u64> {
        let value = self.top.remove(key)?;
        self.length -= 1;
        if let (1, Item::Node(_)) = (self.top.length, &self.top.items[0])
            && let (_, Item::Node(only)) = self.top.take(0)
        {
            self.top = only;
        }
        Some(value)
    }

    pub(crate) fn find(&self, key: u64) -> Option<u64> {
        let mut node: &Node = &self.top;
        loop {
            let at = node.position(key).checked_sub(1)?;
            match &node.items[at] {
                Item::Node(child) => node = child,
                Item::Value(value) if node.keys[at] == key => return Some(*value),
                _ => return None,
            }
        }
    }

    /// The entries from one key up to, but without, another.
    pub(crate) fn range(&self, from: u64, to: u64) -> Vec<(u64, u64)> {
        let mut found = Vec::new();
        self.top.collect(from, to, &mut found);
        found
    }

    fn clear(&mut self) {
        *self.top = Node::default();
        self.length = 0;
    }

    /// Whether the nodes are well filled, the keys in order, and as many as the tree says.
    fn is_consistent(&self) -> bool {
        let entries = self.range(0, u64::MAX);
        let is_sorted = entries.is_sorted_by(|(a, _), (b, _)| a < b);
        entries.len() == self.length && is_sorted && self.top.is_consistent()
    }

    /// Does what a line asks for.
    fn execute(&mut self, line: &str) -> Result<String, String> {
        let words: Vec<&str> = line.split_whitespace().collect();
        match words[..] {
            ["insert", key, value] => found(self.insert(number(key)?, number(value)?)),
            ["remove", key] => found(self.remove(number(key)?)),
            ["find", key] => found(self.find(number(key)?)),
            ["range", from, to] => all(self.range(number(from)?, number(to)?)),
            ["clear"] => {
                self.clear();
                Ok("done".to_owned())
            }
            ["length"] => Ok(self.length.to_string()),
            ["depth"] => Ok(self.top.depth().to_string()),
            ["print"] if self.is_consistent() => all(self.range(0, u64::MAX)),
            ["print"] => Err("the tree is broken".to_owned()),
            _ => Err(format!("no such command: {line}")),
        }
    }
}

impl Node {
    /// How many keys are not greater than this one.
    fn position(&self, key: u64) -> usize {
        self.keys[..self.length].partition_point(|known| *known <= key)
    }

    /// Puts an item before the one at `at`. There is room.
    fn put(&mut self, at: usize, key: u64, item: Item) {
        self.keys[at..=self.length].rotate_right(1);
        self.items[at..=self.length].rotate_right(1);
        self.keys[at] = key;
        self.items[at] = item;
        self.length += 1;
    }

    /// Takes the item at `at`; those behind it move on.
    fn take(&mut self, at: usize) -> (u64, Item) {
        self.length -= 1;
        self.keys[at..=self.length].rotate_left(1);
        self.items[at..=self.length].rotate_left(1);
        let item = mem::take(&mut self.items[self.length]);
        (self.keys[self.length], item)
    }

    /// Puts a value below this node, which has room: full nodes are split on the way down.
    fn insert(&mut self, key: u64, value: u64) -> Option<u64> {
        let at = self.position(key);
        let below = at.saturating_sub(1);
        match &self.items[below] {
            Item::Node(child) if child.length == FANOUT => {
                self.split(below);
                return self.insert(key, value);
            }
            Item::Node(_) if key >= self.keys[below] => {}
            Item::Node(_) => self.keys[below] = key,
            Item::Value(_) if key == self.keys[below] => {}
            _ => {
                self.put(at, key, Item::Value(value));
                return None;
            }
        }
        match &mut self.items[below] {
            Item::Node(child) => child.insert(key, value),
            Item::Value(old) => Some(mem::replace(old, value)),
            Item::Nothing => None,
        }
    }

    /// Moves the upper half of the full child at `at` into a new one behind it.
    fn split(&mut self, at: usize) {
        let Item::Node(child) = &mut self.items[at] else {
            return;
        };
        let mut upper = Node::default();
        for at in 0..FANOUT / 2 {
            let (key, item) = child.take(FANOUT / 2);
            upper.put(at, key, item);
        }
        self.put(at + 1, upper.keys[0], Item::Node(Box::new(upper)));
    }

    fn remove(&mut self, key: u64) -> Option<u64> {
        let at = self.position(key).checked_sub(1)?;
        let is_there = self.keys[at] == key;
        let value = match &mut self.items[at] {
            Item::Node(child) => child.remove(key)?,
            Item::Value(value) if is_there => {
                let value = *value;
                self.take(at);
                return Some(value);
            }
            _ => return None,
        };
        if self.is_low(at) {
            self.fill(at);
        }
        Some(value)
    }

    /// Whether the child at `at` has too few items.
    fn is_low(&self, at: usize) -> bool {
        matches!(&self.items[at], Item::Node(child) if child.length < FANOUT / 2)
    }

    /// Gives the child at `at`, which has too few items, one of its neighbour's or all.
    fn fill(&mut self, at: usize) {
        let left = at.min(self.length.saturating_sub(2));
        let [Item::Node(a), Item::Node(b)] = &mut self.items[left..left + 2] else {
            return;
        };
        let (a, b) = (&mut **a, &mut **b);
        if a.length + b.length <= FANOUT {
            while b.length > 0 {
                let (key, item) = b.take(0);
                a.put(a.length, key, item);
            }
            self.take(left + 1);
            return;
        }
        if a.length < b.length {
            let (key, item) = b.take(0);
            a.put(a.length, key, item);
        } else {
            let (key, item) = a.take(a.length - 1);
            b.put(0, key, item);
        }
        self.keys[left + 1] = b.keys[0];
    }

    fn collect(&self, from: u64, to: u64, found: &mut Vec<(u64, u64)>) {
        let first = self.position(from).saturating_sub(1);
        for at in first..self.length {
            match &self.items[at] {
                _ if self.keys[at] >= to => return,
                Item::Node(child) => child.collect(from, to, found),
                Item::Value(value) if self.keys[at] >= from => {
                    found.push((self.keys[at], *value));
                }
                _ => {}
            }
        }
    }

    fn depth(&self) -> usize {
        match &self.items[0] {
            Item::Node(child) => 1 + child.depth(),
            _ => 1,
        }
    }

    /// Whether all nodes below are well filled, and equally deep.
    fn is_consistent(&self) -> bool {
        self.items.iter().all(|item| match item {
            Item::Node(child) => {
                let is_filled = (FANOUT / 2..=FANOUT).contains(&child.length);
                is_filled && child.depth() + 1 == self.depth() && child.is_consistent()
            }
            _ => true,
        })
    }
}

fn number<N: FromStr>(word: &str) -> Result<N, String> {
    word.parse().map_err(|_| format!("not a number: {word}"))
}

fn all(entries: Vec<(u64, u64)>) -> Result<String, String> {
    let text = |(key, value): &(u64, u64)| format!("{key}={value}");
    Ok(entries.iter().map(text).collect::<Vec<_>>().join(" "))
}

fn found<T: ToString>(what: Option<T>) -> Result<String, String> {
    Ok(what.map_or_else(|| "none".to_owned(), |what| what.to_string()))
}

fn main() -> Result<(), Box<dyn Error>> {
    let mut tree = Tree::default();
    for line in stdin().lines() {
        let line = line?;
        let answer = tree.execute(&line);
        println!("{}", answer.unwrap_or_else(|error| error));
    }
    Ok(())
}
