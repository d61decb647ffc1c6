//! Simulation of crashes: the states in which a recorded directory may be found after a crash at any event.
//!
//! Record a run ([`crate::record`]), then [`explore`] it: at each event *images* of the directory are made and given to
//! a check. The fault model is told in docs/how-to/crash-testing.md; in short, what is not durable yet shows its old or
//! any newer version, each word ([`Rules::Lines`]) or sector ([`Rules::Sectors`]), each length and each name on its
//! own.
//!
//! ```
//! use durum_persist::{Site, file::{self, MediaFile}, record::{self, Recorder, RecorderOptions}};
//! use durum_persist::simulate::{Plan, Rules, explore};
//!
//! let dir = tempfile::tempdir_in("/dev/shm")?;
//! let recorder = Recorder::start(dir.path(), RecorderOptions::default());
//! let log = MediaFile::create_new(&dir.path().join("log"))?;
//! log.write_all_at(b"entry", 0)?;
//! log.sync(Site("entry"))?;
//! file::sync_dir(dir.path(), Site("name of the log"))?;
//! record::note("acknowledged", 1);
//! let trace = recorder.stop();
//!
//! let report = explore(&trace, &Plan::new(Rules::Sectors, 1), |image, point| {
//!     let found = std::fs::read(image.join("log")).unwrap_or_default();
//!     match point.last_note("acknowledged") {
//!         Some(_) if found != b"entry" => Err(format!("acknowledged, but found {found:?}")),
//!         _ => Ok(()),
//!     }
//! })
//! .unwrap_or_else(|failure| panic!("{failure}"));
//! assert!(report.images > 4);
//! # Ok::<(), std::io::Error>(())
//! ```

mod draw;
mod image;
mod media;
mod names;
mod run;
mod unit;

use std::fmt;
use std::path::{Path, PathBuf};

use self::run::Run;

use crate::recording::{Event, EventKind, Note, Trace};

/// What may happen to writes that are not durable yet.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Rules {
    /// Persistent memory: each aligned word of 8 bytes in a dirty line of 64 is old or any newer version, on its
    /// own, until the thread that wrote the line back has fenced. A sync of a file covers what was written to it by
    /// file writes only.
    Lines,
    /// A disk behind a page cache: each sector of 512 bytes is old or any newer version, whole, until its file is
    /// synced. Write-backs and fences do nothing.
    Sectors,
}

/// Which crashes to try.
#[derive(Clone, Debug)]
pub struct Plan {
    /// The fault model.
    pub rules: Rules,
    /// Seeds all random choices. The same trace, plan and seed give the same images.
    pub seed: u64,
    /// Random images at each crash point, beside the systematic ones (nothing new, everything new, one unit alone, all
    /// but one unit).
    pub random_images: u32,
    /// At most this many units get an image alone, and as many an image with all others; more are sampled.
    pub single_units_max: u32,
    /// Where a crash point has at most this many images in all, every one of them is tried.
    pub exhaustive_max: u32,
    /// At most this many crash points, sampled if there are more. `None`: each event is one.
    pub points_max: Option<usize>,
    /// Leaves out the crash points before this number of [`record::api`](crate::record::api) marks.
    pub from_api: usize,
    /// One image in this many has its recovery recorded and crashed in turn ([`explore_with_recovery`]); 0 for none.
    pub nested_one_in: u32,
    /// How many recoveries deep: 1 crashes recovery, 2 also crashes the recovery from that crash.
    pub nested_depth: u32,
    /// At most this many crash points in each recovery, sampled if there are more.
    pub nested_points_max: Option<usize>,
    /// Images are made in a directory below this one: by default /dev/shm, or the temporary directory where there is
    /// none.
    pub scratch: Option<PathBuf>,
    /// Keeps the image of a failure, in a directory that the failure names.
    pub keep_failed: bool,
    /// Tries only this image: the text of [`Failure::replay`].
    pub only: Option<String>,
}

impl Plan {
    /// A plan that suits traces of up to some thousand events.
    pub fn new(rules: Rules, seed: u64) -> Plan {
        Plan {
            rules,
            seed,
            random_images: 4,
            single_units_max: 8,
            exhaustive_max: 16,
            points_max: None,
            from_api: 0,
            nested_one_in: 64,
            nested_depth: 2,
            nested_points_max: Some(32),
            scratch: None,
            keep_failed: false,
            only: None,
        }
    }
}

