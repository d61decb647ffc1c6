//! How types differ is told by the way from the root.

use std::time::{Duration, Instant};

use durum_format::types::{
    Case, Declarations, Descriptor, Field, Primitive, Struct, Type, Variants, differences,
};

/// A type of several, which starts with its root.
fn declared(types: Vec<Type<String>>) -> Descriptor {
    let root = types[0].name().unwrap().to_owned();
    let mut declared = Declarations::new();
    for one in types {
        declared.declare(one).unwrap();
    }
    declared.resolve(&root).unwrap()
}

fn field(name: &str, offset: u64, ty: Primitive) -> Field<String> {
    Field::new(name, offset, Type::Primitive(ty))
}

fn told(was: &Descriptor, is: &Descriptor) -> Vec<String> {
    let found = differences(was, is);
    found.all.iter().map(ToString::to_string).collect()
}

/// A queue of tasks, whose fields these are, behind a pointer and in an array.
fn queue(size: u64, task: Vec<Field<String>>) -> Descriptor {
    let task = Struct {
        name: "Task".to_owned(),
        size,
        align: 8,
        fields: task,
        was: Vec::new(),
    };
    let array = Type::Array {
        element: Box::new(Type::Struct(task.clone())),
        count: durum_format::types::Count::Fixed(2),
    };
    let fields = vec![
        Field::new("first", 0, Type::pointer("Task")),
        Field::new("tasks", 8, array),
    ];
    declared(vec![
        Type::structure("Queue", 8 + 2 * size, 8, fields),
        Type::Struct(task),
    ])
}

#[test]
fn fields_that_come_and_go_are_told_and_what_moves_by_them_is_not() {
    let old = [
        field("id", 0, Primitive::U64),
        field("tries", 8, Primitive::U32),
    ];
    let new = [
        field("id", 0, Primitive::U64),
        field("deadline", 8, Primitive::U64),
        field("tries", 16, Primitive::U32),
    ];
    let (was, is) = (queue(16, old.to_vec()), queue(24, new.to_vec()));
    assert_eq!(
        told(&was, &is),
        [
            "Queue.tasks[]: + deadline: u64",
            "*Queue.first: + deadline: u64"
        ]
    );
    assert_eq!(
        told(&is, &was),
        [
            "Queue.tasks[]: - deadline: u64",
            "*Queue.first: - deadline: u64"
        ]
    );
    assert!(told(&was, &was).is_empty());
}

#[test]
fn what_is_another_number_or_lies_elsewhere_is_told_by_its_way() {
    let old = [
        field("id", 0, Primitive::U64),
        field("tries", 8, Primitive::U32),
    ];
    let grown = [
        field("id", 0, Primitive::U64),
        field("tries", 8, Primitive::U64),
    ];
    let swapped = [
        field("tries", 0, Primitive::U32),
        field("id", 8, Primitive::U64),
    ];
    let was = queue(16, old.to_vec());
    assert_eq!(
        told(&was, &queue(16, grown.to_vec())),
        [
            "Queue.tasks[].tries: u32, now u64",
            "Queue.first->tries: u32, now u64"
        ]
    );
    let moved = told(&was, &queue(16, swapped.to_vec()));
    assert_eq!(moved[0], "Queue.tasks[].id: at byte 0, now at 8");
    // Only room was added.
    assert_eq!(
        told(&was, &queue(24, old.to_vec())),
        [
            "Queue.tasks[]: 16 bytes aligned to 8, now 24 bytes aligned to 8",
            "*Queue.first: 16 bytes aligned to 8, now 24 bytes aligned to 8"
        ]
    );
}

#[test]
fn a_list_ends_and_cases_have_their_numbers() {
    let node = |cases: Vec<Case<String>>| {
        let state = Type::Variants(Variants {
            was: Vec::new(),
            name: "State".to_owned(),
            size: 16,
            align: 8,
            tag_offset: 0,
            tag_width: 8,
            cases,
        });
        let fields = vec![
            Field::new("next", 0, Type::pointer("Node")),
            Field::new("state", 8, state),
        ];
        declared(vec![Type::structure("Node", 24, 8, fields)])
    };
    let case = |discriminant, name: &str, fields| Case {
        was: Vec::new(),
        discriminant: Some(discriminant),
        name: name.to_owned(),
        fields,
    };
    let was = node(vec![
        case(0, "Ready", vec![]),
        case(1, "Runs", vec![field("pid", 8, Primitive::U32)]),
    ]);
    let is = node(vec![
        case(0, "Ready", vec![]),
        case(2, "Runs", vec![field("pid", 8, Primitive::U64)]),
        case(3, "Done", vec![]),
    ]);
    assert_eq!(
        told(&was, &is),
        [
            "Node.state(Runs): 1, now 2",
            "Node.state(Runs).pid: u32, now u64",
            "Node.state: + case Done = 3"
        ]
    );
}

