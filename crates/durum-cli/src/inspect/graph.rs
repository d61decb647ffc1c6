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
    /// Without the program's data.
    pub(super) redact: bool,
}

/// An object that is shown.
pub(super) struct Node {
    pub(super) found: Found,
    /// The object with the pointer that led here first; the root has none.
    parent: Option<usize>,
    depth: usize,
}

/// The objects that are shown, and what their pointers lead to.
#[derive(Default)]
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

/// On the way from the root.
struct Walk<'w, 'p> {
    pool: &'w PoolView<'p>,
    limits: &'w Limits,
    graph: Graph,
    /// Nodes whose pointers were not followed yet.
    queue: VecDeque<usize>,
}

impl Walk<'_, '_> {
    fn add(&mut self, start: u64, parent: Option<usize>, depth: usize) -> Result<(), Failure> {
        let mut found = self.pool.read(start, ELEMENTS_READ_MAX)?;
        shorten(&mut found.value, self.limits.elements);
        if self.limits.redact {
            found.value = found.value.redact();
        }
        let index = self.graph.nodes.len();
        self.queue.push_back(index);
        self.graph.by_address.insert(start, index);
        self.graph.nodes.push(Node {
            found,
            parent,
            depth,
        });
        Ok(())
    }

    fn follow(&mut self, index: usize) -> Result<(), Failure> {
        let depth = self.graph.nodes[index].depth + 1;
        for (address, strength) in pointers_of(&self.graph.nodes[index].found.value) {
            let graph = &mut self.graph;
            let target = graph.targets.entry(address);
            match target.or_insert_with(|| self.pool.target(address)) {
                Target::Object { object, .. } => {
                    let start = object.start;
                    if graph.by_address.contains_key(&start) || strength == Strength::Weak {
                        continue;
                    }
                    if depth > self.limits.depth || graph.nodes.len() >= self.limits.objects {
                        graph.cut += 1;
                        continue;
                    }
                    self.add(start, Some(index), depth)?;
                }
                Target::Damaged(why) => graph.damages.push(why.clone()),
                Target::Other(_) => {}
            }
        }
        Ok(())
    }
}

impl Graph {
    /// Follows pointers from the root object.
    pub(super) fn from_root(pool: &PoolView<'_>, limits: &Limits) -> Result<Self, Failure> {
        let mut walk = Walk {
            pool,
            limits,
            graph: Self::default(),
            queue: VecDeque::new(),
        };
        if let Some(root) = pool.root()? {
            walk.add(root, None, 0)?;
        }
        while let Some(index) = walk.queue.pop_front() {
            walk.follow(index)?;
        }
        let mut graph = walk.graph;
        graph.names = vec![0; graph.nodes.len()];
        if !graph.nodes.is_empty() {
            graph.name(0, &mut 1);
        }
        Ok(graph)
    }

    /// Names a node and those that are printed in it.
    fn name(&mut self, index: usize, next: &mut usize) {
        self.names[index] = *next;
        *next += 1;
        for (address, strength) in pointers_of(&self.nodes[index].found.value) {
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
            Some(Target::Object { object, offset }) => match self.by_address.get(&object.start) {
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

/// The pointers in a value that are not null, in the order in which they are printed.
fn pointers_of(value: &Value) -> Vec<(u64, Strength)> {
    match value {
        Value::Pointer {
            address, strength, ..
        } if *address != 0 => vec![(*address, *strength)],
        Value::Struct { fields, .. } | Value::Case { fields, .. } => {
            let values = fields.iter().map(|(_, value)| value);
            values.flat_map(pointers_of).collect()
        }
        Value::Array { elements, .. } => elements.iter().flat_map(pointers_of).collect(),
        _ => Vec::new(),
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
