//! The lines of a dump.

use super::VERSION;
use super::plan::Plan;
use super::read::Reference;
use super::scan::{Refused, Scanner};
use super::write::{decimal, text};
use crate::EngineKind;
use crate::extent::{self, EXTENT_HEADER_SIZE};

/// The first line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Head {
    /// The pool's name.
    pub pool: String,
    /// The engine that ran its transactions.
    pub engine: EngineKind,
    /// Where the store's addresses begin, and how many there are: no address in it leads anywhere else.
    pub space: (u64, u64),
    /// How many objects it has, which come first.
    pub objects: u64,
    /// Whether the first of them is the root.
    pub has_root: bool,
    /// Pools that are dumped with it, in the order in which their objects follow.
    pub with: Vec<PoolWith>,
}

/// A pool that is dumped with another one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PoolWith {
    /// As in [`Head`].
    pub pool: String,
    /// As in [`Head`].
    pub engine: EngineKind,
    /// As in [`Head`].
    pub objects: u64,
    /// As in [`Head`].
    pub has_root: bool,
}

/// What a line says of an object beside its value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ObjectHead {
    /// Its number: one more than that of the object before.
    pub number: u64,
    /// The number of its type; 0 for bytes without one.
    pub ty: u64,
    /// Its bytes in the heap.
    pub size: u64,
    /// How it is aligned, where it has an extent of its own and that cannot be told by its size.
    pub align: Option<u64>,
}

/// A line of a dump.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Line {
    /// The first.
    Head(Head),
    /// The text of a type.
    Type {
        /// Its number: one more than that of the type before.
        number: u64,
        /// Its canonical text.
        text: String,
    },
    /// An object. Its value is not read yet: its type has to be found first.
    Object {
        /// What stands before the value.
        head: PartialHead,
        /// Where in the line the value begins.
        value: usize,
    },
    /// The last line: how many objects there were.
    End(u64),
}

/// What a line says of an object; what it leaves out its type tells.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PartialHead {
    /// As in [`ObjectHead`].
    pub number: u64,
    /// As in [`ObjectHead`].
    pub ty: u64,
    /// As in [`ObjectHead`].
    pub size: Option<u64>,
    /// As in [`ObjectHead`].
    pub align: Option<u64>,
}

impl Head {
    /// Appends the line.
    pub fn write(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(format!("{{\"durum-dump\":{VERSION},\"pool\":").as_bytes());
        text(&self.pool, out);
        let (base, size) = self.space;
        let rest = format!(
            ",\"engine\":\"{}\",\"space\":[\"{base:#x}\",\"{size:#x}\"],\"objects\":{},\"root\":{}",
            self.engine.name(),
            self.objects,
            self.has_root
        );
        out.extend_from_slice(rest.as_bytes());
        for (at, with) in self.with.iter().enumerate() {
            out.extend_from_slice(match at {
                0 => b",\"with\":[{\"pool\":",
                _ => b",{\"pool\":",
            });
            text(&with.pool, out);
            let rest = format!(
                ",\"engine\":\"{}\",\"objects\":{},\"root\":{}}}",
                with.engine.name(),
                with.objects,
                with.has_root
            );
            out.extend_from_slice(rest.as_bytes());
        }
        out.extend_from_slice(match self.with.len() {
            0 => b"}\n",
            _ => b"]}\n",
        });
    }

    /// How many objects follow, of all pools.
    pub fn all_objects(&self) -> u64 {
        let with = self.with.iter().map(|with| with.objects);
        with.fold(self.objects, u64::saturating_add)
    }
}

/// Appends the line of a type.
pub fn write_type(number: u64, of: &str, out: &mut Vec<u8>) {
    out.extend_from_slice(format!("{{\"type\":{number},\"text\":").as_bytes());
    text(of, out);
    out.extend_from_slice(b"}\n");
}

/// Appends the last line.
pub fn write_end(objects: u64, out: &mut Vec<u8>) {
    out.extend_from_slice(format!("{{\"end\":{objects}}}\n").as_bytes());
}

/// The bytes in the heap of an object of a type of so many bytes, if nothing else is said.
fn size_of(type_size: u64) -> u64 {
    extent::element_size(type_size).unwrap_or(type_size)
}

impl ObjectHead {
    /// Appends what stands before the value; `type_size` is that of its type without a tail.
    pub fn write(&self, type_size: u64, out: &mut Vec<u8>) {
        out.extend_from_slice(b"{\"object\":");
        decimal(self.number, out);
        out.extend_from_slice(b",\"type\":");
        decimal(self.ty, out);
        if self.size != size_of(type_size) {
            out.extend_from_slice(b",\"bytes\":");
            decimal(self.size, out);
        }
        if let Some(align) = self.align {
            out.extend_from_slice(b",\"align\":");
            decimal(align, out);
        }
        out.extend_from_slice(b",\"value\":");
    }
}

/// Whether an object has a place in a slab, if nothing is said of its alignment.
pub fn is_in_slab(size: u64) -> bool {
    extent::element_size(size) == Some(size)
}

/// How the data of an extent is aligned, if nothing else is said.
pub fn usual_align(type_align: u64) -> u64 {
    type_align.max(EXTENT_HEADER_SIZE)
}

impl PartialHead {
    /// With what the type tells, whose size without a tail is this.
    pub fn of_type(self, type_size: u64) -> ObjectHead {
        ObjectHead {
            number: self.number,
            ty: self.ty,
            size: self.size.unwrap_or(size_of(type_size)),
            align: self.align,
        }
    }
}

