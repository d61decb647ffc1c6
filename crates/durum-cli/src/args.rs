//! What may be asked for on the command line.

mod demo;
pub mod explore;
mod inspect;
pub mod kv;
mod values;

use std::path::PathBuf;

use clap::{Args, ColorChoice, Parser, Subcommand};
use clap_complete::Shell;
use durum_runner::limits::Setting;

pub use self::demo::Demo;
pub use self::inspect::Inspect;
use self::values::{number, seconds};

/// Durable data structures: tools for stores, and a demonstration.
#[derive(Debug, Parser)]
#[command(
    name = "durum",
    version,
    after_help = "A STORE is a directory, or one that a service serves: durum: (that of this machine), durum+unix:SOCKET, and with \
        a pool durum:POOL, durum+unix:SOCKET:POOL.\n\n\
        To look, without writing: ls, stat, inspect, explore, check, dump, clients, top.\n\
        To change a store: init, load, import, migrate, gc, recover, rm, kv.\n\
        To take a pool elsewhere: clone, dump, export.\n\
        For a store that a service serves: chmod, chown, clients, kick, revoke, top.\n\n\
        --color auto: on a terminal, unless the environment has NO_COLOR, and elsewhere if it has CLICOLOR_FORCE.\n\nExit codes: 0 success, 2 refused input, 3 damaged data, 1 the system failed, 130 interrupted."
)]
pub struct Arguments {
    /// Colours
    #[arg(long, global = true, display_order = 1000, value_name = "WHEN", default_value_t = ColorChoice::Auto)]
    pub color: ColorChoice,
    #[command(subcommand)]
    pub command: Command,
}

