//! durum: each engine is a side. Used as somebody would who knows it well.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use durum::{Engine, Pool, PoolOptions, Store, StoreOptions, TwinMode};

use crate::error::{Error, Result};
use crate::inputs::Value;
use crate::service::Durumd;
use crate::side::{self, LARGE_VALUE, PutsShape, Role, SMALL_VALUE, SharedShape, Side};
use crate::sides::arena::ARENA_SIZE;
use crate::structures::{InCopies, hash, list, map, redblack, sorted, tree};

mod array;
mod cells;
mod combined;
mod edits;
mod memory;
pub(super) mod pool;
mod puts;
mod swap;

use combined::Combined;
use memory::DurumMemory;
pub use pool::Style;
use pool::{TempDir, TempPool};

/// Bytes of each pool in memory before a row begins, so that no timing has its growth in it.
static ROOM: AtomicU64 = AtomicU64::new(ARENA_SIZE as u64);

/// For tests, which time nothing: pools begin with so many bytes, for all rows to come.
pub fn begin_with(bytes: u64) {
    ROOM.store(bytes, Ordering::Relaxed);
}

/// An engine of durum.
#[derive(Clone, Debug)]
pub struct Durum {
    name: &'static str,
    engine: Engine,
    style: Style,
    domain: &'static str,
    updates_home: bool,
    twin_mode: TwinMode,
    is_direct: bool,
    is_served: bool,
    is_observed: bool,
    flies: bool,
}

impl Durum {
    /// The Hybrid engine.
    pub fn hybrid() -> Durum {
        Durum {
            name: "hybrid",
            engine: Engine::Hybrid,
            style: Style::Deferred,
            domain: "dram",
            updates_home: true,
            twin_mode: TwinMode::Log,
            is_direct: false,
            is_served: false,
            is_observed: false,
            flies: false,
        }
    }

    /// No engine of a product: in place, with one fence and without atomicity.
    pub fn direct() -> Durum {
        Durum {
            name: "direct",
            style: Style::InPlace,
            is_direct: true,
            ..Self::hybrid()
        }
    }

    /// The Shadow engine.
    pub fn shadow() -> Durum {
        Durum {
            name: "shadow",
            engine: Engine::Shadow,
            style: Style::InPlace,
            ..Self::hybrid()
        }
    }

    /// The Shadow engine with commits in two halves: each transaction is in flight until the next one commits.
    pub fn shadow_in_flight() -> Durum {
        Durum {
            name: "shadow_fly",
            flies: true,
            ..Self::shadow()
        }
    }

    /// The Twin engine.
    pub fn twin() -> Durum {
        Durum {
            name: "twin",
            engine: Engine::Twin,
            ..Self::shadow()
        }
    }

    /// The Twin engine that copies all that is in use.
    pub fn twin_basic() -> Durum {
        Durum {
            name: "twin_basic",
            twin_mode: TwinMode::Basic,
            ..Self::twin()
        }
    }

    /// The Twin engine whose readers read beside a writer.
    pub fn twin_left_right() -> Durum {
        Durum {
            name: "twin_lr",
            twin_mode: TwinMode::LeftRight,
            ..Self::twin()
        }
    }

    /// The Shadow engine without its home updates: what it takes more with them, they take.
    pub fn shadow_no_home() -> Durum {
        Durum {
            name: "shadow_no_home",
            updates_home: false,
            ..Self::shadow()
        }
    }

    /// The same engine on a file system of a disk. The store finds out by itself; this is for the report.
    #[must_use]
    pub fn on_file(self) -> Durum {
        Durum {
            domain: "file",
            ..self
        }
    }

    /// The same engine in a store of a service.
    #[must_use]
    pub fn served(self) -> Durum {
        Durum {
            name: match self.engine {
                Engine::Hybrid => "hybrid_served",
                Engine::Twin => "twin_served",
                _ => "shadow_served",
            },
            is_served: true,
            ..self
        }
    }

    /// The same engine in a store that answers whoever watches the program; for tests.
    #[must_use]
    pub fn observed(self) -> Durum {
        Durum {
            is_observed: true,
            ..self
        }
    }

    /// The same engine, used in another style; for tests.
    #[must_use]
    pub fn with_style(self, name: &'static str, style: Style) -> Durum {
        Durum {
            name,
            style,
            ..self
        }
    }

    fn open(&self, dir: &Path) -> Result<Arc<TempPool>> {
        let path = dir.join(self.name);
        let dir = TempDir(path.clone());
        let service = match self.is_served {
            true => Some(Durumd::start(&path)?),
            false => None,
        };
        let made = self.pool_in(&path, service.as_ref());
        let (store, pool) = made.map_err(Error::side(self.name))?;
        Ok(Arc::new(TempPool {
            pool,
            flies: self.flies,
            _store: store,
            _service: service,
            _dir: dir,
        }))
    }

