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
