//! What opening reads of a database, and those that earlier versions have made.

use std::fs;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::process::Command;

use durum::{PoolOptions, Store, StoreOptions};

use crate::media::{BUFFERED, Database, GuidedDatabase, HAS_STALE, LAYOUT, LAYOUT_WITHOUT_GUIDES};
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

/// What a guide says is not believed: it is compared with the leaf that it leads to.
#[test]
fn a_damaged_guide_is_damage() {
    let dir = tempfile::tempdir_in("/dev/shm").unwrap();
    let path = dir.path().join("db");
    let db = open(&path);
    fill(&db);
    // SAFETY: the root is one with guides, and there is one.
    let (guide, starts) = unsafe {
        let guide = (*db.inner.database.0.cast::<GuidedDatabase>()).guides;
        (guide.addr(), [(*guide).starts[0], (*guide).starts[1]])
    };
    drop(db);
    let [first, second] =
        starts.map(|start| [start.leaf.addr(), start.low.addr()].map(usize::to_le_bytes));
    let puddles = fs::read_dir(path.join("puddles")).unwrap();
    let (file, at) = puddles
        .filter_map(|puddle| {
            let path = puddle.unwrap().path();
            let bytes = fs::read(&path).unwrap();
            let at = bytes
                .windows(16)
                .position(|bytes| bytes == first.as_flattened())?;
            let file = fs::OpenOptions::new().write(true).read(true).open(path);
            Some((file.unwrap(), at as u64))
        })
        .next()
        .unwrap();
    // Behind the guide's pointer to the next one: leaf, bound, the bytes of the bound.
    let damages: [(&str, u64, [u8; 8]); 7] = [
        ("a leaf out of the pool", at, [0x77; 8]),
        ("another leaf", at, second[0]),
        ("a bound out of the pool", at + 8, [0x77; 8]),
        ("another bound", at + 8, second[1]),
        ("other bytes, smaller", at + 16, [0; 8]),
        ("other bytes, larger", at + 16, [0xff; 8]),
        ("a circle", at - 8, guide.to_le_bytes()),
    ];
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
        file.write_all_at(&clean, at).unwrap();
        has_all(&open(&path), 0);
    }
}
