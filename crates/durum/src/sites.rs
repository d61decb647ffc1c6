//! The sites of a module, declared together, so that none is left out of the list that crash tests go through.

/// `NAME = "what the write-back or fence is there for";`: constants, and `SITES` with all of them.
macro_rules! sites {
    ($($(#[$attribute:meta])* $site:ident = $name:literal;)+) => {
        $($(#[$attribute])* const $site: ::durum_persist::Site = ::durum_persist::Site($name);)+

        /// The sites of this module.
        pub(crate) const SITES: &[::durum_persist::Site] = &[$($site),+];
    };
}

pub(crate) use sites;
