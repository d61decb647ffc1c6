//! Checks of a whole store, and repair of what is safe to repair.
//!
//! [`check`] reads everything and writes nothing; after an unclean end it sees the store as recovery would leave it.
//! [`structure`] looks at each puddle, [`graph`] at the pointers between objects; [`roles`](crate::roles) tells what
//! an object is, [`reach`] what the roots lead to, [`counted`] whether counts are right, and [`garbage`] what
//! `durum gc` may free.

mod counted;
mod cycles;
mod garbage;
mod graph;
mod reach;
mod registered;
mod repair;
mod served;
mod structure;

use std::collections::BTreeSet;
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use durum_format::Uuid;

use crate::deposited;
use crate::directory::absolute;
use crate::error::{Error, ErrorKind, Result};
use crate::files;
use crate::identity;
use crate::inspect::ReadOnlyStore;
use crate::liveness;
use crate::lock::StoreLock;
use crate::model::{Progress, ProgressFn, RecoveryReport, RefusedPool, Stage, quoted};
use crate::registry;
use crate::strays::{self, StrayFile, StrayKind};
use crate::unregistered::StrayState;

use self::registered::Registered;
use self::structure::Objects;

pub(crate) use self::garbage::find_in;
pub use self::garbage::{
    Garbage, GarbageGroup, GarbageLimbo, GarbageObject, GarbageOptions, GarbageReference,
    PoolGarbage, find_garbage,
};
pub use self::repair::{RepairReport, repair};
pub use self::served::check_served;

/// Findings of one kind and pool after which the rest is only counted.
const FINDINGS_MAX: u64 = 100;

/// How a check is made.
#[derive(Clone, Default)]
pub struct CheckOptions {
    /// Called as the check goes on.
    pub progress: Option<Arc<ProgressFn>>,
    /// Called with each leak as it is found. Findings and counts tell of them at the end all the same.
    pub leaks: Option<Arc<LeakFn>>,
    /// Each 8 bytes of an object without a type that are an address of an object are a pointer. Without it such
    /// objects may hold pointers that nobody knows, and leaks of what leads to them are not judged.
    pub untyped_hold_pointers: bool,
    /// The check ends soon after this has become true, with `Stopped`.
    pub stop: Option<Arc<AtomicBool>>,
}

impl fmt::Debug for CheckOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CheckOptions")
            .field("progress", &self.progress.is_some())
            .field("leaks", &self.leaks.is_some())
            .field("untyped_hold_pointers", &self.untyped_hold_pointers)
            .field("stop", &self.stop)
            .finish()
    }
}

impl CheckOptions {
    /// Tells how far the check of a store has come, and ends it where nobody wants it any more.
    fn tell(&self, reader: &ReadOnlyStore, stage: Stage, done: usize, total: usize) -> Result<()> {
        Progress::tell(&self.progress, stage, done as u64, total as u64);
        let stop = self.stop.as_ref();
        match stop.is_some_and(|stop| stop.load(Ordering::Relaxed)) {
            true => Err(Error::Stopped {
                store: reader.name().to_owned(),
            }),
            false => Ok(()),
        }
    }
}

/// An object that nothing leads to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Leak {
    /// The pool.
    pub pool: Uuid,
    /// The address of the puddle that the object lies in.
    pub puddle: u64,
    /// The object's address.
    pub address: u64,
    /// Its bytes.
    pub size: u64,
    /// What its type's id means in its pool.
    pub type_id: u64,
}

/// Called with each leak as it is found.
pub type LeakFn = dyn Fn(&Leak) + Send + Sync;

/// How many objects are looked at between two words about how far that has come.
const OBJECTS_AT_ONCE: usize = 1 << 14;

/// How bad a finding is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Severity {
    /// Nothing is wrong: something to know, or that the next opener clears up.
    Note,
    /// Room is lost: objects that nothing leads to.
    Leak,
    /// Data is damaged.
    Damage,
}

