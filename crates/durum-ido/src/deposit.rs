//! The code that completes the program's sections without it, which the program carries, and leaves with its heap.

use std::sync::OnceLock;

use durum::Store;

static CODE: OnceLock<&'static [u8]> = OnceLock::new();

/// The program carries this code. Of several the first one counts.
pub(crate) fn carry(code: &'static [u8]) {
    let _ = CODE.set(code);
}

/// Leaves it with the heap, durably. Nothing happens for a program that carries none: what interrupts its sections, it
/// completes itself.
///
/// # Errors
/// Those of the store.
pub(crate) fn leave(store: &Store) -> durum::Result<()> {
    CODE.get().map_or(Ok(()), |code| store.deposit(code))
}
