//! Makes one page of the pages that the programs of a run have written.

use std::fs;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::Parser;
use durum_bench_core::command::{self, write};
use durum_bench_core::error::{Error, Result};
use durum_bench_core::report::page;

const NAME: &str = "durum-bench-page";

/// Makes one page of the pages that the programs of a run have written.
#[derive(Parser)]
#[command(name = NAME)]
struct Options {
    /// Where it goes.
    out: PathBuf,
    /// The pages, in the order in which they are read; a file that is none is shown as text.
    #[arg(required = true)]
    pages: Vec<PathBuf>,
}

fn main() -> ExitCode {
    command::ended(NAME, joined())
}

fn joined() -> Result<()> {
    let options = Options::parse();
    let read = |path: &PathBuf| {
        let text = fs::read_to_string(path).map_err(Error::file(path))?;
        Ok(match path.extension().is_some_and(|it| it == "html") {
            true => text,
            false => page::of_text(&path.display().to_string(), text),
        })
    };
    let pages = options.pages.iter().map(read).collect::<Result<Vec<_>>>()?;
    write(&options.out, &page::join(&pages))
}
