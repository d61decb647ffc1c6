//! What may live in a pool, and what may cross the border of a transaction.

use std::borrow::Cow;
use std::marker::PhantomData;
use std::panic::{RefUnwindSafe, UnwindSafe};

use durum_format::types::{Field, Type};

use super::layout::structure;
use super::option_layout;
use super::pointer_kind::{FitsOption, Plain, PointerKind};
use super::pool_id::PoolId;
use crate::described::{Described, Walk, id_with_bytes};

/// A type that may live in a pool (Corundum §3.2, Design Goal 1).
///
/// Numbers, `bool`, `char`, arrays and tuples of them, `Option`, the persistent pointers and cells of this module, and
/// what `#[derive(PSafe)]` makes of structs and enums of such types. References, raw pointers, `Box`, `String`, `Mutex`
/// and file handles are not: what they point to is gone when the program ends.
///
/// # Safety
/// The layout is fixed and described ([`Described`]); the type has no destructor of its own and holds nothing that
/// points to volatile memory; [`PSafe::owners`] counts every handle; [`PSafe::Threads`] is `Send` only if a value in a
/// pool may be used by several threads one after the other, and `Sync` only if it may at the same time;
/// [`PSafe::ZERO_IS_VALUE`] only if it is.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot live in a pool",
    label = "not `PSafe`",
    note = "what a pool holds outlives the program: use `Pbox`, `Prc`, `Parc` instead of `Box`, `Rc`, `Arc` and references; `PCell`, `PRefCell`, `PMutex` instead of `Cell`, `RefCell`, `Mutex`; `PVec`, `PString`, `PHashMap`, `PBTreeMap` instead of std's collections",
    note = "a struct or enum of such types needs `#[derive(PSafe)]` and `#[repr(C)]`"
)]
pub unsafe trait PSafe: Described + UnwindSafe + RefUnwindSafe {
    /// A shadow of the type, whose `Send` and `Sync` say what threads may do with values in a pool.
    type Threads;
    /// Whether a value can hold handles inline. If not, all accounting compiles away.
    const OWNERS: bool;
    /// What a value holds inline, to an `Option`.
    type Kind: PointerKind;
    /// Whether a value holds pointers inline.
    const POINTERS: bool = <Self::Kind as PointerKind>::POINTERS;
    /// Whether a value holds cells inline that have a word for borrowing or locking.
    const WORDS: bool;
    /// The pool that its pointers lead into.
    const POOL: PoolId;
    /// Whether bytes that are all zero are a value, which owns nothing: a field of such a type may take the place of
    /// [`Reserved`](super::Reserved) bytes.
    const ZERO_IS_VALUE: bool = false;
    /// The handles in this value, not counting those behind pointers.
    fn owners(&self) -> i64;
    /// Some value without pointers, by which it is measured how the compiler lays an `Option` out; of a type that gives
    /// none, an `Option` is described as bytes.
    #[doc(hidden)]
    fn __any_value() -> Option<Self> {
        None
    }
}

/// What an `Option` in a pool may hold: a handle ([`Pbox`](super::Pbox), [`Prc`](super::Prc), [`Parc`](super::Parc),
/// [`PWeak`](super::PWeak)), or a value without pointers.
///
/// A generic type that has an `Option<T>` says `T: InOption`. Of a generic type with `derive(PSafe)` it is known only
/// if its fields are parameters and numbers.
#[diagnostic::on_unimplemented(
    message = "an `Option` in a pool cannot hold `{Self}`",
    label = "not `InOption`: it is no handle, and has pointers",
    note = "the layout of such an `Option` is not fixed. For a collection use an empty one, which allocates nothing; for others `Option<Pbox<_>>`, or an enum of your own with `derive(PSafe)` and `repr(C, u8)`",
    note = "a generic type or function with an `Option<T>` says `T: InOption`"
)]
pub trait InOption: PSafe {}

#[diagnostic::do_not_recommend]
impl<T: PSafe<Kind: FitsOption>> InOption for T {}

