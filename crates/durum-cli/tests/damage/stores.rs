//! The stores that are damaged: three pools of known contents, closed in order or left by a killed program.

use std::collections::BTreeMap;
use std::os::unix::fs::{FileExt, FileTypeExt};
use std::path::{Path, PathBuf};

use durum::Domain;
use durum_service::{PuddleKind, ReadOnlyStore};

use crate::program::{Task, What};

/// Transactions change the first two together, where the engine can; the last program that wrote never opened the
/// third.
pub const POOLS: [&str; 3] = ["left", "right", APART];
pub const APART: &str = "apart";
/// Engines times domains times clean or dirty.
pub const WAYS: usize = 3 * 2 * 2;
const OLDER_STEPS: u64 = 8;
const APART_STEPS: u64 = 6;
const STEPS: u64 = 30;

#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Engine {
    Shadow,
    Hybrid,
    Twin,
}

/// A store that trials copy.
pub struct Base {
    pub engine: Engine,
    pub domain: Domain,
    pub is_dirty: bool,
    pub path: PathBuf,
    /// The store some transactions before, closed in order.
    pub older: PathBuf,
    /// Its files with their lengths.
    pub files: BTreeMap<PathBuf, u64>,
    /// Of each pool how many steps were acknowledged, and how many begun.
    acknowledged: BTreeMap<&'static str, (u64, u64)>,
    /// Which pool's objects a file holds.
    data: BTreeMap<PathBuf, String>,
}

/// What a damaged file was for.
#[derive(PartialEq, Debug)]
pub enum Role {
    /// Objects of this pool, or of two whose files were swapped.
    Data(Vec<String>),
    /// Logs, or what the store knows of itself.
    Other,
}

impl Role {
    pub fn is_data_of(&self, pool: &str) -> bool {
        matches!(self, Role::Data(pools) if pools.iter().any(|name| name == pool))
    }
}

impl Base {
    /// Makes the store of this number.
    pub fn make(scratch: &Path, way: usize) -> Base {
        let engine = [Engine::Shadow, Engine::Hybrid, Engine::Twin][way % 3];
        let domain = [Domain::Dram, Domain::File][way / 3 % 2];
        let is_dirty = way / 6 == 1;
        let (path, older) = (
            scratch.join(format!("base-{way}")),
            scratch.join(format!("older-{way}")),
        );
        let task = |pools: &str, steps, dies| Task {
            path: path.clone(),
            engine,
            domain,
            pools: pools.split(' ').map(str::to_owned).collect(),
            what: What::Work { steps, dies },
        };
        task("left right", OLDER_STEPS, false).run();
        copy(&path, &older);
        task(APART, APART_STEPS, false).run();
        let (done, begun) = task("left right", STEPS, is_dirty).run();
        let mut base = Base {
            engine,
            domain,
            is_dirty,
            files: BTreeMap::new(),
            acknowledged: BTreeMap::from([
                ("left", (done, begun)),
                ("right", (done, begun)),
                (APART, (APART_STEPS, APART_STEPS)),
            ]),
            data: BTreeMap::new(),
            path,
            older,
        };
        for file in snapshot(&base.path).into_keys() {
            let found = std::fs::metadata(base.path.join(&file)).unwrap();
            if found.is_file() {
                base.files.insert(file, found.len());
            }
        }
        let store = ReadOnlyStore::open(&base.path).unwrap();
        let names: BTreeMap<_, _> = store
            .pools()
            .into_iter()
            .map(|pool| (pool.uuid, pool.name))
            .collect();
        for puddle in store.puddles() {
            if puddle.kind != PuddleKind::Log && names.contains_key(&puddle.owner) {
                let file = PathBuf::from(format!("puddles/{}", puddle.uuid));
                assert!(base.files.contains_key(&file), "{file:?}");
                base.data.insert(file, names[&puddle.owner].clone());
            }
        }
        assert!(base.data.len() >= 3, "{:?}", base.data);
        base
    }

    pub fn role(&self, damage: &crate::Damage) -> Role {
        let pools: Vec<String> = damage
            .files()
            .filter_map(|file| self.data.get(file).cloned())
            .collect();
        match pools.len() == damage.files().count() {
            true => Role::Data(pools),
            false => Role::Other,
        }
    }

    /// The position of a byte that is not zero, the first at or behind the one drawn; 0 if there is none.
    pub fn used_byte(&self, file: &Path, draw: u64) -> u64 {
        let bytes = std::fs::read(self.path.join(file)).unwrap();
        let start = (draw % (bytes.len() as u64).max(1)) as usize;
        let mut places = (start..bytes.len()).chain(0..start);
        places.find(|at| bytes[*at] != 0).unwrap_or(0) as u64
    }

