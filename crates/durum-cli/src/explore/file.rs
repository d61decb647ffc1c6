//! The page as one file, with its answers in it.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use durum_format::content::printable;
use durum_service::{CheckOptions, Leak};
use serde_json::{Value as Json, json};
use tempfile::NamedTempFile;

use super::leaks::Leaks;
use super::objects::{self, ELEMENTS};
use super::survey::{self, Survey};
use super::{page, types};
use crate::args::explore::Explore;
use crate::failure::Failure;
use crate::inspect::damages::Damages;
use crate::inspect::pool::PoolView;
use crate::output::{self, count, grouped, size};
use crate::place::Place;
use crate::progress;

/// Bytes of objects as JSON, of all pools together: a browser reads that in a moment.
const OBJECTS_BYTES_MAX: usize = 32 << 20;

/// Types of a pool whose fields are in the file.
const TYPES_MAX: usize = 1000;

/// Bytes of objects that stand in one element of the page: a browser reads them in some milliseconds.
const PIECE_BYTES: usize = 256 << 10;

/// What of the objects is in the file.
#[derive(Default)]
struct Taken {
    /// Elements of the page, by name.
    pieces: Vec<(String, Json)>,
    objects: u64,
    all: u64,
    bytes: usize,
}

pub(super) fn write(
    survey: &Survey,
    path: &Path,
    options: &Explore,
    out: &mut dyn Write,
) -> Result<(), Failure> {
    ensure_outside(survey, path)?;
    let overview = survey.overview()?;
    let found = Arc::new(Mutex::new(Leaks::default()));
    let (check, report) = match survey::check(&survey.place, &options_of_check(&found)) {
        Ok((json, report)) => (json, Some(report)),
        Err(failure) => (told(failure), None),
    };
    let found = std::mem::take(&mut *found.lock().unwrap_or_else(PoisonError::into_inner));
    let listed = overview["pools"].as_array().into_iter().flatten();
    let ids: Vec<&str> = listed
        .clone()
        .filter_map(|pool| pool["uuid"].as_str())
        .collect();
    let mut taken = Taken::default();
    let mut pools = BTreeMap::new();
    for (at, id) in ids.iter().enumerate() {
        // What one pool leaves, the next ones have.
        let rest = ids.len() - at;
        let most = (options.objects.saturating_sub(taken.objects)).div_ceil(rest as u64);
        let bytes = OBJECTS_BYTES_MAX.saturating_sub(taken.bytes) / rest;
        let answer = survey.pool(id, |pool| {
            of_pool(pool, id, most, bytes, survey.redact, &mut taken)
        });
        pools.insert(*id, answer.unwrap_or_else(told));
    }
    let unread = listed.filter_map(|pool| {
        let why = pools.get(pool["uuid"].as_str()?)?["error"].as_str()?;
        Some((pool["name"].as_str()?.to_owned(), why.to_owned()))
    });
    let unread: BTreeMap<String, String> = unread.collect();
    let leaks = ids.iter().map(|id| (*id, found.of_pool(id).to_json()));
    let leaks: BTreeMap<&str, Json> = leaks.collect();
    let answers = json!({
        "overview": overview,
        "pools": pools,
        "logs": survey.logs().unwrap_or_else(told),
        "check": check,
        "leaks": leaks,
        "objects": taken.objects,
        "all_objects": taken.all,
        "unread": unread,
    });
    let mut elements = vec![("answers".to_owned(), answers)];
    elements.append(&mut taken.pieces);
    let html = page::whole(elements)?;
    put(path, &html)?;
    match options.json {
        true => output::json(
            out,
            &json!({
                "file": path,
                "bytes": html.len(),
                "objects": taken.objects,
                "all_objects": taken.all,
                "unread": unread,
            }),
        )?,
        false => {
            writeln!(
                out,
                "wrote {} ({}) with {} of {}{}",
                path.display(),
                size(html.len() as u64),
                grouped(taken.objects),
                count(taken.all, "object"),
                match taken.objects < taken.all {
                    true => " (--objects)",
                    false => "",
                }
            )?;
            for (pool, why) in &unread {
                writeln!(out, "nothing of pool \"{}\": {why}", printable(pool))?;
            }
        }
    }
    match report {
        Some(report) => survey::outcome(&report, path),
        None => Ok(()),
    }
}

/// How the store is checked: on a terminal with a bar, as that may take a while.
fn options_of_check(found: &Arc<Mutex<Leaks>>) -> CheckOptions {
    let found = found.clone();
    let add = move |leak: &Leak| {
        let mut found = found.lock().unwrap_or_else(PoisonError::into_inner);
        found.add(leak);
    };
    CheckOptions {
        progress: Some(progress::stages()),
        leaks: Some(Arc::new(add)),
        ..CheckOptions::default()
    }
}

/// What an answer says that failed.
fn told(failure: Failure) -> Json {
    json!({ "error": failure.to_string() })
}

