//! Threads that take turns: the order of their operations is part of the test, not of the scheduler.

use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Condvar, Mutex};
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

    fn end(&self, lane: usize) {
        if let Ok(mut state) = self.state.lock() {
            state.1[lane] = true;
        }
        self.changed.notify_all();
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
                script(lane, number, turns);
                turns.end(number);
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
