//! Every crash of the agenda: after each store, write-back and fence of a run, in the states that memory may then be
//! in.

mod support;

use std::path::Path;

use durum::typed::*;
use durum::{Domain, StoreOptions};
use durum_examples::agenda::{Agenda, P};
use durum_persist::record::{self, Recorder, RecorderOptions};
use durum_persist::simulate::{CrashPoint, Failure, Plan, Report, Rules, explore};

/// Adds two tasks and takes one, as a whole.
fn step(agenda: &Agenda, number: u64) -> durum::Result<()> {
    P::transaction(|j| {
        agenda.add(&format!("first of {number}"), j);
        agenda.add(&format!("second of {number}"), j);
        agenda.take(j);
    })
}

/// The same in two transactions: a crash can come between them.
fn careless_step(agenda: &Agenda, number: u64) -> durum::Result<()> {
    P::transaction(|j| agenda.add(&format!("first of {number}"), j))?;
    P::transaction(|j| {
        agenda.add(&format!("second of {number}"), j);
        agenda.take(j);
    })
}

/// Records three steps, and crashes them everywhere.
fn crash(step: fn(&Agenda, u64) -> durum::Result<()>) -> Result<Report, Failure> {
    let dir = tempfile::tempdir_in("/dev/shm").unwrap();
    let path = dir.path().join("store");
    // As on persistent memory, where a crash tears lines.
    let store = StoreOptions::new().domain(Domain::Dax);
    let options = OpenOptions::new().create(true).store(store);

    let agenda = P::open::<Agenda>(&path, options.clone()).unwrap();
    let recorder = Recorder::start(&path, RecorderOptions::default());
    let mut states = vec![agenda.tasks()];
    for number in 1..=3 {
        step(&agenda, number).unwrap();
        states.push(agenda.tasks());
        record::note("steps", number);
    }
    let trace = recorder.stop();
    agenda.close().unwrap();
    support::assert_comes_back(&path);

    // What has returned was done, and the step under way is there as a whole or not at all.
    let check = |image: &Path, point: &CrashPoint<'_>| {
        let agenda = P::open::<Agenda>(image, options.clone()).map_err(|e| e.to_string())?;
        let steps = point.last_note("steps").unwrap_or(0) as usize;
        let found = agenda.tasks();
        let is_allowed = states[steps..].iter().take(2).any(|state| *state == found);
        is_allowed
            .then_some(())
            .ok_or_else(|| format!("{found:?} after {steps} steps"))
    };
    let mut plan = Plan::new(Rules::Lines, 1);
    plan.points_max = Some(60);
    explore(&trace, &plan, check)
}

#[test]
fn no_crash_breaks_the_agenda() {
    let report = crash(step).unwrap_or_else(|failure| panic!("{failure}"));
    assert!(report.images > 100);
    // A test that cannot fail proves nothing.
    let failure = crash(careless_step).unwrap_err();
    assert!(failure.message.contains("after"), "{failure}");
}
