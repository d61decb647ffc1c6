//! The locks that interrupted sections hold, while these are being completed.
//!
//! A record says which lock, and not which kind it is of. So whoever holds one holds it here, and nothing is known in
//! the lock itself; who wants to take it in the usual way looks here first.
//!
//! A record does not say either whether readers have the lock: they do where several sections hold it. Where one
//! does, it counts as its alone, which keeps out readers that could have been let in.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Condvar, Mutex};

use durum::primitive::{locked, waited, waited_for};

use super::deadline::Deadline;
use crate::held::Mode;

/// How many sections hold each lock, and in which way.
static CLAIMS: Mutex<BTreeMap<usize, (u32, Mode)>> = Mutex::new(BTreeMap::new());
static CHANGED: Condvar = Condvar::new();
/// There may be some.
static ANY: AtomicBool = AtomicBool::new(false);

/// Sections hold these locks, each as many as it is named.
pub(crate) fn enter(locks: impl Iterator<Item = usize>) {
    let mut claims = locked(&CLAIMS);
    for address in locks {
        let claim = claims.entry(address).or_insert((0, Mode::Exclusive));
        claim.0 += 1;
        if claim.0 > 1 {
            claim.1 = Mode::Shared;
        }
    }
    ANY.store(!claims.is_empty(), Ordering::Release);
}

/// How a lock is held that sections hold.
pub(crate) fn mode(address: usize) -> Mode {
    let claims = locked(&CLAIMS);
    claims
        .get(&address)
        .map_or(Mode::Exclusive, |claim| claim.1)
}

/// A section lets a lock go.
pub(crate) fn release(address: usize) {
    let mut claims = locked(&CLAIMS);
    if let Some(claim) = claims.get_mut(&address) {
        claim.0 -= 1;
        if claim.0 == 0 {
            claims.remove(&address);
        }
    }
    ANY.store(!claims.is_empty(), Ordering::Release);
    CHANGED.notify_all();
}

/// Whether no section is in the way of taking a lock.
#[inline]
pub(super) fn is_free(address: usize, wanted: Mode) -> bool {
    !ANY.load(Ordering::Acquire) || !is_in_the_way(&locked(&CLAIMS), address, wanted)
}

/// Waits until none is. Whether that was before the deadline.
#[inline]
pub(super) fn wait(address: usize, wanted: Mode, deadline: Option<&Deadline>) -> bool {
    !ANY.load(Ordering::Acquire) || wait_slowly(address, wanted, deadline)
}

#[cold]
fn wait_slowly(address: usize, wanted: Mode, deadline: Option<&Deadline>) -> bool {
    let mut claims = locked(&CLAIMS);
    while is_in_the_way(&claims, address, wanted) {
        claims = match deadline.map(Deadline::left) {
            None => waited(&CHANGED, claims),
            Some(Some(left)) => waited_for(&CHANGED, claims, left),
            Some(None) => return false,
        };
    }
    true
}

fn is_in_the_way(claims: &BTreeMap<usize, (u32, Mode)>, address: usize, wanted: Mode) -> bool {
    let is_free = |(_, mode): &(u32, Mode)| *mode == Mode::Shared && wanted == Mode::Shared;
    claims.get(&address).is_some_and(|claim| !is_free(claim))
}
