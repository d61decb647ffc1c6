//! Damage in a copy of a store is found, named with its file, and left as it is.

mod support;

use std::path::Path;

use durum::{PoolOptions, Store, StoreOptions};
use support::*;

/// Checks a store with damage in it: exit code 3, the file is named, no byte changes.
fn finds(store: &Path, file: &str, what: &str) {
    let before = contents(store);
    let run = durum(&["check", text(store)]);
    assert_eq!(run.code, 3, "{}{}", run.out, run.err);
    let line = run
        .out
        .lines()
        .find(|line| line.starts_with("damage: ") && line.contains(file));
    assert!(
        line.is_some_and(|line| line.contains(what)),
        "{what:?} about {file:?} is not in:\n{}",
        run.out
    );
    let json = durum(&["check", text(store), "--json"]);
    assert_eq!(json.code, 3);
    assert_eq!(json.json()["sound"], false);
    assert_eq!(contents(store), before, "check changes nothing");
}

#[test]
fn a_sound_store_is_sound() {
    let dir = scratch();
    let store = dir.path().join("store");
    make_store(&store);
    let before = contents(&store);
    let run = succeeds(&["check", text(&store)]);
    assert!(
        run.out.contains("pool \"things\": 8 objects") && run.out.ends_with("sound\n"),
        "{}",
        run.out
    );
    let json = succeeds(&["check", text(&store), "--json"]).json();
    assert_eq!(json["sound"], true);
    assert_eq!(json["pools"][0]["objects"], 8);
    assert_eq!(json["findings"], serde_json::json!([]));
    assert_eq!(contents(&store), before);
}

#[test]
fn a_flipped_byte_in_each_structure_is_found() {
    let dir = scratch();
    let store = dir.path().join("store");
    make_store(&store);
    let original = contents(&store);
    let puddle = puddle_file(&store);
    let name = text(Path::new(puddle.file_name().unwrap())).to_owned();
    // The puddle's magic; its own name; the bitmap of extents; the header of the root object.
    for (offset, what) in [(0, ""), (18, ""), (1024, ""), (4096 + 9, "")] {
        let byte = original[&puddle][offset];
        overwrite(&puddle, offset as u64, &[byte ^ 0x55]);
        finds(&store, &name, what);
        overwrite(&puddle, offset as u64, &[byte]);
    }
    assert_eq!(contents(&store), original);
    succeeds(&["check", text(&store)]);
}

#[test]
fn a_pointer_to_nowhere_is_found() {
    let dir = scratch();
    let store = dir.path().join("store");
    make_store(&store);
    let puddle = puddle_file(&store);
    // The first field of the root object, behind the extent's header: the list.
    overwrite(&puddle, 4096 + 16, &0x2000_1234_5678u64.to_le_bytes());
    let name = text(Path::new(puddle.file_name().unwrap())).to_owned();
    finds(&store, &name, "leads to 0x200012345678");
    // An address of the program that made it.
    overwrite(&puddle, 4096 + 16, &0x7fff_1234_5678u64.to_le_bytes());
    finds(&store, &name, "leads to 0x7fff12345678, out of the store");
}

#[test]
fn a_truncated_puddle_is_found_and_so_is_a_missing_one() {
    let dir = scratch();
    let store = dir.path().join("store");
    make_store(&store);
    let puddle = puddle_file(&store);
    let name = text(Path::new(puddle.file_name().unwrap())).to_owned();
    let bytes = std::fs::read(&puddle).unwrap();
    std::fs::write(&puddle, &bytes[..1 << 20]).unwrap();
    finds(&store, &name, "");
    std::fs::remove_file(&puddle).unwrap();
    finds(&store, &name, "missing");
}

