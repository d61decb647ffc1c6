//! What handles have in common: each is a native pointer, and counts as one owner.

/// `[generics] Handle: name, |walk| description, Threads: shadow;`
macro_rules! handles {
    ($([$($generics:tt)*] $handle:ty: $name:expr, |$walk:ident| $pointer:expr, Threads: $threads:ty;)*) => { $(
        // SAFETY: a native pointer, described as one.
        unsafe impl<$($generics)*> $crate::described::Described for $handle {
            fn name() -> Option<::std::borrow::Cow<'static, str>> {
                Some($name.into())
            }

            fn layout($walk: &mut $crate::described::Walk) -> ::durum_format::types::Type<String> {
                $pointer
            }
        }

        // SAFETY: one handle; threads may share what it points to as the shadow says.
        unsafe impl<$($generics)*> PSafe for $handle {
            type Threads = $threads;
            type Kind = $crate::typed::pointer_kind::Handle;
            const OWNERS: bool = true;
            const WORDS: bool = false;
            const POOL: $crate::typed::pool_id::PoolId = P::ID;

            #[inline(always)]
            fn owners(&self) -> i64 {
                1
            }
        }

        impl<$($generics)*> ::std::panic::UnwindSafe for $handle {}
        impl<$($generics)*> ::std::panic::RefUnwindSafe for $handle {}
    )* };
}

pub(super) use handles;
