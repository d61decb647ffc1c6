//! Which service answers for a store: one in this process, for a directory, or one that is told at a socket.

use std::path::Path;

use durum_protocol::Address;
use durum_remote::{Remote, Waiting};
use durum_service::{
    CreateOptions, Embedded, Error, OpenOptions, RecoveryReport, Result, Service, StoreInfo,
};

use crate::completed::{ByDeposit, Completer};

/// A store that is open, and what recovery did when this process opened it; of a service what it did at its start.
pub(crate) struct Opened {
    pub(crate) service: Box<dyn Service>,
    pub(crate) recovery: Option<RecoveryReport>,
    pub(crate) completer: Option<Box<dyn Completer>>,
}

impl From<Box<dyn Service>> for Opened {
    /// One in which nothing was left by anybody.
    fn from(service: Box<dyn Service>) -> Self {
        Self {
            service,
            recovery: None,
            completer: None,
        }
    }
}

/// Opens the store that `path` names.
pub(crate) fn open(path: &Path, options: OpenOptions) -> Result<Opened> {
    let socket = match Address::parse(path) {
        Address::Directory(path) => {
            let service = Embedded::open(&path, options)?;
            return Ok(Opened {
                recovery: Some(service.recovery_report().clone()),
                completer: Some(Box::new(ByDeposit::new(service.host().clone()))),
                service: Box::new(service),
            });
        }
        Address::Service(socket) => socket,
    };
    let service = Remote::open(&socket, Waiting::default())?;
    check_domain(&service.info(), &options)?;
    let recovery = service.recovery()?;
    Ok(Opened {
        recovery: Some(recovery),
        ..Opened::from(Box::new(service) as Box<dyn Service>)
    })
}

/// Makes a store at `path`, which must not exist; that of a service always does.
pub(crate) fn create(path: &Path, options: &CreateOptions) -> Result<Box<dyn Service>> {
    match Address::parse(path) {
        Address::Directory(path) => Ok(Box::new(Embedded::create(&path, options)?)),
        Address::Service(_) => Err(Error::StoreExists {
            path: path.to_owned(),
        }),
    }
}

/// How a write becomes durable in a store that others use is not one client's choice.
fn check_domain(info: &StoreInfo, options: &OpenOptions) -> Result<()> {
    match options.domain {
        Some(domain) if domain != info.domain => Err(Error::Options {
            reason: format!(
                "the service works in the domain {:?}, and {domain:?} was asked for; leave the domain to the service",
                info.domain
            ),
        }),
        _ => Ok(()),
    }
}