#[test]
fn a_damaged_registry_is_found_and_repaired() {
    let dir = scratch();
    let store = dir.path().join("store");
    make_store(&store);
    let registry = store.join("registry");
    let byte = std::fs::read(&registry).unwrap()[200];
    overwrite(&registry, 200, &[byte ^ 1]);
    finds(&store, "registry", "");
    let told = format!("try `durum check --repair {}`", text(&store));
    fails(&["check", text(&store)], 3, &told);
    fails(&["ls", text(&store)], 3, "registry");
    let repaired = succeeds(&["check", text(&store), "--repair"]);
    assert!(repaired.out.contains("repaired: "), "{}", repaired.out);
    assert!(succeeds(&["ls", text(&store)]).out.contains("things"));
    let again = succeeds(&["check", text(&store), "--repair", "--json"]).json();
    assert_eq!(again["repaired"], serde_json::json!([]));
    assert!(
        succeeds(&["check", text(&store), "--repair"])
            .out
            .contains("nothing to repair")
    );
}

#[test]
fn each_file_about_the_store_comes_back_from_another_one() {
    let dir = scratch();
    let store = dir.path().join("store");
    make_store(&store);
    for name in ["registry", "registry.copy", "durum.store"] {
        std::fs::write(store.join(name), "not one of ours").unwrap();
        finds(&store, name, "");
        succeeds(&["check", text(&store), "--repair"]);
        std::fs::remove_file(store.join(name)).unwrap();
        finds(&store, name, "");
        succeeds(&["check", text(&store), "--repair"]);
        succeeds(&["check", text(&store)]);
    }
    let opened = Store::open(&store, StoreOptions::new()).unwrap();
    let pool = opened.open_pool("things", PoolOptions::new()).unwrap();
    let root = pool.root::<Root>().unwrap();
    // SAFETY: the pool is open.
    assert_eq!(unsafe { (*(*root).list).value }, 11);
}

/// Nothing is kept of what was not there.
#[test]
fn a_registry_that_was_gone_leaves_nothing_behind_when_it_is_repaired() {
    let dir = scratch();
    let store = dir.path().join("store");
    make_store(&store);
    std::fs::remove_file(store.join("registry")).unwrap();
    let repaired = succeeds(&["check", text(&store), "--repair"]).out;
    assert!(
        repaired.contains("rebuilt the registry from its copy"),
        "{repaired}"
    );
    assert!(!repaired.contains("registry.damaged"), "{repaired}");
    assert!(!store.join("registry.damaged").exists());
    // One that is damaged is kept.
    overwrite(&store.join("registry"), 0, b"damaged");
    let repaired = succeeds(&["check", text(&store), "--repair"]).out;
    assert!(
        repaired.contains("is kept as registry.damaged"),
        "{repaired}"
    );
    assert!(store.join("registry.damaged").exists());
}

/// A backup that was restored in part.
#[test]
fn an_older_registry_is_refused_and_what_it_does_not_know_is_moved_aside() {
    let dir = scratch();
    let path = dir.path().join("store");
    succeeds(&["init", text(&path)]);
    let files = ["registry", "registry.copy"];
    let old = files.map(|name| std::fs::read(path.join(name)).unwrap());
    let store = Store::open(&path, StoreOptions::new()).unwrap();
    let pool = store.create_pool("things", PoolOptions::new()).unwrap();
    pool.root::<Leaf>().unwrap();
    drop(pool);
    store.close().unwrap();
    for (name, bytes) in files.iter().zip(old) {
        std::fs::write(path.join(name), bytes).unwrap();
    }
    let before = contents(&path);
    fails(
        &["recover", text(&path)],
        3,
        "the registry is older than the puddles",
    );
    finds(&path, "puddles", "older than this puddle");
    assert_eq!(contents(&path), before);
    // Somebody has to look at what was moved.
    let repaired = durum(&["check", text(&path), "--repair", "--json"]);
    assert_eq!(repaired.code, 3, "{}", repaired.err);
    let actions = repaired.json()["repaired"].to_string();
    assert!(actions.contains("unregistered"), "{actions}");
    succeeds(&["recover", text(&path)]);
    finds(&path, "unregistered", "was moved here");
    std::fs::remove_dir_all(path.join("unregistered")).unwrap();
    succeeds(&["check", text(&path)]);
}

