//! What the system refuses: files that cannot be read, opened or written, and descriptors.

use std::fs;
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;

use durum::{Domain, Engine, Store, StoreOptions};
use durum_persist::inject;
use durum_service::Embedded;

use crate::{
    Case, End, Left, each_file, look, open, pool_or_refusal, snapshot, step, support, waits_alone,
};

/// As a disk that fails.
#[test]
fn a_file_that_cannot_be_read_makes_its_pool_wait() {
    for engine in [Engine::Shadow, Engine::Hybrid, Engine::Twin] {
        // What differs is how files are read, and what is under way.
        let is_chosen = |case: Case| match case.domain {
            Domain::File => case.end == End::Alone && engine == Engine::Shadow,
            _ => case.end == End::Alone || engine == Engine::Hybrid,
        };
        each_file(engine, is_chosen, |case, left, file, _| {
            let fault = std::cell::RefCell::new(None);
            waits_alone(
                case,
                left,
                file,
                || *fault.borrow_mut() = Some(inject::fail_after(inject::Operation::Read, 0, file)),
                || *fault.borrow_mut() = None,
            );
        });
    }
}

/// Descriptors that are used up are no pool's fault: the open fails, and nothing is written.
#[test]
fn what_the_system_lacks_is_no_pools_fault() {
    let case = Case {
        engine: Engine::Shadow,
        domain: Domain::Dram,
        end: End::Alone,
    };
    let left = Left::new(case);
    let before = snapshot(&left.store(), &[]);
    let status = support::start("system::worker_without_descriptors", left.dir.path())
        .wait()
        .unwrap();
    assert!(status.success());
    assert!(snapshot(&left.store(), &[]) == before);
    let store = open(&left.store(), case.domain);
    let a = pool_or_refusal(&store, "a").unwrap();
    assert_eq!(look(&a).0, left.acknowledged[0]);
}

#[test]
#[ignore = "the other process of the test above"]
fn worker_without_descriptors() {
    let Some(dir) = support::directory() else {
        return;
    };
    // One of them is that of the directory that is read here.
    let used = fs::read_dir("/proc/self/fd").unwrap().count() as u64 - 1;
    for more in [1, 2] {
        let limit = libc::rlimit {
            rlim_cur: used + more,
            rlim_max: used + 100,
        };
        // SAFETY: the pointer is to a local.
        assert_eq!(unsafe { libc::setrlimit(libc::RLIMIT_NOFILE, &limit) }, 0);
        let opened = Embedded::open(&dir.join("store"), durum_service::OpenOptions::default());
        match opened.map(drop) {
            Err(durum_service::Error::Io { source, .. }) => {
                assert_eq!(source.raw_os_error(), Some(libc::EMFILE), "{source}");
            }
            other => panic!("with {more} descriptors: {other:?}"),
        }
    }
}

/// Another user's file.
#[test]
fn a_file_that_may_not_be_opened_makes_its_pool_wait() {
    // SAFETY: asks only.
    if unsafe { libc::geteuid() } != 0 {
        return; // Only root can run a process as another user.
    }
    for engine in [Engine::Shadow, Engine::Hybrid, Engine::Twin] {
        for (mode, domain) in [
            (0o000, Domain::Dram),
            (0o444, Domain::Dram),
            (0o000, Domain::File),
        ] {
            let case = Case {
                engine,
                domain,
                end: End::Alone,
            };
            let left = Left::new(case);
            let store = left.store();
            let file = left.files_of("b").remove(0);
            let owned = std::process::Command::new("chown")
                .args(["-R", "65534:65534"])
                .arg(left.dir.path())
                .status();
            assert!(owned.unwrap().success());
            std::os::unix::fs::chown(&file, Some(0), Some(0)).unwrap();
            fs::set_permissions(&file, fs::Permissions::from_mode(mode)).unwrap();
            let before = fs::read(&file).unwrap();
            let status = support::command("system::worker_that_recovers", left.dir.path())
                .uid(65534)
                .gid(65534)
                .status()
                .unwrap();
            assert!(status.success(), "{case:?} {mode:o}");
            assert!(fs::read(&file).unwrap() == before);
            fs::set_permissions(&file, fs::Permissions::from_mode(0o644)).unwrap();
            let opened = open(&store, case.domain);
            let [a, b] = ["a", "b"].map(|name| look(&pool_or_refusal(&opened, name).unwrap()));
            assert_eq!(a.0, left.acknowledged[0] + 1);
            assert_eq!(b.0, left.acknowledged[1]);
            opened.close().unwrap();
        }
    }
}

#[test]
#[ignore = "the other process of the test above"]
fn worker_that_recovers() {
    let Some(dir) = support::directory() else {
        return;
    };
    let store = Store::open(dir.join("store"), StoreOptions::new()).unwrap();
    let why = pool_or_refusal(&store, "b").expect_err("it cannot be written");
    let denied = io::Error::from_raw_os_error(libc::EACCES).to_string();
    assert!(why.contains(&denied), "{why}");
    let a = pool_or_refusal(&store, "a").unwrap();
    step(&[&a], false, || ());
    drop(a);
    store.close().unwrap();
}

/// Another user's log: recovery could replay it, and not make it durable before. The registry's copy is mended first.
#[test]
fn a_log_that_may_not_be_written_changes_nothing() {
    // SAFETY: asks only.
    if unsafe { libc::geteuid() } != 0 {
        return; // Only root can run a process as another user.
    }
    for engine in [Engine::Shadow, Engine::Hybrid] {
        let left = Left::new(Case {
            engine,
            domain: Domain::Dram,
            end: End::Both,
        });
        let store = left.store();
        let of_pools: Vec<PathBuf> = ["a", "b"].map(|pool| left.files_of(pool)).concat();
        let owned = std::process::Command::new("chown")
            .args(["-R", "65534:65534"])
            .arg(left.dir.path())
            .status();
        assert!(owned.unwrap().success());
        for entry in fs::read_dir(store.join("puddles")).unwrap() {
            let file = entry.unwrap().path();
            if !of_pools.contains(&file) {
                std::os::unix::fs::chown(&file, Some(0), Some(0)).unwrap();
                fs::set_permissions(&file, fs::Permissions::from_mode(0o444)).unwrap();
            }
        }
        // It is made anew: the registry that recovery follows is durable twice before.
        let copy = store.join("registry.copy");
        fs::remove_file(&copy).unwrap();
        let before = snapshot(&store, &[&copy]);
        let status = support::command("system::worker_that_cannot_recover", left.dir.path())
            .uid(65534)
            .gid(65534)
            .status()
            .unwrap();
        assert!(status.success(), "{engine:?}");
        assert!(snapshot(&store, &[&copy]) == before, "{engine:?}");
    }
}

#[test]
#[ignore = "the other process of the test above"]
fn worker_that_cannot_recover() {
    let Some(dir) = support::directory() else {
        return;
    };
    let error = Store::open(dir.join("store"), StoreOptions::new()).unwrap_err();
    let denied = io::Error::from_raw_os_error(libc::EACCES).to_string();
    assert!(error.to_string().contains(&denied), "{error}");
}
