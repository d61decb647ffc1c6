//! Names in directories: pending until the directory is synced, each on its own; a rename is one change.

mod common;

use std::collections::BTreeSet;
use std::path::Path;

use common::*;
use durum_persist::beneath::Directory;
use durum_persist::file::{self, MediaFile};
use durum_persist::simulate::Rules;

/// What is in the directory: paths, with the content of files; without the file of the mapped tests.
fn listing(dir: &Path) -> Vec<String> {
    let mut found = Vec::new();
    collect(dir, "", &mut found);
    found.retain(|entry| !entry.starts_with("data="));
    found.sort();
    found
}

fn collect(dir: &Path, prefix: &str, found: &mut Vec<String>) {
    for entry in std::fs::read_dir(dir).unwrap() {
        let entry = entry.unwrap();
        let name = format!("{prefix}{}", entry.file_name().to_string_lossy());
        if entry.file_type().unwrap().is_dir() {
            found.push(format!("{name}/"));
            collect(&entry.path(), &format!("{name}/"), found);
        } else {
            let content = std::fs::read(entry.path()).unwrap();
            found.push(format!(
                "{name}={}",
                String::from_utf8_lossy(&content[..content.len().min(9)])
            ));
        }
    }
}

fn states(protocol: impl FnOnce(&Path)) -> BTreeSet<Vec<String>> {
    let trace = record_in(protocol);
    let states = states_at_end(&trace, Rules::Sectors, listing);
    // Names follow the same rules on persistent memory.
    assert_eq!(states, states_at_end(&trace, Rules::Lines, listing));
    states
}

fn set<const N: usize>(states: [&[&str]; N]) -> BTreeSet<Vec<String>> {
    let sorted = |state: &[&str]| {
        let mut entries: Vec<_> = state.iter().map(|entry| entry.to_string()).collect();
        entries.sort();
        entries
    };
    states.into_iter().map(sorted).collect()
}

fn write_synced(path: &Path, content: &str) {
    let file = MediaFile::create_new(path).unwrap();
    file.write_all_at(content.as_bytes(), 0).unwrap();
    file.sync(SETUP).unwrap();
}

#[test]
fn a_new_name_is_uncertain_until_the_directory_is_synced() {
    assert_eq!(
        states(|dir| write_synced(&dir.join("a"), "1")),
        set([&[], &["a=1"]])
    );
    let synced = |dir: &Path| {
        write_synced(&dir.join("a"), "1");
        sync_dir(dir);
    };
    assert_eq!(states(synced), set([&["a=1"]]));
}

#[test]
fn a_synced_name_does_not_make_the_content_durable() {
    let protocol = |dir: &Path| {
        MediaFile::create_new(&dir.join("a"))
            .unwrap()
            .write_all_at(b"1", 0)
            .unwrap();
        sync_dir(dir);
    };
    // The length without the content, too.
    assert_eq!(states(protocol), set([&["a="], &["a=\0"], &["a=1"]]));
}

#[test]
fn names_are_independent_of_each_other() {
    let protocol = |dir: &Path| {
        write_synced(&dir.join("a"), "1");
        write_synced(&dir.join("b"), "2");
    };
    assert_eq!(
        states(protocol),
        set([&[], &["a=1"], &["b=2"], &["a=1", "b=2"]])
    );
}

#[test]
fn a_replacing_rename_shows_the_old_or_the_new_file_and_never_neither() {
    let replace = |dir: &Path| {
        write_synced(&dir.join("a"), "old");
        write_synced(&dir.join("a.tmp"), "new");
        sync_dir(dir);
        file::rename(&dir.join("a.tmp"), &dir.join("a"), DATA).unwrap();
    };
    assert_eq!(states(replace), set([&["a=old", "a.tmp=new"], &["a=new"]]));
    let synced = |dir: &Path| {
        replace(dir);
        sync_dir(dir);
    };
    assert_eq!(states(synced), set([&["a=new"]]));
}

#[test]
fn a_rename_of_an_unsynced_file_may_show_nothing_of_it() {
    let protocol = |dir: &Path| {
        write_synced(&dir.join("a"), "1");
        file::rename(&dir.join("a"), &dir.join("b"), DATA).unwrap();
    };
    assert_eq!(states(protocol), set([&[], &["a=1"], &["b=1"]]));
}

