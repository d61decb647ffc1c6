//! What a wait-free reader of a Twin pool sees.

use std::borrow::Cow;
use std::fmt;
use std::marker::PhantomData;
use std::ops::Range;
use std::ptr;

use durum_format::types::Type;
use durum_service::EngineKind;

use super::copies::Copies;
use crate::described::{Described, Walk};
use crate::error::{Error, Result};
use crate::fault::forked;
use crate::opened::{Pool, PoolInner};
use crate::reading::{Entered, Frame, INNERMOST};
use crate::tx::Tx;

/// The distance of the copy that this thread sees of a pool already: it reads it, or it is the thread that changes it
/// and sees what it has changed.
#[inline]
fn seen_already(pool: &PoolInner) -> Option<usize> {
    let mut next = INNERMOST.get();
    // SAFETY: null, or a frame further down on this thread's stack, where it stays until its `Entered` is dropped.
    while let Some(frame) = unsafe { next.as_ref() } {
        if frame.pool == pool.key {
            return Some(frame.distance);
        }
        next = frame.around;
    }
    let copies = || pool.kept::<Copies>();
    let changes = Tx::levels() > 0 && copies().is_some_and(|copies| copies.turn.is_mine());
    changes.then_some(0)
}

/// One of the two copies of a pool, as it was when a transaction committed; see [`Pool::read_copy`].
#[derive(Debug)]
pub struct View<'a> {
    /// What to add to the address of an object to get the copy that is seen.
    distance: usize,
    pool: &'a PoolInner,
    /// A reader leaves where it came.
    _one_thread: PhantomData<*mut ()>,
}

impl View<'_> {
    /// What to add to the address of any object of the pool to get what this view shows of it: 0, or the distance
    /// between the copies.
    pub fn distance(&self) -> usize {
        self.distance
    }

    /// Where objects of the pool lie, and of other pools with the same address range: what lies elsewhere has no copy.
    pub fn addresses(&self) -> Range<usize> {
        let info = &self.pool.store.info;
        let base = info.base as usize;
        base..base + info.space_size as usize
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

/// A pointer in a pool that readers follow in the copy that they see: a *synthetic pointer* (Romulus, SPAA'18, §5.3).
/// As large as a plain one, and null or not.
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

// SAFETY: a native pointer, described as one.
unsafe impl<T: Described> Described for LrRef<T> {
    fn name() -> Option<Cow<'static, str>> {
        None
    }

    fn layout(walk: &mut Walk) -> Type<String> {
        walk.pointer_to::<T>()
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

impl Pool {
    /// Runs `body` on what has been committed, beside a transaction that changes the pool, and without waiting for it:
    /// wait-free. For Twin pools that are open with [`TwinMode::LeftRight`](crate::TwinMode).
    ///
    /// The view shows one copy of the pool, all of it as of one moment: every transaction whose commit has returned is
    /// in it, and it is durable. It does not change while `body` runs. A transaction that commits meanwhile waits,
    /// after it has become durable, until `body` has returned: do not wait in it for other threads' transactions. What
    /// is changed without a transaction, and made durable by [`Pool::persist`], may be seen in parts.
    ///
    /// Within another `read_copy` of the pool on this thread it is a call, which shows what that one shows. Within an
    /// update or a transaction of this thread that changes the pool it is a call, too, and shows what that has changed.
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
    /// `NoCopies` where the pool is of another engine or open in another mode; `Forked`, `Poisoned`. Inside of `body`
    /// this thread's transactions and updates of Twin pools are refused with `ReadsCopy`: they would wait for somebody
    /// who waits for this reader.
    #[inline]
    pub fn read_copy<R>(&self, body: impl FnOnce(&View<'_>) -> R) -> Result<R> {
        if forked() {
            return Err(Error::Forked);
        }
        let pool = &*self.inner;
        pool.check_readable()?;
        let view = |distance| View {
            distance,
            pool,
            _one_thread: PhantomData,
        };
        let Some(left_right) = pool.kept().and_then(Copies::left_right) else {
            // Nobody changes what is open for reading only.
            if pool.is_read_only && pool.kind == EngineKind::Twin {
                return Ok(body(&view(0)));
            }
            return Err(Error::NoCopies {
                pool: pool.name.clone(),
            });
        };
        if let Some(distance) = seen_already(pool) {
            return Ok(body(&view(distance)));
        }
        let reading = left_right.come();
        let frame = Frame {
            pool: pool.key,
            distance: match reading.is_main {
                true => 0,
                false => pool.store.info.space_size as usize,
            },
            around: INNERMOST.get(),
        };
        let _entered = Entered::new(&frame);
        Ok(body(&view(frame.distance)))
    }
}
