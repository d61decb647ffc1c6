//! What a program counts that has a store open and observes itself (`docs/internals/observing.md`).
//!
//! [`table`] shows it to people, [`export`] to other programs. [`live`] has it show its pools.

mod export;
pub(crate) mod live;
mod table;

use std::fs;
use std::io::{IsTerminal, Write};
use std::os::unix::fs::MetadataExt;
use std::thread;
use std::time::{Duration, Instant};

use durum_protocol::watching::{Numbers, Question, Told};
use durum_remote::watcher::{self, Watched};
use durum_service::ReadOnlyStore;
use serde_json::Value;

use crate::args::Stat;
use crate::color;
use crate::failure::Failure;
use crate::top::CLEAR;

pub(crate) fn run(
    store: &ReadOnlyStore,
    options: &Stat,
    out: &mut dyn Write,
) -> Result<(), Failure> {
    let mut watched = find(store)?;
    if options.prometheus {
        let all = ask_all(&mut watched);
        return Ok(write!(out, "{}", export::prometheus(&all))?);
    }
    let pause = Duration::from_secs_f64(options.interval);
    let mut before: Option<(Instant, Vec<Numbers>)> = None;
    let mut is_silent = false;
    loop {
        let asked = Instant::now();
        let all = ask_all(&mut watched);
        if all.is_empty() {
            if is_silent && (options.once || before.is_none()) {
                return Err(Failure::Refused(format!(
                    "{}: the program does not answer; it is stopped, or too busy",
                    store.name().display()
                )));
            }
            // Where it was closed, somebody else may have opened it.
            match (find(store), &before) {
                (Ok(found), _) => watched = found,
                (Err(_), Some(_)) => {
                    eprintln!("{} the store was closed", color::err(color::BAD, "durum:"));
                    return Ok(());
                }
                (Err(failure), None) => return Err(failure),
            }
            if is_silent {
                thread::sleep(pause);
            }
            is_silent = true;
            continue;
        }
        is_silent = false;
        let since = before
            .as_ref()
            .map(|(when, all)| (asked.duration_since(*when), &all[..]));
        if options.json {
            writeln!(out, "{}", export::json(&all))?;
        } else {
            if !options.once && std::io::stdout().is_terminal() {
                write!(out, "{CLEAR}")?;
            }
            table::show(&all, since, out)?;
        }
        out.flush()?;
        if options.once {
            return Ok(());
        }
        before = Some((asked, all));
        thread::sleep(pause);
    }
}

/// What each program has counted, as JSON.
pub(crate) fn numbers(store: &ReadOnlyStore) -> Result<Value, Failure> {
    Ok(export::json(&ask_all(&mut find(store)?)))
}

/// The programs that have the store open and observe themselves; there is one at least.
fn find(store: &ReadOnlyStore) -> Result<Vec<Watched>, Failure> {
    let own = rustix::process::geteuid().as_raw();
    let mut users = vec![own];
    if own == 0 {
        // Root sees those of the store's owner, too.
        users.extend(fs::metadata(store.path()).map(|found| found.uid()));
        users.dedup();
    }
    let found = users
        .into_iter()
        .flat_map(|user| watcher::find(store.uuid(), user));
    let found: Vec<Watched> = found.collect();
    if !found.is_empty() {
        return Ok(found);
    }
    let name = store.name().display();
    let cure = "a program is watched by its own user, and by root, if it opens the store with \
                StoreOptions::observe, in C with DURUM_STORE_OBSERVE";
    Err(Failure::Refused(match (store.served(), store.writer()?) {
        (Some(_), _) => format!("{name}: no program that can be watched has it open; {cure}"),
        (None, Some(pid)) => {
            format!("{name}: process {pid} has it open, and does not observe itself; {cure}")
        }
        (None, None) => format!("{name}: no program has it open"),
    }))
}

/// Asks each, in order. Those that do not answer are left out, now and later.
fn ask_all(watched: &mut Vec<Watched>) -> Vec<Numbers> {
    let mut all = Vec::new();
    watched.retain_mut(|watched| match watched.ask(&Question::Numbers) {
        Ok(Told::Numbers(numbers)) => {
            all.push(numbers);
            true
        }
        _ => false,
    });
    all
}
