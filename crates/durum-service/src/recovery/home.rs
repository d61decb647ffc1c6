//! The home locations that a client's logs may write, and their contents.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::rc::Rc;

use durum_format::Uuid;
use durum_format::crc::Crc;
use durum_format::puddle::PuddleHeader;
use durum_persist::file::MediaFile;

use super::plan::Obstacle;
use crate::error::Error;
use crate::files;
use crate::registry::contents::Contents;

/// Bytes read at a time where a range of a puddle is summed up.
const CHUNK_BYTES: usize = 64 << 10;

/// The data puddles that a client may write.
#[derive(Clone)]
pub(super) struct Granted(Rc<BTreeMap<u64, PuddleHeader>>);

impl Granted {
    /// The puddle in which the whole range lies, outside of the immutable part of its header.
    pub(super) fn find(&self, address: u64, length: u64) -> Option<(Uuid, &PuddleHeader)> {
        let (_, header) = self.0.range(..=address).next_back()?;
        header
            .admits(address, length)
            .then_some((header.uuid, header))
    }
}

/// The home locations of a client's data.
pub(super) struct Home<'a> {
    store: &'a Path,
    contents: &'a Contents,
    pub(super) granted: Granted,
    files: BTreeMap<Uuid, MediaFile>,
}

impl<'a> Home<'a> {
    pub(super) fn new(store: &'a Path, contents: &'a Contents, client: Uuid) -> Home<'a> {
        let pools: BTreeSet<Uuid> = contents.granted_pools(client).collect();
        let granted = contents
            .puddles
            .iter()
            .filter(|(_, record)| record.kind.holds_objects() && pools.contains(&record.owner))
            .map(|(uuid, record)| (record.address, files::header_of(*uuid, record)))
            .collect();
        Home {
            store,
            contents,
            granted: Granted(Rc::new(granted)),
            files: BTreeMap::new(),
        }
    }

    pub(super) fn file(&mut self, uuid: Uuid) -> Result<&MediaFile, Obstacle> {
        if !self.files.contains_key(&uuid) {
            let record = self
                .contents
                .puddles
                .get(&uuid)
                .ok_or_else(|| Obstacle::Invalid(format!("puddle {uuid} is not registered")))?;
            let file = files::open(self.store, uuid, record, false)?;
            self.files.insert(uuid, file);
        }
        self.files
            .get(&uuid)
            .ok_or_else(|| Obstacle::Invalid(format!("puddle {uuid} cannot be opened")))
    }

    /// Appends the bytes at a range of addresses to a checksum.
    pub(super) fn sum_up(
        &mut self,
        address: u64,
        length: u64,
        crc: &mut Crc,
    ) -> Result<(), Obstacle> {
        let granted = self.granted.clone();
        let Some((uuid, header)) = granted.find(address, length) else {
            return Err(Obstacle::Invalid(
                "they do not lie in one data puddle that the client may write".to_owned(),
            ));
        };
        let file = self.file(uuid)?;
        let mut offset = address - header.address;
        let end = offset + length;
        let mut buffer = vec![0; CHUNK_BYTES.min(length as usize)];
        while offset < end {
            let part = &mut buffer[..(end - offset).min(CHUNK_BYTES as u64) as usize];
            file.read_exact_at(part, offset)
                .map_err(|source| Error::Io {
                    operation: "reading a puddle",
                    path: file.path().to_owned(),
                    offset: Some(offset),
                    source,
                })?;
            crc.update(part);
            offset += part.len() as u64;
        }
        Ok(())
    }
}
