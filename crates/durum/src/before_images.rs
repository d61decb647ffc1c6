//! What a snapshot shows of a puddle while its program goes on: what the media held when it was begun.
//!
//! Engines call these before they change that; until a snapshot shows the puddle, it is a load and a branch. Where
//! programs work in the media, that is before they store; elsewhere before a commit, or what follows it, changes home
//! or the back copy.

use std::sync::atomic::{AtomicU64, Ordering};

use durum_persist::line::LINE;
use durum_persist::{Site, record as recorder};

use crate::error::Result;
use crate::fault::guarded;
use crate::kept_lines::Words;
use crate::mapping::Mapping;

/// Bytes read of a mapping at a time, between two looks at whether a page has failed.
const PART: usize = 1 << 20;

/// A program is about to store to a range of a puddle, which it may do in place.
#[inline(always)]
pub(crate) fn before_store(puddle: &Mapping, address: usize, len: usize, site: Site) {
    if puddle.kept_lines.is_on() && puddle.works_in_place() {
        keep(puddle, address - puddle.address, len, site);
    }
}

/// Home, or the back copy, of a range of a program is about to change, where it is mapped.
#[inline(always)]
pub(crate) fn before_change(puddle: &Mapping, address: usize, len: usize, site: Site) {
    if puddle.kept_lines.is_on() {
        keep(puddle, address - puddle.address, len, site);
    }
}

/// A range of a puddle's file is about to be written (`file` domain).
#[inline(always)]
pub(crate) fn before_write(puddle: &Mapping, offset: u64, len: usize, site: Site) {
    if puddle.kept_lines.is_on() {
        let base = file_base(puddle);
        let end = (offset + len as u64).saturating_sub(base);
        let start = offset.saturating_sub(base);
        keep(puddle, start as usize, (end - start) as usize, site);
    }
}

/// Where in the file the copy begins that a snapshot shows.
fn file_base(puddle: &Mapping) -> u64 {
    match puddle.back_offset() {
        0 => 0,
        _ => puddle.size as u64,
    }
}

/// What a program's address is away from what a snapshot shows, where that is mapped.
fn distance(puddle: &Mapping) -> usize {
    // There is one of them at most.
    puddle.home_offset() + puddle.back_offset()
}

/// Keeps the lines of a range. A crash test leaves `site` out.
#[cold]
#[inline(never)]
fn keep(puddle: &Mapping, offset: usize, len: usize, site: Site) {
    if len == 0 || recorder::leaves_out(site) {
        return;
    }
    let lines = offset / LINE..(offset + len).div_ceil(LINE);
    let count = puddle.size / LINE;
    puddle.kept_lines.keep(lines, count, |number| {
        let mut words = [0; LINE / 8];
        // A page that cannot be read is zero, and its pool poisoned: no snapshot is made of that.
        let _ = match puddle.private {
            true => read_line_of_file(puddle, number, &mut words),
            false => {
                let start = puddle.address + distance(puddle) + number * LINE;
                guarded(|| read_words(start, &mut words));
                Ok(())
            }
        };
        words
    });
}

fn read_line_of_file(puddle: &Mapping, number: usize, words: &mut Words) -> Result<()> {
    let mut bytes = [0; LINE];
    puddle.read_file(&mut bytes, file_base(puddle) + (number * LINE) as u64)?;
    for (word, bytes) in words.iter_mut().zip(bytes.as_chunks::<8>().0) {
        *word = u64::from_ne_bytes(*bytes);
    }
    Ok(())
}

/// Reads words that others may be storing to.
fn read_words(start: usize, words: &mut [u64]) {
    for (at, word) in words.iter_mut().enumerate() {
        // SAFETY: an aligned word of a mapped puddle; whoever changes it meanwhile stores whole words, or its line was
        // kept.
        *word =
            unsafe { AtomicU64::from_ptr((start + at * 8) as *mut u64) }.load(Ordering::Relaxed);
    }
}

/// Fills `bytes`, which are as long as the puddle, with what it held when the snapshot was begun that shows it.
///
/// # Errors
/// Those of reading it: its pool is poisoned.
pub(crate) fn read(puddle: &Mapping, bytes: &mut [u8]) -> Result<()> {
    match puddle.private {
        true => puddle.read_file(bytes, file_base(puddle))?,
        false => read_mapped(puddle, bytes)?,
    }
    puddle.kept_lines.put_over(bytes);
    puddle.check_failed()
}

fn read_mapped(puddle: &Mapping, bytes: &mut [u8]) -> Result<()> {
    let start = puddle.address + distance(puddle);
    let mut words = [0; 512];
    for (part, bytes) in bytes.chunks_mut(PART).enumerate() {
        guarded(|| {
            for (at, bytes) in bytes.chunks_mut(size_of_val(&words)).enumerate() {
                let from = start + part * PART + at * size_of_val(&words);
                let words = &mut words[..bytes.len() / 8];
                read_words(from, words);
                for (place, word) in bytes.as_chunks_mut::<8>().0.iter_mut().zip(words) {
                    *place = word.to_ne_bytes();
                }
            }
        });
        puddle.check_failed()?;
    }
    Ok(())
}