    /// Whether a pool holds what was acknowledged, but for the last of it where that may be missing; `Ok` with the
    /// reason if it is refused.
    pub fn is_acknowledged(
        &self,
        pool: &str,
        held: Held,
        may_miss_last: bool,
    ) -> Result<Option<String>, String> {
        let (done, begun) = self.acknowledged[pool];
        let fewest = done - u64::from(may_miss_last);
        match held {
            Held::Steps(steps) if (fewest..=begun).contains(&steps) => Ok(None),
            Held::Steps(steps) => Err(format!(
                "pool {pool} has {steps} transactions; {done} were acknowledged, {begun} begun"
            )),
            Held::Wrong(what) => Err(format!(
                "pool {pool} holds what no transactions made: {what}"
            )),
            Held::Refused(reason) => Ok(Some(reason)),
        }
    }
}

/// What an opener found in a pool.
#[derive(Clone)]
pub enum Held {
    /// What so many steps make.
    Steps(u64),
    /// What no steps make.
    Wrong(String),
    Refused(String),
}

/// What it found in each.
pub struct Found(BTreeMap<String, Held>);

impl Found {
    pub fn parse(output: &str) -> Found {
        let mut found = BTreeMap::new();
        for line in output.lines() {
            let Some(told) = line.strip_prefix("found ") else {
                continue;
            };
            let (pool, rest) = told.split_once(' ').unwrap();
            let (word, what) = rest.split_once(' ').unwrap();
            let held = match word {
                "holds" => Held::Steps(what.parse().unwrap()),
                "wrong" => Held::Wrong(what.to_owned()),
                _ => Held::Refused(what.to_owned()),
            };
            found.insert(pool.to_owned(), held);
        }
        Found(found)
    }

    pub fn of(&self, pool: &str) -> Held {
        self.0[pool].clone()
    }
}

// ---- files

/// What lies at each path: its kind, its length, a hash of its bytes.
pub type Snapshot = BTreeMap<PathBuf, (char, u64, u64)>;

/// Longer files are read this far.
const READ_MAX: u64 = 16 << 20;

pub fn snapshot(store: &Path) -> Snapshot {
    let mut all = BTreeMap::new();
    let mut todo = vec![PathBuf::new()];
    while let Some(directory) = todo.pop() {
        for entry in std::fs::read_dir(store.join(&directory)).unwrap() {
            let entry = entry.unwrap();
            let path = directory.join(entry.file_name());
            let found = entry.metadata().unwrap();
            let kind = found.file_type();
            let mark = match () {
                () if kind.is_dir() => ('d', 0, 0),
                () if kind.is_symlink() => ('l', 0, 0),
                () if kind.is_fifo() => ('p', 0, 0),
                () => ('f', found.len(), hash(&entry.path())),
            };
            if kind.is_dir() {
                todo.push(path.clone());
            }
            all.insert(path, mark);
        }
    }
    all
}

/// One number for the bytes: most of them are zeros, and there are many files.
fn hash(path: &Path) -> u64 {
    use std::io::Read;
    let mut bytes = Vec::new();
    let file = std::fs::File::open(path).unwrap();
    file.take(READ_MAX).read_to_end(&mut bytes).unwrap();
    let (words, rest) = bytes.as_chunks::<8>();
    let mixed = words.iter().fold(0u64, |sum, word| {
        (sum.rotate_left(5) ^ u64::from_le_bytes(*word)).wrapping_mul(0x9e37_79b9_7f4a_7c15)
    });
    rest.iter().fold(mixed, |sum, byte| {
        (sum ^ u64::from(*byte)).wrapping_mul(0x9e37_79b9_7f4a_7c15)
    })
}

/// The first path that is not the same in both.
pub fn difference(before: &Snapshot, after: &Snapshot) -> Option<String> {
    let paths = before.keys().chain(after.keys());
    let mut different = paths.filter(|path| before.get(*path) != after.get(*path));
    different.next().map(|path| {
        format!(
            "{}: {:?}, then {:?}",
            path.display(),
            before.get(path),
            after.get(path)
        )
    })
}

pub fn copy(from: &Path, to: &Path) {
    std::fs::create_dir(to).unwrap();
    for entry in std::fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let target = to.join(entry.file_name());
        match entry.file_type().unwrap().is_dir() {
            true => copy(&entry.path(), &target),
            false => copy_file(&entry.path(), &target),
        }
    }
}

/// Pages of zeros become holes: most of a store's files is that.
pub fn copy_file(from: &Path, to: &Path) {
    let bytes = std::fs::read(from).unwrap();
    let file = std::fs::File::create_new(to).unwrap();
    file.set_len(bytes.len() as u64).unwrap();
    for (page, chunk) in bytes.chunks(4096).enumerate() {
        if *chunk != [0; 4096][..chunk.len()] {
            file.write_all_at(chunk, page as u64 * 4096).unwrap();
        }
    }
}
