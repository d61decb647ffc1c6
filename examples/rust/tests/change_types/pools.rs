//! Two pools of a store that are made anew together.

use std::path::Path;

use durum::typed::*;

/// As they were.
pub mod before {
    use durum::typed::*;

    durum::pool!(pub Log);
    durum::pool!(pub Index);

    #[derive(PSafe, Root)]
    #[repr(C)]
    pub struct Lines {
        pub count: PCell<u32, Log>,
    }

    #[derive(PSafe)]
    #[repr(C)]
    pub struct Entry {
        pub line: u32,
    }

    #[derive(PSafe, Root)]
    #[repr(C)]
    pub struct Entries {
        pub all: PRefCell<PVec<Entry, Index>, Index>,
    }
}

durum::pool!(pub Log);
durum::pool!(pub Index);

#[derive(PSafe, Root)]
#[repr(C)]
pub struct Lines {
    pub version: PCell<u32, Log>,
    pub count: PCell<u32, Log>,
}

#[derive(PSafe)]
#[repr(C)]
pub struct Entry {
    pub line: u64,
}

#[derive(PSafe, Root)]
#[repr(C)]
pub struct Entries {
    pub all: PRefCell<PVec<Entry, Index>, Index>,
}

pub fn migrate(path: &Path) -> durum::Result<()> {
    let index = Migration::new().pool("index");
    let index = index.object(|old: &before::Entry, _| Entry {
        line: old.line.into(),
    });
    let log = Migration::new()
        .pool("log")
        .default_of("Lines", "version", 2_u32);
    Log::migrate::<Lines>(path, log.with::<Entries, _>(index))?;
    Ok(())
}
