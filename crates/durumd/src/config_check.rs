//! `--check-config`: whether the service could start, told without anything being made or changed.

use std::fs;
use std::io;
use std::net::ToSocketAddrs;
use std::os::unix::net::UnixStream;
use std::path::Path;

use durum_protocol::address::MetricsAddress;
use durum_remote::answers::refused;
use durum_remote::peer::Peer;
use durum_remote::socket::Socket;
use durum_service::{Error, ReadOnlyStore, Result};
use rustix::fs::{Access, AtFlags, CWD, accessat};
use rustix::net::SocketAddrUnix;

use crate::options::Options;
use crate::socket_files;

/// Tells it on the standard output.
///
/// # Errors
/// What keeps the service from starting, with what to do.
pub(crate) fn check(options: &Options) -> Result<()> {
    let (store, socket) = (options.store.display(), options.socket.display());
    let writer = match ReadOnlyStore::open(&options.store) {
        Err(Error::StoreMissing { .. }) if may_be_made(&options.store) => {
            println!("{store}: a store will be made");
            None
        }
        opened => opened?.writer()?,
    };
    check_place(&options.socket, "--socket")?;
    let listener = listener(&options.socket)?;
    match (writer, listener) {
        (Some(writer), Some(listener)) if writer == listener || is_system(listener) => {
            println!("{store}: process {writer} serves it at {socket} now");
        }
        (Some(_), _) => {
            return Err(Error::StoreBusy {
                path: options.store.clone(),
                pid: writer,
            });
        }
        (None, Some(listener)) if is_system(listener) => {
            println!("{socket}: systemd listens there, and gives the socket to the service");
        }
        (None, Some(listener)) => {
            return Err(refused(format!(
                "{socket}: process {listener} listens there, and does not serve this store; end it, or choose another path \
                 (--socket)"
            )));
        }
        (None, None) => {}
    }
    if let Some(metrics) = &options.metrics {
        check_metrics(metrics, writer.is_some())?;
    }
    println!("{store}: can be served at {socket}");
    Ok(())
}

/// Whether a store can be made where none is.
fn may_be_made(path: &Path) -> bool {
    !path.exists() && may_make_in(directory_of(path)).is_ok()
}

fn check_metrics(metrics: &str, is_served: bool) -> Result<()> {
    let reason = match MetricsAddress::parse(metrics) {
        MetricsAddress::Tcp(place) => match place.to_socket_addrs() {
            Ok(_) => return Ok(()),
            Err(error) => format!("this is no address: {error}"),
        },
        MetricsAddress::Unix(path) => {
            check_place(&path, "--metrics")?;
            match UnixStream::connect(&path) {
                Ok(_) if !is_served => "a process listens there".to_owned(),
                _ => return Ok(()),
            }
        }
    };
    Err(refused(format!(
        "{metrics}: {reason}; choose another place for the metrics (--metrics)"
    )))
}

/// Whether a socket can be made at a path.
fn check_place(path: &Path, option: &str) -> Result<()> {
    let place = path.display();
    let directory = directory_of(path);
    if let Err(error) = SocketAddrUnix::new(path) {
        let reason = "no socket can have this path, which must not be longer than 107 bytes";
        return Err(refused(format!("{place}: {reason} ({option}): {error}")));
    }
    may_make_in(directory).map_err(|error| {
        refused(format!(
            "{place}: no socket can be made in {} ({error}); make that directory, give this user the right to write it, or choose \
             another path ({option})",
            directory.display()
        ))
    })?;
    match socket_files::ensure_socket(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => {
            Err(refused(format!("{place}: {error} ({option})")))
        }
        _ => Ok(()),
    }
}

fn directory_of(path: &Path) -> &Path {
    match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    }
}

/// # Errors
/// As the system says.
fn may_make_in(directory: &Path) -> io::Result<()> {
    if !fs::metadata(directory)?.is_dir() {
        return Err(io::ErrorKind::NotADirectory.into());
    }
    let access = Access::WRITE_OK | Access::EXEC_OK;
    Ok(accessat(CWD, directory, access, AtFlags::EACCESS)?)
}

/// The process that listens at a socket. One that a service has left which was killed is replaced by the next one.
fn listener(path: &Path) -> Result<Option<u32>> {
    let listener = Socket::connect(path).and_then(|socket| Peer::of(&socket));
    match listener {
        Ok(peer) => Ok(Some(peer.pid)),
        Err(error)
            if matches!(
                error.kind(),
                io::ErrorKind::NotFound | io::ErrorKind::ConnectionRefused
            ) =>
        {
            Ok(None)
        }
        Err(error) => Err(refused(format!(
            "{}: something else has this socket ({error}); choose another path (--socket)",
            path.display()
        ))),
    }
}

/// Sockets of systemd's units are made by it.
fn is_system(pid: u32) -> bool {
    let name = fs::read_to_string(format!("/proc/{pid}/comm"));
    name.is_ok_and(|name| name.trim_end() == "systemd")
}
