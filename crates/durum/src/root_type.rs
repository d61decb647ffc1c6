//! Whether the type that a program has for a pool's root is the one that it has, or what that may become.

use durum_format::types::{Descriptor, Meanings, differences};

use crate::error::{Error, Result};
use crate::opened::{Mismatch, PoolInner, StoreInner};

/// A successor of the root's type becomes its type; of others it is said how they differ.
pub(crate) fn compare(pool: &PoolInner, mismatch: &Mismatch) -> Result<()> {
    let meanings = pool.types.meanings().clone();
    let (was, is) = (mismatch.was, mismatch.wanted.0);
    if meanings.is_old(is) {
        let (expected, found) = mismatch.names(pool);
        return Err(Error::OldRootType {
            pool: pool.name.clone(),
            expected,
            found,
            changes: pool.changes(is, was),
        });
    }
    let obstacle = match pool.successor(&meanings, was, is) {
        Some(Ok(changed)) if mismatch.is_so_large => {
            pool.types.change(match pool.is_read_only {
                // Nobody writes it meanwhile.
                true => changed,
                // ORDER: what old ids mean is durable before anything is stored that they did not mean.
                false => {
                    let service = &pool.store.service;
                    service.change_types(pool.uuid, mismatch.found.0, is)?
                }
            });
            return Ok(());
        }
        Some(Err(obstacle)) => Some(obstacle),
        _ => None,
    };
    Err(mismatch.refused(pool, pool.changes(was, is), obstacle))
}

/// For code that only completes sections: it has the types with which its program has opened the pool, and so nothing
/// that compares others.
pub(crate) fn refuse(pool: &PoolInner, mismatch: &Mismatch) -> Result<()> {
    Err(mismatch.refused(pool, Vec::new(), None))
}

impl Mismatch {
    /// Of the type that was wanted, and of the one that is there.
    fn names(&self, pool: &PoolInner) -> (String, String) {
        let name = |(id, size): (u64, u64)| {
            let name = pool.store.type_name(id);
            match size {
                0 => format!("{name} (id {id:#018x})"),
                size => format!("{name} ({size} bytes, id {id:#018x})"),
            }
        };
        (name(self.wanted), name((self.was, self.found.1)))
    }

    fn refused(&self, pool: &PoolInner, changes: Vec<String>, obstacle: Option<String>) -> Error {
        let (expected, found) = self.names(pool);
        Error::RootType {
            pool: pool.name.clone(),
            expected,
            found,
            changes,
            obstacle,
        }
    }
}

impl PoolInner {
    /// What the id of an object means in this pool.
    pub(crate) fn meaning(&self, id: u64) -> u64 {
        self.types.meanings().of(id)
    }

    /// The root, whose id and size are `found`, is to be what `wanted` says. A successor of its type becomes its type,
    /// durably, before the program can store anything in it.
    ///
    /// # Errors
    /// `RootType`, `OldRootType`; those of the service.
    pub(crate) fn fit_root(
        &self,
        found: (u64, u64),
        wanted: (u64, u64),
        is_so_large: bool,
    ) -> Result<()> {
        let was = self.meaning(found.0);
        if is_so_large && was == wanted.0 {
            return Ok(());
        }
        (self.on_mismatch)(
            self,
            &Mismatch {
                found,
                was,
                wanted,
                is_so_large,
            },
        )
    }

    /// What ids mean where `is` follows on `was`, or why it does not; nothing where one of them is not known.
    fn successor(
        &self,
        meanings: &Meanings,
        was: u64,
        is: u64,
    ) -> Option<std::result::Result<Meanings, String>> {
        let changed = meanings.after(&self.descriptor(was)?, &self.descriptor(is)?);
        Some(changed.map_err(|obstacle| obstacle.to_string()))
    }

    /// The type with this id, if it is known.
    fn descriptor(&self, id: u64) -> Option<Descriptor> {
        let noted = || Descriptor::parse(&self.types.noted(id)?).ok();
        self.store.descriptor(id).or_else(noted)
    }

    /// How the program's type differs from that of the pool; nothing where one of them is not known.
    fn changes(&self, was: u64, is: u64) -> Vec<String> {
        let both = self.descriptor(was).zip(self.descriptor(is));
        both.map_or_else(Vec::new, |(was, is)| told(&was, &is))
    }
}

impl StoreInner {
    fn descriptor(&self, id: u64) -> Option<Descriptor> {
        let text = self.service.type_text(id).ok().flatten()?;
        Descriptor::parse(&text).ok()
    }

    /// How a type differs from another one that was there before; nothing where one of them is not known.
    pub(crate) fn type_changes(&self, was: u64, is: u64) -> Vec<String> {
        let both = self.descriptor(was).zip(self.descriptor(is));
        both.map_or_else(Vec::new, |(was, is)| told(&was, &is))
    }
}

fn told(was: &Descriptor, is: &Descriptor) -> Vec<String> {
    let found = differences(was, is);
    let all = found.all.iter().map(ToString::to_string);
    all.chain(found.rest()).collect()
}

#[cfg(test)]
mod tests {
    use crate::engine::{ALL, Engines};
    use crate::error::{Error, Result};
    use crate::opened::{Pool, Store};
    use crate::options::{PoolOptions, StoreOptions};
    use crate::store::enter;

    #[repr(C)]
    struct Task {
        tries: u64,
    }
    crate::describe!(Task as "task" { tries });

    #[repr(C)]
    struct Job {
        attempts: u64,
    }
    crate::describe!(Job as "job" was "task" { attempts was "tries" });

    fn opened(store: &Store, engines: Engines) -> Result<Pool> {
        let grant = store.inner.service.open_pool("tasks")?;
        enter(&store.inner, grant, &PoolOptions::new(), engines).map(|inner| Pool {
            inner,
            _tie: Some(store.tie.clone()),
        })
    }

    #[test]
    fn who_compares_no_types_refuses_a_successor_and_leaves_the_pool_as_it_is() {
        let directory = tempfile::tempdir().unwrap();
        let store = Store::create(directory.path().join("store"), StoreOptions::new()).unwrap();
        let pool = store.create_pool("tasks", PoolOptions::new()).unwrap();
        pool.root::<Task>().unwrap();
        drop(pool);

        let on_mismatch = super::refuse;
        let pool = opened(&store, Engines { on_mismatch, ..ALL }).unwrap();
        match pool.root::<Job>() {
            Err(Error::RootType {
                changes, obstacle, ..
            }) => assert_eq!((changes, obstacle), (Vec::new(), None)),
            other => panic!("{other:?}"),
        }
        pool.root::<Task>().unwrap();
        drop(pool);

        // Who compares them takes it.
        opened(&store, ALL).unwrap().root::<Job>().unwrap();
    }
}
