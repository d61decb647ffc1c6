//! Arguments of `durum demo`.

use std::path::PathBuf;

use clap::Args;

use super::kv;

#[derive(Debug, Args)]
pub struct Demo {
    /// Texts to count, files or directories [default: /usr/share/common-licenses, ./README.md and ./docs]
    pub files: Vec<PathBuf>,
    /// How often to kill the worker process
    #[arg(long, default_value_t = 16, value_name = "N")]
    pub kills: u32,
    /// Worker threads
    #[arg(long, default_value_t = 2, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=64))]
    pub threads: u32,
    /// Milliseconds between two kills, on average
    #[arg(long, default_value_t = 1200, value_name = "MS")]
    pub pace: u64,
    /// The engine of a pool that is made: shadow, hybrid or twin [default: shadow]
    #[arg(long, value_name = "ENGINE", value_parser = kv::engine)]
    pub engine: Option<durum::Engine>,
    /// The store, a directory: made where nothing is, gone on with where one is, and kept [default: a fresh one in
    /// /dev/shm]
    #[arg(long, value_name = "DIR")]
    pub store: Option<PathBuf>,
    /// Draws the moments of the kills; a run prints its own [default: random]
    #[arg(long, value_name = "N")]
    pub seed: Option<u64>,
    /// Start a service, durumd, and let the worker use the store by it; the service recovers what the worker leaves
    #[arg(long)]
    pub daemon: bool,
    /// Keep the store
    #[arg(long)]
    pub keep: bool,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
    /// Only count, until killed, and report what is durable
    #[arg(long, hide = true, requires = "store", conflicts_with = "verify_only")]
    pub worker_only: bool,
    /// Only compare the counts of a store with the part of its text that it says was counted
    #[arg(long, hide = true, requires = "store")]
    pub verify_only: bool,
    /// With --verify-only: at least so many words have to be counted
    #[arg(long, hide = true, default_value_t = 0, value_name = "N")]
    pub at_least: u64,
    /// With --worker-only: the text comes from the standard input
    #[arg(long, hide = true)]
    pub text_from_input: bool,
    /// With --worker-only: end when the pass that was begun is complete
    #[arg(long, hide = true)]
    pub finish: bool,
}
