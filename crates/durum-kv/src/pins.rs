//! The sequence numbers that somebody reads by.

use std::collections::BTreeMap;

use crate::primitive::{
    AtomicBool, AtomicU64, AtomicUsize, Condvar, Mutex, Ordering, limit, locked, thread_number,
    waited,
};

/// Pins that have a place of their own.
const PLACES: usize = limit(64, 1);

/// The sequence numbers of snapshots and iterators. A number is entered while readers keep the writer out, so that a
/// writer which finds none knows that no older version is needed.
#[derive(Debug)]
pub(crate) struct Pins {
    /// The number of pins, so that a writer sees without a look at the places that there are none.
    count: AtomicUsize,
    /// A number and 1, or 0 where nobody is. Who finds no place is counted under a lock.
    places: Box<[AtomicU64]>,
    others: Mutex<BTreeMap<u64, usize>>,
    /// Nobody enters a number that is not pinned: the writer is taking away what it sees.
    is_shut: AtomicBool,
    queue: Mutex<Queue>,
    opened: Condvar,
}

/// Those who wait until they may read by the visible number.
#[derive(Debug, Default)]
struct Queue {
    /// How many have come so far, which is the name of the next one.
    came: u64,
    waiting: Vec<u64>,
    /// What the writer has entered for them.
    entered: Vec<(u64, Entered)>,
}

/// A number that was entered, and its place, if it has one.
pub(crate) type Entered = (u64, Option<usize>);

/// As long as the writer has it nobody enters a number that is not pinned. At its end it enters the visible number for
/// all who wait: so nobody waits for more than one commit.
pub(crate) struct Shut<'p> {
    pins: &'p Pins,
    visible: &'p AtomicU64,
}

impl Drop for Shut<'_> {
    fn drop(&mut self) {
        let Self { pins, visible } = self;
        let mut queue = locked(&pins.queue);
        pins.is_shut.store(false, Ordering::SeqCst);
        let visible = visible.load(Ordering::Acquire);
        for name in std::mem::take(&mut queue.waiting) {
            let entered = (visible, pins.enter(visible));
            queue.entered.push((name, entered));
        }
        drop(queue);
        pins.opened.notify_all();
    }
}

impl Default for Pins {
    fn default() -> Self {
        Self {
            count: AtomicUsize::new(0),
            places: (0..PLACES).map(|_| AtomicU64::new(0)).collect(),
            others: Mutex::new(BTreeMap::new()),
            is_shut: AtomicBool::new(false),
            queue: Mutex::default(),
            opened: Condvar::new(),
        }
    }
}

impl Pins {
    /// From here on nobody enters a number that is not pinned. For the writer, before it keeps readers out: those whom
    /// it finds inside then have entered theirs.
    pub(crate) fn shut<'p>(&'p self, visible: &'p AtomicU64) -> Shut<'p> {
        self.is_shut.store(true, Ordering::SeqCst);
        let pins = self;
        Shut { pins, visible }
    }

    /// To be asked while readers keep the writer out.
    #[inline]
    pub(crate) fn is_shut(&self) -> bool {
        self.is_shut.load(Ordering::SeqCst)
    }

    /// Waits for the writer, who enters the number that is visible then. `None`: it is through already. For those who
    /// keep nobody out.
    #[cold]
    pub(crate) fn wait(&self) -> Option<Entered> {
        let mut queue = locked(&self.queue);
        if !self.is_shut() {
            return None;
        }
        let name = queue.came;
        queue.came += 1;
        queue.waiting.push(name);
        loop {
            let mut entered = queue.entered.iter();
            if let Some(at) = entered.position(|(other, _)| *other == name) {
                return Some(queue.entered.swap_remove(at).1);
            }
            queue = waited(&self.opened, queue);
        }
    }

    /// Where it is entered, if it has a place.
    pub(crate) fn enter(&self, sequence: u64) -> Option<usize> {
        self.count.fetch_add(1, Ordering::Relaxed);
        let first = thread_number() % PLACES;
        let places = (first..PLACES).chain(0..first);
        for place in places {
            let word = &self.places[place];
            // Release: who finds the place free again has entered it anew.
            if word.load(Ordering::Relaxed) == 0
                && word
                    .compare_exchange(0, sequence + 1, Ordering::AcqRel, Ordering::Relaxed)
                    .is_ok()
            {
                return Some(place);
            }
        }
        *locked(&self.others).entry(sequence).or_default() += 1;
        None
    }

    pub(crate) fn leave(&self, sequence: u64, place: Option<usize>) {
        match place {
            Some(place) => self.places[place].store(0, Ordering::Release),
            None => {
                let mut others = locked(&self.others);
                if let Some(count) = others.get_mut(&sequence) {
                    *count -= 1;
                    if *count == 0 {
                        others.remove(&sequence);
                    }
                }
            }
        }
        // Release: what was read by the pin was read before a writer finds that there are none.
        self.count.fetch_sub(1, Ordering::Release);
    }

    /// The numbers, ascending. For the writer, while it keeps readers out.
    #[inline]
    pub(crate) fn sequences(&self) -> Vec<u64> {
        match self.count.load(Ordering::Acquire) {
            0 => Vec::new(),
            _ => self.entered(),
        }
    }

    fn entered(&self) -> Vec<u64> {
        let places = self
            .places
            .iter()
            .map(|place| place.load(Ordering::Acquire));
        let mut sequences: Vec<u64> = places.filter_map(|word| word.checked_sub(1)).collect();
        sequences.extend(locked(&self.others).keys());
        sequences.sort_unstable();
        sequences.dedup();
        sequences
    }

    /// The number of pins.
    pub(crate) fn len(&self) -> usize {
        self.count.load(Ordering::Relaxed)
    }
}
