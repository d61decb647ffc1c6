//! What a type may become without that values are written anew.

#[path = "../../../fuzz/src/successors.rs"]
mod fuzz;

use std::collections::BTreeMap;

use durum_format::types::{Count, Declarations, Descriptor, Meanings, Primitive, Type, successors};
use proptest::prelude::*;

/// Of a text whose lines are these.
fn parsed(lines: &[&str]) -> Descriptor {
    Descriptor::parse(&(lines.join("\n") + "\n")).unwrap()
}

/// Whether one type may become another; what is in the way.
fn way(was: &Descriptor, is: &Descriptor) -> Result<BTreeMap<u64, u64>, String> {
    successors(was, is).map_err(|obstacle| obstacle.to_string())
}

fn refused(was: &[&str], is: &[&str]) -> String {
    way(&parsed(was), &parsed(is)).unwrap_err()
}

/// Accepted, with these pairs of lines as those whose ids become others.
#[track_caller]
fn accepted(was: &[&str], is: &[&str], pairs: &[(usize, usize)]) {
    let (was, is) = (parsed(was), parsed(is));
    let id = |of: &Descriptor, line| of.target(line).unwrap().id();
    let pairs = pairs
        .iter()
        .map(|&(old, new)| (id(&was, old), id(&is, new)));
    assert_eq!(way(&was, &is), Ok(pairs.collect()));
}

const QUEUE: &str = r#"struct "Queue"(8,8){0:"first":*1;}"#;

