//! Follows pointers from the root, the nearest objects first, so that the limits cut what is far.

use std::collections::{BTreeMap, VecDeque};

use durum_format::types::{Strength, Value};

use super::pool::{Found, PoolView, Target};
use crate::failure::Failure;

/// Elements read of an array, whatever is shown of it.
const ELEMENTS_READ_MAX: usize = 1 << 16;
/// Bytes that are shown at least, and how many for each element.
const BYTES_MIN: usize = 64;
const BYTES_PER_ELEMENT: usize = 4;

/// How much is followed and shown.
pub(super) struct Limits {
    /// Pointers in a row.
    pub(super) depth: usize,
    /// Objects.
    pub(super) objects: usize,
    /// Elements of an array, null pointers not counted.
    pub(super) elements: usize,
}

/// An object that is shown.
pub(super) struct Node {
    pub(super) found: Found,
    /// The object with the pointer that led here first; the root has none.
    parent: Option<usize>,
    depth: usize,
}

/// The objects that are shown, and what their pointers lead to.
pub(super) struct Graph {
    pub(super) nodes: Vec<Node>,
    /// Where nodes begin.
    by_address: BTreeMap<u64, usize>,
    /// What each pointer leads to, by its value.
    targets: BTreeMap<u64, Target>,
    /// The name of each node, counted from 1 in the order in which they are printed.
    names: Vec<usize>,
    /// Pointers to objects that are not shown because of the limits.
    pub(super) cut: usize,
    pub(super) damages: Vec<String>,
}

/// What a pointer is printed as.
pub(super) enum Link<'a> {
    /// To an object that is shown: which, how far into it, and whether it is shown in this place.
    Node {
        index: usize,
        offset: u64,
        is_here: bool,
    },
    /// To an object that the limits cut.
    Cut,
    /// To something else, in words.
    Other(&'a str),
}

impl Graph {
    /// Follows pointers from the root object.
    pub(super) fn from_root(
        pool: &PoolView<'_>,
        limits: &Limits,
        redact: bool,
    ) -> Result<Self, Failure> {
        let mut graph = Self {
            nodes: Vec::new(),
            by_address: BTreeMap::new(),
            targets: BTreeMap::new(),
            names: Vec::new(),
            cut: 0,
            damages: Vec::new(),
        };
        let mut queue = VecDeque::new();
        if let Some(root) = pool.root()? {
            graph.add(pool, root, None, 0, limits, redact, &mut queue)?;
        }
        while let Some(index) = queue.pop_front() {
            graph.follow(pool, index, limits, redact, &mut queue)?;
        }
        graph.names = vec![0; graph.nodes.len()];
        if !graph.nodes.is_empty() {
            let mut next = 1;
            graph.name(0, &mut next);
        }
        Ok(graph)
    }

