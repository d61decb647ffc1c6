//! Traits of std that both maps have.

/// For a map with the methods `get` and `insert`, whose keys have these bounds. `$with_room` makes an empty one.
macro_rules! traits {
    ($map:ident, $($bound:ident)+, $with_room:expr) => {
        impl<K, V, P: PoolType> PClone<P> for $map<K, V, P>
        where
            K: PSafe + PClone<P> $(+ $bound)+,
            V: PSafe + PClone<P>,
        {
            fn pclone(&self, j: &Journal<P>) -> Self {
                let mut copy = $with_room(self.len(), j);
                for (key, value) in self {
                    copy.insert(key.pclone(j), value.pclone(j), j);
                }
                copy
            }
        }

        impl<K, Q, V, P: PoolType> ::std::ops::Index<&Q> for $map<K, V, P>
        where
            K: PSafe + ::std::borrow::Borrow<Q> $(+ $bound)+,
            Q: $($bound +)+ ?Sized,
            V: PSafe,
        {
            type Output = V;

            /// # Panics
            /// If there is no entry with this key.
            #[track_caller]
            fn index(&self, key: &Q) -> &V {
                match self.get(key) {
                    Some(value) => value,
                    None => panic!("no entry of the map has this key"),
                }
            }
        }

        impl<K: PSafe + ::std::fmt::Debug, V: PSafe + ::std::fmt::Debug, P: PoolType> ::std::fmt::Debug for $map<K, V, P> {
            fn fmt(&self, f: &mut ::std::fmt::Formatter<'_>) -> ::std::fmt::Result {
                f.debug_map().entries(self).finish()
            }
        }
    };
}

pub(in crate::typed::collections) use traits;
