//! What the processes do that rows start: this program, with a part to play. Each says a line and is told one.

use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::Duration;

use durum::{Announce, Engine, Pool, PoolOptions, Store, StoreOptions};
use durum_bench_core::error::{Error, Result};

use crate::said;

/// Bytes that a writer changes in the transaction in which it dies.
pub(crate) const CHANGED: usize = 1 << 20;
/// What they are before, and would be after it.
pub(crate) const BEFORE: u8 = 0x11;
const AFTER: u8 = 0x7a;
/// The bytes of a range that it announces.
pub(crate) const RANGE: usize = 4096;

/// The root of the pools here.
#[repr(C)]
pub(crate) struct Root {
    pub(crate) block: *mut u8,
    pub(crate) count: u64,
}
durum::describe!(Root as "daemon bench root" { block, count });

/// Adds one to the count of a pool, in a transaction.
pub(crate) fn count_one(pool: &Pool) -> Result<u64> {
    let root = pool.root::<Root>().map_err(said)?;
    pool.transaction(|tx| {
        // SAFETY: the root is live while the pool is open, and this thread alone uses it.
        unsafe {
            tx.add(&raw mut (*root).count)?;
            (*root).count += 1;
            Ok((*root).count)
        }
    })
    .map_err(|error: durum::Error| said(error))
}

/// Plays a part: `client`; `writer` or `crash`, the name of an engine, and the number of the pool if there are several.
pub(crate) fn play(part: &str, store: &Path) -> Result<()> {
    let mut words = part.split(' ');
    let mut word = || words.next().unwrap_or_default();
    let (part, engine, number) = (word(), word(), word());
    let engine = Engine::from_name(engine).unwrap_or(Engine::Shadow);
    match part {
        "client" => client(store),
        _ => writer(store, &pool_name(number), engine, part == "writer"),
    }
}

/// How a writer calls its pool.
pub(crate) fn pool_name(number: &str) -> String {
    format!("pool{number}")
}

fn say(what: &str) -> Result<()> {
    println!("{what}");
    std::io::stdout()
        .flush()
        .map_err(Error::file("standard output"))
}

/// The next line; `false` where nobody tells more.
fn hear() -> bool {
    let mut line = String::new();
    std::io::stdin().lock().read_line(&mut line).unwrap_or(0) > 0
}

/// Comes when it is told, opens a pool of its own, and commits once.
fn client(store: &Path) -> Result<()> {
    say("here")?;
    if !hear() {
        return Ok(());
    }
    let store = Store::open(store, StoreOptions::new()).map_err(said)?;
    let name = format!("pool {}", std::process::id());
    let pool = store.create_pool(&name, PoolOptions::new()).map_err(said)?;
    let count = count_one(&pool)?;
    say(&format!("{count}"))?;
    if !hear() {
        return Ok(());
    }
    say(&format!("{}", private_kib()))?;
    hear();
    drop(pool);
    store.close().map_err(said)
}

/// KiB of memory that are this process's, its share of what it shares with others included; pools and logs in memory
/// are files, which do not count.
fn private_kib() -> u64 {
    let text = std::fs::read_to_string("/proc/self/smaps_rollup").unwrap_or_default();
    let sum = |name: &str| {
        let line = text.lines().find_map(|line| line.strip_prefix(name));
        let number = line.and_then(|line| line.split_whitespace().next()?.parse::<u64>().ok());
        number.unwrap_or(0)
    };
    sum("Pss_Anon:") + sum("Pss_File:")
}

/// Is killed in a transaction, which has changed much or a word.
fn writer(store: &Path, name: &str, engine: Engine, is_large: bool) -> Result<()> {
    let store = Store::open(store, StoreOptions::new()).map_err(said)?;
    let options = PoolOptions::new().engine(engine);
    let pool = store.open_or_create_pool(name, options).map_err(said)?;
    let root = pool.root::<Root>().map_err(said)?;
    let room = if is_large { CHANGED } else { RANGE };
    let block = pool.transaction(|tx| {
        let block = tx.alloc_bytes(&pool, 0, room, 4096)?;
        // SAFETY: just allocated; and the root, which this thread alone uses.
        unsafe {
            block.write_bytes(BEFORE, room);
            tx.add_bytes(block, room, Announce::Clobber)?;
            tx.set(&raw mut (*root).block, block)?;
        }
        Ok::<_, durum::Error>(block)
    });
    let block = block.map_err(said)?;
    if engine == Engine::Shadow && is_large {
        // Its log holds what is committed, and not at home yet.
        for _ in 0..CHANGED / RANGE {
            change(&pool, block, RANGE, BEFORE, || Ok(()))?;
        }
    }
    let size = if is_large { CHANGED } else { 8 };
    change(&pool, block, size, AFTER, || {
        say("half").map_err(|_| durum::Error::Aborted)?;
        loop {
            std::thread::sleep(Duration::from_secs(1));
        }
    })
}

/// A transaction that changes so many bytes, range by range, and then does something else.
fn change(
    pool: &Pool,
    block: *mut u8,
    size: usize,
    byte: u8,
    then: impl FnOnce() -> durum::Result<()>,
) -> Result<()> {
    pool.transaction(|tx| {
        for at in (0..size).step_by(RANGE) {
            let count = RANGE.min(size - at);
            // SAFETY: within the block, which this thread alone uses.
            unsafe {
                let range = block.add(at);
                tx.add_bytes(range, count, Announce::default())?;
                range.write_bytes(byte, count);
            }
        }
        then()
    })
    .map_err(said)
}

/// A process that plays a part.
pub(crate) struct Actor {
    process: Child,
    told: Option<ChildStdin>,
    says: BufReader<ChildStdout>,
}

impl Actor {
    pub(crate) fn start(part: &str, store: &Path) -> Result<Actor> {
        let own = std::env::current_exe().map_err(said)?;
        let mut process = Command::new(own)
            .args(["--part", part, "--store"])
            .arg(store)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .map_err(said)?;
        let told = process.stdin.take();
        let says = process.stdout.take();
        let says = says.ok_or_else(|| said(std::io::Error::other("it has no output")))?;
        Ok(Actor {
            process,
            told,
            says: BufReader::new(says),
        })
    }

    pub(crate) fn hear(&mut self) -> Result<String> {
        let mut line = String::new();
        match self.says.read_line(&mut line).map_err(said)? {
            0 => Err(said(std::io::Error::other(
                "a process that plays a part has ended",
            ))),
            _ => Ok(line.trim_end().to_owned()),
        }
    }

    pub(crate) fn tell(&mut self) -> Result<()> {
        match &mut self.told {
            Some(told) => told.write_all(b"go\n").map_err(said),
            None => Ok(()),
        }
    }

    /// Kills it. It has not been waited for, so that its end is not in the time of who does.
    pub(crate) fn kill(&mut self) -> Result<()> {
        self.process.kill().map_err(said)
    }

    /// Waits until the process is gone.
    pub(crate) fn wait(&mut self) -> Result<()> {
        self.process.wait().map(drop).map_err(said)
    }

    /// Lets it end by itself.
    pub(crate) fn end(mut self) -> Result<()> {
        drop(self.told.take());
        let status = self.process.wait().map_err(said)?;
        match status.success() {
            true => Ok(()),
            false => Err(said(std::io::Error::other(format!(
                "a process ended with {status}"
            )))),
        }
    }
}

impl Drop for Actor {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}