#[test]
fn objects_that_nothing_leads_to_are_leaks_and_no_damage() {
    let dir = scratch();
    let path = dir.path().join("store");
    make_store(&path);
    let store = Store::open(&path, StoreOptions::new()).unwrap();
    let pool = store.open_pool("things", PoolOptions::new()).unwrap();
    pool.transaction(|tx| tx.alloc_zeroed::<Leaf>().map(|_| ()))
        .unwrap();
    // Without the untyped object, what leads where is known.
    let root = pool.root::<Root>().unwrap();
    pool.transaction(|tx| {
        // SAFETY: the object is live, nothing else leads to it, and there is one thread.
        unsafe {
            tx.free((*root).bytes)?;
            tx.set(&raw mut (*root).bytes, std::ptr::null_mut())
        }
    })
    .unwrap();
    drop((pool, store));
    let run = succeeds(&["check", text(&path)]);
    assert!(run.out.contains("that nothing leads to"), "{}", run.out);
    let json = succeeds(&["check", text(&path), "--json"]).json();
    assert_eq!(json["pools"][0]["leaks"]["objects"], 1);
}

#[test]
fn a_foreign_file_is_noted_and_left() {
    let dir = scratch();
    let store = dir.path().join("store");
    make_store(&store);
    std::fs::write(store.join("notes.txt"), "mine").unwrap();
    let run = succeeds(&["check", text(&store), "--repair"]);
    assert!(
        run.out.contains("note: ") && run.out.contains("notes.txt"),
        "{}",
        run.out
    );
    assert!(store.join("notes.txt").exists());
}

/// Whatever byte is wrong: the tools end with an exit code that they promise, and change nothing.
#[test]
fn tools_that_read_survive_any_flipped_byte() {
    let dir = scratch();
    let store = dir.path().join("store");
    make_dirty_store(&store, "hybrid");
    let original = contents(&store);
    let files: Vec<_> = original
        .iter()
        .filter(|(_, bytes)| !bytes.is_empty())
        .collect();
    let mut random: u64 = 0x5eed;
    let mut draw = |end: usize| {
        random = random
            .wrapping_mul(6364136223846793005)
            .wrapping_add(1442695040888963407);
        (random >> 33) as usize % end
    };
    let mut found = 0;
    let is_long = std::env::var_os("DURUM_CRASH_ALL").is_some();
    let rounds = if is_long { 2000 } else { 70 };
    for round in 0..rounds {
        let (file, bytes) = files[round % files.len()];
        // Where something is written; most of a puddle is zero.
        let written: Vec<usize> = (0..bytes.len()).filter(|at| bytes[*at] != 0).collect();
        let at = if written.is_empty() {
            draw(bytes.len())
        } else {
            written[draw(written.len())]
        };
        let byte = bytes[at] ^ (1 << draw(8));
        overwrite(file, at as u64, &[byte]);
        let damaged = contents(&store);
        for arguments in [
            &["check", text(&store)][..],
            &["inspect", text(&store), "words"],
            &[
                "inspect",
                text(&store),
                "words",
                "--heap",
                "--log",
                "--json",
            ],
            &["ls", text(&store)],
            &["stat", text(&store)],
        ] {
            let run = durum(arguments);
            let place = format!(
                "{} with byte {at:#x} of {} wrong",
                arguments[0],
                file.display()
            );
            assert!(
                matches!(run.code, 0 | 2 | 3),
                "{place}: exit code {}: {}",
                run.code,
                run.err
            );
            assert!(!run.err.contains("panicked"), "{place}: {}", run.err);
            found += u32::from(arguments[0] == "check" && run.code != 0);
        }
        assert!(
            contents(&store) == damaged,
            "byte {at:#x} of {}: something was written",
            file.display()
        );
        overwrite(file, at as u64, &[bytes[at]]);
    }
    // Numbers and texts of the program are its own: nobody can tell that they are wrong.
    assert!(
        found as usize > rounds * 3 / 10,
        "only {found} of {rounds} flipped bytes were found"
    );
}
