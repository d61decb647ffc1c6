//! Which copy of a pool recovery takes: the steps of docs/format/twin.md, under Recovery.

use super::{Stage, State};

/// One of the two copies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Copy {
    /// The one that programs work in.
    Main,
    /// The one behind it.
    Back,
}

/// Which copies are whole, as far as state and seals tell.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Whole {
    /// They are the same.
    Both,
    /// The other one has to become what this one is.
    One(Copy),
    /// No crash does that: the data are damaged.
    Neither,
}

/// Decides. `holds` tells whether a copy holds the seal of a transaction with this number; it is asked for no more than
/// is needed, because it reads the copy.
///
/// # Errors
/// What `holds` returns.
pub fn whole_copy<E>(
    state: State,
    mut holds: impl FnMut(Copy, u64) -> Result<bool, E>,
) -> Result<Whole, E> {
    let generation = state.generation;
    match state.stage {
        Stage::Idle => return Ok(Whole::Both),
        Stage::Copying => return Ok(Whole::One(Copy::Main)),
        Stage::Changing => {}
    }
    // The transaction has committed if all that it left is there.
    if holds(Copy::Main, generation)? {
        return Ok(Whole::One(Copy::Main));
    }
    if state.is_settled {
        return Ok(Whole::One(Copy::Back));
    }
    // The state and the last lines of back became durable together, or not. If not, this transaction has not begun to
    // change main.
    let Some(before) = generation.checked_sub(1) else {
        return Ok(Whole::Neither);
    };
    for copy in [Copy::Back, Copy::Main] {
        if holds(copy, before)? {
            return Ok(Whole::One(copy));
        }
    }
    Ok(Whole::Neither)
}
