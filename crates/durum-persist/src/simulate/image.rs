//! Making images: one directory is changed from image to image.
//!
//! What the check did to the last image is not tracked but looked up: names by reading directories, contents by
//! comparing the pages that the kernel says are not holes. So a check may do anything to its image.

use std::collections::{BTreeMap, HashMap};
use std::fs::{self, File, OpenOptions, Permissions};
use std::io;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::ptr;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use rustix::mm::{MapFlags, ProtFlags};

use super::draw::Image;
use super::media::Media;
use super::names::Node;
use crate::domain::{self, Domain};
use crate::inject::{self, Promise};
use crate::recording::{FileId, PAGE, Page, next_data};

/// A directory that takes the shape of one image after the other. Removed when dropped.
pub(super) struct ImageDir {
    path: PathBuf,
    /// The files that we made, by path below the directory.
    slots: HashMap<PathBuf, Slot>,
    /// The directory is on a file system without a disk.
    in_memory: bool,
    keep: bool,
    _space: Promise,
}

/// A file with more pages than this that hold zeros for nothing is made anew.
const SURPLUS_PAGES_MAX: usize = 256;

const ZERO_PAGE: Page = [0; PAGE];

impl ImageDir {
    pub(super) fn new(scratch: Option<&Path>) -> io::Result<ImageDir> {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let parent = match scratch {
            Some(dir) => dir.to_owned(),
            None if Path::new("/dev/shm").is_dir() => PathBuf::from("/dev/shm"),
            None => std::env::temp_dir(),
        };
        let name = format!(
            "durum-image-{}-{}",
            std::process::id(),
            NEXT.fetch_add(1, Relaxed)
        );
        let path = parent.join(name);
        fs::create_dir(&path)?;
        let in_memory = domain::detect(&path)? == Domain::Dram;
        Ok(ImageDir {
            _space: inject::promise_space(&path),
            path,
            slots: HashMap::new(),
            in_memory,
            keep: false,
        })
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Leaves the directory where it is.
    pub(super) fn keep(mut self) -> PathBuf {
        self.keep = true;
        self.path.clone()
    }

    /// Makes the directory hold exactly the image.
    pub(super) fn write(&mut self, media: &Media<'_>, image: &Image) -> io::Result<()> {
        let wanted: BTreeMap<&Path, Node> = image
            .tree
            .iter()
            .map(|(path, node)| (path.as_path(), *node))
            .collect();
        let mut there = BTreeMap::new();
        self.remove_strangers(Path::new(""), &wanted, &mut there)?;
        self.slots
            .retain(|path, slot| there.get(path) == Some(&slot.inode));
        for (path, node) in &image.tree {
            match node {
                Node::Dir(_) if there.contains_key(path) => {}
                Node::Dir(_) => fs::create_dir(self.path.join(path))?,
                Node::File(id) => self.write_file(path, *id, media, image)?,
            }
        }
        Ok(())
    }

    /// Removes what the image does not have; collects what is left, with inode numbers.
    fn remove_strangers(
        &self,
        dir: &Path,
        wanted: &BTreeMap<&Path, Node>,
        there: &mut BTreeMap<PathBuf, u64>,
    ) -> io::Result<()> {
        for entry in fs::read_dir(self.path.join(dir))? {
            let entry = entry?;
            let path = dir.join(entry.file_name());
            let metadata = entry.metadata()?;
            match wanted.get(path.as_path()) {
                Some(Node::Dir(_)) if metadata.is_dir() => {
                    there.insert(path.clone(), metadata.ino());
                    self.remove_strangers(&path, wanted, there)?;
                }
                Some(Node::File(_))
                    if self
                        .slots
                        .get(&path)
                        .is_some_and(|slot| slot.inode == metadata.ino()) =>
                {
                    there.insert(path, metadata.ino());
                }
                _ if metadata.is_dir() => fs::remove_dir_all(entry.path())?,
                _ => fs::remove_file(entry.path())?,
            }
        }
        Ok(())
    }

    fn write_file(
        &mut self,
        path: &Path,
        id: FileId,
        media: &Media<'_>,
        image: &Image,
    ) -> io::Result<()> {
        let mode = media.files[id.index()].mode;
        if !self.slots.contains_key(path) {
            self.slots
                .insert(path.to_owned(), Slot::new(&self.path.join(path), mode)?);
        }
        let Some(slot) = self.slots.get_mut(path) else {
            return Ok(());
        };
        let metadata = slot.file.metadata()?;
        if metadata.permissions().mode() & 0o777 != mode {
            slot.file.set_permissions(Permissions::from_mode(mode))?;
        }
        let len = image.lens[id.index()];
        slot.resize(metadata.len(), len)?;
        let mut pages = Pages {
            media,
            image,
            id,
            len,
            next_unit: 0,
            page: [0; PAGE],
        };
        let present = slot.present_pages(len, self.in_memory)?;
        let mut surplus = 0;
        for (index, present) in present.iter().enumerate() {
            match (pages.page(index), present) {
                (Some(wanted), present) => slot.write_page(index, wanted, *present),
                (None, true) => {
                    surplus += 1;
                    slot.write_page(index, &ZERO_PAGE, true);
                }
                (None, false) => {}
            }
        }
        if surplus > SURPLUS_PAGES_MAX {
            // Rather than comparing them again for each image.
            slot.recreate_next_time();
        }
        Ok(())
    }
}

impl Drop for ImageDir {
    fn drop(&mut self) {
        if !self.keep {
            // Best effort: the check may have made it unreadable.
            let _ = fs::remove_dir_all(&self.path);
        }
    }
}

/// The pages that a file of the image shall have, asked for in order.
struct Pages<'a> {
    media: &'a Media<'a>,
    image: &'a Image,
    id: FileId,
    len: u64,
    next_unit: usize,
    page: Page,
}

