//! What a wait-free reader of a Twin pool sees.

use std::cell::Cell;
use std::fmt;
use std::marker::PhantomData;
use std::ptr;

use super::Copies;
use super::left_right::Reading;
use crate::error::{Error, Result};
use crate::fault::forked;
use crate::pool::Pool;

thread_local! {
    /// How many views this thread has.
    static VIEWS: Cell<usize> = const { Cell::new(0) };
}

/// Whether this thread has a view of any pool.
pub(crate) fn is_reading() -> bool {
    VIEWS.get() > 0
}

/// One of the two copies of a pool, as it was when a transaction committed; see [`Pool::read_copy`].
#[derive(Debug)]
pub struct View<'a> {
    /// What to add to the address of an object to get the copy that is seen.
    distance: usize,
    _reading: Reading<'a>,
    /// A reader leaves where it came.
    _one_thread: PhantomData<*mut ()>,
}

impl Drop for View<'_> {
    fn drop(&mut self) {
        VIEWS.set(VIEWS.get() - 1);
    }
}

impl View<'_> {
    /// What to add to the address of any object of the pool to get what this view shows of it: 0, or the distance between the copies.
    pub fn distance(&self) -> usize {
        self.distance
    }

    /// The object that `pointer` points to, as this view shows it. `None` for null.
    ///
    /// Pointers in it are those of the objects themselves: follow them by this function, or by [`LrRef::get`].
    ///
    /// # Safety
    /// `pointer` is null or points to a live object of the pool, of this type.
    #[inline]
    pub unsafe fn get<T>(&self, pointer: *const T) -> Option<&T> {
        if pointer.is_null() {
            return None;
        }
        let address = pointer.expose_provenance() + self.distance;
        // SAFETY: the copy of a live object, which nobody changes while the view is there.
        Some(unsafe { &*ptr::with_exposed_provenance(address) })
    }
}

/// A pointer in a pool that readers follow in the copy that they see: a *synthetic pointer* (Romulus, SPAA'18, §5.3). As large as a plain one, and null or not.
#[repr(transparent)]
pub struct LrRef<T>(*mut T);

impl<T> LrRef<T> {
    /// A pointer to an object of the same pool.
    pub const fn new(object: *mut T) -> Self {
        Self(object)
    }

    /// One that points nowhere.
    pub const fn null() -> Self {
        Self(ptr::null_mut())
    }

    /// The object itself, for who changes it.
    pub const fn object(&self) -> *mut T {
        self.0
    }

    /// What the view shows of the object. `None` for null.
    ///
    /// # Safety
    /// The pointer is null, or the object is live and of the view's pool.
    #[inline]
    pub unsafe fn get<'v>(&self, view: &'v View<'_>) -> Option<&'v T> {
        // SAFETY: as the caller promises.
        unsafe { view.get(self.0) }
    }
}

impl<T> Clone for LrRef<T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for LrRef<T> {}

impl<T> PartialEq for LrRef<T> {
    fn eq(&self, other: &Self) -> bool {
        self.0 == other.0
    }
}

impl<T> Eq for LrRef<T> {}

impl<T> fmt::Debug for LrRef<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl Copies {
    /// A reader comes, if the pool lets readers read beside a writer. `distance` is that between the copies.
    #[inline]
    fn view(&self, distance: usize) -> Option<View<'_>> {
        let reading = self.reader_comes()?;
        VIEWS.set(VIEWS.get() + 1);
        Some(View {
            distance: match reading.is_main {
                true => 0,
                false => distance,
            },
            _reading: reading,
            _one_thread: PhantomData,
        })
    }
}

impl Pool {
    /// Runs `body` on what has been committed, beside a transaction that changes the pool, and without waiting for it: wait-free. For Twin pools that are open with
    /// [`TwinMode::LeftRight`](crate::TwinMode).
    ///
    /// The view shows one copy of the pool, all of it as of one moment: every transaction whose commit has returned is in it, and it is durable. It does not change while
    /// `body` runs. A transaction that commits meanwhile waits, after it has become durable, until `body` has returned: do not wait in it for other threads' transactions. What is changed
    /// without a transaction, and made durable by [`Pool::persist`], may be seen in parts.
    ///
    /// ```
    /// use durum::{Engine, LrRef, PoolOptions, Store, StoreOptions, TwinMode};
    /// #[repr(C)]
    /// struct Root { newest: LrRef<u64> }
    /// durum::describe!(Root as "root" { newest });
    /// # let dir = tempfile::tempdir_in("/dev/shm").unwrap();
    /// # let path = dir.path().join("store");
    /// let store = Store::create(&path, StoreOptions::new())?;
    /// let options = PoolOptions::new().engine(Engine::Twin).twin_mode(TwinMode::LeftRight);
    /// let pool = store.create_pool("numbers", options)?;
    /// let root = pool.root::<Root>()?;
    /// pool.transaction(|tx| {
    ///     let number = tx.alloc::<u64>()?;
    ///     // SAFETY: a fresh object, and the root, which is live as long as the pool is open.
    ///     unsafe {
    ///         number.write(42);
    ///         tx.set(&raw mut (*root).newest, LrRef::new(number))
    ///     }
    /// })?;
    /// // SAFETY: the root is live, and what it points to is while a view shows it.
    /// let seen = pool.read_copy(|view| unsafe {
    ///     view.get(root).and_then(|root| root.newest.get(view)).copied()
    /// })?;
    /// assert_eq!(seen, Some(42));
    /// # Ok::<(), durum::Error>(())
    /// ```
    ///
    /// # Errors
    /// `NoCopies` where the pool is of another engine or open in another mode; `Forked`, `Poisoned`. Inside of `body` the first change of such a pool by a transaction of this
    /// thread is refused with `ReadsCopy`.
    #[inline]
    pub fn read_copy<R>(&self, body: impl FnOnce(&View<'_>) -> R) -> Result<R> {
        if forked() {
            return Err(Error::Forked);
        }
        self.inner.check_usable()?;
        let distance = self.inner.store.info.space_size as usize;
        let copies = self.inner.copies.as_ref();
        let Some(view) = copies.and_then(|copies| copies.view(distance)) else {
            return Err(Error::NoCopies {
                pool: self.inner.name.clone(),
            });
        };
        Ok(body(&view))
    }
}
