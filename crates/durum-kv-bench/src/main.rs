//! Times `durum-kv` as LevelDB's `db_bench` times LevelDB.

use std::process::ExitCode;

use durum_kv_bench::{Durum, Flags, run};

fn main() -> ExitCode {
    let flags = match Flags::parse(std::env::args().skip(1)) {
        Ok(flags) => flags,
        Err(text) => {
            eprintln!("{text}");
            return ExitCode::from(2);
        }
    };
    let store = Durum::new(&flags);
    match run(&flags, store, &mut std::io::stdout().lock()) {
        Ok(_) => ExitCode::SUCCESS,
        Err(text) => {
            eprintln!("durum-kv-bench: {text}");
            ExitCode::FAILURE
        }
    }
}
