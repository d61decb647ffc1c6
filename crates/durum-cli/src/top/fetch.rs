//! Asks a service for its metrics, over HTTP.

use std::io::{self, Read, Write};
use std::net::{TcpStream, ToSocketAddrs};
use std::os::unix::net::UnixStream;
use std::time::Duration;

use durum_protocol::address::MetricsAddress;

use crate::failure::Failure;

/// How long the service may take for a part of its answer.
const TIME: Duration = Duration::from_secs(5);

/// The most bytes of an answer: whoever is at the other end may send anything.
const ANSWER_MAX: u64 = 8 << 20;

const QUESTION: &[u8] = b"GET /metrics HTTP/1.1\r\nHost: durum\r\nConnection: close\r\n\r\n";

/// The metrics as text.
pub(super) fn text(address: &MetricsAddress) -> Result<String, Failure> {
    let (place, answer) = match address {
        MetricsAddress::Tcp(place) => (place.clone(), over_tcp(place)),
        MetricsAddress::Unix(path) => (path.display().to_string(), over_unix(path)),
    };
    let answer = answer.map_err(|error| {
        let what =
            format!("{place}: asking for metrics (is durumd there, with `--metrics {place}`?)");
        Failure::system(what, error)
    })?;
    let strange = || Failure::Refused(format!("{place}: whoever answers there is no durumd"));
    let (head, text) = answer.split_once("\r\n\r\n").ok_or_else(strange)?;
    let status = head.split(' ').nth(1);
    match status {
        Some("200") if head.starts_with("HTTP/1.") => Ok(text.to_owned()),
        _ => Err(strange()),
    }
}

fn over_tcp(place: &str) -> io::Result<String> {
    let mut tried = Err(io::ErrorKind::NotFound.into());
    for address in place.to_socket_addrs()? {
        tried = TcpStream::connect_timeout(&address, TIME);
        if tried.is_ok() {
            break;
        }
    }
    let stream = tried?;
    stream.set_read_timeout(Some(TIME))?;
    stream.set_write_timeout(Some(TIME))?;
    ask(stream)
}

fn over_unix(path: &std::path::Path) -> io::Result<String> {
    let stream = UnixStream::connect(path)?;
    stream.set_read_timeout(Some(TIME))?;
    stream.set_write_timeout(Some(TIME))?;
    ask(stream)
}

fn ask(mut stream: impl Read + Write) -> io::Result<String> {
    stream.write_all(QUESTION)?;
    let mut bytes = Vec::new();
    stream.take(ANSWER_MAX).read_to_end(&mut bytes)?;
    String::from_utf8(bytes).map_err(io::Error::other)
}