/// The heap of a pool, and objects of it: those next to the root first, then others by address.
fn of_pool(
    pool: &PoolView<'_>,
    id: &str,
    most: u64,
    bytes_max: usize,
    redact: bool,
    taken: &mut Taken,
) -> Result<Json, Failure> {
    let heap = survey::heap(pool, 0, None)?;
    taken.all += heap["objects"].as_u64().unwrap_or(0);
    let ids = heap["by_type"].as_array().into_iter().flatten();
    let ids = ids.filter_map(|ty| ty["id"].as_str()).take(TYPES_MAX);
    let types = ids.filter_map(|id| {
        let number = u64::from_str_radix(id.strip_prefix("0x")?, 16).ok()?;
        Some((id.to_owned(), types::details(pool, number)))
    });
    let types: BTreeMap<_, _> = types.collect();
    let mut found = BTreeMap::<u64, (Json, usize)>::new();
    let mut bytes = 0;
    // Gives where the pointers of an object lead, if there was room for it.
    let mut take = |address: u64| {
        if found.len() as u64 >= most || bytes >= bytes_max {
            return None;
        }
        let shown = objects::at(pool, address, ELEMENTS, redact).ok()?;
        let length = shown.json.to_string().len();
        bytes += length;
        found.insert(address, (shown.json, length));
        Some(shown.leads_to)
    };
    let mut known: BTreeSet<u64> = pool.root()?.into_iter().collect();
    let mut waiting: VecDeque<u64> = known.iter().copied().collect();
    let mut is_full = false;
    while let Some(address) = waiting.pop_front() {
        let Some(leads_to) = take(address) else {
            // Of the others none is taken either, unless it was this one that could not be read.
            continue;
        };
        waiting.extend(leads_to.into_iter().filter(|start| known.insert(*start)));
    }
    // Damage is told with the heap.
    let mut damages = Damages::default();
    objects::each(pool, 0, None, None, &mut damages, |object, _| {
        if !known.contains(&object.start) {
            is_full = take(object.start).is_none();
        }
        !is_full
    });
    taken.objects += found.len() as u64;
    taken.bytes += bytes;
    let pieces = in_pieces(found);
    let firsts: Vec<Json> = pieces.iter().map(|it| it[0]["address"].clone()).collect();
    let named = pieces.into_iter().enumerate();
    let named = named.map(|(at, piece)| (format!("objects-{id}-{at}"), piece.into()));
    taken.pieces.extend(named);
    Ok(json!({ "heap": heap, "types": types, "firsts": firsts }))
}

/// Objects with the bytes of their JSON, in pieces of about as many bytes, by address: so the page knows in which piece
/// one is.
fn in_pieces(objects: BTreeMap<u64, (Json, usize)>) -> Vec<Vec<Json>> {
    let (mut pieces, mut room) = (Vec::<Vec<Json>>::new(), 0);
    for (object, length) in objects.into_values() {
        match pieces.last_mut().filter(|_| length <= room) {
            Some(piece) => piece.push(object),
            None => {
                pieces.push(vec![object]);
                room = PIECE_BYTES;
            }
        }
        room = room.saturating_sub(length);
    }
    pieces
}

/// A file in the store would be taken for a part of it, or take the place of one.
fn ensure_outside(survey: &Survey, path: &Path) -> Result<(), Failure> {
    let directory = directory_of(path);
    let real = |path: &Path| {
        let found = path.canonicalize();
        found.map_err(|error| Failure::file("looking for it", path, error))
    };
    // Of a running program it is a copy that is shown.
    for place in [&survey.place, &survey.program] {
        if let Place::Directory(store) = place
            && real(&directory)?.starts_with(real(store)?)
        {
            return Err(Failure::Refused(format!(
                "{}: this is in the store, in which nothing is written; name a file elsewhere",
                path.display()
            )));
        }
    }
    Ok(())
}

fn directory_of(path: &Path) -> PathBuf {
    match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent.to_owned(),
        _ => PathBuf::from("."),
    }
}

/// Writes the file as a whole or not at all. It is readable for this user alone, as it has a store's data in it.
fn put(path: &Path, html: &str) -> Result<(), Failure> {
    let failed = |error| Failure::file("writing it", path, error);
    let mut file = NamedTempFile::new_in(directory_of(path)).map_err(failed)?;
    file.write_all(html.as_bytes()).map_err(failed)?;
    file.persist(path).map_err(|error| failed(error.error))?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_have_all_objects_in_order_and_none_is_large() {
        let lengths = [10, 300_000, 10, 200_000, 62_144, 1, 262_143, 1];
        let objects = lengths.iter().enumerate();
        let objects = objects.map(|(at, length)| (at as u64, (json!(at), *length)));
        let pieces = in_pieces(objects.collect());
        let expected = [vec![0], vec![1], vec![2, 3], vec![4, 5], vec![6, 7]];
        assert_eq!(json!(pieces), json!(expected));
        assert!(in_pieces(BTreeMap::new()).is_empty());
    }
}
