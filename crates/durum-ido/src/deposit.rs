//! The code that completes the program's sections without it, which the program carries, and leaves with its heap.

use std::sync::OnceLock;

use durum::Store;
use durum_format::code::CODE_MAX;
use durum_format::code::places::{PLACES_MAX, Places};

use crate::{code, program};

/// The code, and what leaves it.
static CARRIED: OnceLock<(&[u8], Leave)> = OnceLock::new();

type Leave = fn(&Store, &[u8]) -> durum::Result<()>;

/// The program carries this code. Of several the first one counts; one that nobody would run does not.
pub(crate) fn carry(code: &'static [u8]) {
    if code.len() as u64 > CODE_MAX {
        return;
    }
    // Code that completes sections carries none, and so has nothing of what it takes to leave it.
    let _ = CARRIED.set((code, leave_with_places));
}

/// Leaves it with the heap, durably, and tells where sections of the program go on. Nothing happens for a program that
/// carries none: what interrupts its sections, it completes itself.
///
/// # Errors
/// Those of the store.
pub(crate) fn leave(store: &Store) -> durum::Result<()> {
    CARRIED
        .get()
        .map_or(Ok(()), |(code, leave)| leave(store, code))
}

fn leave_with_places(store: &Store, code: &[u8]) -> durum::Result<()> {
    let mut places = code::with_functions(|functions| {
        let (program, build) = (program::name(), program::build());
        let places = Places {
            program: &program,
            build: &build,
            functions,
        };
        places.encode()
    });
    // It is for messages, which can do without.
    if places.len() as u64 > PLACES_MAX {
        places.clear();
    }
    store.deposit(code, &places)
}
