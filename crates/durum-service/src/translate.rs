//! Pointers of objects that are made to lead elsewhere, as their type descriptor shows them.

use std::path::Path;

use durum_format::types::{Descriptor, PointerAt};

use crate::error::{Error, Result};
use crate::roles::{Role, Tally};

/// Translates pointers of objects of one type.
pub(crate) struct Translator<'d> {
    descriptor: &'d Descriptor,
    role: Role,
    /// Those of the object that was looked at last: there are many objects, and each has a few.
    found: Vec<PointerAt>,
}

impl<'d> Translator<'d> {
    pub(crate) fn new(descriptor: &'d Descriptor) -> Translator<'d> {
        Translator {
            descriptor,
            role: Role::of(descriptor),
            found: Vec::new(),
        }
    }

    /// Whether the value of an object is gone: it is zeros, and need not fit its type.
    pub(crate) fn is_husk(&self, object: &[u8]) -> bool {
        self.role == Role::Counted && Tally::read(object).is_some_and(|tally| tally.is_husk())
    }

    /// Asks `elsewhere` for each pointer of an object, by its place in that and its address, where it is to lead, and
    /// has it lead there; `None` leaves it as it is. An object whose value is gone has no pointers. The object begins
    /// at `offset` in `file`, for errors.
    ///
    /// # Errors
    /// `Damaged`: it does not fit its type; nothing was changed.
    #[inline]
    pub(crate) fn pointers(
        &mut self,
        object: &mut [u8],
        (file, offset): (&Path, u64),
        mut elsewhere: impl FnMut(u64, u64) -> Option<u64>,
    ) -> Result<()> {
        if self.is_husk(object) {
            return Ok(());
        }
        self.found.clear();
        let found = &mut self.found;
        self.descriptor
            .visit_pointers(object, |pointer| found.push(pointer))
            .map_err(|error| Error::Damaged {
                file: file.to_owned(),
                structure: "object",
                offset,
                problem: format!(
                    "it does not fit its type {}: {error}",
                    self.descriptor.title()
                ),
                cure: "`durum check` tells more; restore a copy of the store".into(),
            })?;
        for pointer in &self.found {
            let at = usize::try_from(pointer.offset).unwrap_or(usize::MAX);
            let rest = object.get_mut(at..);
            if let Some(word) = rest.and_then(|rest| rest.first_chunk_mut::<8>())
                && let Some(address) = elsewhere(pointer.offset, u64::from_le_bytes(*word))
            {
                *word = address.to_le_bytes();
            }
        }
        Ok(())
    }
}
