//! Maps that are damaged, and are to be built anew.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::Path;

use durum::Engine;
use durum::typed::*;

use super::alone;
use super::maps::{YEAR, is, make, was};

/// The file with a part of the pool, and where in it that lies.
fn place(path: &Path, address: usize) -> (File, u64) {
    let reader = durum_service::ReadOnlyStore::open(path).unwrap();
    let puddles = reader.puddles();
    let holds = |puddle: &&durum_service::PuddleSummary| {
        (puddle.address..puddle.address + puddle.size).contains(&(address as u64))
    };
    let puddle = puddles.iter().find(holds).unwrap();
    let file = path.join("puddles").join(puddle.uuid.to_string());
    let file = File::options().read(true).write(true).open(file).unwrap();
    (file, address as u64 - puddle.address)
}

fn write_word(path: &Path, address: usize, word: u64) {
    let (file, at) = place(path, address);
    file.write_all_at(&word.to_le_bytes(), at).unwrap();
}

fn read_word(path: &Path, address: usize) -> u64 {
    let (file, at) = place(path, address);
    let mut word = [0; 8];
    file.read_exact_at(&mut word, at).unwrap();
    u64::from_le_bytes(word)
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

/// Where the children of a node of `in_order` begin.
const CHILDREN: usize = 8 + 15 * 16;

#[test]
fn a_damaged_node_is_told_and_not_followed() {
    for is_child in [false, true] {
        let (_alone, directory) = alone();
        let path = directory.path().join("store");
        make(&path, Engine::Hybrid);
        let root = was::P::open::<was::Entry>(&path, 0).unwrap();
        let map = was::P::transaction(|j| std::ptr::from_ref(&root.lock(j).in_order).addr());
        root.close().unwrap();
        let node = read_word(&path, map.unwrap()) as usize;
        let below = read_word(&path, node + CHILDREN) as usize;
        match is_child {
            true => write_word(&path, below + CHILDREN, 0),
            false => {
                // As many entries as before, and one of them twice.
                let leaf = read_word(&path, below + CHILDREN) as usize;
                let order = read_word(&path, leaf);
                assert!(order & 15 > 1);
                write_word(&path, leaf, order & !0xf00 | (order & 0xf0) << 4);
            }
        }
        let told = is::P::migrate::<is::Entry>(&path, is::migration(YEAR)).unwrap_err();
        let told = told.to_string();
        let part = "in_order: it is damaged: it says more than its objects hold";
        assert!(told.contains(part), "{is_child}: {told}");
    }
}

mod many {
    use durum::typed::*;

    durum::pool!(pub P);

    #[derive(PSafe, PartialEq, Eq, Hash, PartialOrd, Ord)]
    #[repr(C)]
    pub struct Flag {
        pub number: u32,
        pub is_set: bool,
    }

    pub type Map = PHashMap<u32, u32, P>;
    pub type Tree = PBTreeMap<u32, u32, P>;
    pub type Flags = PHashMap<Flag, u8, P>;
    pub type InOrder = PBTreeMap<Flag, u8, P>;

    #[derive(PSafe, Root)]
    #[repr(C)]
    pub struct Head {
        pub maps: PRefCell<PVec<Map, P>, P>,
        pub trees: PRefCell<PVec<Tree, P>, P>,
        pub flags: PRefCell<Flags, P>,
        pub in_order: PRefCell<InOrder, P>,
    }

    pub fn migration() -> Migration<P> {
        Migration::new()
            .rebuild::<Map, Map>()
            .rebuild::<Tree, Tree>()
            .rebuild::<Flags, Flags>()
            .rebuild::<InOrder, InOrder>()
    }
}

/// So many that what they say together is more than the pool has.
const MAPS: usize = 3000;
/// What is in one of them, and takes more than so many bytes.
const ENTRIES: u32 = 100;
const TABLE: u64 = 1500;
/// A number that is nowhere else.
const NUMBER: u32 = 0x7a5b_3c1d;

/// Where the first map lies, and the first tree.
fn make_many(path: &Path) -> [usize; 2] {
    let root = many::P::open::<many::Head>(path, Flags::CREATE).unwrap();
    let found = many::P::transaction(|j| {
        let (mut maps, mut trees) = (root.maps.borrow_mut(j), root.trees.borrow_mut(j));
        for _ in 0..MAPS {
            maps.push(many::Map::new(), j);
            trees.push(many::Tree::new(), j);
        }
        for number in 0..ENTRIES {
            maps[0].insert(number, number, j);
            trees[0].insert(number, number, j);
        }
        for number in [NUMBER, NUMBER + 1] {
            let flag = |is_set| many::Flag { number, is_set };
            root.flags.borrow_mut(j).insert(flag(true), 1, j);
            root.in_order.borrow_mut(j).insert(flag(true), 1, j);
        }
        [
            std::ptr::from_ref(&maps[0]).addr(),
            std::ptr::from_ref(&trees[0]).addr(),
        ]
    });
    root.close().unwrap();
    found.unwrap()
}

fn refused(path: &Path) -> String {
    let refused = many::P::migrate::<many::Head>(path, many::migration()).unwrap_err();
    refused.to_string()
}

/// Maps that say they own the same objects are not gone over for as long as they say.
#[test]
fn maps_that_share_what_they_own_are_told() {
    for is_tree in [false, true] {
        let (_alone, directory) = alone();
        let path = directory.path().join("store");
        let [map, tree] = make_many(&path);
        let plan = many::P::plan_migration::<many::Head>(&path, many::migration()).unwrap();
        assert_eq!(plan.refusals, []);
        assert!(plan.bytes < MAPS as u64 * TABLE, "{}", plan.bytes);
        let (first, size) = match is_tree {
            true => (tree, size_of::<many::Tree>()),
            false => (map, size_of::<many::Map>()),
        };
        let (file, at) = place(&path, first);
        let mut header = vec![0; size];
        file.read_exact_at(&mut header, at).unwrap();
        file.write_all_at(&header.repeat(MAPS), at).unwrap();
        let told = refused(&path);
        let part = "it is damaged: it says more than its objects hold";
        assert!(told.contains(part), "{told}");
    }
}

/// Nobody asks the program about what is no value of a key's type.
#[test]
fn a_key_that_is_no_value_is_told() {
    let (_alone, directory) = alone();
    let path = directory.path().join("store");
    make_many(&path);
    for puddle in std::fs::read_dir(path.join("puddles")).unwrap() {
        let path = puddle.unwrap().path();
        let mut bytes = std::fs::read(&path).unwrap();
        for at in 0..bytes.len() - 8 {
            if bytes[at..at + 4] == NUMBER.to_le_bytes() {
                bytes[at + 4] = 3;
            }
        }
        std::fs::write(path, bytes).unwrap();
    }
    let told = refused(&path);
    for map in ["flags", "in_order"] {
        let part = "it is damaged: what lies in the place of a key is no value of its type";
        let is_it = |line: &str| line.contains(map) && line.contains(part);
        assert!(
            told.split("; ").any(is_it) || told.lines().any(is_it),
            "{map}: {told}"
        );
    }
}
