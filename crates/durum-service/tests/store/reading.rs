//! Pools that are open for reading only: by many at a time, or by one who writes; and what can be done by readers
//! alone, which is to check a store and to clone it.

use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use durum_format::UNIT;
use durum_service::{
    CloneOptions, Embedded, Error, GarbageOptions, Host, PoolGrant, PuddleGrant, PuddleKind,
    PuddleOwner, ReadOnlyStore, Service, Severity, check, check_served, clone_served, clone_store,
};

use crate::recovery::{assert_recovered, interrupt};
use crate::support::{
    create_options, node, node_type, open, open_all, place_object, put, root, scratch, snapshot,
    spec, word,
};

fn host(path: &Path) -> Arc<Host> {
    Host::create(path, &create_options()).unwrap()
}

fn is_busy<T>(result: Result<T, Error>) -> bool {
    matches!(result, Err(Error::PoolBusy { name }) if name == "list")
}

fn is_open<T>(result: Result<T, Error>) -> bool {
    matches!(result, Err(Error::PoolOpen { name, .. }) if name == "list")
}

/// A closed pool of this name: its root leads to an object of a second puddle, and a third object is led to by nothing.
fn make_list(store: &Embedded, name: &str) -> PoolGrant {
    let pool = store.create_pool(name, &spec()).unwrap();
    let node_type = node_type();
    store
        .register_type(node_type.id(), node_type.text())
        .unwrap();
    let more = store
        .create_puddle(PuddleOwner::Pool(pool.uuid), PuddleKind::Data, UNIT)
        .unwrap();
    place_object(&more, 30, node_type.id(), &node(3, 0));
    let second = place_object(&more, 4, node_type.id(), &node(2, 0));
    place_object(root(&pool), 0, node_type.id(), &node(1, second));
    store.close_pool(pool.uuid).unwrap();
    pool
}

fn flags(puddle: &PuddleGrant) -> i32 {
    use std::os::fd::AsRawFd;
    // SAFETY: asks for the flags of an open descriptor.
    unsafe { libc::fcntl(puddle.file.as_fd().as_raw_fd(), libc::F_GETFL) }
}

#[test]
fn a_pool_is_read_by_many_or_written_by_one() {
    let directory = scratch();
    let host = host(&directory.path().join("store"));
    let clients = || host.client().unwrap();
    let (one, other, writer) = (clients(), clients(), clients());
    let pool = make_list(&writer, "list");
    let seen = one.read_pool("list").unwrap();
    assert_eq!((seen.uuid, seen.others.len()), (pool.uuid, 1));
    other.read_pool("list").unwrap();
    assert!(is_open(one.read_pool("list")));
    assert!(is_busy(one.open_pool("list")));
    assert!(is_busy(writer.open_pool("list")));
    assert!(is_busy(writer.remove_pool("list")));
    assert!(is_open(other.remove_pool("list")));
    // Whoever reads changes nothing.
    let owner = PuddleOwner::Pool(pool.uuid);
    let refused = one.create_puddle(owner, PuddleKind::Data, UNIT);
    assert!(matches!(refused, Err(Error::PoolNotOpen { .. })));
    let refused = one.remove_puddle(seen.others[0].uuid);
    assert!(matches!(refused, Err(Error::PuddleRefused { .. })));
    // What nobody has open is not closed.
    let refused = writer.close_pool(pool.uuid);
    assert!(matches!(refused, Err(Error::PoolNotOpen { .. })));
    let refused = writer.open_puddles(pool.uuid, &[seen.others[0].uuid]);
    assert!(matches!(refused, Err(Error::PoolNotOpen { .. })));
    one.close_pool(pool.uuid).unwrap();
    assert!(is_busy(writer.open_pool("list")));
    other.close_pool(pool.uuid).unwrap();
    writer.open_pool("list").unwrap();
    assert!(is_busy(one.read_pool("list")));
    writer.close_pool(pool.uuid).unwrap();
    one.read_pool("list").unwrap();
    // Its end is the end of its reading.
    one.close().unwrap();
    writer.open_pool("list").unwrap();
}

