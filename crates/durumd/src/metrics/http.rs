//! Serves a text over HTTP/1, which `httparse` reads. Whoever asks slowly, much, or what is no HTTP costs one of a few
//! threads for a few seconds, and nothing of the store's service.

use std::io::{self, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::fd::OwnedFd;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use durum_protocol::address::MetricsAddress;

use crate::socket_files;

/// How many are answered at a time; others are sent away.
const ANSWERED_MAX: usize = 8;

/// How long somebody may take to ask and to take the answer.
const TIME: Duration = Duration::from_secs(5);

/// The most bytes of a question.
const QUESTION_MAX: usize = 8 << 10;

/// The most header lines of a question.
const HEADERS_MAX: usize = 64;

/// How long a text is good: asking more often makes no more work.
const FRESH: Duration = Duration::from_millis(100);

/// Where somebody may ask.
#[derive(Debug)]
pub(crate) enum Listener {
    Tcp(TcpListener),
    Unix(UnixListener),
}

/// A connection of either kind.
trait Stream: Read + Write {
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

impl Listener {
    /// # Errors
    /// As the system says.
    pub(crate) fn open(address: &MetricsAddress) -> io::Result<Listener> {
        Ok(match address {
            MetricsAddress::Tcp(place) => Listener::Tcp(TcpListener::bind(place)?),
            MetricsAddress::Unix(path) => Listener::Unix(bind(path)?),
        })
    }

    /// One that the system has opened.
    ///
    /// # Errors
    /// As the system says.
    pub(crate) fn given(fd: OwnedFd) -> io::Result<Listener> {
        let address = rustix::net::getsockname(&fd)?;
        Ok(match address.address_family() {
            rustix::net::AddressFamily::UNIX => Listener::Unix(fd.into()),
            _ => Listener::Tcp(fd.into()),
        })
    }

    fn accept(&self) -> io::Result<Box<dyn Stream + Send>> {
        Ok(match self {
            Listener::Tcp(listener) => Box::new(listener.accept()?.0),
            Listener::Unix(listener) => Box::new(listener.accept()?.0),
        })
    }
}

/// A socket in the file system; one that a service left which was killed is replaced.
fn bind(path: &Path) -> io::Result<UnixListener> {
    match UnixListener::bind(path) {
        Err(error) if error.kind() == io::ErrorKind::AddrInUse => {
            match UnixStream::connect(path) {
                Err(refused) if refused.kind() == io::ErrorKind::ConnectionRefused => {}
                _ => return Err(error),
            }
            socket_files::remove_left(path)?;
            UnixListener::bind(path)
        }
        bound => bound,
    }
}

/// Serves the text for as long as the process lives.
///
/// # Errors
/// Of making a thread.
pub(crate) fn serve(
    listener: Listener,
    text: impl Fn() -> String + Send + Sync + 'static,
) -> io::Result<()> {
    let page = Arc::new(Page {
        make: Box::new(text),
        made: Mutex::default(),
        answered: AtomicUsize::new(0),
    });
    let accept = move || {
        loop {
            let Ok(stream) = listener.accept() else {
                thread::sleep(Duration::from_millis(50));
                continue;
            };
            if page.answered.fetch_add(1, Ordering::Relaxed) >= ANSWERED_MAX {
                page.answered.fetch_sub(1, Ordering::Relaxed);
                continue;
            }
            let asked = page.clone();
            let answer = move || {
                let mut stream = InTime {
                    stream,
                    until: Instant::now() + TIME,
                };
                if let Err(error) = asked.answer(&mut stream) {
                    tracing::debug!(%error, "somebody who asked for metrics got none");
                }
                asked.answered.fetch_sub(1, Ordering::Relaxed);
            };
            let begun = thread::Builder::new()
                .name("http".to_owned())
                .stack_size(256 << 10)
                .spawn(answer);
            if begun.is_err() {
                page.answered.fetch_sub(1, Ordering::Relaxed);
            }
        }
    };
    let thread = thread::Builder::new().name("metrics".to_owned());
    thread.spawn(accept).map(drop)
}

/// What is served.
struct Page {
    make: Box<dyn Fn() -> String + Send + Sync>,
    made: Mutex<Option<(Instant, Arc<str>)>>,
    answered: AtomicUsize,
}

impl Page {
    fn text(&self) -> Arc<str> {
        let mut made = self.made.lock().unwrap_or_else(PoisonError::into_inner);
        match &*made {
            Some((when, text)) if when.elapsed() < FRESH => text.clone(),
            _ => {
                let text: Arc<str> = (self.make)().into();
                *made = Some((Instant::now(), text.clone()));
                text
            }
        }
    }

    fn answer(&self, stream: &mut (impl Read + Write)) -> io::Result<()> {
        let status = question(stream)?;
        let (text, kind) = match status {
            "200 OK" => (
                self.text(),
                "application/openmetrics-text; version=1.0.0; charset=utf-8",
            ),
            _ => (format!("{status}\n").into(), "text/plain; charset=utf-8"),
        };
        let allow = match status {
            "405 Method Not Allowed" => "Allow: GET\r\n",
            _ => "",
        };
        let head = format!(
            "HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {}\r\n{allow}Connection: close\r\n\r\n",
            text.len()
        );
        stream.write_all(head.as_bytes())?;
        stream.write_all(text.as_bytes())
    }
}

/// Reads a question, and says what becomes of it.
fn question(stream: &mut impl Read) -> io::Result<&'static str> {
    let mut bytes = Vec::new();
    let mut part = [0; 1024];
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
            Ok(httparse::Status::Complete(_)) => {
                let path = request.path.unwrap_or_default();
                return Ok(match (request.method, path.split('?').next()) {
                    (Some("GET"), Some("/metrics")) => "200 OK",
                    (Some("GET"), _) => "404 Not Found",
                    _ => "405 Method Not Allowed",
                });
            }
            Ok(httparse::Status::Partial) | Err(httparse::Error::TooManyHeaders) => {
                return Ok("431 Request Header Fields Too Large");
            }
            Err(_) => return Ok("400 Bad Request"),
        }
    }
}

/// A stream that is of use until a moment, however slowly the other end goes.
struct InTime {
    stream: Box<dyn Stream + Send>,
    until: Instant,
}

impl InTime {
    fn wait(&self) -> io::Result<()> {
        let left = self.until.saturating_duration_since(Instant::now());
        match left.is_zero() {
            true => Err(io::ErrorKind::TimedOut.into()),
            false => self.stream.wait_at_most(left),
        }
    }
}

impl Read for InTime {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.wait()?;
        self.stream.read(buffer)
    }
}

impl Write for InTime {
    fn write(&mut self, buffer: &[u8]) -> io::Result<usize> {
        self.wait()?;
        self.stream.write(buffer)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.stream.flush()
    }
}