#[derive(Debug, Subcommand)]
pub enum Command {
    /// Make an empty store
    #[command(after_help = "Example:\n  durum init /mnt/pmem/store")]
    Init(Init),
    /// List the pools of a store
    #[command(after_help = "Example:\n  durum ls /mnt/pmem/store")]
    Ls(Ls),
    /// Tell what a store is: domain, addresses, state, versions, space
    #[command(
        after_help = "Examples:\n  durum stat /mnt/pmem/store\n  durum stat --domain /mnt/pmem    what a store there would survive\n  \
        durum stat --watch /mnt/pmem/store\n  durum stat --prometheus durum: > /var/lib/prometheus/node-exporter/durum.prom\n\n\
        A program can be watched that opens its store with StoreOptions::observe (DURUM_STORE_OBSERVE in C), by its own user and by root."
    )]
    Stat(Stat),
    /// Show what a pool holds, its free space and logs, without the program that made them and without writing
    #[command(after_help = inspect::HELP)]
    Inspect(Inspect),
    /// Look around in a store with a browser
    #[command(
        after_help = "Examples:\n  durum explore /mnt/pmem/store\n  durum explore /mnt/pmem/store --html store.html\n  \
        durum explore durum:words --redact --html words.html\n\n\
        Serves a page at 127.0.0.1, at an address with a random word in it, which is printed: who is on this machine and knows it can read the store. \
        Ctrl-C ends it. With --html the page is one file, to be sent. Nothing is written to the store, and the page loads nothing from elsewhere."
    )]
    Explore(explore::Explore),
    /// Check a store: structures, leaks, orphan files
    #[command(
        after_help = "Examples:\n  durum check /mnt/pmem/store\n  durum check /mnt/pmem/store --repair\n\n\
        Nothing is written without --repair. Damage gives exit code 3; leaks and notes do not.\n\n\
        A service tells root and its own user of files that belong to nothing."
    )]
    Check(Check),
    /// Free cycles of counted pointers, and whatever else no root leads to
    #[command(
        after_help = "Examples:\n  durum gc /mnt/pmem/store --dry-run\n  durum gc /mnt/pmem/store --pool words\n\n\
        Prc and Parc free an object with the last pointer to it, and so never a cycle. This finds what no root leads to through the type descriptors in \
        the store, and frees it in one transaction: a crash leaves all of it or none. An object that weak pointers lead to loses its value, and they find none. \
        Refused where live objects may hold pointers that no descriptor shows, and in a damaged store."
    )]
    Gc(Gc),
    /// Undo or complete what a program that died has left, and decide about what cannot be recovered
    #[command(
        after_help = "Examples:\n  durum recover /mnt/pmem/store\n  durum recover /mnt/pmem/store --give-up words\n  \
        durum recover /mnt/pmem/store --retry words\n  durum recover /mnt/pmem/store --accept-quarantined words\n  \
        durum recover /mnt/pmem/store --complete-sections\n  durum recover /mnt/pmem/store --abandon-sections words\n\n\
        Any program that opens the store does the same first; nobody has to run this. A pool of which a file is missing, damaged or unreadable waits \
        alone: what recovery would write to it is kept, and written when the file is back. --give-up says what will be lost, and drops it after a yes."
    )]
    Recover(Recover),
    /// Copy a closed store to new addresses, so that one process can open both
    #[command(after_help = "Example:\n  durum clone /mnt/pmem/store /mnt/pmem/copy")]
    Clone(Clone),
    /// Write a pool to a directory, to be imported by another store, machine or user
    #[command(
        after_help = "Examples:\n  durum export /mnt/pmem/store words words.export\n  durum export durum:words words.tar --archive\n\n\
        The pool is written as it is in memory, with the descriptors of its types. Nobody may write it meanwhile."
    )]
    Export(Export),
    /// Write what a pool holds as lines of JSON
    #[command(
        after_help = "Examples:\n  durum dump /mnt/pmem/store words > words.jsonl\n  durum dump durum:words | zstd > words.jsonl.zst\n  \
        durum dump /mnt/pmem/store words --with index > both.jsonl\n\n\
        One line for each object, by the type descriptors in the store: docs/format/dump.md. `durum load` makes a pool of them, also of another engine, on \
        another machine, or years later. Nobody may write the pool meanwhile."
    )]
    Dump(Dump),
    /// Make a pool anew under other types, as a map of their fields says
    #[command(
        after_help = "Examples:\n  durum migrate /mnt/pmem/store words --map words.map --dry-run\n  \
        durum migrate /mnt/pmem/store words --map words.map\n  \
        durum migrate /mnt/pmem/store words --map words.map --with index\n\n\
        Every object becomes what the map says: fields by name, new ones with a default. Pointers of all kinds follow. The pool is the old one until all of it \
        is there, whatever happens. --dry-run tells how many objects there are of which types, and everything that stands in the way, and writes nothing. \
        Pools whose pointers lead into each other are made anew together (--with), all of them or none. Room is needed for the pools once more, and for less than an eighth of both. docs/how-to/change-types.md tells the map."
    )]
    Migrate(Migrate),
    /// Make a pool of lines that `durum dump` wrote
    #[command(
        after_help = "Examples:\n  durum load /mnt/pmem/store < words.jsonl\n  durum load /mnt/pmem/store copy --engine twin < words.jsonl\n  \
        zstdcat words.jsonl.zst | durum load durum:words\n\n\
        Every line is checked. The pool is there when it is whole, or not at all: its files are made beside the store (those for a service in the directory for \
        temporary files), under a hidden name, and then imported."
    )]
    Load(Load),
    /// Take an exported pool into a store
    #[command(
        after_help = "Examples:\n  durum import words.export /mnt/pmem/store\n  durum import words.export /mnt/pmem/store --name copy --copy\n  \
        durum import words.export durum:copy\n\n\
        On the same file system the files become the store's, and the export is gone, unless --copy."
    )]
    Import(Import),
    /// Remove a pool, or a whole store
    #[command(
        after_help = "Examples:\n  durum rm /mnt/pmem/store words\n  durum rm /mnt/pmem/store --yes"
    )]
    Rm(Rm),
    /// Change who may use a pool of a store that is served
    #[command(
        after_help = "Examples:\n  durum chmod 0640 durum:words\n  durum chmod g+rw,o= /mnt/pmem/store words\n\n\
        As for a file: r and w for owner, group and others. Programs that have the pool open keep it. Who opens the store's directory by its path is not asked."
    )]
    Chmod(Chmod),
    /// Change whose a pool of a store that is served is
    #[command(
        after_help = "Examples:\n  durum chown alice durum:words\n  durum chown :staff /mnt/pmem/store words\n\n\
        As for a file: an owner may choose one of its own groups; all else is for root and the service's user."
    )]
    Chown(Chown),
    /// List the programs that use a store that is served: what each holds and waits for
    #[command(
        after_help = "Examples:\n  durum clients\n  durum clients durum+unix:/tmp/sock --json\n\n\
        Root and the service's user see all, others those of their user."
    )]
    Clients(Clients),
    /// Make a program leave a store that is served
    #[command(
        after_help = "Examples:\n  durum kick 27e9f244\n  durum kick 27e9f244 --grace 30 durum+unix:/tmp/sock\n\n\
        The program is asked first. One that is still there when the time is over is killed, if you may kill it yourself; then its pools are recovered."
    )]
    Kick(Kick),
    /// Give a pool new files, so that descriptors of the old ones lead to nothing
    #[command(
        after_help = "Examples:\n  durum revoke durum:words\n  durum revoke /mnt/pmem/store words\n\n\
        After `durum chmod` or `durum chown` has taken a right away: a program that has closed the pool may have kept descriptors of its files. \
        Nobody may have the pool open."
    )]
    Revoke(Revoke),
    /// Read and write a key-value database of durum-kv
    #[command(
        after_help = "Examples:\n  durum kv put /mnt/pmem/names color red --create\n  durum kv scan /mnt/pmem/names\n\n\
        A database is a directory, the store that it lies in. Only one program has it open at a time; opening it recovers what a program that died has left."
    )]
    Kv(kv::Kv),
    /// Show what a service does: clients, requests, recoveries
    #[command(
        after_help = "Examples:\n  durum top localhost:9464\n  durum top /run/durum/metrics.sock --once --json\n\n\
        The address is that of `durumd --metrics`. Of times the bounds are known that they did not exceed, each twice the one below."
    )]
    Top(Top),
    /// Count words while being killed again and again, and compare with a plain count
    #[command(
        after_help = "Examples:\n  durum demo\n  durum demo --kills 20 --store /mnt/pmem/demo book.txt\n\n\
        Worker threads count the words of the text in a pool, over and over. This process kills theirs with SIGKILL at random \
        moments, recovers the store without any of their code, and starts them again. At the end every count is compared \
        with a count in plain memory; any difference is exit code 3."
    )]
    Demo(Demo),
    /// Print what a shell completes this command's arguments by
    #[command(
        after_help = "Examples:\n  durum completions bash > ~/.local/share/bash-completion/completions/durum\n  \
        durum completions zsh > ~/.zfunc/_durum        with ~/.zfunc in $fpath\n  \
        durum completions fish > ~/.config/fish/completions/durum.fish\n\n\
        `make install` puts them where shells look below its PREFIX. `durumd --completions SHELL` prints those of the service."
    )]
    Completions(Completions),
    /// Write the manual pages into a directory
    #[command(hide = true, name = "manual")]
    Manual(Manual),
}

