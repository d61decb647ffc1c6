//! A real browser, `chromium-headless-shell` of Debian, which is told what to do by its DevTools protocol over a pipe.

use std::fs::File;
use std::io::{BufRead, BufReader, Write};
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

/// A browser with one page.
pub struct Browser {
    child: Child,
    to: File,
    from: BufReader<File>,
    asked: u64,
    session: Option<String>,
    /// What the page complained about.
    pub complaints: Vec<Value>,
    /// What was traced, and whether that is all.
    traced: Vec<Value>,
    is_traced: bool,
}

impl Browser {
    pub fn start(profile: &Path) -> Browser {
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
            traced: Vec::new(),
            is_traced: false,
        };
        let made = browser.call("Target.createTarget", json!({ "url": "about:blank" }));
        let attach = json!({ "targetId": made["targetId"], "flatten": true });
        let attached = browser.call("Target.attachToTarget", attach);
        browser.session = attached["sessionId"].as_str().map(str::to_owned);
        for what in ["Page.enable", "Runtime.enable", "Log.enable"] {
            browser.call(what, json!({}));
        }
        browser
    }

    pub fn call(&mut self, method: &str, words: Value) -> Value {
        self.asked += 1;
        let mut question = json!({ "id": self.asked, "method": method, "params": words });
        if let Some(session) = &self.session {
            question["sessionId"] = json!(session);
        }
        self.to
            .write_all(format!("{question}\0").as_bytes())
            .unwrap();
        loop {
            let told = self.hear();
            if told["id"] == self.asked {
                assert!(told["error"].is_null(), "{method}: {told}");
                return told["result"].clone();
            }
        }
    }

    /// Waits for the next thing that the browser says.
    fn hear(&mut self) -> Value {
        let mut bytes = Vec::new();
        self.from.read_until(0, &mut bytes).unwrap();
        assert_eq!(bytes.pop(), Some(0), "the browser is gone");
        let told: Value = serde_json::from_slice(&bytes).unwrap();
        match told["method"].as_str() {
            Some("Runtime.exceptionThrown" | "Log.entryAdded" | "Runtime.consoleAPICalled") => {
                self.complaints.push(told["params"].clone());
            }
            Some("Tracing.dataCollected") => {
                let events = told["params"]["value"].as_array().unwrap();
                self.traced.extend(events.iter().cloned());
            }
            Some("Tracing.tracingComplete") => self.is_traced = true,
            _ => {}
        }
        told
    }

    /// From here on it is noted how long tasks take.
    pub fn trace(&mut self) {
        let session = self.session.take();
        let what = json!({ "categories": "toplevel,devtools.timeline,disabled-by-default-devtools.timeline" });
        self.call("Tracing.start", what);
        self.session = session;
    }

    /// The milliseconds that tasks of pages have taken since, the longest first: those of a processor, so that what
    /// other processes do on the machine is not in them. With what was done in the longest.
    pub fn tasks(&mut self) -> Vec<(f64, String)> {
        let session = self.session.take();
        self.call("Tracing.end", json!({}));
        self.session = session;
        while !self.is_traced {
            self.hear();
        }
        self.is_traced = false;
        let events = std::mem::take(&mut self.traced);
        let of_pages: Vec<_> = events
            .iter()
            .filter(|it| it["name"] == "thread_name" && it["args"]["name"] == "CrRendererMain")
            .map(|it| (&it["pid"], &it["tid"]))
            .collect();
        let of_pages: Vec<_> = events
            .iter()
            .filter(|it| of_pages.contains(&(&it["pid"], &it["tid"])) && it["tdur"].is_number())
            .collect();
        let time = |event: &Value, name: &str| event[name].as_f64().unwrap_or(0.0);
        let is_task = |event: &&&Value| {
            let name = event["name"].as_str().unwrap_or_default();
            name.ends_with("RunTask")
        };
        let mut tasks: Vec<_> = of_pages
            .iter()
            .filter(is_task)
            .map(|task| (time(task, "tdur") / 1000.0, *task))
            .collect();
        assert!(!tasks.is_empty(), "there are tasks");
        tasks.sort_by(|one, other| other.0.total_cmp(&one.0));
        let what = |task: &Value| {
            let (begin, end) = (time(task, "ts"), time(task, "ts") + time(task, "dur"));
            let inside = of_pages.iter().filter(|event| {
                event["pid"] == task["pid"]
                    && (begin..end).contains(&time(event, "ts"))
                    && time(event, "tdur") > 2000.0
            });
            let inside = inside.map(|event| format!("{} {}", event["name"], time(event, "tdur")));
            inside.collect::<Vec<_>>().join(", ")
        };
        tasks
            .into_iter()
            .take(5)
            .map(|(time, task)| (time, what(task)))
            .collect()
    }

    /// The value of an expression.
    pub fn value(&mut self, expression: &str) -> Value {
        let told = self.call(
            "Runtime.evaluate",
            json!({ "expression": expression, "returnByValue": true }),
        );
        assert!(told["exceptionDetails"].is_null(), "{expression}: {told}");
        told["result"]["value"].clone()
    }

    pub fn open(&mut self, url: &str, heading: &str) {
        self.call("Page.navigate", json!({ "url": "about:blank" }));
        self.call("Page.navigate", json!({ "url": url }));
        self.wait(heading);
    }

    /// Waits until the page has a heading that begins so.
    pub fn wait(&mut self, heading: &str) {
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

    /// Waits until the page says this anywhere.
    pub fn wait_for(&mut self, words: &str) {
        let begun = Instant::now();
        loop {
            let page = self.value("document.body?.innerText ?? ''");
            if page.as_str().unwrap().contains(words) {
                return;
            }
            assert!(
                begun.elapsed() < Duration::from_secs(120),
                "{words}: {page}"
            );
            std::thread::sleep(Duration::from_millis(100));
        }
    }

    pub fn press(&mut self, key: &str, code: u64, text: &str) {
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
    pub fn enter(&mut self, text: &str) {
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

    /// Shows the page as it is where the system is `light` or `dark`.
    pub fn scheme(&mut self, scheme: &str) {
        let features = json!([{ "name": "prefers-color-scheme", "value": scheme }]);
        let how = json!({ "features": features });
        self.call("Emulation.setEmulatedMedia", how);
    }

    /// Keeps a picture where `DURUM_SCREENSHOTS` says.
    pub fn picture(&mut self, name: &str) {
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
