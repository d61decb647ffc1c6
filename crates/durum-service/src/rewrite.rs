//! A puddle that has moved, or that may point to one that has: its pointers are made to lead to where things are now,
//! and its header says where it is (Puddles, EuroSys'24, §4.2). `docs/internals/relocation.md` tells how a store moves.
//!
//! What is written depends on nothing but what was there, and writing it again changes nothing: no puddle lies where
//! another one was, so an address that was translated is none that is to be. A crash leaves some pointers with the one
//! address and some with the other; whoever comes next begins again.

use std::collections::BTreeMap;

use durum_format::extent::{self, Extent, Object, UNTYPED};
use durum_format::puddle::{self, PuddleHeader};
use durum_format::types::{Meanings, Registry as Types};
use durum_persist::Site;
use durum_persist::file::MediaFile;

use crate::descriptors::register;
use crate::error::{Error, Result};
use crate::reading::{self, HeapInFile};
use crate::registry::contents::AddressRange;
use crate::translate::Translator;

/// Bytes that are read and written at a time; more where one object has more. A puddle may have only a few objects, so
/// the first reads are of fewer.
const WINDOW_BYTES: u64 = 256 << 10;
const FIRST_WINDOW_BYTES: u64 = 8 << 10;
/// What is written is a multiple of this.
const PAGE: usize = 4096;

const REWRITTEN: Site = Site("rewritten puddle");

/// Where things were, and where they are now.
pub(crate) type Moves = BTreeMap<u64, AddressRange>;

/// Finds where addresses lead now.
struct Ways<'m> {
    moves: &'m Moves,
    /// What was found last, and where it was: most pointers lead to where others of the same puddle do.
    last: (u64, AddressRange),
}

impl<'m> Ways<'m> {
    fn new(moves: &'m Moves) -> Ways<'m> {
        let nothing = AddressRange {
            address: 0,
            size: 0,
        };
        Ways {
            moves,
            last: (0, nothing),
        }
    }

    /// Where an address leads now; `None` where it leads to where it always did.
    #[inline]
    fn translated(&mut self, address: u64) -> Option<u64> {
        let (from, to) = self.last;
        let offset = address.wrapping_sub(from);
        match offset < to.size {
            true => Some(to.address + offset),
            false => self.found(address),
        }
    }

    fn found(&mut self, address: u64) -> Option<u64> {
        let (from, to) = self.moves.range(..=address).next_back()?;
        let offset = address - from;
        // Of what was imported some may be where it was.
        if offset >= to.size || *from == to.address {
            return None;
        }
        self.last = (*from, *to);
        Some(to.address + offset)
    }
}

/// What is needed to rewrite puddles.
pub(crate) struct Rewriter<'r> {
    moves: &'r Moves,
    /// The text of a type.
    type_text: &'r dyn Fn(u64) -> Result<Option<String>>,
    /// The caller says that what has no known type holds no pointers.
    untyped_hold_no_pointers: bool,
    types: Types,
}

/// Objects whose pointers nobody knows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Unknown {
    /// How many.
    pub(crate) objects: u64,
    /// Their type, where it is one that is not registered; [`UNTYPED`] for plain bytes.
    pub(crate) type_id: u64,
}

impl Unknown {
    /// What they are, in words.
    pub(crate) fn words(&self) -> String {
        let objects = match self.objects {
            1 => "an object".to_owned(),
            count => format!("{count} objects"),
        };
        match self.type_id {
            UNTYPED => format!("{objects} without a type"),
            id => format!("{objects} of type {id:#018x} or others that are not registered"),
        }
    }
}

