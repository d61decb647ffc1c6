//! What opening reads of a database, and those that earlier versions have made.

use std::fs;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::process::Command;

use durum::{PoolOptions, Store, StoreOptions};

use crate::media::{
    BUFFERED, Database, GuidedDatabase, HAS_STALE, LAYOUT, LAYOUT_WITHOUT_GUIDES, Start,
};
use crate::{Db, Durability, Error, Options, POOL, WriteBatch};

const COUNT: u32 = 30_000;

fn key(number: u32) -> [u8; 8] {
    // Odd, so each number has a key of its own.
    u64::from(number)
        .wrapping_mul(0x9e37_79b9_7f4a_7c15)
        .to_be_bytes()
}

fn open(path: &Path) -> Db {
    Db::open(path, Options::new().create_if_missing(true)).unwrap()
}

fn layout(db: &Db) -> u64 {
    // SAFETY: the root is live as long as the database is open.
    unsafe { (*db.inner.database.0).layout }
}

fn fill(db: &Db) {
    for from in (0..COUNT).step_by(1000) {
        let mut batch = WriteBatch::new();
        (from..from + 1000).for_each(|number| batch.put(&key(number), &number.to_le_bytes()));
        db.write(&batch).unwrap();
    }
}

/// How many leaves were read, about.
fn known_leaves(db: &Db) -> usize {
    db.inner.tree.read().index.known_leaves().count()
}

fn has_all(db: &Db, from: u32) {
    for number in 0..COUNT {
        let expected = (number >= from).then(|| number.to_le_bytes().to_vec());
        assert_eq!(db.get(&key(number)).unwrap(), expected);
    }
    assert_eq!(db.verify().unwrap(), u64::from(COUNT - from));
}

/// What a process leaves that is killed now.
fn killed(path: &Path) -> std::path::PathBuf {
    let image = path.with_file_name("killed");
    let _ = fs::remove_dir_all(&image);
    let copied = Command::new("cp").arg("-r").args([path, &image]).status();
    assert!(copied.unwrap().success());
    image
}

#[test]
fn opening_reads_no_leaf() {
    let dir = tempfile::tempdir_in("/dev/shm").unwrap();
    let path = dir.path().join("db");
    let db = open(&path);
    fill(&db);
    let leaves: usize = db
        .property("durum.leaves")
        .unwrap()
        .unwrap()
        .parse()
        .unwrap();
    assert!(leaves > 3 * 128, "{leaves}");
    let chunks = db.inner.tree.read().index.chunks();
    let image = killed(&path);
    drop(db);
    for path in [&path, &image] {
        let db = open(path);
        assert_eq!(layout(&db), u64::from(LAYOUT));
        assert_eq!(db.inner.tree.read().index.chunks(), chunks);
        assert_eq!(known_leaves(&db), 0);
        db.get(&key(0)).unwrap().unwrap();
        assert!((1..=128).contains(&known_leaves(&db)));
        // Chunks are split, and go, whose neighbours nobody has looked at.
        (0..COUNT / 2).for_each(|number| db.delete(&key(number)).unwrap());
        has_all(&db, COUNT / 2);
        drop(db);
        let db = open(path);
        assert_eq!(known_leaves(&db), 0);
        has_all(&db, COUNT / 2);
        fill(&db);
        drop(db);
        has_all(&open(path), 0);
    }
}

