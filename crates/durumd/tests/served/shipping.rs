//! Pools are exported and imported through a service, which follows no path of its clients.

use std::path::PathBuf;

use durum::{Engine, ExportOptions, ImportOptions, PoolOptions, Store, StoreError, StoreOptions};
use durum_protocol::{Answer, Request};
use durum_remote::Remote;
use durum_service::{Export, Service};

use crate::copies::{fill, value};
use crate::strangers::Raw;
use crate::support::{Served, until};

/// A service whose store has a pool, and an export of that.
fn exported() -> (tempfile::TempDir, Served, PathBuf) {
    exported_on("shadow")
}

pub fn exported_on(engine: &str) -> (tempfile::TempDir, Served, PathBuf) {
    let directory = tempfile::tempdir_in("/dev/shm").unwrap();
    let served = Served::start();
    let store = Store::open(served.address(), StoreOptions::new()).unwrap();
    let options = PoolOptions::new().engine(Engine::from_name(engine).unwrap());
    let pool = store.create_pool("pool", options).unwrap();
    fill(&pool);
    let place = directory.path().join("export");
    let busy = store.export_pool("pool", &place, &ExportOptions::default());
    assert!(
        matches!(busy, Err(durum::Error::Store(StoreError::PoolOpen { .. }))),
        "{busy:?}"
    );
    drop(pool);
    let report = store
        .export_pool("pool", &place, &ExportOptions::default())
        .unwrap();
    assert_eq!((report.pools, report.puddles), (vec!["pool".to_owned()], 1));
    // It holds the pool no more.
    drop(store.open_pool("pool", PoolOptions::new()).unwrap());
    store.close().unwrap();
    (directory, served, place)
}

pub fn named(name: &str) -> ImportOptions {
    ImportOptions {
        name: Some(name.to_owned()),
        ..ImportOptions::default()
    }
}

#[test]
fn a_pool_goes_through_a_service_and_back() {
    let (directory, served, place) = exported();
    let store = Store::open(served.address(), StoreOptions::new()).unwrap();
    let report = store.import(&place, &named("copy")).unwrap();
    assert_eq!((report.puddles, report.moved), (1, 1));
    assert!(report.copied.is_some(), "the service has files of its own");
    let pool = store.open_pool("copy", PoolOptions::new()).unwrap();
    let original = store.open_pool("pool", PoolOptions::new()).unwrap();
    assert_eq!((value(&pool), value(&original)), (7, 7));
    drop((pool, original));
    store.close().unwrap();
    // The same goes to a directory of the program's own.
    let own = Store::create(directory.path().join("own"), StoreOptions::new()).unwrap();
    assert!(
        own.import(&place, &ImportOptions::default())
            .unwrap()
            .copied
            .is_none()
    );
    assert_eq!(
        value(&own.open_pool("pool", PoolOptions::new()).unwrap()),
        7
    );
}

/// Whatever a client sends of an export, or does not.
#[test]
fn what_a_client_sends_of_an_export_is_not_believed() {
    let (_directory, served, place) = exported();
    let export = Export::open(&place).unwrap();
    let remote = || Remote::open(&served.socket(), Default::default()).unwrap();
    let pools = |remote: &Remote| remote.pools().unwrap().len();
    let store = served.store();
    let files = || std::fs::read_dir(store.join("puddles")).unwrap().count();
    let before = files();
    let puddles: Vec<_> = export.manifest().puddles.keys().copied().collect();
    let (raw, _lock) = Raw::enter(&served.socket());
    let is_refused = |request: &Request| matches!(raw.ask(request), Answer::Failed(_));
    let begins = |bytes: &[u8]| {
        let part = bytes.to_vec();
        assert_eq!(
            raw.ask(&Request::Manifest { begins: true, part }),
            Answer::Done
        );
        let name = Some("copy".to_owned());
        raw.ask(&Request::BeginImport {
            name,
            into: None,
            untyped_hold_no_pointers: false,
        }) == Answer::Done
    };
    let give = Request::GivePuddles { puddles };
    let gives = || matches!(raw.ask(&give), Answer::Files(paths) if paths.len() == 1);
    // Out of order, damaged, or more than anybody has.
    assert!(is_refused(&give));
    assert!(is_refused(&Request::FinishImport));
    assert!(!begins(b"durum export 1 9 0x00000000"));
    let part = Request::Manifest {
        begins: false,
        part: vec![b'x'; 512 << 10],
    };
    assert!(
        (0..40).any(|_| is_refused(&part)),
        "it takes no more than 16 MiB"
    );
    // It takes no addresses for what there is no room for.
    let mut huge = export.manifest().clone();
    for puddle in huge.puddles.values_mut() {
        puddle.size = 1 << 39;
        puddle.address = huge.store.base;
    }
    assert!(!begins(&huge.encode().unwrap()));
    // Not all files, files twice, files with nothing in them.
    assert!(begins(export.manifest_bytes()));
    assert!(is_refused(&Request::FinishImport));
    assert!(begins(export.manifest_bytes()) && gives());
    assert!(is_refused(&give));
    assert!(is_refused(&Request::FinishImport), "there is no header");
    assert_eq!(files(), before);
    // One that is gone leaves nothing.
    assert!(begins(export.manifest_bytes()) && gives());
    assert_eq!(files(), before + 1);
    drop(raw);
    until("its files are gone", || files() == before);
    // And the service is as well as ever.
    let client = remote();
    assert_eq!(pools(&client), 1);
    client.import(&export, &named("copy")).unwrap();
    assert_eq!(pools(&client), 2);
    client.close().unwrap();
    let store = Store::open(served.address(), StoreOptions::new()).unwrap();
    let copy = store.open_pool("copy", PoolOptions::new()).unwrap();
    assert_eq!(value(&copy), 7);
}
