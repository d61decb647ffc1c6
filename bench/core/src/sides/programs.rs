//! The programs of examples/rust, as they are there.
//!
//! A pool type has one open pool at a time, and all sides have theirs open together: so each engine has pool types of
//! its own, of the same text.

use durum::Engine;

#[path = "programs/on_engine.rs"]
mod on_hybrid;
#[allow(clippy::duplicate_mod, reason = "pool types of its own")]
#[path = "programs/on_engine.rs"]
mod on_shadow;

/// The programs on Hybrid.
pub(super) fn hybrid() -> on_hybrid::Programs {
    on_hybrid::Programs {
        name: "typed_hybrid",
        engine: Engine::Hybrid,
    }
}

/// The programs on Shadow.
pub(super) fn shadow() -> on_shadow::Programs {
    on_shadow::Programs {
        name: "typed_shadow",
        engine: Engine::Shadow,
    }
}
