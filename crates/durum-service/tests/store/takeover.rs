//! Stores of the form before, with a database and a catalog: they open as if nothing had happened, and a crash in
//! between changes nothing.
//!
//! The images were made by the last version that wrote the form. Each has a pool of each engine whose root is two
//! words; 20 transactions set both to their number, and of the store that was killed a 21st had set one of them in each
//! pool.

use std::fs;
use std::path::Path;

use durum_persist::record::note;
use durum_persist::simulate::{Plan, Rules, explore_with_recovery};
use durum_service::{Embedded, Error, ErrorKind, ReadOnlyStore, Service, Severity, check, repair};

use crate::support::{heap, open_options, recorder, root, scratch, snapshot, word};

const POOLS: [&str; 3] = ["hybrid", "shadow", "twin"];
const IMAGES: [(&str, &[u8]); 2] = [
    ("clean", include_bytes!("../images/catalog-1-clean.img")),
    ("killed", include_bytes!("../images/catalog-1-killed.img")),
];

/// Makes the store of an image: a line for each directory and file, and below a file its pieces that are not zero.
fn unpack(image: &[u8], path: &Path) {
    fs::create_dir(path).unwrap();
    let mut rest = image;
    let mut file: Option<fs::File> = None;
    while let Some(end) = rest.iter().position(|byte| *byte == b'\n') {
        let line = std::str::from_utf8(&rest[..end]).unwrap();
        rest = &rest[end + 1..];
        let words: Vec<&str> = line.split(' ').collect();
        let number = |index: usize| words[index].parse::<u64>().unwrap();
        match words[0] {
            "directory" => fs::create_dir(path.join(words[1])).unwrap(),
            "file" => {
                let made = fs::File::create_new(path.join(words[1])).unwrap();
                made.set_len(number(2)).unwrap();
                file = Some(made);
            }
            "piece" => {
                use std::os::unix::fs::FileExt;
                let (piece, behind) = rest.split_at(number(2) as usize);
                let file = file.as_ref().unwrap();
                file.write_all_at(piece, number(1)).unwrap();
                rest = &behind[1..];
            }
            _ => assert_eq!(line, "durum image 1"),
        }
    }
}

fn text(error: Error) -> String {
    error.to_string()
}

/// Opens the store and looks at the words of all pools.
fn assert_whole(path: &Path) -> Result<(), String> {
    let store = Embedded::open(path, open_options()).map_err(text)?;
    if !store.recovery_report().quarantined.is_empty() {
        return Err("a log was quarantined".to_owned());
    }
    if store.types().map_err(text)?.len() != 1 {
        return Err("the type is gone".to_owned());
    }
    for name in POOLS {
        let pool = store.open_pool(name).map_err(text)?;
        let root = root(&pool);
        let words = [16, 24].map(|offset| word(root, heap(root) + offset));
        if words != [20, 20] {
            return Err(format!("pool {name}: {words:?}"));
        }
    }
    store.close().map_err(text)
}

fn names(path: &Path) -> Vec<String> {
    let entries = fs::read_dir(path).unwrap();
    let names = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let mut names: Vec<String> = names.collect();
    names.sort();
    names
}

const NOW: [&str; 6] = [
    "durum.store",
    "lock",
    "puddles",
    "quarantine",
    "registry",
    "registry.copy",
];

#[test]
fn stores_of_the_form_before_are_taken_over() {
    for (name, image) in IMAGES {
        let directory = scratch();
        let path = directory.path().join("store");
        unpack(image, &path);
        // Whoever only reads sees them as they are.
        let before = snapshot(&path);
        let reader = ReadOnlyStore::open(&path).unwrap();
        assert_eq!(reader.is_clean(), name == "clean");
        let seen: Vec<String> = reader.pools().into_iter().map(|pool| pool.name).collect();
        assert_eq!(seen, POOLS);
        let report = check(&path, &Default::default()).unwrap();
        assert!(report.is_sound(), "{name}: {:?}", report.findings);
        assert!(snapshot(&path) == before, "{name}: bytes were changed");
        for round in 0..2 {
            assert_whole(&path).unwrap_or_else(|problem| panic!("{name}, {round}: {problem}"));
            assert_eq!(names(&path), NOW);
            let report = check(&path, &Default::default()).unwrap();
            assert!(report.findings.is_empty(), "{:?}", report.findings);
        }
    }
}

#[test]
fn a_repair_takes_them_over_too_and_nobody_needs_the_database() {
    for (name, image) in IMAGES {
        for database in ["whole", "damaged", "gone"] {
            let directory = scratch();
            let path = directory.path().join("store");
            unpack(image, &path);
            match database {
                "damaged" => fs::write(path.join("registry.redb"), "x").unwrap(),
                "gone" => fs::remove_file(path.join("registry.redb")).unwrap(),
                _ => {}
            }
            if database != "gone" {
                assert_eq!(repair(&path).unwrap().actions.len(), 1);
                assert_eq!(names(&path), NOW);
            }
            assert_whole(&path)
                .unwrap_or_else(|problem| panic!("{name}, database {database}: {problem}"));
        }
    }
}

