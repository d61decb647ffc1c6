//! Cycles of counted pointers are reported by `durum check` and freed by `durum gc`.

mod support;

use std::path::Path;

use durum::typed::*;
use durum::{PoolOptions, Store, StoreOptions};
use support::*;

durum::pool!(P);

#[derive(PSafe)]
#[repr(C)]
struct Ring {
    next: PRefCell<Option<Prc<Ring, P>>, P>,
}

type Top = PRefCell<Option<PWeak<Ring, P, Local>>, P>;

/// A closed store with a cycle of three, to one of which a weak pointer leads.
fn make_cycle(path: &Path) {
    // One pool type, one pool at a time.
    static TURN: std::sync::Mutex<()> = std::sync::Mutex::new(());
    let _turn = TURN.lock().unwrap();
    let top = P::open::<Top>(path, Flags::NEW).unwrap();
    P::transaction(|j| {
        let ring = || {
            let next = PRefCell::new(None, j);
            Prc::new(Ring { next }, j)
        };
        let nodes = [ring(), ring(), ring()];
        for at in 0..3 {
            *nodes[at].next.borrow_mut(j) = Some(nodes[(at + 1) % 3].pclone(j));
        }
        *top.borrow_mut(j) = Some(nodes[1].downgrade(j));
    })
    .unwrap();
    top.close().unwrap();
}

#[test]
fn a_cycle_is_reported_and_freed() {
    let dir = scratch();
    let store = dir.path().join("store");
    make_cycle(&store);
    let run = succeeds(&["check", text(&store)]);
    assert!(
        run.out
            .contains("3 in cycles of counted pointers; `durum gc` frees them")
            && run.out.contains("part of a cycle of counted pointers"),
        "{}",
        run.out
    );
    let json = succeeds(&["check", text(&store), "--json"]).json();
    assert_eq!(json["pools"][0]["leaks"]["in_cycles"], 3);

    let before = contents(&store);
    let run = succeeds(&["gc", text(&store), "--dry-run"]);
    assert!(
        run.out.contains("pool \"pool\": would free 2 objects (")
            && run.out.contains(
                "; 1 object would stay without a value until weak pointers to it are gone"
            ),
        "{}",
        run.out
    );
    let json = succeeds(&["gc", text(&store), "--dry-run", "--json"]).json();
    assert_eq!((&json["objects"], &json["husks"]), (&2.into(), &1.into()));
    assert_eq!(
        (&json["dry_run"], &json["transactions"]),
        (&true.into(), &0.into())
    );
    assert!(contents(&store) == before, "a dry run changes nothing");

    let json = succeeds(&["gc", text(&store), "--pool", "pool", "--json"]).json();
    assert_eq!((&json["objects"], &json["husks"]), (&2.into(), &1.into()));
    assert_eq!(
        (&json["dry_run"], &json["transactions"]),
        (&false.into(), &1.into())
    );
    assert_eq!(json["pools"][0]["name"], "pool");
    let run = succeeds(&["check", text(&store)]);
    assert!(
        run.out.contains("no leaks") && run.out.ends_with("sound\n"),
        "{}",
        run.out
    );
    let run = succeeds(&["gc", text(&store)]);
    assert_eq!(run.out, "pool \"pool\": nothing to free\n");
}

#[test]
fn what_cannot_be_told_is_refused() {
    let dir = scratch();
    let store = dir.path().join("store");
    fails(&["gc", text(&store)], 2, "no durum store here");
    // Its root leads to bytes without a type; and something is lost.
    make_store(&store);
    let opened = Store::open(&store, StoreOptions::new()).unwrap();
    fails(&["gc", text(&store)], 2, "in use");
    let pool = opened.open_pool("things", PoolOptions::new()).unwrap();
    pool.transaction(|tx| tx.alloc_zeroed::<Leaf>().map(|_| ()))
        .unwrap();
    drop((pool, opened));
    let before = contents(&store);
    let puddles = contents(&store.join("puddles"));
    let reason = "objects without a type, which may hold pointers";
    fails(&["gc", text(&store), "--dry-run"], 2, reason);
    fails(
        &["gc", text(&store), "--pool", "words", "--dry-run"],
        2,
        "no pool \"words\"",
    );
    assert!(contents(&store) == before, "something was written");
    fails(&["gc", text(&store)], 2, reason);
    assert!(
        contents(&store.join("puddles")) == puddles,
        "objects were changed"
    );
}

#[test]
fn nothing_is_freed_in_a_damaged_store() {
    let dir = scratch();
    let store = dir.path().join("store");
    make_store(&store);
    let puddle = puddle_file(&store);
    // The first field of the root object, behind the extent's header: the list.
    overwrite(&puddle, 4096 + 16, &0x2000_1234_5678u64.to_le_bytes());
    for arguments in [
        &["gc", text(&store), "--dry-run"][..],
        &["gc", text(&store)],
    ] {
        let run = fails(arguments, 3, "nothing is freed in a damaged store");
        assert!(run.err.contains("leads to 0x200012345678"), "{}", run.err);
    }
}

#[test]
fn a_store_whose_program_was_killed_is_recovered_first() {
    let dir = scratch();
    let store = dir.path().join("store");
    make_dirty_store(&store, "hybrid");
    let before = contents(&store);
    let run = succeeds(&["gc", text(&store), "--dry-run"]);
    assert!(
        run.out.contains("not closed in order: recovery will roll"),
        "{}",
        run.out
    );
    assert!(contents(&store) == before, "a dry run changes nothing");
    let run = succeeds(&["gc", text(&store)]);
    assert!(
        run.out.contains("not closed in order: recovery rolled"),
        "{}",
        run.out
    );
    assert!(run.out.ends_with("nothing to free\n"), "{}", run.out);
    assert_eq!(
        succeeds(&["check", text(&store)]).out.lines().last(),
        Some("sound")
    );
}
