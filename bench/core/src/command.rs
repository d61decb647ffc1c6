//! What the programs of the benchmarks have in common.

use std::fs;
use std::io::{IsTerminal, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use crate::error::{Error, Result};

/// Ends a program: 2 for a command line that is not understood, 1 for other failures.
pub fn ended(name: &str, result: Result<()>) -> ExitCode {
    let Err(error) = result else {
        return ExitCode::SUCCESS;
    };
    eprintln!("{name}: {error}");
    match error {
        Error::Usage(_) => ExitCode::from(2),
        _ => ExitCode::FAILURE,
    }
}

/// Tells on a terminal what runs; "" takes it away.
pub fn progress(text: &str) {
    if std::io::stderr().is_terminal() {
        eprint!("\r\x1b[K{text}");
    }
}

/// Unlike `print!`, this ends quietly where the reader has gone.
///
/// # Errors
/// What the system says.
pub fn print(text: &str) -> Result<()> {
    match std::io::stdout().write_all(text.as_bytes()) {
        Err(error) if error.kind() == std::io::ErrorKind::BrokenPipe => Ok(()),
        result => result.map_err(Error::file("standard output")),
    }
}

/// Writes a file, and says so.
///
/// # Errors
/// What the system says.
pub fn write(path: &Path, text: &str) -> Result<()> {
    fs::write(path, text).map_err(Error::file(path))?;
    print(&format!("wrote {}\n", path.display()))
}

/// A directory of this run's own, removed at the end.
#[derive(Debug)]
pub struct WorkDir(PathBuf);

impl WorkDir {
    /// Makes one for the program `name`.
    ///
    /// # Errors
    /// What the system says.
    pub fn create(parent: &Path, name: &str) -> Result<WorkDir> {
        let path = parent.join(format!("{name}-{}", std::process::id()));
        fs::create_dir(&path).map_err(Error::file(&path))?;
        Ok(WorkDir(path))
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for WorkDir {
    fn drop(&mut self) {
        if let Err(error) = fs::remove_dir_all(&self.0) {
            eprintln!("{} stays behind: {error}", self.0.display());
        }
    }
}
