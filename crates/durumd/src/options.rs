//! What the command line says.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Parser, ValueEnum};
use durum_protocol::address::DEFAULT_SOCKET;
use tracing_subscriber::EnvFilter;

/// Serves a durum store to the programs of this machine.
///
/// Programs open it as `durum:` (the default socket), or as `durum+unix:PATH`. A pool is one program's at a time. When
/// a program is gone, its transactions are completed or undone, while others go on.
#[derive(Debug, Parser)]
#[command(name = "durumd", version)]
pub(crate) struct Options {
    /// The store directory; it is made if nothing is there
    #[arg(long, value_name = "DIR")]
    pub(crate) store: PathBuf,
    /// The socket that programs connect to
    #[arg(long, value_name = "PATH", default_value = DEFAULT_SOCKET)]
    pub(crate) socket: PathBuf,
    /// Users that may use the store beside root and the service's own, by number; repeatable
    #[arg(long = "user", value_name = "UID")]
    pub(crate) users: Vec<u32>,
    /// The most programs at a time
    #[arg(long, value_name = "N", default_value_t = 4096)]
    pub(crate) clients_max: usize,
    /// The most programs of one user at a time
    #[arg(long, value_name = "N", default_value_t = 1024)]
    pub(crate) clients_per_user: usize,
    /// At SIGTERM wait until all programs have closed the store
    #[arg(long)]
    pub(crate) drain: bool,
    /// Say whether the store could be served, and exit
    #[arg(long)]
    pub(crate) check_config: bool,
    /// How the log is written, to standard error; RUST_LOG chooses what
    #[arg(long, value_enum, default_value_t = LogFormat::Text)]
    pub(crate) log: LogFormat,
}

/// How the log is written.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum LogFormat {
    /// Lines for people
    Text,
    /// One JSON object a line
    Json,
}

/// How long a program has to greet, and to say that it holds its lock.
pub(crate) const GREETING_TIME: Duration = Duration::from_secs(10);

/// How long sending waits for a program that does not read.
pub(crate) const SENDING_TIME: Duration = Duration::from_secs(10);

/// How long ringing a bell waits. It holds a word or two that nobody has read: more is not worth waiting for.
pub(crate) const BELL_TIME: Duration = Duration::from_millis(1);

impl Options {
    pub(crate) fn start_logging(&self) {
        let filter = EnvFilter::try_from_default_env().unwrap_or_else(|_| EnvFilter::new("info"));
        let log = tracing_subscriber::fmt()
            .with_env_filter(filter)
            .with_writer(std::io::stderr);
        match self.log {
            LogFormat::Text => log.with_ansi(false).init(),
            LogFormat::Json => log.json().init(),
        }
    }
}
