//! Each small subcommand does what it says, and its exit code tells whose turn it is.

mod arguments;
mod copies;
mod missing_files;
mod recovering;
mod removal;
mod stores;
#[path = "../support/mod.rs"]
mod support;
