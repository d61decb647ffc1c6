//! What there is of an open store, and what runs on it: the data that transactions, engines and what programs call
//! have in common. Nothing here knows any engine.
//!
//! [`store`] (an open store), [`engine`] (an open pool, what a transaction has gathered, and what an engine does about
//! both), [`frontier`] (puddles that are not mapped yet), [`followed`] (pools that an
//! access has opened), [`logs`] (where logs come from), [`neighbours`]
//! (other stores of the process), [`observed`] (others watch the program), [`pool`] (how a pool grows and closes).

mod engine;
mod followed;
mod frontier;
mod logs;
mod neighbours;
mod observed;
mod pool;
mod store;
mod tie;

pub use engine::{Announce, Durability, Pool};
pub(crate) use engine::{
    BeforeReuse, ByThread, Engine, Facts, Mismatch, OfPool, OfThread, OnMismatch, PoolInner,
    PoolRef, SecondMapping, TxState, WHATEVER, kept_as,
};
pub(crate) use followed::{tie, tie_without_following};
pub(crate) use logs::SITES;
pub(crate) use observed::{Observed, Tell};
pub use store::Store;
pub(crate) use store::{Leaving, OfStore, OpenPool, SharedBias, StoreInner, next_key};
