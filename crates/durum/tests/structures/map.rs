//! A hash map with chains: one that doubles its buckets when it is full, and one with a fixed number of them.

use durum::{Description, Error, Pool, Tx};

use crate::{Contents, Structure, store};

#[repr(C)]
pub struct Node {
    key: u64,
    value: u64,
    next: *mut Node,
}
durum::describe!(Node as "structures.map.node" { key, value, next });

/// Tables are several of these in a row.
#[repr(C)]
pub struct Bucket {
    first: *mut Node,
}
durum::describe!(Bucket as "structures.map.bucket" { first });

/// Bucket by number, of a table of this length.
#[repr(C)]
pub struct Table {
    buckets: *mut Bucket,
    length: u64,
    count: u64,
}
durum::describe!(Table as "structures.map.table" { buckets, length, count });

unsafe fn allocate(table: *mut Table, tx: &Tx, length: u64) -> Result<*mut Bucket, Error> {
    let pool = Pool::holding(table.addr())?;
    let id = pool.ensure_described(&Description::of::<Bucket>())?;
    let bytes = length as usize * size_of::<Bucket>();
    let buckets = tx.alloc_bytes(&pool, id, bytes, align_of::<Bucket>())?;
    // Fresh: nothing to announce.
    unsafe { buckets.write_bytes(0, bytes) };
    Ok(buckets.cast())
}

unsafe fn bucket(table: *const Table, key: u64) -> *mut Bucket {
    let hash = key.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    unsafe {
        (*table)
            .buckets
            .add(((hash ^ hash >> 32) % (*table).length) as usize)
    }
}

/// The pointer to the key's node, or the null pointer at the end of its chain.
unsafe fn find(table: *mut Table, key: u64) -> *mut *mut Node {
    unsafe {
        let mut link = &raw mut (*bucket(table, key)).first;
        while !(*link).is_null() && (**link).key != key {
            link = &raw mut (**link).next;
        }
        link
    }
}

unsafe fn make(table: *mut Table, tx: &Tx, length: u64) -> Result<(), Error> {
    unsafe {
        tx.add(table)?;
        (*table).buckets = allocate(table, tx, length)?;
        (*table).length = length;
        (*table).count = 0;
    }
    Ok(())
}

unsafe fn grow(table: *mut Table, tx: &Tx) -> Result<(), Error> {
    unsafe {
        let (old, length) = ((*table).buckets, (*table).length);
        tx.add(table)?;
        (*table).buckets = allocate(table, tx, 2 * length)?;
        (*table).length = 2 * length;
        for number in 0..length as usize {
            let mut node = (*old.add(number)).first;
            while !node.is_null() {
                let next = (*node).next;
                let place = bucket(table, (*node).key);
                store(tx, &raw mut (*node).next, (*place).first)?;
                store(tx, &raw mut (*place).first, node)?;
                node = next;
            }
        }
        tx.free(old)
    }
}

unsafe fn put(table: *mut Table, tx: &Tx, key: u64, value: u64) -> Result<bool, Error> {
    unsafe {
        let found = *find(table, key);
        if !found.is_null() {
            store(tx, &raw mut (*found).value, value)?;
            return Ok(false);
        }
        let place = &raw mut (*bucket(table, key)).first;
        let node = tx.alloc::<Node>()?;
        node.write(Node {
            key,
            value,
            next: *place,
        });
        store(tx, place, node)?;
        store(tx, &raw mut (*table).count, (*table).count + 1)?;
    }
    Ok(true)
}

unsafe fn remove(table: *mut Table, tx: &Tx, key: u64) -> Result<bool, Error> {
    unsafe {
        let link = find(table, key);
        let found = *link;
        if found.is_null() {
            return Ok(false);
        }
        store(tx, link, (*found).next)?;
        store(tx, &raw mut (*table).count, (*table).count - 1)?;
        tx.free(found)?;
    }
    Ok(true)
}

unsafe fn read(table: *const Table) -> Result<Contents, String> {
    let mut found = Contents::new();
    unsafe {
        for number in 0..(*table).length as usize {
            let place = (*table).buckets.add(number);
            let mut node = (*place).first;
            while !node.is_null() {
                if bucket(table, (*node).key) != place {
                    return Err(format!("{} lies in bucket {number}", (*node).key));
                }
                if found.insert((*node).key, (*node).value).is_some() {
                    return Err(format!("{} is there twice", (*node).key));
                }
                node = (*node).next;
            }
        }
        match (*table).count == found.len() as u64 {
            true => Ok(found),
            false => Err(format!("{} is not the length of {found:?}", (*table).count)),
        }
    }
}

/// Doubles its buckets when there are more entries than that.
#[repr(C)]
pub struct Resizable {
    table: Table,
}
durum::describe!(Resizable as "structures.map.resizable" { table });

/// Has 2,048 buckets.
#[repr(C)]
pub struct Fixed {
    table: Table,
}
durum::describe!(Fixed as "structures.map.fixed" { table });

impl Structure for Resizable {
    unsafe fn make(this: *mut Self, tx: &Tx) -> Result<(), Error> {
        unsafe { make(&raw mut (*this).table, tx, 4) }
    }

    unsafe fn put(this: *mut Self, tx: &Tx, key: u64, value: u64) -> Result<bool, Error> {
        unsafe {
            let table = &raw mut (*this).table;
            let is_new = put(table, tx, key, value)?;
            if (*table).count > (*table).length {
                grow(table, tx)?;
            }
            Ok(is_new)
        }
    }

    unsafe fn remove(this: *mut Self, tx: &Tx, key: u64) -> Result<bool, Error> {
        unsafe { remove(&raw mut (*this).table, tx, key) }
    }

    unsafe fn read(this: *const Self) -> Result<Contents, String> {
        unsafe { read(&raw const (*this).table) }
    }
}

impl Structure for Fixed {
    unsafe fn make(this: *mut Self, tx: &Tx) -> Result<(), Error> {
        unsafe { make(&raw mut (*this).table, tx, 2048) }
    }

    unsafe fn put(this: *mut Self, tx: &Tx, key: u64, value: u64) -> Result<bool, Error> {
        unsafe { put(&raw mut (*this).table, tx, key, value) }
    }

    unsafe fn remove(this: *mut Self, tx: &Tx, key: u64) -> Result<bool, Error> {
        unsafe { remove(&raw mut (*this).table, tx, key) }
    }

    unsafe fn read(this: *const Self) -> Result<Contents, String> {
        unsafe { read(&raw const (*this).table) }
    }
}