/// A task behind a queue, with these fields in 32 bytes.
fn task(fields: &str) -> Vec<String> {
    vec![
        QUEUE.to_owned(),
        format!(r#"struct "Task"(32,8){{{fields}}}"#),
    ]
}

fn tasks(was: &str, is: &str) -> Result<BTreeMap<u64, u64>, String> {
    let descriptor = |fields| {
        let lines = task(fields);
        parsed(&lines.iter().map(String::as_str).collect::<Vec<_>>())
    };
    way(&descriptor(was), &descriptor(is))
}

#[test]
fn what_stays_means_itself() {
    accepted(&["u64"], &["u64"], &[]);
    accepted(&[QUEUE, "u64"], &[QUEUE, "u64"], &[]);
}

#[test]
fn fields_come_into_reserved_bytes_only() {
    let old = r#"0:"id":u64;8:"later":reserved(16,1);"#;
    for new in [
        r#"0:"id":u64;8:"deadline":u64 in reserved;16:"later":reserved(8,1);"#,
        r#"0:"id":u64;8:"next":*1 in reserved;"#,
        r#"0:"id":u64;8:"less":reserved(3,1);12:"tries":u32 in reserved;16:"a":u64 in reserved;"#,
        r#"0:"id":u64;8:"later":reserved(16,1);"#,
        r#"0:"id":u64;"#,
    ] {
        assert!(tasks(old, new).is_ok(), "{new}");
    }
    let refused = |new| tasks(old, new).unwrap_err();
    assert_eq!(
        refused(r#"0:"id":u64;8:"deadline":u64;"#),
        "Queue.first->deadline: it lies in reserved bytes, and does not say that it may (zero has to be a value of its type)"
    );
    // Padding holds arbitrary bytes, so nothing comes there: not even reserved bytes.
    for new in [
        r#"0:"id":u64;8:"later":reserved(16,1);24:"deadline":u64 in reserved;"#,
        r#"0:"id":u64;8:"later":reserved(24,1);"#,
        r#"0:"id":u64;16:"more":[u64;2] in reserved;"#,
    ] {
        assert!(
            refused(new).ends_with("does not lie in reserved bytes"),
            "{new}"
        );
    }
    // What was there stays where it is.
    let gone = "Queue.first->id: it is gone, or lies elsewhere";
    assert_eq!(refused(r#"8:"id":u64;"#), gone);
    let back = r#"0:"id":reserved(8,1);8:"later":reserved(16,1);"#;
    assert!(refused(back).contains("now id") || refused(back).contains("now 8 reserved bytes"));
    // Bytes that lie together are reserved together.
    let two = r#"0:"a":reserved(8,1);8:"b":reserved(8,1);"#;
    assert!(tasks(two, r#"0:"c":opaque(16,1) in reserved;"#).is_ok());
}

#[test]
fn fields_keep_their_names_or_say_them() {
    let old = r#"0:"tries":u64;"#;
    assert!(tasks(old, r#"0:"attempts" was "tries":u64;"#).is_ok());
    assert!(tasks(old, r#"0:"attempts" was "other" was "tries":u64;"#).is_ok());
    assert_eq!(
        tasks(old, r#"0:"attempts":u64;"#).unwrap_err(),
        "Queue.first->tries: now attempts, which does not say that it was tries"
    );
    assert_eq!(
        tasks(old, r#"0:"tries":i64;"#).unwrap_err(),
        "Queue.first->tries: u64, now i64"
    );
    // Names are those of what lies there, whatever lies elsewhere.
    let two = r#"0:"a":u64;8:"b":u64;"#;
    assert!(tasks(two, r#"0:"b" was "a":u64;8:"a" was "b":u64;"#).is_ok());
    // A length has another name.
    accepted(
        &[r#"struct "T"(8,8){0:"n":u32;8:"p":[u64;field "n"];}"#],
        &[r#"struct "T"(8,8){0:"len" was "n":u32;8:"p":[u64;field "len"];}"#],
        &[(0, 0)],
    );
    let is = r#"struct "T"(8,8){0:"n":u32;4:"m":u32;8:"p":[u64;field "m"];}"#;
    let was = r#"struct "T"(8,8){0:"n":u32;4:"m":u32;8:"p":[u64;field "n"];}"#;
    assert!(refused(&[was], &[is]).starts_with("T.p: "));
}

#[test]
fn types_keep_their_names_or_say_them() {
    let queue = |of: &str| format!(r#"struct "PVec<{of}>"(8,8){{0:"first":*1;}}"#);
    let job = r#"struct "Job" was "Task"(8,8){0:"id":u64;}"#;
    let task = r#"struct "Task"(8,8){0:"id":u64;}"#;
    accepted(
        &[&queue("Task"), task],
        &[&queue("Job"), job],
        &[(0, 0), (1, 1)],
    );
    let unsaid = r#"struct "Job"(8,8){0:"id":u64;}"#;
    assert!(
        refused(&[&queue("Task"), task], &[&queue("Job"), unsaid])
            .contains("PVec<Task>, now PVec<Job>")
    );
    // Such a name says more than the fields do.
    let counted = r#"struct "counted T"(24,8){0:"strong":u64;8:"weak":u64;16:"value":u64;}"#;
    let plain = r#"struct "plain"(24,8){0:"strong":u64;8:"weak":u64;16:"value":u64;}"#;
    let was_plain = counted.replace("counted T\"", "counted T\" was \"plain\"");
    let was_counted = plain.replace("plain\"", "plain\" was \"counted T\"");
    assert!(refused(&[plain], &[&was_plain]).contains("counted"));
    assert!(refused(&[counted], &[&was_counted]).contains("counted"));
}

#[test]
fn cases_come_and_the_others_stay() {
    let old = r#"variants "V"(16,8,tag 0,1){0:"A"{}1:"B"{8:"x":u64;}}"#;
    let more = r#"variants "V"(16,8,tag 0,1){0:"A"{}1:"B"{8:"x":u64;}2:"C"{8:"p":*0;}}"#;
    accepted(&[old], &[more], &[(0, 0)]);
    assert!(refused(&[more], &[old]).contains("no case 2 any more"));
    for (new, why) in [
        (
            r#"variants "V"(16,8,tag 0,1){0:"B"{8:"x":u64;}1:"A"{}}"#,
            "case 0 is now B",
        ),
        (
            r#"variants "V"(16,8,tag 0,2){0:"A"{}1:"B"{8:"x":u64;}}"#,
            "its tag",
        ),
        (
            r#"variants "V"(16,8,tag 4,1){0:"A"{}1:"B"{8:"x":u64;}}"#,
            "its tag",
        ),
        (
            r#"variants "V"(24,8,tag 0,1){0:"A"{}1:"B"{8:"x":u64;}}"#,
            "16 bytes",
        ),
        (
            r#"variants "V"(16,8,tag 0,1){0:"A"{}1:"B"{8:"x":u64;12:"y":u32;}}"#,
            "",
        ),
        (
            r#"variants "V"(16,8,tag 0,1){0:"A"{8:"x":u64;}1:"B"{8:"x":u64;}}"#,
            "reserved",
        ),
        (
            r#"variants "V"(16,8,tag 0,1){0:"A"{}1:"B"{}}"#,
            "it is gone",
        ),
    ] {
        match Descriptor::parse(&format!("{new}\n")) {
            Ok(_) => assert!(refused(&[old], &[new]).contains(why), "{new}"),
            // No type at all.
            Err(_) => assert!(why.is_empty()),
        }
    }
    let renamed = r#"variants "V"(16,8,tag 0,1){0:"A"{}1:"Both" was "B"{8:"x":u64;}}"#;
    accepted(&[old], &[renamed], &[(0, 0)]);
}

/// Where nothing is stored in an array without pointers, any tag may lie.
#[test]
fn elements_get_no_first_pointers() {
    let cases =
        |more: &str| format!(r#"variants "V"(16,8,tag 0,1){{0:"A"{{}}1:"B"{{8:"x":u64;}}{more}}}"#);
    let of = |element: &str, count: &str| format!("[{element};{count}]");
    let (old, plain) = (cases(""), cases(r#"2:"C"{8:"y":u64;}"#));
    let pointer = cases(r#"2:"C"{8:"p":*any;}"#);
    for count in ["tail", "4"] {
        accepted(&[&of(&old, count)], &[&of(&plain, count)], &[(0, 0)]);
        let refusal = refused(&[&of(&old, count)], &[&of(&pointer, count)]);
        assert!(refusal.contains("it had no pointers"), "{refusal}");
    }
    // Some more are no harm: then all places were zero.
    let next = |of: &str| format!(r#"struct "N"(24,8){{0:"v":{of};16:"next":*0;}}"#);
    let row = |of: &str| format!("[{};tail]", next(of));
    let [old, pointer] = [&old, &pointer].map(|it| row(it).replace("*0", "*any"));
    accepted(&[&old], &[&pointer], &[(0, 0)]);
    let reserved = r#"[struct "R"(16,8){0:"n":u64;8:"later":reserved(8,8);};tail]"#;
    let taken = r#"[struct "R"(16,8){0:"n":u64;8:"p":*any in reserved;};tail]"#;
    let refusal = refused(&[reserved], &[taken]);
    assert!(refusal.contains("it had no pointers"), "{refusal}");
}

#[test]
fn pointers_and_arrays_are_as_they_were() {
    assert!(refused(&["*0"], &["~0"]).contains("now weak pointer"));
    assert!(refused(&["*any"], &["*0"]).contains("anything"));
    assert!(refused(&["*0"], &["*any"]).contains("anything"));
    assert!(refused(&["[u64;2]"], &["[u64;3]"]).contains("[u64; 2], now [u64; 3]"));
    assert!(refused(&["[u64;tail]"], &["[u32;tail]"]).contains("u64, now u32"));
}

/// A root with two pointers.
fn two(first: usize, second: usize) -> String {
    format!(r#"struct "Root"(16,8){{0:"a":*{first};8:"b":*{second};}}"#)
}

#[test]
fn one_type_does_not_become_two_and_ids_do_not_change_places() {
    let node = r#"struct "Node"(8,8){0:"id":reserved(8,8);}"#;
    let left = r#"struct "Left" was "Node"(8,8){0:"id":u64 in reserved;}"#;
    let right = r#"struct "Right" was "Node"(8,8){0:"id":i64 in reserved;}"#;
    let error = refused(&[&two(1, 1), node], &[&two(1, 2), left, right]);
    assert_eq!(
        error,
        "*Root.b: what is one type here and at Root.a-> would become two"
    );
    let error = refused(&[&two(1, 1), node], &[&two(1, 2), node, right]);
    assert!(error.contains("become two"), "{error}");
    // Two become one: each object of both is one.
    let other = node.replace("Node", "Other");
    let one = r#"struct "One" was "Node" was "Other"(8,8){0:"id":u64 in reserved;}"#;
    accepted(
        &[&two(1, 2), node, &other],
        &[&two(1, 1), one],
        &[(0, 0), (1, 1), (2, 1)],
    );
    // The text that the one had is the one that the other gets: an id would mean both.
    let a = r#"struct "A" was "B"(8,8){0:"id":u64;}"#;
    let b = r#"struct "B" was "A"(8,8){0:"id":u64;}"#;
    let error = refused(&[&two(1, 2), a, b], &[&two(1, 2), b, a]);
    assert!(error.contains("something else would become it"), "{error}");
}

#[test]
fn meanings_follow_from_version_to_version() {
    let version = |number: usize| {
        let fields = [
            r#"0:"later":reserved(24,8);"#,
            r#"0:"a":u64 in reserved;8:"later":reserved(16,8);"#,
            r#"0:"a":u64 in reserved;8:"b":u64 in reserved;16:"later":reserved(8,8);"#,
        ];
        parsed(&[
            QUEUE,
            &format!(r#"struct "Task"(24,8){{{}}}"#, fields[number]),
        ])
    };
    let [one, two, three] = [0, 1, 2].map(version);
    let task = |of: &Descriptor| of.target(1).unwrap().id();
    let second = Meanings::default().after(&one, &two).unwrap();
    assert_eq!(second.of(one.id()), two.id());
    assert_eq!(second.of(task(&one)), task(&two));
    assert!(second.is_old(one.id()) && !second.is_old(two.id()));
    let third = second.after(&two, &three).unwrap();
    for old in [&one, &two] {
        assert_eq!(
            (third.of(old.id()), third.of(task(old))),
            (three.id(), task(&three))
        );
    }
    assert_eq!(third.of(7), 7);
    assert_eq!(Meanings::new(third.iter().collect()), Some(third.clone()));
    // What came before does not come back, though nothing but a name was changed.
    let named = |name: &str| parsed(&[&format!(r#"struct "T"(8,8){{0:{name}:u64;}}"#)]);
    let (a, b) = (named(r#""a" was "b""#), named(r#""b" was "a""#));
    let there = Meanings::default().after(&a, &b).unwrap();
    assert!(
        there
            .after(&b, &a)
            .unwrap_err()
            .why
            .contains("does not come back")
    );
}

#[test]
fn meanings_that_contradict_each_other_are_none() {
    for ids in [
        vec![(1, 1)],
        vec![(1, 2), (2, 3)],
        vec![(0, 1)],
        vec![(1, 0)],
    ] {
        assert_eq!(
            Meanings::new(ids.iter().copied().collect()),
            None,
            "{ids:?}"
        );
    }
    assert!(Meanings::new(BTreeMap::from([(1, 2), (3, 2)])).is_some());
}

/// Texts with as many pairs as the product of their lines, which programs that nobody believes may register.
#[test]
fn work_is_bounded() {
    let ring = |len: usize| {
        let lines: Vec<String> = (0..len)
            .map(|line| format!(r#"struct "R"(8,8){{0:"next":*{};}}"#, (line + 1) % len))
            .collect();
        parsed(&lines.iter().map(String::as_str).collect::<Vec<_>>())
    };
    let start = std::time::Instant::now();
    let error = way(&ring(499), &ring(500)).unwrap_err();
    assert!(error.contains("too large to be compared"), "{error}");
    assert!(start.elapsed() < std::time::Duration::from_secs(20));
    // Names that are made of others, each of which had other names.
    let formers: String = (0..16)
        .map(|at| format!(r#" was "{}""#, "b".repeat(at + 2)))
        .collect();
    let begins = r#"(8,8){0:"n":*"#;
    let row = |word: &str, formers: &str, len: usize| {
        let lines: Vec<String> = (0..len)
            .map(|line| match line {
                0 => format!(r#"struct "{}"{formers}{begins}{};}}"#, "b", 1 % len),
                _ => {
                    let name = format!("{}{line}", word.repeat(120));
                    format!(r#"struct "{name}"{begins}{};}}"#, (line + 1) % len)
                }
            })
            .collect();
        parsed(&lines.iter().map(String::as_str).collect::<Vec<_>>())
    };
    let start = std::time::Instant::now();
    assert!(way(&row("b ", "", 1100), &row("b ", &formers, 1101)).is_err());
    assert!(start.elapsed() < std::time::Duration::from_secs(20));
    let many: String = (10..27).map(|at| format!(r#" was "b{at}""#)).collect();
    assert!(Descriptor::parse(&format!("struct \"b\"{many}(8,8){{}}\n")).is_err());
}

/// A type of one struct: each member is of some kind, and becomes another thing of it by `choice`.
fn member(
    kind: usize,
    choice: usize,
    at: u64,
    name: &str,
) -> (Vec<(u64, String)>, Vec<(u64, String)>) {
    let field = |at: u64, text: String| (at, text);
    let old = match kind {
        0 => format!(r#""{name}":u64"#),
        1 => format!(r#""{name}":*0"#),
        2 => format!(r#""{name}":reserved(16,8)"#),
        _ => format!(r#""{name}":variants "V{name}"(16,8,tag 0,1){{1:"A"{{8:"p":*0;}}}}"#),
    };
    let new = match (kind, choice) {
        (_, 0) => vec![field(at, old.clone())],
        (0, _) => vec![field(at, format!(r#""n{name}" was "{name}":u64"#))],
        (1, _) => vec![field(at, format!(r#""n{name}" was "{name}":*0"#))],
        (2, 1) => vec![field(at, format!(r#""{name}":[*0;2] in reserved"#))],
        (2, _) => vec![
            field(at, format!(r#""{name}p":*0 in reserved"#)),
            field(at + 8, format!(r#""{name}":reserved(8,8)"#)),
        ],
        (_, 1) => vec![field(
            at,
            format!(
                r#""{name}":variants "V{name}"(16,8,tag 0,1){{1:"A"{{8:"p":*0;}}2:"C"{{8:"p":~0;}}}}"#
            ),
        )],
        (_, _) => vec![field(
            at,
            format!(
                r#""{name}":variants "W{name}" was "V{name}"(16,8,tag 0,1){{0:"Z"{{}}1:"B" was "A"{{8:"q" was "p":*0;}}}}"#
            ),
        )],
    };
    (vec![field(at, old)], new)
}

proptest! {
    /// Any such changes are accepted together, and each value of the old type is one of the new, with the same
    /// pointers.
    #[test]
    fn values_stay_values(
        members in prop::collection::vec((0..4usize, 0..3usize), 1..8),
        mut object in prop::collection::vec(any::<u8>(), 16 * 8),
    ) {
        let mut texts = [String::new(), String::new()];
        for (index, &(kind, choice)) in members.iter().enumerate() {
            let (old, new) = member(kind, choice, 16 * index as u64, &format!("f{index}"));
            for (text, fields) in texts.iter_mut().zip([old, new]) {
                fields.iter().for_each(|(at, field)| *text += &format!("{at}:{field};"));
            }
            object[16 * index] %= 2;
        }
        let size = 16 * members.len();
        let [was, is] = texts.map(|text| parsed(&[&format!(r#"struct "T"({size},8){{{text}}}"#)]));
        let found = successors(&was, &is);
        prop_assert!(found.is_ok(), "{found:?}");
        fuzz::check_successors(&was, &is, &mut object[..size]);
    }
}

/// The way to declare them.
#[test]
fn declarations_have_former_names_and_reserved_bytes() {
    let word = || Type::Primitive(Primitive::U64);
    let mut declared = Declarations::new();
    let fields = vec![
        durum_format::types::Field::new("b", 0, word()).was(&["z", "a", "b", "a"]),
        durum_format::types::Field::new("c", 8, word().array(Count::Fixed(1))).in_reserved(),
        durum_format::types::Field::new("later", 16, Type::Reserved { size: 8, align: 4 }),
    ];
    let ty = Type::structure("New", 24, 8, fields).was(&["Old"]);
    declared.declare(ty).unwrap();
    let found = declared.resolve("New").unwrap();
    let text = r#"struct "New" was "Old"(24,8){0:"b" was "a" was "z":u64;8:"c":[u64;1] in reserved;16:"later":reserved(8,4);}"#;
    assert_eq!(found.text(), format!("{text}\n"));
    assert_eq!(Descriptor::parse(found.text()).unwrap(), found);
    // Nothing is told of what is not there yet.
    assert!(!found.value(&[0; 24], 9).to_string().contains("later"));
    for wrong in [
        r#"struct "N" was "N"(8,8){}"#,
        r#"struct "N" was "b" was "a"(8,8){}"#,
        r#"struct "N" was "a" was "a"(8,8){}"#,
        r#"struct "N" was ""(8,8){}"#,
        r#"struct "N"(8,8){0:"x":reserved(0,1);}"#,
        r#"struct "N"(8,8){0:"x":reserved(16,1);}"#,
    ] {
        assert!(Descriptor::parse(&format!("{wrong}\n")).is_err(), "{wrong}");
    }
}