#[test]
fn a_catalog_that_is_damaged_is_refused_and_nothing_changed() {
    let directory = scratch();
    let path = directory.path().join("store");
    unpack(IMAGES[0].1, &path);
    let catalog = path.join("catalog");
    let whole = fs::read(&catalog).unwrap();
    for at in (0..whole.len()).step_by(7) {
        let mut damaged = whole.clone();
        damaged[at] ^= 1 << (at % 8);
        fs::write(&catalog, damaged).unwrap();
        let before = snapshot(&path);
        let refusal = Embedded::open(&path, open_options()).unwrap_err();
        let group = refusal.kind();
        assert!(
            matches!(group, ErrorKind::Data | ErrorKind::User),
            "{refusal}"
        );
        assert!(
            refusal.to_string().contains("catalog"),
            "byte {at}: {refusal}"
        );
        let report = check(&path, &Default::default()).unwrap();
        let found = report.findings.iter().map(|finding| finding.severity);
        assert!(found.max() == Some(Severity::Damage), "byte {at}");
        assert!(snapshot(&path) == before, "byte {at}: bytes were changed");
    }
    fs::remove_file(&catalog).unwrap();
    let refusal = Embedded::open(&path, open_options())
        .unwrap_err()
        .to_string();
    assert!(
        refusal.contains("with the durum that wrote it"),
        "{refusal}"
    );
    fs::write(&catalog, &whole).unwrap();
    assert_whole(&path).unwrap();
}

/// A removal on a full disk: files went before the catalog was written.
#[test]
fn a_client_whose_files_are_all_gone_has_ended() {
    let directory = scratch();
    let path = directory.path().join("store");
    unpack(IMAGES[1].1, &path);
    assert_whole(&path).unwrap();
    let kept = names(&path.join("puddles"));
    // As if the recovery of then had removed the logs, and had found no room for the catalog.
    let again = directory.path().join("again");
    unpack(IMAGES[1].1, &again);
    for name in names(&again.join("puddles")) {
        let file = again.join("puddles").join(&name);
        match kept.contains(&name) {
            true => drop(fs::copy(path.join("puddles").join(&name), &file).unwrap()),
            false => fs::remove_file(&file).unwrap(),
        }
    }
    assert_whole(&again).unwrap();
}

/// An older durum knows nothing of the new file, and opens the store by the old ones as long as they are there.
#[test]
fn what_an_older_durum_did_after_an_interrupted_takeover_counts() {
    let directory = scratch();
    let path = directory.path().join("store");
    unpack(IMAGES[0].1, &path);
    let old = ["catalog", "registry.redb"].map(|name| fs::read(path.join(name)).unwrap());
    let as_before = |catalog: &[u8]| {
        fs::write(path.join("catalog"), catalog).unwrap();
        fs::write(path.join("registry.redb"), &old[1]).unwrap();
    };
    drop(Embedded::open(&path, open_options()).unwrap());
    // The catalog is as old as the registry: a crash came before it was removed.
    as_before(&old[0]);
    assert_whole(&path).unwrap();
    assert_eq!(names(&path), NOW);
    // It is newer, and has no types any more.
    let mut catalog = durum_format::catalog::Catalog::parse(&old[0]).unwrap();
    catalog.commit += 100;
    catalog.types.clear();
    as_before(&catalog.encode().unwrap());
    let store = Embedded::open(&path, open_options()).unwrap();
    assert!(store.types().unwrap().is_empty());
}

#[test]
fn a_takeover_can_be_interrupted_anywhere() {
    for (name, image) in IMAGES {
        let directory = scratch();
        let path = directory.path().join("store");
        unpack(image, &path);
        let recorder = recorder(directory.path(), None);
        drop(Embedded::open(&path, open_options()).unwrap());
        note("taken over", 1);
        let trace = recorder.stop();
        assert_eq!(trace.bypassed(), [] as [&str; 0]);
        let plan = Plan {
            random_images: 4,
            single_units_max: 6,
            exhaustive_max: 8,
            nested_one_in: 20,
            nested_depth: 1,
            nested_points_max: Some(6),
            ..Plan::new(Rules::Sectors, 71)
        };
        let explored = explore_with_recovery(
            &trace,
            &plan,
            |image| {
                let path = image.join("store");
                ReadOnlyStore::open(&path).map_err(text)?;
                Embedded::open(&path, open_options())
                    .map(drop)
                    .map_err(text)
            },
            |image, point| {
                let path = image.join("store");
                if point.last_note("taken over").is_some() && path.join("catalog").exists() {
                    return Err("the catalog is there again".to_owned());
                }
                assert_whole(&path)
            },
        );
        match explored {
            Ok(report) => println!("takeover, {name}: {report:?}"),
            Err(failure) => panic!("{name}: {failure}"),
        }
    }
}
