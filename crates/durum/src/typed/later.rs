//! `Later`: an exclusive reference that is announced when it is used to change something, not when it is made.
//!
//! A `&mut` into a pool says that its whole range is announced (`TypedTx::open_to_changes`): safe code may write there,
//! and the transaction will not see it. So a walk by `&mut` announces all that it passes. A [`Later`] holds the same
//! right to a place, and does not give a `&mut` before [`Later::change`]: until then it reads, or is exchanged for one
//! to a part of the place. Why that is sound:
//!
//! 1. *Nobody else has the place.* One is made from a `&mut`, or from a guard as its `deref_mut` would be, and borrows
//!    that as long as it is used. What takes it apart takes it by value, and gives each part once. There is no way from
//!    a reference that the program has to a `Later`: fields come from a derive, with the visibility that they have, by
//!    patterns, which name fields of the type itself and see through no `Deref`.
//! 2. *What is written is announced before.* The only `&mut` comes from `change`, which announces its very range and
//!    opens its range, as every other `&mut` into a pool. Enclosing ranges, announced before or after, are what they
//!    are for cells within objects: the log rolls back in reverse order, and open ranges are not opened twice. Handles
//!    that a place holds are counted from then on; before, none can have moved.
//! 3. *It ends with its transaction.* It borrows a guard, which does not outlive the journal, or a `&mut`, of which a
//!    transaction leaves none behind: those in the pool come from guards, and those to a volatile pointer keep that
//!    from being dropped, so the balance of owners finds it. It is neither `Send` nor `UnwindSafe`.

use std::marker::PhantomData;
use std::ops::Deref;
use std::ptr;

use super::as_target::as_target;
use super::journal::current_tx;
use super::pbox::Pbox;
use super::pool_type::PoolType;
use super::psafe::{InOption, PSafe};
use super::typed_tx::TypedTx;

/// An exclusive reference that announces nothing until [`Later::change`]: what it passes on the way to a place stays
/// out of the log.
///
/// It comes from a `&mut` (`Later::from`, for the way on through pointers), or from
/// [`PRefMut::later`](super::PRefMut::later) and [`PMutexGuard::later`](super::PMutexGuard::later). Reading needs no
/// more (`Deref`). The way down: [`parts`](Later::parts) of a struct or enum with `derive(Parts)`,
/// [`some`](Later::some) of an `Option`, [`object`](Later::object) of a [`Pbox`], [`at`](Later::at) of an array.
///
/// ```
/// # use durum::typed::*;
/// # durum::pool!(P);
/// type Link = Option<Pbox<Node, P>>;
///
/// #[derive(PSafe, Parts)]
/// #[repr(C)]
/// struct Node {
///     value: u64,
///     next: Link,
/// }
///
/// /// Puts a value behind all others. Of the links on the way the last one is logged, and no node.
/// fn append(list: &mut Link, value: u64, j: &Journal<P>) {
///     let mut link = Later::from(list);
///     let last = loop {
///         match link.some() {
///             Ok(node) => link = node.object().parts().next,
///             Err(none) => break none,
///         }
///     };
///     *last.change() = Some(Pbox::new(Node { value, next: None }, j));
/// }
/// ```
pub struct Later<'a, T: PSafe> {
    /// Invariants:
    ///
    /// 1. a value that is live, and nobody else's, for `'a`;
    /// 2. used only by the transaction in which it was made.
    place: *mut T,
    /// The transaction that is told of a change; `None` where the place was announced before, or is not in a pool.
    tx: Option<&'a TypedTx>,
    _place: PhantomData<&'a mut T>,
}

/// A struct or enum whose parts can be had one by one ([`Later::parts`]). Derive it.
#[diagnostic::on_unimplemented(
    message = "a `Later<{Self}>` cannot be taken apart",
    label = "not `Parts`",
    note = "derive `Parts` for a struct or enum; an `Option` has `some()`, a `Pbox` has `object()`, an array has `at(index)`"
)]
pub trait Parts: PSafe {
    /// The same struct or enum, with a [`Later`] in place of each field: `NodeParts` for `Node`.
    type Parts<'a>
    where
        Self: 'a;

