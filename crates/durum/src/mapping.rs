//! The mapping of a puddle: its file, at its address, once or twice.

use std::any::Any;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::ptr::{self, NonNull};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError, RwLock, Weak};

use durum_format::Uuid;
use durum_format::puddle::{PuddleKind, heap_offset};
use durum_persist::domain::Domain;
use durum_persist::file::MediaFile;
use durum_service::PuddleGrant;
use rustix::mm::{Advice, MapFlags, ProtFlags};

use crate::addresses::{Beside, MappingKind, mapping_failed};
use crate::error::{Error, Result};
use crate::kept_lines::KeptLines;
use crate::poison::Poison;
use crate::populate::make_pages;
use crate::space::{Entry, Space, entry_at};
use crate::tracking::Tracking;

pub(crate) use crate::populate::PAGE;
/// Bytes of a large page.
pub(crate) const LARGE_PAGE: usize = 2 << 20;

/// No page of the puddle failed.
const NO_FAILURE: u64 = u64::MAX;

/// What an engine keeps about a puddle of its pools, and is told of it.
pub(crate) trait Kept: Any + Send + Sync + std::fmt::Debug {
    /// Space in the puddle is about to be free for others.
    fn note_freed(&self, _range: Range<usize>) {}

    /// The pages of the puddle are memory of their own from now on, in large pages, and not copied from the file.
    fn note_large_pages(&self) {}

    /// Private pages that may be made before they are needed.
    fn private_pages_max(&self) -> usize {
        0
    }

    /// Pages of home of a fresh puddle are to be made: how many bytes of them at once. The rest is made by others.
    fn leave_home_pages(&self, range: Range<usize>) -> usize {
        range.len()
    }

    /// The page at this offset has private contents.
    fn note_private_page(&self, _offset: usize) {}

    /// The puddle is unmapped.
    fn note_unmapped(&self) {}
}

/// One mapped puddle. Lives until its store is closed, also after the puddle was given back.
pub(crate) struct Mapping {
    pub(crate) uuid: Uuid,
    pub(crate) is_root: bool,
    pub(crate) address: usize,
    pub(crate) size: usize,
    /// The path of its file.
    pub(crate) path: PathBuf,
    /// The file, where it is written and synced (`file` domain), until the puddle is given back; a mapping needs none.
    file: RwLock<Option<MediaFile>>,
    /// Stores stay in this process until they are written back (`file` domain).
    pub(crate) private: bool,
    /// What to add to an address to get its home, where programs work in private pages (Shadow, but not on `file`).
    home: Option<usize>,
    /// What to add to an address to get its back copy (Twin).
    back: Option<usize>,
    /// Which store and pool it belongs to; 0 where it belongs to no pool.
    pub(crate) store_key: u64,
    pub(crate) pool_key: u64,
    /// The open pool, for those who know what that is.
    pub(crate) pool: Weak<dyn Any + Send + Sync>,
    pub(crate) poison: Arc<Poison>,
    /// The program's own accesses to bad pages are survived too.
    pub(crate) survive: bool,
    /// Held while the file is synced: an error that one sync consumes must be known before another one succeeds.
    pub(crate) syncing: Arc<Mutex<()>>,
    /// Offset of the first page that failed, set by the signal handler.
    failed: AtomicU64,
    /// On `file`: one writer of shared words at a time, so that the newest value reaches the file last.
    pub(crate) word_writer: Mutex<()>,
    /// How changes are found that nobody announced.
    pub(crate) tracking: Tracking,
    /// What the engine of its pool keeps.
    pub(crate) kept: Option<Box<dyn Kept>>,
    /// What a snapshot that shows the puddle needs, while there is one.
    pub(crate) kept_lines: KeptLines,
    /// Device and inode of the file.
    pub(crate) file_id: (u64, u64),
    space: &'static Space,
    mapped: AtomicBool,
}

/// Stores stay in this process. Without `NORESERVE` a private mapping takes as much of the machine's memory as it is
/// long.
pub(crate) const PRIVATE: MapFlags = MapFlags::PRIVATE.union(MapFlags::NORESERVE);

