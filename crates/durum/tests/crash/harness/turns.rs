//! Threads that take turns: the order of their operations is part of the test, not of the scheduler.

use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Barrier, Condvar, Mutex};
use std::thread;

use durum_persist::record;

use super::campaign::World;
use super::lane::Lane;

/// Whose turn it is.
pub struct Turns {
    order: Vec<usize>,
    state: Mutex<(usize, Vec<bool>)>,
    changed: Condvar,
}

impl Turns {
    fn new(order: &[usize], lanes: usize) -> Turns {
        Turns {
            order: order.to_vec(),
            state: Mutex::new((0, vec![false; lanes])),
            changed: Condvar::new(),
        }
    }

    /// Runs `body` when it is the lane's turn. After the last turn of the order everybody is free to go on.
    pub fn step<R>(&self, lane: usize, body: impl FnOnce() -> R) -> R {
        let mut state = self.state.lock().expect("no thread panicked");
        loop {
            let (at, ended) = &mut *state;
            while self.order.get(*at).is_some_and(|lane| ended[*lane]) {
                *at += 1;
            }
            if self.order.get(*at).is_none_or(|next| *next == lane) {
                break;
            }
            state = self.changed.wait(state).expect("no thread panicked");
        }
        // The lock is held meanwhile: nobody else runs.
        let result = body();
        state.0 += 1;
        self.changed.notify_all();
        result
    }

    /// Runs what has the lane's turns. It has no more when this returns, or panics: the others would wait for ever.
    fn take_part(&self, lane: usize, body: impl FnOnce()) {
        let _ends = Ends(self, lane);
        body();
    }

    fn end(&self, lane: usize) {
        if let Ok(mut state) = self.state.lock() {
            state.1[lane] = true;
        }
        self.changed.notify_all();
    }
}

/// The lane has no more turns when this is dropped.
struct Ends<'t>(&'t Turns, usize);

impl Drop for Ends<'_> {
    fn drop(&mut self) {
        self.0.end(self.1);
    }
}

/// Runs `script` for each lane in a thread of its own. Each calls [`Turns::step`] for what shall happen in `order`.
pub fn in_turns(
    world: &mut World,
    order: &[usize],
    script: impl Fn(&mut Lane, usize, &Turns) + Sync,
) {
    let turns = Turns::new(order, world.lanes.len());
    thread::scope(|scope| {
        for (number, lane) in world.lanes.iter_mut().enumerate() {
            let (turns, script) = (&turns, &script);
            scope.spawn(move || {
                record::join_thread();
                turns.take_part(number, || script(lane, number, turns));
            });
        }
    });
}

type Work = Box<dyn FnOnce(&mut Lane) + Send>;

/// A thread with a log and slabs of its own that works on the first lane when asked to.
pub struct Helper {
    work: Option<Sender<(Lane, Work)>>,
    done: Receiver<Lane>,
    thread: Option<thread::JoinHandle<()>>,
}

impl Helper {
    pub fn new() -> Helper {
        let (work, inbox) = channel::<(Lane, Work)>();
        let (outbox, done) = channel();
        let thread = thread::spawn(move || {
            for (mut lane, work) in inbox {
                record::join_thread();
                work(&mut lane);
                outbox.send(lane).expect("the test waits for its lane");
            }
        });
        Helper {
            work: Some(work),
            done,
            thread: Some(thread),
        }
    }

    /// Runs `work` on the helper's thread.
    pub fn run(&self, world: &mut World, work: impl FnOnce(&mut Lane) + Send + 'static) {
        let lane = world.lanes.remove(0);
        let sender = self.work.as_ref().expect("the helper has not ended");
        sender
            .send((lane, Box::new(work)))
            .expect("the helper lives");
        let lane = self.done.recv().expect("the work did not panic");
        world.lanes.insert(0, lane);
    }
}

impl Drop for Helper {
    fn drop(&mut self) {
        self.work = None;
        if let Some(thread) = self.thread.take() {
            // A panic in it has failed the test already.
            let _ = thread.join();
        }
    }
}

/// Who waits for its turn is told that there is none: a test that fails ends.
#[test]
fn a_panic_in_a_turn_ends_all_of_them() {
    for panics_in_its_turn in [true, false] {
        let turns = Turns::new(&[0, 1, 0, 1], 2);
        let (turns, comes) = (&turns, &Barrier::new(2));
        let first = move || {
            turns.step(0, || ());
            comes.wait();
            if panics_in_its_turn {
                turns.step(0, || panic!("in its turn"));
            }
            panic!("between two");
        };
        let second = move || {
            turns.step(1, || ());
            comes.wait();
            turns.step(1, || ());
        };
        thread::scope(|scope| {
            let first = scope.spawn(move || turns.take_part(0, first));
            let second = scope.spawn(move || turns.take_part(1, second));
            assert!(first.join().is_err());
            assert_eq!(second.join().is_err(), panics_in_its_turn);
        });
    }
}
