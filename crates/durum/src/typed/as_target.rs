//! Traits that pointers, guards and collections implement as what they lead to.

/// `[generics] Type to Target: traits` implements these traits by those of the target, where it has them.
macro_rules! as_target {
    ($($generics:tt $type:ty $(, to $target:ty)?: $($trait:ident)+;)*) => { $(
        $crate::typed::as_target::as_target! { @each $generics ($type) ($($target)?) $($trait)+ }
    )* };
    (@each $generics:tt $type:tt $target:tt $($trait:ident)+) => { $(
        $crate::typed::as_target::as_target! { @$trait $generics $type $target }
    )+ };
    (@Debug $generics:tt $type:tt $target:tt) => {
        $crate::typed::as_target::as_target! { @format Debug $generics $type $target }
    };
    (@Display $generics:tt $type:tt $target:tt) => {
        $crate::typed::as_target::as_target! { @format Display $generics $type $target }
    };
    (@format $trait:ident [$($generics:tt)*] ($type:ty) ($($target:ty)?)) => {
        impl<$($generics)*> ::std::fmt::$trait for $type $(where $target: ::std::fmt::$trait)? {
            fn fmt(&self, f: &mut ::std::fmt::Formatter<'_>) -> ::std::fmt::Result {
                (**self).fmt(f)
            }
        }
    };
    (@PartialEq [$($generics:tt)*] ($type:ty) ($($target:ty)?)) => {
        impl<$($generics)*> PartialEq for $type $(where $target: PartialEq)? {
            fn eq(&self, other: &Self) -> bool {
                **self == **other
            }
        }
    };
    (@Eq [$($generics:tt)*] ($type:ty) ($($target:ty)?)) => {
        impl<$($generics)*> Eq for $type $(where $target: Eq)? {}
    };
    (@PartialOrd [$($generics:tt)*] ($type:ty) ($($target:ty)?)) => {
        #[allow(clippy::non_canonical_partial_ord_impl, reason = "the target may have no `Ord`")]
        impl<$($generics)*> PartialOrd for $type $(where $target: PartialOrd)? {
            fn partial_cmp(&self, other: &Self) -> Option<::std::cmp::Ordering> {
                (**self).partial_cmp(&**other)
            }
        }
    };
    (@Ord [$($generics:tt)*] ($type:ty) ($($target:ty)?)) => {
        impl<$($generics)*> Ord for $type $(where $target: Ord)? {
            fn cmp(&self, other: &Self) -> ::std::cmp::Ordering {
                (**self).cmp(&**other)
            }
        }
    };
    (@Hash [$($generics:tt)*] ($type:ty) ($($target:ty)?)) => {
        impl<$($generics)*> ::std::hash::Hash for $type $(where $target: ::std::hash::Hash)? {
            fn hash<H: ::std::hash::Hasher>(&self, state: &mut H) {
                (**self).hash(state);
            }
        }
    };
}

pub(super) use as_target;
