//! A thread's stack that lasts: locals that have addresses, and frames that say how callers go on.

use std::ptr;

use durum_format::section::{
    Code, FRAME_HEAD_WORDS, FrameLink, FrameWriter, SlotSalt, StackTop, Written,
};

use crate::code::Region;
use crate::fatal::fatal;
use crate::lines::Lines;
use crate::program;
use crate::sites::STACK_WRITE;

/// Each part begins with a line: what writes back one thread's lines writes back no other's, and no other part's.
const PART: usize = 64;
/// So far from what it is used for a pointer may lie.
const BESIDE: usize = 4096;

/// Addresses of a stack that are not in use, below others that are.
#[derive(Clone, Copy, Debug)]
struct Gap {
    start: usize,
    end: usize,
}

/// Bytes of a frame with so many live-ins.
fn frame_size(words: usize) -> usize {
    ((FRAME_HEAD_WORDS + words) * 8).next_multiple_of(PART)
}

/// Makes the live-ins of a region what another run can go on from.
pub(crate) fn make_lasting(live_ins: &mut [u64], region: &Region, early: &Stack) {
    if region.needs_locals() && program::has_pointer(region, live_ins, |word| early.holds(word)) {
        fatal!(
            "a section uses locals of a function that was entered before the heap was open, so they do not last; call nv_open before that function"
        );
    }
    program::make_relative(region, live_ins);
}

/// Addresses of a stack: that of a slot, or, while no heap is open, memory that does not last.
#[derive(Debug, Default)]
pub(crate) struct Stack {
    base: usize,
    end: usize,
    /// The first byte that is free.
    top: usize,
    /// What lies below is durable as it is, but for what was announced.
    durable: usize,
    /// Above it is more than frames and what was announced.
    is_unannounced: bool,
    /// What the last record needs ends there.
    recorded: usize,
    /// What lies between parts that are in use, from the lowest on; and what did when the last record was made.
    gaps: Vec<Gap>,
    recorded_gaps: Vec<Gap>,
    /// Frames from the outermost one on.
    frames: Vec<FrameLink>,
    /// The outermost one whose live-ins lead to locals; more than there are, where none does.
    first_with_locals: usize,
}

impl Stack {
    /// An empty stack of `size` bytes at `base`.
    pub(crate) fn new(base: usize, size: usize) -> Self {
        Self {
            base,
            end: base + size,
            top: base,
            durable: base,
            is_unannounced: false,
            recorded: base,
            gaps: Vec::new(),
            recorded_gaps: Vec::new(),
            frames: Vec::new(),
            first_with_locals: usize::MAX,
        }
    }

