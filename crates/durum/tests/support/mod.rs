//! What tests share: the engine that they run on, and how they run a part of themselves in another process.

#![allow(dead_code, reason = "no test needs all of it")]

use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};

/// Where the other process finds its directory.
const DIRECTORY: &str = "DURUM_TEST_DIRECTORY";

/// Starts the ignored test `name` of this test binary in a process of its own, with `dir` to work in.
pub fn start(name: &str, dir: &Path) -> Child {
    start_with(name, dir, Stdio::null())
}

/// As [`start`], with a place for what it prints.
pub fn start_with(name: &str, dir: &Path, output: Stdio) -> Child {
    command(name, dir).stdout(output).spawn().unwrap()
}

/// What [`start`] starts.
pub fn command(name: &str, dir: &Path) -> Command {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command
        .args([
            name,
            "--exact",
            "--ignored",
            "--nocapture",
            "--test-threads=1",
        ])
        .env(DIRECTORY, dir)
        .stdout(Stdio::null())
        .stderr(Stdio::inherit()); // Should it panic, that is worth reading.
    // Some run for ever; none shall outlive a test that was stopped.
    // SAFETY: between fork and exec there is one system call.
    unsafe {
        command.pre_exec(|| {
            match libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL as libc::c_ulong) {
                0 => Ok(()),
                _ => Err(std::io::Error::last_os_error()),
            }
        });
    }
    command
}

/// The directory, in the process that `start` started; `None` when somebody just runs all ignored tests.
pub fn directory() -> Option<std::path::PathBuf> {
    std::env::var_os(DIRECTORY).map(Into::into)
}

/// The engine that the tests run on: what `DURUM_TEST_ENGINE` says, or the default of a new pool. Those that no pool is
/// made for (`direct`, `sample`) run pools of Hybrid.
pub fn engine() -> durum::Engine {
    match std::env::var("DURUM_TEST_ENGINE").as_deref() {
        Ok("direct" | "sample") => durum::Engine::Hybrid,
        // The mode stands behind the engine's name.
        Ok(name) => durum::Engine::from_name(name.split('-').next().unwrap()).expect("an engine"),
        Err(_) => durum::PoolOptions::new().engine,
    }
}

/// How a Twin pool is used: `DURUM_TEST_ENGINE` may say `twin-basic` or `twin-lr`, too.
pub fn twin_mode() -> durum::TwinMode {
    match std::env::var("DURUM_TEST_ENGINE").as_deref() {
        Ok("twin-basic") => durum::TwinMode::Basic,
        Ok("twin-lr") => durum::TwinMode::LeftRight,
        _ => durum::TwinMode::Log,
    }
}

/// Whether that engine keeps logs on the media.
pub fn has_logs() -> bool {
    engine() != durum::Engine::Twin
}

/// Options for a pool of that engine.
pub fn pool_options() -> durum::PoolOptions {
    let options = durum::PoolOptions::new()
        .engine(engine())
        .twin_mode(twin_mode());
    match std::env::var("DURUM_TEST_ENGINE").as_deref() {
        // With the feature `test-engines`.
        Ok("direct") => options.run_by("direct"),
        Ok("sample") => options.run_by("sample"),
        _ => options,
    }
}
