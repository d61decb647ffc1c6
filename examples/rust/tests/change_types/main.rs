//! What docs/how-to/change-types.md shows is compiled and run: each version goes on with what the one before has
//! stored.

#![allow(dead_code, reason = "each version is shown as a whole")]

mod days;
mod first;
mod fourth;
mod pools;
mod second;
#[path = "../support/mod.rs"]
mod support;
mod third;

use std::fs;
use std::path::Path;

use durum::typed::*;
use durum::{Error, Store, StoreOptions};
use similar::{ChangeTag, TextDiff};
use support::assert_comes_back;

#[test]
fn each_version_goes_on_with_what_the_one_before_has_stored() -> durum::Result<()> {
    let dir = tempfile::tempdir_in("/dev/shm").unwrap();
    let path = dir.path().join("store");
    {
        let queue = first::P::open::<first::Queue>(&path, Flags::CREATE)?;
        first::P::transaction(|j| {
            queue.add("write", j);
            queue.add("read", j);
            let tasks = queue.tasks.borrow();
            *tasks[1].state.borrow_mut(j) = first::State::Running { worker: 3 };
            tasks[1].tries.set(2, j);
        })?;
    }
    assert_comes_back(&path);
    {
        let queue = second::P::open::<second::Queue>(&path, Flags::OPEN)?;
        second::P::transaction(|j| {
            let tasks = queue.tasks.borrow();
            assert!(matches!(
                *tasks[1].state.borrow(),
                second::State::Running { worker: 3 }
            ));
            assert_eq!((tasks[1].attempts.get(), tasks[1].deadline.get()), (2, 0));
            *tasks[0].state.borrow_mut(j) = second::State::Done { at: 70 };
            tasks[1].deadline.set(80, j);
        })?;
    }
    assert_comes_back(&path);
    let old = first::P::open::<first::Queue>(&path, Flags::OPEN)
        .err()
        .unwrap();
    assert!(matches!(old, Error::OldRootType { .. }), "{old}");
    {
        let queue = third::P::open::<third::Queue>(&path, Flags::OPEN)?;
        third::P::transaction(|j| {
            let mut jobs = queue.jobs.borrow_mut(j);
            assert!(matches!(
                *jobs[0].state.borrow(),
                third::State::Done { at: 70 }
            ));
            assert_eq!((&*jobs[1].name, jobs[1].deadline.get()), ("read", 80));
            let last = third::Job {
                name: PString::new("rest", j),
                state: PRefCell::new(third::State::Waiting, j),
                attempts: PCell::new(0, j),
                deadline: PCell::new(90, j),
                after: Some(jobs[1].pclone(j)),
            };
            jobs.push(Parc::new(last, j), j);
        })?;
    }
    let queue = third::P::open::<third::Queue>(&path, Flags::OPEN)?;
    let jobs = queue.jobs.borrow();
    let after = jobs[2].after.as_ref().map(|job| job.name.as_str());
    assert_eq!((after, jobs[0].after.is_none()), (Some("read"), true));
    drop(jobs);
    queue.close()?;
    assert_comes_back(&path);
    {
        let queue = fourth::open(&path)?;
        let jobs = queue.jobs.borrow();
        let told = jobs
            .iter()
            .map(|job| (&*job.name, job.priority.get(), job.deadline.get()));
        let told: Vec<_> = told.collect();
        assert_eq!(told, [("write", 5, 0), ("read", 5, 80), ("rest", 5, 90)]);
        let state = jobs[0].state.borrow();
        assert!(matches!(*state, fourth::State::Done { at: 70 }));
        assert_eq!((jobs[1].attempts.get(), queue.tried.get()), (2, 2));
        let after = jobs[2].after.as_ref();
        assert!(after.is_some_and(|after| after.as_ptr() == jobs[1].as_ptr()));
    }
    let report = durum_service::check(&path, &Default::default());
    assert_eq!(report.map(|report| report.findings).unwrap_or_default(), []);
    assert_comes_back(&path);
    let gone = third::P::open::<third::Queue>(&path, Flags::OPEN);
    assert!(matches!(gone, Err(Error::RootType { .. })));
    // It is what it is: nothing is made anew a second time.
    fourth::open(&path)?.close()
}

#[test]
fn keys_of_maps_change() -> durum::Result<()> {
    let dir = tempfile::tempdir_in("/dev/shm").unwrap();
    let path = dir.path().join("store");
    let diary = days::before::P::open::<days::before::Diary>(&path, Flags::CREATE)?;
    let numbers = [3, 400, 366, 40_000];
    days::before::P::transaction(|j| {
        for number in numbers {
            let day = days::before::Day { number };
            let note = PString::new(&format!("day {number}"), j);
            diary.notes.borrow_mut(j).insert(day, note, j);
            let day = days::before::Day { number };
            diary.marks.borrow_mut(j).insert(day, number.into(), j);
        }
    })?;
    diary.close()?;
    assert_comes_back(&path);
    let plan = days::P::plan_migration::<days::Diary>(&path, days::migration())?;
    assert_eq!((plan.refusals.len(), plan.rebuilt_maps), (0, 2));
    days::P::migrate::<days::Diary>(&path, days::migration())?;
    let diary = days::P::open::<days::Diary>(&path, Flags::OPEN)?;
    let (notes, marks) = (diary.notes.borrow(), diary.marks.borrow());
    let told: Vec<&str> = notes.values().map(|note| &**note).collect();
    assert_eq!(told, ["day 40000", "day 400", "day 366", "day 3"]);
    for number in numbers {
        let day = days::Day {
            year: 2000 + (number / 365) as u16,
            day: (number % 365) as u16,
        };
        assert_eq!(marks.get(&day), Some(&number.into()));
        assert_eq!(&*notes[&day], format!("day {number}").as_str());
    }
    Ok(())
}

