//! Iterators over a map, as std's maps have them.

use std::iter::FusedIterator;

/// The places of a map's entries, and how many are left.
#[derive(Clone)]
pub(in crate::typed::collections) struct Places<I> {
    places: I,
    left: usize,
}

impl<I> Places<I> {
    pub(in crate::typed::collections) fn new(places: I, left: usize) -> Self {
        Self { places, left }
    }
}

impl<I: Iterator> Iterator for Places<I> {
    type Item = I::Item;

    #[inline]
    fn next(&mut self) -> Option<I::Item> {
        let place = self.places.next()?;
        self.left -= 1;
        Some(place)
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        (self.left, Some(self.left))
    }
}

impl<I: DoubleEndedIterator> DoubleEndedIterator for Places<I> {
    fn next_back(&mut self) -> Option<I::Item> {
        let place = self.places.next_back()?;
        self.left -= 1;
        Some(place)
    }
}

impl<I: Iterator> ExactSizeIterator for Places<I> {}
impl<I: Iterator> FusedIterator for Places<I> {}

/// Iterators over what another one gives, which is the field `of`: they make something of each item. Those with the
/// ends `[both]` have two, as that one.
macro_rules! iterator {
    ($ends:tt $([$($generics:tt)*] $name:ident<$($argument:tt),*> of $of:tt gives $item:ty, |$this:ident, $given:ident| $made:expr;)*) => { $(
        impl<$($generics)*> Iterator for $name<$($argument),*> {
            type Item = $item;

            #[inline]
            fn next(&mut self) -> Option<$item> {
                let $this = self;
                let $given = $this.$of.next()?;
                $made
            }

            fn size_hint(&self) -> (usize, Option<usize>) {
                self.$of.size_hint()
            }
        }

        impl<$($generics)*> ::std::iter::FusedIterator for $name<$($argument),*> {}

        $crate::typed::collections::map::iter::last_end! {
            $ends [$($generics)*] $name<$($argument),*> of $of gives $item, |$this, $given| $made
        }
    )* };
}

/// Iterators that know how many items are left.
macro_rules! counted {
    ($([$($generics:tt)*] $name:ident<$($argument:tt),*>;)*) => { $(
        impl<$($generics)*> ExactSizeIterator for $name<$($argument),*> {}

        impl<$($generics)*> ::std::fmt::Debug for $name<$($argument),*> {
            fn fmt(&self, f: &mut ::std::fmt::Formatter<'_>) -> ::std::fmt::Result {
                write!(f, concat!(stringify!($name), "({} left)"), self.len())
            }
        }
    )* };
}

/// The same from the other end.
macro_rules! last_end {
    ([one] $($rest:tt)*) => {};
    ([both] [$($generics:tt)*] $name:ident<$($argument:tt),*> of $of:tt gives $item:ty, |$this:ident, $given:ident| $made:expr) => {
        impl<$($generics)*> DoubleEndedIterator for $name<$($argument),*> {
            fn next_back(&mut self) -> Option<$item> {
                let $this = self;
                let $given = $this.$of.next_back()?;
                $made
            }
        }
    };
}

