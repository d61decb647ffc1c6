//! Threads that change a pool, each its own part of it, and models of what they do: what the transaction with some
//! number does follows from that number.

use std::cell::RefCell;
use std::sync::atomic::{AtomicU64, Ordering};

use durum::{Announce, Durability, Error, Pool, Tx};

use crate::random::Random;

pub const THREADS: usize = 3;
const SLOTS: usize = 24;

#[repr(C)]
pub struct Root {
    /// The number of each thread's last transaction.
    pub counts: [u64; THREADS],
    /// For each thread, what the others had committed when its last transaction began.
    pub seen: [[u64; THREADS]; THREADS],
    pub slots: [[*mut u8; SLOTS]; THREADS],
    pub lens: [[u64; SLOTS]; THREADS],
}
durum::describe!(Root as "snapshot root" { counts, seen, slots, lens });

/// What one transaction does.
#[derive(Debug)]
enum Action {
    Make {
        len: usize,
        is_filled: bool,
    },
    Free,
    /// Announces a range and stores to it.
    Change {
        at: usize,
        len: usize,
    },
    /// Defers a store.
    Set {
        at: usize,
    },
    /// Gives the object up and makes another one.
    Exchange {
        len: usize,
    },
}

#[derive(Debug)]
struct Step {
    slot: usize,
    value: u8,
    action: Action,
    is_buffered: bool,
    /// The same is done before, and taken back.
    is_aborted_first: bool,
}

fn len(random: &mut Random) -> usize {
    let below = match random.below(24) {
        0 => 1_500_000,
        1..6 => 40_000,
        _ => 600,
    };
    1 + random.below(below)
}

/// The state of a thread's part.
#[derive(Debug)]
pub struct Model {
    seed: u64,
    thread: usize,
    count: u64,
    slots: [Option<Vec<u8>>; SLOTS],
}

impl Model {
    pub fn new(seed: u64, thread: usize) -> Self {
        Self {
            seed,
            thread,
            count: 0,
            slots: [const { None }; SLOTS],
        }
    }

    fn next_step(&self) -> Step {
        let number = self.seed << 40 | (self.thread as u64) << 32 | self.count;
        let random = &mut Random::new(number);
        random.next();
        let slot = random.below(SLOTS);
        let action = match &self.slots[slot] {
            None => Action::Make {
                len: len(random),
                is_filled: random.one_in(2),
            },
            Some(bytes) => match random.below(8) {
                0..2 => Action::Free,
                2 => Action::Exchange { len: len(random) },
                3 if bytes.len() >= 8 => Action::Set {
                    at: random.below(bytes.len() / 8) * 8,
                },
                // All of it.
                4 => Action::Change {
                    at: 0,
                    len: bytes.len(),
                },
                _ => {
                    let at = random.below(bytes.len());
                    let most = (bytes.len() - at).min(100);
                    let len = 1 + random.below(most);
                    Action::Change { at, len }
                }
            },
        };
        Step {
            slot,
            value: random.next() as u8,
            action,
            is_buffered: random.one_in(4),
            is_aborted_first: random.one_in(8),
        }
    }

    fn make(&mut self, step: &Step) {
        let slot = &mut self.slots[step.slot];
        match step.action {
            Action::Make { len, .. } | Action::Exchange { len } => {
                *slot = Some(vec![step.value; len])
            }
            Action::Free => *slot = None,
            Action::Change { at, len } => {
                slot.as_mut().unwrap()[at..at + len].fill(step.value);
            }
            Action::Set { at } => slot.as_mut().unwrap()[at..at + 8].fill(step.value),
        }
        self.count += 1;
    }

    /// Does what the thread's transactions up to this number have done.
    pub fn advance_to(&mut self, count: u64) {
        assert!(count >= self.count, "{count} after {}", self.count);
        while self.count < count {
            let step = self.next_step();
            self.make(&step);
        }
    }

