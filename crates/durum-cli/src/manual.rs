//! The manual pages, made from the definition of the command.

use std::fs;
use std::io::Write;

use clap::CommandFactory;
use clap_mangen::Man;

use crate::args::{Arguments, Manual};
use crate::failure::Failure;

/// The pages: file names and contents. One for the command and one for each subcommand that is not hidden, and for each
/// of theirs.
///
/// # Errors
/// None that is known: pages are made in memory.
pub fn pages() -> std::io::Result<Vec<(String, Vec<u8>)>> {
    let mut pages = Vec::new();
    let command = Arguments::command().disable_help_subcommand(true);
    add_pages("durum", command, &mut pages)?;
    Ok(pages)
}

fn add_pages(
    usage: &str,
    command: clap::Command,
    pages: &mut Vec<(String, Vec<u8>)>,
) -> std::io::Result<()> {
    // The page's name has hyphens, as those of other tools; the command is written with blanks.
    let name = usage.replace(' ', "-");
    let command = command.bin_name(usage).disable_help_subcommand(true);
    pages.push(page(&name, command.clone())?);
    for subcommand in command
        .get_subcommands()
        .filter(|subcommand| !subcommand.is_hide_set())
    {
        let usage = format!("{usage} {}", subcommand.get_name());
        add_pages(&usage, subcommand.clone(), pages)?;
    }
    Ok(())
}

fn page(name: &str, command: clap::Command) -> std::io::Result<(String, Vec<u8>)> {
    let mut bytes = Vec::new();
    let version = concat!("durum ", env!("CARGO_PKG_VERSION"));
    let man = Man::new(command.display_name(name.to_owned()));
    man.source(version)
        .manual("durum")
        .date("")
        .render(&mut bytes)?;
    // What stands below the options of `--help` is examples, mostly.
    let text = String::from_utf8_lossy(&bytes).replace(".SH EXTRA\n", ".SH NOTES\n");
    Ok((format!("{name}.1"), text.into_bytes()))
}

pub(crate) fn run(options: &Manual, out: &mut dyn Write) -> Result<(), Failure> {
    let pages = pages().map_err(|error| Failure::system("making the pages", error))?;
    for (name, bytes) in pages {
        let path = options.directory.join(name);
        fs::write(&path, bytes).map_err(|error| Failure::file("writing", &path, error))?;
        writeln!(out, "{}", path.display())?;
    }
    Ok(())
}