/// Maps a puddle's file over reserved addresses.
fn map_file(
    store: &Path,
    file: &MediaFile,
    address: usize,
    size: usize,
    offset: u64,
    (protection, flags): (ProtFlags, MapFlags),
    domain: Domain,
) -> Result<()> {
    let map = |flags: MapFlags| {
        // SAFETY: the caller names a range inside the reserved space where no puddle is mapped.
        unsafe {
            rustix::mm::mmap(
                address as *mut _,
                size,
                protection,
                flags | MapFlags::FIXED,
                file.as_fd(),
                offset,
            )
        }
    };
    match map(flags) {
        // A `dax` domain that was asked for on a file system without it: the crash tests do that.
        Err(rustix::io::Errno::OPNOTSUPP | rustix::io::Errno::INVAL)
            if matches!(domain, Domain::Dax) =>
        {
            map(MapFlags::SHARED)
        }
        other => other,
    }
    .map_err(|errno| {
        // Three kinds share two bits.
        let what = match flags.contains(MapFlags::PRIVATE) && !flags.contains(MapFlags::SHARED) {
            true => MappingKind::Data,
            false => MappingKind::Addresses,
        };
        mapping_failed("mapping a puddle", errno, size, what, store)
    })?;
    // SAFETY: the range was just mapped; a child must not share it.
    unsafe { rustix::mm::madvise(address as *mut _, size, Advice::LinuxDontFork) }
        .map_err(|error| Error::system("keeping a puddle out of forked children", error))
}

/// Whether programs store to such a puddle by themselves.
fn is_stored_to(kind: PuddleKind) -> bool {
    kind.holds_objects() || kind == PuddleKind::Sections
}

/// What a puddle belongs to.
pub(crate) struct Owner {
    pub(crate) store_key: u64,
    pub(crate) pool_key: u64,
    pub(crate) pool: Weak<dyn Any + Send + Sync>,
    pub(crate) poison: Arc<Poison>,
    pub(crate) survive: bool,
    /// What to add to an address to get its home, where programs are to work in private pages.
    pub(crate) home: Option<usize>,
    /// What to add to an address to get its back copy, where there are two copies.
    pub(crate) back: Option<usize>,
    /// Memory beside its pool's puddles, where something is kept about what lies in them.
    pub(crate) beside: Option<Arc<Beside>>,
    /// What the engine of its pool keeps about it.
    pub(crate) kept: Option<Box<dyn Kept>>,
    /// It can be changed.
    pub(crate) is_writable: bool,
    /// Its addresses were claimed for it: it has waited to be mapped.
    pub(crate) is_claimed: bool,
}

