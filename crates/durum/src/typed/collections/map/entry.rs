//! `Entry` of a map, as std's maps have it.

/// For a map with these methods: `place_of` gives the place of an entry that is `$at`, `take` takes it out, and `put`
/// inserts one whose key is not there, in the `$gap`.
macro_rules! entries {
    ($map:ident, K: [$($bound:tt)*], $at:ty, $gap:ty) => {
        #[doc = concat!("Where the entry of a key is or would be: [`", stringify!($map), "::entry`].")]
        pub enum Entry<'a, K: PSafe, V: PSafe, P: PoolType> {
            /// There is one.
            Occupied(OccupiedEntry<'a, K, V, P>),
            /// There is none.
            Vacant(VacantEntry<'a, K, V, P>),
        }

        #[doc = concat!("An entry of a [`", stringify!($map), "`].")]
        pub struct OccupiedEntry<'a, K: PSafe, V: PSafe, P: PoolType> {
            map: &'a mut $map<K, V, P>,
            at: $at,
            tx: &'a $crate::typed::typed_tx::TypedTx,
        }

        #[doc = concat!("Room for an entry of a [`", stringify!($map), "`].")]
        pub struct VacantEntry<'a, K: PSafe, V: PSafe, P: PoolType> {
            map: &'a mut $map<K, V, P>,
            gap: $gap,
            key: K,
            tx: &'a $crate::typed::typed_tx::TypedTx,
        }

        impl<'a, K: PSafe $($bound)*, V: PSafe, P: PoolType> Entry<'a, K, V, P> {
            /// The key.
            pub fn key(&self) -> &K {
                match self {
                    Self::Occupied(entry) => entry.key(),
                    Self::Vacant(entry) => entry.key(),
                }
            }

            /// The value, to be changed: announced. Inserts `value` if there is none.
            pub fn or_insert(self, value: V) -> &'a mut V {
                self.or_insert_with(|| value)
            }

            /// The value, to be changed: announced. Inserts what `make` gives if there is none.
            pub fn or_insert_with(self, make: impl FnOnce() -> V) -> &'a mut V {
                self.or_insert_with_key(|_| make())
            }

            /// The value, to be changed: announced. Inserts what `make` gives for the key if there is none.
            pub fn or_insert_with_key(self, make: impl FnOnce(&K) -> V) -> &'a mut V {
                match self {
                    Self::Occupied(entry) => entry.into_mut(),
                    Self::Vacant(entry) => {
                        let value = make(entry.key());
                        entry.insert(value)
                    }
                }
            }

            /// The value, to be changed: announced. Inserts the default if there is none.
            pub fn or_default(self) -> &'a mut V
            where
                V: Default,
            {
                self.or_insert_with(V::default)
            }

            /// Lets `change` change the value, which is announced, if there is one.
            pub fn and_modify(mut self, change: impl FnOnce(&mut V)) -> Self {
                if let Self::Occupied(entry) = &mut self {
                    change(entry.get_mut());
                }
                self
            }
        }

        impl<'a, K: PSafe $($bound)*, V: PSafe, P: PoolType> OccupiedEntry<'a, K, V, P> {
            pub(super) fn new(map: &'a mut $map<K, V, P>, at: $at, tx: &'a $crate::typed::typed_tx::TypedTx) -> Self {
                Self { map, at, tx }
            }

            fn place(&self) -> Place<K, V> {
                $map::<K, V, P>::place_of(&self.at)
            }

            /// The key.
            pub fn key(&self) -> &K {
                // SAFETY: an entry, borrowed as the map is.
                unsafe { self.place().entry().0 }
            }

            /// The value.
            pub fn get(&self) -> &V {
                // SAFETY: an entry, borrowed as the map is.
                unsafe { self.place().entry().1 }
            }

            /// The value, to be changed: announced.
            pub fn get_mut(&mut self) -> &mut V {
                // SAFETY: an entry, borrowed as the map is.
                unsafe { self.place().value_to_change(self.tx) }
            }

            /// The value, to be changed as long as the map is borrowed: announced.
            pub fn into_mut(self) -> &'a mut V {
                // SAFETY: an entry, borrowed as the map is.
                unsafe { self.place().value_to_change(self.tx) }
            }

            /// Replaces the value, and gives the old one.
            pub fn insert(&mut self, value: V) -> V {
                self.place().replace_value(value, self.tx)
            }

            /// Takes the value out.
            pub fn remove(self) -> V {
                self.remove_entry().1
            }

            /// Takes the entry out.
            pub fn remove_entry(mut self) -> (K, V) {
                self.map.take(&mut self.at, self.tx)
            }
        }

        impl<'a, K: PSafe $($bound)*, V: PSafe, P: PoolType> VacantEntry<'a, K, V, P> {
            pub(super) fn new(map: &'a mut $map<K, V, P>, gap: $gap, key: K, tx: &'a $crate::typed::typed_tx::TypedTx) -> Self {
                Self { map, gap, key, tx }
            }

            /// The key that an entry would have.
            pub fn key(&self) -> &K {
                &self.key
            }

            /// Gives the key back.
            pub fn into_key(self) -> K {
                self.key
            }

            /// Inserts an entry. The value can be changed.
            pub fn insert(mut self, value: V) -> &'a mut V {
                let place = self.map.put(&mut self.gap, self.key, value, self.tx);
                // SAFETY: the new entry, borrowed as the map is.
                unsafe { place.value_to_change(self.tx) }
            }
        }

        impl<K: PSafe $($bound)* + ::std::fmt::Debug, V: PSafe + ::std::fmt::Debug, P: PoolType> ::std::fmt::Debug for Entry<'_, K, V, P> {
            fn fmt(&self, f: &mut ::std::fmt::Formatter<'_>) -> ::std::fmt::Result {
                match self {
                    Self::Occupied(entry) => entry.fmt(f),
                    Self::Vacant(entry) => entry.fmt(f),
                }
            }
        }

        impl<K: PSafe $($bound)* + ::std::fmt::Debug, V: PSafe + ::std::fmt::Debug, P: PoolType> ::std::fmt::Debug
            for OccupiedEntry<'_, K, V, P>
        {
            fn fmt(&self, f: &mut ::std::fmt::Formatter<'_>) -> ::std::fmt::Result {
                f.debug_struct("OccupiedEntry")
                    .field("key", self.key())
                    .field("value", self.get())
                    .finish()
            }
        }

        impl<K: PSafe $($bound)* + ::std::fmt::Debug, V: PSafe, P: PoolType> ::std::fmt::Debug for VacantEntry<'_, K, V, P> {
            fn fmt(&self, f: &mut ::std::fmt::Formatter<'_>) -> ::std::fmt::Result {
                f.debug_tuple("VacantEntry").field(self.key()).finish()
            }
        }
    };
}

pub(in crate::typed::collections) use entries;
