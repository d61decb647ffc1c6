//! Maps that are damaged, and are to be built anew.

use std::os::unix::fs::FileExt;
use std::path::Path;

use durum::Engine;
use durum::typed::*;

use super::alone;
use super::maps::{YEAR, is, make, was};

/// Writes a word to where a part of the pool lies.
fn write_word(path: &Path, address: usize, word: u64) {
    let reader = durum_service::ReadOnlyStore::open(path).unwrap();
    let puddles = reader.puddles();
    let holds = |puddle: &&durum_service::PuddleSummary| {
        (puddle.address..puddle.address + puddle.size).contains(&(address as u64))
    };
    let puddle = puddles.iter().find(holds).unwrap();
    let file = path.join("puddles").join(puddle.uuid.to_string());
    let file = std::fs::OpenOptions::new().write(true).open(file).unwrap();
    let at = address as u64 - puddle.address;
    file.write_all_at(&word.to_le_bytes(), at).unwrap();
}

/// What a map says of its table, or of its nodes, is not followed where its objects have no room for that.
#[test]
fn a_damaged_map_is_told_and_not_followed() {
    // Words of the maps: table, groups, len and seed; root, height and len.
    for (of_table, word, says) in [
        (true, 1, 3),
        (true, 1, 1 << 40),
        (true, 1, 1 << 62),
        (false, 1, 0),
        (false, 1, 1),
        (false, 1, 9),
        (false, 1, 1 << 40),
        (false, 2, 1),
        (false, 2, 1 << 20),
        (false, 2, 1 << 62),
    ] {
        let (_alone, directory) = alone();
        let path = directory.path().join("store");
        make(&path, Engine::Hybrid);
        let root = was::P::open::<was::Entry>(&path, 0).unwrap();
        let address = was::P::transaction(|j| {
            let diary = root.lock(j);
            match of_table {
                true => std::ptr::from_ref(&diary.by_day).addr(),
                false => std::ptr::from_ref(&diary.in_order).addr(),
            }
        });
        let address = address.unwrap();
        root.close().unwrap();
        write_word(&path, address + 8 * word, says);
        let told = is::P::migrate::<is::Entry>(&path, is::migration(YEAR)).unwrap_err();
        let told = told.to_string();
        let map = if of_table { "by_day" } else { "in_order" };
        let part = format!("{map}: it is damaged: it says more than its objects hold");
        assert!(told.contains(&part), "{word} {says}: {told}");
        let puddles = std::fs::read_dir(path.join("puddles")).unwrap().count();
        assert_eq!(puddles, 1, "nothing is left");
    }
}
