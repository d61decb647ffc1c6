//! A binary search tree from numbers to numbers, changed by commands on standard input: one a line, each with one line
//! of answer.
//!
//!     insert KEY VALUE    puts a value under a key; answers with the one that was there
//!     remove KEY          takes the key with its value
//!     find KEY            tells the value
//!     first, last         tell the smallest and the greatest key with their values
//!     after KEY           tells the smallest key that is greater
//!     range FROM TO       tells all from one key up to, but without, another
//!     clear               takes all
//!     length, depth, print

use std::cmp::Ordering;
use std::error::Error;
use std::io::stdin;
use std::str::FromStr;

type Link = Option<Box<Node>>;

pub(crate) struct Node {
    pub(crate) key: i64,
    pub(crate) value: i64,
    less: Link,
    greater: Link,
}

#[derive(Default)]
pub(crate) struct Tree {
    top: Link,
    length: usize,
}

/// What is left of a tree, in order.
pub(crate) struct Entries<'a> {
    /// The nodes whose left side is done: the next one is the last of them.
    open: Vec<&'a Node>,
}

impl Tree {
    /// Puts a value under a key, and gives the one that was there.
    pub(crate) fn insert(&mut self, key: i64, value: i64) -> Option<i64> {
        let link = self.link(key);
        if let Some(node) = link {
            return Some(std::mem::replace(&mut node.value, value));
        }
        let node = Node {
            key,
            value,
            less: None,
            greater: None,
        };
        *link = Some(Box::new(node));
        self.length += 1;
        None
    }

    /// Takes a key out, and gives its value.
    pub(crate) fn remove(&mut self, key: i64) -> Option<i64> {
        let link = self.link(key);
        let mut node = link.take()?;
        *link = match (node.less.take(), node.greater.take()) {
            (None, only) | (only, None) => only,
            (less, mut greater) => {
                // The next greater node, which has nothing on its left side, takes the place.
                let mut next = take_first(&mut greater)?;
                next.less = less;
                next.greater = greater;
                Some(next)
            }
        };
        self.length -= 1;
        Some(node.value)
    }

    /// The link that leads to the node with a key, or where it would be.
    fn link(&mut self, key: i64) -> &mut Link {
        let mut link = &mut self.top;
        while link.as_ref().is_some_and(|node| node.key != key) {
            match link {
                Some(node) => link = node.side(key),
                None => break,
            }
        }
        link
    }

    pub(crate) fn find(&self, key: i64) -> Option<i64> {
        let mut at = self.top.as_deref();
        while let Some(node) = at {
            at = match key.cmp(&node.key) {
                Ordering::Less => node.less.as_deref(),
                Ordering::Greater => node.greater.as_deref(),
                Ordering::Equal => return Some(node.value),
            };
        }
        None
    }

    fn first(&self) -> Option<&Node> {
        self.from(i64::MIN).next()
    }

    fn last(&self) -> Option<&Node> {
        let mut at = self.top.as_deref()?;
        while let Some(greater) = at.greater.as_deref() {
            at = greater;
        }
        Some(at)
    }

    /// The node with the smallest key that is greater than this one.
    fn after(&self, key: i64) -> Option<&Node> {
        self.from(key.checked_add(1)?).next()
    }

    /// The nodes whose keys are not less than this one, in order.
    pub(crate) fn from(&self, key: i64) -> Entries<'_> {
        let mut open = Vec::new();
        let mut at = self.top.as_deref();
        while let Some(node) = at {
            at = if node.key < key {
                node.greater.as_deref()
            } else {
                open.push(node);
                node.less.as_deref()
            };
        }
        Entries { open }
    }

    /// Takes node after node: dropping the top with all below it would take the stack as deep as the tree is.
    fn clear(&mut self) {
        while let Some(node) = take_first(&mut self.top) {
            drop(node);
        }
        self.length = 0;
    }

    /// Whether the keys are in order, and as many as the tree says.
    fn is_consistent(&self) -> bool {
        let keys: Vec<i64> = self.from(i64::MIN).map(|node| node.key).collect();
        keys.len() == self.length && keys.is_sorted_by(|a, b| a < b)
    }

    /// Does what a line asks for.
    fn execute(&mut self, line: &str) -> Result<String, String> {
        let words: Vec<&str> = line.split_whitespace().collect();
        match words[..] {
            ["insert", key, value] => found(self.insert(number(key)?, number(value)?)),
            ["remove", key] => found(self.remove(number(key)?)),
            ["find", key] => found(self.find(number(key)?)),
            ["first"] => found(self.first().map(entry)),
            ["last"] => found(self.last().map(entry)),
            ["after", key] => found(self.after(number(key)?).map(entry)),
            ["range", from, to] => {
                let to = number(to)?;
                let nodes = self.from(number(from)?);
                all(nodes.take_while(|node| node.key < to))
            }
            ["clear"] => {
                self.clear();
                Ok("done".to_owned())
            }
            ["length"] => Ok(self.length.to_string()),
            ["depth"] => Ok(depth(&self.top).to_string()),
            ["print"] if self.is_consistent() => all(self.from(i64::MIN)),
            ["print"] => Err("the tree is broken".to_owned()),
            _ => Err(format!("no such command: {line}")),
        }
    }
}

impl Node {
    /// Where keys are that are less, or those that are greater.
    fn side(&mut self, key: i64) -> &mut Link {
        if key < self.key {
            &mut self.less
        } else {
            &mut self.greater
        }
    }
}

/// Takes the node with the smallest key out of a subtree.
fn take_first(mut link: &mut Link) -> Link {
    while link.as_ref()?.less.is_some() {
        link = &mut link.as_mut()?.less;
    }
    let mut first = link.take()?;
    *link = first.greater.take();
    Some(first)
}

/// How many nodes are on the longest way down.
fn depth(link: &Link) -> usize {
    link.as_ref()
        .map_or(0, |node| 1 + depth(&node.less).max(depth(&node.greater)))
}

impl<'a> Iterator for Entries<'a> {
    type Item = &'a Node;

    fn next(&mut self) -> Option<&'a Node> {
        let node = self.open.pop()?;
        let mut at = node.greater.as_deref();
        while let Some(below) = at {
            self.open.push(below);
            at = below.less.as_deref();
        }
        Some(node)
    }
}

fn number<N: FromStr>(word: &str) -> Result<N, String> {
    word.parse().map_err(|_| format!("not a number: {word}"))
}

fn entry(node: &Node) -> String {
    format!("{}={}", node.key, node.value)
}

fn all<'a>(nodes: impl Iterator<Item = &'a Node>) -> Result<String, String> {
    Ok(nodes.map(entry).collect::<Vec<_>>().join(" "))
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
