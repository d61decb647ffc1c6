//! A durumd of a benchmark's own.

use std::ffi::OsString;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use durum_remote::socket::Socket;

use crate::error::{Error, Result};

/// Names the program, where it does not lie beside this one.
const VARIABLE: &str = "DURUMD";

/// How long it may take until it listens.
const START: Duration = Duration::from_secs(60);

/// A service, and the directory of its store. It dies with the handle.
#[derive(Debug)]
pub struct Durumd {
    store: PathBuf,
    socket: PathBuf,
    process: Option<Child>,
}

impl Durumd {
    /// Starts one for the store in `directory`, which it makes if nothing is there.
    ///
    /// # Errors
    /// What the system says; that it ended.
    pub fn start(directory: &Path) -> Result<Durumd> {
        let mut service = Durumd {
            store: directory.to_owned(),
            socket: directory.with_extension("sock"),
            process: None,
        };
        service.start_again()?;
        Ok(service)
    }

    /// What names its store to a program.
    pub fn address(&self) -> PathBuf {
        let mut address = OsString::from("durum+unix:");
        address.push(&self.socket);
        address.into()
    }

    /// Where it listens.
    pub fn socket(&self) -> &Path {
        &self.socket
    }

    /// Its process.
    pub fn id(&self) -> u32 {
        self.process.as_ref().map_or(0, Child::id)
    }

    /// Starts it, where it has ended.
    ///
    /// # Errors
    /// As for [`Durumd::start`].
    pub fn start_again(&mut self) -> Result<()> {
        let failed = || Error::file(program());
        let log = self.store.with_extension("log");
        let log = File::create(&log).map_err(Error::file(log))?;
        let mut process = Command::new(program())
            .arg("--store")
            .arg(&self.store)
            .arg("--socket")
            .arg(&self.socket)
            .env("RUST_LOG", "warn")
            .stdin(Stdio::null())
            .stderr(log)
            .spawn()
            .map_err(failed())?;
        let began = Instant::now();
        while Socket::connect(&self.socket).is_err() {
            let ended = process.try_wait().map_err(failed())?;
            if ended.is_some() || began.elapsed() > START {
                let text = std::fs::read_to_string(self.store.with_extension("log"));
                return Err(failed()(std::io::Error::other(text.unwrap_or_default())));
            }
            thread::sleep(Duration::from_millis(1));
        }
        self.process = Some(process);
        Ok(())
    }

    /// Kills it.
    pub fn kill(&mut self) {
        if let Some(mut process) = self.process.take() {
            let _ = process.kill();
            let _ = process.wait();
        }
    }

    /// Ends it in order.
    ///
    /// # Errors
    /// That it did not end well.
    pub fn end(&mut self) -> Result<()> {
        let Some(mut process) = self.process.take() else {
            return Ok(());
        };
        // SAFETY: it is our child, and not waited for yet.
        unsafe { libc::kill(process.id() as i32, libc::SIGTERM) };
        let status = process.wait().map_err(Error::file(program()))?;
        if !status.success() {
            let text = std::fs::read_to_string(self.store.with_extension("log"));
            let text = format!("{status}: {}", text.unwrap_or_default());
            return Err(Error::file(program())(std::io::Error::other(text)));
        }
        Ok(())
    }
}

impl Drop for Durumd {
    fn drop(&mut self) {
        self.kill();
        let _ = std::fs::remove_file(&self.socket);
        let _ = std::fs::remove_file(self.store.with_extension("log"));
    }
}

/// The one that [`VARIABLE`] names, else the one beside this program.
fn program() -> PathBuf {
    let named = std::env::var_os(VARIABLE).map(PathBuf::from);
    named.unwrap_or_else(|| {
        let own = std::env::current_exe().unwrap_or_default();
        own.with_file_name("durumd")
    })
}