impl Line {
    /// Reads a line, given without its line end; of an object what stands before the value.
    ///
    /// # Errors
    /// [`Refused`].
    pub fn parse(line: &[u8]) -> Result<Line, Refused> {
        let mut scanner = Scanner::of(line);
        scanner.expect(b'{')?;
        let found = match () {
            () if scanner.accept_word("\"object\"") => {
                scanner.expect(b':')?;
                return object(&mut scanner);
            }
            () if scanner.accept_word("\"type\"") => {
                scanner.expect(b':')?;
                let number = scanner.whole()?;
                scanner.expect(b',')?;
                scanner.member("\"text\"")?;
                let text = scanner.string()?.into_owned();
                let text = String::from_utf8(text).unwrap_or_default();
                Line::Type { number, text }
            }
            () if scanner.accept_word("\"durum-dump\"") => head(&mut scanner)?,
            () => {
                scanner.member("\"end\"")?;
                Line::End(scanner.whole()?)
            }
        };
        scanner.expect(b'}')?;
        scanner.end()?;
        Ok(found)
    }
}

fn object(scanner: &mut Scanner<'_>) -> Result<Line, Refused> {
    let number = scanner.whole()?;
    scanner.expect(b',')?;
    scanner.member("\"type\"")?;
    let ty = scanner.whole()?;
    scanner.expect(b',')?;
    let mut optional = |name| -> Result<Option<u64>, Refused> {
        match scanner.accept_word(name) {
            true => {
                scanner.expect(b':')?;
                let number = scanner.whole()?;
                scanner.expect(b',')?;
                Ok(Some(number))
            }
            false => Ok(None),
        }
    };
    let head = PartialHead {
        number,
        ty,
        size: optional("\"bytes\"")?,
        align: optional("\"align\"")?,
    };
    scanner.member("\"value\"")?;
    Ok(Line::Object {
        head,
        value: scanner.at(),
    })
}

fn head(scanner: &mut Scanner<'_>) -> Result<Line, Refused> {
    scanner.expect(b':')?;
    let version: u64 = scanner.whole()?;
    if version != VERSION {
        let problem = format!("it is of version {version}, and this build reads {VERSION}");
        return Err(scanner.refuse(problem));
    }
    scanner.expect(b',')?;
    let (pool, engine) = named(scanner)?;
    scanner.member("\"space\"")?;
    scanner.expect(b'[')?;
    let base = scanner.hex()?;
    scanner.expect(b',')?;
    let size = scanner.hex()?;
    scanner.expect(b']')?;
    scanner.expect(b',')?;
    let (objects, has_root) = counted(scanner)?;
    let mut with = Vec::new();
    if scanner.accept(b',') {
        scanner.member("\"with\"")?;
        scanner.expect(b'[')?;
        loop {
            scanner.expect(b'{')?;
            let (pool, engine) = named(scanner)?;
            let (objects, has_root) = counted(scanner)?;
            scanner.expect(b'}')?;
            with.push(PoolWith {
                pool,
                engine,
                objects,
                has_root,
            });
            if !scanner.accept(b',') {
                break;
            }
        }
        scanner.expect(b']')?;
    }
    Ok(Line::Head(Head {
        pool,
        engine,
        space: (base, size),
        objects,
        has_root,
        with,
    }))
}

/// The name of a pool and its engine, up to the next member.
fn named(scanner: &mut Scanner<'_>) -> Result<(String, EngineKind), Refused> {
    scanner.member("\"pool\"")?;
    let pool = String::from_utf8(scanner.string()?.into_owned()).unwrap_or_default();
    scanner.expect(b',')?;
    scanner.member("\"engine\"")?;
    let engine = scanner.string()?;
    let engine = EngineKind::from_name(std::str::from_utf8(&engine).unwrap_or_default());
    let engine = engine.ok_or_else(|| scanner.refuse("there is no such engine"))?;
    scanner.expect(b',')?;
    Ok((pool, engine))
}

/// How many objects a pool has, and whether the first is its root.
fn counted(scanner: &mut Scanner<'_>) -> Result<(u64, bool), Refused> {
    scanner.member("\"objects\"")?;
    let objects = scanner.whole()?;
    scanner.expect(b',')?;
    scanner.member("\"root\"")?;
    let has_root = scanner.accept_word("true");
    if !has_root && !scanner.accept_word("false") {
        return Err(scanner.refuse("true or false is missing"));
    }
    Ok((objects, has_root))
}

/// Whether the value of an object without a type, which begins there in its line, says which words are pointers.
pub fn says_pointers(line: &[u8], value: usize) -> bool {
    let mut scanner = Scanner::from(line, value);
    scanner.accept(b'{') && scanner.accept_word("\"bytes\"")
}

/// Reads the value of an object from where it begins in its line, to the end of the line, into the object's bytes,
/// which are zero. `pointer` is told each pointer that is not null, and gives the word that is put there.
///
/// # Errors
/// [`Refused`]; a part of the bytes was written.
pub fn read_value(
    line: &[u8],
    value: usize,
    plan: &Plan,
    bytes: &mut [u8],
    pointer: &mut impl FnMut(usize, Reference) -> Result<u64, String>,
) -> Result<(), Refused> {
    let mut scanner = Scanner::from(line, value);
    plan.read(&mut scanner, bytes, pointer)?;
    scanner.expect(b'}')?;
    scanner.end()
}
