//! How types differ is told by the way from the root.

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
        discriminant,
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
