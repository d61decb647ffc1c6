//! What may be asked for. Flags that concern how LevelDB works are accepted and have no effect.

use std::fmt::Write;
use std::num::{NonZero, ParseIntError};
use std::path::PathBuf;

use clap::{Arg, ArgAction, Command, CommandFactory, FromArgMatches, Parser, value_parser};

/// The benchmarks that run if none are named: LevelDB's list. The last three time its parts, and are only told of.
pub const DEFAULT: &str = "fillseq,fillsync,fillrandom,overwrite,readrandom,readrandom,readseq,readreverse,compact,readrandom,readseq,readreverse,fill100K,\
    crc32c,snappycomp,snappyuncomp";

/// Flags of LevelDB's that mean nothing here.
pub(crate) const IGNORED: [&str; 8] = [
    "reuse_logs",
    "write_buffer_size",
    "max_file_size",
    "block_size",
    "cache_size",
    "bloom_bits",
    "open_files",
    "compression",
];

/// Names of benchmarks, and what they mean.
pub(crate) const BENCHMARKS: [(&str, &str); 32] = [
    ("fillseq", "writes N entries in the order of keys"),
    ("fillrandom", "writes N entries, keys drawn"),
    ("overwrite", "the same, where entries are"),
    ("fillbatch", "as fillseq, 1000 in a batch"),
    ("fillone", "as fillseq, all in one batch"),
    (
        "fillsync",
        "writes N/1000 entries, keys drawn, each durable when it returns",
    ),
    ("fill100K", "writes N/1000 entries of 100,000 bytes"),
    (
        "fillseqmulti",
        "as fillseq, --multi entries in a call that is no batch",
    ),
    ("fillrandommulti", "as fillrandom, likewise"),
    ("overwritemulti", "as overwrite, likewise"),
    (
        "fillseqflying",
        "as fillseq, each durable when the next one is made",
    ),
    ("overwriteflying", "as overwrite, likewise"),
    ("deleteseq", "removes N keys in their order"),
    ("deleterandom", "removes N keys, drawn"),
    ("deleteone", "as deleteseq, all in one batch"),
    ("readseq", "goes over entries in the order of keys"),
    ("readreverse", "goes over them the other way"),
    ("readrandom", "reads keys that are drawn"),
    ("readrandommulti", "the same, --multi keys in a call"),
    ("readmissing", "reads keys that are not there"),
    ("readhot", "reads keys drawn from a hundredth of all"),
    ("readrandomsmall", "a thousandth of readrandom"),
    (
        "readwhilewriting",
        "as readrandom, while one more thread writes",
    ),
    (
        "seekrandom",
        "makes an iterator for each read, and seeks a key that is drawn",
    ),
    (
        "seekordered",
        "one iterator seeks keys, each a little behind the one before",
    ),
    ("open", "opens the database N/10000 times"),
    ("compact", "compacts the database"),
    ("stats, sstables", "print the property of that name"),
    ("heapprofile", "of LevelDB's; says that there is none"),
    ("crc32c", "times LevelDB's checksum: left out"),
    ("snappycomp", "times its compression: left out"),
    ("snappyuncomp", "times its decompression: left out"),
];

