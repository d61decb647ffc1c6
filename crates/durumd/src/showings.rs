//! Pools that are shown: somebody wants to see a pool as it is, and the program that writes it shows what its puddles
//! hold at one moment.
//!
//! ```text
//! who asks        ShowPool ------>                                         Shown, and the file
//! the service                     a file; Show ->            the file ->
//! who writes it                                   ShowingFile            fills it ... EndShowing
//! ```
//!
//! What the registry says of the pool is read before who shows it learns that `EndShowing` is done: until then it gives
//! no puddle back.
//!
//! The file is the service's and has no name: it goes when nobody needs it. What is in it, and where, is the word of
//! the program that fills it.

use std::collections::HashMap;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use durum_format::Uuid;
use durum_persist::file::MediaFile;
use durum_protocol::Answer;
use durum_remote::answers::refused;
use durum_service::{Embedded, Error, InUse, Result, Service, ShownAt, random_uuid};

use crate::clients::Clients;
use crate::options::SHOWING_MAX;

/// How often it is looked whether the program that shows a pool is still there, and who waits for it.
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
    file: MediaFile,
    /// How it ended.
    end: Option<Result<Vec<ShownAt>, String>>,
}

impl Showings {
    fn table(&self) -> MutexGuard<'_, HashMap<Uuid, Showing>> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Has the client that writes a pool show it to this one: waits for that, for so long at most.
    ///
    /// # Errors
    /// `PoolMissing`, `NotPermitted` for who may not read it; `PoolBusy` where its writer cannot be asked; `Told` with
    /// what went wrong, or that another client sees it now.
    pub(crate) fn show(
        &self,
        clients: &Clients,
        asker: &Embedded,
        name: &str,
        wait: Duration,
    ) -> Result<(Answer, MediaFile)> {
        let Some(in_use) = asker.in_use(name)? else {
            return Err(refused(format!(
                "pool \"{name}\" is used by nobody now: try again"
            )));
        };
        let InUse { pool, writer } = in_use;
        let showing = Begun {
            showings: self,
            showing: random_uuid()?,
        };
        let file = asker.showing_file(pool)?;
        let for_asker = file.for_reading().map_err(|source| Error::Io {
            operation: "opening a file again, for reading",
            path: file.path().to_owned(),
            offset: None,
            source,
        })?;
        self.begin(showing.showing, name, in_use, &file)?;
        if !clients.ask_to_show(writer, showing.showing, pool) {
            return Err(Error::PoolBusy {
                name: name.to_owned(),
            });
        }
        let is_there = || clients.is_there(writer) && clients.is_there(asker.id());
        let shown = self.wait(showing.showing, name, wait.min(SHOWING_MAX), is_there)?;
        // Who shows them keeps all puddles until this showing is over.
        let registry = asker.registry()?;
        Ok((Answer::Shown { shown, registry }, for_asker))
    }

    fn begin(&self, showing: Uuid, name: &str, in_use: InUse, file: &MediaFile) -> Result<()> {
        let mut table = self.table();
        let mut others = table.values();
        if others.any(|other| other.in_use.pool == in_use.pool) {
            return Err(refused(format!(
                "pool \"{name}\" is being shown to another program; try again when that is done"
            )));
        }
        let begun = Showing {
            in_use,
            file: file.clone(),
            end: None,
        };
        table.insert(showing, begun);
        Ok(())
    }

    /// Waits until it has ended, or until one of those is gone who have a part in it.
    fn wait(
        &self,
        showing: Uuid,
        name: &str,
        limit: Duration,
        is_there: impl Fn() -> bool,
    ) -> Result<Vec<ShownAt>> {
        let began = Instant::now();
        let mut table = self.table();
        loop {
            let known = table.get_mut(&showing).ok_or_else(not_asked)?;
            let problem = match known.end.take() {
                Some(Ok(shown)) => return Ok(shown),
                Some(Err(problem)) => problem,
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

    /// The file for what this client shows.
    ///
    /// # Errors
    /// `Told` for what nobody has asked of this client.
    pub(crate) fn file(&self, client: Uuid, showing: Uuid) -> Result<MediaFile> {
        Ok(ours(&mut self.table(), client, showing)?.file.clone())
    }

    /// The client has shown all, or says why it cannot. Waits for who has asked to learn which puddles the pool has.
    ///
    /// # Errors
    /// `Told` for what nobody has asked of this client.
    pub(crate) fn end(
        &self,
        client: Uuid,
        showing: Uuid,
        shown: Result<Vec<ShownAt>, String>,
    ) -> Result<()> {
        let mut table = self.table();
        ours(&mut table, client, showing)?.end = Some(shown.map_err(shortened));
        self.changed.notify_all();
        while table.contains_key(&showing) {
            table = self
                .changed
                .wait(table)
                .unwrap_or_else(PoisonError::into_inner);
        }
        Ok(())
    }
}

/// One that is in the table until this is dropped, once it is there.
struct Begun<'s> {
    showings: &'s Showings,
    showing: Uuid,
}

impl Drop for Begun<'_> {
    fn drop(&mut self) {
        self.showings.table().remove(&self.showing);
        self.showings.changed.notify_all();
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
