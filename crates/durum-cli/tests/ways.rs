//! Ways to what somebody looks for with `durum inspect`: what is printed can be given back, and what leads nowhere says
//! what there is instead.

mod support;

use support::made::{Made, things};
use support::*;

/// The way to another pool is one that can be given back.
#[test]
fn pointers_to_another_pool_tell_the_path_there() {
    let dir = scratch();
    let path = dir.path().join("store");
    support::pair::make_pair(&path);
    let inspect = |arguments: &[&str]| {
        let all = [&["inspect", text(&path)], arguments].concat();
        succeeds(&all).out
    };
    let shown = inspect(&["words"]);
    assert!(shown.contains("next: -> index: root }"), "{shown}");
    let hidden = inspect(&["words", "--redact"]);
    assert!(hidden.contains("(node in pool \"index\")"), "{hidden}");
    let all = ["inspect", text(&path), "words", "--path", "root.next.value"];
    let refused = fails(&all, 2, "this pointer leaves the pool");
    let command = format!("`durum inspect {} index --path root.value`", text(&path));
    assert!(refused.err.contains(&command), "{}", refused.err);
    assert_eq!(
        inspect(&["index", "--path", "root.value"]),
        "root.value: 2\n"
    );
    // Who points to an address is looked for in all pools.
    let json: serde_json::Value = serde_json::from_str(&inspect(&["index", "--json"])).unwrap();
    let address = json["address"].as_str().unwrap();
    let to = inspect(&["index", "--to", address]);
    let expected =
        format!("1 pointer to {address}, root, node at {address}\nwords: root.next -> {address}\n");
    assert_eq!(to, expected);
    let to = inspect(&["words", "--to", address]);
    let expected = format!(
        "1 pointer to {address}, root, node at {address} in pool \"index\"\nroot.next -> {address}\n"
    );
    assert_eq!(to, expected);
    for nowhere in ["1", "zz"] {
        let all = ["inspect", text(&path), "words", "--to", nowhere];
        let refused = fails(&all, 2, "");
        assert!(!refused.err.contains("digit"), "{}", refused.err);
    }
}