impl Mapping {
    /// Maps a puddle at its address, and enters what `place` makes of it in the space.
    ///
    /// # Safety
    /// `P` begins with what `place` was given.
    pub(crate) unsafe fn map<P>(
        grant: PuddleGrant,
        owner: Owner,
        domain: Domain,
        space: &'static Space,
        store: &Path,
        place: impl FnOnce(Mapping) -> Arc<P>,
    ) -> Result<Arc<P>> {
        let (address, size) = (grant.address as usize, grant.size as usize);
        let private = matches!(domain, Domain::File);
        let conflict = |other| {
            Error::Store(durum_service::Error::AddressConflict {
                path: store.to_owned(),
                other,
                address: address as u64,
                size: size as u64,
            })
        };
        if !space.contains(address, size) {
            return Err(conflict(None));
        }
        // From the check to the entry in the table nobody else may map, or unmap, there.
        let mut changing = space.changing();
        if let Some(other) = space.occupant(address, size) {
            // SAFETY: a puddle in the table is alive while mapped.
            let path = unsafe { other.cast::<Mapping>().as_ref() }
                .path
                .ancestors()
                .nth(2)
                .map(Path::to_owned);
            return Err(conflict(path));
        }
        if !owner.is_claimed && space.is_claimed(&changing, address, size) {
            return Err(conflict(None));
        }
        let file_id = rustix::fs::fstat(grant.file.as_fd())
            .map(|stat| (stat.st_dev, stat.st_ino))
            .map_err(|error| Error::system("asking about a puddle's file", error))?;
        let protection = match owner.is_writable {
            true => ProtFlags::READ | ProtFlags::WRITE,
            false => ProtFlags::READ,
        };
        let flags = match domain {
            _ if !owner.is_writable => MapFlags::SHARED,
            Domain::File => PRIVATE,
            Domain::Dax => MapFlags::SHARED_VALIDATE | MapFlags::SYNC,
            _ => MapFlags::SHARED,
        };
        let home = owner.home.filter(|_| !private);
        let map = || {
            let at = |distance: usize, offset: u64, flags| {
                let start = address + distance;
                space.need(start, size, store)?;
                let how = (protection, flags);
                map_file(store, &grant.file, start, size, offset, how, domain)
            };
            if let Some(home) = home {
                at(home, 0, flags)?;
            }
            if let Some(back) = owner.back {
                at(back, size as u64, flags)?;
            }
            if let Some(beside) = owner.beside {
                beside
                    .need(address, size)
                    .map_err(|refused| refused.error(store))?;
            }
            // Last: a thread that has waited for it goes on, and finds all the rest.
            at(0, 0, home.map_or(flags, |_| PRIVATE))
        };
        map().inspect_err(|_| {
            for distance in [Some(0), home, owner.back].into_iter().flatten() {
                space.give_back(address + distance, size);
            }
        })?;
        if !private && owner.is_writable {
            // SAFETY: the mapping stays until `unmap`, which says so.
            unsafe {
                durum_persist::record::mapped(
                    (address + home.unwrap_or(0)) as *const u8,
                    size,
                    &grant.file,
                    0,
                    is_stored_to(grant.kind) && home.is_none(),
                );
                if let Some(back) = owner.back {
                    let start = (address + back) as *const u8;
                    durum_persist::record::mapped(start, size, &grant.file, size as u64, false);
                }
            }
        }
        let puddle = place(Self {
            uuid: grant.uuid,
            is_root: grant.is_root,
            address,
            size,
            path: grant.file.path().to_owned(),
            file: RwLock::new(private.then_some(grant.file)),
            private,
            home,
            back: owner.back,
            store_key: owner.store_key,
            pool_key: owner.pool_key,
            pool: owner.pool,
            poison: owner.poison,
            survive: owner.survive,
            syncing: Arc::default(),
            failed: AtomicU64::new(NO_FAILURE),
            word_writer: Mutex::new(()),
            tracking: Tracking::default(),
            kept: owner.kept,
            kept_lines: KeptLines::default(),
            file_id,
            space,
            mapped: AtomicBool::new(true),
        });
        let entry = Arc::as_ptr(&puddle).cast_mut();
        // SAFETY: it begins with the mapping, as the caller promises.
        unsafe { &*entry.cast::<Mapping>() }.enter(entry.cast());
        if owner.is_claimed {
            space.give_claim_back(&mut changing, address, size);
        }
        Ok(puddle)
    }

    /// The addresses at which it is mapped.
    fn mappings(&self) -> impl Iterator<Item = usize> {
        [
            Some(self.address),
            self.home.map(|home| self.address + home),
            self.back.map(|back| self.address + back),
        ]
        .into_iter()
        .flatten()
    }

    /// What to add to an address to get the mapping of the media; 0 where programs work in the media or there is no
    /// such mapping.
    #[inline]
    pub(crate) fn home_offset(&self) -> usize {
        self.home.unwrap_or(0)
    }

    /// What to add to an address to get its back copy; 0 where there is none.
    #[inline]
    pub(crate) fn back_offset(&self) -> usize {
        self.back.unwrap_or(0)
    }

    /// Whether programs store to the media themselves.
    #[inline]
    pub(crate) fn works_in_place(&self) -> bool {
        !self.private && self.home.is_none() && self.back.is_none()
    }

