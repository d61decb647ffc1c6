//! `durumd`: one store for many programs.
//!
//! Reading order: [`options`], [`serve`] (who comes), [`session`] (what a connection asks), [`clients`] (who lives, and
//! what happens when one is gone).

#![warn(clippy::unwrap_used)]

mod clients;
mod options;
mod serve;
mod service;
mod session;

use std::process::ExitCode;

use clap::Parser;

use crate::options::Options;

fn main() -> ExitCode {
    let options = Options::parse();
    options.start_logging();
    match serve::run(&options) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            tracing::error!("{error}");
            eprintln!("durumd: {error}");
            ExitCode::FAILURE
        }
    }
}
