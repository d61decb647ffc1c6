//! The page of `durum explore` in a real browser, `chromium-headless-shell` of Debian, which is told what to do by its
//! DevTools protocol over a pipe. `ci/test-long.sh` runs this.

mod support;

use std::fs::File;
use std::io::{BufRead, BufReader, Write};
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use support::page::{Page, make_hostile};
use support::*;

/// A browser with one page.
struct Browser {
    child: Child,
    to: File,
    from: BufReader<File>,
    asked: u64,
    session: Option<String>,
    /// What the page complained about.
    complaints: Vec<Value>,
}

impl Browser {
    fn start(profile: &Path) -> Browser {
        let (asks, to) = pipe();
        let (from, answers) = pipe();
        let mut command = Command::new("chromium-headless-shell");
        command
            // It runs as root in containers, where its own sandbox has no room.
            .args([
                "--no-sandbox",
                "--disable-gpu",
                "--remote-debugging-pipe",
                "--window-size=1200,900",
            ])
            .arg(format!("--user-data-dir={}", profile.display()))
            .arg("about:blank")
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        let (asks_fd, answers_fd) = (asks.as_raw_fd(), answers.as_raw_fd());
        let place = move || {
            // Out of the way first: they may be 3 or 4 themselves.
            // SAFETY: duplicates descriptors of this process, which may be done between fork and exec.
            let placed = unsafe {
                let asks = libc::fcntl(asks_fd, libc::F_DUPFD, 10);
                let answers = libc::fcntl(answers_fd, libc::F_DUPFD, 10);
                libc::dup2(asks, 3) == 3 && libc::dup2(answers, 4) == 4
            };
            match placed {
                true => Ok(()),
                false => Err(std::io::Error::last_os_error()),
            }
        };
        // SAFETY: `place` calls nothing but what may be called between fork and exec.
        let child = unsafe { command.pre_exec(place) }.spawn().unwrap();
        let mut browser = Browser {
            child,
            to: to.into(),
            from: BufReader::new(from.into()),
            asked: 0,
            session: None,
            complaints: Vec::new(),
        };
        let made = browser.call("Target.createTarget", json!({ "url": "about:blank" }));
        let attach = json!({ "targetId": made["targetId"], "flatten": true });
        let attached = browser.call("Target.attachToTarget", attach);
        browser.session = attached["sessionId"].as_str().map(str::to_owned);
        for what in ["Page.enable", "Runtime.enable", "Log.enable"] {
            browser.call(what, json!({}));
        }
        // Tasks of the page that take more than 50 ms.
        let watch = "window.long = []; new PerformanceObserver((list) => list.getEntries().forEach((it) => \
                     window.long.push(it.duration))).observe({ type: 'longtask', buffered: true });";
        browser.call(
            "Page.addScriptToEvaluateOnNewDocument",
            json!({ "source": watch }),
        );
        browser
    }

    fn call(&mut self, method: &str, words: Value) -> Value {
        self.asked += 1;
        let mut question = json!({ "id": self.asked, "method": method, "params": words });
        if let Some(session) = &self.session {
            question["sessionId"] = json!(session);
        }
        self.to
            .write_all(format!("{question}\0").as_bytes())
            .unwrap();
        loop {
            let mut bytes = Vec::new();
            self.from.read_until(0, &mut bytes).unwrap();
            assert_eq!(bytes.pop(), Some(0), "the browser is gone");
            let told: Value = serde_json::from_slice(&bytes).unwrap();
            match told["method"].as_str() {
                Some("Runtime.exceptionThrown" | "Log.entryAdded" | "Runtime.consoleAPICalled") => {
                    self.complaints.push(told["params"].clone());
                }
                _ if told["id"] == self.asked => {
                    assert!(told["error"].is_null(), "{method}: {told}");
                    return told["result"].clone();
                }
                _ => {}
            }
        }
    }

    /// The value of an expression.
    fn value(&mut self, expression: &str) -> Value {
        let told = self.call(
            "Runtime.evaluate",
            json!({ "expression": expression, "returnByValue": true }),
        );
        assert!(told["exceptionDetails"].is_null(), "{expression}: {told}");
        told["result"]["value"].clone()
    }

    fn open(&mut self, url: &str, heading: &str) {
        self.call("Page.navigate", json!({ "url": "about:blank" }));
        self.call("Page.navigate", json!({ "url": url }));
        self.wait(heading);
    }

    /// Waits until the page has a heading that begins so.
    fn wait(&mut self, heading: &str) {
        let begun = Instant::now();
        loop {
            let found = self.value("document.querySelector('h1')?.textContent ?? ''");
            if found.as_str().unwrap().starts_with(heading) {
                return;
            }
            let page = self.value("document.body?.innerText ?? ''");
            assert!(
                begun.elapsed() < Duration::from_secs(20),
                "{heading}: {found} in {page}"
            );
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    fn press(&mut self, key: &str, code: u64, text: &str) {
        for kind in ["keyDown", "keyUp"] {
            let mut words =
                json!({ "type": kind, "key": key, "code": key, "windowsVirtualKeyCode": code });
            if kind == "keyDown" && !text.is_empty() {
                words["text"] = json!(text);
            }
            self.call("Input.dispatchKeyEvent", words);
        }
    }

    /// Goes on by Tab until what has the focus begins with this text, and presses Enter there.
    fn enter(&mut self, text: &str) {
        let mut seen = Vec::new();
        for _ in 0..60 {
            self.press("Tab", 9, "");
            let focused = self.value("document.activeElement.textContent");
            let focused = focused.as_str().unwrap().to_owned();
            if focused.starts_with(text) {
                self.press("Enter", 13, "\r");
                return;
            }
            seen.push(focused);
        }
        panic!("Tab does not lead to {text:?}, but to {seen:?}");
    }

    /// Keeps a picture where `DURUM_SCREENSHOTS` says.
    fn picture(&mut self, name: &str) {
        let Some(directory) = std::env::var_os("DURUM_SCREENSHOTS") else {
            return;
        };
        let shot = self.call("Page.captureScreenshot", json!({ "format": "png" }));
        let file = Path::new(&directory).join(format!("{name}.base64"));
        std::fs::write(file, shot["data"].as_str().unwrap()).unwrap();
    }
}

impl Drop for Browser {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The reading and the writing end of a pipe; neither survives an exec.
fn pipe() -> (OwnedFd, OwnedFd) {
    let (reader, writer) = std::io::pipe().unwrap();
    (reader.into(), writer.into())
}

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
        let long = browser.value("window.long");
        eprintln!("{name}: tasks over 50 ms: {long}");
        browser
            .complaints
            .retain(|it| !it.to_string().contains("TrustedHTML"));
        assert_eq!(browser.complaints, Vec::<Value>::new(), "{name}");

        let mut grounds = Vec::new();
        for scheme in ["light", "dark"] {
            let features = json!([{ "name": "prefers-color-scheme", "value": scheme }]);
            browser.call(
                "Emulation.setEmulatedMedia",
                json!({ "features": features }),
            );
            browser.picture(&format!("{name}-{scheme}"));
            grounds.push(browser.value("getComputedStyle(document.body).backgroundColor"));
        }
        assert_eq!(grounds, ["rgb(255, 255, 255)", "rgb(13, 17, 23)"]);
    }
    assert_eq!(contents(&path), before, "nothing is written");
}
