//! Stores with one file damaged, thousands of them: every command ends with an exit code of its own, in time and with
//! the memory that a whole store takes; what was acknowledged is there wherever the file that held it is whole, and
//! comes back with the file; whoever refuses writes nothing.
//!
//! `DURUM_DAMAGE_ONLY=N` tries one store again, with other bytes in a store of a killed program: its moment was chance.

mod kinds;
mod program;
mod run;
mod stores;

use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use kinds::{Damage, Draws, Kind};
use run::{Memory, Ran};
use stores::{APART, Base, Engine, Found, POOLS, Role};

const STORES: u64 = 10_000;
/// One in so many is tried by `make test`. It has no divisor in common with the number of kinds and of engines.
const SAMPLE: usize = 211;
/// More would say the same.
const FAILURES_MAX: usize = 40;

#[test]
fn damage_is_told_and_costs_no_whole_file() {
    campaign((0..STORES).step_by(SAMPLE));
}

#[test]
#[ignore = "ten thousand stores take a quarter of an hour"]
fn damage_is_told_and_costs_no_whole_file_in_ten_thousand_stores() {
    campaign(0..STORES);
}

/// Not a test of its own: the other tests start it as a process that works with a store.
#[test]
#[ignore = "other tests start it"]
fn works_with_a_store() {
    program::child();
}

fn campaign(numbers: impl Iterator<Item = u64>) {
    let only = std::env::var("DURUM_DAMAGE_ONLY").ok();
    let only: Option<u64> = only.map(|number| number.parse().unwrap());
    let numbers = numbers.filter(|number| only.is_none_or(|only| only == *number));
    let numbers: Vec<u64> = numbers.collect();
    let scratch = tempfile::tempdir_in("/dev/shm").unwrap();
    let bases = (0..stores::WAYS).map(|way| {
        let base = Base::make(scratch.path(), way);
        let memory = Memory::of(&base, scratch.path());
        (base, memory)
    });
    let bases: Vec<(Base, Memory)> = bases.collect();
    let failures = Mutex::new(Vec::new());
    let next = AtomicUsize::new(0);
    let work = |worker: usize| {
        let path = scratch.path().join(format!("damaged-{worker}"));
        while let Some(number) = numbers.get(next.fetch_add(1, Ordering::Relaxed)) {
            let failure = try_number(*number, &bases, &path);
            let _ = std::fs::remove_dir_all(&path);
            let mut failures = failures.lock().unwrap();
            failures.extend(failure);
            if failures.len() >= FAILURES_MAX {
                break;
            }
        }
    };
    let workers = std::thread::available_parallelism().map_or(1, usize::from);
    std::thread::scope(|scope| {
        (0..workers).for_each(|worker| {
            drop(scope.spawn({
                let work = &work;
                move || work(worker)
            }))
        })
    });
    let failures = failures.into_inner().unwrap();
    assert!(
        failures.is_empty(),
        "{} stores:\n{}",
        failures.len(),
        failures.join("\n")
    );
}

/// What is wrong with this store, which is kept then.
fn try_number(number: u64, bases: &[(Base, Memory)], path: &Path) -> Option<String> {
    let (base, memory) = &bases[number as usize % stores::WAYS];
    let kind = number / stores::WAYS as u64;
    let trial = Trial {
        base,
        memory,
        damage: Damage::draw(&mut Draws::new(number), base, kind),
        path: path.to_owned(),
    };
    let reason = trial.run().err()?;
    let kept = PathBuf::from(format!("/dev/shm/durum-damage-{number}"));
    let _ = std::fs::remove_dir_all(&kept);
    trial.make_in(&kept);
    Some(format!(
        "{number}, {trial}: {reason}\n    it is {}",
        kept.display()
    ))
}

/// One damaged store.
struct Trial<'a> {
    base: &'a Base,
    memory: &'a Memory,
    damage: Damage,
    path: PathBuf,
}

impl std::fmt::Display for Trial<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}: {}", self.base, self.damage)
    }
}