/// What lies in the middle of an object says how far; weak pointers of NVL-C are told where the program has them.
#[test]
fn pointers_of_nvl_c_are_those_of_the_program() {
    let header = "0:\"count\":u64;8:\"next\":*any;16:\"previous\":~any;24:\"weak\":*1;32:\"strong\":u64;40:\"state\":u64;";
    let heap = "struct \"nvl heap\"(32,8){0:\"version\":u64;8:\"root\":*any;16:\"checksum\":u64;24:\"zero\":*any;}\n";
    let proxy_fields = "struct \"nvl weak\"(24,8){0:\"target\":~any;8:\"count\":u64;16:\"next\":*";
    let point = format!(
        "struct \"nvl point\"(48,16){{{header}48:\"data\":[struct \"point\"(16,8){{0:\"name\":[i8;8];8:\"to\":*any;}};\
         field \"count\"];}}\n{proxy_fields}1;}}\n"
    );
    let proxy = format!("{proxy_fields}0;}}\n");
    let made = Made::of(
        "heap",
        &[heap, &point, &proxy],
        &[
            (1, r#"{"version":1,"root":[2,48],"checksum":0,"zero":null}"#),
            (
                2,
                r#"bytes 64 {"count":1,"next":null,"previous":null,"weak":null,"strong":1,"state":0,"data":[{"name":"one","to":4}]}"#,
            ),
            (
                2,
                r#"bytes 64 {"count":1,"next":null,"previous":null,"weak":4,"strong":0,"state":0,"data":[{"name":"two","to":null}]}"#,
            ),
            (3, r#"{"target":[3,48],"count":1,"next":null}"#),
        ],
    );
    let found = made.inspect(&["heap", "--find", "point"]);
    let two = found.lines().find(|line| line.contains("\"two\"")).unwrap();
    let address = two.split(',').next().unwrap().rsplit(' ').next().unwrap();
    let to = made.inspect(&["heap", "--to", address]);
    let weak = to.lines().nth(1).unwrap();
    assert!(weak.starts_with("root.to ~> 0x"), "{to}");
    assert!(weak.ends_with(", 48 bytes behind that"), "{to}");
    assert!(!to.contains("nvl weak") && to.lines().count() == 2, "{to}");
}

#[test]
fn objects_of_a_type_are_told_by_path_and_what_is_printed_can_be_given_back() {
    let made = things();
    for name in ["a thing", "thing"] {
        let found = made.inspect(&["things", "--find", name]);
        assert!(
            found.starts_with(&format!("2 objects of type {name}\nroot.first")),
            "{found}"
        );
        // Each of them in a line, although the first one leads to the second.
        assert_eq!(found.lines().count(), 3, "{found}");
        assert!(found.contains("next: -> root.first[1] }"), "{found}");
        let address = found.lines().find(|line| line.contains("\"one\"")).unwrap();
        let address = address
            .split(" at ")
            .nth(1)
            .unwrap()
            .split(',')
            .next()
            .unwrap();
        let path = format!("{address}.next.name");
        assert_eq!(
            made.inspect(&["things", "--path", &path]),
            format!("{path}: \"two\"\n")
        );
        let start = u64::from_str_radix(&address[2..], 16).unwrap();
        let middle = format!("{:#x}", start + 8);
        made.refuses(
            &["things", "--path", &middle],
            &format!("begin with `{address}`"),
        );
    }
    made.refuses(
        &["things", "--path", "0x1.name"],
        "no object of pool \"things\" begins at 0x1",
    );

    let outer = "struct \"outer\"(32,8){0:\"lanes\":[struct \"my lane\"(8,8){0:\"number\":u64;};2];16:\"one\":*1;24:\"two\":*2;}\n\
        struct \"x item\"(8,8){0:\"number\":u64;}\nstruct \"y item\"(8,8){0:\"number\":u64;}\n";
    let made = Made::of(
        "pool",
        &[
            outer,
            "struct \"x item\"(8,8){0:\"number\":u64;}\n",
            "struct \"y item\"(8,8){0:\"number\":u64;}\n",
        ],
        &[
            (
                1,
                r#"{"lanes":[{"number":1},{"number":2}],"one":2,"two":3}"#,
            ),
            (2, r#"{"number":3}"#),
            (3, r#"{"number":4}"#),
        ],
    );
    made.refuses(
        &["pool", "--find", "item"],
        "several types are called \"item\": x item, y item",
    );
    made.refuses(
        &["pool", "--find", "lane"],
        "it lies in others; look at one with --path: root.lanes",
    );

    let rows = Made::of(
        "pool",
        &[
            "struct \"N5durum6vectorIiEE\"(24,8){0:\"first_\":*1;8:\"capacity_\":u64;16:\"size_\":u64;}\n\
             struct \"N5durum6detail4cellI7articleEE\"(8,8){0:\"value\":struct \"7article\"(8,8){0:\"number\":u64;};}\n",
            "struct \"N5durum6detail4cellI7articleEE\"(8,8){0:\"value\":struct \"7article\"(8,8){0:\"number\":u64;};}\n",
        ],
        &[
            (1, r#"{"first_":2,"capacity_":4,"size_":2}"#),
            (
                2,
                r#"bytes 32 [{"value":{"number":7}},{"value":{"number":8}},{"value":{"number":0}},{"value":{"number":0}}]"#,
            ),
        ],
    );
    let found = rows.inspect(&["pool", "--find", "article"]);
    assert!(
        found.starts_with("2 elements of type article in 1 block\n"),
        "{found}"
    );
}

#[test]
fn the_only_pool_needs_no_name_and_several_are_listed() {
    let made = things();
    assert_eq!(made.inspect(&[]), made.inspect(&["things"]));
    assert_eq!(made.inspect(&["--path", "root.count"]), "root.count: 2\n");
    let dir = scratch();
    let path = dir.path().join("store");
    support::pair::make_pair(&path);
    assert!(succeeds(&["inspect", text(&path)]).out.starts_with("POOL "));
    for option in [["--path", "root"], ["--find", "node"], ["--to", "0x1"]] {
        let all = [&["inspect", text(&path)], &option[..]].concat();
        fails(
            &all,
            2,
            "name the pool to look at behind the store; there are: index, words",
        );
    }
}

/// What is wrong with a path says what there is instead.
#[test]
fn a_path_that_leads_nowhere_tells_what_there_is() {
    let made = things();
    let refuses = |path: &str, why: &str| made.refuses(&["things", "--path", path], why);
    refuses("root.first[2]", "the chain has 2 elements");
    refuses("root.count.low", "it is a value without fields");
    refuses("root.frst", "there are: first, count");
    let map = "struct \"N5durum3mapI3dayiE\"(16,8){0:\"root_\":*1;8:\"size_\":u64;}\n\
        struct \"N5durum3mapI3dayiE4nodeE\"(40,8){0:\"entry\":struct \"E\"(16,8){0:\"first\":struct \"day\"(8,8){0:\"number\":i64;};\
        8:\"second\":i64;};16:\"left\":*1;24:\"right\":*1;32:\"weight\":u64;}\n";
    let node = "struct \"N5durum3mapI3dayiE4nodeE\"(40,8){0:\"entry\":struct \"E\"(16,8){0:\"first\":struct \"day\"(8,8){0:\"number\":i64;};\
        8:\"second\":i64;};16:\"left\":*0;24:\"right\":*0;32:\"weight\":u64;}\n";
    let made = Made::of(
        "pool",
        &[map, node],
        &[
            (1, r#"{"root_":2,"size_":1}"#),
            (
                2,
                r#"{"entry":{"first":{"number":1000},"second":5},"left":null,"right":null,"weight":1}"#,
            ),
        ],
    );
    for path in ["root[day { number: 1000 }]", "root[1000]"] {
        assert_eq!(
            made.inspect(&["pool", "--path", path]),
            format!("{path}: 5\n")
        );
    }
    made.refuses(
        &["pool", "--path", "root[7]"],
        "none of its 1 keys is that; there are: day { number: 1000 }",
    );
    made.refuses(
        &["pool", "--path", "root.day"],
        "it is a map and has no fields",
    );
}