#[test]
fn the_files_of_a_reader_are_open_for_reading() {
    let directory = scratch();
    let path = directory.path().join("store");
    let host = host(&path);
    make_list(&host.client().unwrap(), "list");
    let before = snapshot(&path);
    let reader = host.client().unwrap();
    let puddles = open_all(&reader, reader.read_pool("list").unwrap());
    assert_eq!(puddles.len(), 2);
    for puddle in &puddles {
        assert_eq!(flags(puddle) & libc::O_ACCMODE, libc::O_RDONLY);
        assert!(puddle.file.write_all_at(&[1], 0).is_err());
        assert_eq!(word(puddle, 0), word(puddle, 0));
    }
    // Recovery writes where the registry has a grant: for a reader it has none.
    assert!(host.recover_client(reader.id()).unwrap().was_clean);
    assert_eq!(snapshot(&path), before, "nothing was recorded");
    host.client().unwrap().open_pool("list").unwrap();
}

#[test]
fn a_reader_sees_what_a_client_that_is_gone_had_committed() {
    let directory = scratch();
    let host = host(&directory.path().join("store"));
    let gone = interrupt(host.client().unwrap());
    let id = gone.id();
    drop(gone);
    let reader = host.client().unwrap();
    assert!(matches!(
        reader.read_pool("words"),
        Err(Error::PoolBusy { .. })
    ));
    host.recover_client(id).unwrap();
    let pool = reader.read_pool("words").unwrap();
    assert_recovered(|offset| word(root(&pool), offset)).unwrap();
}

#[test]
fn a_request_to_read_whose_answer_was_lost_is_done_once() {
    let directory = scratch();
    let host = host(&directory.path().join("store"));
    make_list(&host.client().unwrap(), "list");
    let reader = host.client().unwrap();
    assert!(reader.read_again("list").unwrap().is_none());
    let first = reader.read_pool("list").unwrap();
    let again = reader.read_again("list").unwrap().unwrap();
    assert_eq!((again.uuid, again.others), (first.uuid, first.others));
    assert_eq!(flags(&again.root) & libc::O_ACCMODE, libc::O_RDONLY);
    reader.close_pool(first.uuid).unwrap();
    assert!(reader.read_again("list").unwrap().is_none());
}

#[test]
fn a_check_by_readers_finds_what_a_check_of_the_directory_finds() {
    let directory = scratch();
    let path = directory.path().join("store");
    let host = host(&path);
    let client = host.client().unwrap();
    let pool = make_list(&client, "list");
    make_list(&client, "other");
    let pool = client.open_pool("list").unwrap_or(pool);
    // A pointer to where nothing is.
    put(
        root(&pool),
        durum_format::puddle::heap_offset(UNIT) + 16 + 8,
        &1_u64.to_le_bytes(),
    );
    client.close_pool(pool.uuid).unwrap();
    let mut reader = ReadOnlyStore::of(Arc::new(host.client().unwrap())).unwrap();
    let served = check_served(&mut reader, None, &Default::default()).unwrap();
    let one = check_served(&mut reader, Some("other"), &Default::default()).unwrap();
    let refused = check_served(&mut reader, Some("none"), &Default::default());
    assert!(matches!(refused, Err(Error::PoolMissing { .. })));
    drop(reader);
    client.close().unwrap();
    host.close().unwrap();
    let own = check(&path, &Default::default()).unwrap();
    assert_eq!(served.findings, own.findings);
    assert!(!own.is_sound() && own.findings.len() > 1, "{own:?}");
    assert_eq!(served.damaged, own.damaged);
    assert_eq!(format!("{:?}", served.pools), format!("{:?}", own.pools));
    assert!(one.is_sound(), "{one:?}");
    assert_eq!(one.pools.len(), 1);
}

