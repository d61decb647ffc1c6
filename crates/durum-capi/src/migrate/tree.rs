//! A durum::map whose keys have changed, built anew: its nodes stay where they are, and hang together in the order that
//! the keys have now.

use std::cell::Cell;
use std::cmp::Ordering;
use std::ffi::{c_int, c_void};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::ptr;

use client::migration::{DAMAGED, NO_KEY, NewPuddles, Room, StoreResult};
use durum_format::types::Descriptor;

use super::MigratedMap;
use crate::guard::{Failure, Result};

type IsLess = unsafe extern "C" fn(*const c_void, *const c_void, *mut c_void) -> c_int;
type Outcome = StoreResult<std::result::Result<(), String>>;

/// The field of an entry that is its key.
const KEY: &str = "first";
/// Elements of a key that are told.
const TOLD_MAX: usize = 16;
/// Words for each node: where it is, and the numbers, from 1, of those before, behind and above it.
const WORDS: usize = 4;

/// How a map and its nodes are laid out.
pub(super) struct Tree {
    root: u64,
    size: u64,
    key: u64,
    left: u64,
    right: u64,
    up: u64,
    weight: u64,
    node: Descriptor,
    entry: Descriptor,
    is_less: IsLess,
    argument: usize,
}

impl Tree {
    /// The tree that a program declares.
    ///
    /// # Errors
    /// `Argument` for what lies in no map or no node, or in no entry.
    pub(super) fn of(
        said: &MigratedMap,
        map: &Descriptor,
        node: &Descriptor,
        entry: &Descriptor,
    ) -> Result<Self> {
        let is_in = |of: &Descriptor, at: &[u64]| {
            let layout = of.layout();
            let has = |at: &u64| at.is_multiple_of(8) && *at < layout.size && layout.size - at >= 8;
            layout.align >= 8 && at.iter().all(has)
        };
        let words = [said.left, said.right, said.up, said.weight];
        let is_laid_out = is_in(map, &[said.root, said.size])
            && is_in(node, &words)
            && said.key < node.layout().size
            && entry.is_value_of(KEY, &[]).is_some();
        match said.is_less {
            Some(is_less) if is_laid_out => Ok(Self {
                root: said.root,
                size: said.size,
                key: said.key,
                left: said.left,
                right: said.right,
                up: said.up,
                weight: said.weight,
                node: node.clone(),
                entry: entry.clone(),
                is_less,
                argument: said.argument.expose_provenance(),
            }),
            Some(_) => Err(Failure::argument(
                "a map has its words elsewhere than in it, or its entries have no key",
            )),
            None => Err(Failure::argument(
                "a map has no function that compares keys",
            )),
        }
    }

