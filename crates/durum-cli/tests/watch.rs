//! A program that has a store open is watched.

mod support;

use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use durum::{PoolOptions, Store, StoreOptions};
use serde_json::Value;
use support::page::Page;
use support::*;

#[test]
fn stat_watches_a_program_that_wants_that_and_says_why_not() {
    let dir = scratch();
    let path = dir.path().join("store");
    let store = Store::create(&path, StoreOptions::new()).unwrap();
    let stat = |how: &[&'static str]| [&["stat", text(&path)], how].concat();
    let pid = format!("process {} has it open", std::process::id());
    fails(&stat(&["--watch"]), 2, &pid);
    fails(&stat(&["--prometheus"]), 2, "StoreOptions::observe");
    drop(store);
    fails(&stat(&["--watch"]), 2, "no program has it open");

    let store = Store::open(&path, StoreOptions::new().observe(true)).unwrap();
    let pool = store.create_pool("a \"pool\"", PoolOptions::new());
    let pool = pool.unwrap();
    let root = pool.root::<u64>().unwrap();
    let commit = || {
        pool.transaction(|tx| {
            // SAFETY: the root lives as long as the pool is open, and only this thread is there.
            unsafe {
                tx.add(root)?;
                *root += 1;
            }
            Ok::<_, durum::Error>(())
        })
        .unwrap();
    };
    commit();
    let shown = succeeds(&stat(&["--watch", "--once"])).out;
    let me = format!("process {}: open for ", std::process::id());
    assert!(shown.starts_with(&me), "{shown}");
    let row = |name: &str| {
        let mut lines = shown.lines();
        let line = lines.find(|line| line.starts_with(name));
        line.unwrap_or_else(|| panic!("no {name} in {shown}"))
            .to_owned()
    };
    assert!(row("a \"pool\"").contains("shadow"), "{shown}");
    assert!(row("fences").ends_with('-'), "{shown}");

    let text = succeeds(&stat(&["--prometheus"])).out;
    let labels = format!(
        "store=\"{}\",process=\"{}\"",
        store.info().uuid,
        std::process::id()
    );
    for line in [
        "# TYPE durum_program_fences counter".to_owned(),
        "# TYPE durum_program_pool_bytes gauge".to_owned(),
        format!("durum_program_pool_bytes{{{labels},pool=\"a \\\"pool\\\"\"}} 2097152"),
        "# EOF".to_owned(),
    ] {
        assert!(text.lines().any(|found| found == line), "{line}: {text}");
    }
    let begins = format!("durum_program_transactions_total{{{labels}}} ");
    assert!(text.contains(&begins), "{text}");

    // Lines come as long as the store is open, and the last one says what was done meanwhile.
    let mut watcher = Command::new(env!("CARGO_BIN_EXE_durum"))
        .args(stat(&["--watch", "--json", "--interval", "0.1"]))
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(watcher.stdout.take().unwrap()).lines();
    let mut transactions = || {
        let line: Value = serde_json::from_str(&lines.next().unwrap().unwrap()).unwrap();
        let program = &line["programs"][0];
        assert_eq!(program["pools"][0]["bytes"], 2097152);
        program["numbers"]["transactions"].as_u64().unwrap()
    };
    let before = transactions();
    commit();
    commit();
    while transactions() < before + 2 {}
    drop((pool, store));
    let ended = watcher.wait_with_output().unwrap();
    assert!(ended.status.success());
    let said = String::from_utf8(ended.stderr).unwrap();
    assert!(said.contains("the store was closed"), "{said}");
}

/// How long a program that does nothing but transactions may go without one.
const PATIENCE: Duration = Duration::from_secs(60);

#[repr(C)]
struct Pair {
    one: u64,
    other: u64,
}
durum::describe!(Pair as "pair" { one, other });

#[repr(C)]
struct Link {
    to: *mut Pair,
}
durum::describe!(Link as "link" { to });

struct End<'e>(&'e AtomicBool);

impl Drop for End<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Runs `durum` with its own directory for what it makes for a while, of which nothing may be left.
fn alone(arguments: &[&str], code: i32) -> String {
    let dir = scratch();
    let ran = Command::new(env!("CARGO_BIN_EXE_durum"))
        .args(arguments)
        .env("TMPDIR", dir.path())
        .output()
        .unwrap();
    assert_eq!(ran.status.code(), Some(code), "{ran:?}");
    assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 0);
    let said = if code == 0 { ran.stdout } else { ran.stderr };
    String::from_utf8(said).unwrap()
}

