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

use std::process::ExitCode;

use clap::Parser;
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
    let options = Options::parse();
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
