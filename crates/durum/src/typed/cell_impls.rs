//! What cells have in common: what they are in the pool, and what they begin with.

/// For a cell with a field `value` and a constructor `with`. `Threads` is its shadow, `WORDS` and the field `word` say
/// whether it has one.
macro_rules! cell {
    ($cell:ident<T $(: $bound:ident)?> { Threads: $threads:ident, WORDS: $words:expr $(, $word:ident)? }) => {
        // SAFETY: the compiler measures size and offsets.
        unsafe impl<T: PSafe $(+ $bound)?, P: PoolType> Described for $cell<T, P> {
            fn name() -> Option<Cow<'static, str>> {
                Some(Cow::Owned(format!(concat!(stringify!($cell), "<{}>"), name_of::<T>())))
            }

            fn layout(walk: &mut Walk) -> Type<String> {
                let fields = vec![
                    $(Field::new(stringify!($word), offset_of!(Self, $word) as u64, Type::Volatile { size: 8, align: 8 }),)?
                    Field::new("value", offset_of!(Self, value) as u64, T::layout(walk)),
                ];
                let (size, align) = (size_of::<Self>() as u64, align_of::<Self>() as u64);
                Type::structure(name_of::<Self>(), size, align, fields)
            }
        }

        // SAFETY: as the value; used by threads as the shadow says.
        unsafe impl<T: PSafe $(+ $bound)?, P: PoolType> PSafe for $cell<T, P> {
            type Threads = $threads<T::Threads>;
            type Kind = <T::Kind as $crate::typed::pointer_kind::PointerKind>::AsPart;
            const OWNERS: bool = T::OWNERS;
            const POINTERS: bool = T::POINTERS;
            const WORDS: bool = $words;
            const POOL: PoolId = T::POOL.and(P::ID);

            #[inline]
            fn owners(&self) -> i64 {
                if !T::OWNERS {
                    return 0;
                }
                // SAFETY: asked by who is alone with what the cell lies in, at moments when nobody writes: the handles
                // that a `&mut` sees are counted by whoever made it.
                unsafe { (*self.value.get()).owners() }
            }
        }

        impl<T: PSafe $(+ $bound)?, P: PoolType> UnwindSafe for $cell<T, P> {}
        impl<T: PSafe $(+ $bound)?, P: PoolType> RefUnwindSafe for $cell<T, P> {}

        impl<T: PSafe + Default $(+ $bound)?, P: PoolType> Default for $cell<T, P> {
            fn default() -> Self {
                Self::with(T::default())
            }
        }

        impl<T: Root<P> $(+ $bound)?, P: PoolType> Root<P> for $cell<T, P> {
            fn init(j: &Journal<P>) -> Self {
                Self::with(T::init(j))
            }
        }
    };
}

pub(super) use cell;
