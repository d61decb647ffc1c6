//! Pointers of a pool that is made: from the numbers of objects to their addresses, once all have their places.

use std::collections::BTreeMap;

use durum_format::content::Object;
use durum_format::dump::{Plan, Reference};
use durum_format::extent;
use durum_format::puddle::PuddleHeader;
use durum_format::types::Descriptor;

use super::made::{APART, Making, OFFSET_BITS, Place};
use crate::error::{Error, Result};

impl Making<'_> {
    /// Has the pointers of a puddle lead to where their objects are. The error in words is one of the lines.
    pub(super) fn replace_pointers(
        &self,
        header: &PuddleHeader,
        bytes: &mut [u8],
        by_id: &BTreeMap<u64, &Plan>,
    ) -> Result<Result<(), String>> {
        let mut objects = Vec::new();
        for object in extent::objects(&*bytes, header) {
            let object =
                object.map_err(|error| Error::damaged_heap(self.made.directory, &error))?;
            objects.push(object);
        }
        let mut wrong = None;
        let types = self.types.iter().map(|known| (known.id, &known.descriptor));
        let descriptors: BTreeMap<u64, &Descriptor> = types.collect();
        for object in objects {
            let (Some(plan), Some(descriptor)) =
                (by_id.get(&object.type_id), descriptors.get(&object.type_id))
            else {
                continue;
            };
            if !plan.has_pointers() {
                continue;
            }
            let by_type = Object {
                start: 0,
                size: object.size,
                type_id: object.type_id,
                is_element: object.element.is_some(),
            };
            let range =
                object.offset as usize..(object.offset + by_type.size_by(descriptor)) as usize;
            let Some(bytes) = bytes.get_mut(range) else {
                continue;
            };
            plan.replace_pointers(bytes, &mut |word| {
                self.address(word).unwrap_or_else(|problem| {
                    wrong.get_or_insert(problem);
                    0
                })
            });
        }
        Ok(match wrong {
            None => Ok(()),
            Some(problem) => Err(problem),
        })
    }

    /// Has the words of a puddle's objects without a type that are pointers lead to where their objects are: those from
    /// `next` on, as puddles come in the order in which they were filled. The error in words is one of the lines.
    pub(super) fn put_words(
        &self,
        header: &PuddleHeader,
        bytes: &mut [u8],
        next: &mut usize,
    ) -> Result<(), String> {
        while let Some(word) = self.words.get(*next)
            && (header.address..header.end()).contains(&word.address)
        {
            let place = self.place(word.number)?;
            // The end of one is an address, too.
            if word.offset > place.size {
                return Err(beyond(word.number, word.offset, place.size));
            }
            let at = (word.address - header.address) as usize;
            if let Some(found) = bytes.get_mut(at..at + size_of::<u64>()) {
                found.copy_from_slice(&(place.address + word.offset).to_le_bytes());
            }
            *next += 1;
        }
        Ok(())
    }

    fn place(&self, number: u64) -> Result<&Place, String> {
        let place = number
            .checked_sub(1)
            .and_then(|at| self.places.get(at as usize));
        place.ok_or_else(|| format!("there is no object {number}"))
    }

    /// The address that a word in a pointer's place stands for.
    fn address(&self, word: u64) -> Result<u64, String> {
        let (number, offset) = match word & APART {
            0 => (word >> OFFSET_BITS, word & ((1 << OFFSET_BITS) - 1)),
            _ => match self.apart.get((word & !APART) as usize) {
                Some(Reference::Address(address)) => return Ok(*address),
                Some(Reference::Object { number, offset }) => (*number, *offset),
                None => return Err("a pointer was lost; please report it".to_owned()),
            },
        };
        let place = self.place(number)?;
        if offset >= place.size {
            return Err(beyond(number, offset, place.size));
        }
        Ok(place.address + offset)
    }
}

fn beyond(number: u64, offset: u64, size: u64) -> String {
    format!("a pointer leads {offset} bytes into object {number}, which has {size}")
}
