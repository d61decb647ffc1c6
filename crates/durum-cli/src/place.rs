//! A store, as the command line names it: by its directory, or at the service that serves it, and perhaps a pool of it.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use durum_protocol::Address;
use durum_remote::{Remote, Waiting};
use durum_service::{Embedded, OpenOptions, ReadOnlyStore, Service};

use crate::failure::Failure;

/// Where a store is.
#[derive(Clone, Debug)]
pub(crate) enum Place {
    /// This process opens its files itself.
    Directory(PathBuf),
    /// A service does.
    Service {
        /// The service, as a path.
        address: PathBuf,
        /// The pool that is named with it.
        pool: Option<String>,
    },
}

impl Place {
    /// `durum:POOL` and `durum+unix:PATH:POOL` are of a service, all else is a directory.
    pub(crate) fn of(path: &Path) -> Place {
        match Address::split_pool(path) {
            Some((address, pool)) => Place::Service { address, pool },
            None => Place::Directory(path.to_owned()),
        }
    }

    /// As the user names the store.
    pub(crate) fn path(&self) -> &Path {
        match self {
            Place::Directory(path) => path,
            Place::Service { address, .. } => address,
        }
    }

    /// The directory; for what nobody but the one who opens its files can do.
    pub(crate) fn directory(&self, operation: &str) -> Result<&Path, Failure> {
        match self {
            Place::Directory(path) => Ok(path),
            Place::Service { address, .. } => Err(Failure::Refused(format!(
                "{}: a service does not {operation}; end it, name the directory (`durum stat` tells which), and start it again",
                address.display()
            ))),
        }
    }

    /// The pool that is named, with the store or apart from it.
    pub(crate) fn pool<'a>(&'a self, apart: Option<&'a str>) -> Result<Option<&'a str>, Failure> {
        match (self, apart) {
            (
                Place::Service {
                    pool: Some(pool), ..
                },
                Some(apart),
            ) if pool != apart => Err(Failure::Refused(format!(
                "two pools are named, \"{pool}\" and \"{apart}\"; name one"
            ))),
            (
                Place::Service {
                    pool: Some(pool), ..
                },
                _,
            ) => Ok(Some(pool)),
            (_, apart) => Ok(apart),
        }
    }

    /// The pool that is named; there has to be one.
    pub(crate) fn named_pool<'a>(&'a self, apart: Option<&'a str>) -> Result<&'a str, Failure> {
        self.pool(apart)?.ok_or_else(|| {
            let refusal = "name a pool: STORE POOL, or durum:POOL; `durum ls` lists them";
            Failure::Refused(refusal.into())
        })
    }

    /// Opens the store at its service, for what no directory does.
    pub(crate) fn service(&self, operation: &str) -> Result<Remote, Failure> {
        match self {
            Place::Service { address, .. } => connect(address),
            Place::Directory(path) => Err(Failure::Refused(format!(
                "{}: a directory does not {operation}; name the service of the store: durum:, or durum+unix:PATH",
                path.display()
            ))),
        }
    }

    /// Opens the store.
    pub(crate) fn open(&self, options: OpenOptions) -> Result<Arc<dyn Service>, Failure> {
        Ok(match self {
            Place::Directory(path) => Arc::new(Embedded::open(path, options)?),
            Place::Service { address, .. } => Arc::new(connect(address)?),
        })
    }

    /// Opens the store to be looked at; nothing is written.
    pub(crate) fn read(&self) -> Result<ReadOnlyStore, Failure> {
        Ok(match self {
            Place::Directory(path) => ReadOnlyStore::open(path)?,
            Place::Service { .. } => ReadOnlyStore::of(self.open(OpenOptions::default())?)?,
        })
    }
}

fn connect(address: &Path) -> Result<Remote, Failure> {
    let socket = match Address::parse(address) {
        Address::Service(socket) | Address::Directory(socket) => socket,
    };
    Ok(Remote::open(&socket, Waiting::default())?)
}