/// Asks until a number is larger than `before`: the program may wait for a processor meanwhile.
fn grows_above(before: u64, now: impl Fn() -> u64) {
    let asked = Instant::now();
    while now() <= before {
        assert!(asked.elapsed() < PATIENCE, "it stands at {before}");
    }
}

#[test]
fn pools_are_looked_at_while_their_program_goes_on() {
    let dir = scratch();
    let path = dir.path().join("store");
    let store = Store::create(&path, StoreOptions::new().observe(true)).unwrap();
    let pairs = store.create_pool("pairs", PoolOptions::new()).unwrap();
    let links = store.create_pool("links", PoolOptions::new()).unwrap();
    let pair = pairs.root::<Pair>().unwrap();
    let link = links.root::<Link>().unwrap();
    links
        .transaction(|tx| {
            // SAFETY: the root lives as long as the pool is open.
            unsafe {
                tx.add(link)?;
                (*link).to = pair;
            }
            Ok::<_, durum::Error>(())
        })
        .unwrap();
    let (pair, ends) = (pair.addr(), AtomicBool::new(false));
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let pair = std::ptr::with_exposed_provenance_mut::<Pair>(pair);
            while !ends.load(Ordering::Relaxed) {
                pairs
                    .transaction(|tx| {
                        // SAFETY: as above, and no other thread changes it.
                        unsafe {
                            tx.add(pair)?;
                            (*pair).one += 1;
                            (*pair).other += 1;
                        }
                        Ok::<_, durum::Error>(())
                    })
                    .unwrap();
            }
        });
        // Also where something below fails.
        let _end = End(&ends);
        let shown = |pool| {
            let all = ["inspect", text(&path), pool, "--live", "--json"];
            serde_json::from_str::<Value>(&alone(&all, 0)).unwrap()
        };
        let first = shown("pairs")["value"].clone();
        assert!(first["one"].is_u64(), "{first}");
        assert_eq!(first["one"], first["other"]);
        // Its pointers lead to the other pool, which is shown with it, at the same addresses.
        let linked = shown("links");
        let address = format!("{:#x}", pair);
        assert!(linked["value"].to_string().contains(&address), "{linked}");
        let one = || shown("pairs")["value"]["one"].as_u64().unwrap();
        grows_above(first["one"].as_u64().unwrap(), one);
        let checked = alone(&["check", text(&path), "--live"], 0);
        assert!(checked.contains("pool \"pairs\": 1 object"), "{checked}");
        assert!(checked.ends_with("sound\n"), "{checked}");
        // The same for a browser, with what the program counts; the copy goes with the page.
        let copies = scratch();
        let mut command = Command::new(env!("CARGO_BIN_EXE_durum"));
        command.env("TMPDIR", copies.path());
        let mut page = Page::from(command, &[text(&path), "--live"]);
        let overview = page.get("overview");
        assert_eq!(overview["live"], true);
        assert_eq!(overview["pools"].as_array().unwrap().len(), 2);
        for pool in overview["pools"].as_array().unwrap() {
            let heap = page.get(&format!("heap?pool={}", pool["uuid"].as_str().unwrap()));
            assert_eq!(heap["objects"], 1, "{heap}");
        }
        let counted = || {
            let program = &page.get("program")["programs"][0];
            assert_eq!(program["process"], std::process::id());
            program["numbers"]["transactions"].as_u64().unwrap()
        };
        grows_above(counted(), counted);
        assert_eq!(page.interrupt(), 130);
        // What is shown is a copy, and the store is not written to all the same.
        let inside = path.join("registry");
        let all = ["explore", text(&path), "--live", "--html", text(&inside)];
        let refused = alone(&all, 2);
        assert!(refused.contains("this is in the store"), "{refused}");
        assert_eq!(std::fs::read_dir(copies.path()).unwrap().count(), 0);
        // The pool that is not open.
        let refused = alone(&["inspect", text(&path), "other", "--live"], 2);
        assert!(refused.contains("other"), "{refused}");
        // What was not asked for goes on as before.
        fails(&["check", text(&path)], 2, "");
    });
    drop((pairs, links, store));
    let refused = alone(&["check", text(&path), "--live"], 2);
    assert!(refused.contains("no program has it open"), "{refused}");
}
