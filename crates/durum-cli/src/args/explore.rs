//! What may be asked of `durum explore`.

use std::path::PathBuf;

use clap::Args;

#[derive(Debug, Args)]
pub struct Explore {
    /// The store
    pub store: PathBuf,
    /// Write the page to this file, with all that it shows
    #[arg(long, value_name = "FILE", conflicts_with = "port")]
    pub html: Option<PathBuf>,
    /// Put at most this many objects into the file
    #[arg(long, default_value_t = 2000, value_name = "N", requires = "html")]
    pub objects: u64,
    /// Serve at this port of 127.0.0.1 [default: one that is free]
    #[arg(
        long,
        default_value_t = 0,
        value_name = "PORT",
        hide_default_value = true
    )]
    pub port: u16,
    /// Hide the program's data; structure, counts and pointers stay
    #[arg(long)]
    pub redact: bool,
    /// Look at the pools as they are at one moment in the program that has them open, which goes on
    #[arg(long)]
    pub live: bool,
    /// Print the page's address, or what was written, as JSON
    #[arg(long)]
    pub json: bool,
}
