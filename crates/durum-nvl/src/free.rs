//! Freeing: allocations that nothing leads to, and what only they lead to, by a list and not by recursion, in
//! transactions of bounded size.

use std::sync::atomic::Ordering;

use durum::{Durability, Result};

use crate::fatal::{Location, OrFatal, fatal};
use crate::heap::Heap;
use crate::layout::{FRESH, HEADER, Hidden, LINK, LISTED, field, word};
use crate::object::Object;
use crate::pending::free_proxy;
use crate::tx;
use crate::words::Words;
use crate::zero_list;

/// So many pointers are taken away in one transaction, and no more allocations freed than that.
const BATCH: usize = 512;

/// Frees everything on the zero list, and what is left without a pointer by that. No volatile pointer leads into the
/// heap.
pub(crate) fn everything_listed(heap: &Heap) {
    loop {
        let listed = listed(heap);
        if listed.is_empty() {
            return;
        }
        all(heap, listed, |_| true);
    }
}

/// The zero list.
pub(crate) fn listed(heap: &Heap) -> Vec<Hidden> {
    let mut found = Vec::new();
    let mut link = heap.first_listed();
    while link != 0 {
        let start = link - LINK;
        found.push(Hidden::new(start));
        // SAFETY: members of the list are allocations.
        link = unsafe { word(field!(start, Header, next)) } as usize;
    }
    found
}

/// Frees these members of the zero list, and those that no pointer leads to by that, of which `goes` says so; the
/// others join the list. How many have gone.
pub(crate) fn all(heap: &Heap, listed: Vec<Hidden>, goes: impl Fn(usize) -> bool) -> usize {
    let mut sweep = Sweep {
        heap,
        goes,
        listed,
        unlisted: Vec::new(),
        freed: 0,
    };
    while let Some(last) = sweep.listed.last() {
        let object = heap.object_from(last.start());
        let pointers = pointers(object);
        if pointers > BATCH {
            sweep.drain(object);
        }
        sweep.free_some();
        // Before anybody else can be given their places.
        heap.forget_objects();
    }
    sweep.freed
}

fn pointers(object: Object) -> usize {
    let mut pointers = 0;
    object.pointers(|_, _| pointers += 1);
    pointers
}

struct Sweep<'h, G> {
    heap: &'h Heap,
    goes: G,
    /// On the zero list, to be freed.
    listed: Vec<Hidden>,
    /// To be freed in the running transaction, or put on the list by its end.
    unlisted: Vec<Hidden>,
    freed: usize,
}

impl<G: Fn(usize) -> bool> Sweep<'_, G> {
    /// One transaction that frees what is next.
    fn free_some(&mut self) {
        let heap = self.heap;
        self.transact(|sweep, words| {
            let mut left = BATCH;
            let mut freed = 0;
            while left > 0 {
                let Some(next) = sweep.unlisted.pop().or_else(|| sweep.listed.pop()) else {
                    break;
                };
                let start = next.start();
                let object = heap.object_from(start);
                let pointers = pointers(object);
                if pointers > left && freed > 0 {
                    sweep.postpone(words, start)?;
                    break;
                }
                sweep.free(words, object)?;
                freed += 1;
                left = left.saturating_sub(pointers + 1);
            }
            sweep.freed += freed;
            Ok(())
        });
    }

    /// A transaction, by whose end all that was left without a pointer is on the list.
    fn transact(&mut self, body: impl FnOnce(&mut Self, &mut Words<'_>) -> Result<()>) {
        let heap = self.heap;
        let done = tx::implicit(heap, Durability::Buffered, Location::UNKNOWN, |own| {
            body(self, &mut own.words)?;
            while let Some(next) = self.unlisted.pop() {
                self.postpone(&mut own.words, next.start())?;
            }
            Ok(())
        });
        done.or_fatal(Location::UNKNOWN, "freeing allocations");
    }

    /// Leaves it to the next transaction.
    fn postpone(&mut self, words: &mut Words<'_>, start: usize) -> Result<()> {
        // Never in the air between two transactions: after a crash only the list knows it.
        if words.read(field!(start, Header, state)) & LISTED == 0 {
            zero_list::push(words, start)?;
        }
        self.listed.push(Hidden::new(start));
        Ok(())
    }

    /// Takes the pointers of a large allocation away, some in each transaction, so that none is larger than a log.
    fn drain(&mut self, object: Object) {
        let mut slots = Vec::new();
        object.pointers(|slot, is_weak| slots.push((slot, is_weak)));
        for some in slots.chunks(BATCH) {
            self.transact(|sweep, words| {
                for &(slot, is_weak) in some {
                    sweep.drop_slot(words, slot, is_weak)?;
                    words.write(slot, 0)?;
                }
                Ok(())
            });
        }
        // What was found meanwhile went behind it.
        let hidden = Hidden::new(object.start);
        self.listed.retain(|start| *start != hidden);
        self.listed.push(hidden);
    }

    fn free(&mut self, words: &mut Words<'_>, object: Object) -> Result<()> {
        let start = object.start;
        let state = words.read(field!(start, Header, state));
        if state & LISTED != 0 {
            zero_list::remove(words, start)?;
        }
        let mut result = Ok(());
        object.pointers(|slot, is_weak| {
            if result.is_ok() {
                result = self.drop_slot(words, slot, is_weak);
            }
        });
        result?;
        tell_proxies(words, start)?;
        words.forget(start, HEADER);
        if state & FRESH != 0 {
            self.heap.fresh.fetch_sub(1, Ordering::AcqRel);
        }
        let object = std::ptr::with_exposed_provenance_mut::<u8>(start);
        // SAFETY: no pointer leads there, as the caller of `all` knows.
        unsafe { words.tx().free(object) }
    }

    /// A pointer goes.
    fn drop_slot(&mut self, words: &mut Words<'_>, slot: usize, is_weak: bool) -> Result<()> {
        let value = words.read(slot) as usize;
        if value == 0 {
            return Ok(());
        }
        if is_weak {
            return drop_weak(words, value);
        }
        let Some(target) = self.heap.object(value, Location::UNKNOWN) else {
            fatal!(
                Location::UNKNOWN,
                "heap {}: a pointer to {value:#x} was counted, where nothing is allocated; the heap is damaged",
                self.heap
            );
        };
        let count = field!(target.start, Header, strong);
        let left = words.read(count).saturating_sub(1);
        words.write(count, left)?;
        if left == 0 {
            match (self.goes)(target.start) {
                true => self.unlisted.push(Hidden::new(target.start)),
                false => zero_list::push(words, target.start)?,
            }
        }
        Ok(())
    }
}

/// A weak pointer goes.
fn drop_weak(words: &mut Words<'_>, proxy: usize) -> Result<()> {
    let count = field!(proxy, Proxy, count);
    let left = words.read(count).saturating_sub(1);
    if left == 0 && words.read(field!(proxy, Proxy, target)) == 0 {
        return free_proxy(words, proxy);
    }
    words.write(count, left)
}

/// The allocation goes: weak pointers to it are null from now on.
fn tell_proxies(words: &mut Words<'_>, start: usize) -> Result<()> {
    let mut proxy = words.read(field!(start, Header, weak)) as usize;
    while proxy != 0 {
        let next = words.read(field!(proxy, Proxy, next)) as usize;
        match words.read(field!(proxy, Proxy, count)) {
            0 => free_proxy(words, proxy)?,
            _ => {
                words.write(field!(proxy, Proxy, target), 0)?;
                words.write(field!(proxy, Proxy, next), 0)?;
            }
        }
        proxy = next;
    }
    Ok(())
}
