//! The typed interface, on every engine.

mod allowed;
mod attacks;
mod collections;
mod counted;
mod empty;
mod exports;
mod forgotten;
mod garbage;
mod later;
mod limits;
mod migration;
mod option_layout;
mod options;
mod processes;
mod remains;
mod retyping;
mod transactions;

use std::path::PathBuf;

use durum::typed::OpenOptions;
use durum::{Engine, PoolOptions};

/// A store in memory that is gone with this.
#[derive(Debug)]
pub struct Place {
    _dir: tempfile::TempDir,
    /// Where it will be.
    pub path: PathBuf,
}

impl Place {
    /// A new one, where there is no store yet.
    #[expect(clippy::new_without_default, reason = "each is another")]
    pub fn new() -> Self {
        let dir = tempfile::tempdir_in("/dev/shm").unwrap();
        let path = dir.path().join("store");
        Self { _dir: dir, path }
    }
}

/// Makes or opens a pool of an engine.
pub fn options(engine: Engine) -> OpenOptions {
    OpenOptions::new()
        .create(true)
        .pool(PoolOptions::new().engine(engine))
}

/// Runs tests on each engine. One after the other, as the pool types in a test are the same for all: compiling it for
/// each would take three times as long.
#[macro_export]
macro_rules! on_each_engine {
    ($(fn $name:ident($engine:ident) $body:block)*) => { $(
        $crate::on_engines!([shadow Shadow] [hybrid Hybrid] [twin Twin] $name $engine $body);
    )* };
}

/// The same for tests in which a transaction waits for what another one does while both run. On Twin a pool has one at
/// a time, and they would wait for ever.
#[macro_export]
macro_rules! where_transactions_run_side_by_side {
    ($(fn $name:ident($engine:ident) $body:block)*) => { $(
        $crate::on_engines!([shadow Shadow] [hybrid Hybrid] $name $engine $body);
    )* };
}

#[doc(hidden)]
#[macro_export]
macro_rules! on_engines {
    ($([$module:ident $kind:ident])* $name:ident $engine:ident $body:block) => {
        mod $name {
            #[allow(unused_imports)]
            use super::*;

            fn run_on($engine: durum::Engine) {
                static TURN: std::sync::Mutex<()> = std::sync::Mutex::new(());
                let _turn = TURN.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
                $body
            }

            $(
                mod $module {
                    #[test]
                    fn run() {
                        super::run_on(durum::Engine::$kind);
                    }
                }
            )*
        }
    };
}
