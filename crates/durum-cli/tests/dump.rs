//! What `durum dump` writes, `durum load` makes a pool of, of whatever engine, that says the same when it is dumped.

mod support;

use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};

use durum::{PoolOptions, Store, StoreOptions};
use support::jobs::make_jobs;
use support::pair::make_pair;
use support::*;

/// The lines of a pool behind the first one, which names pool, engine and addresses.
fn lines_of(store: &Path, pool: &str) -> (String, String) {
    let out = succeeds(&["dump", text(store), pool]).out;
    let (head, rest) = out.split_once('\n').unwrap();
    (head.to_owned(), rest.to_owned())
}

fn pool_of(store: &Path) -> String {
    let list = succeeds(&["ls", text(store), "--json"]).json();
    list["pools"][0]["name"].as_str().unwrap().to_owned()
}

/// Dumps a pool, loads it with each engine, and looks at what came of it.
fn comes_back(store: &Path, pool: &str, more: &[&str]) {
    let before = contents(store);
    let (head, lines) = lines_of(store, pool);
    assert_eq!(contents(store), before, "dump changes nothing");
    let shown = |store: &Path, pool: &str| {
        let shown = succeeds(&["inspect", text(store), pool, "--json", "--elements", "64"]).json();
        without_addresses(shown["value"].clone())
    };
    for engine in ["hybrid", "twin", "shadow"] {
        let directory = scratch();
        let copy = directory.path().join("copy");
        succeeds(&["init", text(&copy)]);
        let all = [&[text(&copy), "copy", "--engine", engine], more].concat();
        let run = load(&all, format!("{head}\n{lines}").as_bytes());
        assert_eq!(run.code, 0, "{}{}", run.out, run.err);
        let names: Vec<_> = std::fs::read_dir(directory.path()).unwrap().collect();
        assert_eq!(names.len(), 1, "nothing is left beside the store");
        let checked = succeeds(&["check", text(&copy), "--json"]).json();
        let of_source = succeeds(&["check", text(store), "--json"]).json();
        for what in ["objects", "leaks"] {
            assert_eq!(
                checked["pools"][0][what], of_source["pools"][0][what],
                "{checked:#}"
            );
        }
        let (other, again) = lines_of(&copy, "copy");
        assert!(
            other.contains(&format!("\"pool\":\"copy\",\"engine\":\"{engine}\"")),
            "{other}"
        );
        assert!(again == lines, "{}", first_difference(&lines, &again));
        assert_eq!(shown(&copy, "copy"), shown(store, pool));
    }
}

fn first_difference(one: &str, other: &str) -> String {
    let mut lines = one.lines().zip(other.lines());
    format!("{:?}", lines.find(|(one, other)| one != other))
}

fn without_addresses(mut value: serde_json::Value) -> serde_json::Value {
    match &mut value {
        serde_json::Value::Object(members) => {
            members.remove("pointer");
            members.remove("weak");
            let all = std::mem::take(members).into_iter();
            *members = all
                .map(|(name, it)| (name, without_addresses(it)))
                .collect();
        }
        serde_json::Value::Array(elements) => {
            let all = std::mem::take(elements).into_iter();
            *elements = all.map(without_addresses).collect();
        }
        _ => {}
    }
    value
}