#[derive(Debug, Args)]
pub struct Init {
    /// Where to make it; nothing may be there yet
    pub path: PathBuf,
    /// The first address of its puddles, a multiple of 2 MiB [default: 0x200000000000]
    #[arg(long, value_parser = number, value_name = "ADDRESS")]
    pub base: Option<u64>,
    /// Bytes of addresses for its puddles, a multiple of 2 MiB; a program reserves twice as much if it may [default:
    /// 0x10000000000]
    #[arg(long, value_parser = number, value_name = "BYTES")]
    pub space: Option<u64>,
    /// Refuse unless the place is in this domain: dax, dram or file
    #[arg(long, value_name = "DOMAIN")]
    pub domain: Option<String>,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

#[derive(Debug, Args)]
pub struct Ls {
    /// The store
    pub store: PathBuf,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

#[derive(Debug, Args)]
pub struct Stat {
    /// The store; with --domain any directory, too
    pub path: PathBuf,
    /// Print only the persistence domain of the path: dax, dram or file
    #[arg(long)]
    pub domain: bool,
    /// Print what the program that has the store open counts, again and again, until it closes the store
    #[arg(long, conflicts_with_all = ["domain", "prometheus"])]
    pub watch: bool,
    /// Print what it counts once, as text for Prometheus (OpenMetrics)
    #[arg(long, conflicts_with_all = ["domain", "json"])]
    pub prometheus: bool,
    /// With --watch: print it once, and end
    #[arg(long, requires = "watch")]
    pub once: bool,
    /// With --watch: seconds between two looks
    #[arg(long, default_value_t = 2.0, value_name = "SECONDS", value_parser = seconds)]
    pub interval: f64,
    /// Print JSON; with --watch one line for each look
    #[arg(long)]
    pub json: bool,
}

#[derive(Debug, Args)]
pub struct Check {
    /// The store
    pub store: PathBuf,
    /// Repair what is safe to repair: a lost registry, its copy, durum.store, orphan files
    #[arg(long)]
    pub repair: bool,
    /// Check the pools as they are at one moment in the program that has them open, which goes on
    #[arg(long, conflicts_with = "repair")]
    pub live: bool,
    /// Words of objects of unknown type are pointers where they are addresses of objects: leaks are judged then
    #[arg(long)]
    pub untyped_hold_pointers: bool,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

#[derive(Debug, Args)]
pub struct Gc {
    /// The store, which no program has open
    pub store: PathBuf,
    /// Only in this pool; what objects of other pools lead to stays
    #[arg(long, value_name = "NAME")]
    pub pool: Option<String>,
    /// Words of objects of unknown type are pointers where they are addresses of objects
    #[arg(long)]
    pub untyped_hold_pointers: bool,
    /// Only tell what would be freed, and write nothing
    #[arg(long)]
    pub dry_run: bool,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

#[derive(Debug, Args)]
pub struct Recover {
    /// The store
    pub store: PathBuf,
    /// Open this pool again as it is, although a log that concerns it was damaged
    #[arg(long, value_name = "POOL", group = "decision")]
    pub accept_quarantined: Option<String>,
    /// Drop what is kept for this pool, whose files are not coming back
    #[arg(long, value_name = "POOL", groups = ["decision", "asked"])]
    pub give_up: Option<String>,
    /// Try again to replay the quarantined logs of this pool, after the cause was cured
    #[arg(long, value_name = "POOL", group = "decision")]
    pub retry: Option<String>,
    /// Open this pool again as it is, half done, although sections were interrupted in it: nobody completes them then
    #[arg(long, value_name = "POOL", groups = ["decision", "asked"])]
    pub abandon_sections: Option<String>,
    /// Complete what programs were interrupted in, by the code that they have deposited (`durumcc -fdurable-code`): it
    /// runs in a sandbox
    #[arg(long, group = "decision")]
    pub complete_sections: bool,
    /// The same by code in a file
    #[arg(long, value_name = "CODE", group = "decision")]
    pub complete_with: Option<PathBuf>,
    /// What that code may take: processor=SECONDS (10 if nothing is said), time=SECONDS (60), memory=BYTES (256M),
    /// files=N (4096), threads=N (1024), space=BYTES for new files (1G). Repeatable
    #[arg(long = "code-limit", value_name = "NAME=N")]
    pub code_limits: Vec<Setting>,
    /// Do not ask before something is given up
    #[arg(long, short, requires = "asked")]
    pub yes: bool,
    /// Where the store is being moved to other addresses: objects of unknown type hold no pointers
    #[arg(long)]
    pub untyped_hold_no_pointers: bool,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

#[derive(Debug, Args)]
pub struct Clone {
    /// The store to copy; it is not changed
    pub source: PathBuf,
    /// Where the copy appears, complete, at the end
    pub target: PathBuf,
    /// The first address of the copy's puddles, a multiple of 2 MiB [default: that of the source]
    #[arg(long, value_parser = number, value_name = "ADDRESS")]
    pub base: Option<u64>,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

#[derive(Debug, Args)]
pub struct Export {
    /// The store, the pool in it, and the directory that is made; of a service durum:POOL and the directory
    #[arg(num_args = 2..=3, required = true, value_names = ["STORE", "POOL", "PLACE"])]
    pub paths: Vec<PathBuf>,
    /// Export the pools that its pointers lead to with it, and those that theirs lead to
    #[arg(long)]
    pub with_referenced: bool,
    /// Make one file, a tar archive, instead of a directory
    #[arg(long)]
    pub archive: bool,
    /// Compress it, as gzip does
    #[arg(long, requires = "archive")]
    pub compress: bool,
    /// Wait for so many seconds for a program of the service that writes the pool: it shows the pool as it is at one
    /// moment, and goes on
    #[arg(long, value_name = "SECONDS", default_value_t = 60)]
    pub wait: u64,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

#[derive(Debug, Args)]
pub struct Dump {
    /// The store
    pub store: PathBuf,
    /// The pool, unless it is named with a service: durum:POOL
    pub pool: Option<String>,
    /// A pool that is dumped with it, as their pointers lead into each other; may be given more than once
    #[arg(long, value_name = "POOL")]
    pub with: Vec<String>,
    /// Words of objects of unknown type are pointers where they are addresses of objects
    #[arg(long)]
    pub untyped_hold_pointers: bool,
}

#[derive(Debug, Args)]
pub struct Load {
    /// The store, or a service: durum:, or durum:POOL
    pub store: PathBuf,
    /// The pool's name [default: that which it was dumped with]
    pub pool: Option<String>,
    /// Its engine: hybrid, twin or shadow [default: that which it was dumped with]
    #[arg(long, value_name = "ENGINE")]
    pub engine: Option<String>,
    /// Objects of unknown type hold no pointers but those that the lines tell
    #[arg(long)]
    pub untyped_hold_no_pointers: bool,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

#[derive(Debug, Args)]
pub struct Migrate {
    /// The store
    pub store: PathBuf,
    /// The pool
    pub pool: Option<String>,
    /// The file that says what becomes of types
    #[arg(long, value_name = "FILE")]
    pub map: PathBuf,
    /// A pool that is made anew with it, as their pointers lead into each other; may be given more than once
    #[arg(long, value_name = "POOL")]
    pub with: Vec<String>,
    /// Tell what would be done, and what stands in the way; write nothing
    #[arg(long)]
    pub dry_run: bool,
    /// Objects of unknown type hold no pointers
    #[arg(long)]
    pub untyped_hold_no_pointers: bool,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

#[derive(Debug, Args)]
pub struct Import {
    /// The directory, or the archive, that `durum export` made
    pub place: PathBuf,
    /// The store, or a service: durum:, or durum:NAME
    pub store: PathBuf,
    /// The pool's name here [default: that which it was exported with]
    #[arg(long)]
    pub name: Option<String>,
    /// Have its puddles join this pool of the same engine; its root becomes an object, whose address is told
    #[arg(long, value_name = "POOL", conflicts_with = "name")]
    pub into: Option<String>,
    /// Leave the export as it is, and give the store copies of its files
    #[arg(long)]
    pub copy: bool,
    /// Compare all contents with their sums now, not when each puddle is first used
    #[arg(long)]
    pub verify: bool,
    /// Objects of unknown type hold no pointers
    #[arg(long)]
    pub untyped_hold_no_pointers: bool,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

#[derive(Debug, Args)]
pub struct Rm {
    /// The store
    pub store: PathBuf,
    /// The pool to remove; the whole store where none is named
    pub pool: Option<String>,
    /// Do not ask
    #[arg(long, short)]
    pub yes: bool,
}

#[derive(Debug, Args)]
pub struct Top {
    /// Where the service shows its metrics: HOST:PORT, or the path of a socket
    pub address: String,
    /// Show it once, and end
    #[arg(long)]
    pub once: bool,
    /// Seconds between two looks
    #[arg(long, default_value_t = 2.0, value_name = "SECONDS", value_parser = seconds)]
    pub interval: f64,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

#[derive(Debug, Args)]
pub struct Chmod {
    /// The mode: octal, or changes like g+r,o=
    pub mode: String,
    /// The store, or a pool of a service: durum:POOL
    pub store: PathBuf,
    /// The pool, unless it is named with a service
    pub pool: Option<String>,
}

#[derive(Debug, Args)]
pub struct Chown {
    /// The user, the group or both, by name or number
    #[arg(value_name = "[USER][:GROUP]")]
    pub owner: String,
    /// The store, or a pool of a service: durum:POOL
    pub store: PathBuf,
    /// The pool, unless it is named with a service
    pub pool: Option<String>,
}

#[derive(Debug, Args)]
pub struct Clients {
    /// The service
    #[arg(default_value = "durum:")]
    pub store: PathBuf,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

#[derive(Debug, Args)]
pub struct Kick {
    /// The client, or how its name begins
    pub client: String,
    /// The service
    #[arg(default_value = "durum:")]
    pub store: PathBuf,
    /// Seconds that it has to leave by itself, at most 60
    #[arg(long, value_name = "SECONDS", default_value_t = 2)]
    pub grace: u64,
}

#[derive(Debug, Args)]
pub struct Revoke {
    /// The store, or a pool of a service: durum:POOL
    pub store: PathBuf,
    /// The pool, unless it is named with a service
    pub pool: Option<String>,
}

#[derive(Debug, Args)]
pub struct Completions {
    /// The shell
    pub shell: Shell,
}

#[derive(Debug, Args)]
pub struct Manual {
    /// The directory
    pub directory: PathBuf,
}
