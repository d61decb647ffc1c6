//! Everything that durum writes to media, and the simulator of crashes built on that.
//!
//! A store to persistent memory is durable once its line was *written back* and the same thread has *fenced*; a
//! write to a file once the file was *synced*. This crate is the one place that does any of these. So it can
//! count them, slow them down to emulate other media, record them, and try every crash in between.
//!
//! Reading order: [`line`](mod@line) (mapped memory) and [`file`](mod@file) are what durum's other crates call;
//! [`domain`] tells which of the two a directory needs; [`count`] tells what it cost. [`record`] and [`simulate`] are
//! for crash tests, also for those of your own structures; [`inject`] lets file operations fail.
//! docs/how-to/crash-testing.md is the guide to them.
//!
//! # Example: crash-testing a structure of one's own
//!
//! Two words must always be equal. The first version of `set` trusts the order of its stores; the simulator
//! finds the crash that parts them. The second one keeps the words in two copies and switches between these by one
//! store, which cannot tear.
//!
//! ```
//! use std::path::Path;
//! use durum_persist::file::MediaFile;
//! use durum_persist::record::{self, Recorder, RecorderOptions, Trace};
//! use durum_persist::simulate::{CrashPoint, Plan, Rules, explore};
//! use durum_persist::{Site, line};
//!
//! const WORDS: Site = Site("both words");
//! const WHICH: Site = Site("which copy counts");
//!
//! /// Three lines of a mapped file: which copy counts, copy 0, copy 1.
//! struct Pair(*mut u64);
//!
//! impl Pair {
//!     fn write(&self, index: usize, value: u64, site: Site) {
//!         // SAFETY: the mapping has 24 words.
//!         unsafe { line::store_u64(self.0.add(index), value) };
//!         // SAFETY: the same word.
//!         unsafe { line::write_back(self.0.add(index).cast(), 8, site) };
//!     }
//!
//!     fn set_hastily(&self, value: u64) {
//!         self.write(8, value, WORDS);
//!         self.write(9, value, WORDS);
//!         line::fence(WORDS);
//!     }
//!
//!     fn set(&self, value: u64) {
//!         // SAFETY: a word of the mapping.
//!         let copy = 1 - unsafe { self.0.read() };
//!         self.write(8 + 8 * copy as usize, value, WORDS);
//!         self.write(9 + 8 * copy as usize, value, WORDS);
//!         // ORDER: the copy is durable before the word that makes it count; else a crash between the two
//!         // shows half of it.
//!         line::fence(WORDS);
//!         self.write(0, copy, WHICH);
//!         // ORDER: the switch is durable before the caller is told; else an acknowledged value is lost.
//!         line::fence(WHICH);
//!     }
//! }
//!
//! /// Records one use of the structure, in a directory of its own.
//! fn run(set: fn(&Pair, u64)) -> Result<Trace, std::io::Error> {
//!     use rustix::mm::{MapFlags, ProtFlags, mmap, munmap};
//!     let dir = tempfile::tempdir_in("/dev/shm")?;
//!     let file = MediaFile::create_new(&dir.path().join("pair"))?;
//!     file.allocate(4096, Site("space"))?;
//!     let recorder = Recorder::start(dir.path(), RecorderOptions::default());
//!     let flags = ProtFlags::READ | ProtFlags::WRITE;
//!     // SAFETY: a new mapping.
//!     let memory = unsafe { mmap(std::ptr::null_mut(), 4096, flags, MapFlags::SHARED, &file, 0)? };
//!     // SAFETY: mapped until `unmapped` says otherwise.
//!     unsafe { record::mapped(memory.cast(), 4096, &file, 0, true) };
//!     let pair = Pair(memory.cast());
//!     for value in 1..=3 {
//!         set(&pair, value);
//!         record::note("set", value);
//!     }
//!     let trace = recorder.stop();
//!     record::unmapped(memory.cast(), 4096);
//!     // SAFETY: the mapping made above, not used any more.
//!     unsafe { munmap(memory, 4096)? };
//!     Ok(trace)
//! }
//!
//! /// Whatever the crash: the words are equal, and hold the last value set or the one that was being set.
//! fn check(image: &Path, point: &CrashPoint<'_>) -> Result<(), String> {
//!     let bytes = std::fs::read(image.join("pair")).map_err(|error| error.to_string())?;
//!     let word = |index: usize| u64::from_ne_bytes(bytes[index * 8..][..8].try_into().unwrap());
//!     let copy = 8 + 8 * word(0) as usize;
//!     let set = point.last_note("set").unwrap_or(0);
//!     if word(copy) != word(copy + 1) || !(set..=set + 1).contains(&word(copy)) {
//!         return Err(format!("{} and {}, after {set} was set", word(copy), word(copy + 1)));
//!     }
//!     Ok(())
//! }
//!
//! let plan = Plan::new(Rules::Lines, 1);
//! let failure = explore(&run(Pair::set_hastily)?, &plan, check).expect_err("words tear apart");
//! assert!(failure.to_string().contains("both words") || failure.to_string().contains("Stored"));
//! let report = explore(&run(Pair::set)?, &plan, check).unwrap_or_else(|failure| panic!("{failure}"));
//! assert!(report.images > 15);
//! # Ok::<(), std::io::Error>(())
//! ```

#![warn(clippy::unwrap_used)]

pub mod beneath;
pub mod count;
mod delay;
pub mod domain;
pub mod file;
pub mod inject;
mod key;
mod large;
pub mod line;
pub mod own;
mod processor;
pub mod random;
pub mod record;
mod recording;
pub mod signals;
pub mod simulate;
mod state;
#[doc(hidden)]
pub mod wide;

/// What a write-back, a fence or a sync is there for.
///
/// The text is a short phrase that names the data, e.g. `Site("log entry")`. It costs nothing in the
/// product. A recorder writes it into the trace, a crash test prints it, and a canary run names it in
/// [`record::RecorderOptions::skip`] to leave that operation out and see whether a test notices.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Site(pub &'static str);
