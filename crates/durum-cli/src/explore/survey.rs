//! What the page may ask about a store. Each answer looks anew: a program may have had the store open in between.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::{Duration, Instant};

use durum_service::{CheckOptions, CheckReport, ReadOnlyStore, Severity};
use serde_json::{Value as Json, json};

use super::checking::Checking;
use super::objects::{self, ELEMENTS, ELEMENTS_MAX};
use super::tree::hex;
use super::types;
use crate::commands::{check, ls, recover, stat, state::States};
use crate::failure::Failure;
use crate::inspect::heap::Heap;
use crate::inspect::pool::PoolView;
use crate::inspect::{logs, records};
use crate::output::count;
use crate::place::Place;
use crate::watch;

/// Puddles of a pool that are told of in one answer.
const PUDDLES_MAX: usize = 1000;
/// How long an answer may take that is one of several: somebody waits for it.
const PART_TIME: Duration = Duration::from_millis(200);
/// Types of a puddle.
const TYPES_MAX: usize = 20;
/// Findings of a check.
const FINDINGS_MAX: usize = 1000;

/// A store that is looked at.
#[derive(Debug)]
pub(super) struct Survey {
    pub(super) place: Place,
    /// Where its program has it open: elsewhere, if what is looked at is a copy of one moment.
    pub(super) program: Place,
    pub(super) is_live: bool,
    /// As the user has named it.
    pub(super) name: String,
    pub(super) redact: bool,
    /// What is checked in the background.
    pub(super) checking: Checking,
}

/// What was asked, with the words behind the question mark.
pub(super) struct Question<'a> {
    pub(super) what: &'a str,
    pub(super) words: BTreeMap<&'a str, &'a str>,
}

impl Question<'_> {
    fn word(&self, name: &str) -> Result<&str, Failure> {
        let word = self.words.get(name).copied();
        word.ok_or_else(|| Failure::Refused(format!("which {name}?")))
    }

    fn number_or(&self, name: &str, without: u64) -> Result<u64, Failure> {
        match self.words.contains_key(name) {
            true => self.number(name),
            false => Ok(without),
        }
    }

    fn number(&self, name: &str) -> Result<u64, Failure> {
        let word = self.word(name)?;
        let digits = word.strip_prefix("0x").unwrap_or(word);
        let number = u64::from_str_radix(digits, 16);
        number.map_err(|_| Failure::Refused(format!("{name} is no hexadecimal number")))
    }
}

impl Survey {
    /// What the programs count that have the store open and let themselves be watched.
    fn program(&self) -> Result<Json, Failure> {
        watch::numbers(&self.program.read()?)
    }

    /// The answer to a question, or `None` where there is no such question.
    pub(super) fn answer(&self, question: &Question<'_>) -> Option<Result<Json, Failure>> {
        let in_pool = |read: &dyn Fn(&PoolView<'_>) -> Result<Json, Failure>| {
            self.pool(question.word("pool")?, read)
        };
        Some(match question.what {
            "overview" => self.overview(),
            "logs" => self.logs(),
            "check" => self.checked(question),
            "program" => self.program(),
            "heap" => in_pool(&|pool| heap(pool, question.number_or("from", 0)?, Some(PART_TIME))),
            "type" => in_pool(&|pool| Ok(types::details(pool, question.number("type")?))),
            "object" => in_pool(&|pool| {
                let elements = match question.words.get("elements") {
                    Some(words) => words.parse().unwrap_or(ELEMENTS).min(ELEMENTS_MAX),
                    None => ELEMENTS,
                };
                let address = question.number("address")?;
                Ok(objects::at(pool, address, elements, self.redact)?.json)
            }),
            "objects" => in_pool(&|pool| {
                let from = question.number_or("from", 0)?;
                let ty = question.number("type")?;
                objects::of_type(pool, ty, from, self.redact, Instant::now() + PART_TIME)
            }),
            "referrers" => in_pool(&|pool| {
                let from = question.number_or("from", 0)?;
                let address = question.number("address")?;
                objects::leading_to(pool, address, from, self.redact, Instant::now() + PART_TIME)
            }),
            _ => return None,
        })
    }

