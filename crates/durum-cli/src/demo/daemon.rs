//! A service that the demo starts: workers come to it, and it recovers what they leave.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use durum::RecoveryReport;
use durum_protocol::address::MetricsAddress;

use crate::failure::Failure;
use crate::top;

/// How long it may take to start.
const STARTING: Duration = Duration::from_secs(20);

/// A running `durumd`, which ends with this.
pub(super) struct Daemon {
    child: Child,
    directory: PathBuf,
    /// What it had recovered when it was asked last.
    seen: top::Recovered,
}

impl Daemon {
    /// Starts the one that lies beside this program, or is found as a command.
    pub(super) fn start(store: &Path) -> Result<Daemon, Failure> {
        let name = format!("durum-demo-service-{}", std::process::id());
        let directory = std::env::temp_dir().join(name);
        fs::create_dir(&directory)
            .map_err(|error| Failure::file("making a directory", &directory, error))?;
        let beside = std::env::current_exe().map(|own| own.with_file_name("durumd"));
        let program = beside.ok().filter(|beside| beside.exists());
        let log = fs::File::create(directory.join("log"));
        let log = log.map_err(|error| Failure::file("making the log", &directory, error))?;
        let child = Command::new(program.unwrap_or_else(|| "durumd".into()))
            .arg("--store")
            .arg(store)
            .arg("--socket")
            .arg(directory.join("socket"))
            .arg("--metrics")
            .arg(directory.join("metrics"))
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(log)
            .spawn()
            .map_err(|error| {
                let _ = fs::remove_dir_all(&directory);
                Failure::system("starting durumd (is it installed beside `durum`?)", error)
            })?;
        let mut daemon = Daemon {
            child,
            directory,
            seen: top::Recovered::default(),
        };
        daemon.await_start()?;
        Ok(daemon)
    }

    fn await_start(&mut self) -> Result<(), Failure> {
        let began = Instant::now();
        while self.recovered_so_far().is_err() || !self.directory.join("socket").exists() {
            let ended = self.child.try_wait();
            if !matches!(ended, Ok(None)) || began.elapsed() > STARTING {
                let log = fs::read_to_string(self.directory.join("log")).unwrap_or_default();
                return Err(Failure::Refused(format!("durumd does not start:\n{log}")));
            }
            thread::sleep(Duration::from_millis(5));
        }
        Ok(())
    }

    /// How a program names its store.
    pub(super) fn address(&self) -> PathBuf {
        let socket = self.directory.join("socket");
        format!("durum+unix:{}", socket.display()).into()
    }

    /// What it has recovered since it was asked last.
    pub(super) fn recovered(&mut self) -> Result<RecoveryReport, Failure> {
        let now = self.recovered_so_far()?;
        if now.quarantined > self.seen.quarantined {
            let log = fs::read_to_string(self.directory.join("log")).unwrap_or_default();
            let problem = "a kill left a log that does not validate; the service says";
            return Err(Failure::Damaged(format!("{problem}:\n{log}")));
        }
        let mut report = RecoveryReport::default();
        report.rolled_back = now.rolled_back - self.seen.rolled_back;
        report.rolled_forward = now.rolled_forward - self.seen.rolled_forward;
        report.log_time = now.time.saturating_sub(self.seen.time);
        self.seen = now;
        Ok(report)
    }

    fn recovered_so_far(&self) -> Result<top::Recovered, Failure> {
        top::recovered(&MetricsAddress::Unix(self.directory.join("metrics")))
    }
}

impl Drop for Daemon {
    fn drop(&mut self) {
        // SAFETY: the process is ours, and not waited for yet, or it has ended and nothing has its number.
        unsafe { libc::kill(self.child.id() as i32, libc::SIGTERM) };
        let began = Instant::now();
        // It ends within a second; one that hangs is not waited for.
        while began.elapsed() < Duration::from_secs(5) {
            if !matches!(self.child.try_wait(), Ok(None)) {
                break;
            }
            thread::sleep(Duration::from_millis(5));
        }
        let _ = self.child.kill();
        let _ = self.child.wait();
        let _ = fs::remove_dir_all(&self.directory);
    }
}
