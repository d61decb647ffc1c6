//! Times `durum-kv` as LevelDB's `db_bench` times LevelDB.

#![warn(clippy::unwrap_used)]

use std::process::ExitCode;

use durum_kv_bench::{Durum, Flags, Output, manual, run};

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    // For docs/man, and told nowhere else.
    if arguments == ["--manual"] {
        print!("{}", manual::page());
        return ExitCode::SUCCESS;
    }
    let flags = match Flags::parse(arguments) {
        Ok(flags) => flags,
        Err(error) => error.exit(),
    };
    let store = Durum::new(&flags);
    let mut output = Output {
        out: std::io::stdout().lock(),
        err: std::io::stderr(),
    };
    match run(&flags, store, &mut output) {
        Ok(_) => ExitCode::SUCCESS,
        Err(text) => {
            eprintln!("durum-kv-bench: {text}");
            ExitCode::FAILURE
        }
    }
}
