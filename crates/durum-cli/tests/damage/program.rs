//! The program that works with the stores, in a process of its own, and the one that looks what their pools hold.

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use durum::{Domain, Error, Pool, PoolOptions, Store, StoreOptions};

use crate::stores::{Base, Engine, POOLS};

const SLOTS: usize = 12;
const CELLS: usize = 600;
const TASK: &str = "DURUM_DAMAGE_TASK";

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

pub struct Task {
    pub path: PathBuf,
    pub engine: Engine,
    pub domain: Domain,
    pub pools: Vec<String>,
    pub what: What,
}

pub enum What {
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
    pub fn run(&self) -> (u64, u64) {
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
