//! What lies in a heap beside the program's data, which the service has to know, too, and access to its words.

pub(crate) use durum_format::nvl::{
    FRESH, HEADER, HEAP_TYPE, Header, HeapRoot, LINK, LISTED, PINNED, PREFIX, PROXY, Proxy, VERSION,
};

/// An allocation's start, as volatile lists keep it: so that it looks like no pointer.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) struct Hidden(usize);

impl Hidden {
    pub(crate) fn new(start: usize) -> Self {
        Self(!start)
    }

    pub(crate) fn start(self) -> usize {
        !self.0
    }
}

/// Address of a field, for words that change in transactions.
macro_rules! field {
    ($start:expr, $type:ident, $field:ident) => {
        $start + std::mem::offset_of!($crate::layout::$type, $field)
    };
}
pub(crate) use field;

/// Reads a word of a heap.
///
/// # Safety
/// It lies in an open heap, and nobody stores there at this moment.
#[inline]
pub(crate) unsafe fn word(address: usize) -> u64 {
    // SAFETY: as the caller promises.
    unsafe { std::ptr::with_exposed_provenance::<u64>(address).read() }
}

/// Stores a word that no transaction has to know of.
///
/// # Safety
/// It lies in an open heap, in an object that only this thread knows.
#[inline]
pub(crate) unsafe fn put(address: usize, value: u64) {
    // SAFETY: as the caller promises.
    unsafe { std::ptr::with_exposed_provenance_mut::<u64>(address).write(value) }
}
