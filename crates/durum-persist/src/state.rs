//! The one word that every operation of [`crate::line`] reads first.
//!
//! Bits 0..8 are the write-back instruction; any bit above sends the operation into its cold path.
//! So the product pays one relaxed load and one predicted branch for detection, recording and emulation together.

use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

/// The write-back instruction is not known yet.
pub(crate) const UNDETECTED: u32 = 1 << 8;
/// A recorder is attached.
pub(crate) const RECORDING: u32 = 1 << 9;
/// Write-back, fence and sync are slowed down to emulate a medium.
pub(crate) const DELAYED: u32 = 1 << 10;
/// A thread is to be held up at a fence ([`crate::inject::hold`]).
pub(crate) const HELD: u32 = 1 << 11;
/// Values from here on have at least one of the bits above.
pub(crate) const HOOKED: u32 = UNDETECTED;

pub(crate) static STATE: AtomicU32 = AtomicU32::new(UNDETECTED);

/// Reads the state. Relaxed: a thread that reads a stale value behaves as if it had come a moment earlier.
#[inline(always)]
pub(crate) fn load() -> u32 {
    STATE.load(Relaxed)
}

pub(crate) fn set(bit: u32, on: bool) {
    if on {
        STATE.fetch_or(bit, Relaxed);
    } else {
        STATE.fetch_and(!bit, Relaxed);
    }
}

/// Replaces the instruction code and clears [`UNDETECTED`].
pub(crate) fn set_instruction(code: u8) {
    let replace = |state| Some(state & !(0xff | UNDETECTED) | u32::from(code));
    // The closure never refuses, so this cannot fail.
    let _ = STATE.fetch_update(Relaxed, Relaxed, replace);
}
