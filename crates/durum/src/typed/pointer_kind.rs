//! Which pointers the values of a type hold inline, known to the compiler before it makes code. An `Option` in a pool
//! asks for it.
//!
//! A null word is no value of a handle, so an `Option` of one is described as a pointer. An `Option` of a value without
//! pointers is described as bytes. Of others the compiler may keep `None` in any field, and no descriptor could say
//! where.

/// What values of a type hold inline: [`Plain`], [`Handle`] or [`Pointers`].
#[doc(hidden)]
pub trait PointerKind {
    /// Whether there are pointers.
    const POINTERS: bool;
    /// Whether it is one word that is never zero, a handle.
    const HANDLE: bool;
    /// Of a struct, an array or a cell with such a field.
    type AsPart: PointerKind;
    /// Of a struct with such a field and a handle.
    type WithHandle: PointerKind;
    /// Of a struct with a field of each kind, which may have no bytes if it is plain.
    type With<K: PointerKind>: PointerKind;
}

/// A kind by its constants, as a derive knows them.
#[doc(hidden)]
#[derive(Debug)]
pub enum KindOf<const POINTERS: bool, const HANDLE: bool> {}

/// No pointers.
#[doc(hidden)]
pub type Plain = KindOf<false, false>;

/// One handle, and nothing else.
#[doc(hidden)]
pub type Handle = KindOf<true, true>;

/// Pointers.
#[doc(hidden)]
pub type Pointers = KindOf<true, false>;

impl PointerKind for Plain {
    const POINTERS: bool = false;
    const HANDLE: bool = false;
    type AsPart = Plain;
    type WithHandle = Handle;
    type With<K: PointerKind> = K;
}

impl PointerKind for Handle {
    const POINTERS: bool = true;
    const HANDLE: bool = true;
    type AsPart = Pointers;
    type WithHandle = Pointers;
    type With<K: PointerKind> = K::WithHandle;
}

impl PointerKind for Pointers {
    const POINTERS: bool = true;
    const HANDLE: bool = false;
    type AsPart = Pointers;
    type WithHandle = Pointers;
    type With<K: PointerKind> = Pointers;
}

/// The kinds of which an `Option` can be described.
#[doc(hidden)]
pub trait FitsOption: PointerKind {}

impl FitsOption for Plain {}
impl FitsOption for Handle {}

#[cfg(test)]
mod tests {
    use super::*;

    /// Pointers, and whether it is a handle.
    fn of<K: PointerKind>() -> (bool, bool) {
        (K::POINTERS, K::HANDLE)
    }

    #[test]
    fn a_handle_beside_nothing_is_one_and_beside_others_is_a_pointer() {
        let (plain, handle, pointers) = ((false, false), (true, true), (true, false));
        assert_eq!(of::<<Plain as PointerKind>::With<Plain>>(), plain);
        assert_eq!(of::<<Plain as PointerKind>::With<Handle>>(), handle);
        assert_eq!(of::<<Handle as PointerKind>::With<Plain>>(), handle);
        assert_eq!(of::<<Handle as PointerKind>::With<Handle>>(), pointers);
        assert_eq!(of::<<Handle as PointerKind>::With<Pointers>>(), pointers);
        assert_eq!(of::<<Plain as PointerKind>::With<Pointers>>(), pointers);
        assert_eq!(of::<<Pointers as PointerKind>::With<Plain>>(), pointers);
        assert_eq!(of::<<Plain as PointerKind>::AsPart>(), plain);
        assert_eq!(of::<<Handle as PointerKind>::AsPart>(), pointers);
        assert_eq!(of::<<Pointers as PointerKind>::AsPart>(), pointers);
    }
}
