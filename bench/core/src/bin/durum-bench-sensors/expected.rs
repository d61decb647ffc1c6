//! What nodes find, by a program whose data are in plain vectors.

use crate::sensors::CHANGES;

/// Rounds of a node: enough that most of its variables have changed.
const ROUNDS_OF_VARIABLES: u64 = 2;

/// What is to be done, and what has to come out.
#[derive(Debug)]
pub(crate) struct Expected {
    pub(crate) nodes: u64,
    /// Of each node.
    pub(crate) variables: u64,
    /// Of each node.
    pub(crate) rounds: u64,
    pub(crate) answer: Answer,
}

/// What all variables are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Answer {
    pub(crate) variables: u64,
    /// Of their values.
    pub(crate) sum: u64,
    /// Of nodes, ids, values and numbers of changes, in the order of the list.
    pub(crate) digest: u64,
}

impl Answer {
    /// The next one of the list.
    pub(crate) fn add(&mut self, node: u64, id: u64, value: u64, changes: u64) {
        self.variables += 1;
        self.sum = self.sum.wrapping_add(value);
        for word in [node, id, value, changes] {
            self.digest = (self.digest ^ word).wrapping_mul(0x9E37_79B9_7F4A_7C15);
        }
    }
}

impl Expected {
    pub(crate) fn new(nodes: u64, variables: u64) -> Expected {
        let rounds = ROUNDS_OF_VARIABLES * variables / CHANGES;
        let mut answer = Answer::default();
        for node in 1..=nodes {
            // Each variable with the number of its last change: those that never changed, behind all others.
            let mut found: Vec<(u64, u64, u64, u64)> =
                (0..variables).map(|id| (0, id, 0, 0)).collect();
            for number in CHANGES..CHANGES * (rounds + 1) {
                let reading = (node << 32 | number).wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 16;
                let id = reading % variables;
                let variable = &mut found[id as usize];
                *variable = (number, id, reading, variable.3 + 1);
            }
            // Stable: the others stay in the order of their ids.
            found.sort_by_key(|(number, ..)| std::cmp::Reverse(*number));
            for (_, id, value, changes) in found {
                answer.add(node, id, value, changes);
            }
        }
        Expected {
            nodes,
            variables,
            rounds,
            answer,
        }
    }
}
