//! `durum inspect` shows what a program means, without that program.

mod support;

use durum::{PoolOptions, Store, StoreOptions};
use serde_json::json;
use support::jobs::make_jobs;
use support::*;

#[test]
fn the_contents_are_shown_as_the_program_means_them() {
    let dir = scratch();
    let path = dir.path().join("store");
    make_jobs(&path);
    let before = contents(&path);
    let list = succeeds(&["ls", text(&path), "--json"]).json();
    let pool = list["pools"][0]["name"].as_str().unwrap();
    let inspect = |arguments: &[&str]| {
        let all = [&["inspect", text(&path), pool], arguments].concat();
        succeeds(&all).out
    };
    let shown = inspect(&[]);
    let line = |begin: &str| {
        let mut lines = shown.lines().map(str::trim_start);
        let found = lines.find(|line| line.starts_with(begin));
        found
            .unwrap_or_else(|| panic!("no {begin:?} in {shown}"))
            .to_owned()
    };
    assert_eq!(line("root"), "root: Jobs {");
    assert_eq!(line("tasks"), "tasks: map of 20,000 {");
    assert_eq!(line("… 19,984"), "… 19,984 more");
    assert_eq!(line("by_name"), "by_name: map of 40 {");
    // In the order of the keys.
    assert_eq!(line("\"job-0\""), "\"job-0\": 0,");
    assert_eq!(line("\"job-10\""), "\"job-10\": 10,");
    assert_eq!(
        line("\"long"),
        format!(
            "\"{}\" … 186 more bytes,",
            "long ".repeat(13).split_at(64).0
        )
    );
    assert_eq!(line("total"), "total: 7,");
    assert_eq!(
        line("first"),
        "first: -> Worker { name: \"Ada\", boss: None },"
    );
    assert_eq!(
        inspect(&["--path", "root.tasks[2204]"]),
        "root.tasks[2204]: Task { name: \"job-2204\", priority: 6, state: State::Waiting, worker: None }\n"
    );
    // What could move the cursor is escaped; what a weak pointer leads to is not followed.
    let task = inspect(&["--path", "root.tasks[2203]"]);
    assert!(task.contains(r#"name: "Bob\u{1b}[2J""#), "{task}");
    assert!(task.contains("boss: ~> Worker at 0x"), "{task}");
    assert!(task.contains("state: State::Taken { by: 2203 }"), "{task}");
    assert_eq!(
        inspect(&["--path", r#"root.by_name["job-7"]"#]),
        "root.by_name[\"job-7\"]: 7\n"
    );
    assert_eq!(
        inspect(&["--path", "root.tasks[2203].worker.boss.name"]),
        "root.tasks[2203].worker.boss.name: \"Ada\"\n"
    );
    let all = inspect(&["--elements", "30000", "--objects", "30000"]);
    assert!(
        all.contains(" 19999: Task {") && !all.contains("more}"),
        "{}",
        all.len()
    );
    let found = inspect(&["--find", "Worker"]);
    assert!(found.starts_with("2 objects of type Worker\n"), "{found}");
    assert!(
        found.contains("\"Ada\"") && found.contains("\"Bob"),
        "{found}"
    );
    let ada = found.lines().find(|line| line.contains("Ada")).unwrap();
    let of = |line: &str| {
        line.split(" at ")
            .nth(1)
            .unwrap()
            .split(',')
            .next()
            .unwrap()
            .to_owned()
    };
    assert!(ada.starts_with("root.first at 0x"), "{ada}");
    let address = &of(ada);
    let to = inspect(&["--to", address]);
    assert!(
        to.starts_with(&format!("2 pointers to {address}, root.first, Worker")),
        "{to}"
    );
    // By the ways that `--path` follows, without what cells, options and maps keep.
    assert!(to.contains(&format!("\nroot.first -> {address}\n")), "{to}");
    let boss = format!("\nroot.tasks[2203].worker.boss ~> {address}\n");
    assert!(to.contains(&boss), "{to}");
    let bob = found.lines().find(|line| line.contains("Bob")).unwrap();
    let address = &of(bob);
    assert_eq!(
        inspect(&["--to", address]),
        format!(
            "1 pointer to {address}, root.tasks[2203].worker, Worker at {address}\n\
             root.tasks[2203].worker -> {address}\n"
        )
    );
    assert!(inspect(&["--to", address, "--redact"]).contains(", ? -> "));
    let json = inspect(&["--path", "root.tasks[2203]", "--json"]);
    let json: serde_json::Value = serde_json::from_str(&json).unwrap();
    assert_eq!(json["value"]["name"], "job-2203");
    assert_eq!(json["value"]["state"], json!({ "Taken": { "by": 2203 } }));
    assert_eq!(json["value"]["worker"]["value"]["name"], "Bob\u{1b}[2J");
    // Types go by what the program calls them, and not by their descriptors.
    let heap = inspect(&["--heap"]);
    for name in ["\nPMutex<Jobs> ", "\nWorker ", "\n[PString] ", "\n[u8] "] {
        assert!(heap.contains(name), "{name} in {heap}");
    }
    assert!(
        !heap.contains("struct") && !heap.contains("root PMutex"),
        "{heap}"
    );
    let rows = inspect(&["--find", "PString"]);
    assert!(
        rows.starts_with("1 element of type PString in 1 block\n"),
        "{rows}"
    );
    let hidden = inspect(&["--redact"]) + &inspect(&["--redact", "--json"]);
    for secret in ["job-", "Ada", "long", "Taken", ": 7,"] {
        assert!(!hidden.contains(secret), "{secret} in {hidden}");
    }
    let refuse = |arguments: &[&str], why| {
        let all = [&["inspect", text(&path), pool], arguments].concat();
        fails(&all, 2, why);
    };
    refuse(
        &["--path", "root.task"],
        "there are: tasks, by_name, history, total, first",
    );
    refuse(
        &["--path", "root.tasks[20000]"],
        "none of its 20000 keys is that; there are: ",
    );
    refuse(
        &["--path", "tasks"],
        "does not begin with `root` or the address",
    );
    refuse(&["--find", "Wurker"], "there are: ");
    refuse(&["--find", "Worker", "--raw"], "cannot be used with");
    assert_eq!(contents(&path), before, "inspect changes nothing");
}

/// Structs of C, as `durum.h` declares them: a list is a chain, text ends at a zero, null pointers are vacant places.
#[test]
fn what_c_has_made_is_shown_as_c_means_it() {
    let dir = scratch();
    let path = dir.path().join("store");
    make_store(&path);
    let shown = succeeds(&["inspect", text(&path), "things"]).out;
    let expected = format!(
        "\
root: root {{
    list: -> chain by next [node {{ value: 11 }}, node {{ value: 22 }}, node {{ value: 33 }}],
    ring: -> chain by next [node {{ value: 1 }}, node {{ value: 2 }}, -> root.ring[0]],
    leaves: 6 elements, 2 filled [
        -> leaf {{
            label: \"secret word\",
            numbers: [-1, 2, -3, 4],
            ratio: 0.5,
            is_set: true,
            padding: 7 bytes of zero,
        }},
        -> root.leaves[0],
    ],
    second: -> root.list[1],
    inside: -> root.leaves[0].numbers[2],
    bytes: -> 300 bytes of no type: 0x{} … 236 more bytes,
}}
1 list, map or text is cut: --elements 75 is enough (now 16)
",
        "ab".repeat(64)
    );
    assert_eq!(shown, expected);
    let value = succeeds(&[
        "inspect",
        text(&path),
        "things",
        "--path",
        "root.list[2].value",
    ]);
    assert_eq!(value.out, "root.list[2].value: 33\n");
    let shown = succeeds(&["inspect", text(&path), "things", "--elements", "2"]).out;
    let list = "chain of 3 by next [node { value: 11 }, node { value: 22 }, … 1 more]";
    assert!(shown.contains(list), "{shown}");
    let cut = "\n3 lists, maps or texts are cut: --elements 75 is enough (now 2)\n";
    assert!(shown.ends_with(cut), "{shown}");
}

#[repr(C)]
struct Row {
    number: u64,
    event: *mut Event,
}
durum::describe!(Row as "row" { number, event });

#[repr(C)]
struct Table {
    rows: [Row; 4],
}
durum::describe!(Table as "table" { rows });

#[repr(C)]
struct Event {
    row: *mut Row,
}
durum::describe!(Event as "event" { row });

/// What lies in another pool has a name, too, and rows in which nothing is are left out.
#[test]
fn pointers_to_other_pools_tell_what_lies_there() {
    let dir = scratch();
    let path = dir.path().join("store");
    let store = Store::create(&path, StoreOptions::new()).unwrap();
    let rows = store.create_pool("rows", PoolOptions::new()).unwrap();
    let name = "ev\u{202e}ents";
    let events = store.create_pool(name, PoolOptions::new()).unwrap();
    let (table, event) = (
        rows.root::<Table>().unwrap(),
        events.root::<Event>().unwrap(),
    );
    rows.transaction(|tx| {
        // SAFETY: both roots are there, and this thread is alone.
        unsafe {
            tx.add(&raw mut (*table).rows[2])?;
            (*table).rows[2] = Row { number: 7, event };
            tx.add(event)?;
            (*event).row = &raw mut (*table).rows[2];
        }
        Ok::<_, durum::Error>(())
    })
    .unwrap();
    let event = event as u64;
    drop((rows, events, store));
    let shown = succeeds(&["inspect", text(&path), "rows"]).out;
    let there = "-> ev\\u{202e}ents: root";
    assert!(shown.contains("rows: 4 elements, 1 filled ["), "{shown}");
    let row = format!("2: row {{ number: 7, event: {there} }}");
    assert!(shown.contains(&row), "{row} in {shown}");
    let shown = succeeds(&["inspect", text(&path), name]).out;
    assert!(shown.contains("-> rows: root.rows[2]"), "{shown}");
    let shown = succeeds(&[
        "inspect",
        text(&path),
        "rows",
        "--to",
        &format!("{event:#x}"),
    ])
    .out;
    assert!(
        shown.contains(" in pool \"ev\\u{202e}ents\"\nroot.rows[2].event -> "),
        "{shown}"
    );
    // Neither in the tables of names does one turn what stands behind it.
    let all = succeeds(&["ls", text(&path)]).out
        + &succeeds(&["inspect", text(&path), "rows", "--raw"]).out;
    assert!(
        all.contains("ev\\u{202e}ents") && !all.contains('\u{202e}'),
        "{all}"
    );
}
