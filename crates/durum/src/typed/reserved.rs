//! Room for fields that come later.

use std::borrow::Cow;
use std::fmt;
use std::hash::{Hash, Hasher};

use durum_format::types::Type;

use super::journal::Journal;
use super::pointer_kind::Plain;
use super::pool_id::PoolId;
use super::psafe::PSafe;
use super::values::{PClone, Root};
use crate::described::{Described, Walk};

/// `N` bytes that are zero, in which a later version of the type has fields: those that say `#[durum(in_reserved)]`.
/// Data that is there then stays as it is (docs/how-to/change-types.md).
///
/// Aligned to one byte. A field takes its place where it lies within these bytes; give it the offset that its alignment
/// asks for, and the struct the alignment that it will need.
///
/// ```
/// use durum::typed::*;
/// durum::pool!(P);
///
/// #[derive(PSafe)]
/// #[repr(C)]
/// struct Task {
///     name: PString<P>,
///     later: Reserved<16>,
/// }
///
/// // The next version. It may take all of it, or leave some.
/// #[derive(PSafe)]
/// #[durum(name = "Task")]
/// #[repr(C)]
/// struct NextTask {
///     name: PString<P>,
///     #[durum(in_reserved)]
///     deadline: u64,
///     later: Reserved<8>,
/// }
/// ```
///
/// A field of a type of which zero is no value cannot come:
///
/// ```compile_fail
/// # use durum::typed::*;
/// # durum::pool!(P);
/// #[derive(PSafe)]
/// #[repr(C)]
/// struct Task {
///     #[durum(in_reserved)]
///     next: Pbox<u64, P>,
/// }
/// ```
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
#[repr(transparent)]
pub struct Reserved<const N: usize>([u8; N]);

impl<const N: usize> Reserved<N> {
    /// Zeros: there are no others.
    pub const fn new() -> Self {
        Self([0; N])
    }
}

impl<const N: usize> Default for Reserved<N> {
    fn default() -> Self {
        Self::new()
    }
}

impl<const N: usize> fmt::Debug for Reserved<N> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Reserved<{N}>")
    }
}

impl<const N: usize> Hash for Reserved<N> {
    /// Nothing: a key is found whether bytes of it are reserved or not.
    fn hash<H: Hasher>(&self, _: &mut H) {}
}

// SAFETY: N bytes, which are zero.
unsafe impl<const N: usize> Described for Reserved<N> {
    fn name() -> Option<Cow<'static, str>> {
        None
    }

    fn layout(_: &mut Walk) -> Type<String> {
        let size = N as u64;
        Type::Reserved { size, align: 1 }
    }
}

// SAFETY: no pointers, no interior mutability, a fixed layout.
unsafe impl<const N: usize> PSafe for Reserved<N> {
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
        Some(Self::new())
    }
}

impl<P, const N: usize> Root<P> for Reserved<N> {
    fn init(_: &Journal<P>) -> Self {
        Self::new()
    }
}

impl<P, const N: usize> PClone<P> for Reserved<N> {
    fn pclone(&self, _: &Journal<P>) -> Self {
        *self
    }
}
