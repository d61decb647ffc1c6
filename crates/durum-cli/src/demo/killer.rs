//! The process that the user starts: kills the worker, recovers without its code, starts it again, compares at the end.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use durum::{Store, StoreOptions};
use durum_protocol::Address;
use durum_service::{Embedded, OpenOptions, Service};
use indicatif::ProgressBar;

use super::daemon::Daemon;
use super::pool::DemoPool;
use super::process::Worker;
use super::random::Random;
use super::report::{Report, print};
use super::text::{self, Text};
use super::{interrupt, verify};
use crate::args::Demo;
use crate::failure::Failure;
use crate::output::{count, grouped};
use crate::progress;

/// How often the worker's reports are looked at.
const POLL: Duration = Duration::from_millis(5);

/// One kill in so many comes right after the start, while the worker opens the store.
const EARLY_ONE_IN: u64 = 6;

pub(crate) fn run(options: &Demo, out: &mut dyn Write) -> Result<(), Failure> {
    let text = match options.files.as_slice() {
        [] => text::default()?,
        files => text::named(files)?,
    };
    let seed = match options.seed {
        Some(seed) => seed,
        None => random_seed()?,
    };
    let place = Place::choose(options)?;
    interrupt::watch();
    let daemon = match options.daemon {
        true => Some(Daemon::start(&place.store)?),
        false => None,
    };
    let mut demo = Killer {
        options,
        text: Arc::new(text),
        store: daemon
            .as_ref()
            .map_or_else(|| place.store.clone(), Daemon::address),
        daemon,
        random: Random::new(seed),
        bar: progress::bar(0, "[{bar:30}] {msg}"),
        report: Report::new(seed, options.threads, place.store.clone()),
    };
    let result = demo.go();
    // It ends before its store goes.
    drop(demo.daemon.take());
    demo.bar.finish_and_clear();
    match &result {
        Ok(()) => print(&demo.report, options.json, place.is_kept, out)?,
        Err(failure) => place.leave(failure, demo.report.kills > 0),
    }
    result?;
    place.finish()
}

fn random_seed() -> Result<u64, Failure> {
    let mut bytes = [0; 4];
    durum_persist::random::fill(&mut bytes)
        .map_err(|error| Failure::system("drawing a seed", error))?;
    Ok(u32::from_le_bytes(bytes).into())
}

/// Where the store is, and whether it stays.
struct Place {
    store: PathBuf,
    /// The directory to remove at the end, unless the store is kept.
    scratch: Option<PathBuf>,
    is_kept: bool,
}

impl Place {
    fn choose(options: &Demo) -> Result<Self, Failure> {
        if let Some(store) = &options.store {
            if Address::split_pool(store).is_some() {
                // It tells what recovery did, and kills: that is not for a store that others use.
                return Err(Failure::Refused(format!(
                    "{}: the demo needs a store of its own: name a directory, or leave --store out; --daemon shows a service, \
                     which it starts",
                    store.display()
                )));
            }
            return Ok(Self {
                store: store.clone(),
                scratch: None,
                is_kept: true,
            });
        }
        let shm = Path::new("/dev/shm");
        let parent = if shm.is_dir() {
            shm.to_owned()
        } else {
            std::env::temp_dir()
        };
        let scratch = parent.join(format!("durum-demo-{}", std::process::id()));
        std::fs::create_dir(&scratch)
            .map_err(|error| Failure::file("making a directory", &scratch, error))?;
        Ok(Self {
            store: scratch.join("store"),
            scratch: Some(scratch),
            is_kept: options.keep,
        })
    }

    /// After a failure the store stays, to be looked at.
    fn leave(&self, failure: &Failure, was_used: bool) {
        if !self.store.exists() {
            if let Some(scratch) = &self.scratch {
                let _ = std::fs::remove_dir(scratch);
            }
        } else if !matches!(failure, Failure::Interrupted(_))
            && (was_used || self.scratch.is_some())
        {
            eprintln!("durum: the store is kept: {}", self.store.display());
        }
    }

    fn finish(self) -> Result<(), Failure> {
        match self.scratch {
            Some(scratch) if !self.is_kept => std::fs::remove_dir_all(&scratch)
                .map_err(|error| Failure::file("removing the store", &scratch, error)),
            _ => Ok(()),
        }
    }
}

struct Killer<'a> {
    options: &'a Demo,
    text: Arc<Text>,
    /// How workers name the store.
    store: PathBuf,
    daemon: Option<Daemon>,
    random: Random,
    bar: ProgressBar,
    report: Report,
}

