//! The object extents of one puddle, by the position where they start.

use super::free_set::FreeSet;

/// Positions for which entries are made together.
const PIECE: usize = 256;

/// One object extent, allocated or reserved.
#[derive(Clone, Copy, Debug)]
pub(super) struct ObjectExtent {
    pub(super) granules: u32,
    /// The object's offset in it is a power of two.
    data_shift: u8,
    /// May be freed (see [`Slab`](super::slab::Slab)): cleared by the one transaction that frees it.
    pub(super) live: bool,
}

impl ObjectExtent {
    const NONE: Self = Self {
        granules: 0,
        data_shift: 0,
        live: false,
    };

    pub(super) fn new(granules: usize, data_offset: usize) -> Self {
        debug_assert!(data_offset.is_power_of_two());
        Self {
            granules: granules as u32,
            data_shift: data_offset.trailing_zeros() as u8,
            live: true,
        }
    }

    pub(super) fn data_offset(&self) -> usize {
        1 << self.data_shift
    }
}

/// Entries of neighbours lie side by side: who goes over a million objects in their order waits for memory once for
/// some of them, where a hash table would let him wait for each.
#[derive(Debug)]
pub(super) struct Objects {
    starts: FreeSet,
    /// Made when the first object starts there. Of a position that is not in `starts` it says nothing.
    pieces: Vec<Option<Box<[ObjectExtent; PIECE]>>>,
}

impl Objects {
    /// None yet, in a puddle of so many granules.
    pub(super) fn new(granules: usize) -> Self {
        Self {
            starts: FreeSet::new(granules),
            pieces: (0..granules.div_ceil(PIECE)).map(|_| None).collect(),
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.starts.len() == 0
    }

    pub(super) fn contains(&self, position: usize) -> bool {
        self.starts.contains(position)
    }

    /// Enters an object where none starts.
    pub(super) fn insert(&mut self, position: usize, object: ObjectExtent) {
        self.starts.insert(position);
        let piece = self.pieces[position / PIECE]
            .get_or_insert_with(|| Box::new([ObjectExtent::NONE; PIECE]));
        piece[position % PIECE] = object;
    }

    /// Takes an object out, if one starts there.
    pub(super) fn remove(&mut self, position: usize) -> Option<ObjectExtent> {
        let object = *self.get(position)?;
        self.starts.remove(position);
        Some(object)
    }

    pub(super) fn get(&self, position: usize) -> Option<&ObjectExtent> {
        let is_there = self.starts.contains(position);
        let piece = self.pieces.get(position / PIECE).filter(|_| is_there)?;
        piece.as_ref().map(|piece| &piece[position % PIECE])
    }

    pub(super) fn get_mut(&mut self, position: usize) -> Option<&mut ObjectExtent> {
        let is_there = self.starts.contains(position);
        let piece = self.pieces.get_mut(position / PIECE).filter(|_| is_there)?;
        piece.as_mut().map(|piece| &mut piece[position % PIECE])
    }

    /// The last one that starts at `position` or before.
    pub(super) fn last_up_to(&self, position: usize) -> Option<(usize, &ObjectExtent)> {
        let start = self.starts.last_up_to(position)?;
        Some((start, self.get(start)?))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_is_found_where_it_starts_and_from_behind() {
        let mut objects = Objects::new(3 * PIECE + 5);
        let starts = [0, 7, PIECE - 1, PIECE, 3 * PIECE + 4];
        for (shift, start) in starts.into_iter().enumerate() {
            assert!(objects.get(start).is_none() && !objects.contains(start));
            objects.insert(start, ObjectExtent::new(start + 1, 16 << shift));
        }
        for (shift, start) in starts.into_iter().enumerate() {
            let object = objects.get_mut(start).expect("inserted");
            assert!(std::mem::replace(&mut object.live, false));
            let found = (object.granules as usize, object.data_offset());
            assert_eq!(found, (start + 1, 16 << shift));
        }
        let before =
            |objects: &Objects, position| objects.last_up_to(position).map(|found| found.0);
        assert_eq!(before(&objects, PIECE + 9), Some(PIECE));
        assert!(objects.remove(PIECE).is_some_and(|object| !object.live));
        assert!(objects.remove(PIECE).is_none() && objects.get(PIECE).is_none());
        assert_eq!(before(&objects, PIECE + 9), Some(PIECE - 1));
        objects.insert(PIECE, ObjectExtent::new(2, 16));
        assert!(objects.get(PIECE).is_some_and(|object| object.live));
        for start in starts {
            assert!(!objects.is_empty());
            objects.remove(start);
        }
        assert!(objects.is_empty());
        assert_eq!(before(&objects, 3 * PIECE), None);
    }
}
