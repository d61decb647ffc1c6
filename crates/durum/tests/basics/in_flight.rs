//! Commits in two halves: who pays the fence, and when.

use durum::{Engine, InFlight, Pool, PoolOptions, StoreOptions, thread_counters};

use crate::fixture::Fixture;

fn fixture(engine: Engine) -> Fixture {
    Fixture::with(StoreOptions::new(), PoolOptions::new().engine(engine))
}

fn fly(pool: &Pool, place: *mut u64, value: u64) -> InFlight<'_> {
    let begun = pool.transaction_in_flight(|tx| unsafe {
        tx.add(place)?;
        place.write(value);
        Ok::<_, durum::Error>(())
    });
    begun.unwrap().1
}

fn fences(work: impl FnOnce()) -> u64 {
    let before = thread_counters().fences;
    work();
    thread_counters().fences - before
}

#[test]
fn the_next_commit_or_who_waits_pays_the_fence() {
    let fixture = fixture(Engine::Shadow);
    let (pool, root) = (fixture.pool(), &raw mut *fixture.root());
    let cell = |at: usize| unsafe { &raw mut (*root).table[at] };
    fly(pool, cell(0), 1).wait().unwrap();
    let (mut first, mut second) = (None, None);
    assert_eq!(fences(|| first = Some(fly(pool, cell(0), 2))), 0);
    assert_eq!(fences(|| second = Some(fly(pool, cell(1), 3))), 1);
    assert_eq!(
        fences(|| first.take().unwrap().wait().unwrap()),
        0,
        "it has landed"
    );
    assert_eq!(fences(|| second.take().unwrap().wait().unwrap()), 1);
    // A durable one, and `sync`, land what is in flight before.
    let third = fly(pool, cell(0), 4);
    let durable = fences(|| {
        let changed = pool.transaction(|tx| unsafe {
            tx.add(cell(1))?;
            cell(1).write(5);
            Ok::<_, durum::Error>(())
        });
        changed.unwrap();
    });
    assert_eq!(durable, 2);
    assert_eq!(fences(|| third.wait().unwrap()), 0);
    let fourth = fly(pool, cell(0), 6);
    assert_eq!(fences(|| pool.sync().unwrap()), 1);
    assert_eq!(fences(|| fourth.wait().unwrap()), 0);
    // One that changes nothing, and one that rolls back, have nothing to wait for.
    assert_eq!(fences(|| fly(pool, cell(0), 6).wait().unwrap()), 0);
    let refused = pool.transaction_in_flight(|tx| tx.abort::<()>());
    assert!(refused.is_err());
}

/// What comes before one that changes nothing is durable with it all the same.
#[test]
fn one_that_changes_nothing_makes_durable_what_came_before() {
    let fixture = fixture(Engine::Shadow);
    let (pool, root) = (fixture.pool(), &raw mut *fixture.root());
    let cell = unsafe { &raw mut (*root).table[0] };
    fly(pool, cell, 1).wait().unwrap();
    let nothing = |tx: &durum::Tx| {
        let _ = tx;
        Ok::<_, durum::Error>(())
    };
    let the_same = |tx: &durum::Tx| unsafe {
        tx.add(cell)?;
        Ok::<_, durum::Error>(())
    };
    for (round, expected) in [(0, 1), (1, 0)] {
        // Only the first round has something in flight.
        let begin = |value| (round == 0).then(|| drop(fly(pool, cell, value)));
        begin(2);
        assert_eq!(fences(|| pool.transaction(nothing).unwrap()), expected);
        begin(3);
        assert_eq!(fences(|| pool.transaction(the_same).unwrap()), expected);
        begin(4);
        let mut last = None;
        assert_eq!(
            fences(|| last = Some(pool.transaction_in_flight(nothing).unwrap().1)),
            0
        );
        assert_eq!(fences(|| last.take().unwrap().wait().unwrap()), expected);
        begin(5);
        last = Some(pool.transaction_in_flight(the_same).unwrap().1);
        assert_eq!(fences(|| last.take().unwrap().wait().unwrap()), expected);
    }
    // A buffered one waits for nothing.
    drop(fly(pool, cell, 6));
    let buffered = || pool.transaction_with(durum::Durability::Buffered, nothing);
    assert_eq!(fences(|| buffered().unwrap()), 0);
    assert_eq!(fences(|| pool.sync().unwrap()), 1);
}

