//! The home locations that a client's logs may write, and their contents.

use std::collections::BTreeMap;
use std::sync::Arc;

use durum_format::Uuid;
use durum_format::crc::Crc;
use durum_format::home::{Answer, Verdict};
use durum_format::puddle::PuddleHeader;
use durum_persist::file::MediaFile;

use super::obstacle::{Obstacle, is_of_pool};
use crate::error::{Error, Result};
use crate::files::{self, Puddles};
use crate::reading;
use crate::registry::contents::{AddressRange, Contents, Kept};

/// Bytes of a puddle that are summed up at a time.
const CHUNK_BYTES: usize = 64 << 10;

/// What is to be done with home.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Access {
    /// It is looked at.
    Read,
    /// It is brought into the state that the logs ask for: a file that cannot be written refuses its pool.
    Write,
}

/// The data puddles that a client may write, by address.
struct Granted(BTreeMap<u64, PuddleHeader>);

impl Granted {
    /// The puddle in which the whole range lies, outside of the immutable part of its header.
    fn find(&self, address: u64, length: u64) -> Option<&PuddleHeader> {
        let (_, header) = self.0.range(..=address).next_back()?;
        header.admits(address, length).then_some(header)
    }

    /// The ranges of addresses, as few as possible.
    fn ranges(&self) -> Vec<AddressRange> {
        let mut ranges: Vec<AddressRange> = Vec::new();
        for header in self.0.values() {
            match ranges.last_mut() {
                Some(last) if last.address + last.size == header.address => {
                    last.size += header.size;
                }
                _ => ranges.push(AddressRange {
                    address: header.address,
                    size: header.size,
                }),
            }
        }
        ranges
    }
}

/// Where a range lies that a log is about.
pub(super) enum Place {
    /// In this data puddle of a pool whose part is to be recovered.
    Granted(Uuid, PuddleHeader),
    /// In a pool whose part is done, or was given up.
    Settled,
    /// Where the client may not write.
    Elsewhere,
}

/// The home locations of a client's data.
pub(super) struct Home<'a> {
    puddles: &'a Puddles,
    contents: &'a Contents,
    access: Access,
    granted: Granted,
    /// What is known of a client of which a part was recovered before.
    kept: Option<&'a Kept>,
    /// Puddles whose files were opened, and whether that went well.
    looked_at: BTreeMap<Uuid, bool>,
    last: Option<(Uuid, Arc<MediaFile>)>,
    refused: BTreeMap<Uuid, Error>,
}

