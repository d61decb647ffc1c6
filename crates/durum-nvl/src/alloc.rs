//! Allocations and the root.

use std::sync::atomic::Ordering;

use durum::{Durability, Engine, Result, StoreError, Tx};

use crate::changes;
use crate::collect;
use crate::fatal::{Location, OrFatal, fatal};
use crate::heap::Heap;
use crate::layout::{FRESH, HEADER, Header, LISTED, PINNED, field, word};
use crate::object::Object;
use crate::store::{count_strong, target};
use crate::store_tx::StoreTx;
use crate::tx::{self, with_running};
use crate::types::Declared;
use crate::zero_list;

/// A larger allocation is durable at once where that saves its way through the log: on Shadow.
const LARGE: usize = 64 << 10;
/// As much as the addresses of a store. What is larger has no room, and is not even prepared.
const LARGE_MAX: usize = 2 << 40;
/// What large allocations are filled with.
static ZEROS: [u8; 64 << 10] = [0; 64 << 10];

/// How long an allocation lasts.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Lifetime {
    /// As long as counted pointers lead to it, or the program's own.
    Counted,
    /// As long as the heap: pointers to it are not counted.
    Pinned,
}

/// `count` elements in a row, zeroed: the address of the first.
pub(crate) fn allocate(
    heap: &Heap,
    count: usize,
    size: usize,
    ty: &'static Declared,
    lifetime: Lifetime,
    at: Location,
) -> usize {
    let bytes = count
        .checked_mul(size)
        .and_then(|bytes| bytes.checked_add(ty.info.data));
    let Some(bytes) = bytes.filter(|_| size == ty.info.size) else {
        fatal!(
            at,
            "{count} elements of {size} bytes of type {} in heap {heap}",
            ty.info.name
        );
    };
    let wanted = Wanted {
        heap,
        count,
        bytes,
        ty,
        lifetime,
    };
    let made = if tx::is_running() {
        with_running(|running| {
            running.check_named(heap, at);
            let object = Tx::with_running(|tx| wanted.place(tx))?;
            if lifetime == Lifetime::Counted {
                running.pending.made(heap, object);
            }
            Ok(object.data())
        })
    } else {
        collect::under_pressure(heap);
        match wanted.in_own_transaction(at) {
            Err(error) if is_full(&error) && collect::collect(heap) > 0 => {
                wanted.in_own_transaction(at)
            }
            made => made,
        }
    };
    let doing = format_args!("heap {heap} has no room for {bytes} bytes").to_string();
    made.or_fatal(at, &doing)
}

fn is_full(error: &durum::Error) -> bool {
    matches!(
        error,
        durum::Error::Store(StoreError::StorageFull { .. } | StoreError::AddressesExhausted { .. })
    )
}

/// An allocation that is to be made.
struct Wanted<'h> {
    heap: &'h Heap,
    count: usize,
    /// Of all elements and the header.
    bytes: usize,
    ty: &'static Declared,
    lifetime: Lifetime,
}

