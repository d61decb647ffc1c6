//! Puddle files that the registry does not name: what a crash leaves of puddles that were being made or removed goes by
//! itself, and nothing else does.

use std::path::Path;

use durum_format::UNIT;
use durum_format::registry::parse;
use durum_persist::Site;
use durum_persist::record::note;
use durum_persist::simulate::{Failure, Plan, Report, Rules, explore};
use durum_service::{Embedded, Error, PuddleKind, PuddleOwner, Service, Severity, check, repair};

use crate::recovery::interrupted;
use crate::support::{
    Space, create, node_type, open, open_options, place_object, put, recorder, root, scratch,
    snapshot, spec,
};

/// What the registry lists as being removed.
fn removing(path: &Path) -> usize {
    let bytes = std::fs::read(path.join("registry")).unwrap();
    parse(&bytes).unwrap().state.removing.len()
}

#[test]
fn a_removed_puddle_is_listed_until_its_file_is_gone_for_good() {
    let directory = scratch();
    let path = directory.path().join("store");
    let store = create(&path);
    let pool = store.create_pool("a", &spec()).unwrap();
    let make = || {
        store
            .create_puddle(PuddleOwner::Pool(pool.uuid), PuddleKind::Data, UNIT)
            .unwrap()
    };
    let first = make();
    put(&first, 4096, &[1]);
    store.remove_puddle(first.uuid).unwrap();
    assert_eq!(removing(&path), 1);
    // The next puddle syncs the directory; its commit says that the file is gone.
    let second = make();
    assert_eq!(removing(&path), 0);
    store.remove_puddle(second.uuid).unwrap();
    store.close().unwrap();
    drop((first, second, store));
    assert_eq!(removing(&path), 1);
    let store = open(&path);
    store.open_pool("a").unwrap();
    assert_eq!(removing(&path), 1);
    store.create_pool("b", &spec()).unwrap();
    assert_eq!(removing(&path), 0);
}

/// As if a crash had come between the commit of a removal and the end of the file.
#[test]
fn a_file_that_was_being_removed_goes_though_it_is_full() {
    let directory = scratch();
    let path = directory.path().join("store");
    let store = create(&path);
    let pool = store.create_pool("a", &spec()).unwrap();
    place_object(root(&pool), 0, node_type().id(), &[7; 16]);
    let file = path.join("puddles").join(pool.root.uuid.to_string());
    let kept = std::fs::read(&file).unwrap();
    store.close_pool(pool.uuid).unwrap();
    store.remove_pool("a").unwrap();
    store.close().unwrap();
    drop((pool, store));
    std::fs::write(&file, &kept).unwrap();
    let report = check(&path, &Default::default()).unwrap();
    assert!(report.is_sound(), "{:?}", report.findings);
    assert!(report.findings[0].text.contains("being removed"));
    let store = open(&path);
    assert_eq!(
        store.recovery_report().orphans_removed,
        std::slice::from_ref(&file)
    );
    // Once the registry has heard that it is gone, such a file is a puddle that nobody knows.
    store.create_pool("b", &spec()).unwrap();
    drop(store);
    std::fs::write(&file, &kept).unwrap();
    assert_refused(&path);
}

fn assert_refused(path: &Path) {
    let before = snapshot(path);
    match Embedded::open(path, open_options()) {
        Err(Error::RegistryOlder { files, .. }) => assert!(!files.is_empty()),
        other => panic!("{other:?}"),
    }
    let report = check(path, &Default::default()).unwrap();
    let of_damage = |finding: &&durum_service::Finding| finding.severity == Severity::Damage;
    let found: Vec<_> = report.findings.iter().filter(of_damage).collect();
    assert!(
        found.iter().all(|finding| finding.text.contains("older")),
        "{found:?}"
    );
    assert!(!found.is_empty());
    assert!(snapshot(path) == before, "bytes were changed");
}

/// A store whose registry is older than a puddle of each kind that is in use, and one of each that is not.
fn older(path: &Path) {
    let store = create(path);
    store.close().unwrap();
    drop(store);
    let old = ["registry", "registry.copy"].map(|name| std::fs::read(path.join(name)).unwrap());
    let store = open(path);
    let pool = store.create_pool("a", &spec()).unwrap();
    place_object(root(&pool), 0, node_type().id(), &[7; 16]);
    store
        .create_puddle(PuddleOwner::Pool(pool.uuid), PuddleKind::Data, UNIT)
        .unwrap();
    Space::new(&store).log(&store, 5);
    store
        .create_puddle(PuddleOwner::Client, PuddleKind::Log, UNIT)
        .unwrap();
    drop((pool, store));
    for (name, bytes) in ["registry", "registry.copy"].iter().zip(old) {
        std::fs::write(path.join(name), bytes).unwrap();
    }
}

