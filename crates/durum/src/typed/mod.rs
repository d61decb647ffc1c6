//! Safe persistent Rust: Corundum's typed interface, on stable Rust.
//!
//! Types of a pool, pointers between them and transactions, such that what the compiler accepts is crash-consistent:
//! only types that can live in a pool do ([`PSafe`]), nothing in a pool changes but in a transaction ([`Journal`]), and
//! no pointer into a pool leaves one. docs/tutorials/rust.md is a tutorial, docs/reference/safety.md says what is
//! guaranteed and what is not. The names are those of the paper *Corundum: Statically-Enforced Persistent Memory
//! Safety* (ASPLOS'21), Table 1.
//!
//! Reading order: `binding`, `psafe`, `kind` and `open` (pools and types), `journal` and `running` (transactions, the
//! balance of owners), `pbox`, `shared`, `counts` and `count_word` (pointers), `cell`, `refcell`, `mutex` and `words`
//! (interior mutability), `later` (exclusive references that log late), then the collections.

mod accounts;
mod binding;
mod cell;
mod cells;
mod collections;
mod count_word;
mod counts;
mod futex_lock;
mod journal;
mod kind;
mod later;
mod limbo;
mod loan;
mod log_free;
mod mutex;
mod open;
mod pbox;
mod pool_id;
mod psafe;
mod refcell;
mod running;
mod shared;
mod stats;
mod stays;
mod words;

pub use crate::pool;
pub use binding::PoolType;
pub use cell::PCell;
pub use collections::{IterMut, PBTreeMap, PHashMap, PString, PVec, btree_map, hash_map};
pub(crate) use counts::Tally;
pub use durum_derive::{PClone, PSafe, Parts, Root};
pub use journal::Journal;
pub use later::{Later, Parts};
pub use log_free::LogFree;
pub use mutex::{PMutex, PMutexGuard};
pub use open::{Flags, OpenOptions, RootGuard};
pub use pbox::Pbox;
pub use pool_id::PoolId;
pub use psafe::{InOption, PClone, PSafe, Root, TxInSafe, TxOutSafe};
pub use refcell::{BorrowError, PRef, PRefCell, PRefMut};
pub use shared::{Counted, Counting, Local, PWeak, Parc, Prc, Shared, VWeak};
pub use stats::{contended, contended_within};

/// What the macros name. Not for programs.
#[doc(hidden)]
pub mod __private {
    pub use std::borrow::Cow;
    pub use std::default::Default;
    pub use std::marker::PhantomData;
    pub use std::option::Option;
    pub use std::string::String;

    pub use durum_format::types::{Case, Field, Type, Variants};

    pub use super::binding::{Binding, PoolType};
    pub use super::journal::Journal;
    pub use super::kind::{Kind, Of, Plain, Pointers};
    pub use super::later::{Later, Parts};
    pub use super::pool_id::PoolId;
    pub use super::psafe::{PClone, PSafe, Root, name_of};
    pub use super::running::Running;
    pub use crate::described::{Described, Description, Walk};
}
