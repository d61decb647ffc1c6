//! What recovery takes of memory, time and room in the registry is bounded by the bytes of the files that a client has,
//! whatever numbers they hold. Each store is opened by a process that may not have more.

use std::path::Path;
use std::process::Command;
use std::time::Duration;

use durum_format::UNIT;
use durum_format::log::{ENTRY_HEADER_SIZE, LOG_AREA_OFFSET};
use durum_format::puddle;
use durum_format::record;
use durum_format::twin::{STATE_OFFSET, Stage, State};
use durum_service::{EngineKind, PoolSpec, Service};

use crate::scene::{Fate, Hostile, PLACE, POOLS, Scene, assert_others, fate};
use crate::support::{Log, Records, cpu_time, heap, limit_memory, open, put, root, scratch, word};

const STORE: &str = "DURUM_TEST_BOUNDS_STORE";
const MEMORY: &str = "DURUM_TEST_BOUNDS_MEMORY";

/// Not a test of its own: opens a store with little memory, and quickly.
#[test]
fn process_with_little_memory() {
    let Some(path) = std::env::var_os(STORE) else {
        return;
    };
    let more: u64 = std::env::var(MEMORY).unwrap().parse().unwrap();
    limit_memory(more);
    let began = cpu_time();
    let store = open(Path::new(&path));
    let took = cpu_time() - began;
    println!("opened in {took:?}");
    assert!(took < Duration::from_secs(5), "{took:?}");
    assert_others(&store);
    assert_eq!(word(root(&store.open_pool("works").unwrap()), PLACE), 5);
}

/// Opens a store with `memory` bytes more than a process has that has done nothing yet. What became of the pools of the
/// hostile client.
fn opened_with(memory: u64, attack: impl FnOnce(&mut Hostile)) -> ([Fate; 3], u64) {
    let directory = scratch();
    let path = directory.path().join("store");
    drop(Scene::new(&path, attack));
    let output = Command::new(std::env::current_exe().unwrap())
        .args([
            "--exact",
            "bounds::process_with_little_memory",
            "--nocapture",
        ])
        .env(STORE, &path)
        .env(MEMORY, memory.to_string())
        .output()
        .unwrap();
    let told = [output.stdout, output.stderr].map(|told| String::from_utf8(told).unwrap());
    assert!(output.status.success(), "{} {}", told[0], told[1]);
    println!("{}", told[0]);
    let registry = std::fs::metadata(path.join("registry")).unwrap().len();
    let store = open(&path);
    (POOLS.map(|pool| fate(&store, pool)), registry)
}

/// Fills a puddle of a log with the shortest entries.
fn fill(log: &mut Log, target: u64) {
    let area = puddle::heap_size(UNIT) - LOG_AREA_OFFSET;
    while log.offset as u64 + 2 * ENTRY_HEADER_SIZE as u64 <= area {
        log.redo(target, &[]);
    }
}

#[test]
fn a_log_that_is_named_by_each_line_of_a_log_space_is_read_once() {
    let (found, _) = opened_with(96 << 20, |client| {
        fill(&mut client.log, root(&client.hybrid).address + PLACE);
        for _ in 0..30_000 {
            client.space.list(&client.log);
        }
    });
    assert_eq!(found, [Fate::Quarantined; 3]);
}

/// Logs of one id go on in the same puddle.
#[test]
fn a_puddle_is_part_of_one_log() {
    let (found, _) = opened_with(192 << 20, |client| {
        let Hostile { store, space, .. } = client;
        let target = root(&client.hybrid).address + PLACE;
        let mut first = space.log(store, 7);
        first.chain(store);
        let shared = first.parts[1].address;
        fill(&mut first, target);
        for _ in 0..40 {
            space.log(store, 7).chain_to(shared);
            // Those that no log space names lead there as well.
            Log::new(store, 7).chain_to(shared);
        }
    });
    assert_eq!(found, [Fate::Quarantined; 3]);
}

#[test]
fn a_twin_pool_is_copied_piece_by_piece() {
    const SIZE: u64 = 64 * UNIT;
    let (found, _) = opened_with(48 << 20, |client| {
        let spec = PoolSpec {
            root_puddle_size: SIZE,
            ..PoolSpec::new(EngineKind::Twin)
        };
        let pool = client.store.create_pool("large", &spec).unwrap();
        let puddle = root(&pool);
        // Every second line differs, and the heap is damaged: all of it counts as used.
        let lines: Vec<u8> = (0..1 << 20).map(|at| (at / 64 % 2) as u8).collect();
        for at in (heap(puddle)..SIZE - (1 << 20)).step_by(1 << 20) {
            puddle.file.write_all_at(&lines, at).unwrap();
        }
        put(puddle, puddle::BITMAP_OFFSET, &[0xff; 64]);
        let state = State {
            stage: Stage::Copying,
            ..State::from_word(word(puddle, STATE_OFFSET)).unwrap()
        };
        put(puddle, STATE_OFFSET, &state.to_word().to_le_bytes());
    });
    assert_eq!(found, [Fate::Opens; 3]);
}

/// Writes records that only home can tell of: each went there with a byte.
fn unproven(client: &mut Hostile, puddles: usize) {
    let mut target = root(&client.shadow).address + PLACE + 64;
    for _ in 0..puddles {
        let records = std::mem::replace(&mut client.records, Records::new(&client.store));
        client.records.next = records.next;
        while client.records.offset < UNIT - record::SEGMENT_SIZE {
            let next = &mut client.records.next;
            (next.previous, next.fenced, next.log) = (0, false, next.stamp as u32);
            let mut entries = Vec::new();
            record::push_fresh(&mut entries, target, &[0]);
            client.records.append(&entries);
            target += 1;
        }
    }
}

#[test]
fn records_that_only_home_can_tell_of_take_time_as_there_are_many() {
    let (found, _) = opened_with(192 << 20, |client| unproven(client, 4));
    assert_eq!(found, [Fate::Opens; 3]);
}

/// What is known of them is not kept in the registry, which is everybody's: all wait for the file that is in the way.
#[test]
fn what_is_kept_of_a_client_in_the_registry_is_small() {
    let (found, registry) = opened_with(192 << 20, |client| {
        unproven(client, 1);
        root(&client.hybrid).file.set_len(0).unwrap();
    });
    assert_eq!(found, [Fate::Refused, Fate::Opens, Fate::Refused]);
    assert!(registry < 512 << 10, "{registry} bytes");
}
