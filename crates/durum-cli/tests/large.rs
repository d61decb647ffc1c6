//! `durum explore` with a large store: what it answers at once, and what it goes on with while somebody asks.
//!
//! `DURUM_LARGE_OBJECTS` says how many objects of 1 KiB there are, 300,000 if it does not; `DURUM_LARGE_STORE` where
//! the store is, which is made there if it is missing, and stays.

mod support;

use std::path::PathBuf;
use std::process::Command;
use std::time::{Duration, Instant};

use serde_json::Value;
use support::large::{LOST, make_large, objects_wanted};
use support::page::Page;
use support::*;

/// What is asked, and how long the answers take.
struct Asker<'a> {
    page: &'a Page,
    longest: Duration,
}

impl Asker<'_> {
    fn get(&mut self, what: &str) -> Value {
        let begun = Instant::now();
        let answer = self.page.get(what);
        self.longest = self.longest.max(begun.elapsed());
        answer
    }

    /// Tells how long that took which was done since, with the longest answer.
    fn told(&mut self, what: &str, begun: Instant) -> Duration {
        let longest = std::mem::take(&mut self.longest);
        let all = begun.elapsed();
        eprintln!(
            "{what}: {all:.1?}, longest answer {longest:.1?}, {}",
            memory(self.page)
        );
        assert!(longest < Duration::from_secs(1), "{what}: {longest:?}");
        all
    }
}

/// What the process has in memory, and had at most.
fn memory(page: &Page) -> String {
    let status = std::fs::read_to_string(format!("/proc/{}/status", page.child.id())).unwrap();
    let of = |name: &str| {
        let line = status.lines().find(|line| line.starts_with(name)).unwrap();
        let kib: u64 = line.split_whitespace().nth(1).unwrap().parse().unwrap();
        format!("{} MiB", kib >> 10)
    };
    format!("memory {}, at most {}", of("VmRSS"), of("VmHWM"))
}

#[test]
#[ignore = "makes a store of 300 MiB: ci/campaigns.sh"]
fn a_large_store_is_shown_at_once_and_its_leaks_as_they_are_found() {
    let dir = scratch();
    let objects = objects_wanted(300_000);
    let kept = std::env::var_os("DURUM_LARGE_STORE");
    let path = kept.map_or_else(|| dir.path().join("store"), PathBuf::from);
    if !path.exists() {
        let begun = Instant::now();
        make_large(&path, objects);
        eprintln!("made in {:?}", begun.elapsed());
    }

    let begun = Instant::now();
    let page = Page::of(&[text(&path)]);
    let mut asker = Asker {
        page: &page,
        longest: Duration::ZERO,
    };
    assert!(
        page.ask("GET", &page.path, "")
            .1
            .contains("<!doctype html>")
    );
    let overview = asker.get("overview");
    let id = overview["pools"][0]["uuid"].as_str().unwrap().to_owned();
    let mut heap = asker.get(&format!("heap?pool={id}"));
    let shown = asker.told("the store, and what is first of its heap", begun);
    assert!(shown < Duration::from_secs(1), "{shown:?}");

    let begun = Instant::now();
    let mut count = heap["objects"].as_u64().unwrap();
    let mut parts = 1;
    let mut types = heap["by_type"].as_array().unwrap().clone();
    while let Some(next) = heap["next"].as_str() {
        heap = asker.get(&format!("heap?pool={id}&from={next}"));
        count += heap["objects"].as_u64().unwrap();
        types.extend(heap["by_type"].as_array().unwrap().iter().cloned());
        parts += 1;
    }
    eprintln!(
        "{count} objects, {} puddles, {parts} parts",
        heap["all_puddles"]
    );
    assert_eq!(count, objects + LOST);
    asker.told("the whole heap", begun);

    let of_type = |name: &str| {
        let ty = types.iter().find(|ty| ty["name"] == name).unwrap();
        ty["id"].as_str().unwrap().to_owned()
    };
    let begun = Instant::now();
    let mut last = asker.get(&format!("objects?pool={id}&type={}", of_type("note")));
    let notes = last["objects"].as_array().unwrap().clone();
    assert!(notes.len() > 10);
    asker.told("notes", begun);
    // The only one of its type: nothing but that is found in the whole heap.
    let begun = Instant::now();
    let shelf = of_type("shelf");
    let mut found = 0;
    let mut from = "0".to_owned();
    loop {
        last = asker.get(&format!("objects?pool={id}&type={shelf}&from={from}"));
        found += last["objects"].as_array().unwrap().len();
        let Some(next) = last["next"].as_str() else {
            break;
        };
        from = next.to_owned();
    }
    assert_eq!(found, 1);
    asker.told("the one shelf", begun);

    let begun = Instant::now();
    let mut note = notes[0]["address"].as_str().unwrap().to_owned();
    let object = asker.get(&format!("object?pool={id}&address={note}"));
    assert_eq!(object["type"], "note");
    asker.told("a note", begun);
    let begun = Instant::now();
    let (mut pointers, mut from) = (0, "0".to_owned());
    loop {
        let part = asker.get(&format!("referrers?pool={id}&address={note}&from={from}"));
        pointers += part["count"].as_u64().unwrap();
        let Some(next) = part["next"].as_str() else {
            break;
        };
        from = next.to_owned();
    }
    asker.told("who points to it", begun);
    assert_eq!(pointers, 1);

    // While it is checked others are answered, and leaks come before it has ended.
    let begun = Instant::now();
    let mut check = asker.get(&format!("check?pool={id}"));
    let mut stages = Vec::new();
    while check["ended"] == false {
        let stage = check["stage"].as_str().unwrap().to_owned();
        if stages.last().is_none_or(|(last, _)| *last != stage) {
            stages.push((stage, begun.elapsed()));
        }
        let object = asker.get(&format!("object?pool={id}&address={note}"));
        note = object["address"].as_str().unwrap().to_owned();
        let run = check["run"].as_str().unwrap();
        check = asker.get(&format!("check?pool={id}&run={run}"));
    }
    eprintln!("{stages:.1?}");
    asker.told("a check", begun);
    assert_eq!(check["pools"][0]["leaks"]["objects"], LOST);
    for by in ["type", "puddle"] {
        let found = check["found"][by].as_object().unwrap().values();
        let found: u64 = found.map(|it| it["objects"].as_u64().unwrap()).sum();
        assert_eq!(found, LOST, "by {by}");
    }

    // Who goes away ends it: the process does nothing then.
    asker.get("check");
    std::thread::sleep(Duration::from_secs(8));
    let ticks = || {
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", page.child.id())).unwrap();
        let of_process = stat.rsplit(')').next().unwrap().split_whitespace();
        let used = of_process.skip(11).take(2);
        used.map(|it| it.parse::<u64>().unwrap()).sum::<u64>()
    };
    let before = ticks();
    std::thread::sleep(Duration::from_secs(1));
    assert!(
        ticks() - before < 10,
        "it goes on with what nobody asks for"
    );
    eprintln!("in the end: {}", memory(&page));

    let begun = Instant::now();
    let file = dir.path().join("store.html");
    let told = Command::new(env!("CARGO_BIN_EXE_durum"))
        .args(["explore", text(&path), "--html", text(&file)])
        .output()
        .unwrap();
    assert!(told.status.success(), "{told:?}");
    eprintln!(
        "{} in {:.1?}",
        String::from_utf8_lossy(&told.stdout),
        begun.elapsed()
    );
    assert!(file.metadata().unwrap().len() < 64 << 20);
}