/// Where the crash is: right after an event.
#[derive(Clone, Copy, Debug)]
pub struct CrashPoint<'a> {
    /// Index of the event in the trace.
    pub index: usize,
    /// The last event that happened.
    pub event: &'a Event,
    /// Number of [`record::api`](crate::record::api) marks up to here.
    pub api_calls: usize,
    trace: &'a Trace,
    /// Number of notes up to here.
    notes: usize,
}

impl<'a> CrashPoint<'a> {
    /// The notes that were made before the crash.
    pub fn notes(&self) -> &'a [Note] {
        &self.trace.notes()[..self.notes]
    }

    /// The value of the last note of this name before the crash.
    pub fn last_note(&self, name: &str) -> Option<u64> {
        let note = self.notes().iter().rfind(|note| note.name == name)?;
        Some(note.value)
    }

    /// The number of [`record::api`](crate::record::api) marks of this name before the crash.
    pub fn api_calls_of(&self, name: &str) -> usize {
        let is_it = |event: &&Event| matches!(event.kind, EventKind::Api(other) if other == name);
        let events = &self.trace.events()[..=self.index];
        events.iter().filter(is_it).count()
    }
}

/// What was tried.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
#[non_exhaustive]
pub struct Report {
    /// Crash points at which images were made.
    pub points: u64,
    /// Images that were checked, without those of crashed recoveries.
    pub images: u64,
    /// Images that were left out because the same one had been checked with the same marks.
    pub duplicates: u64,
    /// Recoveries that were recorded and crashed.
    pub recoveries: u64,
    /// Images of crashed recoveries that were recovered and checked.
    pub nested_images: u64,
}

/// A crash that the check did not accept, or a trace that cannot be explored.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub struct Failure {
    /// The seed of the plan.
    pub seed: u64,
    /// Names the image: crash point and choice, then the same of the crashed recovery, if it was one.
    /// As [`Plan::only`], with the same trace and plan, it brings this image back.
    pub replay: String,
    /// The event before the crash; of the outer run and of each recovery.
    pub events: Vec<String>,
    /// What the check said.
    pub message: String,
    /// A copy of the image, if [`Plan::keep_failed`].
    pub image: Option<PathBuf>,
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{}", self.message)?;
        for (depth, event) in self.events.iter().enumerate() {
            let whose = match depth {
                0 => "crash after",
                _ => "recovery crashed after",
            };
            writeln!(f, "  {whose}: {event}")?;
        }
        let Failure { seed, replay, .. } = self;
        writeln!(
            f,
            "  replay with: seed {seed}, only: Some({replay:?}.into())"
        )?;
        match &self.image {
            Some(image) => write!(f, "  image: {}", image.display()),
            None => write!(f, "  set keep_failed to keep the image"),
        }
    }
}

/// Tries crashes at each event of the trace; `check` gets the directory of each image and may change it.
///
/// A panic in `check` is a failure like an `Err`.
///
/// # Errors
/// The first image that `check` does not accept. Also a trace without events, or one with
/// [`bypassed`](Trace::bypassed) changes: no check would mean anything then.
pub fn explore(
    trace: &Trace,
    plan: &Plan,
    check: impl FnMut(&Path, &CrashPoint<'_>) -> Result<(), String>,
) -> Result<Report, Failure> {
    let plan = Plan {
        nested_one_in: 0,
        ..plan.clone()
    };
    explore_with_recovery(trace, &plan, |_| Ok(()), check)
}

/// Like [`explore`], with a recovery before each check. The recovery of some images is itself recorded and crashed at
/// each of its events; what it leaves is recovered and must pass the same check, at the same outer crash point.
///
/// # Errors
/// As for [`explore`]; also the first image that `recover` refuses.
pub fn explore_with_recovery(
    trace: &Trace,
    plan: &Plan,
    recover: impl FnMut(&Path) -> Result<(), String>,
    check: impl FnMut(&Path, &CrashPoint<'_>) -> Result<(), String>,
) -> Result<Report, Failure> {
    let mut run = Run::new(plan, recover, check)?;
    run.explore(trace)?;
    Ok(run.report)
}
