//! What the tests of the programs share.

#![allow(dead_code, reason = "each test file uses a part")]

use std::path::Path;

use durum_service::{
    CheckOptions, CreateOptions, DumpOptions, Embedded, EngineKind, Export, ImportOptions, Leaks,
    LoadOptions, ReadOnlyStore, Service, Severity, check, dump, load,
};

/// Knuth's linear congruential generator: the same numbers in every run.
pub struct Random(pub u64);

impl Random {
    pub fn below(&mut self, limit: usize) -> usize {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize % limit
    }
}

/// Every pointer in a store leads to an object, and the root leads to every object.
pub fn assert_nothing_is_lost(store: &Path) {
    let report = check(store, &CheckOptions::default()).unwrap();
    let bad = report
        .findings
        .iter()
        .find(|f| f.severity >= Severity::Leak);
    assert!(bad.is_none(), "{}", bad.unwrap());
    for pool in &report.pools {
        assert!(
            matches!(pool.leaks, Leaks::Judged { objects: 0, .. }),
            "{:?}",
            pool.leaks
        );
    }
}

/// The lines of pools.
fn lines_of(store: &Path, pools: &[&str]) -> Vec<u8> {
    let mut lines = Vec::new();
    let mut reader = ReadOnlyStore::open(store).unwrap();
    dump::<Box<dyn std::error::Error>>(&mut reader, pools, &mut lines, &DumpOptions::default())
        .unwrap();
    lines
}

/// Each pool of a store, dumped and loaded with another engine, gives the same lines, and nothing in it is lost.
pub fn assert_comes_back(store: &Path) {
    for pool in ReadOnlyStore::open(store).unwrap().pools() {
        assert_come_back(store, &[&pool.name]);
    }
}

/// The same of pools whose pointers lead into each other, together.
pub fn assert_come_back(store: &Path, pools: &[&str]) {
    let directory = tempfile::tempdir_in(store.parent().unwrap()).unwrap();
    let (copy, place) = (
        directory.path().join("copy"),
        directory.path().join("place"),
    );
    let lines = lines_of(store, pools);
    let service = Embedded::create(&copy, &CreateOptions::default()).unwrap();
    let options = LoadOptions {
        engine: Some(EngineKind::Twin),
        ..LoadOptions::default()
    };
    load(&mut &*lines, &place, &service.info(), &options).unwrap();
    let export = Export::open(&place).unwrap();
    service.import(&export, &ImportOptions::default()).unwrap();
    service.finish_moving().unwrap();
    service.close().unwrap();
    assert_nothing_is_lost(&copy);
    let behind_head = |lines: &[u8]| {
        let head = lines.iter().position(|byte| *byte == b'\n').unwrap();
        lines[head..].to_vec()
    };
    let again = lines_of(&copy, pools);
    // Not `assert_eq`, which would print all of them.
    assert!(
        behind_head(&lines) == behind_head(&again),
        "{}",
        store.display()
    );
}