#[test]
fn pools_that_lead_into_each_other_come_back_together() {
    let directory = scratch();
    let [store, copy] = ["store", "copy"].map(|name| directory.path().join(name));
    make_pair(&store);
    let opened = Store::open(&store, StoreOptions::new()).unwrap();
    opened.create_pool("empty", PoolOptions::new()).unwrap();
    opened.close().unwrap();
    succeeds(&["init", text(&copy)]);
    let alone = durum(&["dump", text(&store), "words"]);
    let note = "note: 1 pointer to no object of the dump (`--with` dumps pools together)";
    assert!(alone.err.contains(note), "{}", alone.err);
    let refused = load(&[text(&copy)], alone.out.as_bytes());
    assert_eq!(refused.code, 2);
    assert!(refused.err.contains("durum dump --with"), "{}", refused.err);

    let dump = |store: &Path, first: &str| {
        let all = [
            "dump",
            text(store),
            first,
            "--with",
            "empty",
            "--with",
            "index",
        ];
        let run = succeeds(&all);
        assert_eq!(run.err, "");
        run.out
    };
    let lines = dump(&store, "words");
    let run = load(
        &[text(&copy), "again", "--engine", "twin"],
        lines.as_bytes(),
    );
    assert_eq!(run.code, 0, "{}", run.err);
    let named = "\"again\", \"empty\", \"index\", 6.0 MiB in 3 puddles, 2 objects";
    assert!(run.out.contains(named), "{}", run.out);
    let checked = succeeds(&["check", text(&copy), "--json"]).json();
    assert_eq!(checked["findings"], serde_json::json!([]), "{checked:#}");
    let behind_head = |lines: &str| lines.split_once('\n').unwrap().1.to_owned();
    assert_eq!(behind_head(&dump(&copy, "again")), behind_head(&lines));
    let opened = Store::open(&copy, StoreOptions::new()).unwrap();
    let pools = ["again", "index"].map(|name| opened.open_pool(name, PoolOptions::new()).unwrap());
    let roots = [0, 1].map(|at: usize| pools[at].root::<Node>().unwrap());
    for (at, root) in roots.iter().enumerate() {
        // SAFETY: the pools are open.
        let node = unsafe { &**root };
        assert_eq!((node.value, node.next), (at as u64 + 1, roots[1 - at]));
    }
    assert!(
        pools
            .iter()
            .all(|pool| pool.engine() == durum::Engine::Twin)
    );
    drop((pools, opened));

    let twice = ["dump", text(&store), "words", "--with", "words"];
    fails(&twice, 2, "each pool is named once");
    // Nothing is made of lines that say something else than their head.
    let more = "\"objects\":1,\"root\":true}]";
    let all = [
        "\"objects\":2,\"root\":true}]",
        "\"objects\":0,\"root\":true}]",
        "\"objects\":1,\"root\":true},]",
    ];
    for less in all {
        assert!(lines.contains(more));
        let run = load(
            &[text(&copy), "third"],
            lines.replacen(more, less, 1).as_bytes(),
        );
        assert_eq!(run.code, 2, "{}", run.err);
    }
    // One of the names is there.
    let run = load(&[text(&copy), "third"], lines.as_bytes());
    assert_eq!(run.code, 2, "{}", run.err);
    let listed = succeeds(&["ls", text(&copy), "--json"]).json();
    assert_eq!(listed["pools"].as_array().unwrap().len(), 3);
    assert_eq!(std::fs::read_dir(directory.path()).unwrap().count(), 2);
}

#[test]
fn a_pool_of_the_typed_interface_comes_back() {
    let directory = scratch();
    let store = directory.path().join("store");
    make_jobs(&store);
    comes_back(&store, &pool_of(&store), &[]);
}

/// A store with options of values.
mod options {
    use durum::typed::*;

    durum::pool!(P);

    #[derive(PSafe)]
    #[repr(C, u8)]
    enum State {
        Waiting,
        Taken { by: u32 },
    }

    #[derive(PSafe)]
    #[repr(C)]
    struct Place {
        row: u64,
        seat: Option<char>,
    }

    #[derive(PSafe)]
    #[repr(C)]
    struct Task {
        deadline: Option<u64>,
        state: Option<State>,
        place: Option<Place>,
        flags: [Option<bool>; 3],
    }

    pub fn make(path: &std::path::Path) {
        type Root = PMutex<(PVec<Task, P>, PVec<Option<bool>, P>), P>;
        let root = P::open::<Root>(path, Flags::CREATE).unwrap();
        P::transaction(|j| {
            let (tasks, flags) = &mut *root.lock(j);
            for number in 0..8_u64 {
                let task = Task {
                    deadline: (number > 2).then_some(number),
                    state: match number {
                        0 => None,
                        1 => Some(State::Waiting),
                        _ => Some(State::Taken { by: number as u32 }),
                    },
                    place: (number > 4).then_some(Place {
                        row: number,
                        seat: (number > 5).then_some('x'),
                    }),
                    flags: [None, Some(true), Some(false)],
                };
                tasks.push(task, j);
                flags.push(Some(number > 4), j);
            }
            flags.push(None, j);
        })
        .unwrap();
        root.close().unwrap();
    }
}

