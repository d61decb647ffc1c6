//! A full disk is an error that leaves nothing behind; what is there stays usable, and deletes work.

use std::path::Path;
use std::process::Command;

use durum_format::UNIT;
use durum_format::types::Descriptor;
use durum_persist::inject::{Operation, fail_after};
use durum_service::{Embedded, Error, ErrorKind, PuddleKind, PuddleOwner, Service};

use crate::support::{
    create, create_options, heap, large_type, node_type, open, scratch, snapshot, spec,
};

type Step = (&'static str, fn(&Embedded) -> Result<(), Error>);

const STEPS: [Step; 6] = [
    ("create_pool", |store| {
        store.create_pool("new", &spec()).map(drop)
    }),
    ("create_puddle", |store| {
        let pool = store.pools()?[0].uuid;
        store
            .create_puddle(PuddleOwner::Pool(pool), PuddleKind::Data, UNIT)
            .map(drop)
    }),
    ("create_log", |store| {
        store
            .create_puddle(PuddleOwner::Client, PuddleKind::Log, UNIT)
            .map(drop)
    }),
    ("open_pool", |store| store.open_pool("other").map(drop)),
    ("register_type", |store| {
        let node = node_type();
        store.register_type(node.id(), node.text())
    }),
    ("register_log_space", |store| {
        let space = store.create_puddle(PuddleOwner::Client, PuddleKind::LogSpace, UNIT)?;
        let header = durum_format::log_space::encode_header(store.info().client);
        let written = space.file.write_all_at(&header, heap(&space));
        written.expect("the test fails growth and syncs, not writes");
        store.register_log_space(space.uuid)
    }),
];

/// A registry commit has its room before it is made.
const GROWS_NOTHING: [&str; 2] = ["open_pool", "register_type"];

/// What a user can see of a store, apart from the bytes of the registry.
fn visible(path: &Path, store: &Embedded) -> (Vec<String>, usize, usize) {
    let pools = store.pools().unwrap();
    let names = pools
        .iter()
        .map(|pool| format!("{} {}", pool.name, pool.puddles))
        .collect();
    (names, store.types().unwrap().len(), snapshot(path).len())
}

#[test]
fn every_growth_that_fails_leaves_the_store_as_it_was() {
    let directory = scratch();
    for (index, (name, step)) in STEPS.iter().enumerate() {
        let path = directory.path().join(index.to_string());
        let store = create(&path);
        let other = store.create_pool("other", &spec()).unwrap();
        store.close_pool(other.uuid).unwrap();
        store.create_pool("first", &spec()).unwrap();
        let before = visible(&path, &store);
        let mut failures = 0;
        for successes in 0.. {
            let fault = fail_after(Operation::Grow, successes, &path);
            let result = step(&store);
            drop(fault);
            match result {
                Ok(()) => break,
                Err(Error::StorageFull { path: file, .. }) => {
                    assert!(file.starts_with(&path), "{}", file.display());
                    failures += 1;
                }
                Err(error) => panic!("{name} after {successes} growths: {error}"),
            }
            if *name != "register_log_space" {
                assert_eq!(visible(&path, &store), before, "{name} after {successes}");
            }
        }
        let grows = !GROWS_NOTHING.contains(name);
        assert_eq!(failures > 0, grows, "{name}: {failures} growths failed");
        // The store goes on, and is sound when it is opened again.
        store.create_pool("last", &spec()).unwrap();
        store.remove_pool("last").unwrap_err();
        drop(store);
        let report = durum_service::check(&path, &Default::default()).unwrap();
        assert!(report.is_sound(), "{name}: {:?}", report.findings);
        let store = open(&path);
        for pool in store.pools().unwrap() {
            store.open_pool(&pool.name).unwrap();
        }
        store.close().unwrap();
    }
}

#[test]
fn a_store_that_could_not_be_made_can_be_made_later() {
    let directory = scratch();
    let path = directory.path().join("store");
    for successes in 0.. {
        let fault = fail_after(Operation::Grow, successes, &path);
        let made = Embedded::create(&path, &create_options());
        drop(fault);
        match made {
            Ok(_) => break,
            Err(Error::StorageFull { .. }) => {}
            Err(error) => panic!("after {successes} growths: {error}"),
        }
        assert!(!path.join("durum.store").exists());
    }
    open(&path).create_pool("a", &spec()).unwrap();
}

#[test]
fn deletes_work_while_nothing_can_grow() {
    let directory = scratch();
    let path = directory.path().join("store");
    let store = create(&path);
    let pool = store.create_pool("a", &spec()).unwrap();
    let more = store
        .create_puddle(PuddleOwner::Pool(pool.uuid), PuddleKind::Data, UNIT)
        .unwrap();
    let fault = fail_after(Operation::Grow, 0, &path);
    store.remove_puddle(more.uuid).unwrap();
    store.close_pool(pool.uuid).unwrap();
    store.remove_pool("a").unwrap();
    assert!(store.pools().unwrap().is_empty());
    drop(fault);
    store.close().unwrap();
    drop(store);
    assert_eq!(
        snapshot(&path).len(),
        4,
        "the files of the puddles are gone"
    );
    let report = durum_service::check(&path, &Default::default()).unwrap();
    assert!(report.findings.is_empty(), "{:?}", report.findings);
}

/// Additions fill their part of the registry and then need a new one; removals go on.
#[test]
fn a_registry_that_cannot_grow_keeps_room_for_removals() {
    let directory = scratch();
    let path = directory.path().join("store");
    let store = create(&path);
    let pools: Vec<String> = (0..20).map(|number| format!("pool {number}")).collect();
    for name in &pools {
        let pool = store.create_pool(name, &spec()).unwrap();
        store.close_pool(pool.uuid).unwrap();
    }
    let before = std::fs::metadata(path.join("registry")).unwrap().len();
    let fault = fail_after(Operation::Grow, 0, &path);
    let mut types = 0_usize;
    let fill = |types: &mut usize, make: fn(&str) -> Descriptor| {
        let refusal = loop {
            let made = make(&format!("T{types}"));
            match store.register_type(made.id(), made.text()) {
                Ok(()) => *types += 1,
                Err(error) => break error,
            }
        };
        let full =
            matches!(&refusal, Error::StorageFull { path, .. } if path.ends_with("registry"));
        assert!(full, "{refusal}");
    };
    fill(&mut types, large_type);
    fill(&mut types, |name| {
        let text = format!("struct \"{name}\"(8,8){{0:\"value\":i64;}}\n");
        Descriptor::parse(&text).unwrap()
    });
    store.open_pool("pool 0").unwrap_err();
    for name in &pools {
        store.remove_pool(name).unwrap();
    }
    assert_eq!(
        std::fs::metadata(path.join("registry")).unwrap().len(),
        before
    );
    assert_eq!(store.types().unwrap().len(), types);
    drop(fault);
    let large = large_type("last");
    store.register_type(large.id(), large.text()).unwrap();
    store.close().unwrap();
    drop(store);
    let report = durum_service::check(&path, &Default::default()).unwrap();
    assert!(report.findings.is_empty(), "{:?}", report.findings);
    let store = open(&path);
    assert_eq!(store.types().unwrap().len(), types + 1);
    assert!(store.pools().unwrap().is_empty());
}

#[test]
fn a_failed_sync_is_never_taken_for_a_success() {
    let directory = scratch();
    for (index, (name, step)) in STEPS.iter().enumerate() {
        for successes in 0.. {
            let path = directory.path().join(format!("{index}-{successes}"));
            let store = create(&path);
            let other = store.create_pool("other", &spec()).unwrap();
            store.close_pool(other.uuid).unwrap();
            store.create_pool("first", &spec()).unwrap();
            let fault = fail_after(Operation::Sync, successes, &path);
            let result = step(&store);
            drop(fault);
            let failed = match result {
                Ok(()) => false,
                Err(error) => {
                    assert_eq!(error.kind(), ErrorKind::System, "{name}: {error}");
                    true
                }
            };
            drop(store);
            let report = durum_service::check(&path, &Default::default()).unwrap();
            assert!(report.is_sound(), "{name}: {:?}", report.findings);
            let store = open(&path);
            for pool in store.pools().unwrap() {
                store.open_pool(&pool.name).unwrap();
            }
            drop(store);
            std::fs::remove_dir_all(&path).unwrap();
            if !failed {
                assert!(successes > 0, "{name} synced nothing");
                break;
            }
        }
    }
}

/// A small file system of its own, unmounted at the end.
struct Mount(tempfile::TempDir);

impl Mount {
    /// `None` where this process may not mount.
    fn new(bytes: u64) -> Option<Mount> {
        let directory = scratch();
        let mounted = Command::new("mount")
            .args(["-t", "tmpfs", "-o", &format!("size={bytes}"), "durum-test"])
            .arg(directory.path())
            .output()
            .is_ok_and(|output| output.status.success());
        mounted.then_some(Mount(directory))
    }
}

impl Drop for Mount {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg(self.0.path()).status();
    }
}