impl<'a> Home<'a> {
    pub(super) fn new(
        puddles: &'a Puddles,
        contents: &'a Contents,
        client: Uuid,
        access: Access,
    ) -> Home<'a> {
        let pools = contents.granted_pools(client);
        let granted = pools
            .flat_map(|pool| contents.puddles_of(pool))
            .map(|(uuid, record)| (record.address, files::header_of(uuid, &record)))
            .collect();
        Home {
            puddles,
            contents,
            access,
            granted: Granted(granted),
            kept: contents.kept.get(&client),
            looked_at: BTreeMap::new(),
            last: None,
            refused: BTreeMap::new(),
        }
    }

    pub(super) fn access(&self) -> Access {
        self.access
    }

    /// What was decided when a part was recovered before.
    pub(super) fn known(&self) -> &'a [Verdict] {
        self.kept.map_or(&[], |kept| kept.verdicts.as_slice())
    }

    /// The ranges that the client could write when it ended.
    pub(super) fn ranges_of_then(&self) -> Vec<AddressRange> {
        match self.kept {
            Some(kept) => kept.granted.clone(),
            None => self.granted.ranges(),
        }
    }

    /// Whether a part was recovered before.
    pub(super) fn is_again(&self) -> bool {
        self.kept.is_some()
    }

    /// Refuses the pool in which a range lies, because its bytes are not those of then.
    pub(super) fn refuse_other(&mut self, address: u64, length: u64) -> Result<()> {
        let Place::Granted(uuid, header) = self.place(address, length) else {
            return Ok(());
        };
        let error = Error::Damaged {
            file: files::puddle_path(self.puddles.store(), uuid),
            structure: "data",
            offset: address - header.address,
            problem: format!(
                "these {length} bytes are not those that a committed transaction left: this is not the file that the pool had when its program ended"
            ),
            cure: "bring that file back".into(),
        };
        self.refuse(header.owner, error)
    }

    pub(super) fn place(&self, address: u64, length: u64) -> Place {
        if let Some(header) = self.granted.find(address, length) {
            return Place::Granted(header.uuid, *header);
        }
        // In order of address, and apart from each other.
        let of_then = self.kept.map_or(&[][..], |kept| kept.granted.as_slice());
        let behind = of_then.partition_point(|range| range.address <= address);
        let end = address.checked_add(length);
        let is_inside =
            |range: &AddressRange| end.is_some_and(|end| end <= range.address + range.size);
        match of_then[..behind].last().is_some_and(is_inside) {
            true => Place::Settled,
            false => Place::Elsewhere,
        }
    }

    /// The pools that must not be written, and why.
    pub(super) fn refused(&self) -> &BTreeMap<Uuid, Error> {
        &self.refused
    }

    /// Takes an error of a pool's file as the reason why that pool is refused; hands on any other.
    pub(super) fn refuse(&mut self, pool: Uuid, error: Error) -> Result<()> {
        if !is_of_pool(&error) {
            return Err(error);
        }
        self.refused.entry(pool).or_insert(error);
        Ok(())
    }

    /// Whether all puddles of a pool are there. Otherwise the pool is refused.
    pub(super) fn ensure_whole(&mut self, pool: Uuid) -> Result<()> {
        for (uuid, _) in self.contents.puddles_of(pool) {
            if !self.refused.contains_key(&pool) && !self.looked_at.contains_key(&uuid) {
                self.file(uuid)?;
            }
        }
        Ok(())
    }

    /// The file of a puddle; `None` where its pool is refused for it.
    fn file(&mut self, uuid: Uuid) -> Result<Option<&MediaFile>> {
        if self.looked_at.get(&uuid) == Some(&false) {
            return Ok(None);
        }
        if self.last.as_ref().is_none_or(|(last, _)| *last != uuid) {
            let record = self.contents.puddle(self.puddles.store(), uuid)?;
            match self
                .puddles
                .open_kept(uuid, record, self.access == Access::Write)
            {
                Ok(file) => {
                    self.looked_at.insert(uuid, true);
                    self.last = Some((uuid, file));
                }
                Err(error) => {
                    self.refuse(record.owner, error)?;
                    self.looked_at.insert(uuid, false);
                    return Ok(None);
                }
            }
        }
        Ok(self.last.as_ref().map(|(_, file)| &**file))
    }

    /// Appends the bytes at a range of addresses to a checksum.
    pub(super) fn sum_up(
        &mut self,
        address: u64,
        length: u64,
        crc: &mut Crc,
    ) -> Result<Answer, Obstacle> {
        let header = match self.place(address, length) {
            Place::Granted(_, header) => header,
            Place::Settled => return Ok(Answer::GivenUp),
            Place::Elsewhere => {
                return Err(Obstacle::Invalid(
                    "they do not lie in one data puddle that the client may write".to_owned(),
                ));
            }
        };
        let Some(file) = self.file(header.uuid).map_err(Obstacle::Fatal)? else {
            return Ok(Answer::Waits);
        };
        match append(file, address - header.address, length, crc) {
            Ok(()) => Ok(Answer::Seen),
            Err(error) => {
                self.refuse(header.owner, error).map_err(Obstacle::Fatal)?;
                self.looked_at.insert(header.uuid, false);
                Ok(Answer::Waits)
            }
        }
    }
}

fn append(file: &MediaFile, mut offset: u64, length: u64, crc: &mut Crc) -> Result<()> {
    let end = offset + length;
    let mut buffer = vec![0; CHUNK_BYTES.min(length as usize)];
    while offset < end {
        let part = &mut buffer[..(end - offset).min(CHUNK_BYTES as u64) as usize];
        reading::exact(file, offset, part, "reading a puddle")?;
        crc.update(part);
        offset += part.len() as u64;
    }
    Ok(())
}
