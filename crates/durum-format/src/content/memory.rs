//! The bytes of objects, a block at a time.

use std::collections::HashMap;

use super::{At, Object, Objects};
use crate::types::Descriptor;

/// Bytes that are read at once. Puddles begin at multiples of it.
const BLOCK: u64 = 4096;
/// Blocks that are kept. When there are more, all are dropped.
const BLOCKS_MAX: usize = 256;

/// Objects, with the blocks of them that were read last.
pub(super) struct Memory<'o, O: Objects + ?Sized> {
    pub(super) objects: &'o O,
    blocks: HashMap<u64, Result<Box<[u8]>, String>>,
    /// What the pointers of a descriptor lead to: ids by the descriptor's own and the line of its text.
    targets: HashMap<(u64, usize), Option<u64>>,
    /// How many keys are being read, each for the name of the one before.
    pub(super) keys: usize,
}

impl<'o, O: Objects + ?Sized> Memory<'o, O> {
    pub(super) fn of(objects: &'o O) -> Self {
        Self {
            objects,
            blocks: HashMap::new(),
            targets: HashMap::new(),
            keys: 0,
        }
    }

    /// Fills `buffer` with what lies at `address`, in an object that ends at `end`.
    pub(super) fn read(
        &mut self,
        mut address: u64,
        end: u64,
        mut buffer: &mut [u8],
    ) -> Result<(), String> {
        if address.saturating_add(buffer.len() as u64) > end {
            return Err(format!(
                "it needs bytes up to {:#x}, and its object ends at {end:#x}",
                address.saturating_add(buffer.len() as u64)
            ));
        }
        while !buffer.is_empty() {
            let inside = (address % BLOCK) as usize;
            let base = address - inside as u64;
            let block = self.block(base)?;
            let part = block.get(inside..).unwrap_or_default();
            let count = part.len().min(buffer.len());
            let (now, rest) = buffer.split_at_mut(count);
            now.copy_from_slice(part.get(..count).unwrap_or_default());
            buffer = rest;
            address += count as u64;
        }
        Ok(())
    }

    fn block(&mut self, base: u64) -> Result<&[u8], String> {
        if !self.blocks.contains_key(&base) {
            if self.blocks.len() >= BLOCKS_MAX {
                self.blocks.clear();
            }
            let mut bytes = vec![0; BLOCK as usize].into_boxed_slice();
            let read = self.objects.read(base, &mut bytes).map(|()| bytes);
            self.blocks.insert(base, read);
        }
        match self.blocks.get(&base) {
            Some(Ok(block)) => Ok(block),
            Some(Err(why)) => Err(why.clone()),
            None => Err("it was not read".to_owned()),
        }
    }

    /// A number of `width` bytes, zero-extended.
    pub(super) fn unsigned(&mut self, address: u64, end: u64, width: u64) -> Result<u64, String> {
        let mut word = [0; 8];
        let part = word.get_mut(..width as usize).unwrap_or_default();
        self.read(address, end, part)?;
        Ok(u64::from_le_bytes(word))
    }

    /// As many bytes as `shown` of the `length` at `address`.
    pub(super) fn bytes(&mut self, address: u64, end: u64, shown: u64) -> Result<Vec<u8>, String> {
        let mut bytes = vec![0; shown as usize];
        self.read(address, end, &mut bytes)?;
        Ok(bytes)
    }

    /// Whether all bytes of a place are zero.
    pub(super) fn is_zero(&mut self, address: u64, end: u64, length: u64) -> bool {
        let mut buffer = [0; 64];
        let mut done = 0;
        while done < length {
            let count = (length - done).min(64);
            let part = buffer.get_mut(..count as usize).unwrap_or_default();
            if self.read(address + done, end, part).is_err() || part.iter().any(|byte| *byte != 0) {
                return false;
            }
            done += count;
        }
        true
    }

    /// The object that begins at `address` and has the type that a line of a descriptor says.
    pub(super) fn object_of_line(
        &mut self,
        address: u64,
        of: &Descriptor,
        line: usize,
    ) -> Result<(Object, &'o Descriptor), String> {
        let target = self.targets.entry((of.id(), line));
        let expected = *target.or_insert_with(|| of.target(line).ok().map(|it| it.id()));
        match self.objects.at(address) {
            At::Object(object) if object.start != address => Err(format!(
                "its pointer {address:#x} leads into an object, and not to its start"
            )),
            At::Object(object) if Some(object.type_id) != expected => Err(format!(
                "its pointer {address:#x} leads to an object of another type"
            )),
            At::Object(object) => match self.objects.descriptor(object.type_id) {
                Some(descriptor) => Ok((object, descriptor)),
                None => Err(format!(
                    "its pointer {address:#x} leads to an object of unknown type"
                )),
            },
            At::Other(what) => Err(format!("its pointer {address:#x} leads to this: {what}")),
            At::Damaged(why) => Err(why),
        }
    }
}
