//! `durum kv`: reads and writes the databases of `durum-kv`.

mod text;

use std::ffi::OsStr;
use std::fs::File;
use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use durum_kv::{Db, Durability, Engine, Iter, Options, Range, WriteBatch};
use serde_json::json;

use crate::args::kv::{Database, Del, Get, Kv, KvCommand, Load, Making, Put, Scan, Set, Stats};
use crate::failure::Failure;
use crate::output::{self, count, grouped, size};
use text::Form;

/// A batch is written when it has so many bytes, however few its entries.
const BATCH_BYTES_MAX: usize = 16 << 20;

pub(crate) fn run(options: &Kv, out: &mut dyn Write) -> Result<(), Failure> {
    match &options.command {
        KvCommand::Get(options) => get(options, out),
        KvCommand::Put(options) => put(options),
        KvCommand::Del(options) => del(options),
        KvCommand::Scan(options) => scan(options, out),
        KvCommand::Load(options) => load(options, out),
        KvCommand::Stats(options) => stats(options, out),
        KvCommand::Set(options) => set(options),
    }
}

/// Opens a database. Where there is none, the library's message names an option of programs, which the command does not
/// have; `cure` is said instead.
fn open(path: &Path, options: Options, cure: &str) -> Result<Db, Failure> {
    Db::open(path, options).map_err(|error| match error {
        durum_kv::Error::Missing { .. } => {
            Failure::Refused(format!("{}: there is no database; {cure}", path.display()))
        }
        other => other.into(),
    })
}

/// Opens a database that has to be there, to read it: with no right to more.
fn open_to_read(path: &Path) -> Result<Db, Failure> {
    open_known(path, Options::new().read_only(true))
}

/// Opens a database that has to be there.
fn open_known(path: &Path, options: Options) -> Result<Db, Failure> {
    let cure = format!(
        "name the directory of one, or make one: `durum kv put {} KEY VALUE --create`",
        path.display()
    );
    open(path, options, &cure)
}

impl Database {
    fn open_or_make(&self, making: &Making) -> Result<Db, Failure> {
        let mut options = Options::new().create_if_missing(making.create);
        if let Some(engine) = making.engine {
            options = options.engine(engine);
        }
        open(&self.path, options, "add --create to make one")
    }

    /// How bytes are printed.
    fn form(&self) -> Form {
        match self.hex {
            true => Form::Hex,
            false => Form::Escaped,
        }
    }

    /// The bytes of an argument, which the shell gave as they are unless they are hexadecimal.
    fn bytes(&self, argument: &OsStr) -> Result<Vec<u8>, Failure> {
        match self.hex {
            true => Form::Hex
                .read(argument.as_bytes())
                .map_err(|reason| Failure::Refused(format!("{}: {reason}", argument.display()))),
            false => Ok(argument.as_bytes().to_vec()),
        }
    }
}

fn get(options: &Get, out: &mut dyn Write) -> Result<(), Failure> {
    let form = options.database.form();
    let key = options.database.bytes(&options.key)?;
    let Some(value) = open_to_read(&options.database.path)?.get(&key)? else {
        return Err(Failure::Refused(format!(
            "{}: there is no key {}",
            options.database.path.display(),
            form.write(&key)
        )));
    };
    if options.raw {
        out.write_all(&value)?;
    } else if options.json {
        let entry = json!({ "key": form.write(&key), "value": form.write(&value) });
        output::json(out, &entry)?;
    } else {
        writeln!(out, "{}", form.write(&value))?;
    }
    Ok(())
}

fn put(options: &Put) -> Result<(), Failure> {
    let key = options.database.bytes(&options.key)?;
    let value = match &options.value {
        Some(value) => options.database.bytes(value)?,
        None => {
            let mut value = Vec::new();
            let read = std::io::stdin().lock().read_to_end(&mut value);
            read.map_err(|error| Failure::system("reading the standard input", error))?;
            value
        }
    };
    let db = options.database.open_or_make(&options.making)?;
    Ok(db.put(&key, &value)?)
}

fn del(options: &Del) -> Result<(), Failure> {
    let mut batch = WriteBatch::new();
    for key in &options.keys {
        batch.delete(&options.database.bytes(key)?);
    }
    Ok(open_known(&options.database.path, Options::new())?.write(&batch)?)
}

/// The first key that does not begin so; `None` if every larger key does.
fn after_prefix(prefix: &[u8]) -> Option<Vec<u8>> {
    let last = prefix.iter().rposition(|&byte| byte != 0xff)?;
    let mut after = prefix[..=last].to_vec();
    after[last] += 1;
    Some(after)
}

fn scan(options: &Scan, out: &mut dyn Write) -> Result<(), Failure> {
    let bytes = |argument: &Option<std::ffi::OsString>| {
        let bytes = argument.as_deref();
        bytes.map(|bytes| options.database.bytes(bytes)).transpose()
    };
    let (from, to) = match bytes(&options.prefix)? {
        Some(prefix) => {
            let to = after_prefix(&prefix);
            (Some(prefix), to)
        }
        None => (bytes(&options.from)?, bytes(&options.to)?),
    };
    let db = open_to_read(&options.database.path)?;
    let mut entries = db.iter();
    let mut is_there = match (&from, &to, options.reverse) {
        (Some(from), _, false) => entries.seek(from)?,
        (None, _, false) => entries.seek_to_first()?,
        (_, Some(to), true) => match entries.seek(to)? {
            true => entries.prev()?,
            false => entries.seek_to_last()?,
        },
        (_, None, true) => entries.seek_to_last()?,
    };
    let is_inside = |entries: &Iter| {
        let key = entries.key().unwrap_or_default();
        match options.reverse {
            true => from.as_ref().is_none_or(|from| key >= &from[..]),
            false => to.as_ref().is_none_or(|to| key < &to[..]),
        }
    };
    let mut left = options.limit.unwrap_or(u64::MAX);
    while is_there && left > 0 && is_inside(&entries) {
        left -= 1;
        print_entry(options, &entries, out)?;
        is_there = match options.reverse {
            true => entries.prev()?,
            false => entries.next()?,
        };
    }
    Ok(())
}

