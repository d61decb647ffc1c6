//! `DURUM_STATS=1`: how many words of live-ins regions have, and how many stores (iDO, Figure 8), told on the standard
//! error when the program ends.
//!
//! A region counts each time when it is done: from a record to the next one, or to the end of its section; and a word
//! that needs no record. Stores are counted as compiled code announces them, those side by side as one.

use std::fmt;
use std::sync::Once;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// Numbers from here on are counted together.
const MANY: usize = 32;

static IS_WANTED: AtomicBool = AtomicBool::new(false);
static SECTIONS: AtomicU64 = AtomicU64::new(0);
static LIVE_INS: Distribution = Distribution::new();
static STORES: Distribution = Distribution::new();

/// The region in which a thread is.
#[derive(Debug, Default)]
pub(crate) struct OpenRegion {
    is_open: bool,
    stores: u32,
}

impl OpenRegion {
    /// A store was made.
    #[inline]
    pub(crate) fn note_store(&mut self) {
        self.stores = self.stores.wrapping_add(1);
    }

    /// The region has ended, and another one begins.
    #[inline]
    pub(crate) fn begin(&mut self, live_ins: u16) {
        if IS_WANTED.load(Ordering::Relaxed) {
            self.count();
            LIVE_INS.add(live_ins.into());
            *self = Self {
                is_open: true,
                stores: 0,
            };
        }
    }

    /// The section has ended.
    #[inline]
    pub(crate) fn end(&mut self) {
        if IS_WANTED.load(Ordering::Relaxed) && self.is_open {
            self.count();
            SECTIONS.fetch_add(1, Ordering::Relaxed);
            self.is_open = false;
        }
    }

    fn count(&self) {
        if self.is_open {
            STORES.add(self.stores as usize);
        }
    }
}

/// Begins to count, if the environment asks for it.
pub(crate) fn begin_if_wanted() {
    extern "C" fn tell() {
        eprint!("{}", Report);
    }
    static ASKED: Once = Once::new();
    ASKED.call_once(|| {
        let is_wanted =
            std::env::var_os("DURUM_STATS").is_some_and(|value| value != "0" && !value.is_empty());
        // SAFETY: a function that stays.
        if is_wanted && unsafe { libc::atexit(tell) } == 0 {
            IS_WANTED.store(true, Ordering::Relaxed);
        }
    });
}

/// How often there was each number.
struct Distribution([AtomicU64; MANY + 1]);

impl Distribution {
    const fn new() -> Self {
        Self([const { AtomicU64::new(0) }; MANY + 1])
    }

    #[cold]
    fn add(&self, number: usize) {
        if let Some(count) = self.0.get(number.min(MANY)) {
            count.fetch_add(1, Ordering::Relaxed);
        }
    }

    fn counts(&self) -> impl Iterator<Item = u64> {
        self.0.iter().map(|count| count.load(Ordering::Relaxed))
    }
}

impl fmt::Display for Distribution {
    /// How many of a hundred have at most so many.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let all = self.counts().sum::<u64>().max(1);
        let (mut sum, mut separator) = (0, "");
        for (number, count) in self.counts().enumerate() {
            sum += count;
            if count > 0 {
                let more = if number == MANY { " and more" } else { "" };
                let share = 100.0 * sum as f64 / all as f64;
                write!(f, "{separator}{number}{more}: {share:.2}")?;
                separator = ", ";
            }
        }
        Ok(())
    }
}

struct Report;

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let sections = SECTIONS.load(Ordering::Relaxed);
        let regions: u64 = LIVE_INS.counts().sum();
        writeln!(f, "ido: {regions} regions in {sections} sections")?;
        writeln!(
            f,
            "ido: percent with at most so many words of live-ins: {LIVE_INS}"
        )?;
        writeln!(f, "ido: percent with at most so many stores: {STORES}")
    }
}