    #[expect(
        clippy::too_many_arguments,
        reason = "the state of one walk, which only two functions share"
    )]
    fn add(
        &mut self,
        pool: &PoolView<'_>,
        start: u64,
        parent: Option<usize>,
        depth: usize,
        limits: &Limits,
        redact: bool,
        queue: &mut VecDeque<usize>,
    ) -> Result<(), Failure> {
        let mut found = pool.read(start, ELEMENTS_READ_MAX)?;
        shorten(&mut found.value, limits.elements);
        if redact {
            found.value = found.value.redact();
        }
        queue.push_back(self.nodes.len());
        self.by_address.insert(start, self.nodes.len());
        self.nodes.push(Node {
            found,
            parent,
            depth,
        });
        Ok(())
    }

    fn follow(
        &mut self,
        pool: &PoolView<'_>,
        index: usize,
        limits: &Limits,
        redact: bool,
        queue: &mut VecDeque<usize>,
    ) -> Result<(), Failure> {
        let depth = self.nodes[index].depth + 1;
        let mut pointers = Vec::new();
        pointers_of(&self.nodes[index].found.value, &mut |address, strength| {
            pointers.push((address, strength))
        });
        for (address, strength) in pointers {
            let target = self
                .targets
                .entry(address)
                .or_insert_with(|| pool.target(address));
            match target {
                Target::Object { start, .. } => {
                    let start = *start;
                    if self.by_address.contains_key(&start) || strength == Strength::Weak {
                        continue;
                    }
                    if depth > limits.depth || self.nodes.len() >= limits.objects {
                        self.cut += 1;
                        continue;
                    }
                    self.add(pool, start, Some(index), depth, limits, redact, queue)?;
                }
                Target::Damaged(why) => self.damages.push(why.clone()),
                Target::Other(_) => {}
            }
        }
        Ok(())
    }

    /// Names a node and those that are printed in it.
    fn name(&mut self, index: usize, next: &mut usize) {
        self.names[index] = *next;
        *next += 1;
        let mut pointers = Vec::new();
        pointers_of(&self.nodes[index].found.value, &mut |address, strength| {
            pointers.push((address, strength))
        });
        for (address, strength) in pointers {
            if let Link::Node {
                index: child,
                is_here: true,
                ..
            } = self.link(index, address, strength)
                && self.names[child] == 0
            {
                self.name(child, next);
            }
        }
    }

    /// What a pointer in a node leads to.
    pub(super) fn link(&self, from: usize, address: u64, strength: Strength) -> Link<'_> {
        match self.targets.get(&address) {
            Some(Target::Object { start, offset }) => match self.by_address.get(start) {
                Some(&index) => Link::Node {
                    index,
                    offset: *offset,
                    is_here: strength == Strength::Strong && self.nodes[index].parent == Some(from),
                },
                None => Link::Cut,
            },
            Some(Target::Other(what) | Target::Damaged(what)) => Link::Other(what),
            None => Link::Cut,
        }
    }

    /// The number that a node goes by.
    pub(super) fn number(&self, index: usize) -> usize {
        self.names[index]
    }

    /// Whether `ancestor` is `node`, or led to it.
    pub(super) fn is_ancestor(&self, ancestor: usize, node: usize) -> bool {
        std::iter::successors(Some(node), |node| self.nodes[*node].parent)
            .any(|node| node == ancestor)
    }
}

/// Calls `see` for each pointer in a value that is not null, in the order in which they are printed.
fn pointers_of(value: &Value, see: &mut impl FnMut(u64, Strength)) {
    match value {
        Value::Pointer {
            address, strength, ..
        } if *address != 0 => see(*address, *strength),
        Value::Struct { fields, .. } | Value::Case { fields, .. } => {
            fields.iter().for_each(|(_, value)| pointers_of(value, see));
        }
        Value::Array { elements, .. } => elements.iter().for_each(|value| pointers_of(value, see)),
        _ => {}
    }
}

pub(super) fn is_null(value: &Value) -> bool {
    matches!(value, Value::Pointer { address: 0, .. })
}

/// Leaves off what is not to be shown: elements behind the first `limit` that are not null pointers.
fn shorten(value: &mut Value, limit: usize) {
    match value {
        Value::Struct { fields, .. } | Value::Case { fields, .. } => {
            fields
                .iter_mut()
                .for_each(|(_, value)| shorten(value, limit));
        }
        Value::Array { elements, omitted } => {
            let mut shown = 0;
            let len = elements.iter().take_while(|value| {
                shown += usize::from(!is_null(value));
                shown <= limit
            });
            let len = len.count();
            *omitted += (elements.len() - len) as u64;
            elements.truncate(len);
            elements.iter_mut().for_each(|value| shorten(value, limit));
        }
        Value::Bytes { bytes, omitted } => {
            let len = bytes
                .len()
                .min(limit.saturating_mul(BYTES_PER_ELEMENT).max(BYTES_MIN));
            *omitted += (bytes.len() - len) as u64;
            bytes.truncate(len);
        }
        _ => {}
    }
}
