//! Runs a command with a limit of time, and measures the memory that it takes.

use std::collections::BTreeMap;
use std::io::{Read, Seek};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Stdio};

use crate::program;
use crate::stores::{self, Base};

/// Commands that only read.
pub const READERS: [&str; 4] = ["ls", "stat", "check", "inspect"];
/// The machine may be busy; nothing here should take a second.
const SECONDS_MAX: u32 = 60;
const MORE_BYTES_MAX: u64 = 64 << 20;

/// What a run gave.
pub struct Ran {
    pub code: i32,
    pub out: String,
    pub err: String,
    pub peak_bytes: u64,
}

pub fn command(name: &str, store: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_durum"));
    command.arg(name).arg(store);
    if name == "inspect" {
        command.arg(stores::POOLS[0]);
    }
    command
}

/// Runs it to its end. An error if a signal ended it: that of the time limit, too.
pub fn run(mut command: Command) -> Result<Ran, String> {
    let (mut out, mut err) = (tempfile::tempfile().unwrap(), tempfile::tempfile().unwrap());
    command
        .stdin(Stdio::null())
        .stdout(out.try_clone().unwrap())
        .stderr(err.try_clone().unwrap());
    // SAFETY: between fork and exec there is one system call. The alarm outlives exec.
    unsafe {
        command.pre_exec(|| {
            libc::alarm(SECONDS_MAX);
            Ok(())
        });
    }
    #[allow(
        clippy::zombie_processes,
        reason = "wait4 waits for it, and tells its memory"
    )]
    let child = command.spawn().unwrap();
    let mut status = 0;
    // SAFETY: all zeros are a value of it.
    let mut usage: libc::rusage = unsafe { std::mem::zeroed() };
    // SAFETY: the child is ours, and nobody else waits for it.
    let waited = unsafe {
        libc::wait4(
            child.id() as libc::pid_t,
            &raw mut status,
            0,
            &raw mut usage,
        )
    };
    assert_eq!(waited, child.id() as libc::pid_t);
    let text = |file: &mut std::fs::File| {
        let mut bytes = Vec::new();
        file.rewind().unwrap();
        file.read_to_end(&mut bytes).unwrap();
        String::from_utf8_lossy(&bytes).into_owned()
    };
    let (out, err) = (text(&mut out), text(&mut err));
    if libc::WIFSIGNALED(status) {
        return Err(format!("signal {}: {err}", libc::WTERMSIG(status)));
    }
    Ok(Ran {
        code: libc::WEXITSTATUS(status),
        out,
        err,
        peak_bytes: usage.ru_maxrss as u64 * 1024,
    })
}

/// The most memory that this process had so far.
fn own_peak_bytes() -> u64 {
    // SAFETY: all zeros are a value of it.
    let mut usage: libc::rusage = unsafe { std::mem::zeroed() };
    // SAFETY: it is written to during the call only.
    let told = unsafe { libc::getrusage(libc::RUSAGE_SELF, &raw mut usage) };
    assert_eq!(told, 0);
    usage.ru_maxrss as u64 * 1024
}

/// The most memory that each command takes on the whole store.
pub struct Memory {
    peak_bytes: BTreeMap<&'static str, u64>,
}

impl Memory {
    pub fn of(base: &Base, scratch: &Path) -> Memory {
        let path = scratch.join("whole");
        let mut peak_bytes = BTreeMap::new();
        for name in READERS.into_iter().chain(["recover", "open"]) {
            stores::copy(&base.path, &path);
            let command = match name {
                "open" => program::opener(base, &path),
                name => command(name, &path),
            };
            let ran = run(command).unwrap();
            assert!(
                ran.code == 0 || base.is_dirty,
                "{name}: {}{}",
                ran.out,
                ran.err
            );
            peak_bytes.insert(name, ran.peak_bytes);
            std::fs::remove_dir_all(&path).unwrap();
        }
        Memory { peak_bytes }
    }

    /// Runs the command, which may take somewhat more than on the whole store.
    pub fn within_limits(&self, name: &str, command: Command) -> Result<Ran, String> {
        let ran = run(command).map_err(|error| format!("{name}: {error}"))?;
        // The system counts from the fork on, when the child had the tests' memory still.
        let bytes_max = self.peak_bytes[name].max(own_peak_bytes()) + MORE_BYTES_MAX;
        if ran.peak_bytes > bytes_max {
            return Err(format!(
                "{name} took {} bytes of memory, more than {bytes_max}",
                ran.peak_bytes
            ));
        }
        Ok(ran)
    }
}
