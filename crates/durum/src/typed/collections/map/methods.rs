//! Methods of std's maps that need no more than the place of an entry.

/// For a map with the field `len`, and with the methods `find`, which gives the place of a key's entry, `insert` and
/// `remove_entry`. Keys are looked for by what has the bounds.
macro_rules! methods {
    ($map:ident, $($bound:ident)+) => {
        impl<K: PSafe, V: PSafe, P: PoolType> $map<K, V, P> {
            /// The number of entries.
            pub fn len(&self) -> usize {
                self.len
            }

            /// Whether there are no entries.
            pub fn is_empty(&self) -> bool {
                self.len == 0
            }
        }

        impl<K: PSafe $(+ $bound)+, V: PSafe, P: PoolType> $map<K, V, P> {
            /// The value of a key.
            #[inline]
            pub fn get<Q>(&self, key: &Q) -> Option<&V>
            where
                K: ::std::borrow::Borrow<Q>,
                Q: $($bound +)+ ?Sized,
            {
                let (_, value) = self.get_key_value(key)?;
                Some(value)
            }

            /// The entry of a key.
            #[inline]
            pub fn get_key_value<Q>(&self, key: &Q) -> Option<(&K, &V)>
            where
                K: ::std::borrow::Borrow<Q>,
                Q: $($bound +)+ ?Sized,
            {
                let place = self.find(key)?;
                // SAFETY: an entry, borrowed as the map is.
                Some(unsafe { place.entry() })
            }

            /// The value of a key, to be changed: announced.
            #[inline]
            pub fn get_mut<Q>(&mut self, key: &Q) -> Option<&mut V>
            where
                K: ::std::borrow::Borrow<Q>,
                Q: $($bound +)+ ?Sized,
            {
                let place = self.find(key)?;
                // SAFETY: an entry, borrowed as the map is.
                Some(unsafe { place.value_to_change($crate::typed::journal::current_tx::<P>()) })
            }

            /// Whether there is an entry with this key.
            #[inline]
            pub fn contains_key<Q>(&self, key: &Q) -> bool
            where
                K: ::std::borrow::Borrow<Q>,
                Q: $($bound +)+ ?Sized,
            {
                self.find(key).is_some()
            }

            /// Takes the value of a key out.
            pub fn remove<Q>(&mut self, key: &Q) -> Option<V>
            where
                K: ::std::borrow::Borrow<Q>,
                Q: $($bound +)+ ?Sized,
            {
                let (_, value) = self.remove_entry(key)?;
                Some(value)
            }

            /// Inserts what an iterator gives.
            pub fn extend(&mut self, entries: impl IntoIterator<Item = (K, V)>, j: &Journal<P>) {
                for (key, value) in entries {
                    self.insert(key, value, j);
                }
            }
        }
    };
}

pub(in crate::typed::collections) use methods;
