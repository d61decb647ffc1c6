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

pub(crate) use bias::{Bias, Busy};

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Half {
    Light,
    Heavy,
}

// The system's: all threads of a model run in one of the system's, and those of other tests do not.
thread_local!(static LEFT_OUT: Cell<Option<Half>> = const { Cell::new(None) });

fn half(half: Half) {
    if LEFT_OUT.get() != Some(half) {
        fence(Ordering::SeqCst);
    }
}

pub(crate) fn is_there() -> bool {
    true
}

pub(crate) fn can_fence_all() -> bool {
    true
}

pub(crate) fn light_fence() {
    half(Half::Light);
}

pub(crate) fn fence_all() {
    half(Half::Heavy);
}

pub(crate) fn heavy_fence() -> Result<(), crate::error::Error> {
    half(Half::Heavy);
    Ok(())
}

/// The canaries: with either half left out the model finds that two use at a time what one has to use alone.
pub(crate) fn fails_without_either_half(model: impl Fn() + RefUnwindSafe) {
    for half in [Half::Light, Half::Heavy] {
        LEFT_OUT.set(Some(half));
        let outcome = catch_unwind(&model);
        LEFT_OUT.set(None);
        let panic = outcome.expect_err(&format!("nobody misses the fence: {half:?}"));
        let message = panic.downcast_ref::<String>().map(String::as_str);
        let message = message.or(panic.downcast_ref::<&str>().copied());
        assert!(
            message.is_some_and(|message| message.starts_with("Causality violation")),
            "{half:?}: it fails for another reason: {message:?}"
        );
    }
}
