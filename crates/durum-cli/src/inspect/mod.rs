//! `durum inspect`: what a pool holds, by the type descriptors in its store; or the pools, where none is named. Nothing
//! is written.
//!
//! [`pool`] reads objects, [`elsewhere`] tells which ones of other pools pointers lead to, [`ways`] by which paths,
//! [`contents`] what objects mean, [`found`] which ones are of a type, [`referrers`] who points to one; [`graph`]
//! follows pointers from the root, [`tree`] and [`json`] print objects as they lie in memory; [`highlight`] gives what
//! is printed its colours. [`heap`] tells about free space, by several [`threads`], with [`damages`] that it comes
//! upon, [`logs`] about what was under way when a program died.

pub(crate) mod contents;
pub(crate) mod damages;
mod elsewhere;
mod found;
mod graph;
pub(crate) mod heap;
mod highlight;
mod json;
pub(crate) mod logs;
pub(crate) mod names;
pub(crate) mod pool;
pub(crate) mod records;
pub(crate) mod referrers;
mod threads;
mod tree;
pub(crate) mod ways;

use std::io::Write;

use durum_service::ReadOnlyStore;
use serde_json::{Value as Json, json};

use crate::args::Inspect;
use crate::color;
use crate::commands::{ls, recover};
use crate::failure::Failure;
use crate::output::{self, count, grouped};
use crate::place::Place;
use crate::watch::live::Live;
use graph::{Graph, Limits};
use highlight::Highlighted;
use pool::PoolView;

pub(crate) fn run(options: &Inspect, out: &mut dyn Write) -> Result<(), Failure> {
    let place = Place::of(&options.store);
    let name = place.pool(options.pool.as_deref())?;
    let live = options.live.then(|| Live::of(&place, name)).transpose()?;
    let mut store = match &live {
        Some(live) => ReadOnlyStore::open(&live.store())?,
        None => place.read()?,
    };
    let only;
    let name = match name {
        Some(name) => name,
        None => match pool_to_show(&store, options)? {
            Some(found) => {
                only = found;
                &only
            }
            None => return ls::list(&store, &store.pools(), options.json, out),
        },
    };
    if let Some((_, refused)) = store.look(Some(name))?.into_iter().next() {
        return Err(refused.into());
    }
    if options.log {
        // What logs say may be about other pools: those that cannot be looked at are left out.
        store.look(None)?;
        store.look_at_logs()?;
    }
    let mut pool = PoolView::open(&store, name)?;
    let wants_contents = !options.raw && !options.heap && !options.log;
    if wants_contents && !options.redact {
        let others = ways::Neighbours::default();
        let store = &store;
        pool.ways = Some(Box::new(move |other, address| {
            others.way(store, other, address)
        }));
    }
    pool.has_short_names = wants_contents;
    let limits = Limits {
        depth: options.depth.unwrap_or(contents::DEPTH),
        objects: options.objects,
        elements: options.elements,
        redact: options.redact,
    };
    let graph = options.raw.then(|| Graph::from_root(&pool, &limits));
    let graph = graph.transpose()?;
    let mut damages = Vec::new();
    let contents = wants_contents.then(|| contents::read(&pool, options, &mut damages));
    let contents = contents.transpose()?;
    let heap = options.heap.then(|| heap::Heap::of(&pool));
    let logs = match options.log {
        true => Some((logs::read(&store)?, records::read(&store)?)),
        false => None,
    };
    if options.json {
        let mut value = header(&store, &pool);
        if let Some(contents) = &contents {
            contents.add_to(options, &mut value);
        }
        if let Some(graph) = &graph {
            json::add(graph, &mut value);
        }
        if let Some(heap) = &heap {
            value["heap"] = heap.to_json();
        }
        if let Some((logs, records)) = &logs {
            value["logs"] = Json::Array(logs.iter().map(logs::Log::to_json).collect());
            value["records"] = Json::Array(records.iter().map(records::Records::to_json).collect());
        }
        output::json(out, &value)?;
    } else {
        notes(&store, &pool, out)?;
        let mut painted;
        let shown: &mut dyn Write = match color::is_on() {
            true => {
                painted = Highlighted::new(out);
                &mut painted
            }
            false => out,
        };
        if let Some(contents) = &contents {
            contents.print(name, options, shown)?;
        }
        if let Some(graph) = &graph {
            tree::print(name, graph, options, shown)?;
        }
        shown.flush()?;
        if let Some(heap) = &heap {
            heap.print(out)?;
        }
        if let Some((logs, records)) = &logs {
            logs::print(logs, out)?;
            records::print(records, out)?;
            let pending = store.pending();
            match logs.is_empty() && records.is_empty() {
                true => writeln!(out, "no logs: every program has closed the store in order")?,
                false => writeln!(
                    out,
                    "recovery will roll {} back and {} forward",
                    output::count(pending.rolled_back, "transaction"),
                    grouped(pending.rolled_forward)
                )?,
            }
        }
    }
    let of_heap = heap.into_iter().flat_map(|heap| heap.damages.in_words());
    let of_graph = graph.into_iter().flat_map(|graph| graph.damages);
    match of_heap.chain(of_graph).chain(damages).next() {
        None => Ok(()),
        Some(first) => Err(Failure::Damaged(format!(
            "{first}; `durum check` looks at everything"
        ))),
    }
}

