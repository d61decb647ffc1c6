//! Frames: how the callers of the function that a section is in go on.

use std::borrow::Cow;

use zerocopy::little_endian::U64;
use zerocopy::{FromBytes, IntoBytes};

use super::damage::{Damage, Flaw};
use super::layout::{FrameHead, LIVE_INS_MAX, SlotSalt};
use super::words::{Code, FrameLink, StackTop};

const HEAD_WORDS: usize = size_of::<FrameHead>() / 8;

/// How a caller goes on.
#[derive(Clone, Copy, Debug)]
pub struct Frame<'a> {
    /// The word of the stack at which the frame begins.
    pub index: u16,
    /// Where the caller goes on.
    pub code: Code,
    /// The stack as it is then: its own locals end at the first free word. The next frame outwards.
    pub stack: StackTop,
    live_ins: &'a [U64],
}

impl<'a> Frame<'a> {
    /// The values that are alive where the caller goes on.
    pub fn live_ins(&self) -> impl ExactSizeIterator<Item = u64> + 'a {
        self.live_ins.iter().map(|word| word.get())
    }
}

/// The stack of a slot.
#[derive(Clone, Copy, Debug)]
pub(super) struct Stack<'a> {
    pub(super) slot: u32,
    pub(super) salt: SlotSalt,
    pub(super) words: &'a [U64],
}

/// Why there is no such frame.
enum NoFrame {
    /// It is another one, or not whole.
    Torn,
    Damage(Damage),
}

impl<'a> Stack<'a> {
    /// Refuses what no record and no frame says of the stack.
    pub(super) fn check(&self, top: StackTop) -> Result<(), &'static str> {
        let free = usize::from(top.free);
        let lies_below = |link: FrameLink| usize::from(link.index) + HEAD_WORDS <= free;
        if free > self.words.len() {
            return Err("a first free word in the stack");
        }
        match top.frame.is_none_or(lies_below) {
            true => Ok(()),
            false => Err("a frame below the first free word"),
        }
    }

    /// The frame that `link` names, which ends at word `end` or before.
    fn frame(&self, link: FrameLink, end: usize) -> Result<Frame<'a>, NoFrame> {
        let start = usize::from(link.index);
        let words = self.words.get(start..).unwrap_or_default();
        let (head, _) = FrameHead::ref_from_prefix(words.as_bytes()).map_err(|_| NoFrame::Torn)?;
        let size = HEAD_WORDS + usize::from(head.live_ins);
        let words = words.get(..size).ok_or(NoFrame::Torn)?;
        let checksum = self.salt.checksum(words.as_bytes());
        if checksum != link.checksum || checksum != head.checksum.get() {
            return Err(NoFrame::Torn);
        }
        let wrong = |field, word: usize, found: u64, expected: Cow<'static, str>| {
            NoFrame::Damage(Damage::Frame {
                slot: self.slot,
                field,
                word: start + word,
                found,
                expected,
            })
        };
        let word = |at: usize| words.get(at).map_or(0, |word| word.get());
        if head.zero != [0; 3] || usize::from(head.live_ins) > LIVE_INS_MAX {
            let expected = format!("up to {LIVE_INS_MAX}, then three bytes that are 0");
            return Err(wrong(
                "number of live-ins",
                0,
                word(0) >> 32,
                expected.into(),
            ));
        }
        if start + size > end {
            let expected = format!("a frame that ends at word {end} or before");
            return Err(wrong(
                "number of live-ins",
                0,
                word(0) >> 32,
                expected.into(),
            ));
        }
        let stack = StackTop::from_media(head.stack).ok_or("no checksum of no frame");
        let stack = stack.and_then(|top| self.check(top).map(|()| top));
        let stack = stack.and_then(|top| match top.frame {
            Some(link) if usize::from(link.index) + HEAD_WORDS > start => {
                Err("a frame below the one that names it")
            }
            _ => Ok(top),
        });
        let stack = stack.map_err(|expected| wrong("stack", 1, word(1), expected.into()))?;
        let code = Code::from_word(head.code.get());
        let code = code.ok_or_else(|| wrong("code", 2, 0, "a place to go on".into()))?;
        Ok(Frame {
            index: link.index,
            code,
            stack,
            live_ins: words.get(HEAD_WORDS..).unwrap_or_default(),
        })
    }

    /// The frames from the one on that a record names.
    pub(super) fn frames(self, top: StackTop) -> Frames<'a> {
        Frames {
            stack: self,
            next: top.frame,
            end: usize::from(top.free),
        }
    }
}

/// Frames from the innermost one outwards.
#[derive(Clone, Copy, Debug)]
pub struct Frames<'a> {
    stack: Stack<'a>,
    next: Option<FrameLink>,
    /// The next one ends at this word, or before.
    end: usize,
}

impl<'a> Frames<'a> {
    fn step(&mut self) -> Option<Result<Frame<'a>, NoFrame>> {
        let frame = self.stack.frame(self.next.take()?, self.end);
        if let Ok(frame) = &frame {
            self.next = frame.stack.frame;
            self.end = usize::from(frame.stack.free.min(frame.index));
        }
        Some(frame)
    }

    /// Whether all of them are there. It ends, because each lies below the one before.
    pub(super) fn check(mut self) -> Result<Result<(), Flaw>, Damage> {
        while let Some(link) = self.next {
            match self.step() {
                Some(Err(NoFrame::Torn)) => return Ok(Err(Flaw::Frame(link.index))),
                Some(Err(NoFrame::Damage(damage))) => return Err(damage),
                Some(Ok(_)) | None => {}
            }
        }
        Ok(Ok(()))
    }
}

impl<'a> Iterator for Frames<'a> {
    type Item = Frame<'a>;

    /// Only those of a record that counts are ever given out, and these were checked.
    fn next(&mut self) -> Option<Frame<'a>> {
        self.step()?.ok()
    }
}
