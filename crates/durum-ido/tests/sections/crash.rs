//! Sections crashed at every store, write-back and fence. Each image is opened, which completes what was under way, and
//! recovery is crashed as well; then everything is there as before the operation that was under way, or as after it.
//!
//! The crashes: within a record, between a record and the stores behind it, in a call whose caller has a frame, before
//! and behind the record that a section has ended. The canaries leave out one write-back or fence each.

use std::path::Path;
use std::sync::Barrier;

use durum_persist::Site;
use durum_persist::record::{self, Trace};
use durum_persist::simulate::{Plan, Report, Rules, explore_with_recovery};
use durum_service::{CheckOptions, Severity};

use crate::locks::{is_recursive, make_recursive};
use crate::program::{State, Step, node, own, run, set, set_word, value_of};
use crate::support::{alone, close, on_a_thread, open, recorded};

const STEPS: [Step; 12] = [
    // What comes first makes the place for records as well.
    Step::Move,
    Step::Push(1),
    Step::Word(5),
    Step::Fill(3),
    Step::Push(2),
    Step::Pop,
    Step::Fill(50),
    Step::Word(6),
    Step::Push(4),
    Step::Move,
    Step::Pop,
    Step::Pop,
];

/// What is there after so many steps.
fn states() -> Vec<State> {
    let mut states = vec![State::default()];
    for step in STEPS {
        let last = states.last().cloned().unwrap_or_default();
        states.push(last.after(step));
    }
    states
}

fn record(skip: Option<Site>) -> Trace {
    recorded(
        skip,
        |_| (),
        |root, ()| {
            for (number, step) in STEPS.into_iter().enumerate() {
                unsafe { run(root, step) };
                record::note("acknowledged", number as u64 + 1);
            }
        },
    )
}

pub fn recover(image: &Path) -> Result<(), String> {
    on_a_thread(|| {
        open(image)?;
        close().map_err(|error| error.to_string())
    })
}

fn judge(image: &Path, allowed: &[State]) -> Result<(), String> {
    on_a_thread(|| {
        let root = open(image)?;
        let found = unsafe { State::of(root) };
        if !allowed.contains(&found) {
            let _ = close();
            return Err(format!("{found:?} is none of {allowed:?}"));
        }
        // It is of use.
        unsafe {
            run(root, Step::Push(9));
            run(root, Step::Fill(7));
        }
        let expected = found.after(Step::Push(9)).after(Step::Fill(7));
        assert_eq!(unsafe { State::of(root) }, expected);
        close().map_err(|error| error.to_string())
    })
    .inspect_err(|_| drop(close()))?;
    let report = durum_service::check(image, &CheckOptions::default());
    let report = report.map_err(|error| error.to_string())?;
    let mut findings = report.findings.iter();
    match findings.find(|finding| finding.severity > Severity::Leak) {
        Some(finding) => Err(finding.to_string()),
        None => Ok(()),
    }
}

fn explore(trace: &Trace, points_max: Option<usize>) -> Result<Report, String> {
    let states = states();
    let mut plan = Plan::new(Rules::Lines, 1);
    let is_long = std::env::var_os("DURUM_CRASH_ALL").is_some();
    plan.points_max = if is_long { None } else { points_max };
    plan.random_images = 2;
    plan.single_units_max = 3;
    plan.nested_one_in = 40;
    plan.nested_points_max = if is_long { None } else { Some(6) };
    explore_with_recovery(trace, &plan, recover, |image, point| {
        let last = point.last_note("acknowledged").unwrap_or(0) as usize;
        judge(image, &states[last..states.len().min(last + 2)])
    })
    .map_err(|failure| failure.to_string())
}

#[test]
fn every_crash_leaves_whole_operations() {
    let _alone = alone();
    let report = explore(&record(None), Some(48)).unwrap_or_else(|failure| panic!("{failure}"));
    println!("{} points, {} images", report.points, report.images);
}

/// Two threads replace one value in turn, so many times each.
const TURNS: u64 = 3;

fn record_turns(skip: Option<Site>) -> Trace {
    recorded(
        skip,
        |_| (),
        |root, ()| {
            let root = root.expose_provenance();
            let turn = Barrier::new(2);
            std::thread::scope(|scope| {
                for number in 0..2 {
                    let turn = &turn;
                    scope.spawn(move || {
                        record::join_thread();
                        let root = std::ptr::with_exposed_provenance_mut(root);
                        for value in 1..=2 * TURNS {
                            if value % 2 == number {
                                unsafe { set(root, 0, value) };
                                record::note("acknowledged", value);
                            }
                            turn.wait();
                        }
                    });
                }
            });
        },
    )
}

pub fn explore_turns(trace: &Trace) -> Result<Report, String> {
    let mut plan = Plan::new(Rules::Lines, 2);
    plan.random_images = 2;
    plan.single_units_max = 3;
    plan.nested_one_in = 40;
    plan.nested_points_max = Some(6);
    explore_with_recovery(trace, &plan, recover, |image, point| {
        let last = point.last_note("acknowledged").unwrap_or(0);
        on_a_thread(|| {
            let root = open(image)?;
            let found = unsafe { (&raw const (*root).values[0]).read() };
            close().map_err(|error| error.to_string())?;
            match found == last || found == last + 1 {
                true => Ok(()),
                false => Err(format!("{found}, after {last}")),
            }
        })
        .inspect_err(|_| drop(close()))
    })
    .map_err(|failure| failure.to_string())
}

