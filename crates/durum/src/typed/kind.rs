//! What a type is to an `Option` in a pool, known to the compiler before it makes code.
//!
//! A null word is no value of a handle, so an `Option` of one is described as a pointer. An `Option` of a value without
//! pointers is described as bytes. Of others the compiler may keep `None` in any field, and no descriptor could say
//! where.

/// What values of a type hold inline: [`Plain`], [`Handle`] or [`Pointers`].
#[doc(hidden)]
pub trait Kind {
    /// Whether there are pointers.
    const POINTERS: bool;
    /// Whether it is one word that is never zero, a handle.
    const HANDLE: bool;
    /// Of a struct, an array or a cell with such a field.
    type AsPart: Kind;
    /// Of a struct with such a field and a handle.
    type WithHandle: Kind;
    /// Of a struct with a field of each kind, which may have no bytes if it is plain.
    type With<K: Kind>: Kind;
}

/// A kind by its constants, as a derive knows them.
#[doc(hidden)]
#[derive(Debug)]
pub enum Of<const POINTERS: bool, const HANDLE: bool> {}

/// No pointers.
#[doc(hidden)]
pub type Plain = Of<false, false>;

/// One handle, and nothing else.
#[doc(hidden)]
pub type Handle = Of<true, true>;

/// Pointers.
#[doc(hidden)]
pub type Pointers = Of<true, false>;

impl Kind for Plain {
    const POINTERS: bool = false;
    const HANDLE: bool = false;
    type AsPart = Plain;
    type WithHandle = Handle;
    type With<K: Kind> = K;
}

impl Kind for Handle {
    const POINTERS: bool = true;
    const HANDLE: bool = true;
    type AsPart = Pointers;
    type WithHandle = Pointers;
    type With<K: Kind> = K::WithHandle;
}

impl Kind for Pointers {
    const POINTERS: bool = true;
    const HANDLE: bool = false;
    type AsPart = Pointers;
    type WithHandle = Pointers;
    type With<K: Kind> = Pointers;
}

/// The kinds of which an `Option` can be described.
#[doc(hidden)]
pub trait FitsOption: Kind {}

impl FitsOption for Plain {}
impl FitsOption for Handle {}

#[cfg(test)]
mod tests {
    use super::*;

    /// Pointers, and whether it is a handle.
    fn of<K: Kind>() -> (bool, bool) {
        (K::POINTERS, K::HANDLE)
    }

    #[test]
    fn a_handle_beside_nothing_is_one_and_beside_others_is_a_pointer() {
        let (plain, handle, pointers) = ((false, false), (true, true), (true, false));
        assert_eq!(of::<<Plain as Kind>::With<Plain>>(), plain);
        assert_eq!(of::<<Plain as Kind>::With<Handle>>(), handle);
        assert_eq!(of::<<Handle as Kind>::With<Plain>>(), handle);
        assert_eq!(of::<<Handle as Kind>::With<Handle>>(), pointers);
        assert_eq!(of::<<Handle as Kind>::With<Pointers>>(), pointers);
        assert_eq!(of::<<Plain as Kind>::With<Pointers>>(), pointers);
        assert_eq!(of::<<Pointers as Kind>::With<Plain>>(), pointers);
        assert_eq!(of::<<Plain as Kind>::AsPart>(), plain);
        assert_eq!(of::<<Handle as Kind>::AsPart>(), pointers);
        assert_eq!(of::<<Pointers as Kind>::AsPart>(), pointers);
    }
}