    fn enter(&self, puddle: *mut Entry) {
        for start in self.mappings() {
            self.space.enter(start, self.size, puddle);
        }
    }

    /// Makes a fresh puddle fast to fill: the pool grew because it is about to be.
    ///
    /// Page tables of the media are made in one go; page by page this takes three times as long. Where programs work in
    /// private pages, these have nothing to be copied from but zeros, so they can be large ones; on a file system they
    /// are, lest each page is in the page cache, too.
    pub(crate) fn prepare_fresh(&self, has_large_pages: bool) {
        if !self.private {
            let media = self.address + self.home_offset();
            let back = self.back.map(|back| self.address + back);
            let at_once = match (&self.kept, self.home) {
                (Some(kept), Some(_)) => {
                    kept.leave_home_pages(self.address..self.address + self.size)
                }
                _ => self.size,
            };
            for start in [Some(media), back].into_iter().flatten() {
                make_pages(start, at_once);
            }
        }
        if (self.private || has_large_pages && self.home.is_some())
            && let Err(error) = self.use_large_pages()
        {
            tracing::debug!(%error, "a fresh puddle keeps small pages");
        }
    }

    /// Has the private pages of a fresh puddle made now instead of at the first stores; all of them, or none where the
    /// store's limit leaves too little room.
    pub(crate) fn populate(&self) {
        let room = self
            .kept
            .as_ref()
            .map_or(0, |kept| kept.private_pages_max());
        if self.home.is_none() || self.size / PAGE > room {
            return;
        }
        for start in (self.address..self.address + self.size).step_by(LARGE_PAGE) {
            self.while_mapped(|| {
                make_pages(start + self.home_offset(), LARGE_PAGE);
                make_pages(start, LARGE_PAGE);
                (start..start + LARGE_PAGE)
                    .step_by(PAGE)
                    .for_each(|page| self.note_private_page(page));
            });
        }
    }

    /// Puts large private pages in the place of those that would be copied from the file, all of whose heap is zero.
    fn use_large_pages(&self) -> rustix::io::Result<()> {
        let flags = PRIVATE | MapFlags::FIXED;
        let protection = ProtFlags::READ | ProtFlags::WRITE;
        let header = heap_offset(self.size as u64) as usize;
        // SAFETY: the program does not know the puddle yet. What lies before the heap is kept; the file holds zeros
        // behind.
        unsafe {
            let kept = std::slice::from_raw_parts(self.address as *const u8, header).to_vec();
            rustix::mm::mmap_anonymous(self.address as *mut _, self.size, protection, flags)?;
            let advise = |advice| rustix::mm::madvise(self.address as *mut _, self.size, advice);
            // Before the first store there, which would take a small page, and then the 2 MiB around it small ones.
            // Where the system refuses one, the pages are this memory all the same: what they hold has to be right.
            let advised = advise(Advice::LinuxDontFork).and(advise(Advice::LinuxHugepage));
            std::ptr::copy_nonoverlapping(kept.as_ptr(), self.address as *mut u8, header);
            if let Some(kept) = &self.kept {
                kept.note_large_pages();
            }
            advised
        }
    }

    /// Takes the puddle out of the address space. Pointers into it are dead from here on.
    pub(crate) fn unmap(&self) {
        if !self.mapped.swap(false, Ordering::AcqRel) {
            return;
        }
        // The space of a removed file is free once nothing holds it open.
        *self.file.write().unwrap_or_else(PoisonError::into_inner) = None;
        let _changing = self.space.changing();
        self.enter(ptr::null_mut());
        if let Some(kept) = &self.kept {
            kept.note_unmapped();
        }
        if !self.private {
            let media = self.address + self.home_offset();
            durum_persist::record::unmapped(media as *const u8, self.size);
            if let Some(back) = self.back {
                durum_persist::record::unmapped((self.address + back) as *const u8, self.size);
            }
        }
        for start in self.mappings() {
            self.space.give_back(start, self.size);
        }
    }

    fn note_private_page(&self, address: usize) {
        if let Some(kept) = &self.kept {
            kept.note_private_page(address - self.address);
        }
    }

