//! The contestants.

pub mod arena;
pub mod durum;
#[cfg(feature = "peers")]
pub mod kv;
pub mod lines;
mod locked;
pub mod medium;
mod numbers;
mod open;
pub mod overwrite;
pub mod plain;
#[cfg(feature = "peers")]
pub mod pmdk;
mod programs;
#[cfg(feature = "peers")]
pub mod redb;
pub mod typed;

use std::process::Command;

use crate::side::Side;

/// The sides of the suites in memory, the peer first.
pub fn memory() -> Vec<Box<dyn Side>> {
    vec![
        #[cfg(feature = "peers")]
        Box::new(pmdk::Pmdk),
        Box::new(durum::Durum::hybrid()),
        Box::new(durum::Durum::shadow()),
        Box::new(durum::Durum::shadow_in_flight()),
        Box::new(durum::Durum::twin()),
        Box::new(durum::Durum::direct()),
        Box::new(plain::QuadraVr::default()),
        Box::new(plain::TrinityVr::default()),
        Box::new(plain::Redo1::default()),
        Box::new(plain::Flush1::default()),
        Box::new(plain::Volatile::default()),
    ]
}

/// The sides of the suite of the Twin engine, the peer first.
pub fn twin() -> Vec<Box<dyn Side>> {
    vec![
        #[cfg(feature = "peers")]
        Box::new(pmdk::Pmdk),
        Box::new(durum::Durum::twin()),
        Box::new(durum::Durum::twin_left_right()),
        Box::new(plain::Flush1::default()),
        Box::new(plain::Volatile::default()),
    ]
}

/// The sides of the suite of threads, the peer first.
pub fn threads() -> Vec<Box<dyn Side>> {
    vec![
        #[cfg(feature = "peers")]
        Box::new(pmdk::Pmdk),
        Box::new(durum::Durum::hybrid()),
        Box::new(durum::Durum::shadow()),
        Box::new(durum::Durum::twin()),
        Box::new(plain::Flush1::default()),
    ]
}

/// The sides of the suite of media.
pub fn media() -> Vec<Box<dyn Side>> {
    let mut sides: Vec<Box<dyn Side>> = Vec::new();
    for medium in medium::Medium::all() {
        let engines = [
            durum::Durum::twin(),
            durum::Durum::twin_basic(),
            durum::Durum::shadow(),
        ];
        sides.extend(
            engines.map(|engine| Box::new(medium::OnMedium::new(engine, medium)) as Box<dyn Side>),
        );
    }
    sides
}

/// The sides of the suite of latencies, the peer first.
pub fn latency() -> Vec<Box<dyn Side>> {
    vec![
        #[cfg(feature = "peers")]
        Box::new(pmdk::Pmdk),
        Box::new(durum::Durum::hybrid()),
        Box::new(durum::Durum::shadow()),
        Box::new(durum::Durum::shadow_no_home()),
        Box::new(plain::Flush1::default()),
    ]
}

/// The sides of the suite of the typed interface, the peer first.
pub fn typed() -> Vec<Box<dyn Side>> {
    let (typed_hybrid, typed_shadow) = typed::sides();
    vec![
        #[cfg(feature = "peers")]
        Box::new(pmdk::Pmdk),
        Box::new(durum::Durum::hybrid()),
        Box::new(typed_hybrid),
        Box::new(durum::Durum::shadow()),
        Box::new(typed_shadow),
    ]
}

/// The sides of the suite of the programs, the peer first.
pub fn programs() -> Vec<Box<dyn Side>> {
    vec![
        #[cfg(feature = "peers")]
        Box::new(pmdk::Pmdk),
        Box::new(programs::hybrid()),
        Box::new(programs::shadow()),
    ]
}

/// The sides of the suite of the service, the peer first: each engine in a store of the process's own, and in one of a
/// service.
pub fn daemon() -> Vec<Box<dyn Side>> {
    let mut sides: Vec<Box<dyn Side>> = vec![
        #[cfg(feature = "peers")]
        Box::new(pmdk::Pmdk),
    ];
    for engine in [
        durum::Durum::hybrid,
        durum::Durum::shadow,
        durum::Durum::twin,
    ] {
        sides.push(Box::new(engine()));
        sides.push(Box::new(engine().served()));
    }
    sides
}

/// The sides of the suites on a disk, the peers first.
pub fn disk() -> Vec<Box<dyn Side>> {
    vec![
        #[cfg(feature = "peers")]
        Box::new(kv::Kv::leveldb()),
        #[cfg(feature = "peers")]
        Box::new(kv::Kv::lmdb()),
        #[cfg(feature = "peers")]
        Box::new(redb::Redb),
        Box::new(durum::Durum::hybrid().on_file()),
        Box::new(durum::Durum::shadow().on_file()),
        Box::new(overwrite::Overwrite),
    ]
}

/// What would keep libpmemobj from writing lines back, or make it do so with other instructions than the best.
const UNFAIR_VARIABLES: [&str; 4] = [
    "PMEM_NO_FLUSH",
    "PMEM_NO_CLWB",
    "PMEM_NO_CLFLUSHOPT",
    "PMEM_NO_MOVNT",
];

/// Whether the peer executes the same instructions as we do in this environment.
///
/// libpmemobj takes the best instruction that the processor has, as durum does; but on tmpfs only when told that files
/// there are persistent memory (else it calls msync), and environment variables can take instructions from it. It reads
/// them while it is loaded.
pub fn environment_is_fair() -> bool {
    std::env::var("PMEM_IS_PMEM_FORCE").as_deref() == Ok("1")
        && UNFAIR_VARIABLES
            .iter()
            .all(|name| std::env::var_os(name).is_none())
}

/// Gives the command an environment that is fair.
pub fn make_environment_fair(command: &mut Command) {
    command.env("PMEM_IS_PMEM_FORCE", "1");
    for name in UNFAIR_VARIABLES {
        command.env_remove(name);
    }
}
