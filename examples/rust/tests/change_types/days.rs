//! A diary whose days get another form, and come in another order: its maps are built anew.

use std::cmp::{Ordering, Reverse};

use durum::typed::*;

/// As it was.
pub mod before {
    use durum::typed::*;

    durum::pool!(pub P);

    #[derive(PSafe, PartialEq, Eq, Hash, PartialOrd, Ord)]
    #[repr(C)]
    pub struct Day {
        pub number: u32,
    }

    pub type ByDay = PBTreeMap<Day, PString<P>, P>;

    #[derive(PSafe, Root)]
    #[repr(C)]
    pub struct Diary {
        pub notes: PRefCell<ByDay, P>,
        pub marks: PRefCell<PHashMap<Day, u64, P>, P>,
    }
}

durum::pool!(pub P);

#[derive(PSafe, PartialEq, Eq, Hash)]
#[repr(C)]
pub struct Day {
    pub year: u16,
    pub day: u16,
}

/// The latest day comes first.
impl Ord for Day {
    fn cmp(&self, other: &Self) -> Ordering {
        let key = |day: &Day| Reverse((day.year, day.day));
        key(self).cmp(&key(other))
    }
}

impl PartialOrd for Day {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

pub type ByDay = PBTreeMap<Day, PString<P>, P>;

#[derive(PSafe, Root)]
#[repr(C)]
pub struct Diary {
    pub notes: PRefCell<ByDay, P>,
    pub marks: PRefCell<PHashMap<Day, u64, P>, P>,
}

pub fn migration() -> Migration<P> {
    Migration::new()
        .object(|old: &before::Day, _| Day {
            year: 2000 + (old.number / 365) as u16,
            day: (old.number % 365) as u16,
        })
        .rebuild::<before::ByDay, ByDay>()
        .rebuild::<PHashMap<before::Day, u64, before::P>, PHashMap<Day, u64, P>>()
}