    /// Runs `look` while the puddle stays mapped, if it is.
    pub(crate) fn while_mapped<R>(&self, look: impl FnOnce() -> R) -> Option<R> {
        let _changing = self.space.changing();
        self.mapped.load(Ordering::Acquire).then(look)
    }

    /// Space is about to be free for others.
    pub(crate) fn note_freed(&self, range: Range<usize>) {
        if let Some(kept) = &self.kept {
            kept.note_freed(range);
        }
    }

    /// The file to write to, on the `file` domain; `None` once the puddle was given back.
    pub(crate) fn file(&self) -> Option<MediaFile> {
        self.file
            .read()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }

    /// Reads the file (`file` domain), which may be older than what the program sees.
    pub(crate) fn read_file(&self, buffer: &mut [u8], offset: u64) -> Result<()> {
        let Some(file) = self.file() else {
            let address = self.address + offset as usize;
            let len = buffer.len();
            return Err(Error::NotInPool { address, len });
        };
        file.read_exact_at(buffer, offset).map_err(|source| {
            let reason = "the media could not be read";
            self.poison.set(&self.path, offset, reason);
            tracing::error!(file = %self.path.display(), %source, reason);
            self.poison.check().err().unwrap_or(Error::NoTransaction)
        })
    }

    /// The addresses of the part that holds extents. What is before is the service's.
    #[inline]
    pub(crate) fn heap(&self) -> Range<usize> {
        let start = self.address + heap_offset(self.size as u64) as usize;
        start..self.address + self.size
    }

    /// Whether the range lies in the part of the puddle that holds extents.
    #[inline]
    pub(crate) fn holds(&self, address: usize, len: usize) -> bool {
        self.contains(address, len) && address >= self.heap().start
    }

    /// The memory of the puddle from `offset` on.
    pub(crate) fn at(&self, offset: usize) -> NonNull<u8> {
        debug_assert!(offset < self.size);
        // SAFETY: addresses of the space are never null.
        unsafe { NonNull::new_unchecked(ptr::with_exposed_provenance_mut(self.address + offset)) }
    }

    #[inline]
    pub(crate) fn contains(&self, address: usize, len: usize) -> bool {
        address >= self.address && len <= self.size && address - self.address <= self.size - len
    }

    /// Records that the page at `address`, in any of its mappings, cannot be read. Called from a signal handler:
    /// atomics only.
    pub(crate) fn poison_at(&self, address: usize) {
        let offset = match self.contains(address, 1) {
            true => address - self.address,
            false => address - self.address - self.home_offset() - self.back_offset(),
        } as u64;
        let _ =
            self.failed
                .compare_exchange(NO_FAILURE, offset, Ordering::AcqRel, Ordering::Relaxed);
    }

    /// Whether a page has failed.
    pub(crate) fn has_failed(&self) -> bool {
        self.failed.load(Ordering::Relaxed) != NO_FAILURE
    }

    /// The error of a page that failed, if any. From then on the whole pool is poisoned.
    #[inline(always)]
    pub(crate) fn check_failed(&self) -> Result<()> {
        match self.failed.load(Ordering::Relaxed) {
            NO_FAILURE => Ok(()),
            offset => self.fail(offset),
        }
    }

    #[cold]
    fn fail(&self, offset: u64) -> Result<()> {
        self.poison
            .set(&self.path, offset, "the media could not be read");
        self.poison.check()
    }
}

/// The mapping that contains an address.
///
/// The pointer stays valid while the store that the puddle belongs to is open: puddles given back are kept until then.
#[inline(always)]
pub(crate) fn mapping_at(address: usize) -> Option<NonNull<Mapping>> {
    entry_at(address).map(NonNull::cast)
}

impl Drop for Mapping {
    fn drop(&mut self) {
        self.unmap();
    }
}

impl std::fmt::Debug for Mapping {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Puddle")
            .field("uuid", &self.uuid)
            .field("address", &self.address)
            .field("size", &self.size)
            .finish()
    }
}
