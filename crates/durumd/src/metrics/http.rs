//! Serves a text over [HTTP](http). Whoever asks slowly, much, or what is no HTTP costs one of a few threads for a few
//! seconds, and nothing of the store's service.

use std::io;
use std::net::TcpListener;
use std::os::fd::OwnedFd;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use durum_protocol::address::MetricsAddress;
use durum_remote::http::{self, Asked, InTime, Places, Stream};

use crate::socket_files;

/// How long a text is good: asking more often makes no more work.
const FRESH: Duration = Duration::from_millis(100);

/// Where somebody may ask.
#[derive(Debug)]
pub(crate) enum Listener {
    Tcp(TcpListener),
    Unix(UnixListener),
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
    });
    let places = Places::default();
    let accept = move || {
        loop {
            let Ok(stream) = listener.accept() else {
                thread::sleep(Duration::from_millis(50));
                continue;
            };
            let Some(place) = places.take() else {
                continue;
            };
            let asked = page.clone();
            let answer = move || {
                let _place = place;
                if let Err(error) = asked.answer(&mut InTime::new(stream)) {
                    tracing::debug!(%error, "somebody who asked for metrics got none");
                }
            };
            let thread = thread::Builder::new().name("http".to_owned());
            // Without a thread nobody is answered, and the place is free again.
            let _ = thread.stack_size(256 << 10).spawn(answer);
        }
    };
    let thread = thread::Builder::new().name("metrics".to_owned());
    thread.spawn(accept).map(drop)
}

/// What is served.
struct Page {
    make: Box<dyn Fn() -> String + Send + Sync>,
    made: Mutex<Option<(Instant, Arc<str>)>>,
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

    fn answer(&self, stream: &mut InTime<impl Stream>) -> io::Result<()> {
        let status = http::read(stream)?.map_or_else(|status| status, |asked| status_of(&asked));
        let (text, kind) = match status {
            "200 OK" => (
                self.text(),
                "application/openmetrics-text; version=1.0.0; charset=utf-8",
            ),
            _ => (format!("{status}\n").into(), "text/plain; charset=utf-8"),
        };
        let mut headers = vec![("Content-Type", kind)];
        if status.starts_with("405") {
            headers.push(("Allow", "GET"));
        }
        http::write(stream, status, &headers, text.as_bytes(), false)
    }
}

fn status_of(asked: &Asked) -> &'static str {
    match (asked.method.as_str(), asked.target.split('?').next()) {
        ("GET", Some("/metrics")) => "200 OK",
        ("GET", _) => "404 Not Found",
        _ => "405 Method Not Allowed",
    }
}