    /// The store and its pools: quick, whatever is in them.
    pub(super) fn overview(&self) -> Result<Json, Failure> {
        let store = self.place.read()?;
        let pools = store.pools();
        let states = States::of(store.name(), &store, &pools)?;
        let mut shown = pools.clone();
        if let Some(name) = self.place.pool(None)? {
            shown.retain(|pool| pool.name == name);
        }
        let mut told = ls::all_to_json(&shown, &states);
        for (told, pool) in told.iter_mut().zip(&shown) {
            told["state"] = json!(states.line(pool));
        }
        Ok(json!({
            "name": self.name,
            "version": env!("CARGO_PKG_VERSION"),
            "redacted": self.redact,
            "live": self.is_live,
            "store": stat::to_json(&store, &pools, &states)?,
            "pools": told,
        }))
    }

    /// Logs, and what recovery would do by them.
    pub(super) fn logs(&self) -> Result<Json, Failure> {
        let mut store = self.place.read()?;
        store.look(None)?;
        store.look_at_logs()?;
        Ok(json!({
            "logs": logs::read(&store)?.iter().map(logs::Log::to_json).collect::<Vec<_>>(),
            "records": records::read(&store)?.iter().map(records::Records::to_json).collect::<Vec<_>>(),
            "pending": recover::to_json(store.pending()),
            "clean": store.is_clean(),
        }))
    }

    /// What a check has found so far, which goes on in the background.
    fn checked(&self, question: &Question<'_>) -> Result<Json, Failure> {
        let run = match question.words.contains_key("run") {
            true => Some(question.number("run")?),
            false => None,
        };
        let place = self.place.clone();
        let pool = question.words.get("pool").copied();
        let check = move |how: &CheckOptions| check(&place, how).map(|(json, _)| json);
        self.checking.answer(run, pool, check)
    }

