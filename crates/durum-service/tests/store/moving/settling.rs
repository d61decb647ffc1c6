//! A Twin pool is settled before it moves: its copies are the same durably, and nothing tells of addresses.

use durum_format::twin::{SEAL_SIZE, STATE_OFFSET, Seal, SealRange, Stage, State, seal_offset};
use durum_persist::Site;
use durum_persist::record::note;
use durum_persist::simulate::{Failure, Plan, Report, Rules, explore_with_recovery};
use durum_service::{Embedded, Service};

use super::{displace, follow, lists};
use crate::support::{heap, open, open_all, open_options, put, recorder, root, scratch, word};

/// The state of a Twin pool is not synced when it closes: a power cut may bring back one that asks a seal.
#[test]
fn a_twin_pool_is_settled_before_its_addresses_change() {
    let directory = scratch();
    let path = directory.path().join("store");
    lists(&path);
    let store = open(&path);
    let pool = store.open_pool("twin").unwrap();
    let state = State {
        generation: 7,
        stage: Stage::Changing,
        is_settled: true,
        is_listed: false,
    };
    put(root(&pool), STATE_OFFSET, &state.to_word().to_le_bytes());
    let seals = heap(root(&pool)) - 2 * SEAL_SIZE as u64;
    put(root(&pool), seals, &[0x5a; 2 * SEAL_SIZE]);
    // Main was changed and is to be what back is.
    let value = heap(root(&pool)) + 16;
    put(root(&pool), value, &99_u64.to_le_bytes());
    store.close().unwrap();
    drop((store, pool));
    let store = open(&path);
    displace(&store).unwrap();
    drop(store);
    let store = open(&path);
    follow(&store).unwrap();
    store.close().unwrap();
    drop(store);
    let store = open(&path);
    let pool = store.open_pool("twin").unwrap();
    let found = State::from_word(word(root(&pool), STATE_OFFSET)).unwrap();
    assert_eq!((found.stage, found.generation), (Stage::Idle, 7));
    assert_eq!(word(root(&pool), seals), 0);
}

/// A Twin pool whose last transaction has a seal, and which is closed: that both copies are the same is not durable
/// yet.
fn explore_settling(skip: Option<Site>) -> Result<Report, Failure> {
    let directory = scratch();
    let path = directory.path().join("store");
    lists(&path);
    let store = open(&path);
    let pool = store.open_pool("twin").unwrap();
    let value = root(&pool).address + heap(root(&pool)) + 16;
    let range = SealRange::new(value, 8).unwrap();
    let contents = word(root(&pool), heap(root(&pool)) + 16);
    let mut place = [0; SEAL_SIZE];
    Seal::encode(
        6,
        &[range],
        |crc| crc.update(&contents.to_le_bytes()),
        &mut place,
    );
    put(root(&pool), seal_offset(root(&pool).size, 6), &place);
    let changing = State {
        generation: 7,
        stage: Stage::Changing,
        is_settled: false,
        is_listed: false,
    };
    let state = |state: State| state.to_word().to_le_bytes();
    put(root(&pool), STATE_OFFSET, &state(changing));
    let recorder = recorder(directory.path(), skip);
    let idle = State {
        stage: Stage::Idle,
        ..changing
    };
    let file = &root(&pool).file;
    file.write_all_at(&state(idle), STATE_OFFSET).unwrap();
    store.close().unwrap();
    drop((store, pool));
    let store = open(&path);
    displace(&store).unwrap();
    follow(&store).unwrap();
    drop(store);
    let plan = Plan {
        random_images: 2,
        exhaustive_max: 6,
        nested_one_in: 0,
        points_max: Some(40),
        ..Plan::new(Rules::Sectors, 51)
    };
    explore_with_recovery(
        &recorder.stop(),
        &plan,
        |_| Ok(()),
        |image, _| {
            let store = Embedded::open(&image.join("store"), open_options());
            follow(&store.map_err(|error| error.to_string())?)
        },
    )
}

#[test]
fn a_power_cut_brings_back_no_seal_about_old_addresses() {
    if let Err(failure) = explore_settling(None) {
        panic!("{failure}");
    }
    let canary = explore_settling(Some(Site("twin pool's state before it moves")));
    assert!(canary.is_err(), "a state that comes back is noticed");
}

/// A Twin pool whose last transaction was undone by whoever ended then. That main is as it was is not durable yet, in
/// a puddle that has no state of its own.
fn explore_undoing(skip: Option<Site>) -> Result<Report, Failure> {
    let directory = scratch();
    let path = directory.path().join("store");
    lists(&path);
    let store = open(&path);
    let pool = store.open_pool("twin").unwrap();
    let puddles = open_all(&store, pool);
    let (root, other) = (&puddles[0], &puddles[1]);
    let state = |stage| {
        let state = State {
            generation: 7,
            stage,
            is_settled: true,
            is_listed: false,
        };
        state.to_word().to_le_bytes()
    };
    put(root, STATE_OFFSET, &state(Stage::Changing));
    let at = heap(other) + 16;
    let value = word(other, at).to_le_bytes();
    put(other, at, &99_u64.to_le_bytes());
    let recorder = recorder(directory.path(), skip);
    other.file.write_all_at(&value, at).unwrap();
    let idle = state(Stage::Idle);
    root.file.write_all_at(&idle, STATE_OFFSET).unwrap();
    store.close().unwrap();
    drop((store, puddles));
    let store = open(&path);
    displace(&store).unwrap();
    note("moved", 1);
    follow(&store).unwrap();
    drop(store);
    let plan = Plan {
        random_images: 2,
        exhaustive_max: 6,
        nested_one_in: 0,
        points_max: Some(40),
        ..Plan::new(Rules::Sectors, 52)
    };
    explore_with_recovery(
        &recorder.stop(),
        &plan,
        |_| Ok(()),
        |image, point| {
            // What is not settled, nobody has asked to be durable.
            if point.last_note("moved").is_none() {
                return Ok(());
            }
            let store = Embedded::open(&image.join("store"), open_options());
            follow(&store.map_err(|error| error.to_string())?)
        },
    )
}

#[test]
fn a_power_cut_parts_no_copies_that_are_said_to_be_the_same() {
    if let Err(failure) = explore_undoing(None) {
        panic!("{failure}");
    }
    let canary = explore_undoing(Some(Site("twin pool's copies before it moves")));
    assert!(canary.is_err(), "copies that differ are noticed");
}