#[test]
fn a_real_full_file_system_is_refused_and_recovers_when_something_is_deleted() {
    let Some(mount) = Mount::new(12 << 20) else {
        println!("skipped: mounting a tmpfs needs root");
        return;
    };
    let path = mount.0.path().join("store");
    let store = create(&path);
    let pool = store.create_pool("a", &spec()).unwrap();
    let mut puddles = Vec::new();
    let refusal = loop {
        match store.create_puddle(PuddleOwner::Pool(pool.uuid), PuddleKind::Data, UNIT) {
            Ok(grant) => puddles.push(grant.uuid),
            Err(error) => break error,
        }
    };
    match &refusal {
        Error::StorageFull { path: file, bytes } => {
            assert!(file.starts_with(&path), "{refusal}");
            assert_eq!(*bytes, UNIT, "{refusal}");
            assert!(!file.exists());
        }
        other => panic!("{other}"),
    }
    // Fill the last bytes as well: not even an empty file has room any more.
    let filler = mount.0.path().join("filler");
    let mut zeros = vec![0_u8; 1 << 20];
    while !zeros.is_empty() {
        use std::io::Write;
        let mut file = std::fs::OpenOptions::new()
            .create(true)
            .append(true)
            .open(&filler)
            .unwrap();
        if file.write_all(&zeros).is_err() {
            zeros.truncate(zeros.len() / 2);
        }
    }
    assert!(!puddles.is_empty());
    store.remove_puddle(puddles[0]).unwrap();
    let refusal = store.create_puddle(PuddleOwner::Pool(pool.uuid), PuddleKind::Data, 2 * UNIT);
    assert!(matches!(refusal, Err(Error::StorageFull { .. })));
    store
        .create_puddle(PuddleOwner::Pool(pool.uuid), PuddleKind::Data, UNIT)
        .unwrap();
    store.close().unwrap();
    drop(store);
    let store = open(&path);
    assert_eq!(store.open_pool("a").unwrap().others.len(), puddles.len());
}
