//! What a migration has to know of objects, in files without a name, which the system may write out where there is
//! little memory: where each goes, and how many pointers lead to those that hold counts.

use std::collections::BTreeMap;
use std::path::Path;

use durum_persist::Site;
use durum_persist::file::MediaFile;
use memmap2::{MmapMut, MmapOptions};
use rustix::fd::AsRawFd;
use zerocopy::FromBytes;

use super::counting::Counting;
use super::runs::Runs;
use crate::error::{Error, Result};
use crate::files::grown;

const TABLE: Site = Site("table of objects");

/// Where objects go, and a word of each that is counted with the pointers that lead to it.
pub(super) struct Table {
    runs: Runs,
    counting: Counting,
    words: MmapMut,
    /// What the words have no room for of counts, strong and weak. Each step stands for a hundred pointers or more, so
    /// these are few.
    more: BTreeMap<u64, (u64, u64)>,
    _file: MediaFile,
}

impl Table {
    /// Bytes for each counted object, besides what its run takes.
    const EACH: u64 = 2;

    /// For these objects, in a directory.
    ///
    /// # Errors
    /// `StorageFull`, `Io`.
    pub(super) fn new(directory: &Path, counting: Counting) -> Result<Table> {
        let path = directory.join("table of objects that are migrated");
        let size = counting.len().max(1) * Self::EACH;
        let failed = |error| grown("making room for a table of objects", &path, size, error);
        let file = MediaFile::nameless(directory, &path).map_err(failed)?;
        // A hole would be an error of the medium when it is written.
        file.allocate(size, TABLE).map_err(failed)?;
        let length = usize::try_from(size).unwrap_or(usize::MAX);
        // SAFETY: nobody else can open the file, and it keeps its length.
        let words = unsafe {
            MmapOptions::new()
                .len(length)
                .map_mut(file.as_fd().as_raw_fd())
        };
        Ok(Table {
            runs: Runs::in_file(directory)?,
            counting,
            words: words.map_err(|error| Error::io("mapping a table", directory, error))?,
            more: BTreeMap::new(),
            _file: file,
        })
    }

    /// Bytes for the words of these objects, and for which they are.
    pub(super) fn bytes_for(counting: &Counting) -> u64 {
        counting.len() * Self::EACH + counting.bytes()
    }

    pub(super) fn counting(&self) -> &Counting {
        &self.counting
    }

    fn entry(&mut self, index: u64) -> Option<&mut u16> {
        let number = self.counting.number(index)?;
        let at = usize::try_from(number.checked_mul(Self::EACH)?).ok()?;
        let bytes = self.words.get_mut(at..at + Self::EACH as usize)?;
        u16::mut_from_bytes(bytes).ok()
    }

    /// Where objects go.
    pub(super) fn runs(&self) -> &Runs {
        &self.runs
    }

    /// Where objects go, for whoever says so.
    pub(super) fn runs_mut(&mut self) -> &mut Runs {
        &mut self.runs
    }

    /// A pointer leads to an object.
    pub(super) fn count(&mut self, index: u64, is_weak: bool) {
        let Some(counts) = self.entry(index) else {
            return;
        };
        let (shift, most) = match is_weak {
            true => (WEAK_SHIFT, WEAK_MAX),
            false => (0, STRONG_MAX),
        };
        if *counts >> shift & most < most {
            *counts += 1 << shift;
            return;
        }
        // One stays: what is counted is never taken for what nothing leads to.
        *counts -= (most - 1) << shift;
        let (strong, weak) = self.more.entry(index).or_default();
        *(if is_weak { weak } else { strong }) += u64::from(most);
    }

    /// How many strong and weak pointers lead to an object.
    pub(super) fn counts(&mut self, index: u64) -> (u64, u64) {
        let counts = self.entry(index).map_or(0, |counts| *counts);
        let (strong, weak) = self.more.get(&index).copied().unwrap_or_default();
        (
            strong + u64::from(counts & STRONG_MAX),
            weak + u64::from(counts >> WEAK_SHIFT & WEAK_MAX),
        )
    }

    /// An allocation of a heap goes to the zero list where no strong pointer leads to it. Weak ones never do.
    pub(super) fn may_be_listed(&mut self, index: u64) {
        if let Some(counts) = self.entry(index) {
            *counts |= LISTABLE;
        }
    }

    /// The first object from this one on that the zero list has.
    pub(super) fn next_listed(&mut self, index: u64) -> Option<u64> {
        let number = self.counting.before(index);
        let rest = number.checked_mul(Self::EACH)?;
        let rest = self.words.get(usize::try_from(rest).ok()?..)?;
        let entries = <[u16]>::ref_from_bytes(rest).ok()?;
        let found = entries.iter().position(|counts| *counts == LISTABLE)?;
        self.counting.index(number + found as u64)
    }
}

/// The most strong pointers that the word of counts has room for.
const STRONG_MAX: u16 = (1 << 8) - 1;
/// Above them, and the most weak ones.
const WEAK_SHIFT: u32 = 8;
const WEAK_MAX: u16 = (1 << 7) - 1;
/// Above both: the object may be on the zero list.
const LISTABLE: u16 = 1 << 15;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn more_pointers_are_counted_than_the_words_have_room_for() {
        let directory = tempfile::tempdir().unwrap();
        let mut table = Table::new(directory.path(), Counting::of_groups(&[2])).unwrap();
        table.may_be_listed(0);
        assert_eq!(table.next_listed(0), Some(0));
        // As if that many had been counted.
        *table.entry(0).unwrap() = LISTABLE | (WEAK_MAX - 1) << WEAK_SHIFT | (STRONG_MAX - 1);
        let [strong_max, weak_max] = [STRONG_MAX, WEAK_MAX].map(u64::from);
        for more in 0..4 {
            assert_eq!(
                table.counts(0),
                (strong_max - 1 + more, weak_max - 1 + more)
            );
            assert_eq!(table.next_listed(0), None, "pointers lead to it");
            table.count(0, false);
            table.count(0, true);
        }
        // Once more around.
        *table.entry(0).unwrap() = LISTABLE | STRONG_MAX;
        table.count(0, false);
        assert_eq!(table.counts(0), (2 * strong_max + 1, weak_max));
        // Nothing of that is the next one's.
        assert_eq!(table.counts(1), (0, 0));
    }

    #[test]
    fn what_is_not_counted_has_no_word_and_is_not_listed() {
        let directory = tempfile::tempdir().unwrap();
        // 0 and 1 are counted, 2 and 3 are not, 4 is.
        let counting = Counting::of_groups(&[2, 2, 1]);
        let mut table = Table::new(directory.path(), counting).unwrap();
        for index in [1, 2, 3, 4] {
            table.may_be_listed(index);
        }
        let listed = [0, 1, 2, 3, 4, 5].map(|from| table.next_listed(from));
        assert_eq!(listed, [Some(1), Some(1), Some(4), Some(4), Some(4), None]);
        table.count(3, false);
        table.count(4, true);
        let counts = [0, 1, 2, 3, 4].map(|index| table.counts(index));
        assert_eq!(counts, [(0, 0), (0, 0), (0, 0), (0, 0), (0, 1)]);
    }
}
