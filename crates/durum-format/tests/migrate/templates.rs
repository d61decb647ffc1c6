//! Types of templates of `durum.hpp`, whose names have the compiler's words for what is in them.

use durum_format::migrate::MapNow;

use super::*;

/// A map of C++ by its arguments, and what it leads to.
fn map(arguments: &str, key: &str) -> [String; 2] {
    let name = format!("N5durum3mapI{arguments}E");
    [
        format!(r#"struct "{name}E"(16,8){{0:"root_":*1;8:"size_":u64;}}"#),
        format!(
            r#"struct "{name}4nodeE"(48,8){{0:"entry":struct "{name}10value_typeE"(16,8){{0:"first":{key};8:"second":u64;}};16:"left":*1;24:"right":*1;32:"up":*1;40:"weight":u64;}}"#
        ),
    ]
}

fn of(lines: &[String]) -> Descriptor {
    let lines: Vec<&str> = lines.iter().map(String::as_str).collect();
    parsed(&lines)
}

/// The map that these arguments make is built anew.
fn builds(arguments: &str, ty: &Descriptor) -> Rules {
    let name = format!("N5durum3mapI{arguments}E");
    let now = MapNow {
        function: 4,
        ty: ty.clone(),
        parts: [format!("{name}4nodeE"), format!("{name}10value_typeE")],
    };
    Rules {
        maps: [(format!("{name}E"), now)].into(),
        ..Rules::default()
    }
}

const KEYS_CHANGE: &str = "the keys of a map change";

#[test]
fn a_map_of_other_arguments_is_what_is_built_anew() {
    let was = of(&map("N6before3dayEmSt4lessIvE", "u32"));
    let is = of(&map("3daymN4mine7greaterE", "u64"));
    let told = refusals(&pairs(&was, &is, &Rules::default()));
    assert!(
        !told.is_empty() && told.iter().all(|it| it.contains(KEYS_CHANGE)),
        "{told:?}"
    );
    // The same keys, which compare otherwise.
    let same = of(&map("3daymN4mine7greaterE", "u32"));
    let told = refusals(&pairs(&was, &same, &Rules::default()));
    assert!(
        !told.is_empty() && told.iter().all(|it| it.contains(KEYS_CHANGE)),
        "{told:?}"
    );
    let rules = builds("3daymN4mine7greaterE", &is);
    let found = pairs(&was, &is, &rules);
    assert_eq!(refusals(&found), [""; 0]);
    let conversion = found.of(was.id()).unwrap();
    let mut places = Vec::new();
    let new = [1, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0];
    conversion
        .visit_rebuilt(&new, |offset, function| places.push((offset, function)))
        .unwrap();
    assert_eq!(places, [(0, 4)]);
    conversion
        .visit_rebuilt(&[0; 16], |_, _| panic!("a map that is zero has no entries"))
        .unwrap();
    let node = found.of(was.target(1).unwrap().id()).unwrap();
    let mut old = vec![0; 48];
    old[0] = 200;
    assert_eq!(made(node, &old, &mut Functions::default()), old);
}

/// Its comparison may have changed, of which no text speaks, and its keys be what they were.
#[test]
fn another_type_of_the_name_is_not_built() {
    let (was, other) = (of(&map("yy", "u32")), of(&map("yy", "i32")));
    let rules = builds("yy", &was);
    assert_eq!(refusals(&pairs(&was, &was, &rules)), [""; 0]);
    let told = refusals(&pairs(&was, &other, &rules));
    assert!(
        told.iter()
            .any(|it| it.contains("another type of the name")),
        "{told:?}"
    );
}

/// Objects get other addresses, in another order.
#[test]
fn a_map_whose_keys_are_pointers_is_what_is_built_anew() {
    let task = r#"struct "task"(8,8){0:"n":u64;}"#.to_owned();
    let row = |element: &str| {
        format!(r#"struct "N5durum6detail4cellI{element}EE"(8,8){{0:"value":{element};}}"#)
    };
    let vector = r#"struct "N5durum6vectorI4taskEE"(8,8){0:"first_":*2;}"#;
    let string = r#"struct "N5durum6stringE"(8,8){0:"first_":*2;}"#;
    for (key, third, is_refused) in [
        ("*2", task.clone(), true),
        ("~2", task.clone(), true),
        ("[*2;1]", task.clone(), true),
        (r#"struct "key"(8,8){0:"of":*2;}"#, task.clone(), true),
        (vector, row("*2"), true),
        (vector, row("u64"), false),
        (string, row("u64"), false),
        ("u64", task, false),
    ] {
        let [root, node] = map("yy", key);
        let ty = match key {
            "u64" => of(&[root, node]),
            _ => of(&[root, node, third]),
        };
        let told = refusals(&pairs(&ty, &ty, &Rules::default()));
        assert_eq!(told.len(), usize::from(is_refused), "{key}: {told:?}");
        let is_told = |it: &String| it.contains("keys of a map hold pointers");
        assert!(told.iter().all(is_told), "{key}: {told:?}");
        assert_eq!(refusals(&pairs(&ty, &ty, &builds("yy", &ty))), [""; 0]);
    }
}

/// Vectors follow what is in them, and a vector does not become another template.
#[test]
fn rows_are_what_their_elements_become() {
    let vector = |template: &str, element: &str, ty: &str| {
        of(&[
            format!(
                r#"struct "N5durum{template}I{element}EE"(16,8){{0:"first_":*1;8:"size_":u64;}}"#
            ),
            format!(
                r#"struct "N5durum6detail4cellI{element}EE"(4,4){{0:"value":struct "task"(4,4){{0:"n":{ty};}};}}"#
            ),
        ])
    };
    let was = vector("6vector", "N6before4taskE", "u32");
    let is = vector("6vector", "4task", "u32");
    assert_eq!(refusals(&pairs(&was, &is, &Rules::default())), [""; 0]);
    let narrow = vector("6vector", "4task", "i32");
    assert_eq!(refusals(&pairs(&was, &narrow, &Rules::default())).len(), 1);
    let other = vector("5array", "4task", "u32");
    assert!(!refusals(&pairs(&was, &other, &Rules::default())).is_empty());
}

/// What no root leads to is paired by what the program says of it, before what it leads to is taken for unchanged.
#[test]
fn what_is_said_leads_to_the_rest() {
    let lists = |ty: &str, size: u64| {
        parsed(&[
            r#"struct "list"(8,8){0:"first":*1;}"#,
            &format!(r#"struct "task"({size},8){{0:"n":{ty};8:"next":*1;}}"#),
        ])
    };
    let (was, is) = (lists("u32", 16), lists("u64", 16));
    let objects = [was.target(1).unwrap(), was.clone()];
    let rules = Arc::new(Rules::default());
    let found = Pairs::of_program(&objects, &[], std::slice::from_ref(&is), &rules);
    assert_eq!(refusals(&found), [""; 0]);
    let task = found.of(objects[0].id()).unwrap();
    assert_eq!(task.new_type().id(), is.target(1).unwrap().id());
}

/// A map whose keys hold a map, as the two are named by their arguments.
fn nested(outer: &str, inner: &str) -> Descriptor {
    let name = |arguments: &str| format!("N5durum3mapI{arguments}E");
    let root = |arguments: &str, node: u32| {
        format!(
            r#"struct "{}E"(16,8){{0:"root_":*{node};8:"size_":u64;}}"#,
            name(arguments)
        )
    };
    let node = |arguments: &str, key: &str, size: u32, line: u32| {
        let name = name(arguments);
        let entry = size + 8;
        let [left, right, up, weight] = [0, 8, 16, 24].map(|at| entry + at);
        format!(
            r#"struct "{name}4nodeE"({},8){{0:"entry":struct "{name}10value_typeE"({entry},8){{0:"first":{key};{size}:"second":u64;}};{left}:"left":*{line};{right}:"right":*{line};{up}:"up":*{line};{weight}:"weight":u64;}}"#,
            weight + 8
        )
    };
    of(&[
        root(outer, 1),
        node(outer, &root(inner, 2), 16, 1),
        node(inner, "u64", 8, 2),
    ])
}

#[test]
fn a_map_whose_keys_hold_one_that_is_built_is_built_after_it() {
    let both = nested("5outer5valueE", "5inner5valueE");
    let inner = of(&map("5inner5valueE", "u64"));
    let only_inner = builds("5inner5valueE", &inner);
    let told = refusals(&pairs(&both, &both, &only_inner));
    assert_eq!(told.len(), 1, "{told:?}");
    assert!(told[0].contains(KEYS_CHANGE), "{told:?}");
    for (first, second) in [(0, 1), (1, 0)] {
        let mut rules = only_inner.clone();
        rules.maps.extend(builds("5outer5valueE", &both).maps);
        for (name, map) in &mut rules.maps {
            map.function = if name.contains("outer") {
                first
            } else {
                second
            };
        }
        assert_eq!(rules.rebuilt(), [second, first]);
        assert_eq!(refusals(&pairs(&both, &both, &rules)), [""; 0]);
    }
}
