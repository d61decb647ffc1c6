//! `durumd`: one store for many programs.
//!
//! Reading order: [`options`], [`serve`] (who comes), [`session`] (what a connection asks), [`quotas`] (how much of
//! it), [`clients`] (who lives, and what happens when one is gone), [`completions`] (what becomes of what it has left
//! half done), [`runner`] (in which process). Around it: [`sandbox`] (what the service gives up),
//! [`audit`] and [`metrics`] (what it tells), [`watchdog`] (whether it goes on).

#![warn(clippy::unwrap_used)]

mod audit;
mod clients;
mod completions;
mod config_check;
mod connections;
mod metrics;
mod options;
mod quotas;
mod runner;
mod sandbox;
mod serve;
mod service;
mod session;
mod shipment;
mod showings;
mod socket_files;
mod sockets;
mod watchdog;

use std::io::Write;
use std::process::ExitCode;

use clap::{CommandFactory, FromArgMatches};
use clap_complete::Shell;
use rustix::fs::Mode;

use crate::options::Options;

fn main() -> ExitCode {
    let mut arguments = std::env::args_os().skip(1);
    if arguments
        .next()
        .is_some_and(|first| first == runner::ARGUMENT)
    {
        return runner::be();
    }
    let arguments = Options::command().get_matches();
    if let Some(shell) = arguments.get_one::<Shell>("completions") {
        return print_completions(*shell);
    }
    let options = Options::from_arg_matches(&arguments).unwrap_or_else(|error| error.exit());
    if options.sandbox_calls {
        println!("{}", sandbox::calls::names().join("\n"));
        return ExitCode::SUCCESS;
    }
    options.start_logging();
    // Files of the store are the service's alone: what a client can do with a descriptor is what that is open for.
    rustix::process::umask(Mode::RWXG | Mode::RWXO);
    match serve::run(&options) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            tracing::error!("{error}");
            eprintln!("durumd: {error}");
            ExitCode::FAILURE
        }
    }
}

fn print_completions(shell: Shell) -> ExitCode {
    // Made in memory first: it panics where its output fails.
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut Options::command(), "durumd", &mut script);
    match std::io::stdout().write_all(&script) {
        Ok(()) => ExitCode::SUCCESS,
        Err(_) => ExitCode::FAILURE,
    }
}
