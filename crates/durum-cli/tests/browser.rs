//! The page of `durum explore` in a real browser. `ci/test-browser.sh` runs this.

mod support;

use std::path::PathBuf;
use std::time::{Duration, Instant};

use serde_json::Value;
use support::browser::Browser;
use support::large::{LOST, make_large, objects_wanted};
use support::page::{Page, make_hostile};
use support::*;

#[test]
#[ignore = "needs chromium-headless-shell: ci/test-long.sh runs it by ci/test-browser.sh"]
fn a_browser_shows_the_page_by_keyboard_in_both_schemes_and_runs_nothing_of_the_store() {
    let dir = scratch();
    let path = dir.path().join("store");
    make_hostile(&path);
    let before = contents(&path);
    let file = dir.path().join("store.html");
    succeeds(&["explore", text(&path), "--html", text(&file)]);
    let page = Page::of(&[text(&path)]);
    let mut browser = Browser::start(&dir.path().join("profile"));
    let hostile = "</script><img src=x onerror=alert(1)>";
    for (name, url) in [
        ("file", format!("file://{}", file.display())),
        (
            "served",
            format!("http://127.0.0.1:{}{}", page.port, page.path),
        ),
    ] {
        browser.open(&url, "Store ");
        browser.picture(&format!("{name}-store"));
        browser.enter("<script>alert('pool')");
        browser.wait("Pool <script>alert('pool')\\u{202e}");
        // Who hears the page is where the new one begins.
        assert_eq!(browser.value("document.activeElement.id"), "content");
        // The store is small: nobody has to ask.
        browser.wait_for("Objects that nothing leads to: ");
        browser.picture(&format!("{name}-pool"));
        browser.enter("object at 0x");
        browser.wait(hostile);
        browser.picture(&format!("{name}-object"));
        let shown = browser.value("document.querySelector('.tree').innerText");
        let shown = shown.as_str().unwrap().to_owned();
        assert!(
            shown.contains("</script><script>alert(1)</script><!-- \\u{202e}\\n&lt;"),
            "{shown}"
        );
        // From the root to what it points to, and from there back.
        let root = browser.value("document.querySelector('h1').textContent");
        browser.enter(&format!("{hostile} at 0x"));
        let begun = Instant::now();
        while browser.value("document.querySelector('h1').textContent") == root {
            assert!(begun.elapsed() < Duration::from_secs(20));
        }
        browser.enter("Who points here?");
        let begun = Instant::now();
        while browser.value("document.querySelector('main tbody')?.innerText ?? ''") == "" {
            assert!(begun.elapsed() < Duration::from_secs(20));
        }
        let to = browser.value("document.querySelector('main tbody a').textContent");
        assert_eq!(to, root, "the root points there");
        for (view, heading) in [
            ("check", "Check"),
            ("logs", "Logs and recovery"),
            ("nothing", "This cannot be shown"),
        ] {
            browser.value(&format!("void (location.hash = '{view}')"));
            browser.wait(heading);
        }
        browser.value("void (location.hash = '')");
        browser.wait("Store ");
        for (view, tag) in [
            ("img", "an image"),
            ("iframe", "a frame"),
            ("script:not([nonce]):not([type])", "a program"),
        ] {
            let found = browser.value(&format!("document.querySelectorAll('{view}').length"));
            assert_eq!(found, 0, "{tag} of the store");
        }
        // The policy holds, and markup that got in would be refused.
        let refused = browser.value(
            "(() => { try { document.body.innerHTML = '<b>'; } catch (it) { return it.name; } })()",
        );
        assert_eq!(refused, "TypeError", "Trusted Types");
        browser
            .complaints
            .retain(|it| !it.to_string().contains("TrustedHTML"));
        assert_eq!(browser.complaints, Vec::<Value>::new(), "{name}");

        let mut grounds = Vec::new();
        for scheme in ["light", "dark"] {
            browser.scheme(scheme);
            browser.picture(&format!("{name}-{scheme}"));
            grounds.push(browser.value("getComputedStyle(document.body).backgroundColor"));
        }
        assert_eq!(grounds, ["rgb(255, 255, 255)", "rgb(13, 17, 23)"]);
    }
    assert_eq!(contents(&path), before, "nothing is written");
}