impl Trial<'_> {
    fn make_in(&self, path: &Path) {
        stores::copy(&self.base.path, path);
        self.damage.inflict(self.base, path);
    }

    fn run(&self) -> Result<(), String> {
        let _ = std::fs::remove_dir_all(&self.path);
        self.make_in(&self.path);
        let damaged = stores::snapshot(&self.path);
        for command in run::READERS {
            let ran = self
                .memory
                .within_limits(command, run::command(command, &self.path))?;
            ran.has_ended_well(command)?;
            self.is_unchanged(&damaged, command)?;
        }
        let recovered = self
            .memory
            .within_limits("recover", run::command("recover", &self.path))?;
        recovered.has_ended_well("recover")?;
        if recovered.code != 0 && !recovered.out.contains("rolled") {
            self.is_unchanged(&damaged, "recover")?;
        }
        let opened = self.open()?;
        self.opened_is_right(&opened)?;
        // Nobody can tell an older copy from what a power cut left. Where recovery has taken back in it what was half
        // done, the file of then still has that, and what would take it back is gone (docs/reference/store.md).
        let was_older = matches!(self.damage.kind, Kind::Older) && recovered.code == 0;
        if was_older && self.base.engine == Engine::Hybrid && self.base.is_dirty {
            return Ok(());
        }
        self.put_back(&damaged)
    }

    fn is_unchanged(&self, before: &stores::Snapshot, who: &str) -> Result<(), String> {
        match stores::difference(before, &stores::snapshot(&self.path)) {
            None => Ok(()),
            Some(path) => Err(format!("{who} changed {path}")),
        }
    }

    fn open(&self) -> Result<Found, String> {
        let ran = self
            .memory
            .within_limits("open", program::opener(self.base, &self.path))?;
        if ran.code != 0 || ran.err.contains("panicked") {
            return Err(format!("open: exit code {}: {}", ran.code, ran.err));
        }
        Ok(Found::parse(&ran.out))
    }

    /// A pool whose own file is whole has all that was acknowledged, or is refused; and it is refused only where the
    /// damage is not another pool's.
    fn opened_is_right(&self, found: &Found) -> Result<(), String> {
        let role = self.base.role(&self.damage);
        for pool in POOLS.into_iter().filter(|pool| !role.is_data_of(pool)) {
            let held = found.of(pool);
            let refusal = self
                .base
                .is_acknowledged(pool, held, self.may_miss_last(pool))?;
            if let Some(reason) = refusal.filter(|_| role != Role::Other) {
                return Err(format!(
                    "pool {pool} is refused for another's damage: {reason}"
                ));
            }
        }
        Ok(())
    }

    /// Whether the last transaction of the killed program may be missing in this pool: nobody can tell its damage from
    /// what a power cut leaves of a commit that never counted (docs/reference/store.md). The damage may lie in the last
    /// record of the log, or in the fresh bytes of a pool that shares the transaction.
    fn may_miss_last(&self, pool: &str) -> bool {
        let role = self.base.role(&self.damage);
        let may_be_its_bytes = match self.damage.kind {
            Kind::Flip { .. } | Kind::Zero { .. } | Kind::Sparse { .. } => true,
            Kind::Older => role != Role::Other,
            _ => false,
        };
        let has_log = self.base.is_dirty && self.base.engine != Engine::Twin;
        has_log && may_be_its_bytes && pool != APART && !role.is_data_of(APART)
    }

    /// With the file as it was, everything is there, unless a log went into quarantine.
    fn put_back(&self, damaged: &stores::Snapshot) -> Result<(), String> {
        let now = stores::snapshot(&self.path);
        let mut files = self.damage.files();
        if files.any(|file| damaged.get(file) != now.get(file)) {
            return Ok(());
        }
        self.damage.undo(self.base, &self.path);
        let found = self.open()?;
        let is_log = self.base.role(&self.damage) == Role::Other;
        for pool in POOLS {
            let may_miss_last = self.may_miss_last(pool);
            let held = (self.base).is_acknowledged(pool, found.of(pool), may_miss_last);
            let refusal = held.map_err(|lost| format!("with the file back: {lost}"))?;
            if let Some(reason) =
                refusal.filter(|reason| !(is_log && reason.contains("quarantine")))
            {
                return Err(format!(
                    "with the file back pool {pool} is refused: {reason}"
                ));
            }
        }
        Ok(())
    }
}

impl Ran {
    /// No signal, no panic, a code that the documents know, and a reason where it is not 0.
    fn has_ended_well(&self, who: &str) -> Result<(), String> {
        let is_right = matches!(self.code, 0..=3)
            && !self.err.contains("panicked")
            && (self.code == 0 || !self.err.trim().is_empty() || !self.out.trim().is_empty());
        if is_right {
            return Ok(());
        }
        Err(format!("{who}: exit code {}: {}", self.code, self.err))
    }
}

/// The engines and domains in use, for the message of a failure.
impl std::fmt::Display for Base {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let engine = match self.engine {
            Engine::Shadow => "shadow",
            Engine::Hybrid => "hybrid",
            Engine::Twin => "twin",
        };
        let state = if self.is_dirty { "dirty" } else { "clean" };
        write!(f, "{engine}, domain {:?}, {state}", self.domain)
    }
}
