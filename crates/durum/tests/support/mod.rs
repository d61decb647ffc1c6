//! What tests share that run a part of themselves in another process.

use std::path::Path;
use std::process::{Child, Command, Stdio};

/// Where the other process finds its directory.
const DIRECTORY: &str = "DURUM_TEST_DIRECTORY";

/// Starts the ignored test `name` of this test binary in a process of its own, with `dir` to work in.
pub fn start(name: &str, dir: &Path) -> Child {
    Command::new(std::env::current_exe().unwrap())
        .args([
            name,
            "--exact",
            "--ignored",
            "--nocapture",
            "--test-threads=1",
        ])
        .env(DIRECTORY, dir)
        .stdout(Stdio::null())
        .stderr(Stdio::inherit()) // Should it panic, that is worth reading.
        .spawn()
        .unwrap()
}

/// The directory, in the process that `start` started; `None` when somebody just runs all ignored tests.
pub fn directory() -> Option<std::path::PathBuf> {
    std::env::var_os(DIRECTORY).map(Into::into)
}
