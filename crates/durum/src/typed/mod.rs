//! Safe persistent Rust: Corundum's typed interface, on stable Rust.
//!
//! Types of a pool, pointers between them and transactions, such that what the compiler accepts is crash-consistent:
//! only types that can live in a pool do ([`PSafe`]), nothing in a pool changes but in a transaction ([`Journal`]), and
//! no pointer into a pool leaves one. docs/tutorials/rust.md is a tutorial, docs/reference/safety.md says what is
//! guaranteed and what is not. The names are those of the paper *Corundum: Statically-Enforced Persistent Memory
//! Safety* (ASPLOS'21), Table 1.
//!
//! The files from the bottom to the top; each imports only from those before it:
//!
//! - parts that know no other: `pool_id`, `pointer_kind`, `waiting`, `reading`, `revocable`,
//!   `open_ranges`, the macros of `layout`, `as_target`, `handle_impls` and `cell_impls`, and the `derives`;
//! - what is kept about cells while a program runs: `volatile_words`, `borrow_word`, `lock_word`, `count_word`;
//! - what may live in a pool: `psafe`;
//! - an open pool: `deferred_drops`, `binding`;
//! - a transaction and the handles that it has: `drop_glue`, `counts`, `typed_tx`, `journal`;
//! - what a program begins with: `values`, `reserved`, `open_options`, `open`, `pool_type`;
//! - pointers (`pbox`, `counted`) and cells (`later`, `pcell`, `prefcell`, `pmutex`, `log_free`), then the collections,
//!   and pointers to other pools (`exports`);
//! - pools that are made anew under other types: `migrating`, `migration`.

mod as_target;
mod binding;
mod borrow_word;
mod cell_impls;
mod collections;
mod count_word;
mod counted;
mod counts;
mod deferred_drops;
mod derives;
mod drop_glue;
mod exports;
mod handle_impls;
mod journal;
mod later;
mod layout;
mod lock_word;
mod log_free;
mod migrating;
mod migration;
mod not_send;
mod open;
mod open_options;
mod open_ranges;
mod option_layout;
mod pbox;
mod pcell;
mod pmutex;
mod pointer_kind;
mod pool_id;
mod pool_macro;
mod pool_type;
mod prefcell;
mod psafe;
mod reading;
mod reserved;
mod revocable;
mod typed_tx;
mod values;
mod volatile_words;
mod waiting;

pub use crate::pool;
pub use collections::{
    IterMut, MapType, PBTreeMap, PHashMap, PString, PVec, Rebuild, btree_map, hash_map,
};
pub use counted::{Counted, Counting, Local, PWeak, Parc, Prc, Shared, VWeak};
pub(crate) use counts::Tally;
pub use derives::{PClone, PSafe, Parts, Root};
pub use durum_service::{MigrateReport, MigratedType, RefusalCount};
pub use exports::{Exports, Pptr};
pub use journal::Journal;
pub use later::{Later, Parts};
pub use log_free::LogFree;
pub use migrating::{CarryTo, CellOf, Migrating};
pub use migration::{Migrate, Migration, Number};
pub use open::RootGuard;
pub use open_options::{Flags, OpenOptions};
pub use pbox::Pbox;
pub use pcell::PCell;
pub use pmutex::{PMutex, PMutexGuard};
pub use pool_id::PoolId;
pub use pool_type::PoolType;
pub use prefcell::{BorrowError, PRef, PRefCell, PRefMut};
pub use psafe::{InOption, PSafe, TxInSafe, TxOutSafe};
pub use reading::Reading;
pub use reserved::Reserved;
pub use values::{PClone, Root};
pub use waiting::{contended, contended_within};

/// What the macros name. Not for programs.
#[doc(hidden)]
pub mod __private {
    pub use std::borrow::Cow;
    pub use std::default::Default;
    pub use std::marker::PhantomData;
    pub use std::option::Option;
    pub use std::string::String;

    pub use durum_format::types::{Case, Field, Type, Variants};

    pub use super::binding::Binding;
    pub use super::journal::{HasBinding, Journal};
    pub use super::later::{Later, Parts};
    pub use super::pointer_kind::{KindOf, Plain, PointerKind, Pointers};
    pub use super::pool_id::PoolId;
    pub use super::pool_type::PoolType;
    pub use super::psafe::{PSafe, name_of};
    pub use super::typed_tx::TypedTx;
    pub use super::values::{PClone, Root};
    pub use crate::described::{Described, Description, Walk};
}
