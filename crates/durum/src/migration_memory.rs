//! A pool as it was, for functions that make a new one of it; and the new one, for those that build its maps.

use std::path::Path;

use durum_service::{Error as StoreError, OldPuddle};
use rustix::mm::{Advice, MapFlags, ProtFlags};

use crate::error::{Error, Result};
use crate::mapping::PRIVATE;
use crate::space::Space;

/// Puddles where they are, in memory that is private: what a reader notes in a cell goes nowhere.
pub(crate) struct MigrationMemory {
    space: &'static Space,
    /// Address and size of each.
    mapped: Vec<(usize, usize)>,
}

impl MigrationMemory {
    /// Nothing yet, of the store at this path.
    ///
    /// # Errors
    /// `AddressSpace` of the store.
    pub(crate) fn of(base: u64, space_size: u64, store: &Path) -> Result<Self> {
        Ok(Self {
            space: Space::reserve(base, space_size, store)?,
            mapped: Vec::new(),
        })
    }

    /// Maps them; nothing, where they are already.
    ///
    /// # Errors
    /// `AddressConflict` where this process has another store; as the system says.
    pub(crate) fn map(&mut self, puddles: &[OldPuddle<'_>]) -> Result<()> {
        if !self.mapped.is_empty() {
            return Ok(());
        }
        for puddle in puddles {
            let (address, size) = (puddle.header.address as usize, puddle.header.size as usize);
            let path = puddle.file.path();
            if !self.space.contains(address, size) || !self.space.claim(address, size) {
                return Err(Error::Store(StoreError::AddressConflict {
                    path: path.to_owned(),
                    other: None,
                    address: address as u64,
                    size: size as u64,
                }));
            }
            self.mapped.push((address, size));
            self.space.need(address, size, path)?;
            // SAFETY: these addresses were claimed, so nothing of the process is there.
            let mapped = unsafe {
                rustix::mm::mmap(
                    address as *mut _,
                    size,
                    ProtFlags::READ | ProtFlags::WRITE,
                    PRIVATE | MapFlags::FIXED,
                    puddle.file.as_fd(),
                    0,
                )
            };
            mapped.map_err(|errno| Error::system("mapping a puddle where it was", errno))?;
        }
        Ok(())
    }

    /// What readers have noted in cells is gone, and what was written to the files since is there to be seen.
    ///
    /// # Errors
    /// As the system says.
    pub(crate) fn forget(&self) -> Result<()> {
        for (address, size) in &self.mapped {
            // SAFETY: a private mapping of a file of which nobody has a reference: it is as the file is then.
            let forgotten =
                unsafe { rustix::mm::madvise(*address as *mut _, *size, Advice::LinuxDontNeed) };
            forgotten.map_err(|errno| Error::system("looking at a puddle again", errno))?;
        }
        Ok(())
    }
}

impl Drop for MigrationMemory {
    fn drop(&mut self) {
        let mut changing = self.space.changing();
        for (address, size) in &self.mapped {
            // Functions have given no reference there away.
            self.space.give_back(*address, *size);
            self.space.give_claim_back(&mut changing, *address, *size);
        }
    }
}
