//! The typed interface, on both engines.

mod attacks;
mod collections;
mod counted;
mod empty;
mod forgotten;
mod garbage;
mod limits;
mod remains;
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

/// Runs a test on each engine. The pool types in it are different ones then.
#[macro_export]
macro_rules! on_each_engine {
    ($($(#[$attribute:meta])* fn $name:ident($engine:ident) $body:block)*) => { $(
        mod $name {
            #[allow(unused_imports)]
            use super::*;

            mod shadow {
                #[allow(unused_imports)]
                use super::*;

                $(#[$attribute])*
                #[test]
                fn run() {
                    let $engine = durum::Engine::Shadow;
                    $body
                }
            }

            mod hybrid {
                #[allow(unused_imports)]
                use super::*;

                $(#[$attribute])*
                #[test]
                fn run() {
                    let $engine = durum::Engine::Hybrid;
                    $body
                }
            }
        }
    )* };
}
