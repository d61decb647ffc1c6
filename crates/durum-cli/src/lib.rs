//! The `durum` command: makes, lists, inspects, checks, cleans, recovers and clones stores, and shows that they
//! survive.
//!
//! `docs/how-to/cli.md` tells what each subcommand prints. Reading order: `args` (what may be asked for), `failure`
//! (how it can go wrong, and the exit codes), `place` (how a store is named), `color` (where there is any), `commands`
//! (one file for each small subcommand), `inspect` (objects through their type descriptors), `explore` (the same for a
//! browser), `top` (what a service does), `watch` (what a program does that has a store open), `kv` (databases of
//! durum-kv), `demo` (the word count that is killed again and again; `demo/map.rs` is an example of the untyped API).

#![warn(clippy::unwrap_used)]

mod args;
mod color;
mod commands;
mod confirm;
mod demo;
mod explore;
mod failure;
mod inspect;
mod kv;
pub mod manual;
mod output;
mod place;
mod progress;
mod top;
mod watch;

use std::ffi::OsString;
use std::io::Write;
use std::process::ExitCode;

use clap::Parser;

use args::{Arguments, Command};
use failure::Failure;

/// Runs the command with these arguments, the first of which is its own name.
///
/// The exit code is 0 for success, 2 for refused input, 3 for damaged data, 1 when the system failed, and 130 after an
/// interrupt.
pub fn main(arguments: impl IntoIterator<Item = OsString>) -> ExitCode {
    let arguments: Vec<OsString> = arguments.into_iter().collect();
    let arguments = match Arguments::try_parse_from(&arguments) {
        Ok(arguments) => arguments,
        Err(error) => {
            color::choose(color::asked_in(&arguments));
            // Help and version go to the output and succeed; anything else is refused input.
            let code = if error.use_stderr() {
                failure::REFUSED
            } else {
                0
            };
            let _ = error.print();
            return ExitCode::from(code);
        }
    };
    color::choose(arguments.color);
    let mut out = std::io::BufWriter::new(std::io::stdout().lock());
    let result = run(&arguments.command, &mut out).and_then(|()| Ok(out.flush()?));
    // A panic below would have left `out` to its destructor; here it is empty or the reader is gone.
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(Failure::OutputClosed) => ExitCode::SUCCESS,
        Err(failure) => {
            let _ = out.flush();
            eprintln!("{} {failure}", color::err(color::BAD, "durum:"));
            ExitCode::from(failure.exit_code())
        }
    }
}

fn run(command: &Command, out: &mut dyn Write) -> Result<(), Failure> {
    match command {
        Command::Init(options) => commands::init::run(options, out),
        Command::Ls(options) => commands::ls::run(options, out),
        Command::Stat(options) => commands::stat::run(options, out),
        Command::Inspect(options) => inspect::run(options, out),
        Command::Explore(options) => explore::run(options, out),
        Command::Check(options) => commands::check::run(options, out),
        Command::Gc(options) => commands::gc::run(options, out),
        Command::Recover(options) => commands::recover::run(options, out),
        Command::Clone(options) => commands::clone::run(options, out),
        Command::Export(options) => commands::ship::export(options, out),
        Command::Dump(options) => commands::dump::dump(options, out),
        Command::Load(options) => commands::dump::load(options, out),
        Command::Migrate(options) => commands::migrate::run(options, out),
        Command::Import(options) => commands::ship::import(options, out),
        Command::Rm(options) => commands::rm::run(options, out),
        Command::Chmod(options) => commands::rights::chmod(options, out),
        Command::Chown(options) => commands::rights::chown(options, out),
        Command::Clients(options) => commands::clients::run(options, out),
        Command::Kick(options) => commands::clients::kick(options, out),
        Command::Revoke(options) => commands::clients::revoke(options, out),
        Command::Kv(options) => kv::run(options, out),
        Command::Top(options) => top::run(options, out),
        Command::Demo(options) => demo::run(options, out),
        Command::Completions(options) => commands::completions::run(options, out),
        Command::Manual(options) => manual::run(options, out),
    }
}