#[test]
fn a_pool_that_somebody_writes_is_not_checked_and_not_cloned() {
    let directory = scratch();
    let path = directory.path().join("store");
    let host = host(&path);
    let writer = host.client().unwrap();
    make_list(&writer, "list");
    make_list(&writer, "other");
    let pool = writer.open_pool("list").unwrap();
    let mut reader = ReadOnlyStore::of(Arc::new(host.client().unwrap())).unwrap();
    assert!(is_busy(check_served(
        &mut reader,
        Some("list"),
        &Default::default()
    )));
    let report = check_served(&mut reader, None, &Default::default()).unwrap();
    assert!(report.is_sound(), "{report:?}");
    let notes = report.findings.iter();
    let mut notes = notes.filter(|finding| finding.severity == Severity::Note);
    assert!(
        notes.any(|note| note.text.contains("\"list\"")),
        "{report:?}"
    );
    let read: Vec<_> = report.pools.iter().map(|pool| pool.objects).collect();
    assert_eq!(read, [0, 3]);
    let copy = directory.path().join("copy");
    let refused = clone_served(&mut reader, None, &copy, &CloneOptions::default());
    assert!(is_busy(refused));
    assert!(!copy.exists());
    // What was checked stays as it is as long as the reader is there.
    writer.close_pool(pool.uuid).unwrap();
    assert!(matches!(
        writer.open_pool("other"),
        Err(Error::PoolBusy { .. })
    ));
    drop(reader);
    writer.open_pool("other").unwrap();
}

#[test]
fn a_clone_by_readers_is_the_clone_of_the_directory() {
    let directory = scratch();
    let path = directory.path().join("store");
    let host = host(&path);
    let client = host.client().unwrap();
    make_list(&client, "list");
    make_list(&client, "other");
    let mut reader = ReadOnlyStore::of(Arc::new(host.client().unwrap())).unwrap();
    let at = |name: &str| directory.path().join(name);
    let options = CloneOptions::default();
    let served = clone_served(&mut reader, None, &at("served"), &options).unwrap();
    let one = clone_served(&mut reader, Some("list"), &at("one"), &options).unwrap();
    let refused = clone_served(&mut reader, None, &at("one"), &options);
    assert!(matches!(refused, Err(Error::StoreExists { .. })));
    drop(reader);
    client.close().unwrap();
    host.close().unwrap();
    let own = clone_store(&path, &at("own"), &options).unwrap();
    assert_eq!(served, own);
    assert_eq!((one.puddles, one.objects, one.pointers), (2, 3, 1));
    for (name, pools) in [("served", 2), ("one", 1)] {
        let store = open(&at(name));
        assert!(store.recovery_report().was_clean);
        assert_eq!(store.pools().unwrap().len(), pools);
        store.close().unwrap();
        drop(store);
        let report = check(&at(name), &Default::default()).unwrap();
        assert!(report.is_sound(), "{report:?}");
        assert!(report.pools.iter().all(|pool| pool.objects == 3));
    }
}

#[test]
fn what_readers_are_told_of_the_registry_says_nothing_of_clients() {
    let directory = scratch();
    let path = directory.path().join("store");
    let host = host(&path);
    let client = interrupt(host.client().unwrap());
    let told = String::from_utf8(client.registry().unwrap()).unwrap();
    assert!(told.contains("\"words\""), "{told}");
    assert!(!told.contains(&client.id().to_string()), "{told}");
    let reader = ReadOnlyStore::of(Arc::new(host.client().unwrap())).unwrap();
    assert_eq!(reader.pools(), client.pools().unwrap());
    assert!(reader.is_clean());
}

#[test]
fn files_that_are_lost_are_told_of() {
    let directory = scratch();
    let path = directory.path().join("store");
    let host = host(&path);
    let client = host.client().unwrap();
    let pool = make_list(&client, "list");
    assert_eq!(client.lost_files().unwrap(), []);
    let file = path.join("puddles").join(pool.root.uuid.to_string());
    std::fs::remove_file(&file).unwrap();
    let lost = client.lost_files().unwrap();
    assert_eq!(
        (lost.len(), &lost[0].file, lost[0].pool.as_str()),
        (1, &file, "list")
    );
    let missing = client.read_pool("list");
    assert!(matches!(missing, Err(Error::FileMissing { .. })));
    let mut reader = ReadOnlyStore::of(Arc::new(host.client().unwrap())).unwrap();
    let report = check_served(&mut reader, None, &Default::default()).unwrap();
    assert!(!report.is_sound());
    assert!(report.findings[0].text.contains("durum rm"), "{report:?}");
}

