//! A puddle: its mapping, and who may take which bytes of it.

use std::ops::Deref;
use std::path::Path;
use std::ptr::NonNull;
use std::sync::{Arc, OnceLock};

use durum_persist::domain::Domain;
use durum_service::PuddleGrant;

use super::heap::PuddleHeap;
use crate::demand;
use crate::error::Result;
use crate::mapping::{Mapping, Owner};
use crate::space::{Space, entry_at, entry_near_at};

/// One mapped puddle: all that are entered in a space are of this type. It begins with its mapping, so that those who
/// know no more than that find it at the same address.
#[repr(C)]
#[derive(Debug)]
pub(crate) struct Puddle {
    mapping: Mapping,
    /// Made when somebody allocates in it for the first time.
    pub(crate) heap: OnceLock<PuddleHeap>,
}

impl Puddle {
    /// Maps a puddle at its address.
    pub(crate) fn map(
        grant: PuddleGrant,
        owner: Owner,
        domain: Domain,
        space: &'static Space,
        store: &Path,
    ) -> Result<Arc<Self>> {
        let place = |mapping| {
            Arc::new(Self {
                mapping,
                heap: OnceLock::new(),
            })
        };
        // SAFETY: the mapping is the first field, in the order of C.
        unsafe { Mapping::map(grant, owner, domain, space, store, place) }
    }
}

impl Deref for Puddle {
    type Target = Mapping;

    #[inline(always)]
    fn deref(&self) -> &Mapping {
        &self.mapping
    }
}

/// The mapped puddle that contains an address.
///
/// The pointer stays valid while the store that the puddle belongs to is open: puddles given back are kept until then.
#[inline(always)]
pub(crate) fn puddle_at(address: usize) -> Option<NonNull<Puddle>> {
    entry_at(address).map(NonNull::cast)
}

/// The same, mapped now if it was not yet.
///
/// # Errors
/// Those of its file, and of mapping it.
#[inline(always)]
pub(crate) fn puddle_needed_at(address: usize) -> Result<Option<NonNull<Puddle>>> {
    match puddle_at(address) {
        None if demand::any_may_wait() => Ok(demand::map_at(address)?
            .then(|| puddle_at(address))
            .flatten()),
        found => Ok(found),
    }
}

/// The same, for an address that may lie in a pool which is not open: that one is opened, where its store follows
/// pointers.
///
/// # Errors
/// Those of opening the pool, of its file, and of mapping it.
#[inline(always)]
pub(crate) fn puddle_followed_at(address: usize) -> Result<Option<NonNull<Puddle>>> {
    match puddle_at(address) {
        None => puddle_followed_slowly(address),
        found => Ok(found),
    }
}

#[cold]
#[inline(never)]
fn puddle_followed_slowly(address: usize) -> Result<Option<NonNull<Puddle>>> {
    loop {
        match puddle_needed_at(address)? {
            // Again, lest it was closed meanwhile.
            None if demand::follow_at(address)? => {}
            found => return Ok(found),
        }
    }
}

/// The same, without a call: only if it lies in the first space, where it mostly does.
#[inline(always)]
pub(crate) fn puddle_near_at(address: usize) -> Option<NonNull<Puddle>> {
    entry_near_at(address).map(NonNull::cast)
}
