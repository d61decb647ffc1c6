//! Pools whose sections are under way, and who may open them.

use std::path::{Path, PathBuf};

use durum_service::{
    CloneOptions, Embedded, Error, ErrorKind, Host, ReadOnlyStore, Service, check, clone_store,
};

use super::{
    OLD, PLACE, TORN, code, files, host_lists_nothing, left, names, record, sections_of, value,
};
use crate::support::{Space, create, open, open_options, put, root, scratch, snapshot, spec, word};

#[test]
fn records_of_no_section_go_with_their_client() {
    let directory = scratch();
    let path = directory.path().join("store");
    left(&path, false);
    let store = open(&path);
    assert_eq!(names(&store), ["a", "b", "c"]);
    assert_eq!(value(&store, "a"), OLD);
    assert_eq!(files(&path), 3);
    assert!(store.interrupted().unwrap().is_empty());
}

#[test]
fn pools_with_sections_under_way_are_refused_and_others_open() {
    let directory = scratch();
    let path = directory.path().join("store");
    let left = left(&path, true);
    let store = open(&path);
    assert_eq!(names(&store), ["c"]);
    for (name, other) in [("a", "b"), ("b", "a")] {
        for refused in [
            store.open_pool(name).map(drop),
            store.read_pool(name).map(drop),
            store.remove_pool(name),
        ] {
            let error = refused.unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Data);
            assert!(
                error
                    .to_string()
                    .contains("region 7 of function 0xaaaabbbbcccc"),
                "{error}"
            );
            let cure = format!(
                "`durum recover {} --abandon-sections {name}`",
                path.display()
            );
            assert!(error.to_string().contains(&cure), "{error}");
            let Error::PoolInterrupted {
                pool,
                sections,
                first,
                details,
                others,
                ..
            } = error
            else {
                panic!("{error}");
            };
            assert_eq!(
                (pool.as_str(), sections, first, details.damage),
                (name, 1, Some(code()), None)
            );
            assert_eq!(others, [other]);
        }
    }
    let listed = store.interrupted().unwrap();
    assert_eq!(listed.len(), 1);
    assert_eq!((listed[0].client, listed[0].sections), (left.client, 1));
    assert_eq!(listed[0].pools, ["a", "b"]);
    assert_eq!(store.recovery().unwrap().interrupted, listed);
    store.close().unwrap();
    drop(store);

    // The logs are gone, and nothing is left to be done.
    assert_eq!(files(&path), 4);
    let before = snapshot(&path);
    let store = open(&path);
    assert_eq!(names_without_opening(&store), ["a", "b"]);
    drop(store);
    assert!(
        snapshot(&path) == before,
        "nothing can be done, so nothing is written"
    );
    let report = check(&path, &Default::default()).unwrap();
    assert_eq!(report.kept, ["a".to_owned(), "b".to_owned()].into());
    let texts: Vec<String> = report
        .findings
        .iter()
        .map(|finding| finding.text.clone())
        .collect();
    assert_eq!(
        texts
            .iter()
            .filter(|text| text.contains("is interrupted"))
            .count(),
        2,
        "{texts:?}"
    );
    assert_eq!(texts.len(), 2, "{texts:?}");
    let clone = clone_store(
        &path,
        &directory.path().join("copy"),
        &CloneOptions::default(),
    );
    let Err(Error::PartsKept { mut pools, .. }) = clone else {
        panic!("{clone:?}");
    };
    pools.sort_unstable();
    assert_eq!(pools, ["a", "b"]);
}

fn names_without_opening(store: &Embedded) -> Vec<String> {
    store.interrupted().unwrap().remove(0).pools
}

#[test]
fn a_pool_that_is_accepted_half_done_opens_and_its_client_ends_with_the_last_one() {
    let directory = scratch();
    let path = directory.path().join("store");
    left(&path, true);
    let store = open(&path);
    assert!(matches!(
        store.abandon_sections("c"),
        Err(Error::NothingKept { .. })
    ));
    assert!(matches!(
        store.abandon_sections("d"),
        Err(Error::PoolMissing { .. })
    ));
    assert_eq!(store.abandon_sections("a").unwrap(), ["b"]);
    assert_eq!(value(&store, "a"), OLD);
    assert_eq!(names(&store), ["a", "c"]);
    drop(store);
    let store = open(&path);
    assert_eq!(names(&store), ["a", "c"]);
    assert_eq!(files(&path), 4);
    assert_eq!(store.abandon_sections("b").unwrap(), [""; 0]);
    assert_eq!(names(&store), ["a", "b", "c"]);
    assert_eq!(files(&path), 3);
    store.close().unwrap();
    drop(store);
    assert!(ReadOnlyStore::open(&path).unwrap().is_clean());
}

