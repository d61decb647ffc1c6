//! Pools that are open because an access led there ([`Follow`]).

use std::fmt;
use std::ops::Range;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use super::engine::PoolInner;
use super::store::StoreInner;
use super::tie::{Tie, Tied};
use crate::addresses::Refused;
use crate::deferred_events::put_off;
use crate::demand::{self, Follow, Opens};
use crate::error::Result;
use crate::fault::forked;
use crate::primitive::locked;
use crate::space::entry_at;

/// So long the last handle waits for threads that are just ending. They take microseconds, if they run.
const LEAVING_WAIT: Duration = Duration::from_secs(5);

/// Opens a pool of a store as that way to follow says.
type OpenPool = fn(&Arc<StoreInner>, &str, Follow) -> Result<Arc<PoolInner>>;

/// A store's own hand on the pools that it has open.
#[derive(Debug)]
struct Hand(Arc<Followed>);

/// What a store has open because an access led there.
struct Followed {
    addresses: Range<usize>,
    follow: Follow,
    open: OpenPool,
    /// Held while a pool is opened; `None` once none is any more. Whoever opens one keeps the store open no longer than
    /// that, so that the last handle never goes on the thread that works for stopped ones.
    store: Mutex<Option<Arc<StoreInner>>>,
    pools: Mutex<Vec<Arc<PoolInner>>>,
}

impl fmt::Debug for Followed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Followed")
            .field("follow", &self.follow)
            .finish_non_exhaustive()
    }
}

/// Has pools of a store opened by accesses, where it follows them.
pub(crate) fn tie(store: &Arc<StoreInner>, open: OpenPool) -> Tie {
    let followed = Followed::new(store, open);
    if store.follow != Follow::Never {
        demand::follows(&followed);
    }
    Arc::new(Hand(followed))
}

/// Of a store that never follows ([`Follow::Never`]): code that opens no other has nothing by which accesses open
/// pools.
pub(crate) fn tie_without_following(store: &Arc<StoreInner>) -> Tie {
    let nowhere: OpenPool = |_, name, _| {
        let name = name.to_owned();
        Err(durum_service::Error::PoolBusy { name }.into())
    };
    Arc::new(Hand(Followed::new(store, nowhere)))
}

impl Followed {
    fn new(store: &Arc<StoreInner>, open: OpenPool) -> Arc<Self> {
        let start = store.info.base as usize;
        Arc::new(Self {
            addresses: start..start + store.info.space_size as usize,
            follow: store.follow,
            open,
            store: Mutex::new(Some(store.clone())),
            pools: Mutex::default(),
        })
    }
}

impl Tied for Hand {
    fn let_go(&self) {
        // Who is just opening one goes on with it.
        let opening = locked(&self.0.store);
        let pools = std::mem::take(&mut *locked(&self.0.pools));
        drop(opening);
        drop(pools);
    }
}

impl Drop for Hand {
    fn drop(&mut self) {
        let Followed { store, pools, .. } = &*self.0;
        // A forked child has none of the threads that may hold a lock.
        let (store, pools) = match forked() {
            false => {
                demand::follows_no_more(Arc::as_ptr(&self.0));
                (Some(locked(store)), Some(locked(pools)))
            }
            true => (store.try_lock().ok(), pools.try_lock().ok()),
        };
        let pools = pools.map(|mut pools| std::mem::take(&mut *pools));
        let store = store.and_then(|mut store| store.take());
        drop(pools);
        let leaving = store.as_ref().map(|store| store.leaving.clone());
        drop(store);
        // A thread that has found the store before it was dropped just now counts already.
        if let Some(leaving) = leaving.filter(|_| !forked()) {
            leaving.wait(LEAVING_WAIT);
        }
    }
}

impl Opens for Followed {
    fn pool_at(&self, address: usize) -> Result<Option<String>> {
        if !self.addresses.contains(&address) {
            return Ok(None);
        }
        match &*locked(&self.store) {
            Some(store) => Ok(put_off(|| store.service.pool_at(address as u64))?),
            None => Ok(None),
        }
    }

    fn open(&self, pool: &str, address: usize) -> Result<bool> {
        let store = locked(&self.store);
        let Some(store) = &*store else {
            return Ok(false);
        };
        put_off(|| {
            // Two stores that could not make way for each other: a pointer of the other one may be meant.
            if store.neighbours.others_have(address as u64) {
                return Err(Refused::taken(address, 1).error(&store.info.path));
            }
            let pool = (self.open)(store, pool, self.follow)?;
            // Else a pool of the name was made anew meanwhile, or the puddle is just being made.
            let has_it = entry_at(address).is_some() || pool.frontier.has(address);
            let mut pools = locked(&self.pools);
            if !pools.iter().any(|known| Arc::ptr_eq(known, &pool)) {
                pools.push(pool);
            }
            Ok(has_it)
        })
    }
}
