//! What the service shows over HTTP, and to whom.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::{Duration, Instant};

use crate::support::{Served, until};

fn served() -> Served {
    let served = Served::prepare(Path::new("/dev/shm"));
    let path = served.beside("metrics");
    let mut served = served.with(&["--metrics", path.to_str().unwrap()]);
    served.start_again();
    served
}

fn connect(served: &Served) -> UnixStream {
    let stream = UnixStream::connect(served.beside("metrics")).unwrap();
    stream
        .set_read_timeout(Some(Duration::from_secs(20)))
        .unwrap();
    stream
}

/// What is answered to a question; nothing, where the connection is ended.
fn asked(mut stream: impl Read + Write, question: &[u8]) -> String {
    let _ = stream.write_all(question);
    let mut answer = Vec::new();
    let _ = stream.read_to_end(&mut answer);
    String::from_utf8(answer).unwrap()
}

const QUESTION: &[u8] = b"GET /metrics HTTP/1.1\r\nHost: here\r\n\r\n";

/// What a service answers over TCP.
pub fn over_tcp(address: SocketAddr) -> String {
    asked(TcpStream::connect(address).unwrap(), QUESTION)
}

fn metrics(served: &Served) -> String {
    let answer = asked(connect(served), QUESTION);
    let (head, text) = answer.split_once("\r\n\r\n").unwrap_or_default();
    assert!(head.starts_with("HTTP/1.1 200 OK\r\n"), "{answer}");
    assert!(head.contains("application/openmetrics-text"), "{head}");
    assert!(text.ends_with("# EOF\n"), "{text}");
    text.to_owned()
}

/// The value of a line that begins so.
fn value(text: &str, begin: &str) -> f64 {
    let line = text.lines().find(|line| line.starts_with(begin));
    let line = line.unwrap_or_else(|| panic!("{begin} is not in\n{text}"));
    line.rsplit(' ').next().unwrap().parse().unwrap()
}

#[test]
fn metrics_count_clients_requests_bytes_refusals_and_recoveries_and_name_no_pool() {
    let served = served();
    let socket = std::fs::metadata(served.beside("metrics")).unwrap();
    assert_eq!(socket.permissions().mode() & 0o777, 0o666);
    let mut client = served.client("client");
    client.expect("here");
    assert_eq!(client.ask("open secret"), "0 0");
    assert_eq!(client.ask("add 3"), "3");
    let mut other = served.client("other");
    other.expect("here");
    assert!(other.ask("open secret").contains("used by another program"));
    // Somebody who greets like no client.
    let stranger = durum_remote::socket::Socket::connect(&served.socket()).unwrap();
    let frame = durum_protocol::Frame::request(0);
    stranger.send(frame, b"hello", &[]).unwrap();
    assert!(stranger.receive(1024, 0).unwrap().is_none());
    let mut text = String::new();
    until("all is counted", || {
        text = metrics(&served);
        text.contains("durum_refusals_total") && value(&text, "durum_clients ") == 2.0
    });
    assert_eq!(value(&text, "durum_pools "), 1.0);
    assert!(value(&text, "durum_store_bytes ") >= (2 << 20) as f64);
    assert!(value(&text, "durum_received_bytes_total ") > 0.0);
    assert!(value(&text, "durum_sent_bytes_total ") > 0.0);
    assert_eq!(
        value(&text, "durum_refusals_total{reason=\"greeting\"}"),
        1.0
    );
    assert_eq!(
        value(
            &text,
            "durum_request_seconds_count{request=\"create_pool\"}"
        ),
        1.0
    );
    assert!(value(&text, "durum_request_failures_total{request=\"open_pool\"}") >= 1.0);
    assert!(!text.contains("secret"), "{text}");
    client.kill();
    until("the recovery is counted", || {
        value(&metrics(&served), "durum_recovery_seconds_count ") == 1.0
    });
    let text = metrics(&served);
    assert_eq!(value(&text, "durum_recovery_log_seconds_count "), 1.0);
    let [log, all] = [
        "durum_recovery_log_seconds_sum ",
        "durum_recovery_seconds_sum ",
    ]
    .map(|name| value(&text, name));
    assert!(0.0 < log && log < all, "{text}");
    other.end();
}

#[test]
fn who_asks_badly_is_told_so() {
    let served = served();
    for (question, answer) in [
        (&b"GET / HTTP/1.1\r\n\r\n"[..], "404 Not Found"),
        (b"POST /metrics HTTP/1.1\r\n\r\n", "405 Method Not Allowed"),
        (b"\x00\x01\x02\r\n\r\n", "400 Bad Request"),
        (b"GET /metrics?x=1 HTTP/1.0\r\n\r\n", "200 OK"),
    ] {
        let told = asked(connect(&served), question);
        assert!(
            told.starts_with(&format!("HTTP/1.1 {answer}\r\n")),
            "{told}"
        );
    }
    let long = [b"GET /metrics HTTP/1.1\r\nA: ".to_vec(), vec![b'a'; 20_000]].concat();
    // It may be ended before all of it is read.
    let told = asked(connect(&served), &long);
    assert!(told.is_empty() || told.contains("431"), "{told}");
}

#[test]
fn who_asks_slowly_or_floods_holds_up_neither_clients_nor_others_for_long() {
    let served = served();
    let mut slow: Vec<UnixStream> = (0..200).map(|_| connect(&served)).collect();
    for stream in &mut slow {
        let _ = stream.write_all(b"GET /metr");
    }
    let began = Instant::now();
    let mut client = served.client("client");
    client.expect("here");
    assert_eq!(client.ask("open pool"), "0 0");
    assert!(
        began.elapsed() < Duration::from_secs(4),
        "{:?}",
        began.elapsed()
    );
    // They have their time, and no more of it.
    until("the next one is answered", || {
        asked(connect(&served), QUESTION).starts_with("HTTP/1.1 200 OK")
    });
    client.end();
}

#[test]
fn metrics_come_over_tcp_too() {
    // A port that was free a moment ago.
    let free = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = free.local_addr().unwrap();
    drop(free);
    let served = Served::prepare(Path::new("/dev/shm"));
    let mut served = served.with(&["--metrics", &address.to_string()]);
    served.start_again();
    let answer = over_tcp(address);
    assert!(answer.contains("durum_clients 0"), "{answer}");
}
