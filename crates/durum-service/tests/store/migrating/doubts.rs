//! What is refused before, or told as what it is: objects for which there is no room, functions that say something
//! else the second time, files that cannot be removed.

use std::path::PathBuf;

use durum_format::migrate::{MadeBy, Rule, Rules};
use durum_service::{Functions, OldPuddle};

use super::*;

/// A pool, migrated by a map that is refused.
fn refused_by(text: &str) -> String {
    let directory = scratch();
    let path = directory.path().join("store");
    let store = create(&path);
    make(&store, EngineKind::Shadow);
    let refused = migrate(&store, text).unwrap_err();
    assert!(
        matches!(refused, Error::MigrationRefused { .. }),
        "{refused}"
    );
    is_old(&Reader::of(&store)).unwrap();
    refused.to_string()
}

#[test]
fn an_object_that_no_puddle_has_room_for_is_refused() {
    let size = 1_u64 << 47;
    let text = format!(
        r#"{{"durum-map": 1, "types": {{"Point": {{"fields": ["x", "y"], "size": {size}}}}}}}"#
    );
    let told = refused_by(&text);
    assert!(
        told.contains("no puddle has room for 140737488355"),
        "{told}"
    );
}

#[test]
fn a_root_that_would_not_be_where_roots_are_is_refused() {
    let fields = r#""fields": ["first", "inside", "nodes", "row"]"#;
    let text = |align: u64| {
        format!(r#"{{"durum-map": 1, "types": {{"Head": {{{fields}, "align": {align}}}}}}}"#)
    };
    let told = refused_by(&text(8192));
    assert!(
        told.contains("Head: a root is aligned to 4096 bytes at most"),
        "{told}"
    );
    let directory = scratch();
    let store = create(&directory.path().join("store"));
    make(&store, EngineKind::Shadow);
    migrate(&store, &text(4096)).unwrap();
    // Where its heap begins.
    let pool = Reader::of(&store);
    let root = &pool.0[0];
    let kept = pool.at(root.address + crate::support::heap(root) + 4096 + 16);
    assert_eq!(kept, Ok(NODES));
}

/// A function for nodes, which stay what they are; but for what `change` does when they are asked again.
struct Changing<'c> {
    passes: u32,
    change: &'c dyn Fn(&mut [u8]),
    again: &'c dyn Fn(&[OldPuddle<'_>]),
}

impl Functions for Changing<'_> {
    fn begin(&mut self, puddles: &[OldPuddle<'_>]) -> Result<(), Error> {
        self.passes += 1;
        if self.passes == 2 {
            (self.again)(puddles);
        }
        Ok(())
    }

    fn make(&mut self, _: usize, _: u64, old: &[u8], new: &mut [u8]) -> Result<(), String> {
        new.copy_from_slice(old);
        if self.passes == 2 {
            (self.change)(new);
        }
        Ok(())
    }
}

fn migrate_by(store: &Embedded, functions: &mut Changing<'_>) -> Result<MigrateReport, Error> {
    let made_by = Some(MadeBy {
        function: 0,
        zero_is_value: true,
    });
    let rule = Rule {
        made_by,
        ..Rule::default()
    };
    let mut migration = Migration {
        rules: Arc::new(Rules::of_types([("Node".to_owned(), rule)].into())),
        types: None,
        functions: Some(functions),
    };
    store.migrate_pool(POOL, &mut migration, &MigrateOptions::default())
}

#[test]
fn a_function_that_gives_other_pointers_the_second_time_is_told() {
    let clear = |at: usize| move |new: &mut [u8]| new[at..at + 8].fill(0);
    let double = |new: &mut [u8]| {
        let kept: [u8; 8] = new[24..32].try_into().unwrap();
        new[32..40].copy_from_slice(&kept);
    };
    // A strong pointer forgotten, a weak one, which is counted, and one more that is.
    let changes: [&dyn Fn(&mut [u8]); 3] = [&clear(24), &clear(32), &double];
    for change in changes {
        let directory = scratch();
        let path = directory.path().join("store");
        let store = create(&path);
        make(&store, EngineKind::Shadow);
        let mut functions = Changing {
            passes: 0,
            change,
            again: &|_| {},
        };
        let refused = migrate_by(&store, &mut functions).unwrap_err().to_string();
        assert!(
            refused.contains("a function gives something else for an object than it gave before"),
            "{refused}"
        );
        is_old(&Reader::of(&store)).unwrap();
        store.close().unwrap();
        drop(store);
        is_clean(&path);
    }
}

/// Once the registry says so the pool is the new one, though a file of the old one is still there.
#[test]
fn a_file_that_cannot_be_removed_is_left_to_the_next_opener() {
    let directory = scratch();
    let path = directory.path().join("store");
    let store = create(&path);
    make(&store, EngineKind::Shadow);
    let aside = directory.path().join("aside");
    let name = std::cell::RefCell::new(PathBuf::new());
    // No file can be removed by the name of a directory that is not empty.
    let again = |puddles: &[OldPuddle<'_>]| {
        let file = puddles[0].file.path();
        std::fs::rename(file, &aside).unwrap();
        std::fs::create_dir(file).unwrap();
        std::fs::write(file.join("in it"), "").unwrap();
        *name.borrow_mut() = file.to_owned();
    };
    let mut functions = Changing {
        passes: 0,
        change: &|_| {},
        again: &again,
    };
    let report = migrate_by(&store, &mut functions).unwrap();
    is_old(&Reader::of(&store)).unwrap();
    store.close().unwrap();
    drop(store);
    let name = name.into_inner();
    std::fs::remove_dir_all(&name).unwrap();
    std::fs::rename(&aside, &name).unwrap();
    let store = open(&path);
    is_old(&Reader::of(&store)).unwrap();
    store.close().unwrap();
    drop(store);
    is_clean(&path);
    let files = std::fs::read_dir(path.join("puddles")).unwrap().count();
    assert_eq!(files, report.puddles as usize, "the old ones are gone");
}
