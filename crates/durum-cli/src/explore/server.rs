//! Serves the page to this machine, to whom knows its address: it has a random token in it.
//!
//! A page of another site cannot ask: it does not know the token; a name of its own that it has made lead here is
//! refused by `Host`; and the browser tells from where a question comes. Any question only reads.

use std::collections::BTreeMap;
use std::io::Write;
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use durum_remote::http::{self, Asked, InTime, Places};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use serde_json::{Value as Json, json};

use super::page::{self, NOTHING};
use super::survey::{Question, Survey};
use crate::args::explore::Explore;
use crate::demo::interrupt;
use crate::failure::{DAMAGED, Failure, REFUSED};
use crate::output;

/// How long it takes at most until Ctrl-C is seen.
const PAUSE: Timespec = Timespec {
    tv_sec: 0,
    tv_nsec: 200_000_000,
};
/// Values in values are read by recursion, which is bounded; this is enough for it.
const STACK_BYTES: usize = 16 << 20;

struct Served {
    survey: Survey,
    token: String,
    port: u16,
    places: Places,
}

/// An answer. All say the same about what a browser may do with them.
struct Answer {
    status: &'static str,
    kind: &'static str,
    body: Vec<u8>,
    /// What a browser may load and run in this page.
    policy: String,
}

/// Serves until Ctrl-C.
pub(super) fn serve(survey: Survey, options: &Explore, out: &mut dyn Write) -> Result<(), Failure> {
    // What is no store is told now, and not to a browser.
    survey.overview()?;
    let port = options.port;
    let opened = TcpListener::bind((Ipv4Addr::LOCALHOST, port));
    let failed = |error| Failure::system(format!("listening at 127.0.0.1:{port}"), error);
    let listener = opened.map_err(failed)?;
    let port = listener.local_addr().map_err(failed)?.port();
    let served = Arc::new(Served {
        survey,
        token: page::random()?,
        port,
        places: Places::default(),
    });
    let url = format!("http://127.0.0.1:{port}/{}/", served.token);
    match options.json {
        true => output::json(out, &json!({ "url": url, "port": port }))?,
        false => writeln!(
            out,
            "{url}\nCtrl-C ends it; who knows this address and is on this machine can read the store"
        )?,
    }
    out.flush()?;
    // A copy that `--live` looks at has to go with this.
    interrupt::watch();
    listener.set_nonblocking(true).map_err(failed)?;
    while !interrupt::wanted() {
        let mut asked = [PollFd::new(&listener, PollFlags::IN)];
        // A signal ends the pause, or it ends soon.
        let _ = poll(&mut asked, Some(&PAUSE));
        match listener.accept() {
            Ok((stream, _)) => begin(&served, stream),
            Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => {}
            // No descriptors left, say: that passes.
            Err(_) => thread::sleep(Duration::from_millis(50)),
        }
    }
    let ended = "the page is not served any more; the store is as it was";
    Err(Failure::Interrupted(ended.into()))
}

/// Answers in a thread of its own.
fn begin(served: &Arc<Served>, stream: TcpStream) {
    let Some(place) = served.places.take() else {
        return;
    };
    let of_thread = served.clone();
    let answer = move || {
        let _place = place;
        let is_set = stream.set_nonblocking(false);
        // Who goes away while he is answered has no answer.
        let _ = is_set.and_then(|()| of_thread.converse(stream));
    };
    let thread = thread::Builder::new().name("explore".to_owned());
    // Without a thread nobody is answered, and the place is free again.
    let _ = thread.stack_size(STACK_BYTES).spawn(answer);
}

impl Served {
    fn converse(&self, stream: TcpStream) -> std::io::Result<()> {
        let mut stream = InTime::new(stream);
        let (answer, is_head) = match http::read(&mut stream)? {
            Ok(asked) => (self.answer(&asked), asked.method == "HEAD"),
            Err(status) => (plain(status), false),
        };
        // To take the answer there is as much time again.
        stream.go_on();
        answer.write(&mut stream, is_head)
    }

    fn answer(&self, asked: &Asked) -> Answer {
        let is_here = |host: &str| {
            let (name, port) = host.rsplit_once(':').unwrap_or((host, "80"));
            matches!(name, "127.0.0.1" | "localhost") && port == self.port.to_string()
        };
        // Where the question was sent to, as the browser says.
        if asked.all("Host").count() != 1 || !asked.all("Host").all(is_here) {
            return plain("403 Forbidden");
        }
        // From where the page is that asks. The first page of a tab has no site before it.
        let site = asked.all("Sec-Fetch-Site").next();
        if !matches!(site, None | Some("none" | "same-origin")) {
            return plain("403 Forbidden");
        }
        if !matches!(asked.method.as_str(), "GET" | "HEAD") {
            return plain("405 Method Not Allowed");
        }
        let (path, words) = match asked.target.split_once('?') {
            Some((path, words)) => (path, words),
            None => (asked.target.as_str(), ""),
        };
        let parts = path.strip_prefix('/').and_then(|path| path.split_once('/'));
        let Some((token, what)) = parts else {
            return plain("404 Not Found");
        };
        if !is_same(token, &self.token) {
            return plain("404 Not Found");
        }
        if what.is_empty() {
            return match page::served() {
                Ok((html, policy)) => Answer {
                    status: "200 OK",
                    kind: "text/html",
                    body: html.into_bytes(),
                    policy,
                },
                Err(_) => plain("500 Internal Server Error"),
            };
        }
        let words = words.split('&').filter_map(|word| word.split_once('='));
        let question = Question {
            what,
            words: words.collect::<BTreeMap<_, _>>(),
        };
        match self.survey.answer(&question) {
            None => plain("404 Not Found"),
            Some(Ok(answer)) => as_json("200 OK", answer),
            Some(Err(failure)) => {
                let status = match failure.exit_code() {
                    REFUSED => "409 Conflict",
                    DAMAGED => "422 Unprocessable Content",
                    _ => "500 Internal Server Error",
                };
                as_json(status, json!({ "error": failure.to_string() }))
            }
        }
    }
}

impl Answer {
    fn write(&self, stream: &mut impl Write, is_head: bool) -> std::io::Result<()> {
        let kind = format!("{}; charset=utf-8", self.kind);
        let mut headers = vec![
            ("Content-Type", kind.as_str()),
            ("Content-Security-Policy", &self.policy),
            ("X-Content-Type-Options", "nosniff"),
            ("X-Frame-Options", "DENY"),
            ("Referrer-Policy", "no-referrer"),
            ("Cross-Origin-Opener-Policy", "same-origin"),
            ("Cross-Origin-Resource-Policy", "same-origin"),
            ("Cache-Control", "no-store"),
        ];
        if self.status.starts_with("405") {
            headers.push(("Allow", "GET, HEAD"));
        }
        http::write(stream, self.status, &headers, &self.body, is_head)
    }
}

/// Compares without telling by its time how much of the token was right.
fn is_same(token: &str, wanted: &str) -> bool {
    let different = token.bytes().zip(wanted.bytes());
    let different = different.fold(0, |sum, (a, b)| sum | (a ^ b));
    token.len() == wanted.len() && different == 0
}

fn plain(status: &'static str) -> Answer {
    Answer {
        status,
        kind: "text/plain",
        body: format!("{status}\n").into_bytes(),
        policy: NOTHING.to_owned(),
    }
}

fn as_json(status: &'static str, answer: Json) -> Answer {
    Answer {
        status,
        kind: "application/json",
        body: page::harmless(answer).to_string().into_bytes(),
        policy: NOTHING.to_owned(),
    }
}
