//! `pool!`, which declares pool types.

/// Declares pool types: `pool!(P)`, `pool!(pub Accounts)`. A program that is built with `panic = "abort"` is refused.
///
/// With a module, `pool!(P, mod p)`, it also makes one of aliases without the pool parameter: `p::Pbox<T>` is `Pbox<T,
/// P>`.
///
/// ```
/// use durum::typed::*;
/// pool!(P, mod p);
///
/// fn main() -> durum::Result<()> {
///     # let dir = tempfile::tempdir_in("/dev/shm").unwrap();
///     # let path = dir.path().join("store");
///     let root = P::open::<p::PCell<u64>>(&path, Flags::CREATE)?;
///     P::transaction(|j| root.set(root.get() + 1, j))?;
///     assert_eq!(root.get(), 1);
///     Ok(())
/// }
/// ```
#[macro_export]
macro_rules! pool {
    ($(#[$attribute:meta])* $visibility:vis $name:ident) => {
        $(#[$attribute])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        $visibility enum $name {}

        const _: () = {
            #[cfg(panic = "abort")]
            ::core::compile_error!(
                "typed pools need unwinding: where a pool has no room left, or cannot be written, a transaction leaves its closure by it, is rolled back and returns the error. \
                 Remove `panic = \"abort\"` from the profile; or use the untyped interface, `durum::Pool`, whose closures return errors"
            );
            static BINDING: $crate::typed::__private::Binding = $crate::typed::__private::Binding::new(::core::stringify!($name));
            ::std::thread_local! {
                static CURRENT: ::core::cell::Cell<*const $crate::typed::__private::TypedTx> =
                    const { ::core::cell::Cell::new(::core::ptr::null()) };
            }

            // SAFETY: one static and one thread-local, of this type alone.
            unsafe impl $crate::typed::__private::HasBinding for $name {
                #[inline(always)]
                fn binding() -> &'static $crate::typed::__private::Binding {
                    &BINDING
                }

                #[inline(always)]
                fn current() -> *const $crate::typed::__private::TypedTx {
                    CURRENT.with(::core::cell::Cell::get)
                }

                unsafe fn set_current(tx: *const $crate::typed::__private::TypedTx) {
                    CURRENT.with(|current| current.set(tx));
                }
            }

            // SAFETY: the place is that of the declaration.
            unsafe impl $crate::typed::PoolType for $name {
                const ID: $crate::typed::PoolId = $crate::typed::PoolId::of_place(::core::concat!(
                    ::core::module_path!(), ":", ::core::line!(), ":", ::core::column!(), ":", ::core::stringify!($name)
                ));
            }
        };
    };
    ($(#[$attribute:meta])* $visibility:vis $name:ident, mod $module:ident) => {
        $crate::pool!($(#[$attribute])* $visibility $name);

        #[doc = ::core::concat!("The types of durum's typed interface for the pool type `", ::core::stringify!($name), "`.")]
        #[allow(dead_code, unused_imports, missing_docs)]
        $visibility mod $module {
            use super::$name as TheirPool;
            pub type Journal = $crate::typed::Journal<TheirPool>;
            pub type Pbox<T> = $crate::typed::Pbox<T, TheirPool>;
            pub type Prc<T> = $crate::typed::Prc<T, TheirPool>;
            pub type Parc<T> = $crate::typed::Parc<T, TheirPool>;
            pub type PWeak<T, K = $crate::typed::Shared> = $crate::typed::PWeak<T, TheirPool, K>;
            pub type VWeak<T, K = $crate::typed::Shared> = $crate::typed::VWeak<T, TheirPool, K>;
            pub type PCell<T> = $crate::typed::PCell<T, TheirPool>;
            pub type PRefCell<T> = $crate::typed::PRefCell<T, TheirPool>;
            pub type PMutex<T> = $crate::typed::PMutex<T, TheirPool>;
            pub type PVec<T> = $crate::typed::PVec<T, TheirPool>;
            pub type PHashMap<K, V> = $crate::typed::PHashMap<K, V, TheirPool>;
            pub type PBTreeMap<K, V> = $crate::typed::PBTreeMap<K, V, TheirPool>;
            pub type PString = $crate::typed::PString<TheirPool>;
            pub type Exports<T, K = $crate::typed::Shared> = $crate::typed::Exports<T, TheirPool, K>;
            pub type Pptr<T, Q, K = $crate::typed::Shared> = $crate::typed::Pptr<T, TheirPool, Q, K>;
        }
    };
}
