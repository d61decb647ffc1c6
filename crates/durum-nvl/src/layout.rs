//! What lies in a heap beside the program's data (docs/reference/nvl-runtime.md has the tables): a header before each
//! allocation, one proxy for each address that weak pointers lead to, and the pool's root object.

/// The header of an allocation. The data begin behind it, or further behind where their alignment asks for that.
#[repr(C)]
pub(crate) struct Header {
    /// Elements. Never changes.
    pub(crate) count: u64,
    /// The next allocation of the zero list, or 0. Links lead to the field `next` of a header.
    pub(crate) next: u64,
    /// The one before, or 0 for the first.
    pub(crate) previous: u64,
    /// The first proxy that leads here, or 0.
    pub(crate) weak: u64,
    /// How many strong pointers in the heap lead here, the root among them.
    pub(crate) strong: u64,
    /// `FRESH`, `LISTED`.
    pub(crate) state: u64,
}

/// How far behind an allocation's start a link to it leads. Not to the start, which may be where the allocation before
/// it ends: a collection would take every link that it finds in a log for a pointer behind that one.
pub(crate) const LINK: usize = std::mem::offset_of!(Header, next);

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

/// Bytes of a header.
pub(crate) const HEADER: usize = size_of::<Header>();

/// Nothing durable has ever led to it: what the program has stored there need not be durable yet.
pub(crate) const FRESH: u64 = 1;
/// It is on the zero list.
pub(crate) const LISTED: u64 = 2;

/// A count that pointers which come and go never bring to zero.
pub(crate) const PINNED: u64 = 1 << 62;

/// What weak pointers to one address hold the address of. It outlives its target.
#[repr(C)]
pub(crate) struct Proxy {
    /// The address, or 0 since the allocation was freed.
    pub(crate) target: u64,
    /// How many weak pointers lead here.
    pub(crate) count: u64,
    /// The next proxy of the same allocation, or 0.
    pub(crate) next: u64,
}

/// The root object of the pool.
#[repr(C)]
pub(crate) struct HeapRoot {
    /// 1.
    pub(crate) version: u64,
    /// What `nvl_set_root` was given, or 0. A strong pointer.
    pub(crate) root: u64,
    /// The checksum of its type.
    pub(crate) checksum: u64,
    /// The first allocation of the zero list, or 0.
    pub(crate) zero: u64,
}

/// The version of these layouts.
pub(crate) const VERSION: u64 = 1;

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

/// The text of the root object's type.
pub(crate) const HEAP_TYPE: &str = "struct \"nvl heap\"(32,8){0:\"version\":u64;8:\"root\":*any;16:\"checksum\":u64;24:\"zero\":*any;}\n";
/// The name of a proxy's type.
pub(crate) const PROXY: &str = "nvl weak";

const _: () = assert!(
    HEADER == 48
        && HEADER.is_multiple_of(16)
        && size_of::<Proxy>() == 24
        && size_of::<HeapRoot>() == 32
);
