//! Judging an image: recovery, structures, contents, use.

use std::collections::{BTreeSet, HashMap};
use std::path::Path;
use std::thread;

use crate::support::{engine, pool_options};
use durum::{Announce, Domain, Engine, Error, Store, StoreOptions};
use durum_persist::simulate::CrashPoint;
use durum_service::{self as service, CheckOptions, Embedded, Leaks, OpenOptions, Severity};

use super::copies::{self, Live, Place};
use super::lane::{Step, note_of};
use super::state::{BYTES, Blob, Found, Owners, Root, SLOTS, State, byte_type, pattern};

/// The pool that tests use.
pub const POOL: &str = "pool";

/// Lets the service recover an image, without the program that made it.
pub fn recover(image: &Path, domain: Domain) -> Result<(), String> {
    let mut options = OpenOptions::default();
    options.domain = Some(domain);
    let store = Embedded::open(image, options).map_err(|error| error.to_string())?;
    match store.recovery_report().quarantined.first() {
        Some(note) => Err(format!("a log was quarantined: {}", note.reason)),
        None => Ok(()),
    }
}

/// What a run may have left, and how to find out what it did leave.
pub struct Judge {
    pub domain: Domain,
    pub owners: Owners,
    /// By lane.
    pub lanes: Vec<Vec<Step>>,
    /// Before the recording.
    pub first: State,
    /// Objects before the recording that no slot holds: the root, the large object.
    pub other_objects: u64,
    /// One image in so many is used for transactions of its own after it was found right.
    pub used_one_in: u64,
    judged: u64,
    /// By tag, the size of each object that the run ever made: a slot that says otherwise is not followed.
    sizes: HashMap<u64, usize>,
}

impl Judge {
    pub fn new(
        domain: Domain,
        owners: Owners,
        first: State,
        lanes: Vec<Vec<Step>>,
        other_objects: u64,
    ) -> Judge {
        let states = lanes.iter().flatten();
        let blobs = states.flat_map(|step| step.undone.slots.iter().chain(&step.done.slots));
        let blobs = blobs.chain(&first.slots).flatten();
        let sizes = blobs.map(|blob| (blob.tag, blob.size)).collect();
        Judge {
            domain,
            owners,
            lanes,
            first,
            other_objects,
            used_one_in: 4,
            judged: 0,
            sizes,
        }
    }

    /// Checks an image that was recovered.
    pub fn judge(&mut self, image: &Path, point: &CrashPoint<'_>) -> Result<(), String> {
        self.judged += 1;
        let used = self.judged.is_multiple_of(self.used_one_in.max(1));
        let objects = check_structures(image)?;
        // A thread of its own: what it keeps of the store goes away with it.
        let (found, live) = thread::scope(|scope| {
            let opened = scope.spawn(|| self.look(image, used));
            opened.join().unwrap_or_else(|payload| {
                let text = payload.downcast_ref::<String>().cloned();
                Err(format!("the client panicked: {}", text.unwrap_or_default()))
            })
        })?;
        if engine() == Engine::Twin {
            let steps = self.lanes.iter().flatten();
            let states: Vec<&State> = steps.flat_map(|step| [&step.undone, &step.done]).collect();
            copies::agree(image, &live, |place| match place {
                Place::Byte(offset) => states.iter().any(|state| state.is_any(offset)),
                Place::Other => false,
            })?;
        }
        // How many loose objects the lanes may have: all sums of what each may have.
        let mut sums = BTreeSet::from([0]);
        for (lane, steps) in self.lanes.iter().enumerate() {
            let loose = self.compare(&found, lane, steps, point)?;
            sums = sums
                .iter()
                .flat_map(|sum| loose.iter().map(move |count| sum + count))
                .collect();
        }
        let held = found.slots.iter().flatten().count() as u64 + self.other_objects;
        let loose = objects.reached.checked_sub(held).map(|_| objects.lost);
        if objects.reached != held || !loose.is_some_and(|loose| sums.contains(&loose)) {
            return Err(format!(
                "the root leads to {} objects and {} are lost, but the root and its slots hold {held} and {sums:?} may be loose",
                objects.reached, objects.lost
            ));
        }
        if used && check_structures(image)? != objects {
            return Err("a transaction after recovery left objects behind".into());
        }
        Ok(())
    }

