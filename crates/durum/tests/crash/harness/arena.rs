//! Address ranges. An image opens at the addresses of its original, so tests that run at the same time need ranges of
//! their own.

use std::sync::{Mutex, MutexGuard, PoisonError, TryLockError};

const BASES: [u64; 3] = [0x2000_0000_0000, 0x2400_0000_0000, 0x2800_0000_0000];
static FREE: [Mutex<()>; BASES.len()] = [const { Mutex::new(()) }; BASES.len()];

/// The right to open stores at one base, one store at a time.
pub struct Arena {
    pub base: u64,
    _held: MutexGuard<'static, ()>,
}

impl Arena {
    /// Waits for a free range. To be had before a recorder, of which there is one, too.
    pub fn take() -> Arena {
        for (base, free) in BASES.iter().zip(&FREE) {
            match free.try_lock() {
                Ok(held) => {
                    return Arena {
                        base: *base,
                        _held: held,
                    };
                }
                // The test that held it has failed, and its store is closed.
                Err(TryLockError::Poisoned(held)) => {
                    return Arena {
                        base: *base,
                        _held: held.into_inner(),
                    };
                }
                Err(TryLockError::WouldBlock) => {}
            }
        }
        Arena {
            base: BASES[0],
            _held: FREE[0].lock().unwrap_or_else(PoisonError::into_inner),
        }
    }
}