/// One client is gone while others work.
#[test]
fn a_client_that_is_gone_keeps_its_pools_from_others() {
    let directory = scratch();
    let path = directory.path().join("store");
    create(&path).close().unwrap();
    let host = Host::open(&path, open_options()).unwrap();
    let [gone, other] = [(); 2].map(|()| host.client().unwrap());
    gone.create_pool("a", &spec()).unwrap();
    other.create_pool("b", &spec()).unwrap();
    let sections = sections_of(&gone);
    record(&sections, gone.id(), 1, 1, true);
    let client = gone.id();
    drop(gone);
    host.recover_client(client).unwrap();
    assert!(matches!(
        other.open_pool("a"),
        Err(Error::PoolInterrupted { .. })
    ));
    // Another time changes nothing, until the section has ended.
    host.recover_client(client).unwrap();
    assert_eq!(other.interrupted().unwrap().len(), 1);
    record(&sections, client, 1, 2, false);
    host.recover_client(client).unwrap();
    assert!(host_lists_nothing(&other));
    other.open_pool("a").unwrap();
}

/// A store whose client has ended in a section, with a transaction under way over `a` and `b`. The file of `b` is gone;
/// its path and bytes are returned.
fn without_b(path: &Path) -> (durum_service::Uuid, PathBuf, Vec<u8>) {
    let store = create(path);
    let [a, b] = ["a", "b"].map(|name| store.create_pool(name, &spec()).unwrap());
    let mut log = Space::new(&store).log(&store, 0xf1);
    for pool in [&a, &b] {
        put(root(pool), PLACE, &OLD.to_le_bytes());
        log.undo(root(pool).address + PLACE, &OLD.to_le_bytes());
        put(root(pool), PLACE, &TORN.to_le_bytes());
    }
    record(&sections_of(&store), store.id(), 0, 1, true);
    let client = store.id();
    let file = path.join("puddles").join(root(&b).uuid.to_string());
    drop((store, a, b, log));
    let bytes = std::fs::read(&file).unwrap();
    std::fs::remove_file(&file).unwrap();
    (client, file, bytes)
}

/// What was recovered of `a` is changed by nobody before all is: it may be recovered again.
#[test]
fn sections_wait_for_pools_whose_files_are_missing() {
    let directory = scratch();
    let path = directory.path().join("store");
    let (client, file, bytes) = without_b(&path);
    for _ in 0..2 {
        let store = open(&path);
        let opened = store.open_pool("a").map(drop);
        assert!(matches!(opened, Err(Error::PoolInterrupted { .. })));
        let abandoned = store.abandon_sections("b").map(drop);
        for refused in [
            store.open_pool("b").map(drop),
            abandoned,
            store.take_over(client).map(drop),
        ] {
            assert!(
                matches!(refused, Err(Error::PoolRefused { .. })),
                "{refused:?}"
            );
        }
    }
    let before = snapshot(&path);
    drop(open(&path));
    assert!(
        snapshot(&path) == before,
        "nothing can be done, so nothing is written"
    );
    std::fs::write(&file, &bytes).unwrap();
    let store = open(&path);
    let taken = store.take_over(client).unwrap();
    for pool in &taken.pools {
        assert_eq!(word(&pool.root, PLACE), OLD);
    }
    record(&taken.puddles[0], client, 0, 2, false);
    store.sections_done(client).unwrap();
    store.close().unwrap();
    drop(store);
    assert_eq!(names(&open(&path)), ["a", "b"]);
}

#[test]
fn sections_go_on_without_a_pool_whose_part_is_given_up() {
    let directory = scratch();
    let path = directory.path().join("store");
    let (client, _, _) = without_b(&path);
    drop(open(&path));
    let store = open(&path);
    store.give_up("b").unwrap();
    let opened = store.open_pool("a").map(drop);
    assert!(matches!(opened, Err(Error::PoolInterrupted { others, .. }) if others.is_empty()));
    let taken = store.take_over(client).unwrap();
    assert_eq!(taken.pools.len(), 1);
    assert_eq!(word(&taken.pools[0].root, PLACE), OLD);
    record(&taken.puddles[0], client, 0, 2, false);
    store.sections_done(client).unwrap();
    store.close().unwrap();
    assert_eq!(files(&path), 1);
    // And when the other one is accepted half done as well, nothing is left.
    let directory = scratch();
    let path = directory.path().join("store");
    without_b(&path);
    let store = open(&path);
    assert_eq!(store.abandon_sections("a").unwrap(), ["b"]);
    assert_eq!(value(&store, "a"), OLD);
    store.give_up("b").unwrap();
    assert!(host_lists_nothing(&store));
    assert_eq!(files(&path), 1);
}