    /// Compares a lane's share with what its steps allow. The numbers of loose objects that go with what was found.
    fn compare(
        &self,
        found: &Found,
        lane: usize,
        steps: &[Step],
        point: &CrashPoint<'_>,
    ) -> Result<Vec<u64>, String> {
        let acknowledged = point.last_note(note_of(lane)).unwrap_or(0) as usize;
        let before = |step: usize| match step.checked_sub(1) {
            Some(last) => &steps[last].done,
            None => &self.first,
        };
        let mut allowed = match steps.get(acknowledged) {
            Some(next) => vec![
                ("had the next not happened", &next.undone),
                ("had the next happened", &next.done),
            ],
            None => vec![("after the last", before(acknowledged))],
        };
        // What was buffered may be lost, the last ones first; of those in flight only the last one.
        let (lost, mut in_flight) = ((0..acknowledged).rev(), 0);
        let is_lost = |step: &usize| {
            in_flight += usize::from(steps[*step].is_in_flight);
            !steps[*step].is_durable && in_flight <= 1
        };
        allowed.extend(
            lost.take_while(is_lost)
                .map(|step| ("had the last ones been lost", before(step))),
        );
        let mut differences = Vec::new();
        let mut loose = Vec::new();
        for (what, state) in allowed {
            match found.differs(state, &self.owners, lane) {
                None => loose.push(state.loose.len() as u64),
                Some(difference) => differences.push(format!("{what}: {difference}")),
            }
        }
        if !loose.is_empty() {
            return Ok(loose);
        }
        Err(format!(
            "lane {lane}: {acknowledged} operations were acknowledged; {}",
            differences.join("; ")
        ))
    }

    /// Opens the image with the client, reads it, and uses it.
    fn look(&self, image: &Path, used: bool) -> Result<(Found, Vec<Live>), String> {
        let text = |error: Error| error.to_string();
        let options = StoreOptions::new().domain(self.domain);
        let store = Store::open(image, options).map_err(text)?;
        if !store.recovery().is_some_and(|report| report.was_clean) {
            return Err("recovery left the store in need of recovery".into());
        }
        let pool = store.open_pool(POOL, pool_options()).map_err(text)?;
        let root = pool.root::<Root>().map_err(text)?;
        // The structures were checked: every pointer leads to an object of this pool.
        let found = self.read(unsafe { &*root })?;
        if used {
            use_pool(&pool, root).map_err(|error| format!("using the pool: {error}"))?;
            let again = self.read(unsafe { &*root })?;
            if again.bytes != found.bytes || again.slots != found.slots {
                return Err("a transaction after recovery changed what it did not announce".into());
            }
        }
        let live = live_of(unsafe { &*root }, &found);
        Ok((found, live))
    }

    fn read(&self, root: &Root) -> Result<Found, String> {
        let mut bytes = Vec::with_capacity(BYTES + root.large_size as usize);
        bytes.extend_from_slice(&root.bytes);
        if !root.large.is_null() {
            bytes.extend_from_slice(unsafe {
                std::slice::from_raw_parts(root.large, root.large_size as usize)
            });
        }
        let mut slots = [None; SLOTS];
        for (index, slot) in root.slots.iter().enumerate() {
            let size = slot.size as usize;
            if slot.object.is_null() {
                if slot.size != 0 || slot.tag != 0 {
                    return Err(format!("slot {index} is half empty: {slot:x?}"));
                }
                continue;
            }
            if self.sizes.get(&slot.tag) != Some(&size) {
                return Err(format!(
                    "slot {index} is not one that was written: {slot:x?}"
                ));
            }
            let object = unsafe { std::slice::from_raw_parts(slot.object, size) };
            let wanted = pattern(slot.tag, size);
            if object != wanted {
                let equal = object.iter().zip(&wanted).take_while(|(a, b)| a == b);
                return Err(format!(
                    "the object of slot {index} ({slot:x?}) differs from what was stored at offset {}",
                    equal.count()
                ));
            }
            slots[index] = Some(Blob {
                address: slot.object.addr(),
                size,
                tag: slot.tag,
            });
        }
        Ok(Found { bytes, slots })
    }
}

