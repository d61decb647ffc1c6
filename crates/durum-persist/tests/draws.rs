//! Which images are drawn where there are too many to try all of them.

mod common;

use std::collections::BTreeSet;

use common::*;
use durum_persist::line;
use durum_persist::record::{EventKind, Trace};
use durum_persist::simulate::{Plan, Rules, explore};

/// Six words, each on a line of its own, all stored and none written back.
fn six_lines() -> Trace {
    record_mapped(|map| (0..6).for_each(|line| map.store(line * 8, 1)))
}

/// Which of the six words are new, as bits, in the images of the last event.
fn drawn(trace: &Trace, indexes: [usize; 6], plan: Plan) -> BTreeSet<u32> {
    let mut drawn = BTreeSet::new();
    explore(
        trace,
        &Plan {
            points_max: Some(0),
            exhaustive_max: 0,
            ..plan
        },
        |dir, _| {
            let bits = words(indexes)(dir).into_iter().enumerate();
            drawn.insert(bits.map(|(index, value)| (value as u32) << index).sum());
            Ok(())
        },
    )
    .unwrap_or_else(|failure| panic!("{failure}"));
    drawn
}

const LINES: [usize; 6] = [0, 8, 16, 24, 32, 40];

#[test]
fn nothing_everything_each_alone_and_all_but_each_are_drawn() {
    let plan = Plan {
        random_images: 0,
        single_units_max: 6,
        ..Plan::new(Rules::Lines, 1)
    };
    let mut expected = BTreeSet::from([0, 0b11_1111]);
    expected.extend((0..6).flat_map(|line| [1 << line, 0b11_1111 - (1 << line)]));
    assert_eq!(drawn(&six_lines(), LINES, plan), expected);
}

#[test]
fn units_are_sampled_by_the_seed_where_there_are_more_than_asked_for() {
    let mut seen = BTreeSet::new();
    for seed in 0..20 {
        let plan = Plan {
            random_images: 0,
            single_units_max: 2,
            ..Plan::new(Rules::Lines, seed)
        };
        let drawn = drawn(&six_lines(), LINES, plan);
        assert_eq!(drawn.len(), 2 + 2 * 2);
        seen.extend(drawn);
    }
    assert_eq!(
        seen.len(),
        2 + 2 * 6,
        "over some seeds, each unit has its turn"
    );
}

#[test]
fn random_images_are_of_all_kinds() {
    let plan = Plan {
        random_images: 600,
        single_units_max: 0,
        ..Plan::new(Rules::Lines, 1)
    };
    let drawn = drawn(&six_lines(), LINES, plan);
    assert!(drawn.len() >= 55, "{} of 64 combinations", drawn.len());
}

#[test]
fn random_images_tear_lines() {
    let trace = record_mapped(|map| (0..6).for_each(|word| map.store(word, 1)));
    let plan = Plan {
        random_images: 400,
        single_units_max: 0,
        ..Plan::new(Rules::Lines, 1)
    };
    let drawn = drawn(&trace, [0, 1, 2, 3, 4, 5], plan);
    assert!(drawn.len() >= 40, "{} of 64 combinations", drawn.len());
}

#[test]
fn random_images_show_middle_versions() {
    let trace = record_mapped(|map| (1..=5).for_each(|value| map.store(0, value)));
    let mut seen = BTreeSet::new();
    let plan = Plan {
        points_max: Some(0),
        exhaustive_max: 0,
        random_images: 200,
        ..Plan::new(Rules::Lines, 1)
    };
    explore(&trace, &plan, |dir, _| {
        seen.extend(words([0])(dir));
        Ok(())
    })
    .unwrap_or_else(|failure| panic!("{failure}"));
    assert_eq!(seen, (0..=5).collect());
}

/// The crash points of a plan that asks for ten.
fn ten_points(trace: &Trace) -> Vec<usize> {
    let mut points = Vec::new();
    let plan = Plan {
        points_max: Some(10),
        ..Plan::new(Rules::Lines, 1)
    };
    explore(trace, &plan, |_, point| {
        points.push(point.index);
        Ok(())
    })
    .unwrap_or_else(|failure| panic!("{failure}"));
    points.dedup();
    points
}

#[test]
fn a_thinned_out_run_has_the_points_asked_for_and_the_last() {
    let trace = record_mapped(|map| (0..100).for_each(|index| map.store(index, 1)));
    let points = ten_points(&trace);
    assert!((10..=11).contains(&points.len()), "{points:?}");
    assert_eq!(points.last(), Some(&99));
}

#[test]
fn half_of_a_thinned_out_run_is_at_fences() {
    let trace = record_mapped(|map| {
        for index in 0..100 {
            map.store(index, 1);
            if index % 10 == 0 {
                line::fence(DATA);
            }
        }
    });
    let points = ten_points(&trace);
    let is_fence = |index: &&usize| {
        let kind = &trace.events()[**index].kind;
        matches!(kind, EventKind::Fence { .. })
    };
    assert!((10..=11).contains(&points.len()), "{points:?}");
    assert!(points.iter().filter(is_fence).count() >= 5, "{points:?}");
}
