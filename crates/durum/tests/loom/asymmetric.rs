//! The asymmetric fence under the names of `src/asymmetric.rs`, for the models of all crates: one fence on each side.
//! That a membarrier gives that much is what `src/asymmetric/model.rs` shows.
//!
//! Canaries leave either half out, and the model has to notice.
#![allow(unused_imports, dead_code, reason = "no crate's models need all of it")]

use std::cell::Cell;
use std::panic::{RefUnwindSafe, catch_unwind};

use crate::primitive::{Ordering, fence};

#[path = "../../src/asymmetric/bias.rs"]
mod bias;
#[path = "../../src/asymmetric/members.rs"]
pub(crate) mod members;
#[path = "../../src/asymmetric/owner.rs"]
mod owner;
#[path = "../../src/asymmetric/read_indicator.rs"]
mod read_indicator;
#[path = "../../src/asymmetric/readers_writer.rs"]
mod readers_writer;

pub(crate) use bias::{Bias, Busy, Inside};
pub(crate) use owner::{Owner, TURNS_MAX, TURNS_MIN, Turns, own_word};
pub(crate) use readers_writer::{Place, ReadersWriter};

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Missing {
    Nothing,
    Light,
    Heavy,
    /// The system has no membarrier, and says so.
    All,
}

// The system's: all threads of a model run in one of the system's, and those of other tests do not.
thread_local!(static MISSING: Cell<Missing> = const { Cell::new(Missing::Nothing) });

pub(crate) fn is_there() -> bool {
    MISSING.get() != Missing::All
}

pub(crate) fn can_fence_all() -> bool {
    is_there()
}

pub(crate) fn light_fence() {
    if !matches!(MISSING.get(), Missing::Light | Missing::All) {
        fence(Ordering::SeqCst);
    }
}

pub(crate) fn fence_all() {
    assert!(is_there(), "a membarrier where there is none");
    if MISSING.get() != Missing::Heavy {
        fence(Ordering::SeqCst);
    }
}

pub(crate) fn heavy_fence() -> Result<(), crate::error::Error> {
    fence_all();
    Ok(())
}

/// Runs a model on a system that has no membarrier.
pub(crate) fn without_membarrier(model: impl FnOnce()) {
    MISSING.set(Missing::All);
    model();
    MISSING.set(Missing::Nothing);
}

/// The canaries: with either half left out the model finds that two use at a time what one has to use alone.
pub(crate) fn fails_without_either_half(model: impl Fn() + RefUnwindSafe) {
    fails_so_without_either_half(model, "Causality violation");
}

/// The same where the model finds something else, and says it in a message that begins so.
pub(crate) fn fails_so_without_either_half(model: impl Fn() + RefUnwindSafe, begins: &str) {
    for half in [Missing::Light, Missing::Heavy] {
        MISSING.set(half);
        let outcome = catch_unwind(&model);
        MISSING.set(Missing::Nothing);
        let panic = outcome.expect_err(&format!("nobody misses the fence: {half:?}"));
        let message = panic.downcast_ref::<String>().map(String::as_str);
        let message = message.or(panic.downcast_ref::<&str>().copied());
        assert!(
            message.is_some_and(|message| message.starts_with(begins)),
            "{half:?}: it fails for another reason: {message:?}"
        );
    }
}
