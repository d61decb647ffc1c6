//! How a program names a store: a directory, or a service, and perhaps a pool of it.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::str;

/// The socket of the service of a machine.
pub const DEFAULT_SOCKET: &str = "/run/durum/durum.sock";

/// Names the default socket of a process.
pub const SOCKET_VARIABLE: &str = "DURUM_SOCKET";

const DEFAULT: &[u8] = b"durum:";
const UNIX: &[u8] = b"durum+unix:";

/// A store, as a program names it.
///
/// ```
/// use durum_protocol::Address;
/// assert_eq!(Address::parse("/mnt/store"), Address::Directory("/mnt/store".into()));
/// assert_eq!(Address::parse("./durum:x"), Address::Directory("./durum:x".into()));
/// assert_eq!(Address::parse("durum+unix:/tmp/d.sock"), Address::Service("/tmp/d.sock".into()));
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Address {
    /// A directory that this process opens itself.
    Directory(PathBuf),
    /// The socket of a service.
    Service(PathBuf),
}

impl Address {
    /// `durum:` is the service at the default socket, `durum+unix:PATH` the one at PATH; all else is a directory.
    pub fn parse(path: impl AsRef<Path>) -> Address {
        let path = path.as_ref();
        let bytes = path.as_os_str().as_bytes();
        if bytes == DEFAULT {
            return Address::Service(default_socket());
        }
        match bytes.strip_prefix(UNIX) {
            Some(socket) => Address::Service(PathBuf::from(OsStr::from_bytes(socket))),
            None => Address::Directory(path.to_owned()),
        }
    }

    /// A store of a service, and a pool of it: `durum:POOL`, `durum+unix:PATH:POOL`. The store as [`Address::parse`]
    /// takes it, and the pool, if one is named. `None` for a directory, where pools are named otherwise.
    ///
    /// ```
    /// use durum_protocol::Address;
    /// let (store, pool) = Address::split_pool("durum+unix:/tmp/d.sock:words").unwrap();
    /// assert_eq!(store, std::path::Path::new("durum+unix:/tmp/d.sock"));
    /// assert_eq!(pool.as_deref(), Some("words"));
    /// assert_eq!(Address::split_pool("durum:").unwrap(), ("durum:".into(), None));
    /// assert!(Address::split_pool("words").is_none());
    /// ```
    pub fn split_pool(path: impl AsRef<Path>) -> Option<(PathBuf, Option<String>)> {
        let path = path.as_ref();
        let text = path.to_str()?;
        let scheme = [UNIX, DEFAULT]
            .into_iter()
            .filter_map(|scheme| str::from_utf8(scheme).ok());
        let scheme = scheme.into_iter().find(|scheme| text.starts_with(scheme))?;
        let rest = text.get(scheme.len()..)?;
        let (socket, pool) = match scheme.as_bytes() == DEFAULT {
            true => ("", rest),
            false => rest.rsplit_once(':').unwrap_or((rest, "")),
        };
        let pool = Some(pool.to_owned()).filter(|pool| !pool.is_empty());
        Some((format!("{scheme}{socket}").into(), pool))
    }

    /// How it is named, by whoever is told of it: what [`Address::parse`] takes.
    ///
    /// ```
    /// use durum_protocol::Address;
    /// let address = Address::Service("/tmp/d.sock".into());
    /// assert_eq!(address.name(), std::path::Path::new("durum+unix:/tmp/d.sock"));
    /// assert_eq!(Address::parse(address.name()), address);
    /// ```
    pub fn name(&self) -> PathBuf {
        match self {
            Address::Directory(path) => path.clone(),
            // Not where the variable names another one: who reads a log may have other variables than who wrote it.
            Address::Service(socket)
                if socket == Path::new(DEFAULT_SOCKET) && *socket == default_socket() =>
            {
                PathBuf::from(OsStr::from_bytes(DEFAULT))
            }
            Address::Service(socket) => {
                let mut name = OsStr::from_bytes(UNIX).to_owned();
                name.push(socket);
                name.into()
            }
        }
    }
}

/// Where a service tells how it does.
///
/// ```
/// use durum_protocol::address::MetricsAddress;
/// assert_eq!(MetricsAddress::parse("localhost:9464"), MetricsAddress::Tcp("localhost:9464".into()));
/// assert_eq!(MetricsAddress::parse("/run/durum/m.sock"), MetricsAddress::Unix("/run/durum/m.sock".into()));
/// assert_eq!(MetricsAddress::parse("unix:m.sock"), MetricsAddress::Unix("m.sock".into()));
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MetricsAddress {
    /// A host and a port.
    Tcp(String),
    /// The path of a socket.
    Unix(PathBuf),
}

impl MetricsAddress {
    /// A path has a `/` in it, or `unix:` before it; all else is `HOST:PORT`.
    pub fn parse(text: &str) -> MetricsAddress {
        match text.strip_prefix("unix:") {
            Some(path) => MetricsAddress::Unix(path.into()),
            None if text.contains('/') => MetricsAddress::Unix(text.into()),
            None => MetricsAddress::Tcp(text.to_owned()),
        }
    }

    /// The path of the socket, if it is one.
    pub fn path(self) -> Option<PathBuf> {
        match self {
            MetricsAddress::Tcp(_) => None,
            MetricsAddress::Unix(path) => Some(path),
        }
    }
}

fn default_socket() -> PathBuf {
    let named = std::env::var_os(SOCKET_VARIABLE).filter(|named| !named.is_empty());
    named.map_or_else(|| PathBuf::from(DEFAULT_SOCKET), PathBuf::from)
}