/// Something that a check found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// How bad it is.
    pub severity: Severity,
    /// The file.
    pub file: PathBuf,
    /// Where in the file, in bytes, if that can be said.
    pub offset: Option<u64>,
    /// What was found, and what to do.
    pub text: String,
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // An error that became a finding names its file already.
        if self.text.starts_with(&*self.file.to_string_lossy()) {
            return f.write_str(&self.text);
        }
        write!(f, "{}", self.file.display())?;
        if let Some(offset) = self.offset {
            write!(f, " at offset {offset:#x}")?;
        }
        write!(f, ": {}", self.text)
    }
}

/// Whether leaks of a pool could be told.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Leaks {
    /// All types that the root leads to are known: so many objects and bytes are led to by nothing.
    Judged {
        /// Objects that nothing leads to.
        objects: u64,
        /// Their bytes.
        bytes: u64,
    },
    /// They cannot be judged.
    Unjudged {
        /// Why, as a sentence.
        reason: String,
        /// Objects that nothing which is known leads to.
        objects: u64,
        /// Their bytes.
        bytes: u64,
    },
}

/// How much of a pool could be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Readable {
    /// All of it.
    Whole,
    /// A part: findings tell what is wrong with the rest, whose objects are not counted.
    Partly,
    /// None of its puddles.
    Not,
}

/// What a check found in a pool.
#[derive(Clone, Debug)]
pub struct PoolCheck {
    /// The pool's name.
    pub name: String,
    /// Its puddles.
    pub puddles: u64,
    /// How much of it could be read.
    pub readable: Readable,
    /// Its objects.
    pub objects: u64,
    /// The bytes of its objects.
    pub bytes: u64,
    /// Whether it has a root object.
    pub has_root: bool,
    /// Objects that nothing leads to.
    pub leaks: Leaks,
    /// How many of them are in cycles of counted pointers.
    pub in_cycles: u64,
}

/// What a check found.
#[derive(Clone, Debug, Default)]
pub struct CheckReport {
    /// All findings.
    pub findings: Vec<Finding>,
    /// The pools, in order of name.
    pub pools: Vec<PoolCheck>,
    /// What recovery would do; the check sees the store as that would leave it.
    pub pending: RecoveryReport,
    /// The names of the pools for which recovery has something that is not applied. Nothing is repaired before it is.
    pub kept: BTreeSet<String>,
    /// The names of the pools with damage in their own files. Others are whole.
    pub damaged: BTreeSet<String>,
    /// Whether there is damage that [`repair`] may make good.
    pub can_repair: bool,
}

impl CheckReport {
    /// Whether no data is damaged. Leaks and notes are allowed.
    pub fn is_sound(&self) -> bool {
        self.damages().next().is_none()
    }

    /// The findings that are damage.
    fn damages(&self) -> impl Iterator<Item = &Finding> + Clone {
        let findings = self.findings.iter();
        findings.filter(|finding| finding.severity == Severity::Damage)
    }

    fn add(
        &mut self,
        severity: Severity,
        file: &Path,
        offset: Option<u64>,
        text: impl Into<String>,
    ) {
        self.findings.push(Finding {
            severity,
            file: file.to_owned(),
            offset,
            text: text.into(),
        });
    }

    /// Tells of pools that recovery cannot write, or cannot complete.
    fn tell_refused(&mut self, reader: &ReadOnlyStore) {
        for pool in &reader.pending().refused {
            self.add(Severity::Damage, &pool.file, pool.offset, refusal(pool));
            self.kept.insert(pool.name.clone());
        }
        for pool in reader.pools() {
            for client in reader.interrupted_in(&pool.name) {
                let text = format!(
                    "pool {:?} is interrupted, and seen half done: {}",
                    pool.name,
                    client.reason()
                );
                self.add(Severity::Damage, reader.path(), None, text);
                self.kept.insert(pool.name.clone());
            }
        }
    }

    /// Tells of quarantined logs.
    fn tell_quarantined(&mut self, reader: &ReadOnlyStore) {
        let contents = reader.contents();
        for (puddle, log) in &contents.quarantine {
            let marks = contents.marks.iter();
            let pools = marks.filter(|(_, client)| *client == log.client);
            let pools = pools.filter_map(|(pool, _)| contents.pools.get(pool));
            let mut names: Vec<&str> = pools.map(|pool| pool.name.as_str()).collect();
            names.sort_unstable();
            let text = format!(
                "a quarantined log, which may hold committed transactions of these pools: {}: {}; cure the cause and try again \
                 (`durum recover --retry POOL`), or accept a pool as it is (`--accept-quarantined POOL`)",
                names.join(", "),
                log.reason
            );
            let file = files::quarantine_path(reader.path(), *puddle);
            self.add(Severity::Damage, &file, None, text);
        }
    }

