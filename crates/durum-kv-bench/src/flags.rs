//! What may be asked for. Flags that concern how LevelDB works are accepted and have no effect.

use std::path::PathBuf;

/// The benchmarks that run if none are named.
pub const DEFAULT: &str = "fillseq,fillsync,fillrandom,overwrite,readrandom,readrandom,readseq,readreverse,compact,readrandom,readseq,readreverse,fill100K";

const HELP: &str = "usage: durum-kv-bench [--FLAG=VALUE ...]

  --benchmarks=LIST       names with commas between them: fillseq, fillrandom, overwrite, fillbatch, fillsync, fill100K,
                          readseq, readreverse, readrandom, readmissing, readhot, seekrandom, seekordered, deleteseq,
                          deleterandom, readwhilewriting, open, compact, stats, sstables
  --num=N                 entries [1000000]
  --reads=N               reads, where they are not as many as there are entries
  --threads=N             threads that do the same [1]
  --value_size=BYTES      [100]
  --key_prefix=BYTES      bytes before the number in a key [0]
  --compression_ratio=R   how far values could be compressed [0.5]
  --histogram=0|1         print times of operations by size
  --use_existing_db=0|1   keep what is there
  --db=DIR                where the database lies [/dev/shm/durum-kv-bench]

  --engine=shadow|hybrid|twin  the engine of the database [shadow]
  --buffered=0|1          writes need not be durable when they return, but for fillsync
  --sync=0|1              ask for durability in each write; stores other than durum's need it [0]

  Without effect: --reuse_logs, --write_buffer_size, --max_file_size, --block_size, --cache_size, --bloom_bits, --open_files,
  --comparisons, --compression";

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
    /// Print times of operations by size.
    pub histogram: bool,
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
            use_existing_db: false,
            db: "/dev/shm/durum-kv-bench".into(),
            engine: durum::Engine::Shadow,
            buffered: false,
            sync: false,
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
                Some("help") => return Err(HELP.into()),
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
            "reads" => self.reads = Some(value.parse().ok()?),
            "threads" => self.threads = value.parse().ok().filter(|threads| *threads > 0)?,
            "value_size" => self.value_size = value.parse().ok()?,
            "key_prefix" => self.key_prefix = value.parse().ok()?,
            "compression_ratio" => self.compression_ratio = value.parse().ok()?,
            "histogram" => self.histogram = flag()?,
            "use_existing_db" => self.use_existing_db = flag()?,
            "db" => self.db = value.into(),
            "engine" => self.engine = durum::Engine::from_name(value)?,
            "buffered" => self.buffered = flag()?,
            "sync" => self.sync = flag()?,
            "reuse_logs" | "write_buffer_size" | "max_file_size" | "block_size" | "cache_size"
            | "bloom_bits" | "open_files" | "comparisons" | "compression" => {}
            _ => return None,
        }
        Some(())
    }
}
