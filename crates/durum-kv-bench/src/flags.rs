//! What may be asked for. Flags that concern how LevelDB works are accepted and have no effect.

use std::fmt::Write;
use std::path::PathBuf;

/// The benchmarks that run if none are named: LevelDB's list. The last three time its parts, and are only told of.
pub const DEFAULT: &str = "fillseq,fillsync,fillrandom,overwrite,readrandom,readrandom,readseq,readreverse,compact,readrandom,readseq,readreverse,fill100K,\
    crc32c,snappycomp,snappyuncomp";

/// Flags, as the help and the manual page list them.
pub(crate) const FLAGS: [(&str, &str, &str); 15] = [
    ("benchmarks", "LIST", "names with commas between them"),
    ("num", "N", "entries [1000000]"),
    ("reads", "N", "reads; if negative, as many as entries [-1]"),
    ("threads", "N", "threads that do the same [1]"),
    ("value_size", "BYTES", "[100]"),
    (
        "key_prefix",
        "BYTES",
        "bytes before the number in a key [0]",
    ),
    (
        "compression_ratio",
        "R",
        "how far values could be compressed [0.5]",
    ),
    ("histogram", "0|1", "print how operations' times are spread"),
    (
        "comparisons",
        "0|1",
        "count comparisons of keys; the order is then the program's, which takes longer",
    ),
    (
        "use_existing_db",
        "0|1",
        "keep what is there; benchmarks that begin empty are left out",
    ),
    (
        "db",
        "DIR",
        "where the database lies [/dev/shm/durum-kv-bench]",
    ),
    (
        "engine",
        "NAME",
        "shadow, hybrid or twin: the engine of the database [shadow]",
    ),
    (
        "buffered",
        "0|1",
        "writes need not be durable when they return, but for fillsync",
    ),
    (
        "sync",
        "0|1",
        "ask for durability in each write; stores other than durum's need it [0]",
    ),
    ("help", "", "print this"),
];

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
pub(crate) const BENCHMARKS: [(&str, &str); 26] = [
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
    ("deleteseq", "removes N keys in their order"),
    ("deleterandom", "removes N keys, drawn"),
    ("deleteone", "as deleteseq, all in one batch"),
    ("readseq", "goes over entries in the order of keys"),
    ("readreverse", "goes over them the other way"),
    ("readrandom", "reads keys that are drawn"),
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

/// What `--help` prints.
pub(crate) fn help() -> String {
    let mut text = String::from("usage: durum-kv-bench [--FLAG=VALUE ...]\n\n");
    for (name, value, meaning) in FLAGS {
        let sign = if value.is_empty() { "" } else { "=" };
        let flag = format!("--{name}{sign}{value}");
        let _ = writeln!(text, "  {flag:<24} {meaning}");
    }
    text += "\nBenchmarks:\n";
    for (name, meaning) in BENCHMARKS {
        let _ = writeln!(text, "  {name:<24} {meaning}");
    }
    let _ = write!(text, "\nWithout effect: --{}", IGNORED.join(", --"));
    text
}

/// What was asked for.
#[derive(Clone, Debug)]
pub struct Flags {
    /// Names with commas between them.
    pub benchmarks: String,
    /// Entries.
    pub num: u64,
    /// Reads; `None`: as many as entries.
    pub reads: Option<u64>,
    /// Threads.
    pub threads: usize,
    /// Bytes of a value.
    pub value_size: usize,
    /// Bytes before the number in a key.
    pub key_prefix: usize,
    /// How far values could be compressed.
    pub compression_ratio: f64,
    /// Print how operations' times are spread.
    pub histogram: bool,
    /// Count comparisons of keys.
    pub comparisons: bool,
    /// Keep what is there.
    pub use_existing_db: bool,
    /// Where the database lies.
    pub db: PathBuf,
    /// The engine of the database.
    pub engine: durum::Engine,
    /// Writes need not be durable when they return.
    pub buffered: bool,
    /// Each write asks for durability.
    pub sync: bool,
    /// Writes of `fillsync`, where they are not a thousandth of the entries. No flag of LevelDB's, so none on the
    /// command line.
    pub sync_writes: Option<u64>,
    /// Writes of `fill100K`, likewise.
    pub large_writes: Option<u64>,
}

impl Default for Flags {
    fn default() -> Self {
        Self {
            benchmarks: DEFAULT.into(),
            num: 1_000_000,
            reads: None,
            threads: 1,
            value_size: 100,
            key_prefix: 0,
            compression_ratio: 0.5,
            histogram: false,
            comparisons: false,
            use_existing_db: false,
            db: "/dev/shm/durum-kv-bench".into(),
            engine: durum::Engine::Shadow,
            buffered: false,
            sync: false,
            sync_writes: None,
            large_writes: None,
        }
    }
}

impl Flags {
    /// Reads flags.
    ///
    /// # Errors
    /// What to print: the help, or what is wrong.
    pub fn parse(arguments: impl IntoIterator<Item = String>) -> Result<Self, String> {
        let mut flags = Self::default();
        for argument in arguments {
            let wrong = || format!("durum-kv-bench: invalid flag '{argument}'; see --help");
            let (name, value) = match argument.strip_prefix("--") {
                Some("help") => return Err(help()),
                Some(flag) => flag.split_once('=').ok_or_else(wrong)?,
                None => return Err(wrong()),
            };
            flags.set(name, value).ok_or_else(wrong)?;
        }
        Ok(flags)
    }

    fn set(&mut self, name: &str, value: &str) -> Option<()> {
        let flag = || match value {
            "0" | "false" => Some(false),
            "1" | "true" => Some(true),
            _ => None,
        };
        match name {
            "benchmarks" => self.benchmarks = value.into(),
            "num" => self.num = value.parse().ok().filter(|num| *num > 0)?,
            // LevelDB's own default is -1.
            "reads" => self.reads = value.parse::<i64>().ok()?.try_into().ok(),
            "threads" => self.threads = value.parse().ok().filter(|threads| *threads > 0)?,
            "value_size" => self.value_size = value.parse().ok()?,
            "key_prefix" => self.key_prefix = value.parse().ok()?,
            "compression_ratio" => self.compression_ratio = value.parse().ok()?,
            "histogram" => self.histogram = flag()?,
            "comparisons" => self.comparisons = flag()?,
            "use_existing_db" => self.use_existing_db = flag()?,
            "db" => self.db = value.into(),
            "engine" => self.engine = durum::Engine::from_name(value)?,
            "buffered" => self.buffered = flag()?,
            "sync" => self.sync = flag()?,
            _ if IGNORED.contains(&name) => {}
            _ => return None,
        }
        Some(())
    }
}
