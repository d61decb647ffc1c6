//! What all collections are in a pool: a handle, as long as they have allocated something.

/// For a collection with a constant `new` and a method `extend`. Its field `$address` is where what it has allocated
/// lies, or 0; `$extent` is how much of that `$drop` drops.
macro_rules! collection {
    ($collection:ident<$($part:ident),+> of $item:ty {
        Threads: $threads:ty,
        inserts where: [$($bound:tt)*],
        address: $address:ident,
        extent: $extent:ident,
        drop: $drop:expr,
    }) => {
        // SAFETY: a handle, if it has allocated something; used by threads as what is in it.
        unsafe impl<$($part: PSafe,)+ P: PoolType> PSafe for $collection<$($part,)+ P> {
            type Threads = ::std::marker::PhantomData<$threads>;
            type Kind = $crate::typed::pointer_kind::Pointers;
            const OWNERS: bool = true;
            const WORDS: bool = false;
            const POOL: $crate::typed::pool_id::PoolId = P::ID;
            // One that is empty has allocated nothing; in a vector of what has no bytes there is room at once.
            const ZERO_IS_VALUE: bool = size_of::<$item>() != 0;

            #[inline]
            fn owners(&self) -> i64 {
                i64::from(self.$address != 0)
            }
        }

        impl<$($part: PSafe,)+ P: PoolType> ::std::panic::UnwindSafe for $collection<$($part,)+ P> {}
        impl<$($part: PSafe,)+ P: PoolType> ::std::panic::RefUnwindSafe for $collection<$($part,)+ P> {}

        impl<$($part: PSafe,)+ P: PoolType> Default for $collection<$($part,)+ P> {
            fn default() -> Self {
                Self::new()
            }
        }

        impl<$($part: PSafe,)+ P: PoolType> $crate::typed::values::Root<P> for $collection<$($part,)+ P> {
            fn init(_: &$crate::typed::journal::Journal<P>) -> Self {
                Self::new()
            }
        }

        impl<$($part: PSafe,)+ P: PoolType> FromIterator<$item> for $collection<$($part,)+ P>
        where
            $($bound)*
        {
            /// # Panics
            /// Outside of a transaction on the pool.
            fn from_iter<I: IntoIterator<Item = $item>>(items: I) -> Self {
                let mut made = Self::new();
                made.extend(items, $crate::typed::journal::current_journal());
                made
            }
        }

        impl<$($part: PSafe,)+ P: PoolType> Extend<$item> for $collection<$($part,)+ P>
        where
            $($bound)*
        {
            /// # Panics
            /// Outside of a transaction on the pool.
            fn extend<I: IntoIterator<Item = $item>>(&mut self, items: I) {
                $collection::extend(self, items, $crate::typed::journal::current_journal());
            }
        }

        impl<$($part: PSafe,)+ P: PoolType> Drop for $collection<$($part,)+ P> {
            fn drop(&mut self) {
                if self.$address == 0 {
                    return;
                }
                let tx = $crate::typed::journal::current_tx::<P>();
                tx.gain(-1);
                tx.queue_drop($crate::typed::typed_tx::QueuedDrop {
                    address: self.$address,
                    extent: self.$extent,
                    drop: $drop,
                });
            }
        }
    };
}

pub(in crate::typed::collections) use collection;
