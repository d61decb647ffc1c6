//! What may be asked of `durum kv`.

use std::path::PathBuf;

use clap::{Args, Subcommand};

#[derive(Debug, Args)]
pub struct Kv {
    #[command(subcommand)]
    pub command: KvCommand,
}

#[derive(Debug, Subcommand)]
pub enum KvCommand {
    /// Print the value of a key
    #[command(
        after_help = "Examples:\n  durum kv get /mnt/pmem/names color\n  durum kv get /mnt/pmem/names color --raw > value\n\n\
        A key that is not there gives exit code 2."
    )]
    Get(Get),
    /// Give a key a value
    #[command(
        after_help = "Examples:\n  durum kv put /mnt/pmem/names color red --create\n  durum kv put /mnt/pmem/names picture < picture.png"
    )]
    Put(Put),
    /// Delete keys
    #[command(
        after_help = "Example:\n  durum kv del /mnt/pmem/names color shape\n\n\
        All of them go in one transaction. A key that is not there is no error."
    )]
    Del(Del),
    /// Print entries in the order of their keys
    #[command(
        after_help = "Examples:\n  durum kv scan /mnt/pmem/names --prefix co\n  durum kv scan /mnt/pmem/names --from a --to m --reverse --limit 10\n  durum kv scan /mnt/pmem/names | durum kv load /mnt/pmem/copy --create\n\n\
        A line is a key, a tab and a value. Backslash, tab, line feed, and bytes that are not UTF-8 text, are written as \\\\, \\t, \\n and \\xNN."
    )]
    Scan(Scan),
    /// Put entries that `scan` or another program has printed
    #[command(
        after_help = "Examples:\n  durum kv load /mnt/pmem/names entries.txt --create\n  durum kv scan /mnt/pmem/names | durum kv load /mnt/pmem/copy --create\n\n\
        A line is a key, a tab and a value, with \\\\, \\t, \\n and \\xNN as `scan` writes them. Entries are made in transactions of --batch; if a line is wrong, those before it in earlier transactions stay."
    )]
    Load(Load),
    /// Tell how many entries there are, how large they are, and what the database is made of
    #[command(after_help = "Example:\n  durum kv stats /mnt/pmem/names --json")]
    Stats(Stats),
    /// Set what the database keeps for every program that opens it
    #[command(
        after_help = "Examples:\n  durum kv set /mnt/pmem/names durability=buffered\n  durum kv set /mnt/pmem/names durability=durable\n\n\
        durability says when a write is durable that does not say so itself: when it returns (durable), or up to 10 ms later (buffered), so that the death of the program, or of the \
        machine, takes the last ones. Writes with `sync`, as LevelDB calls it, are durable when they return either way."
    )]
    Set(Set),
}

#[derive(Debug, Args)]
pub struct Set {
    /// The directory of the database
    #[arg(value_name = "DATABASE")]
    pub path: PathBuf,
    /// What is set: durability=durable or durability=buffered
    #[arg(value_name = "NAME=VALUE", value_parser = setting)]
    pub setting: durum_kv::Durability,
}

fn setting(text: &str) -> Result<durum_kv::Durability, String> {
    match text {
        "durability=durable" => Ok(durum_kv::Durability::Durable),
        "durability=buffered" => Ok(durum_kv::Durability::Buffered),
        _ => Err("write durability=durable or durability=buffered".into()),
    }
}

/// Which database.
#[derive(Debug, Args)]
pub struct Database {
    /// The directory of the database
    #[arg(value_name = "DATABASE")]
    pub path: PathBuf,
    /// Keys and values in arguments and output are hexadecimal digits
    #[arg(long)]
    pub hex: bool,
}

/// How a database that is not there is made.
#[derive(Debug, Args)]
pub struct Making {
    /// Make the database if there is none
    #[arg(long)]
    pub create: bool,
    /// The engine of a database that is made: shadow, hybrid or twin [default: shadow]
    #[arg(long, value_name = "ENGINE", value_parser = engine)]
    pub engine: Option<durum::Engine>,
}

#[derive(Debug, Args)]
pub struct Get {
    #[command(flatten)]
    pub database: Database,
    /// The key
    pub key: std::ffi::OsString,
    /// Print the value's bytes as they are, without a line feed
    #[arg(long, conflicts_with = "hex")]
    pub raw: bool,
    /// Print JSON
    #[arg(long, conflicts_with = "raw")]
    pub json: bool,
}

#[derive(Debug, Args)]
pub struct Put {
    #[command(flatten)]
    pub database: Database,
    /// The key
    pub key: std::ffi::OsString,
    /// The value [default: the standard input, as it is]
    pub value: Option<std::ffi::OsString>,
    #[command(flatten)]
    pub making: Making,
}

#[derive(Debug, Args)]
pub struct Del {
    #[command(flatten)]
    pub database: Database,
    /// The keys
    #[arg(required = true, value_name = "KEY")]
    pub keys: Vec<std::ffi::OsString>,
}

#[derive(Debug, Args)]
pub struct Scan {
    #[command(flatten)]
    pub database: Database,
    /// Only keys from this one on
    #[arg(long, value_name = "KEY")]
    pub from: Option<std::ffi::OsString>,
    /// Only keys before this one
    #[arg(long, value_name = "KEY")]
    pub to: Option<std::ffi::OsString>,
    /// Only keys that begin so
    #[arg(long, value_name = "BYTES", conflicts_with_all = ["from", "to"])]
    pub prefix: Option<std::ffi::OsString>,
    /// Print at most this many entries
    #[arg(long, value_name = "N")]
    pub limit: Option<u64>,
    /// From the last key to the first
    #[arg(long)]
    pub reverse: bool,
    /// Print keys only
    #[arg(long)]
    pub keys: bool,
    /// Print JSON: an object for each entry, on a line of its own
    #[arg(long)]
    pub json: bool,
}

#[derive(Debug, Args)]
pub struct Load {
    #[command(flatten)]
    pub database: Database,
    /// The entries [default: the standard input]
    pub file: Option<PathBuf>,
    /// Entries in one transaction
    #[arg(long, default_value_t = 1000, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub batch: u32,
    #[command(flatten)]
    pub making: Making,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

#[derive(Debug, Args)]
pub struct Stats {
    /// The directory of the database
    #[arg(value_name = "DATABASE")]
    pub path: PathBuf,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

pub(super) fn engine(name: &str) -> Result<durum::Engine, String> {
    durum::Engine::from_name(name).ok_or_else(|| "give shadow, hybrid or twin".into())
}
