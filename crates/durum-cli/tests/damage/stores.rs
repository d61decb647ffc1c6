//! The stores that are damaged: three pools of known contents, closed in order or left by a killed program.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader};
use std::os::unix::fs::{FileExt, FileTypeExt};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use durum::{Domain, Error, Pool, PoolOptions, Store, StoreOptions};
use durum_service::{PuddleKind, ReadOnlyStore};

/// Transactions change the first two together, where the engine can; the last program that wrote never opened the
/// third.
pub const POOLS: [&str; 3] = ["left", "right", "apart"];
const SLOTS: usize = 12;
const CELLS: usize = 600;
/// Engines times domains times clean or dirty.
pub const WAYS: usize = 3 * 2 * 2;
const OLDER_STEPS: u64 = 8;
const APART_STEPS: u64 = 6;
const STEPS: u64 = 30;
const TASK: &str = "DURUM_DAMAGE_TASK";

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
        task("apart", APART_STEPS, false).run();
        let (done, begun) = task("left right", STEPS, is_dirty).run();
        let mut base = Base {
            engine,
            domain,
            is_dirty,
            files: BTreeMap::new(),
            acknowledged: BTreeMap::from([
                ("left", (done, begun)),
                ("right", (done, begun)),
                ("apart", (APART_STEPS, APART_STEPS)),
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

// ---- the program that works with them

#[repr(C)]
struct Block {
    step: u64,
    len: u64,
}

#[repr(C)]
struct Root {
    steps: u64,
    cells: [u64; CELLS],
    slots: [*mut u8; SLOTS],
}
durum::describe!(Root as "root" { steps, cells, slots });

/// What step number `step` does to a pool.
struct Step {
    cell: usize,
    slot: usize,
    /// Bytes behind the block's head; `None`: the slot becomes empty.
    len: Option<u64>,
}

impl Step {
    fn of(step: u64) -> Step {
        let mut draws = crate::Draws::new(step ^ 0x5eed);
        Step {
            cell: draws.below(CELLS as u64) as usize,
            slot: draws.below(SLOTS as u64) as usize,
            len: match draws.below(12) {
                0 | 1 => None,
                2 => Some(9_000),
                3 if step % 2 == 1 => Some(150_000),
                _ => Some(8 * draws.below(80)),
            },
        }
    }

    fn byte(step: u64, at: u64) -> u8 {
        (step.wrapping_mul(31) + at / 8) as u8 | 1
    }
}

struct Task {
    path: PathBuf,
    engine: Engine,
    domain: Domain,
    pools: Vec<String>,
    what: What,
}

enum What {
    /// So many steps; then the process is killed in the middle of further ones, or it closes the store.
    Work { steps: u64, dies: bool },
    /// Looks at what is there.
    Open,
}

impl Task {
    fn command(&self) -> Command {
        let what = match self.what {
            What::Work { steps, dies } => format!("{steps} {dies}"),
            What::Open => "open".into(),
        };
        let mut command = Command::new(std::env::current_exe().unwrap());
        let domain = match self.domain {
            Domain::Dram => "dram",
            _ => "file",
        };
        command
            .args([
                "works_with_a_store",
                "--exact",
                "--ignored",
                "--nocapture",
                "--test-threads=1",
            ])
            .env(
                TASK,
                format!(
                    "{:?}\n{domain}\n{}\n{what}\n{}",
                    self.engine,
                    self.pools.join(" "),
                    self.path.display()
                ),
            );
        command
    }

    fn parse(text: &str) -> Task {
        let mut lines = text.lines();
        let engine = match lines.next().unwrap() {
            "Shadow" => Engine::Shadow,
            "Hybrid" => Engine::Hybrid,
            _ => Engine::Twin,
        };
        let domain = match lines.next().unwrap() {
            "dram" => Domain::Dram,
            _ => Domain::File,
        };
        let pools = lines
            .next()
            .unwrap()
            .split(' ')
            .map(str::to_owned)
            .collect();
        let what = match lines.next().unwrap().split_once(' ') {
            Some((steps, dies)) => What::Work {
                steps: steps.parse().unwrap(),
                dies: dies == "true",
            },
            None => What::Open,
        };
        Task {
            path: PathBuf::from(lines.next().unwrap()),
            engine,
            domain,
            pools,
            what,
        }
    }

    /// How many steps are durable, and how many were begun.
    fn run(&self) -> (u64, u64) {
        let mut child = self.command().stdout(Stdio::piped()).spawn().unwrap();
        let What::Work { steps, dies } = self.what else {
            unreachable!("an opener is no work");
        };
        let (mut done, mut begun) = (0, 0);
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        for line in lines.by_ref() {
            // A kill may cut the last one.
            let line = line.unwrap_or_default();
            match line.trim().rsplit_once(' ') {
                Some((word, number)) if word.ends_with("begun") => begun = number.parse().unwrap(),
                Some((word, number)) if word.ends_with("done") => done = number.parse().unwrap(),
                _ => {}
            }
            if dies && done >= steps {
                // What is on its way counts, too.
                child.kill().unwrap();
            }
        }
        let status = child.wait().unwrap();
        assert!(dies || status.success(), "{status:?}");
        assert!(done >= steps, "{done}");
        (done, begun)
    }
}

/// A process that opens the store and looks what its pools hold.
pub fn opener(base: &Base, path: &Path) -> Command {
    Task {
        path: path.to_owned(),
        engine: base.engine,
        domain: base.domain,
        pools: POOLS.map(str::to_owned).to_vec(),
        what: What::Open,
    }
    .command()
}

/// The other process.
pub fn child() {
    let Ok(task) = std::env::var(TASK) else {
        return;
    };
    let task = Task::parse(&task);
    match task.what {
        What::Work { steps, dies } => work(&task, steps, dies),
        What::Open => look(&task),
    }
}

fn store_options(domain: Domain) -> StoreOptions {
    StoreOptions::new().domain(domain)
}

fn pool_options(engine: Engine) -> PoolOptions {
    PoolOptions::new().engine(match engine {
        Engine::Shadow => durum::Engine::Shadow,
        Engine::Hybrid => durum::Engine::Hybrid,
        Engine::Twin => durum::Engine::Twin,
    })
}

fn work(task: &Task, steps: u64, dies: bool) {
    let store = Store::open_or_create(&task.path, store_options(task.domain)).unwrap();
    let open = |name: &String| {
        store
            .open_or_create_pool(name, pool_options(task.engine))
            .unwrap()
    };
    let pools: Vec<Pool> = task.pools.iter().map(open).collect();
    let roots: Vec<*mut Root> = pools
        .iter()
        .map(|pool| pool.root::<Root>().unwrap())
        .collect();
    // SAFETY: a live object, and there is one thread.
    let mut step = unsafe { (*roots[0]).steps };
    let end = if dies { u64::MAX } else { step + steps };
    while step < end {
        println!("begun {}", step + 1);
        // Twins commit one by one: a step is done when the last of them has it.
        let together = match task.engine {
            Engine::Twin => 1,
            _ => pools.len(),
        };
        for (pools, roots) in pools.chunks(together).zip(roots.chunks(together)) {
            pools[0]
                .transaction(|tx| {
                    let mut all = pools.iter().zip(roots);
                    all.try_for_each(|(pool, root)| take_step(tx, pool, *root, step))
                })
                .unwrap();
        }
        step += 1;
        println!("done {step}");
    }
    drop(pools);
    store.close().unwrap();
}

fn take_step(tx: &durum::Tx, pool: &Pool, root: *mut Root, step: u64) -> Result<(), Error> {
    let now = Step::of(step);
    // SAFETY: live objects of the pool, announced before they change; there is one thread.
    unsafe {
        let (cell, slot) = (
            &raw mut (*root).cells[now.cell],
            &raw mut (*root).slots[now.slot],
        );
        tx.add(cell)?;
        *cell += step;
        tx.add(slot)?;
        if !(*slot).is_null() {
            tx.free(*slot)?;
        }
        *slot = match now.len {
            None => std::ptr::null_mut(),
            Some(len) => {
                let block = tx.alloc_bytes(pool, 0, size_of::<Block>() + len as usize, 8)?;
                block.cast::<Block>().write(Block { step, len });
                let bytes = block.add(size_of::<Block>());
                (0..len).for_each(|at| bytes.add(at as usize).write(Step::byte(step, at)));
                block
            }
        };
        tx.set(&raw mut (*root).steps, step + 1)
    }
}

fn look(task: &Task) {
    let store = match Store::open(&task.path, store_options(task.domain)) {
        Ok(store) => store,
        Err(error) => {
            for pool in &task.pools {
                println!("\nfound {pool} refused {}", one_line(&error));
            }
            return;
        }
    };
    for name in &task.pools {
        match store
            .open_pool(name, pool_options(task.engine))
            .and_then(|pool| Ok((pool.root::<Root>()?, pool)))
        {
            Ok((root, pool)) => match holds(&pool, root) {
                Ok(steps) => println!("\nfound {name} holds {steps}"),
                // Whether that may be is known to who damaged it.
                Err(wrong) => println!("\nfound {name} wrong {wrong}"),
            },
            Err(error) => println!("\nfound {name} refused {}", one_line(&error)),
        }
    }
    // A store whose damage shows at the end says so.
    if let Err(error) = store.close() {
        println!("\nclosed {}", one_line(&error));
    }
}

fn one_line(error: &Error) -> String {
    error.to_string().replace('\n', " ")
}

/// The number of steps that made what is there; or what no steps make.
fn holds(pool: &Pool, root: *mut Root) -> Result<u64, String> {
    // SAFETY: the pool says that it is its root.
    let root = unsafe { &*root };
    // No store here has made more.
    if root.steps > 1_000_000 {
        return Err(format!("{} steps", root.steps));
    }
    let mut cells = vec![0u64; CELLS];
    let mut slots = vec![None; SLOTS];
    for step in 0..root.steps {
        let now = Step::of(step);
        cells[now.cell] += step;
        slots[now.slot] = now.len.map(|len| (step, len));
    }
    if cells != root.cells {
        return Err("cells".into());
    }
    for (index, (wanted, found)) in slots.iter().zip(&root.slots).enumerate() {
        let is_right = match wanted {
            None => found.is_null(),
            Some((step, len)) => is_block(pool, *found, *step, *len),
        };
        if !is_right {
            return Err(format!("slot {index}"));
        }
    }
    Ok(root.steps)
}

fn is_block(pool: &Pool, found: *const u8, step: u64, len: u64) -> bool {
    let size = size_of::<Block>() + len as usize;
    if !found.cast::<Block>().is_aligned() || !pool.holds(found, size) {
        return false;
    }
    // SAFETY: within the pool, and aligned.
    let head = unsafe { &*found.cast::<Block>() };
    // SAFETY: as above.
    let bytes = unsafe { std::slice::from_raw_parts(found.add(size_of::<Block>()), len as usize) };
    head.step == step
        && head.len == len
        && (0..)
            .zip(bytes)
            .all(|(at, byte)| *byte == Step::byte(step, at))
}
