//! Maps whose keys change because the program builds them anew, and places of maps in which nothing is.

use durum_format::migrate::Rebuilt;

use super::*;

const KEY: &str = r#"struct "Key"(8,8){0:"n":u64;}"#;
const KEY_NOW: &str = r#"struct "Key"(16,8){0:"n":u64;8:"more":u64;}"#;

/// The first word twice makes a key of the old one.
fn key_made() -> Rule {
    Rule {
        made_by: Some(MadeBy {
            function: 1,
            zero_is_value: true,
        }),
        ..Rule::default()
    }
}

fn hash_map(key: &str, size: u64, holder: &str) -> Descriptor {
    let (slot, group) = (size + 8, 8 + 7 * (size + 8));
    parsed(&[
        holder,
        &format!(
            r#"[struct "PHashMap<Key,u64>.group"({group},8){{0:"tags":u64;8:"slots":[struct "PHashMap<Key,u64>.slot"({slot},8){{0:"key":{key};{size}:"value":u64;}};7];}};tail]"#
        ),
    ])
}

const HOLDER: &str = r#"struct "Head"(40,8){0:"n":u64;8:"map":struct "PHashMap<Key,u64>"(32,8){0:"table":*1;8:"groups":u64;16:"len":u64;24:"seed":u64;};}"#;

fn tree(key: &str, size: u64) -> Descriptor {
    let (slot, children) = (size + 8, 8 + 15 * (size + 8));
    parsed(&[
        r#"struct "PBTreeMap<Key,u64>"(24,8){0:"root":*1;8:"height":u64;16:"len":u64;}"#,
        &format!(
            r#"struct "PBTreeMap<Key,u64>.node"({children},8){{0:"order":u64;8:"slots":[struct "PBTreeMap<Key,u64>.slot"({slot},8){{0:"key":{key};{size}:"value":u64;}};15];{children}:"children":[*1;tail];}}"#
        ),
    ])
}

fn rules(kind: &str, parts: [&str; 2], function: usize) -> Rules {
    let part = |name: &str, rebuilt| {
        let rule = Rule {
            rebuilt: Some(rebuilt),
            ..Rule::default()
        };
        (format!("{kind}<Key,u64>{name}"), rule)
    };
    let [one, other] = parts.map(|name| part(name, Rebuilt::Part));
    let map = part("", Rebuilt::Map(function));
    Rules::of_types([map, one, other, ("Key".to_owned(), key_made())].into())
}

fn words(words: &[u64]) -> Vec<u8> {
    words.iter().flat_map(|word| word.to_le_bytes()).collect()
}

#[test]
fn a_map_that_is_built_anew_may_have_other_keys() {
    let (was, is) = (hash_map(KEY, 8, HOLDER), hash_map(KEY_NOW, 16, HOLDER));
    let only_keys = rule("Key", key_made());
    let told = refusals(&pairs(&was, &is, &only_keys));
    assert_eq!(told.len(), 1, "{told:?}");
    assert!(told[0].contains("slots[].key: the keys of a map change: it finds them no more; only the program builds it anew"), "{told:?}");

    let rules = rules("PHashMap", [".group", ".slot"], 7);
    let found = pairs(&was, &is, &rules);
    assert_eq!(refusals(&found), [""; 0]);
    assert_eq!(rules.rebuilt(), [7]);
    let head = found.of(was.id()).unwrap();
    assert!(head.has_rebuilt());
    let maps_in = |bytes: &[u8]| {
        let mut maps = Vec::new();
        head.visit_rebuilt(bytes, |at, function| maps.push((at, function)))
            .unwrap();
        maps
    };
    assert_eq!(maps_in(&words(&[1, 4096, 1, 2, 3])), [(8, 7)]);
    assert_eq!(maps_in(&words(&[1, 0, 0, 0, 0])), [], "it has no entries");
    assert!(!found.of(was.target(1).unwrap().id()).unwrap().has_rebuilt());
}

/// In a place that is vacant may lie what was there before the table was, of which no function makes anything.
#[test]
fn functions_make_keys_of_what_is_in_a_map_only() {
    let (was, is) = (hash_map(KEY, 8, HOLDER), hash_map(KEY_NOW, 16, HOLDER));
    let found = pairs(&was, &is, &rules("PHashMap", [".group", ".slot"], 0));
    let table = found.of(was.target(1).unwrap().id()).unwrap();
    let mut old = vec![0x0000_0090_0000_8100_u64 | 7 << 56];
    old.extend((0..14).map(|at| 100 + at));
    let mut functions = Functions::default();
    let new = made(table, &words(&old), &mut functions);
    assert_eq!(functions.asked, 2);
    let mut wanted = vec![0; 1 + 7 * 3];
    wanted[0] = old[0];
    // The slots 1 and 4.
    wanted[4..7].copy_from_slice(&[102, 102, 103]);
    wanted[13..16].copy_from_slice(&[108, 108, 109]);
    assert_eq!(new, words(&wanted));

    let (was, is) = (tree(KEY, 8), tree(KEY_NOW, 16));
    let found = pairs(&was, &is, &rules("PBTreeMap", [".node", ".slot"], 0));
    assert_eq!(refusals(&found), [""; 0]);
    let node = found.of(was.target(1).unwrap().id()).unwrap();
    // Two entries, in the slots 14 and 2.
    let mut old = vec![0x02e2_u64 | 0x000d_cba9_8765_4310 << 12];
    old.extend((0..30).map(|at| 100 + at));
    let mut functions = Functions::default();
    let new = made(node, &words(&old), &mut functions);
    assert_eq!(functions.asked, 2);
    let mut wanted = vec![0; 1 + 15 * 3];
    wanted[0] = old[0];
    wanted[7..10].copy_from_slice(&[104, 104, 105]);
    wanted[43..46].copy_from_slice(&[128, 128, 129]);
    assert_eq!(new, words(&wanted));
}