/// Leaves with older versions are marked, and the root says that there may be some: who opens a database that a crash
/// has left looks for them.
#[test]
fn older_versions_are_looked_for_where_there_may_be_some() {
    let dir = tempfile::tempdir_in("/dev/shm").unwrap();
    let path = dir.path().join("db");
    let db = open(&path);
    fill(&db);
    db.set_durability(Durability::Buffered).unwrap();
    let had = layout(&db);
    assert_eq!(had, u64::from(LAYOUT) | BUFFERED);
    let snapshot = db.snapshot();
    db.put(&key(7), b"newer").unwrap();
    assert_eq!(layout(&db), had | HAS_STALE);
    db.set_durability(Durability::Durable).unwrap();
    assert_eq!(layout(&db), u64::from(LAYOUT) | HAS_STALE);
    let image = killed(&path);
    drop((snapshot, db));
    for (path, was_killed) in [(&path, false), (&image, true)] {
        let db = open(path);
        assert_eq!(known_leaves(&db) > 0, was_killed);
        // Opening has swept what there was.
        assert_eq!(layout(&db), u64::from(LAYOUT));
        assert_eq!(db.get(&key(7)).unwrap().as_deref(), Some(&b"newer"[..]));
        drop(db);
        assert_eq!(known_leaves(&open(path)), 0);
    }
}

#[test]
fn databases_of_earlier_versions_are_used_as_they_are() {
    let dir = tempfile::tempdir_in("/dev/shm").unwrap();
    let path = dir.path().join("db");
    {
        let store = Store::create(&path, StoreOptions::new()).unwrap();
        let pool = store.create_pool(POOL, PoolOptions::new()).unwrap();
        pool.root::<Database>().unwrap();
        drop(pool);
        store.close().unwrap();
    }
    let db = open(&path);
    assert_eq!(layout(&db), u64::from(LAYOUT_WITHOUT_GUIDES));
    fill(&db);
    let snapshot = db.snapshot();
    (0..COUNT / 2).for_each(|number| db.delete(&key(number)).unwrap());
    let image = killed(&path);
    drop((snapshot, db));
    for path in [&path, &image] {
        let db = open(path);
        assert!(known_leaves(&db) > 0);
        assert_eq!(layout(&db), u64::from(LAYOUT_WITHOUT_GUIDES));
        assert_eq!(db.property("durum.stale-keys").unwrap().unwrap(), "0");
        has_all(&db, COUNT / 2);
        fill(&db);
        drop(db);
        has_all(&open(path), 0);
    }
}

/// The starts of the first guide, of which some are used; and where that guide is.
fn starts(db: &Db) -> (usize, Vec<Start>) {
    // SAFETY: the root is one with guides, and there is one; nobody writes.
    unsafe {
        let guide = (*db.inner.database.0.cast::<GuidedDatabase>()).guides;
        let used = (*guide).starts.iter().filter(|it| !it.leaf.is_null());
        (guide.addr(), used.copied().collect())
    }
}

fn bytes(start: &Start) -> [u8; size_of::<Start>()] {
    // SAFETY: a start has no padding.
    unsafe { std::mem::transmute_copy(start) }
}

/// The file of a closed database that has these bytes, and where.
fn place_of(path: &Path, wanted: &[u8]) -> (fs::File, u64) {
    let puddles = fs::read_dir(path.join("puddles")).unwrap();
    let find = |puddle: std::io::Result<fs::DirEntry>| {
        let path = puddle.unwrap().path();
        let bytes = fs::read(&path).unwrap();
        let mut places = bytes.windows(wanted.len());
        let at = places.position(|bytes| bytes == wanted)?;
        let file = fs::OpenOptions::new().write(true).read(true).open(path);
        Some((file.unwrap(), at as u64))
    };
    puddles.filter_map(find).next().unwrap()
}

/// Reads each key of a database by itself, where nobody has read others before: what is read is right, or refused. How
/// often it was refused.
fn refusals(
    path: &Path,
    numbers: impl Iterator<Item = u32>,
    expected: &dyn Fn(u32) -> bool,
) -> usize {
    let mut refused = 0;
    for number in numbers {
        let found = Db::open(path, Options::new()).and_then(|db| db.get(&key(number)));
        match found {
            Ok(found) => {
                let expected = expected(number).then(|| number.to_le_bytes().to_vec());
                assert_eq!(found, expected, "{number}");
            }
            Err(Error::Damaged { .. }) => refused += 1,
            Err(error) => panic!("{error}"),
        }
    }
    refused
}

