//! What the tests of the programs share.

use std::path::Path;

use durum_service::{CheckOptions, Leaks, Severity, check};

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
