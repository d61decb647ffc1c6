//! All runs of two light sides and a heavy one, on processors that keep stores back: the least that a gate or a bias
//! makes of the fence. A light side that has not seen the shared word goes inside, the heavy one waits until it sees
//! nobody inside, and never is it inside beside another.
//!
//! A membarrier is modelled as what it does: at one moment, between any two steps of the others, all their stores
//! become visible. loom does not know such a thing. Its models take one fence on each side instead, which is what is
//! shown here to follow.

use std::collections::HashSet;

/// 0 and 1: the own words of the light sides; 2: the shared word.
type Memory = [bool; 3];

/// What makes the heavy side see the light ones, or be seen.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Fences {
    Both,
    /// The compiler may read the shared word before it stores to the own one.
    NoLight,
    /// The heavy side makes a fence in its own thread only.
    NoHeavy,
}

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
struct Thread {
    step: u8,
    /// Stores that others do not see yet, the first one first.
    kept: [Option<(usize, bool)>; 2],
    inside: bool,
}

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
struct Run {
    memory: Memory,
    /// The last one is the heavy side.
    threads: [Thread; 3],
}

const HEAVY: usize = 2;

impl Run {
    fn store(&mut self, thread: usize, place: usize, value: bool) -> bool {
        let kept = &mut self.threads[thread].kept;
        match kept.iter().position(Option::is_none) {
            Some(free) => {
                kept[free] = Some((place, value));
                true
            }
            None => false,
        }
    }

    fn load(&self, thread: usize, place: usize) -> bool {
        let mut kept = self.threads[thread].kept.iter().flatten();
        let own = kept.rfind(|(at, _)| *at == place);
        own.map_or(self.memory[place], |(_, value)| *value)
    }

    fn make_visible(&mut self, thread: usize) -> bool {
        let kept = &mut self.threads[thread].kept;
        let Some((place, value)) = kept[0] else {
            return false;
        };
        *kept = [kept[1], None];
        self.memory[place] = value;
        true
    }

    fn go(&mut self, thread: usize, is_inside: bool, step: u8) -> Option<u8> {
        self.threads[thread].inside = is_inside;
        Some(step)
    }

    /// One step of a thread; false if it cannot go on just now.
    fn advance(&mut self, thread: usize, fences: Fences) -> bool {
        let step = self.threads[thread].step;
        let next = match thread {
            HEAVY => self.heavy(step, fences),
            _ if fences == Fences::NoLight => self.turned(thread, step),
            _ => self.light(thread, step),
        };
        if let Some(next) = next {
            self.threads[thread].step = next;
        }
        next.is_some()
    }

    fn light(&mut self, thread: usize, step: u8) -> Option<u8> {
        match step {
            0 => self.store(thread, thread, true).then_some(1),
            1 if self.load(thread, HEAVY) => Some(3),
            1 => self.go(thread, true, 2),
            2 => {
                self.threads[thread].inside = false;
                self.store(thread, thread, false).then_some(0)
            }
            3 => self.store(thread, thread, false).then_some(0),
            _ => None,
        }
    }

    /// The light side as a compiler may turn it round.
    fn turned(&mut self, thread: usize, step: u8) -> Option<u8> {
        match step {
            0 => (!self.load(thread, HEAVY)).then_some(1),
            1 if self.store(thread, thread, true) => self.go(thread, true, 2),
            1 => None,
            _ => self.light(thread, step),
        }
    }

    fn heavy(&mut self, step: u8, fences: Fences) -> Option<u8> {
        match step {
            0 => self.store(HEAVY, HEAVY, true).then_some(1),
            1 => {
                for other in 0..3 {
                    // Its own fence it makes in any case.
                    while (fences != Fences::NoHeavy || other == HEAVY) && self.make_visible(other)
                    {
                    }
                }
                Some(2)
            }
            2 | 3 if self.load(HEAVY, usize::from(step) - 2) => None,
            2 | 3 => self.go(HEAVY, step == 3, step + 1),
            4 => {
                self.threads[HEAVY].inside = false;
                self.store(HEAVY, HEAVY, false).then_some(0)
            }
            _ => None,
        }
    }
}

/// Whether the heavy side was always alone inside, and how many states there were.
fn explore(fences: Fences) -> (bool, usize) {
    let at_rest = Thread {
        step: 0,
        kept: [None; 2],
        inside: false,
    };
    let mut open = vec![Run {
        memory: [false; 3],
        threads: [at_rest; 3],
    }];
    let mut seen = HashSet::new();
    let mut is_alone = true;
    while let Some(run) = open.pop() {
        if !seen.insert(run) {
            continue;
        }
        let inside = run.threads.map(|thread| thread.inside);
        is_alone &= !(inside[HEAVY] && (inside[0] || inside[1]));
        for thread in 0..3 {
            let mut next = run;
            if next.advance(thread, fences) {
                open.push(next);
            }
            let mut next = run;
            if next.make_visible(thread) {
                open.push(next);
            }
        }
    }
    (is_alone, seen.len())
}

#[test]
fn no_run_lets_both_sides_in() {
    let (is_alone, states) = explore(Fences::Both);
    println!("{states} states");
    assert!(is_alone && states > 500);
}

#[test]
fn without_either_half_there_is_a_run_that_does() {
    for fences in [Fences::NoLight, Fences::NoHeavy] {
        assert!(!explore(fences).0, "{fences:?}");
    }
}