/// What lies in a vacant place is of no account, and what lies in one that is taken is damaged.
#[test]
fn an_entry_that_is_no_value_is_told() {
    let state = r#"variants "Key"(8,8,tag 0,1){0:"Idle"{}1:"Busy"{}}"#;
    let truth = r#"struct "Key"(8,8){0:"n":bool;}"#;
    let made = rules("PHashMap", [".group", ".slot"], 0);
    let mut copied = made.clone();
    copied.types.remove("Key");
    for (was, is, size, rules) in [(state, state, 8, copied), (truth, KEY_NOW, 16, made)] {
        let (was, is) = (hash_map(was, 8, HOLDER), hash_map(is, size, HOLDER));
        let found = pairs(&was, &is, &rules);
        assert_eq!(refusals(&found), [""; 0]);
        let table = found.of(was.target(1).unwrap().id()).unwrap();
        for (bad, is_told) in [(0, false), (4, true)] {
            // The slots 1 and 4 are taken.
            let mut old = vec![0x0000_0090_0000_8100_u64];
            old.extend([1; 14]);
            old[1 + 2 * bad] = 7;
            let mut new = vec![0; table.size(8 * old.len() as u64) as usize];
            let told = table.convert(&words(&old), &mut new, &mut Functions::default());
            assert_eq!(told.is_err(), is_told, "{bad}: {told:?}");
        }
    }
}

/// What a map was called is followed in names of what holds it.
#[test]
fn a_map_of_other_arguments_is_followed_in_other_names() {
    let holder = |key: &str| {
        parsed(&[&format!(
            r#"struct "PMutex<PHashMap<{key},u64>>"(40,8){{0:"word":volatile(8,8);8:"value":struct "PHashMap<{key},u64>"(32,8){{0:"table":*any;8:"groups":u64;16:"len":u64;24:"seed":u64;}};}}"#
        )])
    };
    let (was, is) = (holder("u32"), holder("u64"));
    assert_eq!(refused_of(&was, &is, &Rules::default()).len(), 2);
    let now = Rule {
        now: Some("PHashMap<u64,u64>".to_owned()),
        rebuilt: Some(Rebuilt::Map(0)),
        ..Rule::default()
    };
    assert_eq!(
        refused_of(&was, &is, &rule("PHashMap<u32,u64>", now)),
        [""; 0]
    );
}

fn refused_of(was: &Descriptor, is: &Descriptor, rules: &Rules) -> Vec<String> {
    refusals(&pairs(was, is, rules))
}

