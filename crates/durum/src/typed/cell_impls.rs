//! What cells have in common: what they are in the pool, and what they begin with.

/// For a cell with a field `value`. `$what` is what its documentation calls it, and `$check` is evaluated by the
/// compiler when one is made. `Threads` is its shadow, `WORDS` and the field `word` say whether it has one.
macro_rules! cell {
    ($cell:ident<T $(: $bound:ident)?> { $what:literal, check: $check:expr, Threads: $threads:ident, WORDS: $words:expr $(, $word:ident)? }) => {
        impl<T: PSafe $(+ $bound)?, P: PoolType> $cell<T, P> {
            #[doc = concat!($what, " with this value, not in the pool yet.")]
            #[inline]
            pub fn new(value: T, _: &Journal<P>) -> Self {
                Self::with(value)
            }

            pub(super) fn with(value: T) -> Self {
                const { $check };
                Self {
                    $($word: Default::default(),)?
                    value: UnsafeCell::new(value),
                    _pool: PhantomData,
                }
            }
        }

        // SAFETY: the compiler measures size and offsets, and the type says where its value has pointers.
        unsafe impl<T: PSafe $(+ $bound)?, P: PoolType> $crate::described::Described for $cell<T, P> {
            fn name() -> Option<::std::borrow::Cow<'static, str>> {
                Some(format!(concat!(stringify!($cell), "<{}>"), name_of::<T>()).into())
            }

            fn layout(walk: &mut $crate::described::Walk) -> ::durum_format::types::Type<String> {
                $crate::typed::layout::structure!(name_of::<Self>(), {
                    $($word: ::durum_format::types::Type::Volatile { size: 8, align: 8 },)?
                    value: T::layout(walk),
                })
            }
        }

        // SAFETY: as the value; used by threads as the shadow says.
        unsafe impl<T: PSafe $(+ $bound)?, P: PoolType> PSafe for $cell<T, P> {
            type Threads = $threads<T::Threads>;
            type Kind = <T::Kind as $crate::typed::pointer_kind::PointerKind>::AsPart;
            const OWNERS: bool = T::OWNERS;
            const POINTERS: bool = T::POINTERS;
            const WORDS: bool = $words;
            const POOL: $crate::typed::pool_id::PoolId = T::POOL.and(P::ID);
            // Its word is zero in every pool that was copied.
            const ZERO_IS_VALUE: bool = T::ZERO_IS_VALUE;

            #[inline]
            fn owners(&self) -> i64 {
                if !T::OWNERS {
                    return 0;
                }
                // SAFETY: the caller is alone with what the cell lies in, and nobody writes now: whoever makes a `&mut`
                // counts the handles that it sees.
                unsafe { (*self.value.get()).owners() }
            }

            fn __any_value() -> Option<Self> {
                Some(Self::with(T::__any_value()?))
            }
        }

        impl<T: PSafe $(+ $bound)?, P: PoolType> ::std::panic::UnwindSafe for $cell<T, P> {}
        impl<T: PSafe $(+ $bound)?, P: PoolType> ::std::panic::RefUnwindSafe for $cell<T, P> {}

        impl<T: PSafe + Default $(+ $bound)?, P: PoolType> Default for $cell<T, P> {
            fn default() -> Self {
                Self::with(T::default())
            }
        }

        impl<T: $crate::typed::values::Root<P> $(+ $bound)?, P: PoolType> $crate::typed::values::Root<P> for $cell<T, P> {
            fn init(j: &Journal<P>) -> Self {
                Self::with(T::init(j))
            }
        }
    };
}

pub(super) use cell;