#[test]
fn a_pool_that_grew_until_it_was_held_is_read_as_it_is_now() {
    let directory = scratch();
    let host = host(&directory.path().join("store"));
    let writer = host.client().unwrap();
    make_list(&writer, "list");
    let mut reader = ReadOnlyStore::of(Arc::new(host.client().unwrap())).unwrap();
    let pool = writer.open_pool("list").unwrap();
    let more = writer
        .create_puddle(PuddleOwner::Pool(pool.uuid), PuddleKind::Data, UNIT)
        .unwrap();
    let id = node_type().id();
    let fourth = place_object(&more, 9, id, &node(4, 0));
    place_object(root(&pool), 0, id, &node(1, fourth));
    writer.close_pool(pool.uuid).unwrap();
    make_list(&writer, "later");
    let report = check_served(&mut reader, None, &Default::default()).unwrap();
    assert!(report.is_sound(), "{report:?}");
    let objects: Vec<_> = report.pools.iter().map(|pool| pool.objects).collect();
    assert_eq!(objects, [3, 4], "{report:?}");
}

#[test]
fn who_alone_reads_a_pool_goes_on_to_write_it() {
    let directory = scratch();
    let host = host(&directory.path().join("store"));
    let (one, other) = (host.client().unwrap(), host.client().unwrap());
    let pool = make_list(&one, "list");
    one.read_pool("list").unwrap();
    let written = one.open_pool("list").unwrap();
    assert_eq!(flags(&written.root) & libc::O_ACCMODE, libc::O_RDWR);
    assert!(is_open(one.read_pool("list")));
    assert!(is_busy(other.read_pool("list")));
    one.close_pool(pool.uuid).unwrap();
    let refused = one.close_pool(pool.uuid);
    assert!(matches!(refused, Err(Error::PoolNotOpen { .. })));
    other.open_pool("list").unwrap();
}

/// A search that goes on in one thread holds up nobody who makes, or reads, anything meanwhile.
#[test]
fn others_go_on_while_garbage_is_searched_for() {
    let directory = scratch();
    let host = host(&directory.path().join("store"));
    let (collector, other) = (host.client().unwrap(), host.client().unwrap());
    make_list(&other, "list");
    let (told, hears) = std::sync::mpsc::channel();
    let (went_on, seen) = std::sync::mpsc::channel();
    let (told, seen) = (Mutex::new(Some(told)), Mutex::new(seen));
    // The first step of the search waits until the other client has done something.
    let progress = move |_| {
        if let Some(told) = told.lock().unwrap().take() {
            told.send(()).unwrap();
            let waited = seen.lock().unwrap().recv_timeout(Duration::from_secs(20));
            waited.expect("the other one goes on");
        }
    };
    let options = GarbageOptions {
        progress: Some(Arc::new(progress)),
        ..GarbageOptions::default()
    };
    let searching = std::thread::spawn(move || collector.find_garbage(&options));
    hears.recv_timeout(Duration::from_secs(20)).unwrap();
    make_list(&other, "third");
    other.read_pool("list").unwrap();
    assert!(is_busy(other.open_pool("list")));
    went_on.send(()).unwrap();
    searching.join().unwrap().unwrap();
}

#[test]
fn what_a_search_for_garbage_has_found_stays_true_until_its_client_writes() {
    let directory = scratch();
    let host = host(&directory.path().join("store"));
    let (collector, other) = (host.client().unwrap(), host.client().unwrap());
    let pool = make_list(&other, "list");
    make_list(&other, "second");
    let search = || collector.find_garbage(&Default::default());
    let written = other.open_pool("second").unwrap();
    assert!(matches!(search(), Err(Error::PoolBusy { name }) if name == "second"));
    // Nothing is held after that.
    other.close_pool(written.uuid).unwrap();
    other.open_pool("list").unwrap();
    other.close_pool(pool.uuid).unwrap();
    // Readers are in nobody's way.
    other.read_pool("second").unwrap();
    assert_eq!(search().unwrap().groups.len(), 2);
    assert!(is_busy(other.open_pool("list")));
    assert!(matches!(
        collector.open_pool("second"),
        Err(Error::PoolBusy { .. })
    ));
    let opened = collector.open_pool("list").unwrap();
    collector.close_pool(opened.uuid).unwrap();
    other.open_pool("list").unwrap();
    collector.close().unwrap();
    other.open_pool("second").unwrap();
}
