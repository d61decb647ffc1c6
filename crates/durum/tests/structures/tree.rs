//! A red-black tree with pointers to parents.

use std::ptr;

use durum::{Error, Tx};

use crate::{Contents, Structure, store};

#[repr(C)]
pub struct Node {
    key: u64,
    value: u64,
    /// Left and right.
    below: [*mut Node; 2],
    above: *mut Node,
    red: u64,
}
durum::describe!(Node as "structures.tree.node" { key, value, below, above, red });

#[repr(C)]
pub struct Tree {
    root: *mut Node,
    count: u64,
}
durum::describe!(Tree as "structures.tree" { root, count });

type Done = Result<(), Error>;

unsafe fn is_red(node: *const Node) -> bool {
    unsafe { !node.is_null() && (*node).red != 0 }
}

unsafe fn paint(tx: &Tx, node: *mut Node, red: bool) -> Done {
    unsafe { store(tx, &raw mut (*node).red, u64::from(red)) }
}

unsafe fn link(node: *mut Node, right: bool) -> *mut *mut Node {
    unsafe {
        (&raw mut (*node).below)
            .cast::<*mut Node>()
            .add(usize::from(right))
    }
}

unsafe fn child(node: *mut Node, right: bool) -> *mut Node {
    unsafe { *link(node, right) }
}

unsafe fn is_right(node: *mut Node) -> bool {
    unsafe { child((*node).above, true) == node }
}

unsafe fn find(tree: *mut Tree, key: u64) -> *mut Node {
    unsafe {
        let mut at = (*tree).root;
        while !at.is_null() && (*at).key != key {
            at = child(at, (*at).key < key);
        }
        at
    }
}

/// What leads to `node` leads to `other` now.
unsafe fn replace(tree: *mut Tree, tx: &Tx, node: *mut Node, other: *mut Node) -> Done {
    unsafe {
        let above = (*node).above;
        match above.is_null() {
            true => store(tx, &raw mut (*tree).root, other)?,
            false => store(tx, link(above, is_right(node)), other)?,
        }
        match other.is_null() {
            true => Ok(()),
            false => store(tx, &raw mut (*other).above, above),
        }
    }
}

/// Turns `node` down to the right or to the left; its other child comes up.
unsafe fn rotate(tree: *mut Tree, tx: &Tx, node: *mut Node, right: bool) -> Done {
    unsafe {
        let up = child(node, !right);
        let moved = child(up, right);
        replace(tree, tx, node, up)?;
        store(tx, link(node, !right), moved)?;
        if !moved.is_null() {
            store(tx, &raw mut (*moved).above, node)?;
        }
        store(tx, link(up, right), node)?;
        store(tx, &raw mut (*node).above, up)
    }
}

unsafe fn balance_after_put(tree: *mut Tree, tx: &Tx, mut node: *mut Node) -> Done {
    unsafe {
        while is_red((*node).above) {
            let mut parent = (*node).above;
            let grand = (*parent).above;
            let side = is_right(parent);
            let uncle = child(grand, !side);
            if is_red(uncle) {
                paint(tx, parent, false)?;
                paint(tx, uncle, false)?;
                paint(tx, grand, true)?;
                node = grand;
                continue;
            }
            if is_right(node) != side {
                node = parent;
                rotate(tree, tx, node, side)?;
                parent = (*node).above;
            }
            paint(tx, parent, false)?;
            paint(tx, grand, true)?;
            rotate(tree, tx, grand, !side)?;
        }
        match is_red((*tree).root) {
            true => paint(tx, (*tree).root, false),
            false => Ok(()),
        }
    }
}

unsafe fn take_out(tree: *mut Tree, tx: &Tx, node: *mut Node) -> Done {
    unsafe {
        let (left, right) = (child(node, false), child(node, true));
        let lost_black;
        // What came into the place that was lost, and what is above it.
        let (filled, above);
        if left.is_null() || right.is_null() {
            filled = if left.is_null() { right } else { left };
            above = (*node).above;
            lost_black = !is_red(node);
            replace(tree, tx, node, filled)?;
        } else {
            let mut next = right;
            while !child(next, false).is_null() {
                next = child(next, false);
            }
            lost_black = !is_red(next);
            filled = child(next, true);
            if next == right {
                above = next;
            } else {
                above = (*next).above;
                replace(tree, tx, next, filled)?;
                store(tx, link(next, true), right)?;
                store(tx, &raw mut (*right).above, next)?;
            }
            replace(tree, tx, node, next)?;
            store(tx, link(next, false), left)?;
            store(tx, &raw mut (*left).above, next)?;
            paint(tx, next, is_red(node))?;
        }
        match lost_black {
            true => balance_after_remove(tree, tx, filled, above),
            false => Ok(()),
        }
    }
}