/// Where the objects of the pool lie.
fn live_of(root: &Root, found: &Found) -> Vec<Live> {
    let live = |start: usize, len, first| Live {
        range: start..start + len,
        first,
    };
    let blobs = found.slots.iter().flatten();
    let mut all: Vec<Live> = blobs
        .map(|blob| live(blob.address, blob.size, None))
        .collect();
    let start = std::ptr::from_ref(root).addr();
    all.push(live(start, BYTES, Some(0)));
    all.push(live(start + BYTES, size_of::<Root>() - BYTES, None));
    if !root.large.is_null() {
        all.push(live(
            root.large.addr(),
            root.large_size as usize,
            Some(BYTES),
        ));
    }
    all
}

/// Transactions of several kinds that leave everything as it was.
fn use_pool(pool: &durum::Pool, root: *mut Root) -> Result<(), Error> {
    let bytes = unsafe { &raw mut (*root).bytes }.cast::<u8>();
    let kept = unsafe { std::slice::from_raw_parts(bytes, 64).to_vec() };
    let mut objects = Vec::new();
    for size in [8, 40, 256, 300, 5000] {
        objects.push(pool.transaction(|tx| {
            let object = tx.alloc_bytes(pool, byte_type(), size, 8)?;
            unsafe { object.write_bytes(0x5a, size) };
            Ok::<_, Error>((object, size))
        })?);
    }
    pool.transaction(|tx| unsafe {
        tx.add_bytes(bytes, 32, Announce::Backup)?;
        bytes.write_bytes(0xee, 32);
        tx.set(&raw mut (*root).bytes[32], 0xdd)?;
        Ok::<_, Error>(())
    })?;
    let aborted: Result<(), Error> = pool.transaction(|tx| unsafe {
        tx.add_bytes(bytes, 16, Announce::Backup)?;
        bytes.write_bytes(0x11, 16);
        tx.abort()
    });
    assert!(matches!(aborted, Err(Error::Aborted)), "{aborted:?}");
    unsafe {
        let changed = std::slice::from_raw_parts(bytes, 33);
        assert!(changed[..32].iter().all(|byte| *byte == 0xee));
        assert_eq!(changed[32], 0xdd);
    }
    pool.transaction(|tx| unsafe {
        tx.add_bytes(bytes, 64, Announce::Backup)?;
        bytes.copy_from_nonoverlapping(kept.as_ptr(), 64);
        for (object, size) in &objects {
            let bytes = std::slice::from_raw_parts(*object, *size);
            assert!(
                bytes.iter().all(|byte| *byte == 0x5a),
                "nobody else wrote there"
            );
            tx.free(*object)?;
        }
        Ok::<_, Error>(())
    })
}

/// Objects of a store.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Objects {
    /// Led to by the roots.
    pub reached: u64,
    /// Allocated all the same.
    pub lost: u64,
}

/// Lets the service check a closed store: structures, pointers, and that nothing awaits recovery.
pub fn check_structures(image: &Path) -> Result<Objects, String> {
    let report = service::check(image, &CheckOptions::default())
        .map_err(|error| format!("check: {error}"))?;
    if let Some(finding) = report
        .findings
        .iter()
        .find(|finding| finding.severity > Severity::Leak)
    {
        return Err(format!("check found: {finding}"));
    }
    if !report.pending.was_clean {
        return Err("check finds logs that await recovery".into());
    }
    let mut all = Objects {
        reached: 0,
        lost: 0,
    };
    for pool in &report.pools {
        let lost = match &pool.leaks {
            Leaks::Judged { objects, .. } => *objects,
            leaks => return Err(format!("pool {}: {leaks:?}", pool.name)),
        };
        all.lost += lost;
        all.reached += pool.objects - lost;
    }
    Ok(all)
}
