//! The sockets that others come to: given by the system, or made here.

use std::io;
use std::os::fd::{FromRawFd, OwnedFd};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use durum_protocol::address::MetricsAddress;
use durum_remote::socket::Socket;
use durum_service::{Error, Result};

use crate::metrics::http::Listener;
use crate::socket_files::{self, Made};

/// What the units of systemd call the descriptor of the socket for metrics.
const METRICS: &str = "metrics";

/// The sockets that the system gave.
#[derive(Default)]
pub(crate) struct Given {
    pub(crate) clients: Option<Socket>,
    pub(crate) metrics: Option<Listener>,
}

/// Takes them. To be called once.
///
/// # Errors
/// `Io`.
pub(crate) fn given() -> Result<Given> {
    let failed = failed(Path::new("a socket of the system"));
    let mut given = Given::default();
    for (fd, name) in sd_notify::listen_fds_with_names().map_err(&failed)? {
        // SAFETY: the system opened it for this process, and nobody else here uses it.
        let fd = unsafe { OwnedFd::from_raw_fd(fd) };
        match name.as_str() {
            METRICS => given.metrics = Some(Listener::given(fd).map_err(&failed)?),
            _ => given.clients = Some(Socket::over(fd).map_err(&failed)?),
        }
    }
    Ok(given)
}

/// Makes the socket for metrics.
///
/// # Errors
/// `Io`.
pub(crate) fn metrics(address: &MetricsAddress) -> Result<(Listener, Option<Made>)> {
    let place = match address {
        MetricsAddress::Tcp(place) => Path::new(place),
        MetricsAddress::Unix(path) => path,
    };
    let listener = Listener::open(address).map_err(failed(place))?;
    let made = match address {
        // As over TCP: whoever is not to see them is kept out of the directory.
        MetricsAddress::Unix(path) => Some(open_to_all(path)?),
        MetricsAddress::Tcp(_) => None,
    };
    Ok((listener, made))
}

/// Makes the socket for clients. The lock of the store is held: of this store there is no other service.
///
/// # Errors
/// `Io`.
pub(crate) fn listen(path: &Path) -> Result<(Socket, Made)> {
    let socket = match Socket::listen(path) {
        Err(error) if error.kind() == io::ErrorKind::AddrInUse => {
            // What a service left that was killed. One of another store is listening.
            match Socket::connect(path) {
                Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => {}
                _ => return Err(failed(path)(error)),
            }
            socket_files::remove_left(path).map_err(failed(path))?;
            Socket::listen(path).map_err(failed(path))?
        }
        made => made.map_err(failed(path))?,
    };
    // Rights are checked for each connection.
    Ok((socket, open_to_all(path)?))
}

/// Lets everybody connect to a socket that was just made.
fn open_to_all(path: &Path) -> Result<Made> {
    let made = Made::at(path).map_err(failed(path))?;
    let open = std::fs::Permissions::from_mode(0o666);
    std::fs::set_permissions(path, open).map_err(failed(path))?;
    Ok(made)
}

fn failed(path: &Path) -> impl Fn(io::Error) -> Error {
    move |source| Error::Io {
        operation: "listening",
        path: path.to_owned(),
        offset: None,
        source,
    }
}