/// Another type altogether has no end of differences: some are told, and how many more there are.
#[test]
fn there_are_so_many_at_most() {
    let all = |first: usize| {
        let fields =
            (0..50).map(|at| field(&format!("f{}", first + at), at as u64 * 8, Primitive::U64));
        declared(vec![Type::structure("Wide", 400, 8, fields.collect())])
    };
    let found = differences(&all(0), &all(100));
    assert_eq!((found.all.len(), found.more), (32, 68));
    assert!(found.to_string().ends_with("; and 68 more"));
}

/// Types that lead to each other, by these fields of the type of a number to those of others.
fn web(count: usize, to: impl Fn(usize) -> Vec<usize>) -> Descriptor {
    let node = |number: usize| {
        let to = to(number).into_iter().enumerate();
        let fields = to.map(|(at, other)| {
            let ty = Type::pointer(format!("N{}", other % count));
            Field::new(format!("f{at}"), 8 * at as u64, ty)
        });
        let fields: Vec<_> = fields.collect();
        Type::structure(format!("N{number}"), 8 * fields.len() as u64, 8, fields)
    };
    declared((0..count).map(node).collect())
}

/// Whoever registers types makes them so: each type of one meets each of the other, on ways that become longer and
/// longer, or on short ones.
#[test]
fn what_others_have_registered_is_compared_within_bounds() {
    let ring = |count| web(count, |number| vec![number + 1]);
    let tree = |count| web(count, |number| vec![2 * number + 1, 2 * number + 2]);
    for (was, is) in [(ring(300), ring(299)), (tree(1000), tree(999))] {
        let began = Instant::now();
        let found = differences(&was, &is);
        assert!(found.is_cut);
        let longest = found.all.iter().map(|one| one.path.len()).max();
        assert!(longest < Some(600), "{longest:?}");
        assert!(found.to_string().contains("compared"));
        assert!(began.elapsed() < Duration::from_secs(5));
    }
}

#[test]
fn many_fields_are_compared_at_once() {
    let wide = |last: &str| {
        let fields = (0..20_000).map(|at| {
            let name = if at == 19_999 {
                last.to_owned()
            } else {
                format!("f{at}")
            };
            field(&name, at * 8, Primitive::U64)
        });
        declared(vec![Type::structure("Wide", 160_000, 8, fields.collect())])
    };
    let (was, is) = (wide("old"), wide("new"));
    let began = Instant::now();
    assert_eq!(told(&was, &is), ["Wide: - old: u64", "Wide: + new: u64"]);
    assert!(began.elapsed() < Duration::from_secs(1));
}

/// Another name that is said is no difference, whichever of both says it.
#[test]
fn what_has_another_name_is_found_by_the_one_before() {
    let parsed = |name: &str, field: &str, case: &str| {
        let text = format!(
            "struct {name}(16,8){{0:{field}:u64;8:\"v\":variants \"V\"(1,1,tag 0,1){{0:{case}{{}}}};}}\n"
        );
        Descriptor::parse(&text).unwrap()
    };
    let old = parsed("\"Task\"", "\"tries\"", "\"A\"");
    let new = parsed(
        "\"Job\" was \"Task\"",
        "\"attempts\" was \"tries\"",
        "\"B\" was \"A\"",
    );
    assert_eq!(told(&old, &new), [""; 0]);
    assert_eq!(told(&new, &old), [""; 0]);
    let unsaid = parsed("\"Job\"", "\"attempts\"", "\"B\"");
    let expected = [
        "Job: Task, now Job",
        "Job: - tries: u64",
        "Job.v: - case A = 0",
        "Job.v: + case B = 0",
        "Job: + attempts: u64",
    ];
    assert_eq!(told(&old, &unsaid), expected);
}