#[test]
fn puddles_in_use_are_moved_aside_only_when_somebody_asks() {
    let directory = scratch();
    let path = directory.path().join("store");
    older(&path);
    assert_refused(&path);
    let actions = repair(&path).unwrap().actions;
    let told = |what: &str| {
        actions
            .iter()
            .filter(|action| action.starts_with(what))
            .count()
    };
    // A data puddle, a log space and a log; and two that nobody has written in, which the log may be about.
    assert_eq!(
        (told("moved"), told("removed an orphan")),
        (5, 0),
        "{actions:?}"
    );
    let report = check(&path, &Default::default()).unwrap();
    assert_eq!(report.findings.len(), 5, "{:?}", report.findings);
    assert!(!report.is_sound());
    assert!(repair(&path).unwrap().actions.is_empty());
    drop(open(&path));
    std::fs::remove_dir_all(path.join("unregistered")).unwrap();
    let report = check(&path, &Default::default()).unwrap();
    assert!(report.findings.is_empty(), "{:?}", report.findings);
}

/// A link leads out of the store: nothing of it goes there.
#[test]
fn nothing_is_moved_aside_through_a_link_or_a_pipe() {
    let directory = scratch();
    let path = directory.path().join("store");
    older(&path);
    let (out, place) = (directory.path().join("out"), path.join("unregistered"));
    std::fs::create_dir(&out).unwrap();
    for is_link in [true, false] {
        if is_link {
            std::os::unix::fs::symlink(&out, &place).unwrap();
        } else {
            let made = std::process::Command::new("mkfifo").arg(&place).status();
            assert!(made.unwrap().success());
        }
        let puddles = snapshot(&path.join("puddles"));
        let refusal = repair(&path).unwrap_err();
        assert!(matches!(refusal, Error::NotAFile { .. }), "{refusal}");
        assert!(refusal.to_string().contains("move it away"), "{refusal}");
        assert!(snapshot(&path.join("puddles")) == puddles);
        assert_eq!(std::fs::read_dir(&out).unwrap().count(), 0);
        let report = check(&path, &Default::default()).unwrap();
        let told = |finding: &durum_service::Finding| {
            finding.severity == Severity::Damage && finding.text.contains("not a directory")
        };
        assert!(report.findings.iter().any(told), "{:?}", report.findings);
        std::fs::remove_file(&place).unwrap();
    }
    assert_eq!(repair(&path).unwrap().actions.len(), 5);
}

/// What was to be in a new puddle may stand in a log only, so nobody removes it before the logs are replayed.
#[test]
fn a_repair_leaves_what_a_log_may_be_about() {
    let directory = scratch();
    let path = directory.path().join("store");
    interrupted(&path);
    let file = path.join("puddles/01234567-89ab-4def-8123-456789abcdef");
    std::fs::File::create(&file).unwrap().set_len(UNIT).unwrap();
    let actions = repair(&path).unwrap().actions;
    assert!(actions.is_empty(), "{actions:?}");
    assert!(file.is_file());
    let report = check(&path, &Default::default()).unwrap();
    let told = |finding: &&durum_service::Finding| finding.file == file;
    let finding = report.findings.iter().find(told).unwrap();
    assert!(finding.text.contains("not replayed"), "{finding:?}");
    open(&path).close().unwrap();
    assert!(!file.exists());
}

pub fn explore_aside(skip: Option<Site>, plan: &Plan) -> Result<Report, Failure> {
    let directory = scratch();
    let path = directory.path().join("store");
    older(&path);
    let recorder = recorder(directory.path(), skip);
    repair(&path).unwrap();
    note("moved", 1);
    let trace = recorder.stop();
    explore(&trace, plan, |image, point| {
        let path = image.join("store");
        let text = |error: Error| error.to_string();
        if point.last_note("moved").is_none() {
            repair(&path).map_err(text)?;
        }
        let aside =
            std::fs::read_dir(path.join("unregistered")).map_err(|error| error.to_string())?;
        match aside.count() {
            5 => Embedded::open(&path, open_options())
                .map(drop)
                .map_err(text),
            count => Err(format!("{count} puddles were moved")),
        }
    })
}

#[test]
fn puddles_are_moved_aside_whole_or_not_at_all() {
    let plan = Plan {
        random_images: 6,
        ..Plan::new(Rules::Sectors, 81)
    };
    println!(
        "aside: {:?}",
        explore_aside(None, &plan).unwrap_or_else(|failure| panic!("{failure}"))
    );
}

/// The logs of a program that was killed are removed, and the commit of the next new puddle says that they are gone.
pub fn explore_gone(skip: Option<Site>, plan: &Plan) -> Result<Report, Failure> {
    let directory = scratch();
    let path = directory.path().join("store");
    interrupted(&path);
    let recorder = recorder(directory.path(), skip);
    let store = open(&path);
    store.create_pool("more", &spec()).unwrap();
    store.close().unwrap();
    drop(store);
    let trace = recorder.stop();
    explore(&trace, plan, |image, _| {
        let path = image.join("store");
        let store = Embedded::open(&path, open_options()).map_err(|error| error.to_string())?;
        match store.recovery_report().quarantined.is_empty() {
            true => Ok(()),
            false => Err("a crash was taken for damage".to_owned()),
        }
    })
}

#[test]
fn a_file_that_is_gone_does_not_come_back_as_an_unknown_one() {
    let plan = Plan {
        random_images: 4,
        ..Plan::new(Rules::Sectors, 82)
    };
    println!(
        "gone: {:?}",
        explore_gone(None, &plan).unwrap_or_else(|failure| panic!("{failure}"))
    );
}