    fn pool_in(&self, path: &Path, service: Option<&Durumd>) -> durum::Result<(Store, Pool)> {
        let mut options = PoolOptions::new().engine(self.engine);
        if self.engine == Engine::Twin {
            options = options.twin_mode(self.twin_mode);
        }
        if self.is_direct {
            options = options.run_by("direct");
        }
        let store = match service {
            Some(service) => Store::open(service.address(), StoreOptions::new()),
            None => Store::create(path, StoreOptions::new().observe(self.is_observed)),
        }?;
        let pool = store.create_pool("bench", options)?;
        if self.domain == "dram" {
            pool.reserve(ROOM.load(Ordering::Relaxed))?;
        }
        if !self.updates_home {
            store.dangerous_skip_home_updates();
        }
        Ok((store, pool))
    }

    fn memory(&self, dir: &Path) -> Result<DurumMemory> {
        Ok(DurumMemory::new(self.name, self.open(dir)?, self.style))
    }

    /// A structure that several threads use.
    fn combined<S: InCopies + 'static>(
        &self,
        dir: &Path,
        new: impl FnOnce(DurumMemory) -> Result<S>,
    ) -> Result<Box<dyn side::Shared>> {
        let memory = self.memory(dir)?;
        let temp = memory.temp.clone();
        let reads_copy = self.twin_mode == TwinMode::LeftRight;
        let structure = new(memory)?;
        Ok(Box::new(Combined::new(
            self.name, temp, reads_copy, structure,
        )))
    }
}

impl Side for Durum {
    fn name(&self) -> &str {
        self.name
    }

    fn role(&self) -> Role {
        Role::Engine
    }

    fn domain(&self) -> &str {
        self.domain
    }

    fn cells(&self, dir: &Path, ring: &[u32], _objects_max: usize) -> Result<Box<dyn side::Cells>> {
        Ok(Box::new(cells::DurumCells::new(self.memory(dir)?, ring)?))
    }

    fn swap(&self, dir: &Path, count: usize) -> Result<Box<dyn side::Swap>> {
        Ok(Box::new(swap::DurumSwap::new(self.memory(dir)?, count)?))
    }

    fn swaps(&self, dir: &Path, count: usize, arrays: usize) -> Result<Box<dyn side::Swaps>> {
        let swaps = swap::DurumSwaps::new(self.memory(dir)?, count, arrays)?;
        Ok(Box::new(swaps))
    }

    fn array(&self, dir: &Path, count: usize) -> Result<Box<dyn side::Array>> {
        Ok(Box::new(array::DurumArray::new(self.memory(dir)?, count)?))
    }

    fn list(&self, dir: &Path) -> Result<Box<dyn side::List>> {
        Ok(Box::new(list::List::new(self.memory(dir)?)?))
    }

    fn tree(&self, dir: &Path) -> Result<Box<dyn side::Tree>> {
        Ok(Box::new(tree::Tree::new(self.memory(dir)?)?))
    }

    fn map(&self, dir: &Path, bucket_bits: u32) -> Result<Box<dyn side::Map>> {
        Ok(Box::new(map::Map::new(self.memory(dir)?, bucket_bits)?))
    }

    fn shared(&self, dir: &Path, shape: SharedShape) -> Result<Box<dyn side::Shared>> {
        match shape {
            SharedShape::Tree => self.combined(dir, tree::Tree::new),
            SharedShape::Map { bucket_bits } => {
                self.combined(dir, |memory| map::Map::<_, Value>::new(memory, bucket_bits))
            }
            SharedShape::Sorted => self.combined(dir, sorted::List::new),
            SharedShape::RedBlack => self.combined(dir, redblack::Tree::new),
            SharedShape::Fixed => self.combined(dir, map::Map::fixed),
            SharedShape::Hash => self.combined(dir, hash::Hash::new),
        }
    }

    fn puts(&self, dir: &Path, shape: &PutsShape) -> Result<Box<dyn side::Puts>> {
        let temp = self.open(dir)?;
        let memory = || DurumMemory::new(self.name, temp.clone(), self.style);
        match shape.value_len {
            SMALL_VALUE => Ok(Box::new(puts::Maps::<SMALL_VALUE>::new(shape, memory)?)),
            _ => Ok(Box::new(puts::Maps::<LARGE_VALUE>::new(shape, memory)?)),
        }
    }
}