#[test]
fn renames_in_a_chain_show_the_file_once() {
    let protocol = |dir: &Path| {
        write_synced(&dir.join("a"), "1");
        sync_dir(dir);
        file::rename(&dir.join("a"), &dir.join("b"), DATA).unwrap();
        file::rename(&dir.join("b"), &dir.join("c"), DATA).unwrap();
    };
    assert_eq!(states(protocol), set([&["a=1"], &["b=1"], &["c=1"]]));
}

fn found(dir: &Path) -> Directory {
    let name = dir.file_name().unwrap().to_str().unwrap();
    Directory::find(dir.parent().unwrap(), name).unwrap()
}

#[test]
fn a_link_is_a_name_of_its_own() {
    let protocol = |dir: &Path| {
        write_synced(&dir.join("a"), "1");
        sync_dir(dir);
        let directory = found(dir);
        directory.link("a", &directory, "b", DATA).unwrap();
        directory.remove("a", DATA).unwrap();
    };
    assert_eq!(
        states(protocol),
        set([&["a=1"], &["a=1", "b=1"], &["b=1"], &[]])
    );
    let synced = |dir: &Path| {
        write_synced(&dir.join("a"), "1");
        let directory = found(dir);
        directory.link("a", &directory, "b", DATA).unwrap();
        sync_dir(dir);
        file::remove(&dir.join("a"), DATA).unwrap();
    };
    assert_eq!(states(synced), set([&["a=1", "b=1"], &["b=1"]]));
}

#[test]
fn a_removed_name_may_come_back_until_the_directory_is_synced() {
    let remove = |dir: &Path| {
        write_synced(&dir.join("a"), "1");
        sync_dir(dir);
        file::remove(&dir.join("a"), DATA).unwrap();
    };
    assert_eq!(states(remove), set([&[], &["a=1"]]));
    let synced = |dir: &Path| {
        remove(dir);
        sync_dir(dir);
    };
    assert_eq!(states(synced), set([&[]]));
}

#[test]
fn without_its_directory_a_synced_file_is_gone() {
    let create = |dir: &Path| {
        file::create_dir(&dir.join("d"), DATA).unwrap();
        write_synced(&dir.join("d/a"), "1");
        sync_dir(&dir.join("d"));
    };
    assert_eq!(states(create), set([&[], &["d/", "d/a=1"]]));
    let synced = |dir: &Path| {
        create(dir);
        sync_dir(dir);
    };
    assert_eq!(states(synced), set([&["d/", "d/a=1"]]));
}

#[test]
fn a_renamed_directory_takes_its_files_along() {
    let protocol = |dir: &Path| {
        file::create_dir(&dir.join("d.tmp"), DATA).unwrap();
        write_synced(&dir.join("d.tmp/a"), "1");
        sync_dir(&dir.join("d.tmp"));
        sync_dir(dir);
        file::rename(&dir.join("d.tmp"), &dir.join("d"), DATA).unwrap();
        write_synced(&dir.join("d/b"), "2");
        sync_dir(&dir.join("d"));
    };
    assert_eq!(
        states(protocol),
        set([
            &["d.tmp/", "d.tmp/a=1", "d.tmp/b=2"],
            &["d/", "d/a=1", "d/b=2"]
        ])
    );
}

#[test]
fn a_rename_between_directories_is_durable_when_either_is_synced() {
    for synced in ["", "d"] {
        let protocol = |dir: &Path| {
            file::create_dir(&dir.join("d"), DATA).unwrap();
            write_synced(&dir.join("a"), "1");
            sync_dir(dir);
            file::rename(&dir.join("a"), &dir.join("d/a"), DATA).unwrap();
            sync_dir(&dir.join(synced));
        };
        assert_eq!(
            states(protocol),
            set([&["d/", "d/a=1"]]),
            "with {synced:?} synced"
        );
    }
}

#[test]
fn a_name_used_again_shows_any_of_its_files_or_none() {
    let protocol = |dir: &Path| {
        write_synced(&dir.join("a"), "1");
        sync_dir(dir);
        file::remove(&dir.join("a"), DATA).unwrap();
        write_synced(&dir.join("a"), "2");
    };
    assert_eq!(states(protocol), set([&[], &["a=1"], &["a=2"]]));
}