/// What a guide says is not believed: it is compared with the leaf that it leads to.
#[test]
fn a_damaged_guide_is_damage() {
    let dir = tempfile::tempdir_in("/dev/shm").unwrap();
    let path = dir.path().join("db");
    let db = open(&path);
    fill(&db);
    let (guide, starts) = starts(&db);
    // Where new starts could be written, if it were taken for a guide.
    db.put(b"zeros", &[0; 16 << 10]).unwrap();
    let zeros = {
        let tree = db.inner.tree.read();
        tree.get(b"zeros", u64::MAX).unwrap().unwrap().addr() + (4 << 10)
    };
    db.delete(b"zeros").unwrap();
    drop(db);
    let [first, second] = [&starts[0], &starts[1]].map(bytes);
    let (file, at) = place_of(&path, &first);
    let word = |bytes: &[u8], at: usize| bytes[at..at + 8].try_into().unwrap();
    // So close to what it is that no other bound lies between.
    let near = |by: i16| {
        let mut bound: [u8; 8] = word(&first, 16);
        let number = i16::from_be_bytes([bound[0], bound[1]]).wrapping_add(by);
        bound[..2].copy_from_slice(&number.to_be_bytes());
        bound
    };
    // Behind the guide's own place and the pointer to the next one: leaf, bound, the bytes of the bound.
    let damages: [(&str, u64, [u8; 8]); 10] = [
        ("a leaf out of the pool", at, [0x77; 8]),
        ("another leaf", at, word(&second, 0)),
        ("a bound out of the pool", at + 8, [0x77; 8]),
        ("another bound", at + 8, word(&second, 8)),
        ("other bytes, smaller", at + 16, [0; 8]),
        ("other bytes, larger", at + 16, [0xff; 8]),
        ("other bytes, a bit smaller", at + 16, near(-16)),
        ("other bytes, a bit larger", at + 16, near(16)),
        ("a circle", at - 8, guide.to_le_bytes()),
        ("no guide", at - 8, zeros.to_le_bytes()),
    ];
    // Those next to the bound, and some others.
    let bound = u64::from_be_bytes(word(&first, 16));
    let is_near = |number: &u32| u64::from_be_bytes(key(*number)).abs_diff(bound) < 1 << 52;
    let near: Vec<u32> = (0..COUNT).filter(is_near).chain(0..4).collect();
    assert!((10..40).contains(&near.len()), "{}", near.len());
    for (name, at, damage) in damages {
        let mut clean = [0; 8];
        file.read_exact_at(&mut clean, at).unwrap();
        file.write_all_at(&damage, at).unwrap();
        let read = || Db::open(&path, Options::new())?.verify();
        let found = read();
        assert!(
            matches!(found, Err(Error::Damaged { .. })),
            "{name}: {found:?}"
        );
        refusals(&path, near.iter().copied(), &|_| true);
        file.write_all_at(&clean, at).unwrap();
        has_all(&open(&path), 0);
        // Leaves say what guides are to say. Of a copy, as the others are written to these places.
        file.write_all_at(&damage, at).unwrap();
        let image = killed(&path);
        assert_eq!(
            crate::repair(&image, Options::new()).unwrap(),
            u64::from(COUNT),
            "{name}"
        );
        let db = open(&image);
        assert!(!self::starts(&db).1.is_empty(), "{name}");
        has_all(&db, 0);
        fill(&db);
        drop(db);
        has_all(&open(&image), 0);
        file.write_all_at(&clean, at).unwrap();
    }
}

