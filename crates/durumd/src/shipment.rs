//! What a client imports: a manifest in parts, then files that the client fills, then pools.
//!
//! The service reads no file of the client's. What the client writes to the new files is looked at as any import is:
//! headers at the end, contents when each is first opened.

use std::path::Path;

use durum_format::Uuid;
use durum_format::export;
use durum_persist::file::MediaFile;
use durum_protocol::message::MANIFEST_MAX;
use durum_service::{
    Embedded, Error, ImportOptions, ImportReport, Importing, PUDDLES_AT_ONCE, Result,
};

/// What messages call it.
const PLACE: &str = "the export";

/// An import of a client, if it has one.
#[derive(Debug, Default)]
pub(crate) struct Shipment {
    manifest: Vec<u8>,
    importing: Option<Importing>,
}

impl Shipment {
    /// Takes the next part of a manifest.
    pub(crate) fn manifest(&mut self, begins: bool, part: &[u8]) -> Result<()> {
        if begins {
            self.importing = None;
            self.manifest.clear();
        }
        if self.manifest.len().saturating_add(part.len()) > MANIFEST_MAX {
            self.manifest = Vec::new();
            return Err(refused(format!(
                "its manifest has more than {MANIFEST_MAX} bytes"
            )));
        }
        self.manifest.extend_from_slice(part);
        Ok(())
    }

    /// Begins to import what the manifest tells of.
    pub(crate) fn begin(&mut self, client: &Embedded, options: &ImportOptions) -> Result<()> {
        self.importing = None;
        let bytes = std::mem::take(&mut self.manifest);
        let manifest = export::parse(&bytes).map_err(|error| refused(error.to_string()))?;
        self.importing = Some(client.begin_import(Path::new(PLACE), &manifest, options)?);
        Ok(())
    }

    /// Makes the files of some puddles.
    pub(crate) fn give(&mut self, puddles: &[Uuid]) -> Result<Vec<MediaFile>> {
        if puddles.len() > PUDDLES_AT_ONCE {
            return Err(refused("too many files are asked for at once".to_owned()));
        }
        let importing = self.importing.as_mut().ok_or_else(not_begun)?;
        puddles
            .iter()
            .map(|puddle| importing.give(*puddle))
            .collect()
    }

    /// Makes the pools the client's.
    pub(crate) fn finish(&mut self) -> Result<ImportReport> {
        self.importing.take().ok_or_else(not_begun)?.finish()
    }
}

fn not_begun() -> Error {
    refused(
        "the connection was lost meanwhile; look whether its pools are there, else begin again"
            .to_owned(),
    )
}

fn refused(reason: String) -> Error {
    Error::ImportRefused {
        place: PLACE.into(),
        reason,
    }
}
