//! A sorted linked list.

use durum::{Error, Tx};

use crate::{Contents, Structure, store};

#[repr(C)]
pub struct Node {
    key: u64,
    value: u64,
    next: *mut Node,
}
durum::describe!(Node as "structures.list.node" { key, value, next });

#[repr(C)]
pub struct List {
    first: *mut Node,
    count: u64,
}
durum::describe!(List as "structures.list" { first, count });

/// The pointer to the first node that is not before the key.
unsafe fn find(list: *mut List, key: u64) -> *mut *mut Node {
    unsafe {
        let mut link = &raw mut (*list).first;
        while !(*link).is_null() && (**link).key < key {
            link = &raw mut (**link).next;
        }
        link
    }
}

impl Structure for List {
    unsafe fn make(_: *mut Self, _: &Tx) -> Result<(), Error> {
        Ok(())
    }

    unsafe fn put(this: *mut Self, tx: &Tx, key: u64, value: u64) -> Result<bool, Error> {
        unsafe {
            let link = find(this, key);
            let next = *link;
            if !next.is_null() && (*next).key == key {
                store(tx, &raw mut (*next).value, value)?;
                return Ok(false);
            }
            let node = tx.alloc::<Node>()?;
            node.write(Node { key, value, next });
            store(tx, link, node)?;
            store(tx, &raw mut (*this).count, (*this).count + 1)?;
            Ok(true)
        }
    }

    unsafe fn remove(this: *mut Self, tx: &Tx, key: u64) -> Result<bool, Error> {
        unsafe {
            let link = find(this, key);
            let found = *link;
            if found.is_null() || (*found).key != key {
                return Ok(false);
            }
            store(tx, link, (*found).next)?;
            store(tx, &raw mut (*this).count, (*this).count - 1)?;
            tx.free(found)?;
            Ok(true)
        }
    }

    unsafe fn read(this: *const Self) -> Result<Contents, String> {
        let mut found = Contents::new();
        unsafe {
            let mut at = (*this).first;
            while !at.is_null() {
                if found
                    .last_key_value()
                    .is_some_and(|(last, _)| *last >= (*at).key)
                {
                    return Err(format!("{} comes after {found:?}", (*at).key));
                }
                found.insert((*at).key, (*at).value);
                at = (*at).next;
            }
            match (*this).count == found.len() as u64 {
                true => Ok(found),
                false => Err(format!("{} is not the length of {found:?}", (*this).count)),
            }
        }
    }
}