/// The objects of a puddle of which nobody knows where their pointers are. Reads what the heap says of its objects, and
/// not these.
///
/// # Errors
/// `Damaged`, `Io`.
pub(crate) fn unknown(
    file: &MediaFile,
    header: &PuddleHeader,
    is_registered: impl Fn(u64) -> bool,
) -> Result<Option<Unknown>> {
    let bytes = HeapInFile { file, start: 0 };
    let mut found = Unknown::default();
    for extent in extent::extents(&bytes, header) {
        let extent = extent.map_err(|error| Error::damaged_heap(file.path(), &error))?;
        let id = extent.type_id();
        let is_known = id != UNTYPED && is_registered(id);
        if !is_known && extent.allocated() > 0 {
            found.objects += extent.allocated();
            found.type_id = id;
        }
    }
    Ok((found.objects > 0).then_some(found))
}

impl<'r> Rewriter<'r> {
    pub(crate) fn new(
        moves: &'r Moves,
        type_text: &'r dyn Fn(u64) -> Result<Option<String>>,
        untyped_hold_no_pointers: bool,
    ) -> Rewriter<'r> {
        Rewriter {
            moves,
            type_text,
            untyped_hold_no_pointers,
            types: Types::new(),
        }
    }

    /// Whether a type is known, or becomes so now.
    fn knows(&mut self, id: u64) -> Result<bool> {
        if id == UNTYPED {
            return Ok(false);
        }
        if self.types.by_id(id).is_some() {
            return Ok(true);
        }
        let Some(text) = (self.type_text)(id)? else {
            return Ok(false);
        };
        register(&mut self.types, id, &text)?;
        Ok(true)
    }

    /// Rewrites a puddle whose header is to be `header`, of a pool in which ids have these meanings. All of it is
    /// durable on return.
    ///
    /// Nobody else may write to it meanwhile, nor read it.
    ///
    /// # Errors
    /// What keeps it from that: some pointers may have been rewritten.
    pub(crate) fn rewrite(
        &mut self,
        file: &MediaFile,
        header: &PuddleHeader,
        meanings: &Meanings,
    ) -> Result<(), Stopped> {
        let mut window = Window::new(file, header);
        let mut ways = Ways::new(self.moves);
        // No rewriting changes what the heap says of its objects.
        let bytes = HeapInFile { file, start: 0 };
        for extent in extent::extents(&bytes, header) {
            let extent = extent.map_err(|error| Error::damaged_heap(file.path(), &error))?;
            if extent.allocated() > 0 {
                let type_id = meanings.of(extent.type_id());
                self.rewrite_extent(&mut window, &mut ways, &extent, type_id)?;
            }
        }
        window.flush()?;
        file.write_all_at(&puddle::encode(header), 0)
            .map_err(|error| Error::io_at("writing a puddle header", file, 0, error))?;
        // ORDER: pointers and header are durable before the registry says that the puddle is not stale; else a crash
        // leaves pointers to where nothing is, and nobody who rewrites them.
        file.sync(REWRITTEN)
            .map_err(|error| Error::io("making a rewritten puddle durable", file.path(), error))
            .map_err(Stopped::Error)
    }

    fn rewrite_extent(
        &mut self,
        window: &mut Window<'_>,
        ways: &mut Ways<'_>,
        extent: &Extent,
        type_id: u64,
    ) -> Result<(), Stopped> {
        if !self.knows(type_id)? {
            return match self.untyped_hold_no_pointers {
                true => Ok(()),
                false => Err(Stopped::Unknown(Unknown {
                    objects: extent.allocated(),
                    type_id,
                })),
            };
        }
        let descriptor = self.types.by_id(type_id);
        let Some(descriptor) = descriptor.filter(|descriptor| descriptor.has_pointers()) else {
            return Ok(());
        };
        let mut translator = Translator::new(descriptor);
        let path = window.file.path();
        // A crash may have left the new pointers in one copy only: then there is nothing to translate in that.
        let all_are_written = window.header.kind.copies() > 1;
        for object in extent.objects() {
            let (bytes, mut pages) = window.object(&object)?;
            translator.pointers(bytes, (path, object.offset), |at, address| {
                let translated = ways.translated(address);
                if translated.is_some() || all_are_written {
                    pages.have_changed(at);
                }
                translated
            })?;
        }
        Ok(())
    }
}

