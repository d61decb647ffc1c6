//! Which pool a type's values belong to, known to the compiler.

/// A pool type's identity, or none, or that of several: what the values of a type can be stored in.
///
/// A pointer says by its type which pool it leads into. What holds one can lie in that pool only, or in none: a pointer
/// from one pool into another would dangle when that one is closed (Corundum Design Goal 2). This is refused when the
/// program is built:
///
/// ```compile_fail
/// use durum::typed::*;
/// pool!(P);
/// pool!(Q);
///
/// fn mix(object: Pbox<u64, P>, j: &Journal<Q>) -> Pbox<Pbox<u64, P>, Q> {
///     Pbox::new(object, j)
/// }
/// fn main() {
///     let _ = mix as fn(_, &_) -> _;
/// }
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PoolId(u128);

impl PoolId {
    /// No pointers: the values can lie in any pool.
    pub const ANY: Self = Self(0);
    const SEVERAL: Self = Self(u128::MAX);

    /// The pool type that is declared at this place (FNV-1a: places differ, and that is enough).
    #[doc(hidden)]
    pub const fn of_place(place: &str) -> Self {
        let bytes = place.as_bytes();
        let mut hash = 0x6c62_272e_07bb_0142_62b8_2175_6295_c58d_u128;
        let mut at = 0;
        while at < bytes.len() {
            hash ^= bytes[at] as u128;
            hash = hash.wrapping_mul(0x0100_0000_0000_0000_0000_013b);
            at += 1;
        }
        // Not one of the two that mean something else.
        Self((hash >> 1) | 1)
    }

    /// Of a value that holds values of both.
    pub const fn and(self, other: Self) -> Self {
        if self.0 == Self::ANY.0 || self.0 == other.0 {
            other
        } else if other.0 == Self::ANY.0 {
            self
        } else {
            Self::SEVERAL
        }
    }

    /// Stops the compiler where the values of a type cannot lie in any pool.
    #[doc(hidden)]
    #[track_caller]
    pub const fn assert_one(self) {
        assert!(
            self.0 != Self::SEVERAL.0,
            "a type has pointers into two pools, and would dangle when one of them is closed: use types of one pool"
        );
    }

    /// Stops the compiler where the values cannot lie in this pool.
    pub(super) const fn assert_fits(self, pool: Self) {
        assert!(
            self.0 == Self::ANY.0 || self.0 == pool.0,
            "an object of one pool would hold a pointer into another, which dangles when that one is closed: use types of one pool"
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pointers_of_two_pools_fit_nowhere() {
        let (p, q) = (PoolId::of_place("a:1:1:P"), PoolId::of_place("a:2:1:Q"));
        assert_ne!(p, q);
        assert_eq!(p.and(p), p);
        assert_eq!((p.and(PoolId::ANY), PoolId::ANY.and(q)), (p, q));
        assert_eq!(p.and(q), PoolId::SEVERAL);
        assert_eq!(p.and(q).and(p), PoolId::SEVERAL);
        p.assert_fits(p);
        PoolId::ANY.assert_fits(q);
        assert!(std::panic::catch_unwind(|| p.and(q).assert_fits(p)).is_err());
    }
}