/// What a transaction may capture (Corundum §3.3, Invariant 1): nothing through which it could change what was there
/// before.
///
/// This keeps honest programs honest. What it lets pass (`Mutex`, atomics, `AssertUnwindSafe`) keeps its changes when
/// the transaction aborts; docs/reference/safety.md tells more. Nothing that points into a pool can leave that way: the
/// balance of owners catches it.
#[diagnostic::on_unimplemented(
    message = "a transaction cannot capture `{Self}`: it could change volatile memory, which an abort would not bring back",
    label = "not `TxInSafe`",
    note = "the usual culprits are `&mut`, `Cell`, `RefCell`, `Rc<RefCell<_>>`, a journal or guard of another transaction; return a value from the transaction instead",
    note = "the compiler names a variable that the closure changes, if that is written as `let _: &dyn Fn(&_) -> _ = &|j| ...;` without a transaction"
)]
pub trait TxInSafe {}

#[diagnostic::do_not_recommend]
impl<T: UnwindSafe> TxInSafe for T {}

/// What a transaction may return (Corundum §3.3): values, no references and no pointers into the pool.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot leave a transaction",
    label = "not `TxOutSafe`",
    note = "store it in the pool, in something that the root reaches; to find it again from volatile memory, return what `demote()` gives (`VWeak`)"
)]
pub trait TxOutSafe {}

#[diagnostic::do_not_recommend]
impl<T: Send + 'static> TxOutSafe for T {}

/// The name of a type as an argument of a generic one.
pub fn name_of<T: Described>() -> String {
    T::name().map_or_else(|| format!("bytes{}", size_of::<T>()), Cow::into_owned)
}

macro_rules! plain {
    ([$($generics:tt)*] $type:ty, $value:expr) => {
        // SAFETY: no pointers, no interior mutability, a fixed layout.
        unsafe impl<$($generics)*> PSafe for $type {
            type Threads = ();
            type Kind = Plain;
            const OWNERS: bool = false;
            const WORDS: bool = false;
            const POOL: PoolId = PoolId::ANY;
            const ZERO_IS_VALUE: bool = true;

            #[inline(always)]
            fn owners(&self) -> i64 {
                0
            }

            fn __any_value() -> Option<Self> {
                Some($value)
            }
        }
    };
    ($($type:ty),*) => { $( plain! { [] $type, Self::default() } )* };
}

plain! { u8, u16, u32, u64, usize, i8, i16, i32, i64, isize, f32, f64, bool, char, () }
plain! { [T: 'static + UnwindSafe + RefUnwindSafe] PhantomData<T>, PhantomData }

// SAFETY: no bytes at all.
unsafe impl Described for () {
    fn name() -> Option<Cow<'static, str>> {
        Some(Cow::Borrowed("()"))
    }

    fn layout(_: &mut Walk) -> Type<String> {
        Type::Opaque { size: 0, align: 1 }
    }
}

// SAFETY: as its elements.
unsafe impl<T: PSafe, const N: usize> PSafe for [T; N] {
    type Threads = PhantomData<T::Threads>;
    type Kind = <T::Kind as PointerKind>::AsPart;
    const OWNERS: bool = T::OWNERS;
    const POINTERS: bool = T::POINTERS;
    const WORDS: bool = T::WORDS;
    const POOL: PoolId = T::POOL;
    const ZERO_IS_VALUE: bool = T::ZERO_IS_VALUE;

    #[inline]
    fn owners(&self) -> i64 {
        if T::OWNERS {
            self.iter().map(PSafe::owners).sum()
        } else {
            0
        }
    }

    fn __any_value() -> Option<Self> {
        // There may be any number of them, and no description has such a row.
        if size_of::<T>() == 0 {
            return None;
        }
        let values: Option<Vec<T>> = (0..N).map(|_| T::__any_value()).collect();
        values?.try_into().ok()
    }
}

/// A handle or none, in eight bytes; or a value without pointers, where the description says how the compiler lays it
/// out: where none is kept, beside the value or in bits that no value has. A program that another compiler lays out
/// otherwise has another description, and is refused. Other options have no layout that could be described. In place of
/// an `Option<PVec<_>>` use an empty vector, which allocates nothing, or `Option<Pbox<PVec<_>>>`; in place of others an
/// enum of your own with `derive(PSafe)` and `repr(C, u8)`.
///
/// ```compile_fail
/// # use durum::typed::*;
/// # pool!(P);
/// let _ = P::open::<PRefCell<Option<(bool, Pbox<u64, P>)>, P>>("store", 0);
/// ```
// SAFETY: the compiler measures the size, and [`InOption`]: a handle that is not there is zero (the niche of
// `NonZero`); anything else holds no pointers, and is described as it was measured, or as bytes.
unsafe impl<T: PSafe + InOption> Described for Option<T> {
    fn name() -> Option<Cow<'static, str>> {
        Some(Cow::Owned(format!("Option<{}>", name_of::<T>())))
    }

    fn layout(walk: &mut Walk) -> Type<String> {
        // Another type than the value's own: a `None` is no value of that. And another one for each type of values,
        // down to the last field.
        let (size, align) = (size_of::<Self>() as u64, align_of::<Self>() as u64);
        if T::Kind::HANDLE {
            let some = vec![Field::new("some", 0, T::layout(walk))];
            return Type::structure(name_of::<Self>(), size, align, some);
        }
        let mut measured = None;
        if !walk.options_are_bytes() {
            let value = T::layout(walk);
            let is_small = size_of::<Self>() <= option_layout::SIZE_MAX;
            let any = is_small.then(T::__any_value).flatten();
            measured = any.and_then(|any| option_layout::of(name_of::<Self>(), value, any));
        }
        measured.unwrap_or_else(|| {
            // As it always was, whatever is known by now of options in the value.
            let name = format!("bytes of {:016x}", id_with_bytes::<T>());
            let bytes = Field::new(name, 0, Type::Opaque { size, align });
            Type::structure(name_of::<Self>(), size, align, vec![bytes])
        })
    }
}

