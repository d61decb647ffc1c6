//! Where a program's function stores a new value.

use std::cell::Cell;
use std::ffi::c_void;

thread_local! {
    /// Where the value begins that a function makes, and its bytes.
    static MADE: Cell<(usize, usize)> = const { Cell::new((0, 0)) };
}

/// Whether a function of a migration makes what is there: nobody has to hear of what it stores.
pub(crate) fn is_being_made(ptr: *const c_void, len: usize) -> bool {
    let (begin, size) = MADE.get();
    let within = ptr.addr().wrapping_sub(begin);
    within < size && len <= size - within
}

/// Says so, until it is dropped.
pub(super) struct MakingRoom(());

impl Drop for MakingRoom {
    fn drop(&mut self) {
        MADE.set((0, 0));
    }
}

/// Room for a value, zero and aligned as its type is, to which the program's function stores.
pub(super) struct Room {
    bytes: Vec<u8>,
    begin: usize,
    size: usize,
}

impl Room {
    pub(super) fn of(size: usize, align: u64) -> std::result::Result<Self, String> {
        let too_large = || format!("there is no room for {size} bytes at a multiple of {align}");
        let align = usize::try_from(align).map_err(|_| too_large())?.max(1);
        let length = size.checked_add(align).ok_or_else(too_large)?;
        let mut bytes = Vec::new();
        bytes.try_reserve_exact(length).map_err(|_| too_large())?;
        bytes.resize(length, 0);
        let begin = bytes.as_ptr().addr().next_multiple_of(align) - bytes.as_ptr().addr();
        Ok(Self { bytes, begin, size })
    }

    /// A function makes the value.
    pub(super) fn making(&self) -> MakingRoom {
        MADE.set((self.bytes.as_ptr().addr() + self.begin, self.size));
        MakingRoom(())
    }

    pub(super) fn bytes(&mut self) -> &mut [u8] {
        let Self { bytes, begin, size } = self;
        bytes.get_mut(*begin..*begin + *size).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::{Room, is_being_made};

    #[test]
    fn what_is_made_is_known_until_it_is_made() {
        let mut room = Room::of(24, 16).unwrap();
        let at = |room: &mut Room, by: usize| room.bytes().as_ptr().wrapping_add(by).cast();
        assert!(!is_being_made(at(&mut room, 0), 8));
        let making = room.making();
        assert!(is_being_made(at(&mut room, 0), 24));
        assert!(is_being_made(at(&mut room, 16), 8));
        for (by, len) in [(16, 9), (24, 1), (usize::MAX, 1), (0, 25)] {
            assert!(!is_being_made(at(&mut room, by), len), "{by} {len}");
        }
        drop(making);
        assert!(!is_being_made(at(&mut room, 0), 8));
    }

    #[test]
    fn a_value_is_aligned_as_its_type_is() {
        let mut rooms = Vec::new();
        for align in [1, 16, 64, 4096] {
            // Several at once do not all lie at such a place by chance.
            for size in [1, 24, 64, 5000] {
                let mut room = Room::of(size, align).unwrap();
                let at = room.bytes().as_ptr().addr() as u64;
                assert!(at.is_multiple_of(align), "{at:#x} {align}");
                assert_eq!(room.bytes(), vec![0; size]);
                rooms.push(room);
            }
        }
        assert!(Room::of(usize::MAX, 16).is_err());
    }
}
