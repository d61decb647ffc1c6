//! What damage does to reads.

use std::fs;
use std::os::unix::fs::FileExt;
use std::path::Path;

use durum_kv::{Db, Error, ErrorKind, Options, ReadOptions, repair};

use crate::support::{options, place};

/// Whatever bytes of the pool are wrong, opening and reading say so or read right; nothing panics, and no pointer is
/// followed out of the pool.
#[test]
fn damage_is_an_error() {
    let (dir, path) = place();
    {
        let db = Db::open(&path, options()).unwrap();
        for number in 0..300u32 {
            db.put(format!("{number:04}").as_bytes(), &[number as u8; 40])
                .unwrap();
        }
    }
    let puddles: Vec<_> = fs::read_dir(path.join("puddles"))
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .collect();
    assert_eq!(puddles.len(), 1, "the root puddle");
    let clean = fs::read(&puddles[0]).unwrap();
    // Words of the heap that are not zero: pointers, lengths, bounds, keys.
    let used: Vec<usize> = (8192..clean.len())
        .step_by(8)
        .filter(|&at| clean[at..at + 8] != [0; 8])
        .collect();
    assert!(used.len() > 300 * 8);
    let (mut errors, mut sound) = (0, 0);
    for (number, &at) in used.iter().step_by(23).enumerate() {
        let mut word: [u8; 8] = clean[at..at + 8].try_into().unwrap();
        match number % 4 {
            0 => word[number / 4 % 8] ^= 1 << (number % 7),
            1 => word = [0xff; 8],
            2 => word = (u64::from_le_bytes(word) + 4).to_le_bytes(),
            _ => word = [0; 8],
        }
        let file = fs::OpenOptions::new()
            .write(true)
            .open(&puddles[0])
            .unwrap();
        file.write_all_at(&word, at as u64).unwrap();
        let read = || -> durum_kv::Result<u64> {
            let db = Db::open(&path, Options::new())?;
            for number in 0..300u32 {
                db.get(format!("{number:04}").as_bytes())?;
            }
            db.verify()
        };
        match read() {
            Ok(count) => sound += u32::from(count > 0),
            Err(error) => {
                assert_eq!(error.kind(), ErrorKind::Data, "at {at}: {error}");
                errors += 1;
            }
        }
        file.write_all_at(&clean, 0).unwrap();
    }
    assert!(errors > 50 && sound > 0, "{errors} errors, {sound} sound");
    assert_eq!(repair(&path, Options::new()).unwrap(), 300);
    drop(dir);
}

/// Puts other bytes to the one place of the root puddle where `found` is, has `check` look at the database, and puts
/// them back.
fn with_damage(path: &Path, found: &[u8], other: &[u8], check: impl FnOnce(&Db)) {
    let puddle = fs::read_dir(path.join("puddles"))
        .unwrap()
        .next()
        .unwrap()
        .unwrap();
    let clean = fs::read(puddle.path()).unwrap();
    let mut places = clean.windows(found.len()).enumerate();
    let (at, _) = places.find(|(_, bytes)| *bytes == found).unwrap();
    assert!(places.all(|(_, bytes)| bytes != found));
    let file = fs::OpenOptions::new()
        .write(true)
        .open(puddle.path())
        .unwrap();
    file.write_all_at(other, at as u64).unwrap();
    check(&Db::open(path, Options::new()).unwrap());
    file.write_all_at(&clean, 0).unwrap();
}

/// A key that has other bytes now, or that lies behind another bound, is not where it is looked for. With checksums
/// that is damage, and not a key that is not there.
#[test]
fn a_key_that_damage_hides_is_damage_where_checksums_are_asked_for() {
    let (_dir, path) = place();
    {
        let db = Db::open(&path, options()).unwrap();
        for number in 0..300u32 {
            let value = format!("={number}");
            db.put(format!("{number:04}").as_bytes(), value.as_bytes())
                .unwrap();
        }
    }
    let verifying = ReadOptions::new().verify_checksums(true);
    let is_damage = |result: Result<_, Error>| {
        let result = result.map(|found: Option<Vec<u8>>| found.is_some());
        assert!(matches!(result, Err(Error::Damaged { .. })), "{result:?}");
    };
    let seek = |db: &Db, key: &[u8]| {
        let mut entries = db.iter_with(&verifying)?;
        entries.seek(key)?;
        Ok(entries.key().map(<[u8]>::to_vec))
    };
    with_damage(&path, b"0070=70", b"007!=70", |db| {
        assert_eq!(db.get(b"0070").unwrap(), None);
        is_damage(db.get_with(b"0070", &verifying));
        is_damage(db.get_with(b"007!", &verifying));
        is_damage(seek(db, b"0070"));
        // What lies in other leaves is as it was.
        assert!(db.get_with(b"0200", &verifying).unwrap().is_some());
        assert_eq!(db.get_with(b"02000", &verifying).unwrap(), None);
        assert_eq!(seek(db, b"0200").unwrap().as_deref(), Some(&b"0200"[..]));
    });
    // The bound of the second leaf: down to a key of the first one, and up beyond one of its own.
    let bound = |last: u8| [&4u64.to_le_bytes()[..], b"005", &[last]].concat();
    with_damage(&path, &bound(b'9'), &bound(b'8'), |db| {
        assert_eq!(db.get(b"0058").unwrap(), None);
        is_damage(db.get_with(b"0058", &verifying));
        is_damage(seek(db, b"0058"));
    });
    with_damage(&path, &bound(b'9'), &bound(b':'), |db| {
        assert_eq!(db.get(b"0059").unwrap(), None);
        is_damage(db.get_with(b"0059", &verifying));
        is_damage(seek(db, b"0059"));
    });
    assert_eq!(repair(&path, Options::new()).unwrap(), 300);
}
