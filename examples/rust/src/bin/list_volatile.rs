//! A linked list of numbers, changed by commands on standard input: one a line, each with one line of answer.
//!
//!     push N         puts a number in front
//!     append N       puts a number behind
//!     insert AT N    puts a number where AT others are before it
//!     pop            takes the first number
//!     remove N       takes the first number that is N
//!     find N         tells how many are before the first N
//!     reverse        turns the list round
//!     clear          takes all
//!     sum, length, print

use std::error::Error;
use std::fmt;
use std::io::stdin;

type Link = Option<Box<Node>>;

struct Node {
    value: i64,
    next: Link,
}

#[derive(Default)]
pub(crate) struct List {
    head: Link,
    length: usize,
}

/// The values of a list, from its head on.
pub(crate) struct Values<'a>(Option<&'a Node>);

impl List {
    /// Puts a value where `at` others are before it. Whether there are so many.
    pub(crate) fn insert(&mut self, at: usize, value: i64) -> bool {
        if at > self.length {
            return false;
        }
        let link = self.link(at);
        let next = link.take();
        *link = Some(Box::new(Node { value, next }));
        self.length += 1;
        true
    }

    /// The link that leads to the node with `at` others before it.
    fn link(&mut self, at: usize) -> &mut Link {
        let mut link = &mut self.head;
        for _ in 0..at {
            match link {
                Some(node) => link = &mut node.next,
                None => break,
            }
        }
        link
    }

    pub(crate) fn pop(&mut self) -> Option<i64> {
        let mut node = self.head.take()?;
        self.head = node.next.take();
        self.length -= 1;
        Some(node.value)
    }

    /// Takes the first node with this value. Whether there was one.
    fn remove(&mut self, value: i64) -> bool {
        let Some(at) = self.find(value) else {
            return false;
        };
        let link = self.link(at);
        if let Some(mut node) = link.take() {
            *link = node.next.take();
            self.length -= 1;
        }
        true
    }

    /// How many are before the first node with this value.
    fn find(&self, value: i64) -> Option<usize> {
        self.values().position(|found| found == value)
    }

    fn reverse(&mut self) {
        let mut rest = self.head.take();
        while let Some(mut node) = rest {
            rest = node.next.take();
            node.next = self.head.take();
            self.head = Some(node);
        }
    }

    /// Node by node: dropping the first one with all behind it would take the stack as deep as the list is long.
    fn clear(&mut self) {
        while self.pop().is_some() {}
    }

    pub(crate) fn values(&self) -> Values<'_> {
        Values(self.head.as_deref())
    }

    /// Whether the nodes are as many as the list says.
    fn is_consistent(&self) -> bool {
        self.values().count() == self.length
    }

    /// Does what a line asks for.
    fn execute(&mut self, line: &str) -> Result<String, String> {
        let words: Vec<&str> = line.split_whitespace().collect();
        match words[..] {
            ["push", value] => done(self.insert(0, number(value)?)),
            ["append", value] => done(self.insert(self.length, number(value)?)),
            ["insert", at, value] => done(self.insert(number(at)?, number(value)?)),
            ["pop"] => found(self.pop()),
            ["remove", value] => done(self.remove(number(value)?)),
            ["find", value] => found(self.find(number(value)?)),
            ["reverse"] => {
                self.reverse();
                done(true)
            }
            ["clear"] => {
                self.clear();
                done(true)
            }
            ["sum"] => Ok(self.values().sum::<i64>().to_string()),
            ["length"] => Ok(self.length.to_string()),
            ["print"] if self.is_consistent() => Ok(self.to_string()),
            ["print"] => Err("the list is broken".to_owned()),
            _ => Err(format!("no such command: {line}")),
        }
    }
}

impl Iterator for Values<'_> {
    type Item = i64;

    fn next(&mut self) -> Option<i64> {
        let node = self.0?;
        self.0 = node.next.as_deref();
        Some(node.value)
    }
}

impl fmt::Display for List {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, value) in self.values().enumerate() {
            let between = if at == 0 { "" } else { " " };
            write!(f, "{between}{value}")?;
        }
        Ok(())
    }
}

fn number<N: std::str::FromStr>(word: &str) -> Result<N, String> {
    word.parse().map_err(|_| format!("not a number: {word}"))
}

fn done(whether: bool) -> Result<String, String> {
    Ok(if whether { "done" } else { "no" }.to_owned())
}

fn found<T: ToString>(what: Option<T>) -> Result<String, String> {
    Ok(what.map_or_else(|| "none".to_owned(), |what| what.to_string()))
}

fn main() -> Result<(), Box<dyn Error>> {
    let mut list = List::default();
    for line in stdin().lines() {
        let line = line?;
        let answer = list.execute(&line);
        println!("{}", answer.unwrap_or_else(|error| error));
    }
    Ok(())
}
