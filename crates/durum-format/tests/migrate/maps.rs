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
    Rules([map, one, other, ("Key".to_owned(), key_made())].into())
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
    assert_eq!(rules.rebuilt(), [7].into());
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