/// Why a puddle was not rewritten.
#[derive(Debug)]
pub(crate) enum Stopped {
    /// It has an object of unknown type.
    Unknown(Unknown),
    Error(Error),
}

impl From<Error> for Stopped {
    fn from(error: Error) -> Stopped {
        Stopped::Error(error)
    }
}

/// A part of a puddle that is changed in memory, page by page, and written back to each of its copies.
struct Window<'f> {
    file: &'f MediaFile,
    header: PuddleHeader,
    /// Where it begins in the puddle: a multiple of a page.
    start: u64,
    bytes: Vec<u8>,
    /// Whether each of its pages has changed.
    changed: Vec<bool>,
    /// How many bytes are read next.
    next_length: u64,
}

impl<'f> Window<'f> {
    fn new(file: &'f MediaFile, header: &PuddleHeader) -> Window<'f> {
        Window {
            file,
            header: *header,
            start: 0,
            bytes: Vec::new(),
            changed: Vec::new(),
            next_length: FIRST_WINDOW_BYTES,
        }
    }

    /// The bytes of an object, and its pages. Objects come in the order of their addresses.
    fn object(&mut self, object: &Object) -> Result<(&mut [u8], ObjectPages<'_>)> {
        let end = object.offset.saturating_add(object.size);
        if object.offset < self.start || end > self.start + self.bytes.len() as u64 {
            self.flush()?;
            self.start = object.offset - object.offset % PAGE as u64;
            let needed = end.next_multiple_of(PAGE as u64) - self.start;
            let length = needed
                .max(self.next_length)
                .min(self.header.size.saturating_sub(self.start));
            self.next_length = (4 * self.next_length).min(WINDOW_BYTES);
            self.bytes.clear();
            reading::lengthen(&mut self.bytes, self.file.path(), length)?;
            reading::exact(self.file, self.start, &mut self.bytes, "reading a puddle")?;
            self.changed.clear();
            self.changed.resize(self.bytes.len().div_ceil(PAGE), false);
        }
        let at = (object.offset - self.start) as usize;
        let bytes = self.bytes.get_mut(at..at + object.size as usize);
        let pages = ObjectPages {
            changed: &mut self.changed,
            at,
        };
        // The walk over the heap has refused one that reaches beyond it.
        Ok((bytes.unwrap_or_default(), pages))
    }

    /// Writes the pages that have changed.
    fn flush(&mut self) -> Result<()> {
        let mut page = 0;
        while let Some(first) = self.changed[page..].iter().position(|changed| *changed) {
            let first = page + first;
            let run = self.changed[first..].iter().take_while(|changed| **changed);
            page = first + run.count();
            self.changed[first..page].fill(false);
            let bytes = first * PAGE..(page * PAGE).min(self.bytes.len());
            self.write(self.start + bytes.start as u64, &self.bytes[bytes])?;
        }
        Ok(())
    }

    /// Both copies of a Twin pool are the same: what was main becomes both.
    fn write(&self, offset: u64, bytes: &[u8]) -> Result<()> {
        for copy in 0..self.header.kind.copies() {
            let at = copy * self.header.size + offset;
            self.file
                .write_all_at(bytes, at)
                .map_err(|error| Error::io_at("rewriting pointers", self.file, at, error))?;
        }
        Ok(())
    }
}

/// The pages of a window in which an object lies.
struct ObjectPages<'w> {
    changed: &'w mut [bool],
    /// Where in the window the object begins.
    at: usize,
}

impl ObjectPages<'_> {
    /// The pointer at that place of the object is another one now. It may lie across two pages.
    #[inline]
    fn have_changed(&mut self, offset: u64) {
        let first = self.at + offset as usize;
        for byte in [first, first + 7] {
            if let Some(page) = self.changed.get_mut(byte / PAGE) {
                *page = true;
            }
        }
    }
}
