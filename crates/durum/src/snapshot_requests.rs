//! Pools that others want to see, one after the other, however often they ask.

use std::sync::Mutex;

use durum_service::Asked;

use crate::primitive::locked;

#[derive(Debug, Default)]
pub(crate) struct AllAsked(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    /// Of each pool the last one: whoever was before has gone.
    waiting: Vec<Asked>,
    /// A thread goes through them.
    is_attended: bool,
}

impl AllAsked {
    /// Whether a thread has to begin that asks for the [next](Self::next) until there is none.
    pub(crate) fn add(&self, asked: Asked) -> bool {
        let mut state = locked(&self.0);
        state.waiting.retain(|before| before.pool != asked.pool);
        state.waiting.push(asked);
        !std::mem::replace(&mut state.is_attended, true)
    }

    /// With none the thread ends.
    pub(crate) fn next(&self) -> Option<Asked> {
        let mut state = locked(&self.0);
        state.is_attended = !state.waiting.is_empty();
        state.is_attended.then(|| state.waiting.remove(0))
    }

    /// There is no such thread.
    pub(crate) fn forget(&self) {
        *locked(&self.0) = State::default();
    }
}

#[cfg(test)]
mod tests {
    use durum_format::Uuid;

    use super::*;

    fn asked(showing: u8, pool: u8) -> Asked {
        Asked {
            showing: Uuid::from_random([showing; 16]),
            pool: Uuid::from_random([pool; 16]),
        }
    }

    #[test]
    fn one_thread_goes_through_the_last_of_each_pool() {
        let all = AllAsked::default();
        assert!(all.add(asked(1, 1)));
        assert!(!all.add(asked(2, 2)));
        assert!(!all.add(asked(3, 1)));
        assert_eq!(all.next(), Some(asked(2, 2)));
        assert!(!all.add(asked(4, 3)));
        assert_eq!(all.next(), Some(asked(3, 1)));
        assert_eq!(all.next(), Some(asked(4, 3)));
        assert_eq!(all.next(), None);
        assert!(all.add(asked(5, 1)));
        all.forget();
        assert!(all.add(asked(6, 1)));
        assert_eq!(all.next(), Some(asked(6, 1)));
    }
}