/// As a future it is ready at once, and durable then.
#[test]
fn a_future_of_one_is_ready_when_it_is_durable() {
    let fixture = fixture(Engine::Shadow);
    let place = &raw mut fixture.root().table[0];
    let mut context = std::task::Context::from_waker(std::task::Waker::noop());
    let mut flight = std::pin::pin!(fly(fixture.pool(), place, 7));
    let fence = fences(|| {
        let polled = std::future::Future::poll(flight.as_mut(), &mut context);
        assert!(matches!(polled, std::task::Poll::Ready(Ok(()))));
    });
    assert_eq!(fence, 1);
}

fn write(pool: &Pool, place: *mut u64, value: u64) {
    let written = pool.transaction(|tx| unsafe {
        tx.add(place)?;
        place.write(value);
        Ok::<_, durum::Error>(())
    });
    written.unwrap();
}

/// Calls `check` with a Shadow pool, two words there, a number, and a transaction on a pool of another engine of the
/// same store: each kind of them on each engine.
fn with_another_engine(check: impl Fn(&Pool, [*mut u64; 2], u64, &dyn Fn())) {
    for engine in [Engine::Hybrid, Engine::Twin] {
        let fixture = fixture(Engine::Shadow);
        let store = fixture.store.as_ref().unwrap();
        let options = PoolOptions::new().engine(engine);
        let other = store.create_pool("other", options).unwrap();
        let place = other.root::<u64>().unwrap();
        let nothing = |_: &durum::Tx| Ok::<_, durum::Error>(());
        let all: [&dyn Fn(); 4] = [
            &|| write(&other, place, unsafe { place.read() } + 1),
            &|| other.transaction(nothing).unwrap(),
            &|| {
                let flight = fly(&other, place, unsafe { place.read() } + 1);
                flight.wait().unwrap();
            },
            &|| {
                let (_, flight) = other.transaction_in_flight(nothing).unwrap();
                flight.wait().unwrap();
            },
        ];
        let words = [0, 1].map(|at| &raw mut fixture.root().table[at]);
        for (number, on_other) in (1..).zip(all) {
            check(fixture.pool(), words, number, on_other);
        }
    }
}

#[test]
fn what_is_in_flight_is_durable_with_a_later_transaction_on_another_engine() {
    with_another_engine(|pool, [word, _], number, on_other| {
        let flight = fly(pool, word, number);
        on_other();
        assert_eq!(fences(|| flight.wait().unwrap()), 0, "{number}");
    });
}

/// A word that stays as it is has the thread remember the pool, and the next transaction go the plain way.
#[test]
fn nothing_is_in_flight_when_words_are_committed_after_one_on_another_engine() {
    with_another_engine(|pool, words, number, on_other| {
        drop(fly(pool, words[0], number));
        on_other();
        write(pool, words[0], number);
        assert_eq!(fences(|| write(pool, words[1], number)), 1, "{number}");
    });
}

#[test]
fn beside_other_threads_and_on_other_engines_it_is_durable_at_once() {
    for engine in [Engine::Hybrid, Engine::Twin] {
        let fixture = fixture(engine);
        let place = &raw mut fixture.root().table[0];
        fly(fixture.pool(), place, 1).wait().unwrap();
        let mut flight = None;
        assert!(fences(|| flight = Some(fly(fixture.pool(), place, 2))) > 0);
        assert_eq!(
            fences(|| flight.take().unwrap().wait().unwrap()),
            0,
            "{engine:?}"
        );
    }
    let fixture = fixture(Engine::Shadow);
    let pool = fixture.pool();
    let places = [0, 1].map(|at| (&raw mut fixture.root().table[at]).addr());
    let place = |at: usize| std::ptr::with_exposed_provenance_mut::<u64>(places[at]);
    let before = fly(pool, place(0), 3);
    std::thread::scope(|scope| {
        let (comes, goes) = std::sync::mpsc::channel::<()>();
        let (has_come, waits) = std::sync::mpsc::channel::<()>();
        let other = scope.spawn(move || {
            fly(pool, std::ptr::with_exposed_provenance_mut(places[1]), 4)
                .wait()
                .unwrap();
            has_come.send(()).unwrap();
            let _ = goes.recv();
        });
        waits.recv().unwrap();
        assert_eq!(
            fences(|| before.wait().unwrap()),
            0,
            "who came has landed it"
        );
        assert_eq!(fences(|| fly(pool, place(0), 5).wait().unwrap()), 1);
        drop(comes);
        // Until what it keeps for the store has gone with it.
        other.join().unwrap();
    });
    // Alone again.
    let mut flight = None;
    assert_eq!(fences(|| flight = Some(fly(pool, place(0), 6))), 0);
    flight.take().unwrap().wait().unwrap();
}
