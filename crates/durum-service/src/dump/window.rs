//! The bytes of a puddle, read in large parts.

use durum_format::extent::HeapBytes;

use crate::error::Result;
use crate::puddle_view::PuddleView;

/// Bytes that are read at once.
const PART: u64 = 1 << 20;

/// A part of a puddle that was read.
pub(crate) struct Window<'v> {
    view: &'v PuddleView,
    start: u64,
    bytes: Vec<u8>,
}

impl<'v> Window<'v> {
    pub(crate) fn of(view: &'v PuddleView) -> Self {
        Self {
            view,
            start: 0,
            bytes: Vec::new(),
        }
    }

    /// `length` bytes from `offset` on, in the puddle.
    pub(crate) fn bytes(&mut self, offset: u64, length: u64) -> Result<&[u8]> {
        let has = |window: &Self| {
            let from = offset.checked_sub(window.start)?;
            let end = from.checked_add(length)?;
            (end <= window.bytes.len() as u64).then_some(from as usize..end as usize)
        };
        if has(self).is_none() {
            let room = self.view.header().size.saturating_sub(offset);
            let wanted = length.max(PART.min(room));
            if wanted > self.bytes.len() as u64 || wanted < self.bytes.len() as u64 / 2 {
                self.bytes = self.view.bytes(offset, wanted)?;
            } else {
                self.bytes.truncate(wanted as usize);
                self.view.read(offset, &mut self.bytes)?;
            }
            self.start = offset;
        }
        let range = has(self).unwrap_or_default();
        Ok(self.bytes.get(range).unwrap_or_default())
    }
}
