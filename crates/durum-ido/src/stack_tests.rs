use std::ops::Range;

use proptest::prelude::*;

use super::*;

const SIZE: usize = 64 * 64;

#[derive(Clone, Debug)]
enum Step {
    Take(usize),
    GiveBack,
    Record,
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        4 => (1..4_usize).prop_map(|parts| Step::Take(parts * PART)),
        4 => Just(Step::GiveBack),
        3 => Just(Step::Record),
    ];
    prop::collection::vec(step, 0..200)
}

fn overlap(a: &Range<usize>, b: &Range<usize>) -> bool {
    a.start < b.end && b.start < a.end
}

proptest! {
    #[test]
    fn no_part_lies_where_another_one_does_or_one_that_the_record_needs(steps in steps()) {
        let base = 1 << 20;
        let mut stack = Stack::new(base, SIZE);
        let (mut parts, mut needed): (Vec<Range<usize>>, Vec<Range<usize>>) = (vec![], vec![]);
        for step in steps {
            match step {
                Step::Take(size) if stack.has_room() && stack.top.max(stack.recorded) + size <= stack.end => {
                    let below = stack.top;
                    let place = stack.take(size);
                    let part = place..place + size;
                    prop_assert!(place >= below && part.end <= base + SIZE);
                    prop_assert!(!parts.iter().chain(&needed).any(|other| overlap(&part, other)));
                    prop_assert!(stack.durable <= place);
                    parts.push(part);
                }
                Step::Take(_) => {}
                Step::GiveBack => {
                    if let Some(part) = parts.pop() {
                        stack.give_back(part.start);
                    }
                    // What lies above the last part is free.
                    let end = parts.last().map_or(base, |part| part.end);
                    prop_assert_eq!(stack.top, end);
                }
                Step::Record => {
                    stack.note_recorded();
                    needed.clone_from(&parts);
                }
            }
        }
    }
}

#[test]
fn calls_in_a_loop_take_turns() {
    let mut stack = Stack::new(0, SIZE);
    stack.take(PART);
    let mut places = Vec::new();
    for _ in 0..6 {
        places.push(stack.take(2 * PART));
        stack.take(PART);
        stack.note_recorded();
        stack.give_back(*places.last().unwrap());
    }
    assert_eq!(places, [1, 4, 1, 4, 1, 4].map(|part| part * PART));
}
