//! Where the running transaction has stored, for engines that go through its words at the commit.

/// Ranges, in the order in which they were told.
#[derive(Debug, Default)]
pub(super) struct Stored(Vec<(usize, usize)>);

impl Stored {
    #[inline]
    pub(super) fn insert(&mut self, addr: *const u8, len: usize) {
        if len > 0 {
            self.0.push((addr.addr(), len));
        }
    }

    /// Shows the address of each word that is touched, as often as it was told, and forgets all.
    #[inline]
    pub(super) fn take_words(&mut self, mut see: impl FnMut(usize)) {
        for (start, len) in self.0.drain(..) {
            (start & !7..start + len).step_by(8).for_each(&mut see);
        }
    }
}
