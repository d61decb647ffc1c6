//! The worker as a process: started, listened to, killed.

use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use super::text::Text;
use crate::args::Demo;
use crate::failure::{self, Failure};

/// What a worker reported last.
#[derive(Clone, Copy, Default)]
pub(super) struct Latest {
    pub(super) durable: u64,
    pub(super) transactions: u64,
    pub(super) fences: u64,
    pub(super) write_backs: u64,
    pub(super) syncs: u64,
    pub(super) left: u64,
}

impl Latest {
    fn parse(line: &str) -> Option<Self> {
        let mut latest = Self::default();
        let mut parts = line.split_whitespace();
        while let (Some(name), Some(value)) = (parts.next(), parts.next()) {
            let value = value.parse().ok()?;
            match name {
                "durable" => latest.durable = value,
                "transactions" => latest.transactions = value,
                "fences" => latest.fences = value,
                "write_backs" => latest.write_backs = value,
                "syncs" => latest.syncs = value,
                "left" => latest.left = value,
                _ => {}
            }
        }
        Some(latest)
    }
}

/// What is known of a worker that ended.
#[derive(Default)]
pub(super) struct Stopped {
    /// From its first report to its end.
    pub(super) time: Duration,
    /// Words that were durable when it began to count.
    pub(super) first_durable: u64,
    pub(super) latest: Latest,
}

/// First report, its time, and the latest one.
type Reports = Arc<Mutex<Option<(Instant, Latest, Latest)>>>;

/// A running worker, or one that ended.
pub(super) struct Worker {
    child: Child,
    status: Option<ExitStatus>,
    reports: Reports,
    threads: Vec<JoinHandle<()>>,
    errors: Arc<Mutex<String>>,
}

impl Worker {
    /// Starts this program again as a worker.
    pub(super) fn start(
        options: &Demo,
        store: &Path,
        text: &Arc<Text>,
        finish: bool,
    ) -> Result<Self, Failure> {
        let failed = |error| Failure::system("starting the worker", error);
        let mut command = Command::new(std::env::current_exe().map_err(failed)?);
        command
            .args(["demo", "--worker-only", "--text-from-input", "--store"])
            .arg(store)
            .args(["--threads", &options.threads.to_string()])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            // Ctrl-C goes to this process alone, which then ends the worker.
            .process_group(0);
        if let Some(engine) = options.engine {
            command.args(["--engine", engine.name()]);
        }
        if finish {
            command.arg("--finish");
        }
        let mut child = command.spawn().map_err(failed)?;
        let reports = Reports::default();
        let errors = Arc::new(Mutex::new(String::new()));
        let mut threads = Vec::new();
        if let Some(mut input) = child.stdin.take() {
            let text = text.clone();
            // A worker that has the text already, or is killed, does not read it.
            threads.push(thread::spawn(move || drop(input.write_all(&text.bytes))));
        }
        if let Some(output) = child.stdout.take() {
            let reports = reports.clone();
            threads.push(thread::spawn(move || listen(output, &reports)));
        }
        if let Some(mut output) = child.stderr.take() {
            let errors = errors.clone();
            threads.push(thread::spawn(move || {
                let mut text = Vec::new();
                let _ = output.read_to_end(&mut text);
                *errors.lock().unwrap_or_else(PoisonError::into_inner) =
                    String::from_utf8_lossy(&text).into_owned();
            }));
        }
        Ok(Self {
            child,
            status: None,
            reports,
            threads,
            errors,
        })
    }

    /// Whether it has not ended yet.
    pub(super) fn is_alive(&mut self) -> Result<bool, Failure> {
        if self.status.is_none() {
            let status = self.child.try_wait();
            self.status =
                status.map_err(|error| Failure::system("waiting for the worker", error))?;
        }
        Ok(self.status.is_none())
    }

    /// Its latest report.
    pub(super) fn latest(&self) -> Option<Latest> {
        let reports = self.reports.lock().unwrap_or_else(PoisonError::into_inner);
        reports.map(|(_, _, latest)| latest)
    }

    /// Whether it ended by itself, with success.
    pub(super) fn ended_well(&self) -> bool {
        self.status.is_some_and(|status| status.success())
    }

    /// Ends it with SIGKILL, if it still lives, and waits until it is gone.
    pub(super) fn kill(mut self) -> Result<Stopped, Failure> {
        let failed = |error| Failure::system("killing the worker", error);
        self.child.kill().map_err(failed)?;
        self.child.wait().map_err(failed)?;
        let end = Instant::now();
        self.join();
        let reports = self.reports.lock().unwrap_or_else(PoisonError::into_inner);
        Ok(match *reports {
            Some((begin, first, latest)) => Stopped {
                time: end - begin,
                first_durable: first.durable,
                latest,
            },
            None => Stopped::default(),
        })
    }

    /// Why a worker ended that nobody killed. Its message is handed on.
    pub(super) fn failed(mut self) -> Failure {
        self.join();
        let errors = self.errors.lock().unwrap_or_else(PoisonError::into_inner);
        eprint!("{errors}");
        let code = self.status.and_then(|status| status.code());
        Failure::Child {
            process: "worker process",
            // A panic has a code of its own; for the user it is a failure like others.
            code: match code {
                Some(2) => failure::REFUSED,
                Some(3) => failure::DAMAGED,
                _ => failure::SYSTEM,
            },
        }
    }

    fn join(&mut self) {
        for thread in self.threads.drain(..) {
            // They only read and write pipes; what they could not is told by what is missing.
            let _ = thread.join();
        }
    }
}

fn listen(output: impl Read, reports: &Reports) {
    for line in BufReader::new(output).lines() {
        let Ok(line) = line else { break };
        if let Some(latest) = Latest::parse(&line) {
            let mut reports = reports.lock().unwrap_or_else(PoisonError::into_inner);
            let (begin, first, _) = reports.unwrap_or((Instant::now(), latest, latest));
            *reports = Some((begin, first, latest));
        }
    }
}