impl Pages<'_> {
    /// `None` stands for a page of zeros that may be a hole.
    fn page(&mut self, index: usize) -> Option<&Page> {
        let start = (index * PAGE) as u64;
        let end = start + PAGE as u64;
        let units = &self.image.units[self.id.index()][self.next_unit..];
        let count = units.iter().take_while(|(offset, _)| *offset < end).count();
        self.next_unit += count;
        let content = &self.media.files[self.id.index()].current;
        if count == 0 && self.len >= end {
            return content.has_page(index).then(|| content.page(index));
        }
        if count == 0 && !content.has_page(index) {
            return None;
        }
        self.page.copy_from_slice(content.page(index));
        for (offset, position) in &units[..count] {
            let within = (offset - start) as usize;
            let unit = self.media.shape.unit;
            self.page[within..within + unit]
                .copy_from_slice(&self.image.bytes[*position..*position + unit]);
        }
        // What lies past the end must be zero, lest it shows when the check lengthens the file.
        let visible = self.len.saturating_sub(start).min(PAGE as u64) as usize;
        self.page[visible..].fill(0);
        Some(&self.page)
    }
}

/// A file of the image directory, mapped for as long as it is the same file.
struct Slot {
    file: File,
    inode: u64,
    /// Invariant: if not null, a shared mapping of `file` of `mapped_len` bytes that only this slot uses.
    mapping: *mut u8,
    mapped_len: usize,
}

impl Slot {
    fn new(path: &Path, mode: u32) -> io::Result<Slot> {
        let file = OpenOptions::new()
            .read(true)
            .write(true)
            .create_new(true)
            .mode(mode)
            .open(path)?;
        let inode = file.metadata()?.ino();
        Ok(Slot {
            file,
            inode,
            mapping: ptr::null_mut(),
            mapped_len: 0,
        })
    }

    fn resize(&mut self, old_len: u64, len: u64) -> io::Result<()> {
        if old_len != len {
            self.file.set_len(len)?;
        }
        let wanted = (len as usize).next_multiple_of(PAGE);
        if wanted > self.mapped_len {
            self.unmap();
            // SAFETY: a new mapping at an address of the kernel's choice.
            let mapping = unsafe {
                let protection = ProtFlags::READ | ProtFlags::WRITE;
                rustix::mm::mmap(
                    ptr::null_mut(),
                    wanted,
                    protection,
                    MapFlags::SHARED,
                    &self.file,
                    0,
                )?
            };
            (self.mapping, self.mapped_len) = (mapping.cast(), wanted);
        }
        Ok(())
    }

    fn unmap(&mut self) {
        if !self.mapping.is_null() {
            // SAFETY: the mapping is ours by the invariant, and no reference into it outlives a method.
            // It cannot fail for a whole mapping; if it did, address space would leak in a test.
            let _ = unsafe { rustix::mm::munmap(self.mapping.cast(), self.mapped_len) };
            (self.mapping, self.mapped_len) = (ptr::null_mut(), 0);
        }
    }

    /// For each page of the file, whether it may be something else than a hole.
    fn present_pages(&self, len: u64, in_memory: bool) -> io::Result<Vec<bool>> {
        let count = (len as usize).div_ceil(PAGE);
        let mut present = vec![false; count];
        if in_memory {
            // One call, where asking for each run of data costs more than all else. (A page on its way to the swap
            // would be missed if the check had written to it and the simulator never had.)
            let mut resident = vec![0u8; count];
            if count > 0 {
                // SAFETY: the mapping is at least `count` pages long, see `resize`, and `resident` has a byte for each.
                let result = unsafe {
                    libc::mincore(self.mapping.cast(), count * PAGE, resident.as_mut_ptr())
                };
                if result != 0 {
                    return Err(io::Error::last_os_error());
                }
            }
            for (present, resident) in present.iter_mut().zip(resident) {
                *present = resident & 1 != 0;
            }
            return Ok(present);
        }
        let mut offset = 0;
        while let Some((start, end)) = next_data(&self.file, offset, len)? {
            present[start as usize / PAGE..(end as usize).div_ceil(PAGE)].fill(true);
            offset = end;
        }
        Ok(present)
    }

    /// Makes the file a stranger, so that the next image replaces it.
    fn recreate_next_time(&mut self) {
        self.inode = 0;
    }

    fn write_page(&mut self, index: usize, wanted: &Page, present: bool) {
        // SAFETY: `resize` mapped the file up to its length, rounded up to pages, and `index` is a page of it. The
        // file is at least that long, so that the access does not fault: nobody else changes it meanwhile.
        let page = unsafe { &mut *self.mapping.add(index * PAGE).cast::<Page>() };
        if !present || page != wanted {
            page.copy_from_slice(wanted);
        }
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        self.unmap();
    }
}