    /// Tells of files that are no part of the store. Where the registry could not be read, nobody knows what is.
    fn tell_strays(&mut self, strays: &[StrayFile], is_complete: bool) {
        for stray in strays {
            let is_damage = match &stray.kind {
                StrayKind::Puddle(StrayState::Used) => is_complete,
                StrayKind::Aside | StrayKind::NoPlace(_) => true,
                _ => false,
            };
            self.can_repair |= is_damage && matches!(stray.kind, StrayKind::Puddle(_));
            let severity = match is_damage {
                true => Severity::Damage,
                false => Severity::Note,
            };
            let text = match &stray.kind {
                StrayKind::Foreign => "no part of the store; it is left alone",
                StrayKind::Leftover => "a crash left it; the next opener removes it",
                StrayKind::Before => "a file of the form before; the next opener removes it",
                StrayKind::Puddle(StrayState::Removing) => {
                    "an orphan: it was being removed; the next opener goes on"
                }
                StrayKind::Puddle(StrayState::Coming) => {
                    "of an import that has not ended; the next opener removes it"
                }
                StrayKind::Puddle(StrayState::Copy) => {
                    "a copy that was not finished; the next opener removes it"
                }
                StrayKind::Puddle(StrayState::Unfinished) => {
                    "an orphan: it was being made, and nobody has written in it; the next opener removes it"
                }
                StrayKind::Puddle(StrayState::Waiting) => {
                    "an orphan: nobody has written in it; it goes when no log is left that may be about it: not replayed, kept, or in quarantine"
                }
                StrayKind::Puddle(StrayState::Used) if is_complete => {
                    "the registry is older than this puddle, and does not name it; restore the registry, or let `durum check --repair` \
                     move it aside"
                }
                StrayKind::Puddle(StrayState::Used) => {
                    "the registry does not name it, as far as it can be read"
                }
                StrayKind::Aside => {
                    "a puddle that the registry did not name was moved here; restore the whole store, or move it away"
                }
                StrayKind::NoPlace(problem) => problem.as_str(),
                StrayKind::Lifted => "its quarantine was lifted; it may be deleted",
            };
            let text = match stray.bytes {
                Some(bytes) => format!("{text} ({})", things(bytes, "byte")),
                None => text.to_owned(),
            };
            self.add(severity, &stray.file, None, text);
        }
    }

    /// Notes an error about data as a finding; hands on any other.
    fn absorb(&mut self, file: &Path, error: Error) -> Result<()> {
        match error.kind() {
            ErrorKind::Data | ErrorKind::User => {
                self.add(Severity::Damage, file, None, error.to_string());
                Ok(())
            }
            _ => Err(error),
        }
    }
}

/// Checks a store that nobody has open. Writes nothing.
///
/// Damage is a finding, not an error. After an unclean end the store is seen as recovery would leave it.
///
/// # Errors
/// `StoreMissing`, `StoreBusy`; `Format` when `durum.store` itself is not one of ours; `Stopped`; `Io`.
pub fn check(path: &Path, options: &CheckOptions) -> Result<CheckReport> {
    let mut report = CheckReport::default();
    if let Some(seen) = Seen::read(path, options, &mut report)? {
        reach::check(&seen.reader, &seen.objects, options, &mut report)?;
        report.damaged = damaged_pools(&seen.reader, &report);
    }
    Ok(report)
}

/// The names of the pools in whose files damage was found.
fn damaged_pools(reader: &ReadOnlyStore, report: &CheckReport) -> BTreeSet<String> {
    let files = report.damages().map(|finding| finding.file.as_path());
    let files: BTreeSet<&Path> = files.collect();
    let pools = reader.pools();
    let puddles = reader.puddles().into_iter();
    puddles
        .filter(|puddle| files.contains(&*files::puddle_path(reader.path(), puddle.uuid)))
        .filter_map(|puddle| pools.iter().find(|pool| pool.uuid == puddle.owner))
        .map(|pool| pool.name.clone())
        .collect()
}

