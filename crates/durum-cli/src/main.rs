//! The `durum` command; see the library of this crate.

#![warn(clippy::unwrap_used)]

use std::process::ExitCode;

fn main() -> ExitCode {
    durum_cli::main(std::env::args_os())
}
