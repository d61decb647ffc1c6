//! A durum store: registry, puddle files, addresses, recovery and checks.
//!
//! A store is a directory. This crate is its one writer ([`Embedded`], through the trait [`Service`] that a daemon
//! will offer too), its readers and its tools. It hands out puddles and is never on the path of a
//! transaction. `docs/reference/store.md` tells what lies in the directory and what is promised.
//!
//! Reading order: `service` (what a client may ask for), `host` (how it is answered; `host/commit.rs` is the
//! way of every change), `registry` and `catalog` (where it is recorded), `files` (puddles), `recovery`.
//!
//! ```
//! use durum_service::{CreateOptions, Embedded, EngineKind, OpenOptions, PoolSpec, Service};
//! # let directory = tempfile::tempdir()?;
//! # let path = directory.path().join("store");
//! let store = Embedded::create(&path, &CreateOptions::default())?;
//! let pool = store.create_pool("words", &PoolSpec::new(EngineKind::Hybrid))?;
//! store.close()?;
//!
//! let store = Embedded::open(&path, OpenOptions::default())?;
//! assert!(store.recovery_report().was_clean);
//! assert_eq!(store.open_pool("words")?.root.uuid, pool.root.uuid);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

#![warn(clippy::unwrap_used)]

mod ahead;
mod archive;
mod check;
mod clone;
mod copying;
mod deposited;
mod descriptors;
mod directory;
mod dump;
mod error;
mod export;
mod files;
mod host;
mod identity;
mod import;
mod inspect;
mod liveness;
mod lock;
mod migrate;
mod model;
mod names;
mod picture;
mod presence;
mod process;
mod processor;
mod puddle_view;
mod quota;
mod reading;
mod recovery;
mod registry;
mod rewrite;
mod rights;
mod roles;
mod served;
mod service;
mod shown_file;
mod space;
mod sparse;
mod strays;
mod sums;
mod translate;
mod unregistered;
mod wording;

pub use archive::Compression;
pub use check::{
    CheckOptions, CheckReport, Finding, Garbage, GarbageGroup, GarbageLimbo, GarbageObject,
    GarbageOptions, GarbageReference, Leak, LeakFn, Leaks, PoolCheck, PoolGarbage, Readable,
    RepairReport, Severity, check, check_served, find_garbage, repair,
};
pub use clone::{CloneOptions, CloneReport, clone_served, clone_store};
pub use deposited::ensure_code_runs_here;
pub use dump::{DumpOptions, DumpReport, LoadOptions, LoadReport, dump, load};
pub use durum_format::Uuid;
pub use durum_format::puddle::PuddleKind;
pub use durum_format::registry::Rights;
pub use error::{Error, ErrorKind, Result};
pub use export::{ExportOptions, ExportReport, export, export_picture, export_served};
pub use host::{CreateOptions, Embedded, Ended, Host, Importing, OpenOptions};
pub use import::{Export, ExportedFile, ImportOptions, ImportReport};
pub use inspect::ReadOnlyStore;
pub use liveness::{Life, Liveness, Watched};
pub use migrate::{
    Functions, MigrateOptions, MigrateReport, MigratedType, Migration, NewHeap, NewPuddles,
    NewTypes, OldPuddle, RefusalCount, Room, plan_migration,
};
pub use model::{
    AddressRange, EngineKind, InterruptedClient, InterruptionDetails, PoolGrant, PoolSpec,
    PoolSummary, Progress, ProgressFn, PuddleGrant, PuddleOwner, PuddlePlace, PuddleSummary,
    QuarantineNote, RecoveryReport, RefusedPool, Stage, StoreInfo, TakenOver, UsedElsewhere,
};
pub use names::random_uuid;
pub use picture::{Asked, InUse, Picture, SHOWN_MAX, ShowFn, ShownAt};
pub use presence::{FileProblem, LostFile};
pub use puddle_view::PuddleView;
pub use quota::{Quota, Quotas};
pub use rights::{Access, Caller};
pub use service::{PUDDLES_AT_ONCE, Service};
pub use shown_file::ShownFile;
pub use strays::{StrayFile, StrayKind};
pub use unregistered::StrayState;