/// Where leaves are missing in their row, only guides lead to them: they are not made anew.
#[test]
fn guides_are_kept_that_lead_to_leaves_which_are_lost() {
    let dir = tempfile::tempdir_in("/dev/shm").unwrap();
    let path = dir.path().join("db");
    let db = open(&path);
    fill(&db);
    let (_, before) = starts(&db);
    // The row ends behind the leaf that the last guide leads to.
    let leaf = before.iter().map(|start| start.leaf).max().unwrap();
    // SAFETY: the leaf is live, and nobody writes.
    let [next, low] = unsafe { leaf.cast::<[u64; 2]>().read() }.map(u64::to_le_bytes);
    assert_ne!(next, [0; 8], "it is not the last one");
    drop(db);
    let (file, at) = place_of(&path, &[next, low].concat());
    file.write_all_at(&[0; 8], at).unwrap();
    let repaired = crate::repair(&path, Options::new());
    assert!(
        matches!(repaired, Err(Error::Damaged { .. })),
        "{repaired:?}"
    );
    file.write_all_at(&next, at).unwrap();
    let db = open(&path);
    assert_eq!(starts(&db).1.len(), before.len());
    has_all(&db, 0);
}

/// A guide as it was before its leaf has gone leads to no leaf, and one that has been lost leads nobody astray.
#[test]
fn a_stale_guide_is_damage_and_a_missing_one_is_not() {
    let dir = tempfile::tempdir_in("/dev/shm").unwrap();
    let path = dir.path().join("db");
    let db = open(&path);
    fill(&db);
    let (_, before) = starts(&db);
    let old = bytes(&before[0]);
    let bound = u64::from_be_bytes(old[16..24].try_into().unwrap());
    let beyond = |number: u32| u64::from_be_bytes(key(number)).wrapping_sub(bound);
    // Most of what the leaf before has, so that there is room, and then what its own leaf has.
    let is_below =
        |number: u32| beyond(number) >= 0_u64.wrapping_sub(1 << 55) && !number.is_multiple_of(3);
    let is_gone = |number: u32| beyond(number) < 1 << 55 || is_below(number);
    let mut gone: Vec<u32> = (0..COUNT).filter(|number| is_gone(*number)).collect();
    gone.sort_by_key(|number| !is_below(*number));
    gone.iter()
        .for_each(|number| db.delete(&key(*number)).unwrap());
    let (_, after) = starts(&db);
    assert_eq!(before.len(), after.len());
    let new = bytes(&after[0]);
    assert_ne!(old, new);
    drop(db);
    let numbers = || gone.iter().copied().step_by(6).chain(0..4);
    let (file, at) = place_of(&path, &new);
    file.write_all_at(&old, at).unwrap();
    assert!(refusals(&path, numbers(), &|number| !is_gone(number)) > 0);
    file.write_all_at(&[0; size_of::<Start>()], at).unwrap();
    assert_eq!(refusals(&path, numbers(), &|number| !is_gone(number)), 0);
    // Two chunks were read as one.
    let db = open(&path);
    assert_eq!(starts(&db).1.len(), after.len() - 1);
    fill(&db);
    has_all(&db, 0);
    drop(db);
    has_all(&open(&path), 0);
}

/// What is wrong elsewhere is no reason to make guides anew: the old ones would be nobody's, each time.
#[test]
fn sound_guides_stay_where_a_record_is_damaged() {
    let dir = tempfile::tempdir_in("/dev/shm").unwrap();
    let path = dir.path().join("db");
    let db = open(&path);
    fill(&db);
    db.put(b"marked", b"a value like no other").unwrap();
    let (guide, before) = starts(&db);
    drop(db);
    let (file, at) = place_of(&path, b"a value like no other");
    file.write_all_at(b"A", at).unwrap();
    for _ in 0..3 {
        let repaired = crate::repair(&path, Options::new());
        assert!(
            matches!(repaired, Err(Error::Damaged { .. })),
            "{repaired:?}"
        );
    }
    file.write_all_at(b"a", at).unwrap();
    let db = open(&path);
    let (now, after) = starts(&db);
    assert_eq!((now, after.len()), (guide, before.len()));
}
