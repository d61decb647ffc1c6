//! Somebody who has never seen durum reads pools with `durum inspect`: what is shown needs no knowledge of how durum
//! keeps it, and what is printed can be given back as an argument.

mod support;

use std::path::PathBuf;

use support::*;
use tempfile::TempDir;

/// A store with pools that are made from lines of a dump: texts of types, and of each object the number of its type and
/// its value, or the size of one with a tail and the value. The first object is the root.
struct Made {
    _dir: TempDir,
    path: PathBuf,
}

impl Made {
    fn of(pool: &str, types: &[&str], objects: &[(usize, &str)]) -> Made {
        let dir = scratch();
        let path = dir.path().join("store");
        succeeds(&["init", text(&path)]);
        let made = Made { _dir: dir, path };
        let head = format!(
            "{{\"durum-dump\":1,\"pool\":\"{pool}\",\"engine\":\"shadow\",\
             \"space\":[\"0x200000000000\",\"0x10000000000\"],\"objects\":{},\"root\":true}}",
            objects.len()
        );
        let of_types = types.iter().zip(1..).map(|(text, number)| {
            let text = serde_json::Value::from(*text);
            format!("{{\"type\":{number},\"text\":{text}}}")
        });
        let of_objects = objects.iter().zip(1..).map(|((ty, value), number)| {
            let sized = value.strip_prefix("bytes ");
            let (bytes, value) = match sized.and_then(|sized| sized.split_once(' ')) {
                Some((bytes, value)) => (format!("\"bytes\":{bytes},"), value),
                None => (String::new(), *value),
            };
            let ty = match ty {
                0 => "null".to_owned(),
                ty => ty.to_string(),
            };
            format!("{{\"object\":{number},\"type\":{ty},{bytes}\"value\":{value}}}")
        });
        let end = format!("{{\"end\":{}}}", objects.len());
        let lines = std::iter::once(head).chain(of_types).chain(of_objects);
        let lines: Vec<String> = lines.chain([end]).collect();
        let lines = lines.join("\n") + "\n";
        let run = load(&[text(&made.path)], lines.as_bytes());
        assert_eq!(run.code, 0, "{lines}{}", run.err);
        made
    }

    fn inspect(&self, arguments: &[&str]) -> String {
        let all = [&["inspect", text(&self.path)], arguments].concat();
        succeeds(&all).out
    }

    fn refuses(&self, arguments: &[&str], why: &str) {
        let all = [&["inspect", text(&self.path)], arguments].concat();
        fails(&all, 2, why);
    }
}

/// The table in which the library of C++ keeps what a program has put in the pool.
const TABLE: &str =
    "struct \"durum.objects\"(80,8){0:\"types\":[u64;5];40:\"objects\":[*any;5];}\n";
const QUEUE: &str = "struct \"5queue\"(16,8){0:\"first_\":*1;8:\"count_\":u64;}\n\
    struct \"3job\"(16,8){0:\"number\":u64;8:\"next\":*1;}\n";
const JOB: &str = "struct \"3job\"(16,8){0:\"number\":u64;8:\"next\":*0;}\n";

