//! Reads a question of HTTP/1 and writes an answer; `httparse` does the reading. One question for each connection, in
//! bounds of bytes and time.

use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

/// How long somebody may take to ask, and then to take the answer.
const TIME: Duration = Duration::from_secs(5);
/// The most bytes of a question.
const QUESTION_MAX: usize = 16 << 10;
/// The most header lines of a question.
const HEADERS_MAX: usize = 64;

/// What somebody asks.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Asked {
    pub(super) method: String,
    /// Path, and what stands behind a question mark.
    pub(super) target: String,
    /// Where the question was sent to, as the browser says; all that it says, if it says it more than once.
    pub(super) hosts: Vec<String>,
    /// From where the page is that asks, as the browser says: nothing, or `none` for the user.
    pub(super) site: Option<String>,
}

/// An answer. All say the same about what a browser may do with them.
#[derive(Debug)]
pub(super) struct Answer {
    pub(super) status: &'static str,
    pub(super) kind: &'static str,
    pub(super) body: Vec<u8>,
    /// What a browser may load and run in this page.
    pub(super) policy: String,
}

/// Reads a question; `Err(Ok(status))` where it is none.
pub(super) fn read(stream: &TcpStream) -> Result<Asked, io::Result<&'static str>> {
    let mut stream = InTime::new(stream);
    let mut bytes = Vec::new();
    let mut part = [0; 2048];
    loop {
        let length = stream.read(&mut part).map_err(Err)?;
        if length == 0 {
            return Err(Err(io::ErrorKind::UnexpectedEof.into()));
        }
        bytes.extend_from_slice(part.get(..length).unwrap_or_default());
        let mut headers = [httparse::EMPTY_HEADER; HEADERS_MAX];
        let mut request = httparse::Request::new(&mut headers);
        match request.parse(&bytes) {
            Ok(httparse::Status::Partial) if bytes.len() < QUESTION_MAX => {}
            Ok(httparse::Status::Complete(_)) => return Ok(asked(&request)),
            Ok(httparse::Status::Partial) | Err(httparse::Error::TooManyHeaders) => {
                return Err(Ok("431 Request Header Fields Too Large"));
            }
            Err(_) => return Err(Ok("400 Bad Request")),
        }
    }
}

fn asked(request: &httparse::Request<'_, '_>) -> Asked {
    let all = |name: &str| {
        let headers = request.headers.iter();
        let headers = headers.filter(move |header| header.name.eq_ignore_ascii_case(name));
        headers
            .map(|header| String::from_utf8_lossy(header.value).into_owned())
            .collect::<Vec<_>>()
    };
    Asked {
        method: request.method.unwrap_or_default().to_owned(),
        target: request.path.unwrap_or_default().to_owned(),
        hosts: all("Host"),
        site: all("Sec-Fetch-Site").into_iter().next(),
    }
}

/// Writes an answer; without its body where only the head was asked for.
pub(super) fn write(stream: &TcpStream, answer: &Answer, is_head: bool) -> io::Result<()> {
    let Answer {
        status,
        kind,
        body,
        policy,
    } = answer;
    let allow = match status.starts_with("405") {
        true => "Allow: GET, HEAD\r\n",
        false => "",
    };
    let head = format!(
        "HTTP/1.1 {status}\r\n\
         Content-Type: {kind}; charset=utf-8\r\n\
         Content-Length: {}\r\n\
         {allow}\
         Connection: close\r\n\
         Content-Security-Policy: {policy}\r\n\
         X-Content-Type-Options: nosniff\r\n\
         X-Frame-Options: DENY\r\n\
         Referrer-Policy: no-referrer\r\n\
         Cross-Origin-Opener-Policy: same-origin\r\n\
         Cross-Origin-Resource-Policy: same-origin\r\n\
         Cache-Control: no-store\r\n\r\n",
        body.len()
    );
    let mut stream = InTime::new(stream);
    stream.write_all(head.as_bytes())?;
    match is_head {
        true => Ok(()),
        false => stream.write_all(body),
    }
}

/// A stream that is of use until a moment, however slowly the other end goes.
struct InTime<'s> {
    stream: &'s TcpStream,
    until: Instant,
}

impl<'s> InTime<'s> {
    fn new(stream: &'s TcpStream) -> Self {
        Self {
            stream,
            until: Instant::now() + TIME,
        }
    }

    fn left(&self) -> io::Result<Option<Duration>> {
        let left = self.until.saturating_duration_since(Instant::now());
        match left.is_zero() {
            true => Err(io::ErrorKind::TimedOut.into()),
            false => Ok(Some(left)),
        }
    }
}

impl Read for InTime<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.stream.set_read_timeout(self.left()?)?;
        self.stream.read(buffer)
    }
}

impl Write for InTime<'_> {
    fn write(&mut self, buffer: &[u8]) -> io::Result<usize> {
        self.stream.set_write_timeout(self.left()?)?;
        self.stream.write(buffer)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.stream.flush()
    }
}