unsafe fn balance_after_remove(
    tree: *mut Tree,
    tx: &Tx,
    mut node: *mut Node,
    mut above: *mut Node,
) -> Done {
    unsafe {
        while !above.is_null() && !is_red(node) {
            let side = child(above, true) == node;
            let mut sibling = child(above, !side);
            if is_red(sibling) {
                paint(tx, sibling, false)?;
                paint(tx, above, true)?;
                rotate(tree, tx, above, side)?;
                sibling = child(above, !side);
            }
            if !is_red(child(sibling, false)) && !is_red(child(sibling, true)) {
                paint(tx, sibling, true)?;
                node = above;
                above = (*node).above;
                continue;
            }
            if !is_red(child(sibling, !side)) {
                paint(tx, child(sibling, side), false)?;
                paint(tx, sibling, true)?;
                rotate(tree, tx, sibling, !side)?;
                sibling = child(above, !side);
            }
            paint(tx, sibling, is_red(above))?;
            paint(tx, above, false)?;
            paint(tx, child(sibling, !side), false)?;
            return rotate(tree, tx, above, side);
        }
        match is_red(node) {
            true => paint(tx, node, false),
            false => Ok(()),
        }
    }
}

/// The number of black nodes on every way down.
unsafe fn check(node: *mut Node, above: *mut Node, found: &mut Contents) -> Result<u64, String> {
    unsafe {
        if node.is_null() {
            return Ok(0);
        }
        let key = (*node).key;
        if (*node).above != above {
            return Err(format!("{key} has another parent"));
        }
        if is_red(node) && is_red(above) {
            return Err(format!("{key} is red below red"));
        }
        let left = check(child(node, false), node, found)?;
        if found.last_key_value().is_some_and(|(last, _)| *last >= key) {
            return Err(format!("{key} comes after {found:?}"));
        }
        found.insert(key, (*node).value);
        let right = check(child(node, true), node, found)?;
        match left == right {
            true => Ok(left + u64::from(!is_red(node))),
            false => Err(format!("below {key} are {left} and {right} black nodes")),
        }
    }
}

impl Structure for Tree {
    unsafe fn make(_: *mut Self, _: &Tx) -> Done {
        Ok(())
    }

    unsafe fn put(this: *mut Self, tx: &Tx, key: u64, value: u64) -> Result<bool, Error> {
        unsafe {
            let (mut above, mut at) = (ptr::null_mut::<Node>(), (*this).root);
            while !at.is_null() {
                if (*at).key == key {
                    store(tx, &raw mut (*at).value, value)?;
                    return Ok(false);
                }
                above = at;
                at = child(at, (*at).key < key);
            }
            let node = tx.alloc::<Node>()?;
            node.write(Node {
                key,
                value,
                below: [ptr::null_mut(); 2],
                above,
                red: 1,
            });
            match above.is_null() {
                true => store(tx, &raw mut (*this).root, node)?,
                false => store(tx, link(above, (*above).key < key), node)?,
            }
            balance_after_put(this, tx, node)?;
            store(tx, &raw mut (*this).count, (*this).count + 1)?;
            Ok(true)
        }
    }

    unsafe fn remove(this: *mut Self, tx: &Tx, key: u64) -> Result<bool, Error> {
        unsafe {
            let found = find(this, key);
            if found.is_null() {
                return Ok(false);
            }
            take_out(this, tx, found)?;
            store(tx, &raw mut (*this).count, (*this).count - 1)?;
            tx.free(found)?;
            Ok(true)
        }
    }

    unsafe fn read(this: *const Self) -> Result<Contents, String> {
        let mut found = Contents::new();
        unsafe {
            check((*this).root, ptr::null_mut(), &mut found)?;
            if is_red((*this).root) {
                return Err("the root is red".into());
            }
            match (*this).count == found.len() as u64 {
                true => Ok(found),
                false => Err(format!("{} is not the length of {found:?}", (*this).count)),
            }
        }
    }
}
