//! Questions of HTTP/1 and their answers, for servers of a few pages: one question for each connection, in bounds of
//! bytes and time. `httparse` does the reading.

use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

/// How long somebody may take to ask and to take the answer.
const TIME: Duration = Duration::from_secs(5);
/// The most bytes of a question.
const QUESTION_MAX: usize = 16 << 10;
/// The most header lines of a question.
const HEADERS_MAX: usize = 64;
/// How many are answered at a time; others are sent away.
const ANSWERED_MAX: usize = 8;

/// The places of a server for those who are answered: eight.
#[derive(Clone, Debug, Default)]
pub struct Places(Arc<AtomicUsize>);

/// A place of somebody who is answered. It is given back when this is dropped, however the answer ends: one that panics
/// takes nobody else's place.
#[derive(Debug)]
pub struct Place(Arc<AtomicUsize>);

impl Places {
    /// A place, if one is free.
    pub fn take(&self) -> Option<Place> {
        let place = Place(self.0.clone());
        let before = self.0.fetch_add(1, Ordering::Relaxed);
        (before < ANSWERED_MAX).then_some(place)
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

/// What somebody asks.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Asked {
    /// `GET`, say.
    pub method: String,
    /// Path, and what stands behind a question mark.
    pub target: String,
    headers: Vec<(String, String)>,
}

impl Asked {
    /// All that the question says by this name; nothing, if it has no such line.
    pub fn all<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a str> {
        let headers = self.headers.iter();
        let headers = headers.filter(move |(own, _)| own.eq_ignore_ascii_case(name));
        headers.map(|(_, value)| value.as_str())
    }
}

impl From<&httparse::Request<'_, '_>> for Asked {
    fn from(request: &httparse::Request<'_, '_>) -> Self {
        let value = |bytes| String::from_utf8_lossy(bytes).into_owned();
        let headers = request.headers.iter();
        Self {
            method: request.method.unwrap_or_default().to_owned(),
            target: request.path.unwrap_or_default().to_owned(),
            headers: headers
                .map(|header| (header.name.to_owned(), value(header.value)))
                .collect(),
        }
    }
}

/// Reads a question; in it the status to answer with, where it is none.
///
/// # Errors
/// Of the connection, also where it ends before the question does.
pub fn read(stream: &mut impl Read) -> io::Result<Result<Asked, &'static str>> {
    let mut bytes = Vec::new();
    let mut part = [0; 2048];
    loop {
        let length = stream.read(&mut part)?;
        if length == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        bytes.extend_from_slice(part.get(..length).unwrap_or_default());
        let mut headers = [httparse::EMPTY_HEADER; HEADERS_MAX];
        let mut request = httparse::Request::new(&mut headers);
        match request.parse(&bytes) {
            Ok(httparse::Status::Partial) if bytes.len() < QUESTION_MAX => {}
            Ok(httparse::Status::Complete(_)) => return Ok(Ok(Asked::from(&request))),
            Ok(httparse::Status::Partial) | Err(httparse::Error::TooManyHeaders) => {
                return Ok(Err("431 Request Header Fields Too Large"));
            }
            Err(_) => return Ok(Err("400 Bad Request")),
        }
    }
}

/// Writes an answer behind which the connection ends; without its body where only the head was asked for.
///
/// # Errors
/// Of the connection.
pub fn write(
    stream: &mut impl Write,
    status: &str,
    headers: &[(&str, &str)],
    body: &[u8],
    is_head: bool,
) -> io::Result<()> {
    let mut head = format!("HTTP/1.1 {status}\r\n");
    for (name, value) in headers {
        head.push_str(&format!("{name}: {value}\r\n"));
    }
    head.push_str(&format!(
        "Content-Length: {}\r\nConnection: close\r\n\r\n",
        body.len()
    ));
    stream.write_all(head.as_bytes())?;
    match is_head {
        true => Ok(()),
        false => stream.write_all(body),
    }
}

/// A connection that can be told how long to wait.
pub trait Stream: Read + Write {
    /// For each reading and writing from here on.
    ///
    /// # Errors
    /// As the system says.
    fn wait_at_most(&self, limit: Duration) -> io::Result<()>;
}

impl Stream for TcpStream {
    fn wait_at_most(&self, limit: Duration) -> io::Result<()> {
        self.set_read_timeout(Some(limit))?;
        self.set_write_timeout(Some(limit))
    }
}

impl Stream for UnixStream {
    fn wait_at_most(&self, limit: Duration) -> io::Result<()> {
        self.set_read_timeout(Some(limit))?;
        self.set_write_timeout(Some(limit))
    }
}

impl<S: Stream + ?Sized> Stream for Box<S> {
    fn wait_at_most(&self, limit: Duration) -> io::Result<()> {
        (**self).wait_at_most(limit)
    }
}

/// A connection that is of use for five seconds, however slowly the other end goes.
#[derive(Debug)]
pub struct InTime<S> {
    stream: S,
    until: Instant,
}

impl<S: Stream> InTime<S> {
    /// From now on.
    pub fn new(stream: S) -> Self {
        Self {
            stream,
            until: Instant::now() + TIME,
        }
    }

    /// From now on once more.
    pub fn go_on(&mut self) {
        self.until = Instant::now() + TIME;
    }

    fn wait(&self) -> io::Result<()> {
        let left = self.until.saturating_duration_since(Instant::now());
        match left.is_zero() {
            true => Err(io::ErrorKind::TimedOut.into()),
            false => self.stream.wait_at_most(left),
        }
    }
}

impl<S: Stream> Read for InTime<S> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.wait()?;
        self.stream.read(buffer)
    }
}

impl<S: Stream> Write for InTime<S> {
    fn write(&mut self, buffer: &[u8]) -> io::Result<usize> {
        self.wait()?;
        self.stream.write(buffer)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.stream.flush()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::thread;

    #[test]
    fn an_answer_that_panics_takes_nobody_elses_place() {
        let places = Places::default();
        for _ in 0..2 * ANSWERED_MAX {
            let place = places.take().unwrap();
            let answer = thread::spawn(move || {
                let _place = place;
                panic!("a test's own");
            });
            assert!(answer.join().is_err());
        }
        let all: Vec<_> = (0..ANSWERED_MAX).map(|_| places.take()).collect();
        assert!(all.iter().all(Option::is_some));
        assert!(places.take().is_none());
        drop(all);
        assert!(places.take().is_some());
    }
}