/// What was asked for.
#[derive(Clone, Debug, Parser)]
#[command(
    name = "durum-kv-bench",
    about = "Times the key-value store as LevelDB's db_bench does",
    long_about = "Runs benchmarks on a database and prints the time of one operation. Names, flags, work and output are \
        those of LevelDB's db_bench; the database at --db is removed first, unless --use_existing_db is given. Results \
        go to the standard output, lines about store and machine to the standard error.",
    override_usage = "durum-kv-bench [--FLAG=VALUE ...]",
    args_override_self = true,
    rename_all = "snake_case"
)]
pub struct Flags {
    /// Names with commas between them.
    #[arg(long, value_name = "LIST", default_value = DEFAULT, hide_default_value = true)]
    pub benchmarks: String,
    /// Entries.
    #[arg(long, value_name = "N", default_value = "1000000", value_parser = value_parser!(u64).range(1..))]
    pub num: u64,
    /// Reads; if negative, as many as entries.
    // By its whole name it is what the parser gives, and none that may be missing.
    #[arg(long, value_name = "N", default_value = "-1", value_parser = reads)]
    pub reads: std::option::Option<u64>,
    /// Threads that do the same.
    #[arg(long, value_name = "N", default_value = "1", value_parser = threads)]
    pub threads: usize,
    /// Bytes of a value.
    #[arg(long, value_name = "BYTES", default_value = "100")]
    pub value_size: usize,
    /// Keys in a call of the benchmarks whose names end in `multi`.
    #[arg(long, value_name = "N", default_value = "32", value_parser = value_parser!(u64).range(1..))]
    pub multi: u64,
    /// Bytes before the number in a key.
    #[arg(long, value_name = "BYTES", default_value = "0")]
    pub key_prefix: usize,
    /// How far values could be compressed.
    #[arg(long, value_name = "R", default_value = "0.5")]
    pub compression_ratio: f64,
    /// Print how operations' times are spread.
    #[arg(long, value_name = "0|1", default_value = "0", action = ArgAction::Set, value_parser = flag)]
    pub histogram: bool,
    /// Count comparisons of keys; the order is then the program's, which takes longer.
    #[arg(long, value_name = "0|1", default_value = "0", action = ArgAction::Set, value_parser = flag)]
    pub comparisons: bool,
    /// Keep what is there; benchmarks that begin empty are left out.
    #[arg(long, value_name = "0|1", default_value = "0", action = ArgAction::Set, value_parser = flag)]
    pub use_existing_db: bool,
    /// Where the database lies.
    #[arg(long, value_name = "DIR", default_value = "/dev/shm/durum-kv-bench")]
    pub db: PathBuf,
    /// The engine of the database: shadow, hybrid or twin.
    #[arg(long, value_name = "NAME", default_value = "shadow", value_parser = engine)]
    pub engine: durum::Engine,
    /// Writes need not be durable when they return, but for fillsync.
    #[arg(long, value_name = "0|1", default_value = "0", action = ArgAction::Set, value_parser = flag)]
    pub buffered: bool,
    /// Ask for durability in each write; stores other than durum's need it.
    #[arg(long, value_name = "0|1", default_value = "0", action = ArgAction::Set, value_parser = flag)]
    pub sync: bool,
    /// Writes of `fillsync`, where they are not a thousandth of the entries. No flag of LevelDB's, so none on the
    /// command line.
    #[arg(skip)]
    pub sync_writes: Option<u64>,
    /// Writes of `fill100K`, likewise.
    #[arg(skip)]
    pub large_writes: Option<u64>,
}

fn flag(text: &str) -> Result<bool, &'static str> {
    match text {
        "0" | "false" => Ok(false),
        "1" | "true" => Ok(true),
        _ => Err("it is 0 or 1"),
    }
}

fn reads(text: &str) -> Result<Option<u64>, ParseIntError> {
    Ok(text.parse::<i64>()?.try_into().ok())
}

fn threads(text: &str) -> Result<usize, ParseIntError> {
    text.parse().map(NonZero::<usize>::get)
}

fn engine(name: &str) -> Result<durum::Engine, &'static str> {
    durum::Engine::from_name(name).ok_or("engines are shadow, hybrid and twin")
}

/// The flags, as LevelDB writes them.
pub(crate) fn definition() -> Command {
    let mut notes = String::from("Benchmarks:\n");
    for (name, meaning) in BENCHMARKS {
        let _ = writeln!(notes, "  {name:<24} {meaning}");
    }
    let _ = write!(notes, "\nWithout effect: --{}", IGNORED.join(", --"));
    let ignored = IGNORED.map(|name| Arg::new(name).long(name).hide(true));
    let command = Flags::command().args(ignored).after_help(notes);
    command.mut_args(|arg| match arg.get_id() == "help" {
        true => arg,
        false => arg.require_equals(true).allow_hyphen_values(true),
    })
}

impl Default for Flags {
    fn default() -> Self {
        Self::parse([]).expect("defaults are as they have to be")
    }
}

impl Flags {
    /// Reads flags.
    ///
    /// # Errors
    /// What to print: the help, or what is wrong.
    pub fn parse(arguments: impl IntoIterator<Item = String>) -> Result<Self, clap::Error> {
        let name = String::from("durum-kv-bench");
        let matches = definition().try_get_matches_from([name].into_iter().chain(arguments))?;
        Self::from_arg_matches(&matches)
    }
}