    /// A stack as it was recorded: all of it is durable. With each frame, from the outermost one on, comes the first
    /// word behind what lies below.
    pub(crate) fn recorded(
        base: usize,
        size: usize,
        free: u16,
        frames: &[(FrameLink, u16)],
    ) -> Self {
        let at = |index: u16| base + usize::from(index) * 8;
        let gaps = frames.iter().map(|(link, free)| Gap {
            start: at(*free),
            end: at(link.index),
        });
        let gaps: Vec<_> = gaps.filter(|gap| gap.start < gap.end).collect();
        Self {
            top: at(free),
            durable: at(free),
            recorded: at(free),
            recorded_gaps: gaps.clone(),
            gaps,
            frames: frames.iter().map(|(link, _)| *link).collect(),
            first_with_locals: 0,
            ..Self::new(base, size)
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.top == self.base
    }

    /// Whether an address is one of the stack's.
    pub(crate) fn holds(&self, address: usize) -> bool {
        (self.base..self.end).contains(&address)
    }

    /// Whether a caller in a section goes on by it.
    pub(crate) fn has_frames(&self) -> bool {
        !self.frames.is_empty()
    }

    /// How a record or a frame names what is in use. Nothing where nothing is.
    pub(crate) fn in_use(&self) -> Option<StackTop> {
        (!self.is_empty()).then(|| self.named())
    }

    fn named(&self) -> StackTop {
        StackTop {
            free: ((self.top - self.base) / 8) as u16,
            frame: self.frames.last().copied(),
        }
    }

    /// What was written outside of sections is not durable.
    pub(crate) fn begin_section(&mut self) {
        self.durable = self.base;
        self.is_unannounced = !self.is_empty();
    }

    /// Something is written that is no frame and that nobody announces.
    pub(crate) fn note_unannounced(&mut self) {
        self.is_unannounced = true;
    }

    /// Whether a record with these live-ins may be whole, and what it leads to is not: frames have checksums, and so
    /// has what is announced.
    #[inline]
    pub(crate) fn needs_fence(&self, region: &Region, live_ins: &[u64]) -> bool {
        self.is_unannounced
            && (self.first_with_locals < self.frames.len() || self.has_locals(region, live_ins))
    }

    /// Whether live-ins lead to locals, those of callers, too.
    fn has_locals(&self, region: &Region, live_ins: &[u64]) -> bool {
        // A pointer may lie beside what it is used for.
        let near = self.base.saturating_sub(BESIDE) as u64..(self.end + BESIDE) as u64;
        region.needs_locals() || live_ins.iter().any(|word| near.contains(word))
    }

    /// Takes a part of `size` bytes, where nothing lies that the last record needs.
    pub(crate) fn take(&mut self, size: usize) -> usize {
        let size = size.next_multiple_of(PART);
        let place = self.free_place(size);
        if size > self.end - place {
            let room = self.end - self.base;
            fatal!(
                "the stack that lasts is full: its {room} bytes hold locals that have addresses, and how callers in sections go on; call less deeply there, or keep large arrays elsewhere"
            );
        }
        if place > self.top {
            self.gaps.push(Gap {
                start: self.top,
                end: place,
            });
        }
        self.durable = self.durable.min(place);
        self.top = place + size;
        place
    }

    fn free_place(&self, size: usize) -> usize {
        let end = self.top + size;
        let is_free = |gap: &Gap| gap.start <= self.top && end <= gap.end;
        match self.is_needed_above() && !self.recorded_gaps.iter().any(is_free) {
            true => self.recorded,
            false => self.top,
        }
    }

    /// Gives back the part at `place`, and all above.
    pub(crate) fn give_back(&mut self, place: usize) {
        if !(self.base..=self.top).contains(&place) {
            fatal!("{place:#x} is no part of the stack that lasts");
        }
        self.top = place;
        while let Some(gap) = self.gaps.pop_if(|gap| gap.end >= self.top) {
            self.top = self.top.min(gap.start);
        }
    }

    /// Makes a frame, which is the innermost one. Gives its place. `early` is the thread's stack that does not last.
    ///
    /// # Safety
    /// As many words as the region has.
    pub(crate) unsafe fn push_frame(
        &mut self,
        region: &Region,
        words: *const u64,
        salt: &SlotSalt,
        early: &Stack,
    ) -> usize {
        let count = usize::from(region.words);
        let below = StackTop {
            free: ((self.top - self.base) / 8) as u16,
            frame: self.frames.last().copied(),
        };
        let place = self.take(frame_size(count));
        let Some(code) = Code::from_word(region.code) else {
            fatal!("a region has no code");
        };
        // SAFETY: was just taken, and only this thread knows it; the words are elsewhere, as the caller promises.
        let bytes = unsafe {
            let start: *mut u64 = ptr::with_exposed_provenance_mut(place);
            ptr::copy_nonoverlapping(words, start.add(FRAME_HEAD_WORDS), count);
            std::slice::from_raw_parts_mut(start, FRAME_HEAD_WORDS + count)
        };
        let live_ins = bytes.get_mut(FRAME_HEAD_WORDS..).unwrap_or_default();
        let has_locals = self.has_locals(region, live_ins);
        make_lasting(live_ins, region, early);
        let frame = FrameWriter::new(bytes, code, below).live_ins_in_place(count);
        let Some(Written { checksum, .. }) = frame.finish(salt) else {
            fatal!("{code}: {count} words of live-ins are too many for a frame");
        };
        if has_locals {
            self.first_with_locals = self.first_with_locals.min(self.frames.len());
        }
        self.frames.push(FrameLink {
            index: ((place - self.base) / 8) as u16,
            checksum,
        });
        place
    }

    /// The innermost frame, which is at `place`, is not any more.
    pub(crate) fn end_call(&mut self, place: usize) {
        match self.take_frame() {
            Some(link) if self.base + usize::from(link.index) * 8 == place => self.give_back(place),
            _ => fatal!("the frame of a call is not the innermost one"),
        }
    }

    fn take_frame(&mut self) -> Option<FrameLink> {
        let link = self.frames.pop();
        if self.first_with_locals == self.frames.len() {
            self.first_with_locals = usize::MAX;
        }
        link
    }

    /// Takes the innermost frame off, and with it what lies above.
    pub(crate) fn pop_frame(&mut self) -> Option<FrameLink> {
        let link = self.take_frame()?;
        self.give_back(self.base + usize::from(link.index) * 8);
        Some(link)
    }

    fn is_needed_above(&self) -> bool {
        self.recorded > self.top
    }

    /// Whether there is room for a call above what the last record needs. Where calls return and others are made, in
    /// loops of calls, each may lie above the one before.
    pub(crate) fn has_room(&self) -> bool {
        !self.is_needed_above() || self.recorded - self.base <= (self.end - self.base) / 2
    }

    /// Writes back what is not durable yet, if the record behind that leads there.
    pub(crate) fn write_back(&mut self, is_needed: bool, lines: &mut Lines) {
        if !is_needed && self.frames.is_empty() {
            return;
        }
        if self.durable < self.top {
            // SAFETY: the stack's memory, which stays mapped as long as the thread has it.
            // ORDER: durable with the caller's fence, before the record that leads there; else a crash finds that and
            // other locals.
            unsafe { lines.write_back(self.durable, self.top - self.durable, STACK_WRITE) };
        }
        self.durable = self.top;
        self.is_unannounced = false;
    }

    /// A record that needs what is in use is durable.
    pub(crate) fn note_recorded(&mut self) {
        self.recorded = self.top;
        self.recorded_gaps.clone_from(&self.gaps);
    }

    /// The last record needs nothing.
    pub(crate) fn note_idle(&mut self) {
        self.recorded = self.base;
        self.recorded_gaps.clear();
    }
}

#[cfg(test)]
#[path = "stack_tests.rs"]
mod tests;