#[test]
fn options_of_values_are_shown_and_come_back() {
    let directory = scratch();
    let store = directory.path().join("store");
    options::make(&store);
    let pool = pool_of(&store);
    for (at, shown) in [
        (
            0,
            "Task { deadline: None, state: None, place: None, flags: [None, Some(true), Some(false)] }",
        ),
        (
            5,
            "Task { deadline: Some(5), state: Some(State::Taken { by: 5 }), place: Some(Place { row: 5, seat: None }), flags: [None, Some(true), Some(false)] }",
        ),
        (
            6,
            "Task { deadline: Some(6), state: Some(State::Taken { by: 6 }), place: Some(Place { row: 6, seat: Some('x') }), flags: [None, Some(true), Some(false)] }",
        ),
    ] {
        let path = format!("root.0[{at}]");
        let out = succeeds(&["inspect", text(&store), &pool, "--path", &path]).out;
        let words: Vec<&str> = out.split_whitespace().collect();
        let words = words.join(" ").replace(", }", " }");
        assert!(words.contains(shown), "{words}");
    }
    comes_back(&store, &pool, &[]);
}

#[test]
fn structs_of_c_come_back_with_sharing_cycles_and_pointers_into_objects() {
    let directory = scratch();
    let store = directory.path().join("store");
    make_store(&store);
    comes_back(&store, "things", &["--untyped-hold-no-pointers"]);
    let (head, lines) = lines_of(&store, "things");
    let shown: Vec<&str> = lines.lines().collect();
    // The root, a list, a cycle of two, an interior pointer, text and other bytes.
    let root = shown
        .iter()
        .find(|line| line.starts_with("{\"object\":1,"))
        .unwrap();
    assert!(
        root.contains("\"list\":") && root.contains("\"inside\":["),
        "{root}"
    );
    let leaf = shown
        .iter()
        .find(|line| line.contains("\"label\":\"secret word\""))
        .unwrap();
    assert!(
        leaf.contains("\"numbers\":[-1,2,-3,4],\"ratio\":0.5,\"is_set\":true,\"padding\":\"\"")
    );
    assert!(lines.contains("{\"base64\":\"q6ur"), "{lines}");
    let refused = load(
        &[text(&store), "copy"],
        format!("{head}\n{lines}").as_bytes(),
    );
    assert_eq!(refused.code, 2);
    assert!(
        refused.err.contains("--untyped-hold-no-pointers"),
        "{}",
        refused.err
    );
}

/// As recovery will leave it; the store stays as it is.
#[test]
fn a_store_that_was_not_closed_is_dumped_as_recovery_will_leave_it() {
    for engine in ["hybrid", "twin", "shadow"] {
        let directory = scratch();
        let store = directory.path().join("store");
        make_dirty_store(&store, engine);
        let before = contents(&store);
        let (_, lines) = lines_of(&store, "words");
        assert_eq!(contents(&store), before);
        succeeds(&["recover", text(&store)]);
        assert!(lines_of(&store, "words").1 == lines, "{engine}");
        comes_back(&store, "words", &[]);
    }
}

#[test]
fn a_database_comes_back() {
    let directory = scratch();
    let store = directory.path().join("names");
    for number in 0..200 {
        let (key, value) = (format!("key-{number}"), "value ".repeat(number));
        let mut all = vec!["kv", "put", text(&store), &key, &value];
        all.extend((number == 0).then_some("--create"));
        succeeds(&all);
    }
    comes_back(&store, "kv", &["--untyped-hold-no-pointers"]);
    let copy = directory.path().join("copy");
    succeeds(&["init", text(&copy)]);
    let (head, lines) = lines_of(&store, "kv");
    let run = load(&[text(&copy)], format!("{head}\n{lines}").as_bytes());
    assert_eq!(run.code, 0, "{}", run.err);
    let scanned = |store: &Path| succeeds(&["kv", "scan", text(store)]).out;
    assert_eq!(scanned(&copy), scanned(&store));
}

