//! The service is killed at each of its own steps, and started again at once, as a service manager does.

use durum::{PoolOptions, Store, StoreOptions};

use crate::copies::value;
use crate::shipping::{exported_on, named};
use crate::support::{Client, Served};

/// Steps between those that are tried by each run of the tests; `--ignored` tries all.
const STRIDE: usize = 11;

fn here(served: &Served, part: &str, engine: &str) -> Client {
    let mut client = served.client_on(part, engine);
    client.expect("here");
    client
}

/// Opens a pool that is another's until that one is recovered.
fn opens(client: &mut Client, pool: &str) -> String {
    let mut said = String::new();
    crate::support::until("the pool is free", || {
        said = client.ask(&format!("open {pool}"));
        !said.contains("used by another program")
    });
    said
}

/// The service dies while programs ask, and while it recovers one. Gives the number of steps, if there are not so many.
fn dies_under_requests(engine: &str, number: u64) -> Option<u64> {
    let mut served = Served::start();
    let [mut lives, mut dies, mut next] =
        ["lives", "dies", "next"].map(|part| here(&served, part, engine));
    assert_eq!(dies.ask("open other"), "0 0");
    assert_eq!(dies.ask("add 20"), "20");
    assert_eq!(dies.ask("half"), "half");
    let steps = served.killed_before(number, || {
        assert_eq!(lives.ask("open one"), "0 0");
        assert_eq!(lives.ask("add 10"), "10");
        assert_eq!(lives.ask("grow 8000000"), "grown");
        dies.kill();
        assert_eq!(opens(&mut next, "other"), "20 20");
        assert_eq!(next.ask("add 1"), "21");
        assert_eq!(next.ask("close"), "closed");
        assert_eq!(next.ask("remove other"), "removed");
        assert_eq!(lives.ask("add 10"), "20");
        assert_eq!(lives.ask("close"), "closed");
    });
    assert_eq!(opens(&mut next, "one"), "20 20", "{engine}, step {number}");
    assert_eq!(next.ask("pools"), "1", "{engine}, step {number}");
    lives.end();
    next.end();
    served.end();
    let store = durum_service::ReadOnlyStore::open(&served.store()).unwrap();
    assert!(store.is_clean(), "{engine}, step {number}");
    steps
}

/// The service dies while it starts, with a program that lives and one that is gone.
fn dies_at_its_start(engine: &str, number: u64) -> Option<u64> {
    let mut served = Served::start();
    let [mut lives, mut dies] = ["lives", "dies"].map(|part| here(&served, part, engine));
    assert_eq!(lives.ask("open one"), "0 0");
    assert_eq!(lives.ask("add 10"), "10");
    assert_eq!(dies.ask("open other"), "0 0");
    assert_eq!(dies.ask("add 20"), "20");
    assert_eq!(dies.ask("half"), "half");
    served.kill();
    dies.kill();
    let steps = served.killed_at_its_start(number);
    assert_eq!(lives.ask("add 10"), "20", "{engine}, step {number}");
    let mut next = here(&served, "next", engine);
    assert_eq!(next.ask("open other"), "20 20", "{engine}, step {number}");
    assert_eq!(
        lives.ask("grow 8000000"),
        "grown",
        "{engine}, step {number}"
    );
    assert_eq!(lives.ask("close"), "closed");
    assert_eq!(next.ask("open one"), "20 20", "{engine}, step {number}");
    steps
}

/// The service dies while a program imports: the pool is there, or it is not and can be imported again.
fn dies_in_an_import(engine: &str, number: u64) -> Option<u64> {
    let (_directory, mut served, place) = exported_on(engine);
    let store = Store::open(served.address(), StoreOptions::new()).unwrap();
    let mut imported = None;
    let steps = served.killed_before(number, || {
        imported = Some(store.import(&place, &named("copy")));
    });
    let is_there = store
        .pools()
        .unwrap()
        .iter()
        .any(|pool| pool.name == "copy");
    match imported.unwrap() {
        Ok(_) => assert!(is_there, "{engine}, step {number}"),
        // Its end may have been reached, and not been told.
        Err(_) if is_there => {}
        Err(_) => drop(store.import(&place, &named("copy")).unwrap()),
    }
    let open = |name| store.open_pool(name, PoolOptions::new()).unwrap();
    let (copy, original) = (open("copy"), open("pool"));
    assert_eq!((value(&copy), value(&original)), (7, 7));
    drop((copy, original));
    store.close().unwrap();
    served.end();
    let files = std::fs::read_dir(served.store().join("puddles")).unwrap();
    assert_eq!(files.count(), 2, "{engine}, step {number}");
    steps
}

/// Tries steps until there are no more.
fn try_all(stride: usize, scene: impl Fn(&str, u64) -> Option<u64>) {
    for (engine, first) in [("shadow", 1), ("hybrid", 4), ("twin", 8)] {
        let tried = (first..).step_by(stride);
        let steps = tried
            .map(|number| (number, scene(engine, number)))
            .find_map(|(number, steps)| steps.map(|steps| (number, steps)));
        let (number, steps) = steps.unwrap();
        // Else it never began the scene.
        assert!(steps > 10 && steps < number, "{engine}: {steps} steps");
    }
}

#[test]
fn requests_and_recovery_survive_the_death_of_the_service_at_some_steps() {
    try_all(STRIDE, dies_under_requests);
}

#[test]
#[ignore = "it takes minutes"]
fn requests_and_recovery_survive_the_death_of_the_service_at_each_step() {
    try_all(1, dies_under_requests);
}

#[test]
fn an_import_survives_the_death_of_the_service_at_some_steps() {
    try_all(STRIDE, dies_in_an_import);
}

#[test]
#[ignore = "it takes a minute"]
fn an_import_survives_the_death_of_the_service_at_each_step() {
    try_all(1, dies_in_an_import);
}

#[test]
fn a_start_survives_the_death_of_the_service_at_some_steps() {
    try_all(STRIDE, dies_at_its_start);
}

#[test]
#[ignore = "it takes minutes"]
fn a_start_survives_the_death_of_the_service_at_each_step() {
    try_all(1, dies_at_its_start);
}
