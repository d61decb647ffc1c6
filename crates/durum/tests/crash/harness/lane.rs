//! A thread's transactions, each written down with what it may leave.

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::ptr;

use durum::{Announce, Durability, Error, Pool, Transaction, Tx};
use durum_persist::record;

use super::state::{BYTES, Blob, Root, Slot, State, byte_type, pattern};

/// Ends a transaction from inside.
#[derive(Debug)]
pub enum Stop {
    /// An error of durum's.
    Durum(Error),
}

impl From<Error> for Stop {
    fn from(error: Error) -> Stop {
        Stop::Durum(error)
    }
}

/// How a slot of the root changes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum How {
    /// `add` and a store.
    Add,
    /// `set`.
    Set,
}

const EMPTY: Slot = Slot {
    object: ptr::null_mut(),
    size: 0,
    tag: 0,
};

/// One operation of a lane: what it leaves where it did not take effect, and where it did.
#[derive(Clone)]
pub struct Step {
    pub undone: State,
    pub done: State,
    /// Once it is acknowledged, it and those before it are durable.
    pub is_durable: bool,
    /// It is durable at last when the next one is acknowledged that is in flight, or durable.
    pub is_in_flight: bool,
}

impl Step {
    /// A step that is durable when it is acknowledged.
    pub fn durable(undone: State, done: State) -> Step {
        Step {
            undone,
            done,
            is_durable: true,
            is_in_flight: false,
        }
    }

    /// It leaves everything as it was, and makes nothing durable.
    fn nothing(state: State) -> Step {
        Step {
            is_durable: false,
            ..Step::durable(state.clone(), state)
        }
    }
}

/// Where the root and the large object lie. Addresses, so that lanes can be sent to threads.
#[derive(Clone, Copy)]
pub struct Places {
    pub root: usize,
    pub large: usize,
    pub large_size: usize,
}

impl Places {
    fn root(&self) -> *mut Root {
        ptr::with_exposed_provenance_mut(self.root)
    }

    /// The address of a byte of the model; `len` bytes from there are in one object.
    pub fn at(&self, offset: usize, len: usize) -> *mut u8 {
        if offset < BYTES {
            assert!(offset + len <= BYTES, "the range is inside the root");
            ptr::with_exposed_provenance_mut(self.root + offset)
        } else {
            assert!(
                offset + len <= BYTES + self.large_size,
                "the range is inside the large object"
            );
            ptr::with_exposed_provenance_mut(self.large + offset - BYTES)
        }
    }
}

const ACKNOWLEDGED: [&str; 8] = [
    "lane 0", "lane 1", "lane 2", "lane 3", "lane 4", "lane 5", "lane 6", "lane 7",
];

/// The note by which a lane acknowledges its steps.
pub fn note_of(lane: usize) -> &'static str {
    ACKNOWLEDGED[lane]
}

/// The transactions of one thread.
pub struct Lane {
    pub pool: Pool,
    pub places: Places,
    pub state: State,
    pub steps: Vec<Step>,
    number: usize,
}

impl Lane {
    pub fn new(pool: Pool, places: Places, state: State, number: usize) -> Lane {
        Lane {
            pool,
            places,
            state,
            steps: Vec::new(),
            number,
        }
    }

    /// Forgets what was done so far.
    pub fn start_from(&mut self, state: &State) {
        self.state = state.clone();
        self.steps.clear();
    }