/// The iterators of a map whose method `places` gives the places of its entries, by an iterator `$walk`, and which has
/// an `IntoIter` of its own.
macro_rules! iterators {
    ($map:ident, $walk:ident, entries $in_order:literal, values $by_key:literal, ends $ends:tt) => {
        #[doc = concat!("The entries of a [`", stringify!($map), "`]", $in_order, ".")]
        pub struct Iter<'a, K: PSafe, V: PSafe> {
            places: $crate::typed::collections::map::iter::Places<$walk<K, V>>,
            _map: ::std::marker::PhantomData<&'a (K, V)>,
        }

        #[doc = concat!("The entries of a [`", stringify!($map), "`]", $in_order, ". Each value is announced when it is given.")]
        pub struct IterMut<'a, K: PSafe, V: PSafe> {
            places: $crate::typed::collections::map::iter::Places<$walk<K, V>>,
            /// None where there is nothing to announce.
            tx: Option<&'a $crate::typed::typed_tx::TypedTx>,
            _map: ::std::marker::PhantomData<&'a mut (K, V)>,
        }

        #[doc = concat!("The keys of a [`", stringify!($map), "`]", $in_order, ".")]
        pub struct Keys<'a, K: PSafe, V: PSafe>(Iter<'a, K, V>);

        #[doc = concat!("The values of a [`", stringify!($map), "`]", $by_key, ".")]
        pub struct Values<'a, K: PSafe, V: PSafe>(Iter<'a, K, V>);

        #[doc = concat!("The values of a [`", stringify!($map), "`]", $by_key, ". Each is announced when it is given.")]
        pub struct ValuesMut<'a, K: PSafe, V: PSafe>(IterMut<'a, K, V>);

        #[doc = concat!("The keys of a [`", stringify!($map), "`], taken out", $in_order, ".")]
        pub struct IntoKeys<K: PSafe, V: PSafe, P: PoolType>(IntoIter<K, V, P>);

        #[doc = concat!("The values of a [`", stringify!($map), "`], taken out", $by_key, ".")]
        pub struct IntoValues<K: PSafe, V: PSafe, P: PoolType>(IntoIter<K, V, P>);

        impl<K: PSafe, V: PSafe, P: PoolType> $map<K, V, P> {
            #[doc = concat!("The entries", $in_order, ".")]
            pub fn iter(&self) -> Iter<'_, K, V> {
                Iter {
                    places: self.places(),
                    _map: ::std::marker::PhantomData,
                }
            }

            #[doc = concat!("The entries", $in_order, ", their values to be changed. Each value is announced when the iterator comes to it.")]
            pub fn iter_mut(&mut self) -> IterMut<'_, K, V> {
                IterMut {
                    places: self.places(),
                    tx: $crate::typed::journal::current_tx_unless::<P>(self.is_empty()),
                    _map: ::std::marker::PhantomData,
                }
            }

            #[doc = concat!("The keys", $in_order, ".")]
            pub fn keys(&self) -> Keys<'_, K, V> {
                Keys(self.iter())
            }

            #[doc = concat!("The values", $by_key, ".")]
            pub fn values(&self) -> Values<'_, K, V> {
                Values(self.iter())
            }

            #[doc = concat!("The values", $by_key, ", to be changed. Each is announced when the iterator comes to it.")]
            pub fn values_mut(&mut self) -> ValuesMut<'_, K, V> {
                ValuesMut(self.iter_mut())
            }

            #[doc = concat!("The keys, taken out", $in_order, ".")]
            pub fn into_keys(self) -> IntoKeys<K, V, P> {
                IntoKeys(self.into_iter())
            }

            #[doc = concat!("The values, taken out", $by_key, ".")]
            pub fn into_values(self) -> IntoValues<K, V, P> {
                IntoValues(self.into_iter())
            }
        }

        $crate::typed::collections::map::iter::iterator! { $ends
            ['a, K: PSafe, V: PSafe] Iter<'a, K, V> of places gives (&'a K, &'a V), |_this, place| {
                // SAFETY: an entry, borrowed as the map is.
                Some(unsafe { place.entry() })
            };
            ['a, K: PSafe, V: PSafe] IterMut<'a, K, V> of places gives (&'a K, &'a mut V), |this, place| {
                let tx = this.tx?;
                // SAFETY: an entry, borrowed as the map is; no other item is of the same one.
                Some(unsafe { (&*place.key(), place.value_to_change(tx)) })
            };
            ['a, K: PSafe, V: PSafe] Keys<'a, K, V> of 0 gives &'a K, |_this, entry| Some(entry.0);
            ['a, K: PSafe, V: PSafe] Values<'a, K, V> of 0 gives &'a V, |_this, entry| Some(entry.1);
            ['a, K: PSafe, V: PSafe] ValuesMut<'a, K, V> of 0 gives &'a mut V, |_this, entry| Some(entry.1);
            [K: PSafe, V: PSafe, P: PoolType] IntoKeys<K, V, P> of 0 gives K, |_this, entry| Some(entry.0);
            [K: PSafe, V: PSafe, P: PoolType] IntoValues<K, V, P> of 0 gives V, |_this, entry| Some(entry.1);
        }

        impl<K: PSafe, V: PSafe, P: PoolType> ::std::iter::FusedIterator for IntoIter<K, V, P> {}

        $crate::typed::collections::map::iter::counted! {
            ['a, K: PSafe, V: PSafe] Iter<'a, K, V>;
            ['a, K: PSafe, V: PSafe] IterMut<'a, K, V>;
            ['a, K: PSafe, V: PSafe] Keys<'a, K, V>;
            ['a, K: PSafe, V: PSafe] Values<'a, K, V>;
            ['a, K: PSafe, V: PSafe] ValuesMut<'a, K, V>;
            [K: PSafe, V: PSafe, P: PoolType] IntoIter<K, V, P>;
            [K: PSafe, V: PSafe, P: PoolType] IntoKeys<K, V, P>;
            [K: PSafe, V: PSafe, P: PoolType] IntoValues<K, V, P>;
        }

        impl<K: PSafe, V: PSafe> Clone for Iter<'_, K, V> {
            fn clone(&self) -> Self {
                Self {
                    places: self.places.clone(),
                    _map: ::std::marker::PhantomData,
                }
            }
        }

        impl<K: PSafe, V: PSafe> Clone for Keys<'_, K, V> {
            fn clone(&self) -> Self {
                Self(self.0.clone())
            }
        }

        impl<K: PSafe, V: PSafe> Clone for Values<'_, K, V> {
            fn clone(&self) -> Self {
                Self(self.0.clone())
            }
        }

        impl<'a, K: PSafe, V: PSafe, P: PoolType> IntoIterator for &'a $map<K, V, P> {
            type Item = (&'a K, &'a V);
            type IntoIter = Iter<'a, K, V>;

            fn into_iter(self) -> Self::IntoIter {
                self.iter()
            }
        }

        impl<'a, K: PSafe, V: PSafe, P: PoolType> IntoIterator for &'a mut $map<K, V, P> {
            type Item = (&'a K, &'a mut V);
            type IntoIter = IterMut<'a, K, V>;

            fn into_iter(self) -> Self::IntoIter {
                self.iter_mut()
            }
        }
    };
}

pub(in crate::typed::collections) use {counted, iterator, iterators, last_end};
