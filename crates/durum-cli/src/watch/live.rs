//! The pools of a program that observes itself, as they are at one moment, while it goes on.

use std::fs::File;
use std::os::fd::AsFd;
use std::os::unix::fs::chown;
use std::path::{Path, PathBuf};

use durum_protocol::watching::{SHOWN, Told, Why};
use durum_remote::watcher::Watched;
use durum_service::{CreateOptions, Embedded, Export, ImportOptions, ReadOnlyStore, Service};
use tempfile::TempDir;

use super::find;
use crate::failure::Failure;
use crate::place::Place;

/// A store of this process alone, with the pools at the addresses that they have. It goes with this.
#[derive(Debug)]
pub(crate) struct Live {
    directory: TempDir,
}

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
            let live = Live::beside(&watched)?;
            let directory = File::open(live.directory.path())
                .map_err(|error| Failure::file("opening", live.directory.path(), error))?;
            let told = watched
                .show(pools, directory.as_fd())
                .map_err(|error| Failure::system("asking the program for its pools", error))?;
            let is_shown = told == Told::Shown;
            last = Some((told, live));
            if is_shown {
                break;
            }
        }
        last.ok_or_else(|| Failure::Refused("no program can be watched".to_owned()))
    }

    fn beside(watched: &Watched) -> Result<Live, Failure> {
        let made = tempfile::Builder::new().prefix("durum-live-").tempdir();
        let directory = made.map_err(|error| Failure::system("making a directory", error))?;
        if watched.user != rustix::process::geteuid().as_raw() {
            // Only root watches others.
            chown(directory.path(), Some(watched.user), None)
                .map_err(|error| Failure::file("giving away", directory.path(), error))?;
        }
        Ok(Live { directory })
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
        let export = Export::open(&self.shown())?;
        // What another user's program has made is copied.
        store.import(&export, &ImportOptions::default())?;
        // All addresses are as they were: this compares sums, and has readers read.
        store.finish_moving()?;
        store.close()?;
        Ok(())
    }

    fn shown(&self) -> PathBuf {
        Path::new(self.directory.path()).join(SHOWN)
    }
}