/// Names are all that rules have: another type of the name is not built by a function that is not for it.
#[test]
fn another_type_of_the_name_is_not_built() {
    let (was, is) = (hash_map(KEY, 8, HOLDER), hash_map(KEY_NOW, 16, HOLDER));
    let other = hash_map(r#"struct "Key"(8,8){0:"x":u32;4:"y":u32;}"#, 8, HOLDER);
    let map_of = |holder: &Descriptor| {
        let header = holder.text().lines().next().unwrap().to_owned();
        let (begin, end) = (header.find("struct \"PHash").unwrap(), header.len() - 2);
        let rest = holder.text().lines().skip(1);
        let lines: Vec<&str> = [&header[begin..end]].into_iter().chain(rest).collect();
        parsed(&lines)
    };
    let [map_was, map_is, map_other] = [&was, &is, &other].map(map_of);
    let made_of = |was: &Descriptor, is: &Descriptor| {
        let mut rules = rules("PHashMap", [".group", ".slot"], 7);
        let rule = rules.types.get_mut("PHashMap<Key,u64>").unwrap();
        rule.made_of = Some(Box::new((was.clone(), is.clone())));
        rules
    };
    let told = |rules: &Rules| refused_of(&was, &is, rules);
    assert_eq!(told(&made_of(&map_was, &map_is)), [""; 0]);
    let another = "what is built anew is another type of the name PHashMap<Key,u64>";
    assert_eq!(
        told(&made_of(&map_other, &map_is)),
        [format!("Head.map: {another}")]
    );
    assert_eq!(
        told(&made_of(&map_was, &map_other)),
        [format!("Head: {another}")]
    );
    // It becomes a type of a name of which nobody says that it is built.
    let becomes = |name: &str| {
        let mut rules = made_of(&map_was, &map_is);
        rules.types.get_mut(name).unwrap().now = Some("PHashMap<Other,u64>".to_owned());
        told(&rules)
    };
    for name in ["", ".group", ".slot"].map(|part| format!("PHashMap<Key,u64>{part}")) {
        let told = becomes(&name);
        let wanted = format!("it is built anew as PHashMap<Other,u64>, and is to be {name} here");
        assert!(told.iter().any(|told| told.ends_with(&wanted)), "{told:?}");
    }
}

/// A tree whose keys are these, which may lead to what the lines behind say.
fn tree_of(name: &str, key: &str, size: u64, others: &[&str]) -> Descriptor {
    let (slot, children) = (size + 8, 8 + 15 * (size + 8));
    let root = format!(r#"struct "{name}"(24,8){{0:"root":*1;8:"height":u64;16:"len":u64;}}"#);
    let node = format!(
        r#"struct "{name}.node"({children},8){{0:"order":u64;8:"slots":[struct "{name}.slot"({slot},8){{0:"key":{key};{size}:"value":u64;}};15];{children}:"children":[*1;tail];}}"#
    );
    let lines: Vec<&str> = [root.as_str(), &node]
        .into_iter()
        .chain(others.iter().copied())
        .collect();
    parsed(&lines)
}

/// `Outer` has keys that own maps `Inner`, and these have keys that are as told.
fn outer(inner_key: &str) -> Descriptor {
    let inner = tree_of("Inner", inner_key, 8, &[]);
    let lines: Vec<String> = (inner.text().lines())
        .map(|line| line.replace("*1", "*3"))
        .collect();
    let others: Vec<&str> = lines.iter().map(String::as_str).collect();
    tree_of("Outer", r#"struct "Key"(8,8){0:"map":*2;}"#, 8, &others)
}

fn built(name: &str, function: usize, of: &Descriptor) -> (String, Rule) {
    let rule = Rule {
        rebuilt: Some(Rebuilt::Map(function)),
        made_of: Some(Box::new((of.clone(), of.clone()))),
        ..Rule::default()
    };
    (name.to_owned(), rule)
}

#[test]
fn maps_in_keys_are_built_first_whatever_the_order_they_are_said_in() {
    let (outer, inner) = (outer("u64"), tree_of("Inner", "u64", 8, &[]));
    for (first, second) in [(0, 1), (1, 0)] {
        let rules = Rules::of_types(
            [
                built("Outer", first, &outer),
                built("Inner", second, &inner),
            ]
            .into(),
        );
        assert_eq!(rules.rebuilt(), [second, first]);
    }
    // A value that owns a map says nothing of the order.
    let held = tree_of("Held", "u64", 8, &[]);
    let rules = Rules::of_types([built("Held", 0, &held), built("Inner", 1, &inner)].into());
    assert_eq!(rules.rebuilt(), [0, 1]);
}

#[test]
fn maps_whose_keys_hold_each_other_are_refused() {
    let round = outer("*0");
    let told = |rules: &Rules| refusals(&pairs(&round, &round, rules));
    let inner = {
        let lines: Vec<&str> = round.text().lines().collect();
        let turned = |line: &str| {
            let line = line.replace("*0", "*a").replace("*1", "*b");
            let line = line.replace("*2", "*0").replace("*3", "*1");
            line.replace("*a", "*2").replace("*b", "*3")
        };
        let lines = [lines[2], lines[3], lines[0], lines[1]].map(turned);
        parsed(&lines.each_ref().map(String::as_str))
    };
    let rules = Rules::of_types([built("Outer", 0, &round), built("Inner", 1, &inner)].into());
    let told = told(&rules);
    let wanted = "Outer: it is to be built anew, and its keys hold maps whose keys hold it: none can be the first";
    assert!(told.contains(&wanted.to_owned()), "{told:?}");
}

/// Its keys are what they were by their type, but not to `Ord`.
#[test]
fn a_map_whose_keys_hold_one_that_is_built_is_built_too() {
    let named = |outer: &Descriptor| {
        parsed(&[outer
            .text()
            .replace("Outer", "PBTreeMap<Key,u64>")
            .replace("Inner", "PBTreeMap<u64,u64>")
            .trim_end()])
    };
    let outer = named(&outer("u64"));
    let inner = tree_of("PBTreeMap<u64,u64>", "u64", 8, &[]);
    let only_inner = Rules::of_types([built("PBTreeMap<u64,u64>", 0, &inner)].into());
    let told = refusals(&pairs(&outer, &outer, &only_inner));
    assert_eq!(told.len(), 1, "{told:?}");
    assert!(
        told[0].contains("slots[].key: the keys of a map change"),
        "{told:?}"
    );
    let both = [
        built("PBTreeMap<u64,u64>", 0, &inner),
        built("PBTreeMap<Key,u64>", 1, &outer),
    ];
    let mut both = Rules::of_types(both.into());
    for part in ["node", "slot"] {
        let rule = Rule {
            rebuilt: Some(Rebuilt::Part),
            ..Rule::default()
        };
        both.types
            .insert(format!("PBTreeMap<Key,u64>.{part}"), rule);
    }
    assert_eq!(refusals(&pairs(&outer, &outer, &both)), [""; 0]);
}