    /// The thread's part of the pool holds that.
    pub fn is_in(&self, root: &Root) {
        for (slot, bytes) in self.slots.iter().enumerate() {
            let object = root.slots[self.thread][slot];
            assert_eq!(object.is_null(), bytes.is_none(), "slot {slot}");
            if let Some(bytes) = bytes {
                assert_eq!(root.lens[self.thread][slot], bytes.len() as u64);
                let found = unsafe { std::slice::from_raw_parts(object, bytes.len()) };
                if let Some(at) = (0..bytes.len()).find(|at| found[*at] != bytes[*at]) {
                    let (len, found, wanted) = (bytes.len(), found[at], bytes[at]);
                    panic!("slot {slot}, byte {at} of {len}: {found}, not {wanted}");
                }
            }
        }
    }
}

/// A thread's part of the work.
pub struct Worker {
    thread: usize,
    committed: AtomicU64,
    model: RefCell<Model>,
}

/// Only its thread touches the model.
unsafe impl Sync for Worker {}

impl Worker {
    pub fn new(seed: u64, thread: usize) -> Self {
        Self {
            thread,
            committed: AtomicU64::new(0),
            model: RefCell::new(Model::new(seed, thread)),
        }
    }

    pub fn committed(&self) -> u64 {
        self.committed.load(Ordering::SeqCst)
    }

    /// Runs the next transaction.
    pub fn step(&self, pool: &Pool, all: &[Worker]) {
        let mut model = self.model.borrow_mut();
        let step = model.next_step();
        let root = pool.root::<Root>().unwrap();
        let count = model.count + 1;
        // What these have committed comes before this.
        let seen: Vec<u64> = all.iter().map(Worker::committed).collect();
        if step.is_aborted_first {
            let aborted = pool.transaction(|tx| {
                self.run(tx, pool, root, &step, count, &seen)?;
                tx.abort::<()>()
            });
            aborted.unwrap_err();
        }
        let durability = match step.is_buffered {
            true => Durability::Buffered,
            false => Durability::Durable,
        };
        pool.transaction_with(durability, |tx| {
            self.run(tx, pool, root, &step, count, &seen)
        })
        .unwrap();
        model.make(&step);
        self.committed.store(count, Ordering::SeqCst);
    }

    fn run(
        &self,
        tx: &Tx,
        pool: &Pool,
        root: *mut Root,
        step: &Step,
        count: u64,
        seen: &[u64],
    ) -> Result<(), Error> {
        unsafe {
            let counter = &raw mut (*root).counts[self.thread];
            tx.add(counter)?;
            counter.write(count);
            for (other, seen) in seen.iter().enumerate() {
                tx.set(&raw mut (*root).seen[self.thread][other], *seen)?;
            }
            let slot = &raw mut (*root).slots[self.thread][step.slot];
            let place = &raw mut (*root).lens[self.thread][step.slot];
            tx.add(slot)?;
            let object = slot.read();
            match step.action {
                Action::Make { len, is_filled } => {
                    let bytes = vec![step.value; len];
                    let made = match is_filled {
                        true => tx.alloc_filled(pool, 0, &[&bytes], 8)?,
                        false => {
                            let made = tx.alloc_bytes(pool, 0, len, 8)?;
                            made.copy_from_nonoverlapping(bytes.as_ptr(), len);
                            made
                        }
                    };
                    slot.write(made);
                    tx.set(place, len as u64)?;
                }
                Action::Exchange { len } => {
                    tx.free(object)?;
                    let made = tx.alloc_bytes(pool, 0, len, 8)?;
                    made.write_bytes(step.value, len);
                    slot.write(made);
                    tx.set(place, len as u64)?;
                }
                Action::Free => {
                    tx.free(object)?;
                    slot.write(std::ptr::null_mut());
                }
                Action::Change { at, len } => {
                    tx.add_bytes(object.add(at), len, Announce::Backup)?;
                    object.add(at).write_bytes(step.value, len);
                }
                Action::Set { at } => {
                    let word = u64::from_ne_bytes([step.value; 8]);
                    tx.set(object.add(at).cast::<u64>(), word)?;
                }
            }
        }
        Ok(())
    }
}