#[test]
fn pools_are_made_anew_together() -> durum::Result<()> {
    use pools::{Entries, Index, Lines, Log, before};
    let dir = tempfile::tempdir_in("/dev/shm").unwrap();
    let path = dir.path().join("store");
    let store = Store::create(&path, StoreOptions::default())?;
    let lines = before::Log::open_in::<before::Lines>(&store, "log", Flags::CREATE)?;
    let entries = before::Index::open_in::<before::Entries>(&store, "index", Flags::CREATE)?;
    before::Log::transaction(|j| lines.count.set(3, j))?;
    before::Index::transaction(|j| {
        let entry = before::Entry { line: 8 };
        entries.all.borrow_mut(j).push(entry, j);
    })?;
    lines.close()?;
    entries.close()?;
    store.close()?;
    assert_comes_back(&path);
    pools::migrate(&path)?;
    assert_comes_back(&path);
    let store = Store::open(&path, StoreOptions::default())?;
    let lines = Log::open_in::<Lines>(&store, "log", Flags::OPEN)?;
    let entries = Index::open_in::<Entries>(&store, "index", Flags::OPEN)?;
    assert_eq!((lines.version.get(), lines.count.get()), (2, 3));
    assert_eq!(entries.all.borrow()[0].line, 8);
    Ok(())
}

/// The page shows the code above, and what a program of the first version is told.
#[test]
fn the_page_shows_code_of_the_versions() {
    let top = Path::new(env!("CARGO_MANIFEST_DIR"));
    let page = fs::read_to_string(top.join("../../docs/how-to/change-types.md")).unwrap();
    let versions = ["first", "second", "third", "fourth", "days", "pools"]
        .map(|name| fs::read_to_string(top.join(format!("tests/change_types/{name}.rs"))).unwrap());
    let blocks: Vec<_> = page.split("```rust\n").skip(1).collect();
    assert_eq!(blocks.len(), versions.len());
    for (block, version) in blocks.iter().zip(&versions) {
        let code = block.split("```").next().unwrap();
        assert!(version.contains(code), "{code}");
    }
}

/// Lines of a version without blank ones and comments.
fn lines_of(version: &str) -> Vec<String> {
    let top = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/change_types");
    let text = fs::read_to_string(top.join(format!("{version}.rs"))).unwrap();
    let lines = text.lines().map(str::trim);
    let lines = lines.filter(|line| !line.is_empty() && !line.starts_with("//"));
    lines.map(str::to_owned).collect()
}

#[test]
fn no_step_adds_more_than_fifteen_lines() {
    let versions = ["first", "second", "third", "fourth"].map(|name| (name, lines_of(name)));
    for pair in versions.windows(2) {
        let [old, new] = [0, 1].map(|at| pair[at].1.iter().map(String::as_str).collect::<Vec<_>>());
        let diff = TextDiff::from_slices(&old, &new);
        let added = diff
            .iter_all_changes()
            .filter(|change| change.tag() == ChangeTag::Insert);
        let added = added.count();
        println!("the {} version adds {added} lines", pair[1].0);
        assert!((1..=15).contains(&added), "{}: {added}", pair[1].0);
    }
}

/// Its section shows so many pieces of a program.
fn section_shows(section: &str, language: &str, program: &str, pieces: usize) {
    let top = Path::new(env!("CARGO_MANIFEST_DIR"));
    let page = fs::read_to_string(top.join("../../docs/how-to/change-types.md")).unwrap();
    let program = fs::read_to_string(top.join("..").join(program)).unwrap();
    let (_, section) = page.split_once(&format!("\n### {section}\n")).unwrap();
    let section = section.split("\n### ").next().unwrap();
    let blocks: Vec<_> = section.split(&format!("```{language}\n")).skip(1).collect();
    assert_eq!(blocks.len(), pieces);
    for block in blocks {
        let code = block.split("```").next().unwrap();
        assert!(program.contains(code), "{code}");
    }
}

#[test]
fn the_page_shows_code_of_the_diary() {
    section_shows("In C++", "cpp", "cpp/diary.cpp", 5);
}

/// compiler/tests/run/versions.test compiles it and runs it.
#[test]
fn the_page_shows_code_of_the_agenda() {
    section_shows("In NVL-C", "c", "nvl/agenda.nvl.c", 5);
}