/// A store that nobody can open for writing meanwhile, where it has a lock file, and its objects.
struct Seen {
    reader: ReadOnlyStore,
    objects: Objects,
    _lock: Option<StoreLock>,
}

impl Seen {
    /// Reads all but the pointers of objects; `None` where there is not enough left to read.
    fn read(path: &Path, options: &CheckOptions, report: &mut CheckReport) -> Result<Option<Seen>> {
        let path = absolute(path)?;
        let (identity, lost) = registered::identity(&path)?;
        if let Some(error) = lost {
            report.can_repair = true;
            let file = identity::path(&path);
            report.add(Severity::Damage, &file, None, error.to_string());
        }
        let lock = liveness::share(&path)?;
        let directories = files::check_directories(&path);
        report.can_repair |= files::can_repair(&directories);
        if keep(directories, &path, report)?.is_none() {
            return Ok(None);
        }
        let registered = Registered::read(&path, &identity, report)?;
        let Some(contents) = &registered.contents else {
            return Ok(None);
        };
        contents.ensure_rewritten(&path)?;
        report.tell_strays(&strays::find(&path, contents)?, registered.is_complete);
        let reader = ReadOnlyStore::over(path.clone(), identity, contents.clone(), false);
        let Some(reader) = keep(reader, &path, report)? else {
            return Ok(None);
        };
        report.pending = reader.pending().clone();
        for note in &reader.pending().quarantined {
            let text = format!(
                "the log fails validation: {}; recovery will quarantine it",
                note.reason
            );
            report.add(Severity::Damage, &path.join(&note.log), None, text);
        }
        report.tell_refused(&reader);
        for client in &reader.contents().clients {
            let deposit = deposited::check(&path, reader.contents(), *client);
            keep(deposit, &path, report)?;
        }
        for (name, part) in reader.ready() {
            // Whether its files can be written, too, only an opener can tell.
            let what = match part.transactions + part.undecided {
                0 => "what it is recovered from lies in its own files".to_owned(),
                _ => kept(part.transactions, part.bytes, part.undecided),
            };
            let text = format!(
                "pool {name:?} is not recovered yet, though its files are here: {what}; open the store to recover it, as `durum \
                 recover` does, which says what stands in the way"
            );
            report.add(Severity::Damage, &path.join(registry::NAMES[0]), None, text);
            report.kept.insert(name.to_owned());
        }
        report.tell_quarantined(&reader);
        let objects = structure::check(&reader, options, report)?;
        Ok(Some(Seen {
            reader,
            objects,
            _lock: lock,
        }))
    }
}

/// What is to be told of a pool that recovery cannot write.
fn refusal(pool: &RefusedPool) -> String {
    let waits = match pool.is_kept {
        false => "it can be recovered when its files are back".to_owned(),
        true => kept(pool.transactions, pool.bytes, pool.undecided),
    };
    let only_waits = match pool.waits_for.is_empty() {
        true => String::new(),
        false => format!(
            ", its own files are whole, and it loses nothing while it waits for {}",
            quoted(&pool.waits_for)
        ),
    };
    format!(
        "pool {:?} cannot be recovered: {waits}{only_waits}: {}",
        pool.name, pool.reason
    )
}

/// What is kept for a pool, as a clause.
fn kept(transactions: u64, bytes: u64, undecided: u64) -> String {
    let are = if transactions == 1 { "is" } else { "are" };
    let decided = format!(
        "{} ({}) {are} kept for it",
        things(transactions, "transaction"),
        things(bytes, "byte")
    );
    match undecided {
        0 => decided,
        _ => {
            format!("{decided}, and {undecided} of which nobody can say yet whether they committed")
        }
    }
}

fn things(number: u64, thing: &str) -> String {
    match number {
        1 => format!("1 {thing}"),
        _ => format!("{number} {thing}s"),
    }
}

fn keep<T>(found: Result<T>, path: &Path, report: &mut CheckReport) -> Result<Option<T>> {
    match found {
        Ok(found) => Ok(Some(found)),
        Err(error) => {
            report.absorb(path, error)?;
            Ok(None)
        }
    }
}
