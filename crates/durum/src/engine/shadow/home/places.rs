//! Home places: a second mapping of each puddle, or its file.
//!
//! Changes gather in a batch; a batch that is full is written while the next one fills.

use durum_format::record::Entries;
use durum_persist::line;
use zerocopy::IntoBytes;

use super::super::wide::Wide;
use super::files::{DRAIN_FENCE, Files, Page};
use super::mapped::{Mapped, Records};
use crate::alloc::Puddle;
use crate::error::Result;
use crate::fault::guarded;

/// A batch ends also when its blocks take so many times the memory of the records that end one.
const HELD_FACTOR: usize = 8;

#[derive(Debug)]
pub(crate) enum Home {
    Mapped(Mapped),
    Files(Files),
}

impl Home {
    /// Makes the changes of records, and adds their lines to the batch; by whole lines where `wide` says that this is
    /// possible.
    #[inline(always)]
    pub(super) fn apply(&mut self, records: Records<'_>, wide: Option<Wide>) {
        match (self, wide) {
            (Self::Mapped(home), Some(wide)) => home.apply_wide(records, wide),
            (Self::Mapped(home), None) => home.apply(records),
            // Records were made in this process; they are checked where they are read after a crash.
            (Self::Files(home), _) => Entries::new(records.entries)
                .flatten()
                .for_each(|change| home.apply(&change)),
        }
    }

    pub(crate) fn is_batch_empty(&self) -> bool {
        match self {
            Self::Mapped(home) => home.is_batch_empty(),
            Self::Files(home) => home.is_batch_empty(),
        }
    }

    /// How far the batch has come, of whose records there are so many bytes: it ends where that is the number of bytes
    /// that end one.
    #[inline]
    pub(crate) fn fill(&self, logged: usize) -> usize {
        match self {
            Self::Mapped(home) => home.fill(logged),
            Self::Files(home) => logged.max(home.batch_bytes() / HELD_FACTOR),
        }
    }

    /// The batch is to be written from now on; the one before is written.
    pub(crate) fn next_batch(&mut self) {
        match self {
            Self::Mapped(home) => home.next_batch(),
            Self::Files(home) => home.next_batch(),
        }
    }

    /// Whether every line of that batch is written.
    #[inline]
    pub(crate) fn is_written(&self) -> bool {
        match self {
            Self::Mapped(home) => home.is_written(),
            Self::Files(home) => home.writing() == 0,
        }
    }

    /// Writes what is left of that batch.
    #[inline]
    pub(crate) fn write(&mut self) -> Result<()> {
        match self {
            Self::Mapped(home) => {
                // ORDER: durable with the caller's fence, before their records count as home.
                home.write_back_up_to(usize::MAX);
                home.write_pages(usize::MAX);
                Ok(())
            }
            Self::Files(home) => home.write(),
        }
    }

    /// Makes durable what was written, where no commit's fence does that.
    pub(crate) fn fence(&mut self) -> Result<()> {
        match self {
            Self::Mapped(_) => {
                // ORDER: home lines are durable before their records count as home.
                line::fence(DRAIN_FENCE);
                Ok(())
            }
            // ORDER: as above.
            Self::Files(home) => home.sync(),
        }
    }

    /// What went home by non-temporal stores so far, which no batch names.
    pub(crate) fn streamed(&self) -> usize {
        match self {
            Self::Mapped(home) => home.streamed(),
            Self::Files(_) => 0,
        }
    }

    /// Writes what waits, so that home holds everything that was applied.
    #[inline(always)]
    pub(crate) fn write_waiting(&mut self) {
        if let Self::Mapped(home) = self {
            // ORDER: durable with the caller's fence.
            home.write_waiting();
        }
    }

    /// Whether a snapshot may show what home holds. Files know that themselves.
    pub(super) fn set_shown(&mut self, is_shown: bool) {
        if let Self::Mapped(home) = self {
            home.set_shown(is_shown);
        }
    }

    /// Whether the fence of a commit makes durable what was written here.
    pub(crate) fn is_mapped(&self) -> bool {
        matches!(self, Self::Mapped(_))
    }
}

/// What home holds, for who keeps everybody from committing, given that everything committed is applied.
#[derive(Debug)]
pub(crate) struct HomePages<'h> {
    /// What to add to an address to get its home, where that is mapped.
    offset: usize,
    /// The home of each lane.
    homes: Vec<&'h Home>,
}

impl<'h> HomePages<'h> {
    pub(crate) fn new(offset: usize, homes: Vec<&'h Home>) -> Self {
        Self { offset, homes }
    }

    /// Where home is in files, those.
    fn files(&self) -> Option<&'h Files> {
        match self.homes[..] {
            [Home::Files(files), ..] => Some(files),
            _ => None,
        }
    }

    /// Counts every page that was changed, also where that is not written back yet.
    pub(crate) fn note_all(&self) {
        for home in &self.homes {
            if let Home::Mapped(home) = home {
                home.note_all();
            }
        }
    }

    /// Pages whose home is not, or not durably, what was committed, in order. Where home is memory, that it is not
    /// durable does not matter: it is read from the place where it was written.
    pub(crate) fn pending_pages(&self) -> Vec<usize> {
        self.files().map(Files::pending_pages).unwrap_or_default()
    }

    /// What home holds of a page, put together in `buffer` where it is not in one piece.
    ///
    /// # Errors
    /// The page could not be read: the store is poisoned.
    pub(crate) fn page<'b>(
        &self,
        puddle: &Puddle,
        address: usize,
        buffer: &'b mut Page,
    ) -> Result<&'b Page>
    where
        'h: 'b,
    {
        match self.files() {
            Some(files) => {
                files.read_page(puddle, address, buffer)?;
                Ok(buffer)
            }
            None if self.offset == 0 => {
                guarded(|| {
                    puddle.read_file(buffer.as_mut_bytes(), (address - puddle.address) as u64)
                })?;
                Ok(buffer)
            }
            // SAFETY: a page of the home mapping of a mapped puddle. Nobody commits, so nobody changes it.
            None => Ok(unsafe { &*((address + self.offset) as *const Page) }),
        }
    }

    /// What the program would read if these pages were not private; put together in `buffer` where it is not in memory.
    ///
    /// # Errors
    /// As for [`HomePages::page`].
    pub(crate) fn bytes<'b>(
        &self,
        puddle: &Puddle,
        range: std::ops::Range<usize>,
        buffer: &'b mut [u8],
    ) -> Result<&'b [u8]> {
        if self.offset == 0 {
            let buffer = &mut buffer[..range.len()];
            guarded(|| puddle.read_file(buffer, (range.start - puddle.address) as u64))?;
            return Ok(buffer);
        }
        // SAFETY: pages of the home mapping of a mapped puddle, as in `page`.
        Ok(unsafe {
            std::slice::from_raw_parts((range.start + self.offset) as *const u8, range.len())
        })
    }
}