    /// Begins a transaction.
    pub fn begin(&self) -> Running<'_> {
        self.begin_with(Durability::Durable)
    }

    fn begin_with(&self, durability: Durability) -> Running<'_> {
        // SAFETY: lanes end their guards in reverse order and leak none.
        let tx = unsafe { self.pool.begin_with(durability) }.expect("a transaction begins");
        self.running(tx, durability == Durability::Buffered)
    }

    /// Begins a section: what is stored needs no announcement.
    pub fn begin_section(&self) -> Running<'_> {
        // SAFETY: as above; lanes that use sections store inside of transactions only.
        let tx = unsafe { self.pool.begin_section() }.expect("a section begins");
        self.running(tx, false)
    }

    fn running<'p>(&'p self, tx: Transaction<'p>, is_buffered: bool) -> Running<'p> {
        Running {
            tx,
            is_buffered,
            pool: &self.pool,
            places: self.places,
            undone: self.state.clone(),
            next: self.state.clone(),
        }
    }

    /// Runs a transaction that commits.
    pub fn commits(&mut self, body: impl FnOnce(&mut Running<'_>) -> Result<(), Stop>) {
        let mut running = self.begin();
        body(&mut running).expect("the transaction goes on");
        let step = running.commit();
        self.took(step);
    }

    /// Runs a buffered transaction that commits.
    pub fn buffers(&mut self, body: impl FnOnce(&mut Running<'_>) -> Result<(), Stop>) {
        let mut running = self.begin_with(Durability::Buffered);
        body(&mut running).expect("the transaction goes on");
        let step = running.commit();
        self.took(step);
    }

    /// Runs a section that commits.
    pub fn section_commits(&mut self, body: impl FnOnce(&mut Running<'_>) -> Result<(), Stop>) {
        let mut running = self.begin_section();
        body(&mut running).expect("the section goes on");
        let step = running.commit();
        self.took(step);
    }

    /// Runs a transaction that begins to commit; for [`Lane::waits`].
    pub fn flies(&mut self, body: impl FnOnce(&mut Running<'_>) -> Result<(), Stop>) -> u64 {
        let mut running = self.begin();
        body(&mut running).expect("the transaction goes on");
        let (step, record) = running.fly();
        self.took(step);
        record
    }

    /// Waits for the last one that is in flight.
    pub fn waits(&mut self, record: u64) {
        self.pool.land(record).expect("it lands");
        self.has_landed();
    }

    /// Something else has made durable what was in flight.
    pub fn has_landed(&mut self) {
        let step = Step::durable(self.state.clone(), self.state.clone());
        self.took(step);
    }

    /// Makes everything durable that was buffered.
    pub fn syncs(&mut self) {
        self.pool.sync().expect("what was buffered is written");
        let step = Step::durable(self.state.clone(), self.state.clone());
        self.took(step);
    }

    /// Runs a section that ends with an error.
    pub fn section_aborts(&mut self, body: impl FnOnce(&mut Running<'_>) -> Result<(), Stop>) {
        let mut running = self.begin_section();
        body(&mut running).expect("the section goes on until it is aborted");
        let step = running.abort();
        self.took(step);
    }

    /// Runs a transaction that ends with an error.
    pub fn aborts(&mut self, body: impl FnOnce(&mut Running<'_>) -> Result<(), Stop>) {
        let mut running = self.begin();
        body(&mut running).expect("the transaction goes on until it is aborted");
        let step = running.abort();
        self.took(step);
    }

    /// Runs a transaction that a panic ends.
    pub fn panics(&mut self, body: impl FnOnce(&mut Running<'_>) -> Result<(), Stop>) {
        let mut undone = None;
        let ended = catch_unwind(AssertUnwindSafe(|| {
            let mut running = self.begin();
            body(&mut running).expect("the transaction goes on until the panic");
            undone = Some(running.undone.clone());
            // Unlike `panic!` this prints nothing.
            resume_unwind(Box::new("on purpose"));
        }));
        assert!(ended.is_err());
        let undone = undone.expect("the body came to its end");
        self.took(Step::nothing(undone));
    }

    /// Stores to a range without a transaction and makes it durable.
    pub fn persists(&mut self, offset: usize, bytes: &[u8]) {
        let mut step = Step::durable(self.state.clone(), self.state.clone());
        step.undone.clobber(offset, bytes.len());
        step.done.write(offset, bytes);
        let target = self.places.at(offset, bytes.len());
        unsafe {
            target.copy_from_nonoverlapping(bytes.as_ptr(), bytes.len());
            // In two pieces, and one of nothing.
            let (start, middle) = (target as usize, target as usize + bytes.len() / 3);
            let pieces = [start..middle, start..start, middle..start + bytes.len()];
            self.pool.persist_all(&pieces).expect("persist");
        }
        self.took(step);
    }

    /// An operation has returned: it is acknowledged.
    pub fn took(&mut self, step: Step) {
        self.state = step.done.clone();
        self.steps.push(step);
        record::note(note_of(self.number), self.steps.len() as u64);
    }
}

/// A transaction under way, and what will be true after it.
pub struct Running<'p> {
    pub tx: Transaction<'p>,
    pub pool: &'p Pool,
    places: Places,
    pub undone: State,
    pub next: State,
    is_buffered: bool,
}

impl Running<'_> {
    /// Announces a range of bytes.
    pub fn add(&mut self, offset: usize, len: usize) -> Result<(), Stop> {
        let target = self.places.at(offset, len);
        unsafe { self.tx.add_bytes(target, len, Announce::Backup)? };
        Ok(())
    }

    /// Announces several ranges at once.
    pub fn add_all(&mut self, ranges: &[(usize, usize)]) -> Result<(), Stop> {
        let at =
            |(offset, len): &(usize, usize)| (self.places.at(*offset, *len).cast_const(), *len);
        unsafe { self.tx.add_all(ranges.iter().map(at))? };
        Ok(())
    }

    /// Announces a range whose old bytes nobody needs.
    pub fn clobber(&mut self, offset: usize, len: usize) -> Result<(), Stop> {
        let target = self.places.at(offset, len);
        unsafe { self.tx.add_bytes(target, len, Announce::Clobber)? };
        self.undone.clobber(offset, len);
        Ok(())
    }

    /// Stores to an announced range; in a section, to any.
    pub fn store(&mut self, offset: usize, bytes: &[u8]) {
        let target = self.places.at(offset, bytes.len());
        unsafe { target.copy_from_nonoverlapping(bytes.as_ptr(), bytes.len()) };
        self.next.write(offset, bytes);
    }

    /// Makes a range durable as it is, but for what the transaction has announced.
    pub fn persist(&self, offset: usize, len: usize) {
        let target = self.places.at(offset, len);
        unsafe { self.pool.persist(target, len).expect("persist") };
    }

    /// Announces a range and fills it.
    pub fn change(&mut self, offset: usize, len: usize, tag: u64) -> Result<(), Stop> {
        self.add(offset, len)?;
        self.store(offset, &pattern(tag, len));
        Ok(())
    }

    /// Defers a change of a range.
    pub fn set(&mut self, offset: usize, len: usize, tag: u64) -> Result<(), Stop> {
        let target = self.places.at(offset, len);
        let bytes = pattern(tag, len);
        unsafe { self.tx.set_bytes(target, bytes.as_ptr(), len)? };
        self.next.write(offset, &bytes);
        Ok(())
    }

    /// Allocates an object, fills it and enters it in a slot.
    pub fn alloc(&mut self, slot: usize, size: usize, tag: u64, how: How) -> Result<(), Stop> {
        self.alloc_aligned(slot, size, 8, tag, how)
    }

    pub fn alloc_aligned(
        &mut self,
        slot: usize,
        size: usize,
        align: usize,
        tag: u64,
        how: How,
    ) -> Result<(), Stop> {
        let object = self.tx.alloc_bytes(self.pool, byte_type(), size, align)?;
        assert_eq!(object.addr() % align, 0, "the object is aligned");
        let bytes = pattern(tag, size);
        unsafe { object.copy_from_nonoverlapping(bytes.as_ptr(), size) };
        self.enter(slot, object, size, tag, how)
    }

    /// Allocates an object with its contents, in two parts.
    pub fn alloc_filled(&mut self, slot: usize, size: usize, tag: u64) -> Result<(), Stop> {
        let bytes = pattern(tag, size);
        let (head, rest) = bytes.split_at(size / 3);
        let parts = [head, rest];
        let object = unsafe { self.tx.alloc_filled(self.pool, byte_type(), &parts, 8)? };
        self.enter(slot, object, size, tag, How::Set)
    }

    /// Allocates an object and fills it by `set`, which takes effect at commit.
    pub fn alloc_and_set(&mut self, slot: usize, size: usize, tag: u64) -> Result<(), Stop> {
        let object = self.tx.alloc_bytes(self.pool, byte_type(), size, 8)?;
        let bytes = pattern(tag, size);
        unsafe { self.tx.set_bytes(object, bytes.as_ptr(), size)? };
        self.enter(slot, object, size, tag, How::Set)
    }

    /// Allocates an object and fills it, but for a part that `set` fills at commit: not before, because another one has
    /// to wait.
    pub fn alloc_and_set_part(&mut self, slot: usize, size: usize, tag: u64) -> Result<(), Stop> {
        self.change(0, 12, tag)?;
        self.set(8, 12, tag + 1)?;
        let object = self.tx.alloc_bytes(self.pool, byte_type(), size, 8)?;
        let mut bytes = pattern(tag, size);
        let part = size / 2..size / 2 + 100;
        unsafe {
            let source = bytes[part.clone()].as_ptr();
            self.tx
                .set_bytes(object.add(part.start), source, part.len())?;
            bytes[part].fill(0x66);
            object.copy_from_nonoverlapping(bytes.as_ptr(), size);
        }
        self.enter(slot, object, size, tag, How::Set)
    }

    /// Allocates an object and makes a part of it durable as it is then, before it is filled.
    pub fn alloc_after_persist(&mut self, slot: usize, size: usize, tag: u64) -> Result<(), Stop> {
        let object = self.tx.alloc_bytes(self.pool, byte_type(), size, 8)?;
        let bytes = pattern(tag, size);
        unsafe {
            let part = object.add(size / 3);
            part.write_bytes(0x55, size / 2);
            self.pool.persist(part, size / 2)?;
            object.copy_from_nonoverlapping(bytes.as_ptr(), size);
        }
        self.enter(slot, object, size, tag, How::Set)
    }

    /// Allocates an object of zeros.
    pub fn alloc_zeroed(&mut self, slot: usize, how: How) -> Result<(), Stop> {
        let object = self.tx.alloc_zeroed::<[u64; 12]>()?.cast::<u8>();
        self.enter(slot, object, 96, 0, how)
    }

    fn enter(
        &mut self,
        slot: usize,
        object: *mut u8,
        size: usize,
        tag: u64,
        how: How,
    ) -> Result<(), Stop> {
        let value = Slot {
            object,
            size: size as u64,
            tag,
        };
        self.put(slot, value, how)?;
        self.next.slots[slot] = Some(Blob {
            address: object.expose_provenance(),
            size,
            tag,
        });
        Ok(())
    }

    fn put(&mut self, slot: usize, value: Slot, how: How) -> Result<(), Stop> {
        unsafe {
            let target = &raw mut (*self.places.root()).slots[slot];
            match how {
                How::Add => {
                    self.tx.add(target)?;
                    target.write(value);
                }
                How::Set => self.tx.set(target, value)?,
            }
        }
        Ok(())
    }

    /// Whether a deferred store waits on a slot; tried out by announcing it.
    pub fn slot_is_pending(&self, slot: usize) -> bool {
        let target = unsafe { &raw const (*self.places.root()).slots[slot] };
        matches!(
            unsafe { self.tx.add(target) },
            Err(Error::PendingSet { .. })
        )
    }

    /// Frees the object of a slot.
    pub fn free(&mut self, slot: usize, how: How) -> Result<(), Stop> {
        let blob = self.next.slots[slot].expect("the slot holds an object");
        unsafe {
            self.tx
                .free(ptr::with_exposed_provenance_mut::<u8>(blob.address))?;
        }
        self.put(slot, EMPTY, how)?;
        self.next.slots[slot] = None;
        Ok(())
    }

    /// Allocates an object that no slot holds yet.
    pub fn alloc_only(&mut self, size: usize, tag: u64) -> Result<(), Stop> {
        let object = self.tx.alloc_bytes(self.pool, byte_type(), size, 8)?;
        let bytes = pattern(tag, size);
        unsafe { object.copy_from_nonoverlapping(bytes.as_ptr(), size) };
        self.next.loose.push(Blob {
            address: object.expose_provenance(),
            size,
            tag,
        });
        Ok(())
    }

    /// Enters the oldest object that no slot holds.
    pub fn enter_only(&mut self, slot: usize) -> Result<(), Stop> {
        let blob = self.next.loose.remove(0);
        let object = ptr::with_exposed_provenance_mut(blob.address);
        self.enter(slot, object, blob.size, blob.tag, How::Set)
    }

    /// Takes an object out of its slot.
    pub fn unlink(&mut self, slot: usize) -> Result<(), Stop> {
        let blob = self.next.slots[slot]
            .take()
            .expect("the slot holds an object");
        self.next.loose.push(blob);
        self.put(slot, EMPTY, How::Set)
    }

    /// Frees the oldest object that no slot holds.
    pub fn free_only(&mut self) -> Result<(), Stop> {
        let blob = self.next.loose.remove(0);
        unsafe {
            self.tx
                .free(ptr::with_exposed_provenance_mut::<u8>(blob.address))?;
        }
        Ok(())
    }

    /// Allocates an object that no slot holds, and frees it again.
    pub fn alloc_and_free(&mut self, size: usize) -> Result<(), Stop> {
        let object = self.tx.alloc_bytes(self.pool, byte_type(), size, 8)?;
        unsafe {
            object.write_bytes(0x77, size);
            self.tx.free(object)?;
        }
        Ok(())
    }

    /// Fills the object of a slot anew.
    pub fn refill(&mut self, slot: usize, tag: u64) -> Result<(), Stop> {
        let blob = self.next.slots[slot].expect("the slot holds an object");
        let object = ptr::with_exposed_provenance_mut::<u8>(blob.address);
        let bytes = pattern(tag, blob.size);
        unsafe {
            self.tx.add_bytes(object, blob.size, Announce::Backup)?;
            object.copy_from_nonoverlapping(bytes.as_ptr(), blob.size);
        }
        self.enter(slot, object, blob.size, tag, How::Add)
    }

    /// The same by small pieces, which are logged as far as they change.
    pub fn refill_in_pieces(&mut self, slot: usize, tag: u64) -> Result<(), Stop> {
        let blob = self.next.slots[slot].expect("the slot holds an object");
        let object = ptr::with_exposed_provenance_mut::<u8>(blob.address);
        for (at, piece) in pattern(tag, blob.size).chunks(200).enumerate() {
            unsafe {
                let target = object.add(200 * at);
                self.tx.add_bytes(target, piece.len(), Announce::Backup)?;
                target.copy_from_nonoverlapping(piece.as_ptr(), piece.len());
            }
        }
        self.enter(slot, object, blob.size, tag, How::Add)
    }

    /// Announces the object of a slot with what lies behind it, which is nobody's.
    pub fn reach_beyond(&mut self, slot: usize, len: usize) -> Result<(), Stop> {
        let blob = self.next.slots[slot].expect("the slot holds an object");
        let object = ptr::with_exposed_provenance_mut::<u8>(blob.address);
        unsafe { self.tx.add_bytes(object, len, Announce::Backup)? };
        Ok(())
    }

    /// Commits; what the transaction may have left.
    pub fn commit(self) -> Step {
        self.tx.commit().expect("the transaction commits");
        Step {
            is_durable: !self.is_buffered,
            ..Step::durable(self.undone, self.next)
        }
    }

    /// Begins to commit; what the transaction may have left, and which record it is.
    pub fn fly(self) -> (Step, u64) {
        // As `Transaction::commit_begin` does, whose result borrows the lane.
        std::mem::forget(self.tx);
        let record = unsafe { Tx::begin_to_end_level() }.expect("the transaction commits");
        let step = Step {
            is_durable: false,
            is_in_flight: true,
            ..Step::durable(self.undone, self.next)
        };
        (step, record)
    }

    /// Tries to commit, which has to fail and to leave nothing.
    pub fn fails(self) -> Step {
        let error = self.tx.commit().expect_err("the commit fails");
        assert!(
            matches!(
                error,
                Error::LogFull { .. } | Error::Store(durum::StoreError::StorageFull { .. })
            ),
            "{error}"
        );
        Step::nothing(self.undone)
    }

    /// Tries to commit; what the transaction may have left, and the error if it failed.
    pub fn commit_or_not(self) -> Result<Step, (Step, Error)> {
        let result = self.tx.commit();
        let step = Step::durable(self.undone, self.next);
        match result {
            Ok(()) => Ok(step),
            Err(error) => Err((step, error)),
        }
    }

    /// Rolls back; what the transaction may have left.
    pub fn abort(self) -> Step {
        self.tx.abort();
        Step::nothing(self.undone)
    }
}
