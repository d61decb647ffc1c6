//! A pool that another program of the service has shown: a file for each puddle, which the service has made and that
//! program has filled.

use std::collections::BTreeSet;
use std::sync::Arc;

use durum_format::Uuid;
use durum_protocol::{Answer, Request};
use durum_service::{Error, Picture, Result};

use crate::connection::{Connection, gone};
use crate::file::received;

/// What was shown.
pub(crate) struct Shown {
    pub(crate) connection: Arc<Connection>,
    pub(crate) puddles: BTreeSet<Uuid>,
}

impl Picture for Shown {
    fn read(&self, puddle: Uuid, size: u64) -> Result<Vec<u8>> {
        let strange = || {
            gone(
                self.connection.socket(),
                "sent an answer to another request",
            )
        };
        let (answer, mut files) = self.connection.call(&Request::Shown { puddle })?;
        let file = match (answer, files.pop()) {
            (Answer::Files(mut paths), Some(file)) => {
                received(file, paths.pop().ok_or_else(strange)?)?
            }
            _ => return Err(strange()),
        };
        let failed = |source| Error::Io {
            operation: "reading what was shown of a puddle",
            path: file.path().to_owned(),
            offset: None,
            source,
        };
        let mut bytes = Vec::new();
        let len = usize::try_from(size).unwrap_or(usize::MAX);
        bytes
            .try_reserve_exact(len)
            .map_err(|error| failed(std::io::Error::new(std::io::ErrorKind::OutOfMemory, error)))?;
        bytes.resize(len, 0);
        file.read_exact_at(&mut bytes, 0).map_err(failed)?;
        Ok(bytes)
    }

    fn has(&self, puddle: Uuid) -> bool {
        self.puddles.contains(&puddle)
    }

    fn is_done(&self, _puddle: Uuid) {}
}