#[test]
fn the_one_object_of_a_pool_of_cpp_is_the_root() {
    let one = Made::of(
        "pool",
        &[TABLE, QUEUE, JOB],
        &[
            (1, r#"{"types":[7],"objects":[2]}"#),
            (2, r#"{"first_":3,"count_":2}"#),
            (3, r#"{"number":5,"next":4}"#),
            (3, r#"{"number":6,"next":null}"#),
        ],
    );
    let shown = one.inspect(&["pool"]);
    assert!(
        shown.starts_with("root: -> queue {") && !shown.contains("root[0]"),
        "{shown}"
    );
    for path in ["root.first_[1].number", "root[0].first_[1].number"] {
        assert_eq!(
            one.inspect(&["pool", "--path", path]),
            format!("{path}: 6\n")
        );
    }
    one.refuses(&["pool", "--path", "root[1]"], "`root[1]`: ");

    let two = Made::of(
        "pool",
        &[TABLE, QUEUE],
        &[
            (1, r#"{"types":[7,8],"objects":[2,3]}"#),
            (2, r#"{"first_":null,"count_":1}"#),
            (2, r#"{"first_":null,"count_":2}"#),
        ],
    );
    let shown = two.inspect(&["pool"]);
    assert!(
        shown.starts_with(
            "root: 2 objects that the program has put in the pool [\n    0: -> queue {"
        ) && shown.contains("\n    1: -> queue {"),
        "{shown}"
    );
    assert_eq!(
        two.inspect(&["pool", "--path", "root[1].count_"]),
        "root[1].count_: 2\n"
    );
    two.refuses(&["pool", "--path", "root[2]"], "it has 2 objects");
    two.refuses(&["pool", "--path", "root.count_"], "one of the 2 objects");
}

/// What is left off is counted, and the one option is named that shows it, with a number that is enough.
#[test]
fn what_is_cut_says_how_much_and_which_option_shows_it() {
    let list = "struct \"list\"(8,8){0:\"first\":*1;}\nstruct \"item\"(16,8){0:\"number\":u64;8:\"next\":*1;}\n";
    let item = "struct \"item\"(16,8){0:\"number\":u64;8:\"next\":*0;}\n";
    let items: Vec<String> = (0..20)
        .map(|at| match at {
            19 => r#"{"number":19,"next":null}"#.to_owned(),
            at => format!("{{\"number\":{at},\"next\":{}}}", at + 3),
        })
        .collect();
    let items = items.iter().map(|item| (2, item.as_str()));
    let objects: Vec<_> = [(1, r#"{"first":2}"#)].into_iter().chain(items).collect();
    let chain = Made::of("pool", &[list, item], &objects);
    let shown = chain.inspect(&["pool", "--elements", "3"]);
    assert!(shown.contains("chain of 20 by next ["), "{shown}");
    assert!(shown.contains("… 17 more"), "{shown}");
    let footer = "\n1 list, map or text is cut: --elements 20 is enough (now 3)\n";
    assert!(shown.ends_with(footer) && !shown.contains("--depth"), "{shown}");
    let whole = chain.inspect(&["pool", "--elements", "20"]);
    assert!(whole.contains("number: 19") && !whole.contains("--elements"), "{whole}");

    let table = "struct \"table\"(512,8){0:\"places\":[*1;64];}\nu64\n";
    let numbers: Vec<String> = (0..40).map(|at| at.to_string()).collect();
    let places: Vec<String> = (0..40).map(|at| (at + 2).to_string()).collect();
    let places = format!("{{\"places\":[null,{}]}}", places.join(","));
    let numbers = numbers.iter().map(|number| (2, number.as_str()));
    let objects: Vec<_> = [(1, places.as_str())].into_iter().chain(numbers).collect();
    let sparse = Made::of("pool", &[table, "u64\n"], &objects);
    let shown = sparse.inspect(&["pool"]);
    assert!(shown.contains("places: 64 elements, 40 filled ["), "{shown}");
    assert!(shown.contains("… 24 more filled"), "{shown}");
    assert!(shown.contains("--elements 40 is enough (now 16)"), "{shown}");
    let json: serde_json::Value =
        serde_json::from_str(&sparse.inspect(&["pool", "--json"])).unwrap();
    assert_eq!(json["value"]["places"]["filled"], 40);
    assert_eq!((&json["elements_cut"], &json["elements_enough"]), (&1.into(), &40.into()));

    let deep = chain.inspect(&["pool", "--depth", "0"]);
    assert!(
        deep.ends_with("\n1 pointer not followed: a larger --depth (now 0) shows more\n"),
        "{deep}"
    );
    let few = sparse.inspect(&["pool", "--objects", "4", "--elements", "64"]);
    assert!(
        few.ends_with(" not followed: a larger --objects (now 4) shows more\n")
            && !few.contains("--elements"),
        "{few}"
    );
}