// `PSafe` by itself: of a type that cannot live in a pool the compiler says that, and not what an `Option` asks for.
// SAFETY: as the value, if any.
unsafe impl<T: PSafe + InOption> PSafe for Option<T> {
    type Threads = PhantomData<T::Threads>;
    type Kind = <T::Kind as PointerKind>::AsPart;
    const OWNERS: bool = T::OWNERS;
    const WORDS: bool = T::WORDS;
    const POOL: PoolId = T::POOL;
    // Of a handle, zero is `None`; of others only the compiler knows.
    const ZERO_IS_VALUE: bool = T::Kind::HANDLE;

    #[inline(always)]
    fn owners(&self) -> i64 {
        match self {
            Some(value) if T::OWNERS => value.owners(),
            _ => 0,
        }
    }

    fn __any_value() -> Option<Self> {
        Some(None)
    }
}

macro_rules! tuples {
    (@kind $first:ident) => { <$first::Kind as PointerKind>::AsPart };
    (@kind $first:ident $($name:ident)+) => { <<$first::Kind as PointerKind>::AsPart as PointerKind>::With<tuples!(@kind $($name)+)> };
    ($(($($name:ident $index:tt),+))*) => { $(
        // SAFETY: the offsets are measured by the compiler; where another one lays the tuple out otherwise, the
        // description differs and the pool is refused.
        unsafe impl<$($name: PSafe),+> Described for ($($name,)+) {
            fn name() -> Option<Cow<'static, str>> {
                let names = [$(name_of::<$name>()),+];
                Some(Cow::Owned(format!("({})", names.join(","))))
            }

            fn layout(walk: &mut Walk) -> Type<String> {
                structure!(name_of::<Self>(), { $($index: $name::layout(walk)),+ })
            }
        }

        // SAFETY: as its fields.
        unsafe impl<$($name: PSafe),+> PSafe for ($($name,)+) {
            type Threads = PhantomData<($($name::Threads,)+)>;
            type Kind = tuples!(@kind $($name)+);
            const OWNERS: bool = $($name::OWNERS)||+;
            const POINTERS: bool = $($name::POINTERS)||+;
            const WORDS: bool = $($name::WORDS)||+;
            const POOL: PoolId = PoolId::ANY $(.and($name::POOL))+;
            const ZERO_IS_VALUE: bool = $($name::ZERO_IS_VALUE)&&+;

            #[inline]
            fn owners(&self) -> i64 {
                0 $(+ if $name::OWNERS { self.$index.owners() } else { 0 })+
            }

            fn __any_value() -> Option<Self> {
                Some(($($name::__any_value()?,)+))
            }
        }
    )* };
}

tuples! {
    (A 0)
    (A 0, B 1)
    (A 0, B 1, C 2)
    (A 0, B 1, C 2, D 3)
    (A 0, B 1, C 2, D 3, E 4)
    (A 0, B 1, C 2, D 3, E 4, F 5)
}
