//! Pools that are shown: somebody wants to see a pool as it is, and the program that writes it shows what its puddles
//! hold at one moment.
//!
//! ```text
//! who asks          ShowPool ------>                                       Shown(puddles)   Shown { puddle } ...
//! the service                 Show ->      makes a file for each puddle ->
//! who writes it                      ShowPuddle ... fills it ... EndShowing
//! ```
//!
//! The files are the service's and have no name: they go when nobody needs them. What is in them is the word of the
//! program that fills them.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use durum_format::Uuid;
use durum_persist::file::MediaFile;
use durum_service::{Embedded, Error, InUse, Result};

use crate::told::refused;

/// How often it is looked whether the program that shows a pool is still there.
const TICK: Duration = Duration::from_millis(100);

/// All that are under way.
#[derive(Debug, Default)]
pub(crate) struct Showings {
    table: Mutex<HashMap<Uuid, Showing>>,
    /// One is over.
    changed: Condvar,
}

#[derive(Debug)]
struct Showing {
    in_use: InUse,
    files: BTreeMap<Uuid, MediaFile>,
    /// How it ended.
    end: Option<Result<(), String>>,
}

impl Showings {
    fn table(&self) -> MutexGuard<'_, HashMap<Uuid, Showing>> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Begins one. Until [`Showings::forget`] nobody else sees the pool.
    ///
    /// # Errors
    /// `Told` where somebody does already.
    pub(crate) fn begin(&self, showing: Uuid, name: &str, in_use: InUse) -> Result<()> {
        let mut table = self.table();
        if table.values().any(|other| other.in_use.pool == in_use.pool) {
            return Err(refused(format!(
                "pool \"{name}\" is being shown to another program; try again when that is done"
            )));
        }
        let showing_ = Showing {
            in_use,
            files: BTreeMap::new(),
            end: None,
        };
        table.insert(showing, showing_);
        Ok(())
    }

    /// Waits until it has ended, for so long at most, or until nobody `is_there` who could go on. The puddles that were
    /// shown.
    ///
    /// # Errors
    /// `Told` with what went wrong.
    pub(crate) fn wait(
        &self,
        showing: Uuid,
        name: &str,
        limit: Duration,
        is_there: impl Fn() -> bool,
    ) -> Result<Vec<Uuid>> {
        let began = Instant::now();
        let mut table = self.table();
        loop {
            let known = table.get(&showing);
            let known = known.ok_or_else(not_asked)?;
            let problem = match &known.end {
                Some(Ok(())) => return Ok(known.files.keys().copied().collect()),
                Some(Err(problem)) => problem.clone(),
                None if !is_there() => "it has ended meanwhile".to_owned(),
                None if began.elapsed() >= limit => format!("it did not within {limit:?}"),
                None => {
                    let left = limit.saturating_sub(began.elapsed()).min(TICK);
                    let woken = self.changed.wait_timeout(table, left);
                    (table, _) = woken.unwrap_or_else(PoisonError::into_inner);
                    continue;
                }
            };
            return Err(refused(format!(
                "pool \"{name}\" is used by another program, which was asked to show it: {problem}"
            )));
        }
    }

    /// A new file for a puddle of a pool that this client shows.
    ///
    /// # Errors
    /// `Told` for what nobody has asked of this client; `Io`.
    pub(crate) fn give(&self, client: &Embedded, showing: Uuid, puddle: Uuid) -> Result<MediaFile> {
        let mut table = self.table();
        let known = ours(&mut table, client.id(), showing)?;
        // Those that the pool has got since are no part of it.
        if !known.in_use.puddles.iter().any(|(uuid, _)| *uuid == puddle) {
            return Err(refused(
                "the pool did not have this puddle when it was to be shown".to_owned(),
            ));
        }
        let file = client.scratch(puddle)?;
        known.files.insert(puddle, file.clone());
        Ok(file)
    }

    /// The client has shown all, or says why it cannot.
    ///
    /// # Errors
    /// `Told` for what nobody has asked of this client.
    pub(crate) fn end(&self, client: Uuid, showing: Uuid, problem: Option<String>) -> Result<()> {
        let mut table = self.table();
        let known = ours(&mut table, client, showing)?;
        known.end = Some(problem.map_or(Ok(()), |problem| Err(shortened(problem))));
        drop(table);
        self.changed.notify_all();
        Ok(())
    }

    /// The file with what was shown of a puddle.
    ///
    /// # Errors
    /// `Told` for what was not shown.
    pub(crate) fn file(&self, showing: Uuid, puddle: Uuid) -> Result<MediaFile> {
        let table = self.table();
        let known = table
            .get(&showing)
            .filter(|known| known.end == Some(Ok(())));
        let file = known.and_then(|known| known.files.get(&puddle));
        file.cloned().ok_or_else(not_asked)
    }

    /// Nobody wants to see it any more.
    pub(crate) fn forget(&self, showing: Uuid) {
        self.table().remove(&showing);
    }
}

/// One that was asked of this client, and is not over.
fn ours(table: &mut HashMap<Uuid, Showing>, client: Uuid, showing: Uuid) -> Result<&mut Showing> {
    let known = table.get_mut(&showing);
    known
        .filter(|known| known.in_use.writer == client && known.end.is_none())
        .ok_or_else(not_asked)
}

fn not_asked() -> Error {
    refused("nobody has asked for this, or waits for it any more".to_owned())
}

/// What a program says of itself goes into a message to another one.
fn shortened(problem: String) -> String {
    const MOST: usize = 1000;
    problem
        .chars()
        .filter(|character| !character.is_control())
        .take(MOST)
        .collect()
}
