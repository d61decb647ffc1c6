//! Code that completes sections is whole before anybody records one. Its sync left out is noticed.

use std::path::Path;

use durum::{Domain, Engine, PoolOptions, Store, StoreOptions};
use durum_format::code::places::Places;
use durum_persist::Site;
use durum_persist::record::{self, Recorder, RecorderOptions, Trace};
use durum_persist::simulate::{Plan, Rules, explore};
use durum_service::{CheckOptions, Severity, check};

/// A program deposits code, and may record sections then.
fn record(skip: Option<Site>) -> Trace {
    let directory = tempfile::tempdir_in("/dev/shm").unwrap();
    let path = directory.path().join("store");
    let options = StoreOptions::new().domain(Domain::Dax);
    let store = Store::create(&path, options).unwrap();
    let heap = PoolOptions::new().engine(Engine::Hybrid);
    let _heap = store.create_pool("heap", heap).unwrap();
    let options = RecorderOptions {
        skip,
        ..RecorderOptions::default()
    };
    let recorder = Recorder::start(&path, options);
    let code: Vec<u8> = (0..20_000u32).map(|at| (at / 7) as u8 | 1).collect();
    let places = Places {
        program: "program",
        build: "3f2a81",
        functions: Vec::new(),
    };
    store.deposit(&code, &places.encode()).unwrap();
    record::note("deposited", 1);
    recorder.stop()
}

/// What `durum check` says of an image: it reads what clients have deposited.
fn judge(image: &Path) -> Result<(), String> {
    let report = check(image, &CheckOptions::default()).map_err(|error| error.to_string())?;
    let mut findings = report.findings.iter();
    match findings.find(|finding| finding.severity > Severity::Leak) {
        Some(finding) => Err(finding.to_string()),
        None => Ok(()),
    }
}

fn explored(skip: Option<Site>) -> Result<u64, String> {
    let mut judged = 0;
    let plan = Plan::new(Rules::Lines, 1);
    let explored = explore(&record(skip), &plan, |image, point| {
        match point.last_note("deposited") {
            None => Ok(()),
            Some(_) => {
                judged += 1;
                judge(image)
            }
        }
    });
    explored
        .map(|_| judged)
        .map_err(|failure| failure.to_string())
}

#[test]
fn a_deposit_is_whole_when_it_was_made() {
    assert!(explored(None).unwrap() > 0);
    explored(Some(Site("code that completes sections"))).expect_err("nothing is noticed");
}
