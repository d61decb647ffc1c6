//! Where threads record their sections: the slots of the store's puddles of sections (docs/format/section.md).
//!
//! A slot is a thread's until it ends; then the next thread that needs one has it. A puddle is made when all are
//! taken.

use std::ptr::NonNull;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use durum::primitive::locked;
use durum::{SectionPuddle, Store};
use durum_format::section::{
    BANK_SIZE, BANK_WORDS, BANKS, Head, STACK_SIZE_DEFAULT, SlotSalt, bank_of, slots_max,
};
use durum_persist::line;

use crate::deposit;
use crate::memory::Memory;
use crate::sites::{HEAD_FENCE, HEAD_WRITE};

/// Two banks and a stack.
#[derive(Debug)]
pub(crate) struct Slot {
    start: NonNull<u8>,
    stack_size: usize,
    /// What the checksums of its records begin with.
    pub(crate) salt: SlotSalt,
    /// The number of the record that counts.
    pub(crate) sequence: u64,
    /// Of which opening it is.
    pub(crate) opening: u64,
    /// What its records tell of.
    pub(crate) memory: Memory,
}

// SAFETY: memory of the store's, which the thread alone uses that has the slot.
unsafe impl Send for Slot {}

impl Slot {
    /// Slot `number` of a puddle, in which nothing is recorded yet.
    pub(crate) fn of(puddle: &SectionPuddle, head: &Head, number: u32, opening: u64) -> Self {
        let (heap, size) = puddle.heap();
        let offset = head.slot_offset(number) as usize;
        debug_assert!(number < head.slots && offset < size);
        let begin = heap.as_ptr().expose_provenance();
        LOWEST.fetch_min(begin, Ordering::Relaxed);
        HIGHEST.fetch_max(begin + size, Ordering::Relaxed);
        Self {
            // SAFETY: the head was checked against the size of the heap.
            start: unsafe { heap.add(offset) },
            stack_size: head.stack_size as usize,
            salt: head.slot_salt(number),
            sequence: 0,
            opening,
            memory: Memory::default(),
        }
    }

    /// The bank of the record with this number.
    pub(crate) fn bank(&self, sequence: u64) -> NonNull<[u64; BANK_WORDS]> {
        let offset = bank_of(sequence) * BANK_SIZE as usize;
        // SAFETY: inside the slot.
        unsafe { self.start.add(offset) }.cast()
    }

    /// Where its stack begins, and how many bytes it has.
    pub(crate) fn stack(&self) -> (usize, usize) {
        let offset = BANKS * BANK_SIZE as usize;
        // SAFETY: inside the slot.
        let start = unsafe { self.start.add(offset) };
        (start.as_ptr().expose_provenance(), self.stack_size)
    }

    /// All its bytes, for whoever reads what was recorded there.
    pub(crate) fn bytes(&self) -> NonNull<[u8]> {
        NonNull::slice_from_raw_parts(self.start, BANKS * BANK_SIZE as usize + self.stack_size)
    }
}

/// The slots of an open store.
#[derive(Debug)]
struct Slots {
    store: Store,
    opening: u64,
    /// What completes the program's sections is in the store, if it carries that.
    has_code: bool,
    /// Of threads that have ended.
    idle: Vec<Slot>,
    /// The puddle that was made last, and its first slot that nobody has had.
    fresh: Option<(SectionPuddle, Head, u32)>,
    /// Those before, whose slots threads have.
    full: Vec<SectionPuddle>,
}

/// All puddles of sections of the store that is open lie between these addresses.
static LOWEST: AtomicUsize = AtomicUsize::new(usize::MAX);
static HIGHEST: AtomicUsize = AtomicUsize::new(0);

/// Whether an address may be one of a slot, whichever thread has that.
#[inline]
pub(crate) fn may_hold(address: usize) -> bool {
    address >= LOWEST.load(Ordering::Relaxed) && address < HIGHEST.load(Ordering::Relaxed)
}

static SLOTS: Mutex<Option<Slots>> = Mutex::new(None);

/// Threads record in the puddles of this store from now on.
pub(crate) fn open(store: Store, opening: u64) {
    *locked(&SLOTS) = Some(Slots {
        store,
        opening,
        has_code: false,
        idle: Vec::new(),
        fresh: None,
        full: Vec::new(),
    });
}

/// Nobody records in them any more: those that no thread has.
pub(crate) fn close() -> Vec<Slot> {
    let slots = locked(&SLOTS).take();
    LOWEST.store(usize::MAX, Ordering::Relaxed);
    HIGHEST.store(0, Ordering::Relaxed);
    slots.map_or_else(Vec::new, |slots| slots.idle)
}

/// A slot for the calling thread. `None` while no heap is open.
///
/// # Errors
/// Those of making a puddle.
pub(crate) fn take() -> durum::Result<Option<Slot>> {
    let mut slots = locked(&SLOTS);
    let Some(slots) = slots.as_mut() else {
        return Ok(None);
    };
    slots.take().map(Some)
}

/// The thread of a slot has ended, and was in no section.
pub(crate) fn give_back(slot: Slot) {
    if let Some(slots) = locked(&SLOTS).as_mut()
        && slots.opening == slot.opening
    {
        slots.idle.push(slot);
    }
}

impl Slots {
    fn take(&mut self) -> durum::Result<Slot> {
        if let Some(slot) = self.idle.pop() {
            return Ok(slot);
        }
        let is_full = |(_, head, next): &(_, Head, u32)| *next == head.slots;
        if self.fresh.as_ref().is_none_or(is_full) {
            if !self.has_code {
                // ORDER: there is no record of a section before the code for it is durable; else nobody but the
                // program could complete it.
                deposit::leave(&self.store)?;
                self.has_code = true;
            }
            let (puddle, head) = make(&self.store)?;
            let before = self.fresh.replace((puddle, head, 0));
            self.full.extend(before.map(|(puddle, ..)| puddle));
        }
        match &mut self.fresh {
            Some((puddle, head, next)) => {
                let slot = Slot::of(puddle, head, *next, self.opening);
                *next += 1;
                Ok(slot)
            }
            None => Err(durum::Error::LogMisuse {
                reason: "a puddle of sections has no slots",
            }),
        }
    }
}

/// A puddle with a head and slots that nobody has used.
fn make(store: &Store) -> durum::Result<(SectionPuddle, Head)> {
    let puddle = store.section_puddle()?;
    let stack_size = STACK_SIZE_DEFAULT;
    // Drawn at random when the puddle was made.
    let drawn = u128::from_le_bytes(puddle.uuid().0);
    let head = Head {
        client: store.info().client,
        salt: drawn as u64 ^ (drawn >> 64) as u64,
        slots: slots_max(puddle.size(), stack_size) as u32,
        stack_size,
    };
    let (bytes, (heap, _)) = (head.encode(), puddle.heap());
    // SAFETY: the heap of a puddle that nobody knows yet.
    unsafe { line::copy(heap.as_ptr(), bytes.as_ptr(), bytes.len()) };
    // SAFETY: the same.
    unsafe { line::write_back(heap.as_ptr(), bytes.len(), HEAD_WRITE) };
    // ORDER: the head is durable before any slot is used; else nobody could read what is recorded there, and the
    // store would be damaged.
    line::fence(HEAD_FENCE);
    Ok((puddle, head))
}
