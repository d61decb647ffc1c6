//! The gate by itself, on the processor's atomics. `tests/loom` tries its interleavings.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use crate::gate::Gate;

/// Counts that only an exclusion can keep equal: each side changes them by plain loads and stores.
#[derive(Default)]
struct Shared {
    inside: AtomicUsize,
    /// While the gate is closed.
    alone: AtomicBool,
    one: AtomicU64,
    other: AtomicU64,
}

fn stress(gate: Arc<Gate>, seconds: f32) {
    let shared = Shared::default();
    let end = Instant::now() + Duration::from_secs_f32(seconds);
    let (entered, closed) = (AtomicU64::new(0), AtomicU64::new(0));
    thread::scope(|scope| {
        for _ in 0..3 {
            scope.spawn(|| {
                let mut rounds = 0u64;
                while Instant::now() < end {
                    // Threads come and go, too.
                    let member = gate.join();
                    for _ in 0..1000 {
                        member.enter();
                        shared.inside.fetch_add(1, Ordering::Relaxed);
                        assert!(!shared.alone.load(Ordering::Relaxed));
                        assert_eq!(
                            shared.one.load(Ordering::Relaxed),
                            shared.other.load(Ordering::Relaxed)
                        );
                        shared.inside.fetch_sub(1, Ordering::Relaxed);
                        member.leave();
                        rounds += 1;
                    }
                }
                entered.fetch_add(rounds, Ordering::Relaxed);
            });
        }
        for number in 0..2 {
            let (gate, shared, closed) = (&gate, &shared, &closed);
            scope.spawn(move || {
                while Instant::now() < end {
                    let guard = match number {
                        0 => Some(gate.close().unwrap()),
                        _ => gate.try_close(Duration::from_millis(1)).unwrap(),
                    };
                    let Some(guard) = guard else { continue };
                    assert!(!shared.alone.swap(true, Ordering::Relaxed));
                    assert_eq!(shared.inside.load(Ordering::Relaxed), 0);
                    let value = shared.one.load(Ordering::Relaxed) + 1;
                    shared.one.store(value, Ordering::Relaxed);
                    std::hint::spin_loop();
                    shared.other.store(value, Ordering::Relaxed);
                    shared.alone.store(false, Ordering::Relaxed);
                    drop(guard);
                    closed.fetch_add(1, Ordering::Relaxed);
                    thread::sleep(Duration::from_micros(50));
                }
            });
        }
    });
    let (entered, closed) = (entered.into_inner(), closed.into_inner());
    println!("entered {entered} times, closed {closed} times");
    assert!(entered > 0 && closed > 0);
    assert_eq!(shared.one.into_inner(), closed);
    assert_eq!(gate.members(), 0);
}

#[test]
fn whoever_closed_the_gate_is_alone() {
    stress(Gate::new(), 1.0);
}

#[test]
fn whoever_closed_the_gate_is_alone_without_membarrier() {
    stress(Gate::with(false), 1.0);
}

#[test]
fn closing_gives_up_and_opens_again_while_somebody_stays_inside() {
    let gate = Gate::new();
    let member = gate.join();
    member.enter();
    assert!(
        gate.try_close(Duration::from_millis(5)).unwrap().is_none(),
        "one is inside"
    );
    let other = gate.join();
    other.enter();
    other.leave();
    member.leave();
    let closed = gate.close().unwrap();
    assert!(
        gate.try_close(Duration::from_millis(5)).unwrap().is_none(),
        "another has closed it"
    );
    thread::scope(|scope| {
        let entering = scope.spawn(|| {
            let member = gate.join();
            member.enter();
            member.leave();
        });
        thread::sleep(Duration::from_millis(20));
        assert!(!entering.is_finished());
        drop(closed);
    });
}

#[test]
fn a_thread_that_ends_inside_is_not_waited_for() {
    let gate = Gate::new();
    let member = gate.join();
    member.enter();
    thread::scope(|scope| {
        let closing = scope.spawn(|| drop(gate.close().unwrap()));
        thread::sleep(Duration::from_millis(20));
        assert!(!closing.is_finished());
        drop(member);
    });
}