impl Killer<'_> {
    fn go(&mut self) -> Result<(), Failure> {
        let (plain, plain_time) = verify::plain(&self.text.bytes);
        self.report.files = self.text.files as u64;
        self.report.text_bytes = self.text.bytes.len() as u64;
        self.report.plain_time = plain_time;
        if self.daemon.is_none() {
            Store::open_or_create(&self.store, StoreOptions::new())?.close()?;
        }
        self.check_text()?;
        let delays = self.draw_delays();
        let time: Duration = delays.iter().map(|(_, delay)| delay).sum();
        self.bar.set_length(time.as_millis() as u64);
        for (is_early, delay) in delays {
            self.kill_after(delay, is_early)?;
            self.recover()?;
        }
        self.finish_pass()?;
        self.bar.set_message("comparing");
        self.report.verdict = verify::passes(&self.store, &plain)?.into_result()?;
        Ok(())
    }

    /// Refuses a store that counts another text.
    fn check_text(&self) -> Result<(), Failure> {
        let Some((_store, pool)) = DemoPool::open_existing(&self.store)? else {
            return Ok(());
        };
        match pool.checksum() {
            Some(stored) if stored != text::checksum(&self.text.bytes) => Err(text::other()),
            _ => Ok(()),
        }
    }

    /// How long each worker may live: half to one and a half times the pace, and some only a moment.
    fn draw_delays(&mut self) -> Vec<(bool, Duration)> {
        let pace = self.options.pace.max(1);
        let draw = |_| {
            let is_early = self.random.below(EARLY_ONE_IN) == 0;
            let millis = match is_early {
                true => self.random.below(pace.min(40)),
                false => pace / 2 + self.random.below(pace),
            };
            (is_early, Duration::from_millis(millis))
        };
        (0..self.options.kills).map(draw).collect()
    }

    /// Starts a worker and kills it. Unless the kill is to come early, time runs from the worker's first report.
    fn kill_after(&mut self, delay: Duration, is_early: bool) -> Result<(), Failure> {
        let mut worker = Worker::start(self.options, &self.store, &self.text, false)?;
        let done_before = self.bar.position();
        while !is_early && worker.latest().is_none() && worker.is_alive()? && !interrupt::wanted() {
            thread::sleep(Duration::from_millis(1));
        }
        let began = Instant::now();
        while began.elapsed() < delay && worker.is_alive()? && !interrupt::wanted() {
            thread::sleep(POLL.min(delay.saturating_sub(began.elapsed())));
            self.bar
                .set_position(done_before + began.elapsed().as_millis() as u64);
            self.tell(&worker);
        }
        self.bar
            .set_position(done_before + delay.as_millis() as u64);
        if !worker.is_alive()? {
            return Err(worker.failed());
        }
        self.report.add_run(&worker.kill()?);
        if interrupt::wanted() {
            return self.interrupted();
        }
        self.report.kills += 1;
        Ok(())
    }

    fn tell(&self, worker: &Worker) {
        if let Some(latest) = worker.latest() {
            self.bar.set_message(format!(
                "killed {} of {} times, {} words counted",
                self.report.kills,
                self.options.kills,
                grouped(latest.durable)
            ));
        }
    }

    /// Recovery by the service: this process has no worker threads, no mapping, no pointer into the pool.
    fn recover(&mut self) -> Result<(), Failure> {
        let began = Instant::now();
        if let Some(daemon) = &mut self.daemon {
            // Whoever opens the pool waits until it is recovered.
            drop(DemoPool::open_existing(&self.store)?);
            let time = began.elapsed();
            self.report.add_recovery(&daemon.recovered()?, time);
            return Ok(());
        }
        let service = Embedded::open(&self.store, OpenOptions::default())?;
        let report = service.recovery_report().clone();
        service.close()?;
        if let Some(note) = report.quarantined.first() {
            return Err(Failure::Damaged(format!(
                "a kill left a log that does not validate: {}: {}",
                note.log.display(),
                note.reason
            )));
        }
        self.report.add_recovery(&report, began.elapsed());
        Ok(())
    }

    /// The last worker completes the pass that was begun and ends in order.
    fn finish_pass(&mut self) -> Result<(), Failure> {
        self.bar.set_message("completing the pass");
        let mut worker = Worker::start(self.options, &self.store, &self.text, true)?;
        while worker.is_alive()? && !interrupt::wanted() {
            thread::sleep(POLL);
            if let Some(latest) = worker.latest() {
                self.bar.set_message(format!(
                    "completing the pass: {} to go",
                    count(latest.left, "word")
                ));
            }
        }
        let is_interrupted = interrupt::wanted();
        if !is_interrupted && !worker.ended_well() {
            return Err(worker.failed());
        }
        self.report.add_run(&worker.kill()?);
        match is_interrupted {
            true => self.interrupted(),
            false => Ok(()),
        }
    }

    /// The user ended the demo: the worker is dead, the store is recovered, and its state is told.
    fn interrupted(&mut self) -> Result<(), Failure> {
        self.recover()?;
        let verdict = verify::prefix(&self.store)?.into_result()?;
        Err(Failure::Interrupted(format!(
            "interrupted; the store is consistent: {} counted, equal to plain memory; \
             `durum demo --store {}` goes on from there",
            count(verdict.counted, "word"),
            self.report.store().display()
        )))
    }
}
