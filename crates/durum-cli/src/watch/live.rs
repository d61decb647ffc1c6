//! The pools of a program that observes itself, as they are at one moment, while it goes on.

use std::fs::{self, DirBuilder, File};
use std::os::fd::AsFd;
use std::os::unix::fs::{DirBuilderExt, PermissionsExt, fchown};
use std::path::PathBuf;

use durum_protocol::watching::{SHOWN, Told, Why};
use durum_service::{CreateOptions, Embedded, Export, ImportOptions, ReadOnlyStore, Service};
use tempfile::TempDir;

use super::find;
use crate::failure::Failure;
use crate::place::Place;

/// A store of this process alone, with the pools at the addresses that they have. It goes with this.
#[derive(Debug)]
pub(crate) struct Live {
    /// Of this user alone, whoever's the program is: nobody else changes what its names mean.
    directory: TempDir,
}

/// In the directory: where the program puts its pools. Root gives that one away for as long, and nothing beside it.
const GIVEN: &str = "given";

impl Live {
    /// Has the program show a pool, with those that its pointers lead to; or all that it has open.
    pub(crate) fn of(place: &Place, pool: Option<&str>) -> Result<Live, Failure> {
        let store = place.read()?;
        let names: Vec<String> = pool.into_iter().map(str::to_owned).collect();
        let told = Live::ask(&store, &names)?;
        let told = match told {
            // Only the program knows which: all that are open are as of one moment.
            (
                Told::NotShown {
                    why: Why::NeedsMore,
                    ..
                },
                _,
            ) if pool.is_some() => Live::ask(&store, &[])?,
            told => told,
        };
        let live = match told {
            (Told::Shown, live) => live,
            (Told::NotShown { problem, why }, _) => {
                let said = format!("{}: {problem}", store.name().display());
                return Err(match why {
                    Why::Damaged => Failure::Damaged(said),
                    Why::Failed => Failure::Unreadable(said),
                    _ => Failure::Refused(said),
                });
            }
            _ => {
                let name = store.name().display();
                return Err(Failure::Refused(format!(
                    "{name}: the program does not know how to show its pools; it has an older durum"
                )));
            }
        };
        live.import(&store)?;
        Ok(live)
    }

    fn ask(store: &ReadOnlyStore, pools: &[String]) -> Result<(Told, Live), Failure> {
        let mut all = find(store)?;
        // Where several programs use the store, one of them has the pool.
        let mut last = None;
        while let Some(mut watched) = all.pop() {
            let live = Live::new()?;
            let given = live.give(watched.user)?;
            let told = watched
                .show(pools, given.as_fd())
                .map_err(|error| Failure::system("asking the program for its pools", error))?;
            take_back(&given)
                .map_err(|error| Failure::file("taking back", &live.given(), error))?;
            let is_shown = told == Told::Shown;
            last = Some((told, live));
            if is_shown {
                break;
            }
        }
        last.ok_or_else(|| Failure::Refused("no program can be watched".to_owned()))
    }

    fn new() -> Result<Live, Failure> {
        let made = tempfile::Builder::new().prefix("durum-live-").tempdir();
        let directory = made.map_err(|error| Failure::system("making a directory", error))?;
        Ok(Live { directory })
    }

    fn given(&self) -> PathBuf {
        self.directory.path().join(GIVEN)
    }

    /// The directory for the program, which need not find it by name.
    fn give(&self, user: u32) -> Result<File, Failure> {
        let path = self.given();
        let failed = |error| Failure::file("giving away", &path, error);
        DirBuilder::new()
            .mode(0o700)
            .create(&path)
            .map_err(failed)?;
        let given = File::open(&path).map_err(failed)?;
        if user != rustix::process::geteuid().as_raw() {
            // Only root watches others.
            fchown(&given, Some(user), None).map_err(failed)?;
        }
        Ok(given)
    }

    /// The store.
    pub(crate) fn store(&self) -> PathBuf {
        self.directory.path().join("store")
    }

    fn import(&self, shown: &ReadOnlyStore) -> Result<(), Failure> {
        let options = CreateOptions {
            base: shown.base(),
            space_size: shown.space_size(),
            ..CreateOptions::default()
        };
        let store = Embedded::create(&self.store(), &options)?;
        let export = Export::open(&self.given().join(SHOWN))?;
        // What another user's program has made is copied.
        store.import(&export, &ImportOptions::default())?;
        // All addresses are as they were: this compares sums, and has readers read.
        store.finish_moving()?;
        store.close()?;
        Ok(())
    }
}

/// The directory is this user's again, and the program puts nothing more there.
fn take_back(given: &File) -> std::io::Result<()> {
    fchown(given, Some(rustix::process::geteuid().as_raw()), None)?;
    given.set_permissions(fs::Permissions::from_mode(0o700))
}