    /// Reads in the pool with this uuid.
    pub(super) fn pool<T>(
        &self,
        uuid: &str,
        read: impl FnOnce(&PoolView<'_>) -> Result<T, Failure>,
    ) -> Result<T, Failure> {
        let mut store = self.place.read()?;
        let pools = store.pools();
        let Some(pool) = pools.iter().find(|pool| pool.uuid.to_string() == uuid) else {
            return Err(Failure::Refused("there is no such pool any more".into()));
        };
        if let Some((_, refused)) = store.look(Some(&pool.name))?.into_iter().next() {
            return Err(refused.into());
        }
        ensure_quiet(&store)?;
        let answer = read(&PoolView::open(&store, &pool.name)?)?;
        // What was read while somebody wrote is nobody's state.
        ensure_quiet(&store)?;
        Ok(answer)
    }
}

fn ensure_quiet(store: &ReadOnlyStore) -> Result<(), Failure> {
    let Some(pid) = store.writer()? else {
        return Ok(());
    };
    let busy = durum_service::Error::StoreBusy {
        path: store.name().to_owned(),
        pid: (pid != 0).then_some(pid),
    };
    Err(Failure::Refused(format!(
        "{busy}; a program that lets itself be watched is shown with `durum explore --live`"
    )))
}

/// The puddles and types of a pool: those from an address on, as many as can be read in a time, but one at least.
/// `next` is where the rest begins. Without a limit it is all of them, and puddles are told of up to a number.
pub(super) fn heap(
    pool: &PoolView<'_>,
    from: u64,
    limit: Option<Duration>,
) -> Result<Json, Failure> {
    let until = limit.map(|limit| Instant::now() + limit);
    let behind = pool
        .puddles
        .partition_point(|view| view.header().address < from);
    let wanted = pool.puddles.get(behind..).unwrap_or_default();
    let most = limit.map_or(usize::MAX, |_| PUDDLES_MAX).min(wanted.len());
    let heap = Heap::of_puddles(pool, wanted.get(..most).unwrap_or_default(), until);
    let next = wanted.get(heap.puddles.len());
    let next = next.map(|view| hex(view.header().address));
    let mut all = BTreeMap::<u64, (u64, u64)>::new();
    for (id, (objects, bytes)) in heap.puddles.iter().flat_map(|puddle| &puddle.types) {
        let sum = all.entry(*id).or_default();
        sum.0 += objects;
        sum.1 += bytes;
    }
    let mut json = heap.to_json();
    let puddles = heap.puddles.iter().take(PUDDLES_MAX).map(|puddle| {
        let mut told = puddle.to_json();
        let mut types: Vec<_> = puddle.types.iter().collect();
        types.sort_by_key(|(_, (_, bytes))| std::cmp::Reverse(*bytes));
        told["types_more"] = json!(types.len().saturating_sub(TYPES_MAX));
        let shown = types.iter().take(TYPES_MAX).map(|(id, (objects, bytes))| {
            json!({ "id": hex(**id), "name": pool.type_name(**id), "objects": objects, "bytes": bytes })
        });
        told["types"] = shown.collect();
        told
    });
    json["puddles"] = puddles.collect();
    json["puddles_more"] = json!(heap.puddles.len().saturating_sub(PUDDLES_MAX));
    json["all_puddles"] = json!(pool.puddles.len());
    json["objects"] = json!(all.values().map(|(objects, _)| objects).sum::<u64>());
    json["by_type"] = types::used(pool, &all);
    json["changed"] = types::changed(pool);
    json["root"] = json!(pool.root()?.map(hex));
    json["damages"] = json!(heap.damages.in_words());
    json["next"] = json!(next);
    Ok(json)
}

/// What `durum check` finds, which reads everything.
pub(super) fn check(place: &Place, how: &CheckOptions) -> Result<(Json, CheckReport), Failure> {
    let mut report = check::look(place, how)?;
    let more = report.findings.len().saturating_sub(FINDINGS_MAX);
    // What is worse is told first.
    report
        .findings
        .sort_by_key(|finding| std::cmp::Reverse(finding.severity));
    let all = report.clone();
    report.findings.truncate(FINDINGS_MAX);
    let mut json = check::to_json(&report, &[]);
    json["sound"] = json!(all.is_sound());
    json["more"] = json!(more);
    Ok((json, all))
}

/// The failure that tells of damage that a check has found.
pub(super) fn outcome(report: &CheckReport, path: &Path) -> Result<(), Failure> {
    match check::of(report, Severity::Damage) {
        0 => Ok(()),
        damages => Err(Failure::Damaged(format!(
            "{} found; {} tells of them, and `durum check` what to do",
            count(damages, "damage"),
            path.display()
        ))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use durum::{PoolOptions, Store, StoreOptions};

    #[repr(C)]
    struct Thing {
        number: u64,
    }
    durum::describe!(Thing as "thing" { number });

    /// The answers to a question and to those for what comes behind, by the `next` of each.
    fn parts(survey: &Survey, question: &str) -> Vec<Json> {
        let (what, words) = question.split_once('?').unwrap();
        let mut all: Vec<Json> = Vec::new();
        let mut from = "0".to_owned();
        loop {
            let words = words.split('&').filter_map(|word| word.split_once('='));
            let mut words: BTreeMap<&str, &str> = words.collect();
            words.insert("from", &from);
            let answer = survey.answer(&Question { what, words }).unwrap().unwrap();
            let next = answer["next"].as_str().map(str::to_owned);
            all.push(answer);
            match next {
                Some(next) => from = next,
                None => return all,
            }
        }
    }

    fn of_store(path: &Path) -> Survey {
        Survey {
            place: Place::Directory(path.to_owned()),
            program: Place::Directory(path.to_owned()),
            is_live: false,
            name: "things".into(),
            redact: false,
            checking: Checking::default(),
        }
    }

    #[test]
    fn what_is_long_comes_in_parts_that_make_the_whole() {
        let directory = tempfile::tempdir_in("/dev/shm").unwrap();
        let path = directory.path().join("store");
        let store = Store::create(&path, StoreOptions::new()).unwrap();
        let pool = store.create_pool("things", PoolOptions::new()).unwrap();
        let things = 2 * objects::AT_ONCE as u64 + 50;
        pool.transaction(|tx| {
            for _ in 0..things {
                tx.alloc::<Thing>()?;
            }
            // Each has a puddle of its own.
            for _ in 0..3 {
                tx.alloc_bytes(&pool, 0, 3 << 20, 8)?;
            }
            Ok::<_, durum::Error>(())
        })
        .unwrap();
        let id = pool.uuid().to_string();
        drop((pool, store));
        let survey = of_store(&path);
        let whole = survey.pool(&id, |pool| heap(pool, 0, None)).unwrap();
        let puddles = whole["all_puddles"].as_u64().unwrap();
        assert!(puddles >= 4, "{whole}");
        let (mut from, mut seen, mut count) = (0, Vec::new(), 0);
        loop {
            // No time at all: one puddle each.
            let part = survey
                .pool(&id, |pool| heap(pool, from, Some(Duration::ZERO)))
                .unwrap();
            assert_eq!(part["puddles"].as_array().unwrap().len(), 1);
            seen.push(part["puddles"][0].clone());
            count += part["objects"].as_u64().unwrap();
            let Some(next) = part["next"].as_str() else {
                break;
            };
            from = u64::from_str_radix(next.strip_prefix("0x").unwrap(), 16).unwrap();
        }
        assert_eq!(whole["puddles"], Json::from(seen));
        assert_eq!(whole["objects"], count);
        assert_eq!(count, things + 3);

        let types = whole["by_type"].as_array().unwrap();
        let thing = types.iter().find(|ty| ty["name"] == "thing").unwrap();
        let question = format!("objects?pool={id}&type={}", thing["id"].as_str().unwrap());
        let listed = parts(&survey, &question);
        assert_eq!(listed.len(), 3);
        let addresses = listed
            .iter()
            .flat_map(|part| part["objects"].as_array().unwrap());
        let addresses: Vec<_> = addresses
            .map(|it| it["address"].as_str().unwrap())
            .collect();
        let different: std::collections::BTreeSet<_> = addresses.iter().collect();
        assert_eq!(
            (addresses.len() as u64, different.len() as u64),
            (things, things)
        );
    }
    /// So large that each has a puddle of its own.
    #[repr(C)]
    struct Large {
        to: *mut Thing,
        rest: [u8; 3 << 20],
    }
    durum::describe!(Large as "large" { to, rest });

    #[test]
    fn what_is_damaged_is_told_once_and_what_lies_behind_it_is_found() {
        let directory = tempfile::tempdir_in("/dev/shm").unwrap();
        let path = directory.path().join("store");
        let store = Store::create(&path, StoreOptions::new()).unwrap();
        let pool = store.create_pool("things", PoolOptions::new()).unwrap();
        let thing = pool.transaction(|tx| {
            let thing = tx.alloc::<Thing>()?;
            for _ in 0..3 {
                let large = tx.alloc::<Large>()?;
                // SAFETY: it is new, and this thread's alone.
                unsafe { (*large).to = thing };
            }
            Ok::<_, durum::Error>(thing as u64)
        });
        let (thing, id) = (thing.unwrap(), pool.uuid().to_string());
        drop((pool, store));
        let survey = of_store(&path);
        let question = format!("referrers?pool={id}&address={thing:#x}");
        let pointers = |parts: &[Json]| -> u64 {
            parts
                .iter()
                .map(|part| part["count"].as_u64().unwrap())
                .sum()
        };
        assert_eq!(pointers(&parts(&survey, &question)), 3);
        // Without any time it is one of these at once, and many small ones: what is large is counted as much.
        let begun = Instant::now();
        let part = survey.pool(&id, |pool| {
            objects::leading_to(pool, thing, 0, false, begun)
        });
        assert_eq!(part.unwrap()["count"], 1);

        // The first one of those that point there, which is neither the first puddle nor the last one.
        let found = parts(&survey, &question);
        let first = found[0]["pointers"][0]["address"].as_str().unwrap();
        let first = u64::from_str_radix(first.strip_prefix("0x").unwrap(), 16).unwrap();
        let header = survey.pool(&id, |pool| {
            let view = pool.view_at(first).unwrap();
            let extent = durum_format::extent::extents(view, view.header()).next();
            Ok((view.path().to_owned(), extent.unwrap().unwrap().offset()))
        });
        let (file, offset) = header.unwrap();
        let file = std::fs::File::options().write(true).open(file).unwrap();
        std::os::unix::fs::FileExt::write_all_at(&file, &[0xff; 16], offset).unwrap();

        let found = parts(&survey, &question);
        assert_eq!(pointers(&found), 2);
        let types = survey.pool(&id, |pool| heap(pool, 0, None)).unwrap();
        let types = types["by_type"].as_array().unwrap();
        let large = types.iter().find(|ty| ty["name"] == "large").unwrap();
        let question = format!("objects?pool={id}&type={}", large["id"].as_str().unwrap());
        let listed = parts(&survey, &question);
        let objects = listed
            .iter()
            .map(|part| part["objects"].as_array().unwrap().len());
        assert_eq!(objects.sum::<usize>(), 2);
        for parts in [found, listed] {
            let damages = parts
                .iter()
                .map(|part| part["damages"].as_array().unwrap().len());
            assert_eq!(damages.sum::<usize>(), 1, "{parts:?}");
        }
    }
}
