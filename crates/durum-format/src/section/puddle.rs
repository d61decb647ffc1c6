//! A puddle of sections: all slots of a client's threads.

use std::ops::Range;

use super::head::{Head, SIGNATURE, VERSION};
use super::layout::{SLOTS_OFFSET, slot_size};
use super::slot::Slot;
use crate::error::FormatError;
use crate::puddle::{PuddleHeader, PuddleKind, heap_size};

/// A puddle of sections.
#[derive(Clone, Debug)]
pub struct Sections<'a> {
    head: Option<Head>,
    heap: &'a [u8],
    /// How much of the heap holds anything but zeros.
    used: u64,
    store: Range<u64>,
}

impl<'a> Sections<'a> {
    /// Reads the puddle with this header and this heap, of a store whose addresses these are. Only the first `used`
    /// bytes of the heap hold anything but zeros.
    ///
    /// A head that is not whole, and behind which nothing lies, does not count: a crash tore it as the puddle was made,
    /// and no slot was used.
    ///
    /// # Errors
    /// As [`Head::parse`]; also a puddle that holds no sections, or those of another client, and a heap that does not
    /// hold all slots.
    pub fn of(
        puddle: &PuddleHeader,
        heap: &'a [u8],
        used: u64,
        store: Range<u64>,
    ) -> Result<Self, FormatError> {
        puddle.check_kind(PuddleKind::Sections, "6 (sections)")?;
        let whole = |head: Option<Head>| Self {
            head,
            heap,
            used,
            store,
        };
        let head = match Head::parse(heap, puddle.size) {
            Ok(head) => head,
            // A newer one may keep elsewhere what it says.
            Err(error @ FormatError::Version { found, .. }) if found > VERSION => {
                return Err(error);
            }
            Err(_) if is_unused(heap, used, puddle.size) => return Ok(whole(None)),
            Err(error) => return Err(error),
        };
        puddle.check_owner(&SIGNATURE, "client", 16, head.client)?;
        let needed = head.slot_offset(head.slots);
        if (heap.len() as u64) < needed {
            return Err(FormatError::Truncated {
                structure: SIGNATURE.structure,
                needed,
                found: heap.len() as u64,
            });
        }
        Ok(whole(Some(head)))
    }

    /// The head; `None` where the puddle was never used.
    pub fn head(&self) -> Option<&Head> {
        self.head.as_ref()
    }

    /// The slots in which anything lies, in their order.
    pub fn slots(&self) -> impl Iterator<Item = Slot<'a>> + '_ {
        let slots = self.head.map_or(0, |head| {
            let behind = self.used.saturating_sub(SLOTS_OFFSET);
            behind
                .div_ceil(slot_size(head.stack_size))
                .min(head.slots.into())
        });
        (0..slots as u32).filter_map(|number| self.slot(number))
    }

    /// One slot; `None` if there are not so many.
    pub fn slot(&self, number: u32) -> Option<Slot<'a>> {
        let head = self.head.filter(|head| number < head.slots)?;
        let start = usize::try_from(head.slot_offset(number)).ok()?;
        let bytes = self.heap.get(start..)?;
        let bytes = bytes.get(..slot_size(head.stack_size) as usize)?;
        Slot::of(number, head.slot_salt(number), bytes, self.store.clone())
    }
}

/// Whether nothing lies where the slots of a puddle of `size` bytes begin.
fn is_unused(heap: &[u8], used: u64, size: u64) -> bool {
    let used = heap.get(..used as usize).unwrap_or(heap);
    let behind = used.get(SLOTS_OFFSET as usize..).unwrap_or_default();
    heap.len() as u64 >= heap_size(size) && behind.iter().all(|byte| *byte == 0)
}
