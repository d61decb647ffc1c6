//! Prints the public interface that a file of rustdoc's JSON describes, an item a line.
//!
//! Left out is what the compiler or a derive implements: it follows from the types.

use std::process::ExitCode;

fn main() -> ExitCode {
    let Some(path) = std::env::args_os().nth(1) else {
        eprintln!("usage: durum-public FILE.json");
        return ExitCode::from(2);
    };
    let interface = public_api::Builder::from_rustdoc_json(path)
        .omit_blanket_impls(true)
        .omit_auto_trait_impls(true)
        .omit_auto_derived_impls(true)
        .build();
    match interface {
        Ok(interface) => {
            print!("{interface}");
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("durum-public: {error}");
            ExitCode::from(2)
        }
    }
}
