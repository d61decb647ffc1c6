//! A table of what pointers of other pools lead to, crashed at every store, write-back and fence of its transactions:
//! each pointer that was ever made leads to its object, or nowhere, as after one of the last two transactions.

use std::path::Path;

use durum::typed::*;
use durum::{Domain, Engine};
use durum_persist::record::{self, Recorder, RecorderOptions};
use durum_persist::simulate::{Plan, Rules, explore_with_recovery};

use crate::{kinds, options, without_leaks};

durum::pool!(P);
durum::pool!(Q);

#[derive(PSafe, Root)]
#[repr(C)]
struct Table {
    exports: PRefCell<Exports<u64, Q>, Q>,
    objects: [PRefCell<Option<Parc<u64, Q>>, Q>; 3],
}

/// Where each pointer leads.
type State = Vec<Option<u64>>;

fn read(table: &Table, made: &[Pptr<u64, P, Q>]) -> State {
    let follow = |j: &Journal<Q>| -> State {
        let exports = table.exports.borrow();
        let values = made.iter().map(|to| to.follow(&exports, j));
        values.map(|object| object.map(|object| *object)).collect()
    };
    Q::transaction(|j| follow(j)).unwrap()
}

/// Makes another pointer, to a new object or to one that has some; or drops, withdraws, purges, or aborts.
fn step(table: &Table, kind: u64, number: u64, made: &mut Vec<Pptr<u64, P, Q>>) {
    let place = &table.objects[number as usize % 3];
    let first = made.get(number as usize % made.len().max(1)).copied();
    let done = Q::try_transaction(|j| {
        let mut exports = table.exports.borrow_mut(j);
        match kind % 6 {
            0 | 1 => {
                let object = Parc::new(number, j);
                let to = exports.export(&object, j);
                *place.borrow_mut(j) = Some(object);
                return Ok(Some(to));
            }
            2 => {
                let object = place.borrow();
                return Ok(object.as_ref().map(|object| exports.export(object, j)));
            }
            3 => *place.borrow_mut(j) = None,
            4 => {
                first.map(|to| exports.withdraw(&to));
            }
            _ if number.is_multiple_of(2) => exports.purge(j),
            _ => {
                let object = Parc::new(number, j);
                exports.export::<P>(&object, j);
                *place.borrow_mut(j) = Some(object);
                return Err(durum::Error::Aborted);
            }
        }
        Ok(None)
    });
    made.extend(done.unwrap_or(None));
}

/// Pointers that were made later lead nowhere yet.
fn is_state(found: &State, state: &State) -> bool {
    let later = std::iter::repeat_n(&None, found.len() - state.len());
    found.iter().eq(state.iter().chain(later))
}

#[test]
fn exports_survive() {
    // A process has eight spaces at most: these are others' here, too.
    for (engine, base) in [
        (Engine::Shadow, 0x2c00_0000_0000),
        (Engine::Hybrid, 0x2e00_0000_0000),
        (Engine::Twin, 0x3600_0000_0000),
    ] {
        let dir = tempfile::tempdir_in("/dev/shm").unwrap();
        let path = dir.path().join("store");
        let options = options(engine, Domain::Dax, base);
        let table = Q::open::<Table>(&path, options.clone()).unwrap();
        let mut made = Vec::new();
        let mut states = vec![State::new()];
        let recorder = Recorder::start(&path, RecorderOptions::default());
        for (number, kind) in kinds(40, base).enumerate() {
            step(&table, kind, number as u64, &mut made);
            states.push(read(&table, &made));
            record::note("step", states.len() as u64 - 1);
        }
        let trace = recorder.stop();
        drop(table);
        let lives = |state: &State| state.iter().flatten().count();
        assert!(states.iter().any(|state| lives(state) > 3), "{states:?}");
        assert!(made.len() > 3 + states.last().map_or(0, lives));
        let mut plan = Plan::new(Rules::Lines, base);
        plan.points_max = Some(30);
        let recover = |_: &Path| Ok(());
        let report = explore_with_recovery(&trace, &plan, recover, |image, point| {
            let last = point.last_note("step").unwrap_or(0) as usize;
            let options = options.clone().create(false);
            let allowed = &states[last..states.len().min(last + 2)];
            let judge = || {
                let table = Q::open::<Table>(image, options).map_err(|e| e.to_string())?;
                let found = read(&table, &made);
                drop(table);
                without_leaks(image)?;
                match allowed.iter().any(|state| is_state(&found, state)) {
                    true => Ok(()),
                    false => Err(format!("{found:?}, and not one of {allowed:?}")),
                }
            };
            std::thread::scope(|scope| {
                let judged = scope.spawn(judge).join();
                judged.unwrap_or_else(|_| Err("the client panicked".into()))
            })
        });
        let report = report.unwrap_or_else(|failure| panic!("{failure}"));
        assert!(report.images > 50, "{engine:?}: {}", report.images);
    }
}