impl Wanted<'_> {
    /// In a transaction of its own. It may be lost in a crash, as nothing leads to it yet, so small ones need no fence.
    /// A pinned one does: the plain store of a pointer that leads there next may be durable before any other
    /// transaction is.
    fn in_own_transaction(&self, at: Location) -> Result<usize> {
        let heap = self.heap;
        let is_large = (LARGE..=LARGE_MAX).contains(&self.bytes);
        let is_filled = is_large && heap.engine() == Engine::Shadow && self.ty.info.data == HEADER;
        let is_counted = self.lifetime == Lifetime::Counted;
        let durability = match is_filled || !is_counted {
            true => Durability::Durable,
            false => Durability::Buffered,
        };
        // Until the caller has it, it is on a list whose members a collection frees. So the pointer is where that looks
        // for pointers, before the heap is unlocked.
        let mut kept = 0;
        tx::implicit(heap, durability, at, |own| {
            let object = match is_filled {
                true => {
                    let next = heap.first_listed();
                    let object = self.place_filled(own.words.tx(), next)?;
                    if is_counted {
                        zero_list::begin_with(&mut own.words, object.start, next)?;
                        heap.fresh.fetch_add(1, Ordering::AcqRel);
                    }
                    object
                }
                false => self.place(own.words.tx())?,
            };
            if !is_filled && is_counted {
                own.pending.made(heap, object);
            }
            // SAFETY: a local.
            unsafe { (&raw mut kept).write_volatile(object.data()) };
            Ok(())
        })?;
        // SAFETY: a local.
        Ok(unsafe { (&raw const kept).read_volatile() })
    }

    /// A header to which nothing leads. That of a pinned allocation is not fresh: no store will be told that it links
    /// it, so what is stored there becomes durable by itself.
    fn header(&self) -> Header {
        let (strong, state) = match self.lifetime {
            Lifetime::Counted => (0, FRESH),
            Lifetime::Pinned => (PINNED, 0),
        };
        Header {
            next: 0,
            previous: 0,
            weak: 0,
            strong,
            state,
            count: self.count as u64,
        }
    }

    /// Allocates in the running transaction, with a header.
    fn place(&self, tx: &Tx) -> Result<Object> {
        let pool = &self.heap.pool;
        let id = pool.ensure_described(&self.ty.description)?;
        let start = tx.alloc_bytes(pool, id, self.bytes, self.ty.align)?;
        // SAFETY: just allocated with that size, so nobody else knows it.
        unsafe {
            durum_persist::line::zero(start, self.bytes);
            start.cast::<Header>().write(self.header());
        }
        Ok(self.object(start))
    }

    /// Allocates zeros that go where they will stay, without private pages and without the log. Nobody may store there
    /// before the transaction has ended, so the header is on the zero list already: it begins it, before `next`.
    fn place_filled(&self, tx: &Tx, next: usize) -> Result<Object> {
        let pool = &self.heap.pool;
        let id = pool.ensure_described(&self.ty.description)?;
        let mut header = self.header();
        if self.lifetime == Lifetime::Counted {
            header.next = next as u64;
            header.state |= LISTED;
        }
        // SAFETY: a plain struct of words, without padding.
        let head = unsafe { std::slice::from_raw_parts((&raw const header).cast::<u8>(), HEADER) };
        let mut parts = vec![head];
        let mut left = self.bytes - HEADER;
        while left > 0 {
            let len = left.min(ZEROS.len());
            parts.push(&ZEROS[..len]);
            left -= len;
        }
        // SAFETY: nothing is stored there before the commit.
        let start = unsafe { tx.alloc_filled(pool, id, &parts, self.ty.align)? };
        Ok(self.object(start))
    }

    fn object(&self, start: *mut u8) -> Object {
        Object {
            start: start.expose_provenance(),
            info: self.ty.info,
        }
    }
}

/// Whether the root is of this type, or there is none.
pub(crate) fn root_is(heap: &Heap, ty: &Declared) -> bool {
    // SAFETY: the root object; the program keeps threads that change the root apart.
    let (root, checksum) = unsafe {
        (
            word(field!(heap.root, HeapRoot, root)),
            word(field!(heap.root, HeapRoot, checksum)),
        )
    };
    root == 0 || checksum == ty.checksum
}

/// The root, if it is of this type.
pub(crate) fn root(heap: &Heap, ty: &Declared, at: Location) -> usize {
    // SAFETY: the root object; the program keeps threads that change the root apart.
    let (root, checksum) = unsafe {
        (
            word(field!(heap.root, HeapRoot, root)) as usize,
            word(field!(heap.root, HeapRoot, checksum)),
        )
    };
    if root == 0 {
        return 0;
    }
    if checksum != ty.checksum {
        let found = heap
            .object(root, at)
            .map_or("?", |object| &object.info.name);
        fatal!(
            at,
            "the root of heap {heap} is of type {found}, checksum {checksum:016x}; the program wants {}, checksum {:016x}: names, widths and signedness have to be those with which it was set{}; use the program that made the heap, or have this one make it anew with nvl_migrate (docs/how-to/change-types.md)",
            ty.info.name,
            ty.checksum,
            changes::of_heap(heap, root, ty)
        );
    }
    root
}

/// Makes an allocation the root, or none.
pub(crate) fn set_root(heap: &Heap, root: usize, ty: &Declared, at: Location) {
    let object = target(heap, root, "the root of", at);
    let done = match tx::is_running() {
        true => with_running(|running| store_root(running, heap, root, object, ty, at)),
        false => tx::implicit(heap, Durability::Durable, at, |own| {
            store_root(own, heap, root, object, ty, at)
        }),
    };
    done.or_fatal(at, "setting the root");
}

/// Changes the root, with its count, in a transaction.
#[inline]
fn store_root(
    tx: &mut impl StoreTx,
    heap: &Heap,
    root: usize,
    object: Option<Object>,
    ty: &Declared,
    at: Location,
) -> Result<()> {
    let slot = field!(heap.root, HeapRoot, root);
    tx.announce_words(heap, slot, 2, at);
    // SAFETY: the root object.
    let old = unsafe { word(slot) } as usize;
    count_strong(heap, tx.pending(), old, object, at);
    tx.write(slot, root as u64)?;
    tx.write(field!(heap.root, HeapRoot, checksum), ty.checksum)
}