fn print_entry(options: &Scan, entries: &Iter, out: &mut dyn Write) -> Result<(), Failure> {
    let form = options.database.form();
    let key = form.write(entries.key().unwrap_or_default());
    let value = (!options.keys).then(|| form.write(entries.value().unwrap_or_default()));
    match (options.json, value) {
        (true, None) => writeln!(out, "{}", json!({ "key": key }))?,
        (true, Some(value)) => writeln!(out, "{}", json!({ "key": key, "value": value }))?,
        (false, None) => writeln!(out, "{key}")?,
        (false, Some(value)) => writeln!(out, "{key}\t{value}")?,
    }
    Ok(())
}

fn load(options: &Load, out: &mut dyn Write) -> Result<(), Failure> {
    let input: Box<dyn BufRead> = match &options.file {
        Some(path) => {
            let file = File::open(path).map_err(|error| Failure::file("opening", path, error))?;
            Box::new(BufReader::new(file))
        }
        None => Box::new(std::io::stdin().lock()),
    };
    let name = options
        .file
        .as_deref()
        .unwrap_or(Path::new("the standard input"));
    let db = options.database.open_or_make(&options.making)?;
    let form = options.database.form();
    let (mut batch, mut loaded, mut bytes) = (WriteBatch::new(), 0, 0);
    for (number, line) in input.split(b'\n').enumerate() {
        let line = line.map_err(|error| Failure::file("reading", name, error))?;
        let refused = |reason: &str| {
            Failure::Refused(format!(
                "{}, line {}: {reason}; {} before it were put",
                name.display(),
                number + 1,
                count(loaded, "entry")
            ))
        };
        let at = line.iter().position(|&byte| byte == b'\t');
        let at = at.ok_or_else(|| refused("there is no tab between key and value"))?;
        let key = form.read(&line[..at]).map_err(|reason| refused(&reason))?;
        let value = form
            .read(&line[at + 1..])
            .map_err(|reason| refused(&reason))?;
        batch.put(&key, &value);
        if batch.len() >= options.batch as usize || batch.size() >= BATCH_BYTES_MAX {
            db.write(&batch)?;
            loaded += batch.len() as u64;
            bytes += batch.size() as u64;
            batch.clear();
        }
    }
    db.write(&batch)?;
    loaded += batch.len() as u64;
    bytes += batch.size() as u64;
    match options.json {
        true => output::json(out, &json!({ "entries": loaded, "bytes": bytes }))?,
        false => writeln!(out, "put {} entries, {}", grouped(loaded), size(bytes))?,
    }
    Ok(())
}

fn stats(options: &Stats, out: &mut dyn Write) -> Result<(), Failure> {
    let db = open_to_read(&options.path)?;
    let mut entries = db.iter();
    let (mut number, mut key_bytes, mut value_bytes) = (0u64, 0u64, 0u64);
    let mut is_there = entries.seek_to_first()?;
    while is_there {
        number += 1;
        key_bytes += entries.key().map_or(0, <[u8]>::len) as u64;
        value_bytes += entries.value().map_or(0, <[u8]>::len) as u64;
        is_there = entries.next()?;
    }
    let property =
        |name: &str| -> Result<String, Failure> { Ok(db.property(name)?.unwrap_or_default()) };
    let number_of =
        |name: &str| -> Result<u64, Failure> { Ok(property(name)?.parse().unwrap_or_default()) };
    let all = Range {
        start: b"",
        limit: &[0xff; 64],
    };
    let record_bytes = db.approximate_sizes(&[all])?.first().copied().unwrap_or(0);
    let (engine, comparator) = (property("durum.engine")?, property("durum.comparator")?);
    let durability = property("durum.durability")?;
    let (leaves, pool) = (number_of("durum.leaves")?, number_of("durum.pool-bytes")?);
    let (free, memory) = (
        number_of("durum.free-bytes")?,
        number_of("leveldb.approximate-memory-usage")?,
    );
    if options.json {
        let facts = json!({
            "entries": number,
            "key_bytes": key_bytes,
            "value_bytes": value_bytes,
            "record_bytes": record_bytes,
            "leaves": leaves,
            "pool_bytes": pool,
            "free_bytes": free,
            "memory_bytes": memory,
            "engine": engine,
            "durability": durability,
            "comparator": comparator,
        });
        return Ok(output::json(out, &facts)?);
    }
    let facts = [
        ("entries", grouped(number)),
        ("keys", size(key_bytes)),
        ("values", size(value_bytes)),
        ("records", format!("about {}", size(record_bytes))),
        ("leaves", grouped(leaves)),
        (
            "pool",
            format!("{}, {} of them free", size(pool), size(free)),
        ),
        ("memory", size(memory)),
        ("engine", engine),
        ("durability", durability),
        ("comparator", comparator),
    ];
    Ok(output::facts(out, &facts)?)
}

fn set(options: &Set) -> Result<(), Failure> {
    let db = open_known(&options.path, Options::new())?;
    let engine = db.pool().engine();
    if options.setting == Durability::Buffered && engine != Engine::Shadow {
        return Err(Failure::Refused(format!(
            "{}: on the engine {} every write is durable when it returns; buffered ones are shadow's",
            options.path.display(),
            engine.name()
        )));
    }
    Ok(db.set_durability(options.setting)?)
}