/// Each line is changed in turn, and lines are taken out, doubled and cut: the store has no new pool then, and nothing
/// lies beside it.
#[test]
fn lines_that_are_no_dump_are_refused_by_number_and_leave_nothing() {
    let directory = scratch();
    let store = directory.path().join("store");
    make_store(&store);
    let dump = succeeds(&["dump", text(&store), "things"]).out;
    let lines: Vec<&str> = dump.lines().collect();
    let refuse = |lines: &[&str], number: usize, why: &str| {
        let all = [text(&store), "copy", "--untyped-hold-no-pointers"];
        let run = load(&all, lines.join("\n").as_bytes());
        assert_eq!(run.code, 2, "{}{}", run.out, run.err);
        let told = format!("line {number}: ");
        assert!(
            run.err.contains(&told) && run.err.contains(why),
            "{told}{why}: {}",
            run.err
        );
        let pools = succeeds(&["ls", text(&store), "--json"]).json();
        assert_eq!(pools["pools"].as_array().unwrap().len(), 1);
        assert_eq!(std::fs::read_dir(directory.path()).unwrap().count(), 1);
    };
    let changed = |at: usize, from: &str, to: &str| {
        let mut all: Vec<String> = lines.iter().map(|line| (*line).to_owned()).collect();
        assert!(all[at].contains(from), "{from} is not in {}", all[at]);
        all[at] = all[at].replacen(from, to, 1);
        all
    };
    let with = |at: usize, from: &str, to: &str, why: &str| {
        let all = changed(at, from, to);
        let all: Vec<&str> = all.iter().map(String::as_str).collect();
        refuse(&all, at + 1, why);
    };
    let line_with = |what: &str| lines.iter().position(|line| line.contains(what)).unwrap();
    let root = line_with("{\"object\":1,");
    let leaf = line_with("secret word");
    let node = line_with("\"value\":11");
    refuse(&[], 1, "not whole");
    refuse(&["hello"], 1, "`{` is missing");
    with(0, "\"durum-dump\":1", "\"durum-dump\":2", "version 2");
    with(
        0,
        "\"engine\":\"shadow\"",
        "\"engine\":\"soap\"",
        "no such engine",
    );
    with(1, "struct", "strict", "type descriptor");
    with(
        root,
        "\"object\":1,",
        "\"object\":2,",
        "object 1 is missing",
    );
    with(root, "\"type\":", "\"type\":7", "there was no type 7");
    with(
        root,
        "\"list\":",
        "\"lost\":",
        "the member \"list\" is missing",
    );
    with(
        root,
        "\"inside\":[",
        "\"inside\":[99",
        "there is no object 99",
    );
    with(
        leaf,
        "\"secret word\"",
        "\"a secret that is far too long\"",
        "room for 16 bytes",
    );
    with(leaf, "[-1,2,-3,4]", "[-1,2,-3,4,5]", "more than 4 elements");
    with(leaf, "[-1,2,-3,4]", "[-1,2,-3,4294967296]", "no i32");
    with(leaf, "true", "maybe", "true or false is missing");
    with(leaf, "0.5", "1e999", "no f64");
    with(
        node,
        "\"value\":11",
        "\"value\":18446744073709551616",
        "does not fit",
    );
    with(
        node,
        "\"value\":11",
        "\"value\":11,\"value\":12",
        "\"next\" is missing",
    );
    let end = lines.len() - 1;
    with(end, "\"end\":8", "\"end\":9", "it tells of 9 objects");
    refuse(&lines[..end], end + 1, "not whole");
    refuse(
        &[&lines[..end], &lines[root..]].concat(),
        end + 1,
        "object 9 is missing",
    );
    refuse(
        &[&lines[..], &["{}"]].concat(),
        end + 2,
        "behind the last line",
    );
    let far = changed(root, "\"inside\":[", "\"inside\":[1,9999],\"bytes\":[");
    let far: Vec<&str> = far.iter().map(String::as_str).collect();
    refuse(&far, root + 1, "");
    // Bytes beyond an object are told at the end.
    let inside = lines[root].split("\"inside\":[").nth(1).unwrap();
    let inside = inside.split(']').next().unwrap();
    let number = inside.split(',').next().unwrap();
    let far = changed(root, &format!("[{inside}]"), &format!("[{number},4000]"));
    let far: Vec<&str> = far.iter().map(String::as_str).collect();
    refuse(&far, end + 1, "4000 bytes into object");
    // A name that is taken is refused by the store.
    let run = load(
        &[text(&store), "--untyped-hold-no-pointers"],
        dump.as_bytes(),
    );
    assert_eq!(run.code, 2, "{}", run.err);
    assert!(run.err.contains("things"), "{}", run.err);
    assert_eq!(std::fs::read_dir(directory.path()).unwrap().count(), 1);
}