/// A store of 300 MiB, or what `DURUM_LARGE_STORE` names (tests/large.rs).
#[test]
#[ignore = "needs chromium-headless-shell: ci/test-long.sh runs it by ci/test-browser.sh"]
fn a_browser_shows_a_large_store_and_no_task_of_the_page_takes_long() {
    let dir = scratch();
    let kept = std::env::var_os("DURUM_LARGE_STORE");
    let path = kept.map_or_else(|| dir.path().join("store"), PathBuf::from);
    if !path.exists() {
        make_large(&path, objects_wanted(300_000));
    }
    let file = dir.path().join("store.html");
    succeeds(&["explore", text(&path), "--html", text(&file)]);
    let page = Page::of(&[text(&path)]);
    let mut browser = Browser::start(&dir.path().join("profile"));
    let mut long = Vec::new();
    for (name, url) in [
        ("file", format!("file://{}", file.display())),
        (
            "served",
            format!("http://127.0.0.1:{}{}", page.port, page.path),
        ),
    ] {
        browser.trace();
        let begun = Instant::now();
        browser.open(&url, "Store ");
        eprintln!("{name}: the store after {:.0?}", begun.elapsed());
        let begun = Instant::now();
        browser.enter("shelf");
        browser.wait("Pool shelf");
        eprintln!("{name}: the pool after {:.0?}", begun.elapsed());
        if name == "served" {
            let begun = Instant::now();
            browser.wait_for("all of ");
            eprintln!("{name}: its whole heap after {:.0?}", begun.elapsed());
            browser.enter("Look for leaks");
        }
        let begun = Instant::now();
        browser.wait_for(&format!("Objects that nothing leads to: {LOST} objects"));
        eprintln!("{name}: its leaks after {:.0?}", begun.elapsed());
        // Which type, and how many.
        let cells = "[...document.querySelectorAll('td .bad')].map((it) => it.textContent)";
        let cells = browser.value(&format!("{cells}.join()"));
        let cells = cells.as_str().unwrap().to_owned();
        assert!(cells.starts_with(&format!("{LOST} (")), "{cells}");
        for scheme in ["light", "dark"] {
            browser.scheme(scheme);
            browser.picture(&format!("large-{name}-{scheme}"));
        }
        browser.scheme("light");
        browser.enter("note");
        browser.wait("Type note");
        browser.wait_for("More objects");
        browser.enter("0x");
        browser.wait("note at 0x");
        let begun = Instant::now();
        browser.enter("Who points here?");
        browser.wait_for(" pointer");
        eprintln!("{name}: the first pointer after {:.0?}", begun.elapsed());
        // What has thousands of elements.
        browser.value("void history.go(-2)");
        browser.wait("Pool shelf");
        browser.enter("object at 0x");
        browser.wait("shelf at 0x");
        if name == "served" {
            let more = "void (location.hash = document.querySelector('p > a').hash)";
            browser.wait_for("Show up to 2,000");
            browser.value(more);
            browser.wait_for("Show up to 20,000");
            browser.value(more);
            std::thread::sleep(Duration::from_secs(1));
        }
        browser.value("void (location.hash = 'check')");
        browser.wait("Check");
        browser.wait_for("Sound: no data is damaged.");
        let tasks = browser.tasks();
        eprintln!("{name}: the longest tasks, in ms: {tasks:.1?}");
        assert_eq!(browser.complaints, Vec::<Value>::new(), "{name}");
        long.extend(tasks.into_iter().filter(|(time, _)| *time > 50.0));
    }
    assert!(long.is_empty(), "tasks of more than 50 ms: {long:.1?}");
}