    /// Builds maps as this one.
    pub(super) fn build(&self) -> impl Fn(usize, &mut NewPuddles, &mut Room) -> Outcome + use<'_> {
        |address, new, room| self.rebuild(address, new, room)
    }

    /// The room that one takes, by its bytes, in a pool of so many.
    pub(super) fn room(&self) -> impl Fn(&[u8], u64) -> u64 + use<'_> {
        |map, most| {
            let count = map
                .get(self.size as usize..)
                .and_then(|rest| rest.first_chunk::<8>());
            let count = count.map_or(0, |count| u64::from_le_bytes(*count));
            match count <= most / self.node.layout().size.max(1) {
                true => count * (WORDS * 8) as u64,
                false => 0,
            }
        }
    }

    /// Builds the map at an address anew, which is mapped as its objects are, by what the nodes are now.
    pub(super) fn rebuild(&self, map: usize, new: &mut NewPuddles, room: &mut Room) -> Outcome {
        let map = map as u64;
        let (root, count) = (word(map + self.root), word(map + self.size));
        if (root == 0) != (count == 0) {
            return Ok(Err(DAMAGED.to_owned()));
        }
        if count == 0 {
            return Ok(Ok(()));
        }
        let size = self.node.layout().size;
        let bytes = count.checked_mul(size);
        if bytes.is_none_or(|bytes| bytes > new.bytes()) {
            return Ok(Err(DAMAGED.to_owned()));
        }
        let count = count as usize;
        let room = room.zeroed(WORDS * 8 * count)?;
        // SAFETY: any bytes are words; the room begins with a page.
        let (_, words, _) = unsafe { room.align_to_mut::<u64>() };
        let (nodes, links) = words.split_at_mut(count);
        if !self.find(root, nodes, new)? {
            return Ok(Err(DAMAGED.to_owned()));
        }
        if !self.entry.takes_any_bytes() {
            // What else is in an entry is compared by nobody.
            let is_value = |at: &u64| {
                let from = self.key.min(size);
                let rest = (size - from) as usize;
                // SAFETY: an object of so many bytes is there; nobody writes the map meanwhile.
                let bytes = unsafe { std::slice::from_raw_parts(place(at + from), rest) };
                self.entry.is_value_of(KEY, bytes) == Some(true)
            };
            if !nodes.iter().all(is_value) {
                return Ok(Err(NO_KEY.to_owned()));
            }
        }
        if let Err(why) = self.sort(nodes) {
            return Ok(Err(why));
        }
        let first = self.hang(nodes, links);
        for (at, node) in nodes.iter().enumerate() {
            for (link, offset) in [self.left, self.right, self.up].into_iter().enumerate() {
                let to = address(nodes, links[3 * at + link]);
                if word(node + offset) != to {
                    new.write(node + offset, &to.to_le_bytes())?;
                }
            }
        }
        if root != nodes[first] {
            new.write(map + self.root, &nodes[first].to_le_bytes())?;
        }
        Ok(Ok(()))
    }

    /// Finds all nodes; false where there are more or fewer than the map says, or one is no object.
    fn find(&self, root: u64, nodes: &mut [u64], new: &mut NewPuddles) -> StoreResult<bool> {
        let size = self.node.layout().size;
        let align = self.node.layout().align.max(1);
        let (mut found, mut looked) = (1, 0);
        nodes[0] = root;
        while looked < found {
            let node = nodes[looked];
            looked += 1;
            let has_room = new.object(node)?.is_some_and(|has| size <= has);
            if !has_room || !node.is_multiple_of(align) || !new.claim(size) {
                return Ok(false);
            }
            for below in [word(node + self.left), word(node + self.right)] {
                match nodes.get_mut(found) {
                    _ if below == 0 => continue,
                    Some(place) => *place = below,
                    // More than the map says, as in a circle.
                    None => return Ok(false),
                }
                found += 1;
            }
        }
        Ok(found == nodes.len())
    }

    /// Puts nodes in the order of their keys.
    fn sort(&self, nodes: &mut [u64]) -> std::result::Result<(), String> {
        let failed = Cell::new(None);
        let is_less = |a: u64, b: u64| {
            if failed.get().is_some() {
                return false;
            }
            let argument = ptr::with_exposed_provenance_mut::<c_void>(self.argument);
            let (a, b) = (place(a + self.key), place(b + self.key));
            // SAFETY: keys of objects that are there, as the map's type says, and what the program gave with it.
            match unsafe { (self.is_less)(a.cast(), b.cast(), argument) } {
                0 => false,
                1 => true,
                other => {
                    failed.set(Some(other));
                    false
                }
            }
        };
        let compared = |a: &u64, b: &u64| match (is_less(*a, *b), is_less(*b, *a)) {
            (true, false) => Ordering::Less,
            (false, true) => Ordering::Greater,
            _ => Ordering::Equal,
        };
        // One that is no order may be told so by a panic.
        let sorted = catch_unwind(AssertUnwindSafe(|| {
            nodes.sort_unstable_by(compared);
            let mut pairs = nodes.windows(2);
            pairs
                .find(|pair| compared(&pair[0], &pair[1]) != Ordering::Less)
                .map(|pair| (pair[0], pair[1]))
        }));
        match (failed.get(), sorted) {
            (Some(gave), _) => Err(format!("the comparison of its keys gave {gave}")),
            (None, Err(_)) => Err("its keys have no order".to_owned()),
            // One node that is there twice has one key.
            (None, Ok(Some((one, other)))) if one == other => Err(DAMAGED.to_owned()),
            (None, Ok(Some((same, _)))) => Err(self.doubled(same)),
            (None, Ok(None)) => Ok(()),
        }
    }

    fn doubled(&self, node: u64) -> String {
        // SAFETY: an object of so many bytes is there; nobody writes the map meanwhile.
        let bytes =
            unsafe { std::slice::from_raw_parts(place(node), self.node.layout().size as usize) };
        let told = self.node.value(bytes, TOLD_MAX);
        let entry = told.to_json();
        format!("two of its keys have become the same one: {entry}")
    }

    /// Hangs nodes that are in order below each other, by their weights; gives the first one. A node's links are the
    /// numbers, from 1, of those before, behind and above it.
    fn hang(&self, nodes: &[u64], links: &mut [u64]) -> usize {
        const LEFT: usize = 0;
        const RIGHT: usize = 1;
        const UP: usize = 2;
        // The way from the first one to the last one goes to the right.
        let mut last: Option<usize> = None;
        for (at, node) in nodes.iter().enumerate() {
            let weight = word(node + self.weight);
            let mut below = None;
            while let Some(above) = last
                && word(nodes[above] + self.weight) < weight
            {
                below = Some(above);
                last = links[3 * above + UP].checked_sub(1).map(|up| up as usize);
            }
            if let Some(below) = below {
                links[3 * at + LEFT] = below as u64 + 1;
                links[3 * below + UP] = at as u64 + 1;
            }
            if let Some(above) = last {
                links[3 * above + RIGHT] = at as u64 + 1;
                links[3 * at + UP] = above as u64 + 1;
            }
            last = Some(at);
        }
        let mut first = nodes.len() - 1;
        while let Some(above) = links[3 * first + UP].checked_sub(1) {
            first = above as usize;
        }
        first
    }
}

fn place(address: u64) -> *const u8 {
    ptr::with_exposed_provenance(address as usize)
}

/// A word of an object of the new puddles.
fn word(address: u64) -> u64 {
    // SAFETY: the object is there, and the word in it lies at a multiple of its size; nobody writes it meanwhile.
    unsafe { place(address).cast::<u64>().read() }
}

fn address(nodes: &[u64], link: u64) -> u64 {
    let at = link.checked_sub(1).map(|at| at as usize);
    at.and_then(|at| nodes.get(at)).copied().unwrap_or(0)
}