/// Else a section that has ended goes on after a crash, over what the next holder of its lock has stored.
#[test]
fn that_a_section_has_ended_is_durable_before_its_lock_is_free() {
    let _alone = alone();
    let report = explore_turns(&record_turns(None)).unwrap_or_else(|failure| panic!("{failure}"));
    println!("{} points, {} images", report.points, report.images);
    for part in ["fence after it has ended", "write back that it has ended"] {
        let failure =
            explore_turns(&record_turns(Some(site(part)))).expect_err("nothing is noticed");
        println!("{part}: {}", failure.lines().next().unwrap_or_default());
    }
}

/// A lock is made outside of sections, and then a word says so.
fn record_lock(skip: Option<Site>) -> Trace {
    recorded(
        skip,
        |_| (),
        |root, ()| unsafe {
            make_recursive(&raw mut (*root).made);
            set_word(root, 2, 1);
        },
    )
}

fn explore_lock(trace: &Trace) -> Result<Report, String> {
    let mut plan = Plan::new(Rules::Lines, 3);
    plan.random_images = 8;
    explore_with_recovery(trace, &plan, recover, |image, _| {
        on_a_thread(|| {
            let root = open(image)?;
            let is_said = unsafe { (*root).values[2] } == 1;
            // Taken two times, which only a recursive one allows.
            let is_recursive = unsafe { is_recursive(&raw mut (*root).made) };
            close().map_err(|error| error.to_string())?;
            match is_said && !is_recursive {
                true => Err("the lock has lost its kind".to_owned()),
                false => Ok(()),
            }
        })
        .inspect_err(|_| drop(close()))
    })
    .map_err(|failure| failure.to_string())
}

#[test]
fn the_kind_of_a_lock_is_durable_before_anything_says_so() {
    let _alone = alone();
    explore_lock(&record_lock(None)).unwrap_or_else(|failure| panic!("{failure}"));
    for part in ["lock: write back its kind", "lock: fence after its kind"] {
        let failure = explore_lock(&record_lock(Some(site(part)))).expect_err("nothing is noticed");
        println!("{part}: {}", failure.lines().next().unwrap_or_default());
    }
}

/// What is written outside of sections, and then linked: by a word that needs no record, and by a section with one.
fn record_owned(skip: Option<Site>) -> Trace {
    recorded(
        skip,
        |root| {
            let nodes = [(); 2].map(|()| unsafe { node() });
            unsafe { set(root, 0, 1) };
            nodes
        },
        |root, nodes| unsafe {
            set_word(root, OWNED[0], own(nodes[0], 1));
            set(root, OWNED[1] as u64, own(nodes[1], 2));
        },
    )
}

/// Where they are linked.
const OWNED: [usize; 2] = [3, 4];

fn explore_owned(trace: &Trace) -> Result<Report, String> {
    let mut plan = Plan::new(Rules::Lines, 4);
    plan.random_images = 2;
    plan.nested_one_in = 40;
    explore_with_recovery(trace, &plan, recover, |image, _| {
        on_a_thread(|| {
            let root = open(image)?;
            let values = unsafe { (&raw const (*root).values).read() };
            let linked = OWNED.map(|at| match values[at] {
                0 => 0,
                node => unsafe { value_of(node) },
            });
            let is_linked = OWNED.map(|at| u64::from(values[at] != 0));
            close().map_err(|error| error.to_string())?;
            match linked == [is_linked[0], 2 * is_linked[1]] {
                true => Ok(()),
                false => Err(format!("{linked:?} is linked")),
            }
        })
        .inspect_err(|_| drop(close()))
    })
    .map_err(|failure| failure.to_string())
}

#[test]
fn what_is_owned_is_durable_before_it_is_linked() {
    let _alone = alone();
    explore_owned(&record_owned(None)).unwrap_or_else(|failure| panic!("{failure}"));
    for part in ["and a word", "write back the lines"] {
        let failure =
            explore_owned(&record_owned(Some(site(part)))).expect_err("nothing is noticed");
        println!("{part}: {}", failure.lines().next().unwrap_or_default());
    }
}

/// The one whose name has this part.
pub fn site(part: &str) -> Site {
    let sites = durum_ido::sites();
    *sites.iter().find(|site| site.0.contains(part)).unwrap()
}

/// Without it a crash has to be noticed.
fn canary(part: &str) {
    let _alone = alone();
    let failure = explore(&record(Some(site(part))), Some(400)).expect_err("nothing is noticed");
    println!("{part}: {}", failure.lines().next().unwrap_or_default());
}

/// Beside the others. `make test` leaves them to ci/campaigns.sh.
mod canaries {
    use super::canary;

    #[test]
    fn the_fence_after_a_record_is_needed() {
        canary("fence after a record");
    }

    #[test]
    fn the_write_back_of_a_record_is_needed() {
        canary("write back a record");
    }

    #[test]
    fn the_write_back_of_the_head_is_needed() {
        canary("write back the head");
    }

    #[test]
    fn the_fence_after_the_head_is_needed() {
        canary("fence after the head");
    }

    #[test]
    fn the_fence_after_the_end_is_needed() {
        canary("fence after it has ended");
    }

    #[test]
    fn the_fence_between_stores_and_a_record_is_needed() {
        canary("fence between stores and the record");
    }

    #[test]
    fn what_a_record_tells_of_stores_is_needed() {
        canary("tell in a record what was stored");
    }

    #[test]
    fn the_write_back_of_stores_is_needed() {
        canary("write back the lines");
    }

    #[test]
    fn the_write_back_of_locals_is_needed() {
        canary("write back locals");
    }
}
