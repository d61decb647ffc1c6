//! Contents of a file, held by pages that are shared until written.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::sync::Arc;

use rustix::fs::SeekFrom;
use rustix::io::Errno;

/// Bytes in a page.
pub(crate) const PAGE: usize = 4096;

pub(crate) type Page = [u8; PAGE];

const ZERO_PAGE: Page = [0; PAGE];

/// The bytes of a file. Absent pages are zero. The length lies outside, since a crash can separate the two;
/// bytes past the file's end are zero.
#[derive(Clone, Default)]
pub(crate) struct Content {
    pages: Vec<Option<Arc<Page>>>,
}

impl Content {
    /// Reads a file, skipping its holes.
    pub(crate) fn read(file: &File, len: u64) -> io::Result<Content> {
        let mut content = Content::default();
        let mut offset = 0;
        while let Some((start, end)) = next_data(file, offset, len)? {
            let mut buffer = vec![0; (end - start) as usize];
            file.read_exact_at(&mut buffer, start)?;
            content.write(start, &buffer);
            offset = end;
        }
        Ok(content)
    }

    pub(crate) fn page(&self, index: usize) -> &Page {
        match self.pages.get(index) {
            Some(Some(page)) => page,
            _ => &ZERO_PAGE,
        }
    }

    /// One more than the index of the last page that may be other than zero.
    pub(crate) fn page_count(&self) -> usize {
        self.pages.len()
    }

    pub(crate) fn has_page(&self, index: usize) -> bool {
        matches!(self.pages.get(index), Some(Some(_)))
    }

    pub(crate) fn copy_to(&self, offset: u64, bytes: &mut [u8]) {
        for (position, page, start, len) in parts(offset, bytes.len()) {
            bytes[position..position + len].copy_from_slice(&self.page(page)[start..start + len]);
        }
    }

    pub(crate) fn write(&mut self, offset: u64, bytes: &[u8]) {
        for (position, page, start, len) in parts(offset, bytes.len()) {
            let part = &bytes[position..position + len];
            if !self.has_page(page) {
                if part.iter().all(|byte| *byte == 0) {
                    continue;
                }
                if self.pages.len() <= page {
                    self.pages.resize(page + 1, None);
                }
                self.pages[page] = Some(Arc::new(ZERO_PAGE));
            }
            if let Some(shared) = &mut self.pages[page] {
                Arc::make_mut(shared)[start..start + len].copy_from_slice(part);
            }
        }
    }

    pub(crate) fn zero(&mut self, offset: u64, len: usize) {
        for (_, page, start, part) in parts(offset, len) {
            if let Some(Some(shared)) = self.pages.get_mut(page) {
                Arc::make_mut(shared)[start..start + part].fill(0);
            }
        }
    }

    /// Makes everything from `len` on zero.
    pub(crate) fn cut(&mut self, len: u64) {
        let page = (len / PAGE as u64) as usize;
        let start = len as usize % PAGE;
        if let Some(Some(shared)) = self.pages.get_mut(page) {
            Arc::make_mut(shared)[start..].fill(0);
        }
        self.pages.truncate(page + 1);
    }
}

/// The next run of bytes at or after `offset` that is not a hole, up to `len`.
pub(crate) fn next_data(file: &File, offset: u64, len: u64) -> io::Result<Option<(u64, u64)>> {
    if offset >= len {
        return Ok(None);
    }
    let start = match rustix::fs::seek(file, SeekFrom::Data(offset)) {
        Err(Errno::NXIO) => return Ok(None),
        // A file system that knows no holes.
        Err(Errno::INVAL | Errno::OPNOTSUPP) => return Ok(Some((offset, len))),
        result => result?,
    };
    let end = rustix::fs::seek(file, SeekFrom::Hole(start))?;
    Ok((start < len).then_some((start, end.min(len))))
}

/// Splits a range at pages: position in the range, page, start in the page, length.
fn parts(offset: u64, len: usize) -> impl Iterator<Item = (usize, usize, usize, usize)> {
    let mut position = 0;
    std::iter::from_fn(move || {
        if position == len {
            return None;
        }
        let at = offset + position as u64;
        let start = at as usize % PAGE;
        let part = (PAGE - start).min(len - position);
        let item = (position, (at / PAGE as u64) as usize, start, part);
        position += part;
        Some(item)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_written_over_a_page_boundary_read_back_and_are_cut() {
        let mut content = Content::default();
        content.write(4090, b"0123456789");
        let mut bytes = [0; 12];
        content.copy_to(4089, &mut bytes);
        assert_eq!(&bytes, b"\x000123456789\x00");
        content.cut(4097);
        content.copy_to(4089, &mut bytes);
        assert_eq!(&bytes, b"\x000123456\0\0\0\0");
        assert_eq!(content.page_count(), 2);
    }

    #[test]
    fn a_copy_keeps_its_bytes_when_the_original_is_written() {
        let mut content = Content::default();
        content.write(0, &[1; 8]);
        let copy = content.clone();
        content.write(0, &[2; 8]);
        assert_eq!(
            (&copy.page(0)[..8], &content.page(0)[..8]),
            (&[1; 8][..], &[2; 8][..])
        );
    }

    #[test]
    fn holes_of_a_file_are_not_read() {
        let file = tempfile::tempfile_in("/dev/shm").unwrap();
        file.set_len(1 << 30).unwrap();
        file.write_all_at(b"far", 1 << 29).unwrap();
        let content = Content::read(&file, 1 << 30).unwrap();
        let mut bytes = [0; 3];
        content.copy_to(1 << 29, &mut bytes);
        assert_eq!(&bytes, b"far");
        assert_eq!(
            (0..content.page_count())
                .filter(|page| content.has_page(*page))
                .count(),
            1
        );
    }
}
