//! Whether the type that a program has for a pool's root is the one that it has, or what that may become.

use durum_format::types::{Descriptor, Meanings, differences};

use crate::error::{Error, Result};
use crate::opened::{PoolInner, StoreInner};

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
        let meanings = self.types.meanings().clone();
        let (was, is) = (meanings.of(found.0), wanted.0);
        if is_so_large && was == is {
            return Ok(());
        }
        let name = |(id, size): (u64, u64)| {
            let name = self.store.type_name(id);
            match size {
                0 => format!("{name} (id {id:#018x})"),
                size => format!("{name} ({size} bytes, id {id:#018x})"),
            }
        };
        let (pool, expected) = (self.name.clone(), name(wanted));
        let found_name = name((was, found.1));
        if meanings.is_old(is) {
            return Err(Error::OldRootType {
                pool,
                expected,
                found: found_name,
                changes: self.changes(is, was),
            });
        }
        let obstacle = match self.successor(&meanings, was, is) {
            Some(Ok(changed)) if is_so_large => {
                self.types.change(match self.is_read_only {
                    // Nobody writes it meanwhile.
                    true => changed,
                    // ORDER: what old ids mean is durable before anything is stored that they did not mean.
                    false => self.store.service.change_types(self.uuid, found.0, is)?,
                });
                return Ok(());
            }
            Some(Err(obstacle)) => Some(obstacle),
            _ => None,
        };
        Err(Error::RootType {
            pool,
            expected,
            found: found_name,
            changes: self.changes(was, is),
            obstacle,
        })
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