    /// Takes it apart.
    fn of<'a>(whole: Later<'a, Self>) -> Self::Parts<'a>
    where
        Self: Sized;
}

impl<'a, T: PSafe> Later<'a, T> {
    /// # Safety
    /// The value at `place` is live and nobody else's for `'a`. Without `tx`, its range may be written to.
    #[inline(always)]
    pub(super) unsafe fn of_place(place: *mut T, tx: Option<&'a TypedTx>) -> Self {
        Self {
            place,
            tx,
            _place: PhantomData,
        }
    }

    /// Announces the place, and gives the reference to change it.
    #[inline]
    pub fn change(self) -> &'a mut T {
        if let Some(tx) = self.tx {
            tx.open_to_changes(self.place);
        }
        // SAFETY: nobody else's (1), of a transaction that runs (2), and announced.
        unsafe { &mut *self.place }
    }

    /// The same right, lent for a while.
    #[inline(always)]
    pub fn reborrow(&mut self) -> Later<'_, T> {
        // SAFETY: the same place, lent.
        unsafe { Later::of_place(self.place, self.tx) }
    }

    /// Exchanges it for those to the fields.
    #[inline(always)]
    pub fn parts(self) -> T::Parts<'a>
    where
        T: Parts,
    {
        T::of(self)
    }

    /// For derived code: the right to a part.
    ///
    /// # Safety
    /// `part` is a field of this place that safe code here could name, and is asked for once; the whole is not used
    /// after this.
    #[doc(hidden)]
    #[inline(always)]
    pub unsafe fn part<U: PSafe>(whole: &Self, part: &U) -> Later<'a, U> {
        // The reference tells where, and not more: it was made to read. No `&mut` to the whole is made, not even to
        // find the part.
        let place = whole
            .place
            .cast::<U>()
            .with_addr(ptr::from_ref(part).addr());
        // SAFETY: as good as a field of the place, as the caller promises.
        unsafe { Later::of_place(place, whole.tx) }
    }
}

impl<'a, T: PSafe, P: PoolType> Later<'a, Pbox<T, P>> {
    /// Exchanges it for that to the object.
    #[inline]
    pub fn object(self) -> Later<'a, T> {
        // Looked up, not taken over: the pointer may be a volatile variable's, and its object is in the pool.
        let tx = Some(current_tx::<P>());
        // SAFETY: the object is nobody else's than the pointer's, and `self` goes.
        unsafe { Later::of_place(self.as_ptr().cast_mut(), tx) }
    }
}

impl<'a, T: InOption> Later<'a, Option<T>> {
    /// Exchanges it for that to the value, if there is one.
    ///
    /// # Errors
    /// Itself, if there is none: to put one there.
    #[inline(always)]
    pub fn some(self) -> Result<Later<'a, T>, Self> {
        match &*self {
            // SAFETY: the only field, and `self` goes.
            Some(value) => Ok(unsafe { Later::part(&self, value) }),
            None => Err(self),
        }
    }
}

impl<'a, T: PSafe, const N: usize> Later<'a, [T; N]> {
    /// Exchanges it for that to an element.
    ///
    /// # Panics
    /// If there is no such element.
    #[inline]
    #[track_caller]
    pub fn at(self, index: usize) -> Later<'a, T> {
        // SAFETY: an element is as good as a field, and `self` goes.
        unsafe { Later::part(&self, &self[index]) }
    }
}

impl<'a, T: PSafe> From<&'a mut T> for Later<'a, T> {
    /// What can be reached from here through pointers is announced later; the place itself was announced when the
    /// reference was made.
    #[inline(always)]
    fn from(value: &'a mut T) -> Self {
        // SAFETY: borrowed as long, and announced when the reference was made.
        unsafe { Self::of_place(value, None) }
    }
}

impl<T: PSafe> Deref for Later<'_, T> {
    type Target = T;

    #[inline(always)]
    fn deref(&self) -> &T {
        // SAFETY: live, and nobody else's (1).
        unsafe { &*self.place }
    }
}

as_target! {
    ['a, T: PSafe] Later<'a, T>, to T: Debug Display;
}
