//! Working copies of objects that a transaction changes in several places.

/// Objects in one transaction. A deletion from a B-tree of 1 M keys edits about 12.
const OBJECTS_MAX: usize = 64;
/// Bytes of one object.
const OBJECT_SIZE_MAX: usize = 256;

#[repr(C, align(64))]
#[derive(Clone, Copy)]
struct Buffer([u8; OBJECT_SIZE_MAX]);

#[derive(Clone, Copy, Debug)]
struct Entry {
    object: usize,
    /// The changed part, as offsets; empty if begin is not below end.
    begin: usize,
    end: usize,
}

/// Copies of objects, with the part of each that was changed. They do not move until they are cleared.
pub(super) struct Edits {
    entries: Vec<Entry>,
    buffers: Box<[Buffer; OBJECTS_MAX]>,
}

impl Edits {
    pub(super) fn new() -> Edits {
        Edits {
            entries: Vec::with_capacity(OBJECTS_MAX),
            buffers: Box::new([Buffer([0; OBJECT_SIZE_MAX]); OBJECTS_MAX]),
        }
    }

    pub(super) fn clear(&mut self) {
        self.entries.clear();
    }

    /// The copy of an object that has one.
    #[inline]
    pub(super) fn find(&self, object: usize) -> Option<*const u8> {
        let index = self
            .entries
            .iter()
            .position(|entry| entry.object == object)?;
        Some((&raw const self.buffers[index]).cast())
    }

    /// The copy of an object, made now if it has none.
    ///
    /// # Safety
    /// `object` is valid for reads of `len` bytes.
    ///
    /// # Panics
    /// If the object is too large, or one too many.
    #[inline]
    pub(super) unsafe fn copy_of(&mut self, object: *const u8, len: usize) -> *mut u8 {
        assert!(
            len <= OBJECT_SIZE_MAX,
            "objects of more than {OBJECT_SIZE_MAX} bytes are not edited"
        );
        let known = self
            .entries
            .iter()
            .position(|entry| entry.object == object.addr());
        let index = known.unwrap_or(self.entries.len());
        let buffer: *mut u8 = (&raw mut self.buffers[index]).cast();
        if known.is_none() {
            self.entries.push(Entry {
                object: object.addr(),
                begin: OBJECT_SIZE_MAX,
                end: 0,
            });
            // SAFETY: readable by contract; the buffer has room, see above; buffers are not in any pool.
            unsafe { buffer.copy_from_nonoverlapping(object, len) };
        }
        buffer
    }

    /// Part of a copy was changed. Addresses elsewhere are ignored: those objects were changed in place.
    #[inline]
    pub(super) fn changed(&mut self, addr: usize, len: usize) {
        let Some(offset) = addr.checked_sub(self.buffers.as_ptr().addr()) else {
            return;
        };
        let (index, begin) = (offset / OBJECT_SIZE_MAX, offset % OBJECT_SIZE_MAX);
        if let Some(entry) = self.entries.get_mut(index).filter(|_| len > 0) {
            entry.begin = entry.begin.min(begin);
            entry.end = entry.end.max(begin + len);
        }
    }

    /// The object is gone: its changes do not matter.
    #[inline]
    pub(super) fn forget(&mut self, object: usize) {
        if let Some(entry) = self.entries.iter_mut().find(|entry| entry.object == object) {
            entry.begin = OBJECT_SIZE_MAX;
            entry.end = 0;
        }
    }

    /// For each object, where its changed part starts, the new bytes, and their number.
    #[inline]
    pub(super) fn changes(&self) -> impl Iterator<Item = (*mut u8, *const u8, usize)> {
        let changed = self
            .entries
            .iter()
            .enumerate()
            .filter(|(_, entry)| entry.begin < entry.end);
        changed.map(|(index, entry)| {
            let target = std::ptr::with_exposed_provenance_mut(entry.object + entry.begin);
            (
                target,
                (&raw const self.buffers[index].0[entry.begin]),
                entry.end - entry.begin,
            )
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_changed_part_is_the_hull_of_what_changed() {
        let objects = [[1u64; 4], [2; 4], [3; 4]];
        let mut edits = Edits::new();
        let mut copy_of = |object: &[u64; 4]| {
            // SAFETY: a live object of 32 bytes.
            unsafe { edits.copy_of(object.as_ptr().cast(), 32) }
        };
        let copies: Vec<*mut u8> = objects.iter().map(&mut copy_of).collect();
        assert_eq!(copy_of(&objects[1]), copies[1], "the same copy again");
        edits.changed(copies[0].addr() + 24, 8);
        edits.changed(copies[0].addr() + 8, 8);
        edits.changed(copies[1].addr(), 0);
        edits.changed(copies[2].addr(), 32);
        edits.forget(objects[2].as_ptr().addr());
        edits.changed(objects[0].as_ptr().addr(), 8);
        let found: Vec<_> = edits
            .changes()
            .map(|(target, source, len)| (target.addr(), source.addr(), len))
            .collect();
        assert_eq!(
            found,
            [(objects[0].as_ptr().addr() + 8, copies[0].addr() + 8, 24)]
        );
        edits.clear();
        assert_eq!(edits.find(objects[0].as_ptr().addr()), None);
    }
}