#[test]
fn a_pool_without_objects_comes_back() {
    let directory = scratch();
    let path = directory.path().join("store");
    let store = durum::Store::create(&path, durum::StoreOptions::new()).unwrap();
    drop(
        store
            .create_pool("empty", durum::PoolOptions::new())
            .unwrap(),
    );
    drop(store);
    comes_back(&path, "empty", &[]);
}

/// Killed while it reads: the store has nothing of it, and the next load makes the pool.
#[test]
fn a_load_that_is_killed_leaves_no_pool() {
    let directory = scratch();
    let store = directory.path().join("store");
    make_jobs(&store);
    let dump = succeeds(&["dump", text(&store), &pool_of(&store)]).out;
    let copy = directory.path().join("copy");
    succeeds(&["init", text(&copy)]);
    for part in [0, 200, dump.len() / 2, dump.len() - 1] {
        let mut child = Command::new(env!("CARGO_BIN_EXE_durum"))
            .args(["load", text(&copy)])
            .stdin(Stdio::piped())
            .spawn()
            .unwrap();
        let input = child.stdin.as_mut().unwrap();
        input.write_all(&dump.as_bytes()[..part]).unwrap();
        input.flush().unwrap();
        child.kill().unwrap();
        child.wait().unwrap();
        let pools = durum(&["ls", text(&copy)]).out;
        assert!(pools.contains("no pools"), "{pools}");
        succeeds(&["check", text(&copy)]);
    }
    let run = load(&[text(&copy)], dump.as_bytes());
    assert_eq!(run.code, 0, "{}", run.err);
    succeeds(&["check", text(&copy)]);
}

/// Several small ones have the room of one, and nothing says how many there are.
#[test]
fn rows_of_what_is_small_come_back() {
    let directory = scratch();
    let store = directory.path().join("store");
    make_store(&store);
    let (head, _) = lines_of(&store, "things");
    let (head, _) = head.split_once("\"objects\":").unwrap();
    let lines = [
        r#"{"type":1,"text":"struct \"small\"(2,2){0:\"value\":u16;}\n"}"#,
        r#"{"type":2,"text":"[u16;2]\n"}"#,
        r#"{"object":1,"type":1,"value":[{"value":1},{"value":2},{"value":3},{"value":4}]}"#,
        r#"{"object":2,"type":1,"value":{"value":5}}"#,
        r#"{"object":3,"type":1,"value":[{"value":0},{"value":0},{"value":0},{"value":6}]}"#,
        r#"{"object":4,"type":2,"value":[7,8]}"#,
        r#"{"end":4}"#,
    ];
    let lines = lines.map(|line| format!("{line}\n")).concat();
    let all = format!("{head}\"objects\":4,\"root\":false}}\n{lines}");
    let rows = directory.path().join("rows");
    succeeds(&["init", text(&rows)]);
    let run = load(&[text(&rows), "small"], all.as_bytes());
    assert_eq!(run.code, 0, "{}{}", run.out, run.err);
    let (_, again) = lines_of(&rows, "small");
    assert!(again == lines, "{}", first_difference(&lines, &again));
    comes_back(&rows, "small", &[]);
}
