//! `durum completions`: what a shell completes this command's arguments by.

use std::io::Write;

use clap::CommandFactory;

use crate::args::{Arguments, Completions};
use crate::failure::Failure;

pub(crate) fn run(options: &Completions, out: &mut dyn Write) -> Result<(), Failure> {
    // Made in memory first: it panics where its output fails.
    let mut script = Vec::new();
    clap_complete::generate(
        options.shell,
        &mut Arguments::command(),
        "durum",
        &mut script,
    );
    Ok(out.write_all(&script)?)
}
