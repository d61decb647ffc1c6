//! What a transaction has done to counts, summed up until it commits: only then are the words changed that threads
//! share, under the lock of their heap.
//!
//! So a count that goes up and down again costs nothing, an abort has no counts to put back, and no thread waits for
//! another one's transaction but while that commits.

use std::ptr;

use durum::{Result, Tx};
use rustc_hash::FxHashMap;

use crate::fatal::{Location, OrFatal, fatal};
use crate::heap::Heap;
use crate::layout::{FRESH, Proxy, field};
use crate::object::Object;
use crate::types::TypeInfo;
use crate::words::Words;
use crate::zero_list;

/// A fresh allocation of up to this size becomes durable in the record of the transaction that links it, with one
/// fence; a larger one before that, in pieces, so that no transaction is larger than a log.
const WHOLE_MAX: usize = 64 << 10;
/// Such a piece.
const PIECE: usize = 1 << 20;

/// What happens to the count of one allocation.
#[derive(Clone, Copy)]
struct Strong {
    /// Where its data begin: as a pointer, so that a collection finds what other threads' transactions are about to
    /// link.
    data: usize,
    heap: *const Heap,
    info: &'static TypeInfo,
    more: i64,
    /// Allocated by this transaction.
    is_new: bool,
}

/// What happens to the count of one proxy.
#[derive(Clone, Copy)]
struct Weak {
    proxy: usize,
    heap: *const Heap,
    more: i64,
    /// Made by this transaction: the header of what it leads to, and the address.
    made_for: Option<(usize, usize)>,
}

/// The sums of one thread's transaction.
#[derive(Default)]
pub(crate) struct PendingCounts {
    strong: Vec<Strong>,
    weak: Vec<Weak>,
    /// Where they are in these, by inverted address: what stays here when a transaction has ended must not look like a
    /// pointer.
    index: FxHashMap<usize, usize>,
}

impl PendingCounts {
    /// Adds to the count of an allocation.
    pub(crate) fn count(&mut self, heap: &Heap, object: Object, more: i64) {
        let at = self.entry(heap, object);
        self.strong[at].more += more;
    }

    /// Remembers an allocation of this transaction.
    pub(crate) fn made(&mut self, heap: &Heap, object: Object) {
        let at = self.entry(heap, object);
        self.strong[at].is_new = true;
    }

    /// Whether this transaction has allocated it.
    pub(crate) fn is_new(&self, object: Object) -> bool {
        let at = self.index.get(&!object.data());
        at.is_some_and(|at| self.strong[*at].is_new)
    }

    fn entry(&mut self, heap: &Heap, object: Object) -> usize {
        let next = self.strong.len();
        let at = *self.index.entry(!object.data()).or_insert(next);
        if at == next {
            self.strong.push(Strong {
                data: object.data(),
                heap,
                info: object.info,
                more: 0,
                is_new: false,
            });
        }
        at
    }

    /// Adds to the count of a proxy.
    pub(crate) fn count_weak(&mut self, heap: &Heap, proxy: usize, more: i64) {
        let at = self.weak_entry(heap, proxy);
        self.weak[at].more += more;
    }

    /// Remembers a proxy that this transaction has made, for an address in `object`.
    pub(crate) fn made_proxy(&mut self, heap: &Heap, proxy: usize, object: Object, target: usize) {
        let at = self.weak_entry(heap, proxy);
        self.weak[at].made_for = Some((object.start, target));
    }

    /// The proxy that this transaction has made for an address.
    pub(crate) fn proxy_of(&self, target: usize) -> Option<usize> {
        let made = |weak: &&Weak| weak.made_for.is_some_and(|(_, known)| known == target);
        self.weak.iter().find(made).map(|weak| weak.proxy)
    }

    fn weak_entry(&mut self, heap: &Heap, proxy: usize) -> usize {
        let next = self.weak.len();
        // No proxy begins where the data of an allocation do.
        let at = *self.index.entry(!proxy).or_insert(next);
        if at == next {
            self.weak.push(Weak {
                proxy,
                heap,
                more: 0,
                made_for: None,
            });
        }
        at
    }

    /// Whether no count changes.
    pub(crate) fn is_empty(&self) -> bool {
        self.strong.is_empty() && self.weak.is_empty()
    }

    /// The heaps that have to be locked, in the order in which all threads lock them.
    pub(crate) fn heaps(&self) -> Vec<*const Heap> {
        let strong = self.strong.iter().map(|strong| strong.heap);
        let mut heaps: Vec<_> = strong
            .chain(self.weak.iter().map(|weak| weak.heap))
            .collect();
        heaps.sort_unstable();
        heaps.dedup();
        heaps
    }

    /// Changes the counts of one heap in the transaction that is about to commit.
    pub(crate) fn apply(&self, words: &mut Words<'_>, at: Location) -> Result<()> {
        let heap = words.heap;
        for strong in self.strong.iter().filter(|one| ptr::eq(one.heap, heap)) {
            apply_strong(strong, words, at)?;
        }
        for weak in self.weak.iter().filter(|one| ptr::eq(one.heap, heap)) {
            apply_weak(weak, words, at)?;
        }
        Ok(())
    }

