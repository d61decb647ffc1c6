//! What the command line says.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Parser, ValueEnum};
use clap_complete::Shell;
use durum_protocol::address::DEFAULT_SOCKET;
use durum_runner::limits::Setting;
use tracing_subscriber::EnvFilter;

use crate::quotas::{Limit, uid_of};

/// Serves a durum store to the programs of this machine.
///
/// Programs open it as `durum:` (the default socket), or as `durum+unix:PATH`. A pool is one program's at a time. When
/// a program is gone, its transactions are completed or undone, while others go on.
#[derive(Debug, Parser)]
#[command(
    name = "durumd",
    version,
    after_help = "\
Who may come: everyone, or those named with --user, root and the service's own user. A pool is its maker's, who gives \
others rights by `durum chmod`. A program that shares the service's user can \
open the store's files itself, so a user of its own is better: durum, which programs trust. \
DURUM_SERVICE_USER names another one to them.\n\n\
systemd: `systemctl enable --now durumd.socket` starts the service when the first program comes, as user durum, with \
the store in /var/lib/durum. More options go to DURUMD_OPTIONS in /etc/default/durumd. `systemctl enable --now \
durumd-metrics.socket`, while the service is stopped, serves metrics at 127.0.0.1:9464. The service tells systemd that \
it is ready, and feeds its watchdog while requests are answered and clients looked after.\n\n\
SIGTERM and SIGINT: nothing new is granted, programs keep what they have mapped, and the service ends; with --drain \
when all programs have closed the store, and until then `durum clients` shows who they are. A service that is killed \
loses nothing: programs go on, and come again by themselves when it is started again.\n\n\
Log: lines on standard error. Events of the target audit tell who (uid, pid, client) was admitted, and what was opened, \
created, removed, recovered or refused; RUST_LOG=warn,audit=info keeps these when all else is silent.\n\n\
Code: a program that was interrupted while it held locks (durumcc -fido) may have left code that completes that. The \
service has a process of its own run it, which gets a socket to the service and nothing else; who wants the pool waits \
for it. It is tried once, and again if it is killed; the log, `durum ls` and whoever opens the pool are told how it ended. The unit \
durum-runner.socket has it run as a user that nobody else is.\n\n\
Sandbox: before it reads what clients have written, the service gives up all files but the store and its sockets \
(Landlock, Linux 5.19), and all system calls but those it makes (seccomp). What it tries beside them is an error with \
EPERM, which the kernel logs. Where the kernel has neither, the log says so.\n\n\
Files: /run/durum/durum.sock, /var/lib/durum, /etc/default/durumd.\n\n\
See also: durum(1), durum-top(1)."
)]
pub(crate) struct Options {
    /// The store directory; it is made if nothing is there
    #[arg(long, value_name = "DIR")]
    pub(crate) store: PathBuf,
    /// The socket that programs connect to
    #[arg(long, value_name = "PATH", default_value = DEFAULT_SOCKET)]
    pub(crate) socket: PathBuf,
    /// Admit only these users, by name or number, beside root and the service's own; repeatable. Without it, everyone
    /// who can connect to the socket: what a user may do, the owners of pools say (`durum chmod`)
    #[arg(long = "user", value_name = "USER", value_parser = uid_of)]
    pub(crate) users: Vec<u32>,
    /// The most programs at a time
    #[arg(long, value_name = "N", default_value_t = 4096, value_parser = at_least_one)]
    pub(crate) clients_max: usize,
    /// The most that a user may have: bytes, log-bytes, puddles, clients (1024 if nothing is said), requests or
    /// descriptors; of one user, or of each for whom nothing else is said. Repeatable; N may end with K, M, G or T.
    /// Root and the service's own user have no limits
    #[arg(long = "quota", value_name = "[USER:]QUOTA=N", value_parser = Limit::parse)]
    pub(crate) quotas: Vec<Limit>,
    /// The socket of the process that runs code which programs have deposited, to complete what they were interrupted
    /// in; without it the service starts one of its own user
    #[arg(long, value_name = "PATH")]
    pub(crate) runner: Option<PathBuf>,
    /// Run no such code: what is interrupted waits for its program
    #[arg(long, conflicts_with_all = ["runner", "code_limits"])]
    pub(crate) no_code: bool,
    /// What such code may take: processor=SECONDS (10 if nothing is said), time=SECONDS (60), memory=BYTES (256M),
    /// files=N (4096), threads=N (1024), space=BYTES for new files (1G). Repeatable
    #[arg(long = "code-limit", value_name = "NAME=N")]
    pub(crate) code_limits: Vec<Setting>,
    /// At SIGTERM wait until all programs have closed the store
    #[arg(long)]
    pub(crate) drain: bool,
    /// Say whether the service could start with these options: what is at the store and at the socket, who serves them
    /// now, and what this user may make there; and exit
    #[arg(long)]
    pub(crate) check_config: bool,
    /// Serve metrics for Prometheus there: HOST:PORT, or the path of a socket; http://HOST:PORT/metrics
    #[arg(long, value_name = "ADDR")]
    pub(crate) metrics: Option<String>,
    /// Do not give up what the service has no need of: files beside the store (Landlock), other system calls (seccomp)
    #[arg(long)]
    pub(crate) no_sandbox: bool,
    /// Try whether the service gives that up on this machine, and exit
    #[arg(long)]
    pub(crate) check_sandbox: bool,
    /// Print what a shell completes these options by, and exit
    #[arg(long, value_name = "SHELL", exclusive = true)]
    pub(crate) completions: Option<Shell>,
    /// List the system calls that the service keeps, and exit
    #[arg(long, hide = true)]
    pub(crate) sandbox_calls: bool,
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

/// How long somebody waits for a program to show a pool, whatever it asks for.
pub(crate) const SHOWING_MAX: Duration = Duration::from_secs(3600);

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

fn at_least_one(text: &str) -> Result<usize, String> {
    match text.parse() {
        Ok(0) => Err("with none the service serves nobody".to_owned()),
        number => number.map_err(|error: std::num::ParseIntError| error.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `DURUM_WRITE_MANUAL=1 cargo test -p durumd manual` writes it anew.
    #[test]
    fn the_manual_page_is_current() {
        use clap::CommandFactory;
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/man/durumd.8");
        let mut page = Vec::new();
        clap_mangen::Man::new(Options::command())
            .section("8")
            .source(concat!("durum ", env!("CARGO_PKG_VERSION")))
            .manual("durum")
            .date("")
            .render(&mut page)
            .unwrap();
        // What stands below the options of `--help`.
        let page = String::from_utf8(page)
            .unwrap()
            .replace(".SH EXTRA\n", ".SH NOTES\n")
            .replace(" \n", "\n");
        if std::env::var_os("DURUM_WRITE_MANUAL").is_some() {
            std::fs::write(path, &page).unwrap();
        }
        let found = std::fs::read_to_string(path).unwrap_or_default();
        assert!(
            found == page,
            "docs/man/durumd.8 is not current: DURUM_WRITE_MANUAL=1 writes it anew"
        );
    }
}
