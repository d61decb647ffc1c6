//! The proof that a pool is open for reading only.

use std::marker::PhantomData;

/// The proof that the pool of a pool type is open for reading only, as long as it is borrowed.
///
/// No transaction runs on it, and none can begin: what only a transaction may look at elsewhere, because others change
/// it, is read by this ([`PMutex::read`](super::PMutex::read), [`PWeak::read`](super::PWeak::read)).
/// [`RootGuard::reading`](super::RootGuard::reading) gives it.
#[derive(Debug)]
pub struct Reading<P>(PhantomData<P>);

impl<P> Reading<P> {
    /// The caller's pool is open so, as long as the reference is used.
    pub(super) fn promised<'a>() -> &'a Self {
        &Self(PhantomData)
    }
}
