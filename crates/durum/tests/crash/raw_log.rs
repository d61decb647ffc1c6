//! The low-level log, as someone who builds a transaction of his own uses it.
//!
//! The crashes: between flush, range, home places and reset. An undo protocol is committed by the reset, a redo
//! protocol by the range.

use std::thread;

use crate::harness::{Lane, PLAIN, Step, Workload, World, pattern};

use durum::{RawEntry, RawLog};
use durum_persist::record;

fn undo(lane: &mut Lane, log: &mut RawLog, offset: usize, len: usize, tag: u64) {
    let undone = lane.state.clone();
    let target = lane.places.at(offset, len);
    let bytes = pattern(tag, len);
    unsafe {
        log.append(target, target, len, RawEntry::UNDO)
            .expect("room");
        log.flush().expect("flushed");
        target.copy_from_nonoverlapping(bytes.as_ptr(), len);
        lane.pool.persist(target, len).expect("persisted");
    }
    log.reset().expect("reset");
    let mut done = undone.clone();
    done.write(offset, &bytes);
    lane.took(Step::durable(undone, done));
}

/// An undo protocol that changes its mind.
fn undo_and_back(lane: &mut Lane, log: &mut RawLog, offset: usize, len: usize) {
    let undone = lane.state.clone();
    let target = lane.places.at(offset, len);
    unsafe {
        log.append(target, target, len, RawEntry::UNDO)
            .expect("room");
        log.flush().expect("flushed");
        target.write_bytes(0xbb, len);
        lane.pool.persist(target, len).expect("persisted");
        log.apply().expect("applied");
    }
    log.reset().expect("reset");
    lane.took(Step::durable(undone.clone(), undone));
}

fn redo(lane: &mut Lane, log: &mut RawLog, ranges: &[(usize, usize)], tag: u64) {
    let undone = lane.state.clone();
    let mut done = undone.clone();
    for (at, (offset, len)) in ranges.iter().enumerate() {
        let bytes = pattern(tag + at as u64, *len);
        let target = lane.places.at(*offset, *len);
        unsafe { log.append(target, bytes.as_ptr(), *len, RawEntry::REDO) }.expect("room");
        done.write(*offset, &bytes);
    }
    log.flush().expect("flushed");
    log.set_range(2, 4).expect("admitted");
    unsafe { log.apply() }.expect("applied");
    log.reset().expect("reset");
    lane.took(Step::durable(undone, done));
}

fn protocols(world: &mut World) {
    let mut log = world.store.raw_log().expect("a log");
    let lane = world.lane();
    undo(lane, &mut log, 10, 50, 1);
    redo(lane, &mut log, &[(0, 40), (30, 40), (300, 8)], 10);
    undo_and_back(lane, &mut log, 0, 90);
    // The next use changes the same bytes: nothing of the one before may replay.
    undo(lane, &mut log, 40, 50, 2);
    drop(log);
    world.lane().commits(|tx| tx.change(20, 60, 3));
    let mut log = world.store.raw_log().expect("a log");
    redo(world.lane(), &mut log, &[(20, 700)], 20);
}

pub const PROTOCOLS: Workload = Workload {
    name: "protocols on a raw log",
    needs: |mut campaign| {
        campaign.engine = durum::Engine::Hybrid;
        campaign.plan(|plan| plan.points_max = Some(200))
    },
    run: protocols,
    ..PLAIN
};

/// More entries than a log is ready for at its beginning are appended by one thread, and flushed by another: its fence
/// has to make durable what recovery needs to find them.
fn handed_over(world: &mut World) {
    const LENGTH: usize = 170;
    let mut log = world.store.raw_log().expect("a log");
    let lane = world.lane();
    let undone = lane.state.clone();
    let mut done = undone.clone();
    let mut entries = Vec::new();
    for at in 0..24 {
        let bytes = pattern(at as u64, LENGTH);
        done.write(at * LENGTH, &bytes);
        let target = lane.places.at(at * LENGTH, LENGTH);
        entries.push((target.expose_provenance(), bytes));
    }
    thread::scope(|scope| {
        scope.spawn(|| {
            record::join_thread();
            for (target, bytes) in &entries {
                let target = std::ptr::with_exposed_provenance_mut(*target);
                unsafe { log.append(target, bytes.as_ptr(), LENGTH, RawEntry::REDO) }
                    .expect("room");
            }
        });
    });
    log.flush().expect("flushed");
    log.set_range(2, 4).expect("admitted");
    unsafe { log.apply() }.expect("applied");
    log.reset().expect("reset");
    lane.took(Step::durable(undone, done));
}

pub const HANDED_OVER: Workload = Workload {
    name: "a raw log that another thread flushes",
    run: handed_over,
    ..PROTOCOLS
};

#[test]
fn a_raw_log_that_another_thread_flushes_survives() {
    HANDED_OVER.survives_on_lines();
}

#[test]
fn protocols_on_a_raw_log_survive_on_mapped_memory() {
    PROTOCOLS.survives_on_lines();
}

#[test]
fn protocols_on_a_raw_log_survive_on_a_file_system() {
    PROTOCOLS.survives_on_sectors();
}