    /// The transaction has ended. Nothing that looks like a pointer stays.
    pub(crate) fn clear(&mut self, has_committed: bool) {
        if has_committed {
            for strong in &self.strong {
                if strong.is_new && strong.more == 0 {
                    // SAFETY: the heap of a transaction that has just ended is open.
                    unsafe { &*strong.heap }
                        .fresh
                        .fetch_add(1, std::sync::atomic::Ordering::AcqRel);
                }
            }
        }
        wipe(&mut self.strong);
        wipe(&mut self.weak);
        self.index.clear();
    }
}

/// Empties a list, its memory too.
fn wipe<T: Copy>(list: &mut Vec<T>) {
    let len = list.len();
    list.clear();
    // SAFETY: memory of the list, of which nothing is in use any more. Volatile: a store that nobody reads would be
    // left out.
    unsafe {
        let bytes = list.as_mut_ptr().cast::<u8>();
        for at in (0..len * size_of::<T>()).step_by(8) {
            bytes.add(at).cast::<u64>().write_volatile(0);
        }
    }
}

const _: () = assert!(size_of::<Strong>().is_multiple_of(8) && size_of::<Weak>().is_multiple_of(8));

fn apply_strong(strong: &Strong, words: &mut Words<'_>, at: Location) -> Result<()> {
    let heap = words.heap;
    let object = Object {
        start: strong.data - strong.info.data,
        info: strong.info,
    };
    let start = object.start;
    let count = field!(start, Header, strong);
    let old = words.read(count);
    let Some(new) = old.checked_add_signed(strong.more) else {
        fatal!(
            at,
            "heap {heap}: {} of {} pointers to an allocation of type {} go away, and {old} were counted; something stores pointers that NVL-C does not see",
            -strong.more,
            old,
            strong.info.name
        );
    };
    if new != old {
        words.write(count, new)?;
    }
    let state = field!(start, Header, state);
    match (strong.is_new, old == 0, new == 0) {
        (true, _, true) => zero_list::push(words, start)?,
        (true, _, false) => {
            let fresh = words.read(state);
            words.write(state, fresh & !FRESH)?;
        }
        (false, true, false) => {
            zero_list::remove(words, start)?;
            let was = words.read(state);
            if was & FRESH != 0 {
                make_whole(words.tx(), heap, object, at)?;
                words.write(state, was & !FRESH)?;
                heap.fresh.fetch_sub(1, std::sync::atomic::Ordering::AcqRel);
            }
        }
        (false, false, true) => zero_list::push(words, start)?,
        _ => {}
    }
    Ok(())
}

/// Makes a fresh allocation durable as it is, with the transaction that links it or before.
fn make_whole(tx: &Tx, heap: &Heap, object: Object, at: Location) -> Result<()> {
    let (data, len) = (object.data(), object.len());
    if len <= WHOLE_MAX {
        // SAFETY: the data of an allocation that the program is about to link; if other threads store to it now, these
        // stores may be durable or not, as any.
        return unsafe { tx.add_contents(ptr::with_exposed_provenance(data), len) };
    }
    for from in (0..len).step_by(PIECE) {
        let piece = ptr::with_exposed_provenance::<u8>(data + from);
        // SAFETY: a piece of the allocation's data; what other threads store to it now may be durable or not.
        let persisted = unsafe { heap.pool.persist(piece, PIECE.min(len - from)) };
        persisted.or_fatal(at, "making a fresh allocation durable");
    }
    Ok(())
}

fn apply_weak(weak: &Weak, words: &mut Words<'_>, at: Location) -> Result<()> {
    let count = field!(weak.proxy, Proxy, count);
    if let Some((start, _)) = weak.made_for {
        let first = field!(start, Header, weak);
        let next = words.read(first);
        words.write(field!(weak.proxy, Proxy, next), next)?;
        words.write(first, weak.proxy as u64)?;
    }
    let old = words.read(count);
    let Some(new) = old.checked_add_signed(weak.more) else {
        fatal!(at, "{old} weak pointers were counted, and more go away");
    };
    let is_husk = words.read(field!(weak.proxy, Proxy, target)) == 0;
    if new == 0 && is_husk && weak.made_for.is_none() {
        return free_proxy(words, weak.proxy);
    }
    if new != old {
        words.write(count, new)?;
    }
    Ok(())
}

/// Frees a proxy that no weak pointer leads to, nor its allocation.
pub(crate) fn free_proxy(words: &mut Words<'_>, proxy: usize) -> Result<()> {
    words.forget(proxy, size_of::<Proxy>());
    let proxy = ptr::with_exposed_provenance_mut::<Proxy>(proxy);
    // SAFETY: nothing leads to it, as the callers know.
    unsafe { words.tx().free(proxy) }
}
