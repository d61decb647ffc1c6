//! Databases that are made, opened and destroyed, and what lies beside them.

use std::fs;
use std::sync::Arc;

use durum::{PoolOptions, Store};
use durum_kv::{Db, Error, ErrorKind, Options, StoreOptions, destroy, exists};

use crate::Named;
use crate::support::{contents, options, place};

#[test]
fn options_decide_what_may_be_there() {
    let (_dir, path) = place();
    let missing = Db::open(&path, Options::new()).unwrap_err();
    assert!(matches!(missing, Error::Missing { .. }), "{missing}");
    assert_eq!(missing.kind(), ErrorKind::User);
    assert!(missing.to_string().contains("create_if_missing"));
    assert!(!path.exists() && !exists(&path).unwrap());
    drop(Db::open(&path, options().error_if_exists(true)).unwrap());
    assert!(exists(&path).unwrap());
    let there = Db::open(&path, options().error_if_exists(true)).unwrap_err();
    assert!(matches!(there, Error::Exists { .. }), "{there}");
    let _db = Db::open(&path, Options::new()).unwrap();
    // A second opener of the store, in this process or another, is told so.
    assert!(Db::open(&path, Options::new()).is_err());
    assert!(matches!(destroy(&path), Err(Error::Durum(_))));
}

#[test]
fn a_directory_of_something_else_is_left_alone() {
    let (dir, _) = place();
    fs::write(dir.path().join("letter"), "dear").unwrap();
    let refused = Db::open(dir.path(), options()).unwrap_err();
    assert!(matches!(refused, Error::Occupied { .. }), "{refused}");
    // Who opens is not told to remove what is there.
    let told = refused.to_string();
    assert!(
        told.contains("choose another directory") && !told.contains("remove"),
        "{told}"
    );
    let refused = destroy(dir.path()).unwrap_err();
    assert!(matches!(refused, Error::NotAStore { .. }), "{refused}");
    assert_eq!(fs::read(dir.path().join("letter")).unwrap(), b"dear");
}

#[test]
fn a_destroyed_database_is_gone() {
    let (_dir, path) = place();
    drop(Db::open(&path, options()).unwrap());
    destroy(&path).unwrap();
    assert!(!path.exists());
    destroy(&path).unwrap();
    assert!(contents(&Db::open(&path, options()).unwrap()).is_empty());
}

#[test]
fn the_comparators_name_is_kept() {
    let (_dir, path) = place();
    let with = |name| options().comparator(Arc::new(Named(name)));
    {
        let db = Db::open(&path, with("backwards")).unwrap();
        db.put(b"a", b"1").unwrap();
        db.put(b"b", b"2").unwrap();
        let mut iter = db.iter();
        assert!(iter.seek_to_first().unwrap());
        assert_eq!(iter.key(), Some(&b"b"[..]));
        let property = db.property("durum.comparator").unwrap();
        assert_eq!(property.as_deref(), Some("backwards"));
    }
    for wrong in [with("upwards"), options()] {
        match Db::open(&path, wrong).unwrap_err() {
            Error::Comparator { stored, given, .. } => {
                assert_eq!(stored, "backwards");
                assert!(given == "upwards" || given == durum_kv::BYTEWISE);
            }
            error => panic!("{error}"),
        }
    }
    Db::open(&path, with("backwards")).unwrap();
}

#[test]
fn a_database_lives_beside_other_pools() {
    let (_dir, path) = place();
    let store = Store::create(&path, StoreOptions::new()).unwrap();
    let other = store.create_pool("other", PoolOptions::new()).unwrap();
    let db = Db::open_in(&store, "names", options()).unwrap();
    assert!(matches!(
        Db::open_in(&store, "none", Options::new()),
        Err(Error::Missing { .. })
    ));
    // A pool of something else is refused.
    other.root::<u64>().unwrap();
    assert!(Db::open_in(&store, "other", options()).is_err());
    db.put(b"a", b"1").unwrap();
    assert_eq!(db.path(), path);
    // What a transaction takes back, a database that was opened inside it would count on.
    let inside = other.transaction(|_| match Db::open_in(&store, "more", options()) {
        Err(Error::InTransaction) => Ok::<_, durum::Error>(()),
        result => panic!("{result:?}"),
    });
    inside.unwrap();
    assert!(matches!(
        store.open_pool("more", PoolOptions::new()),
        Err(durum::Error::Store(
            durum_service::Error::PoolMissing { .. }
        ))
    ));
}