/// The pool that is meant where none is named: the only one. `None` where all are listed, as `--json` alone does for
/// programs, whatever their number.
fn pool_to_show(store: &ReadOnlyStore, options: &Inspect) -> Result<Option<String>, Failure> {
    let is_part = options.path.is_some() || options.find.is_some() || options.to.is_some();
    let is_asked = is_part || options.raw || options.heap || options.log;
    let pools = store.pools();
    match &pools[..] {
        [only] if is_asked || !options.json => Ok(Some(only.name.clone())),
        [] if is_asked => Err(Failure::Refused("the store has no pool to look at".into())),
        all if is_asked => Err(Failure::Refused(format!(
            "name the pool to look at behind the store; there are: {}",
            output::list(all.iter().map(|pool| output::quoted(&pool.name)))
        ))),
        _ => Ok(None),
    }
}

fn header(store: &ReadOnlyStore, pool: &PoolView<'_>) -> Json {
    let quarantine = pool.summary.quarantine.as_ref();
    json!({
        "pool": pool.summary.name,
        "uuid": pool.summary.uuid.to_string(),
        "engine": pool.summary.engine.name(),
        "bytes": pool.summary.bytes,
        "puddles": pool.summary.puddles,
        "clean": store.is_clean(),
        "interrupted": store.interrupted_in(&pool.summary.name).map(recover::interrupted_to_json).collect::<Vec<_>>(),
        "quarantine": quarantine.map(|note| json!({ "log": note.log, "reason": note.reason })),
    })
}

/// What has to be known to read the rest.
fn notes(store: &ReadOnlyStore, pool: &PoolView<'_>, out: &mut dyn Write) -> Result<(), Failure> {
    let note_word = color::out(color::WARNING, "note:");
    if !store.is_clean() {
        let pending = store.pending();
        writeln!(
            out,
            "{note_word} the store was not closed in order; shown as recovery will leave it ({} rolled back, {} forward)",
            count(pending.rolled_back, "transaction"),
            grouped(pending.rolled_forward)
        )?;
    }
    if let Some(note) = &pool.summary.quarantine {
        writeln!(
            out,
            "{note_word} the pool is in quarantine, changes may be half done: {}: {}",
            note.log.display(),
            note.reason
        )?;
    }
    if pool.is_database() {
        writeln!(
            out,
            "{note_word} the pool is a database of durum-kv, of which --raw shows how it lies in memory; `durum kv scan {}` shows its \
             entries, too, but opens the store as a program does: it recovers what one that died has left, and so may write",
            store.name().display()
        )?;
    }
    for client in store.interrupted_in(&pool.summary.name) {
        writeln!(
            out,
            "{note_word} the pool is shown as sections left it, half done: {}",
            client.reason()
        )?;
    }
    Ok(())
}
