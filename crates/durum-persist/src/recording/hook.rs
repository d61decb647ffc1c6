//! The cold halves of the operations: what they do while a recorder is attached or a medium is emulated.
//!
//! One lock orders everything: an operation happens and is recorded under it, so that the order of the
//! events is the order in which memory and files changed.

use std::io;
use std::path::Path;
use std::sync::atomic::Ordering::{AcqRel, Release};
use std::sync::{Mutex, MutexGuard, PoisonError};

use super::active::Active;
use super::region::{Region, Regions};
use super::{RecorderOptions, Trace};
use crate::{Site, delay, inject, processor, state};

pub(crate) use super::watcher::{Name, Watcher};

struct Global {
    /// All announced mappings of the process, recorded or not.
    regions: Regions,
    active: Option<Box<dyn Watcher>>,
}

static GLOBAL: Mutex<Global> = Mutex::new(Global {
    regions: Regions::new(),
    active: None,
});

impl Global {
    /// Tells the recorder, if one is attached.
    fn tell<R>(&mut self, what: impl FnOnce(&mut dyn Watcher) -> R) -> Option<R> {
        let active = self.active.as_deref_mut()?;
        Some(what(active))
    }
}

fn lock() -> MutexGuard<'static, Global> {
    // A panic in a recording thread leaves at worst an incomplete trace, which its test will not use.
    GLOBAL.lock().unwrap_or_else(PoisonError::into_inner)
}

pub(crate) fn start(root: &Path, options: RecorderOptions) -> io::Result<()> {
    let mut global = lock();
    let active = Active::new(root, options, &global.regions)?;
    global.active = Some(Box::new(active));
    state::set(state::RECORDING, true);
    Ok(())
}

pub(crate) fn stop() -> io::Result<Trace> {
    let mut global = lock();
    state::set(state::RECORDING, false);
    match global.active.take() {
        Some(active) => active.finish(),
        None => Ok(Trace::default()),
    }
}

pub(crate) fn abandon() {
    state::set(state::RECORDING, false);
    lock().active = None;
}

#[cold]
pub(crate) fn api(name: &'static str) {
    lock().tell(|active| active.mark_api(name));
}

#[cold]
pub(crate) fn note(name: &'static str, value: u64) {
    lock().tell(|active| active.mark_note(name, value));
}

#[cold]
pub(crate) fn leaves_out(step: Site) -> bool {
    let answer = lock().tell(|active| active.leaves_out(step));
    answer.unwrap_or(false)
}

#[cold]
pub(crate) fn join_thread() {
    lock().tell(|active| active.join());
}

#[cold]
pub(crate) fn mapped(region: Region) {
    let mut global = lock();
    global.tell(|active| active.mapped(region));
    global.regions.insert(region);
}

#[cold]
pub(crate) fn unmapped(addr: usize, len: usize) {
    let mut global = lock();
    global.tell(|active| active.unmapped(addr, len));
    global.regions.remove(addr, addr + len);
}

/// # Safety
/// As for [`line::store_u64`](crate::line::store_u64).
#[cold]
pub(crate) unsafe fn store_u64(target: *mut u64, value: u64) {
    let mut global = lock();
    before_store(&mut global, target as usize, 8);
    // SAFETY: aligned, valid, and shared by atomic operations only: `line::store_u64` demands it.
    unsafe { processor::atomic(target) }.store(value, Release);
    stored(&mut global, target as usize, &value.to_ne_bytes());
}

/// # Safety
/// As for [`line::fetch_or_u64`](crate::line::fetch_or_u64).
#[cold]
pub(crate) unsafe fn fetch_or_u64(target: *mut u64, mask: u64) -> u64 {
    let mut global = lock();
    before_store(&mut global, target as usize, 8);
    // SAFETY: aligned, valid, and shared by atomic operations only: `line::store_u64` demands it.
    let before = unsafe { processor::atomic(target) }.fetch_or(mask, AcqRel);
    stored(&mut global, target as usize, &(before | mask).to_ne_bytes());
    before
}

/// # Safety
/// As for [`line::fetch_and_u64`](crate::line::fetch_and_u64).
#[cold]
pub(crate) unsafe fn fetch_and_u64(target: *mut u64, mask: u64) -> u64 {
    let mut global = lock();
    before_store(&mut global, target as usize, 8);
    // SAFETY: aligned, valid, and shared by atomic operations only: `line::store_u64` demands it.
    let before = unsafe { processor::atomic(target) }.fetch_and(mask, AcqRel);
    stored(&mut global, target as usize, &(before & mask).to_ne_bytes());
    before
}

/// # Safety
/// As for [`line::copy`](crate::line::copy).
#[cold]
pub(crate) unsafe fn copy(target: *mut u8, source: *const u8, len: usize) {
    let mut global = lock();
    before_store(&mut global, target as usize, len);
    // SAFETY: valid for reads, and nobody writes to it meanwhile: `line::copy` demands it.
    let bytes = unsafe { std::slice::from_raw_parts(source, len) };
    // SAFETY: both ranges are valid and disjoint: `line::copy` demands it.
    unsafe { target.copy_from_nonoverlapping(source, len) };
    stored(&mut global, target as usize, bytes);
}

/// # Safety
/// As for [`line::zero`](crate::line::zero).
#[cold]
pub(crate) unsafe fn zero(target: *mut u8, len: usize) {
    let mut global = lock();
    before_store(&mut global, target as usize, len);
    // SAFETY: valid for writes of `len` bytes, which nobody else accesses: `line::zero` demands it.
    unsafe { target.write_bytes(0, len) };
    global.tell(|active| active.zeroed(target as usize, len));
}

/// # Safety
/// As for [`line::copy`](crate::line::copy).
#[cold]
pub(crate) unsafe fn copy_streaming(target: *mut u8, source: *const u8, len: usize, site: Site) {
    let (start, middle, end) = processor::split_at_lines(target as usize, len);
    let mut global = lock();
    before_store(&mut global, target as usize, len);
    // SAFETY: both ranges are valid and disjoint, and nobody writes to either: `line::copy` demands it.
    unsafe { processor::copy_streaming(target, source, len) };
    global.tell(|active| {
        // SAFETY: valid for reads, and nobody writes to it meanwhile: `line::copy` demands it.
        let bytes = unsafe { std::slice::from_raw_parts(source, len) };
        active.streamed(target as usize, bytes, site);
    });
    drop(global);
    let lines = middle / processor::LINE + usize::from(start > 0) + usize::from(end > 0);
    emulate(|| delay::write_back(lines as u64));
}

/// # Safety
/// As for [`line::stream_words`](crate::line::stream_words).
#[cold]
pub(crate) unsafe fn stream_words(target: *mut u64, source: *const u64, len: usize, site: Site) {
    let mut words = vec![0; len.next_multiple_of(processor::LINE / 8)];
    // SAFETY: valid for reads, and nobody writes to it meanwhile: `line::stream_words` demands it, and that the target
    // is valid for as many.
    unsafe {
        words.as_mut_ptr().copy_from_nonoverlapping(source, len);
        copy_streaming(target.cast(), words.as_ptr().cast(), words.len() * 8, site);
    }
}

/// # Safety
/// As for [`line::write_back`](crate::line::write_back), and `len > 0`.
#[cold]
pub(crate) unsafe fn write_back(addr: *const u8, len: usize, site: Site) {
    let instruction = processor::instruction();
    if super::active() {
        lock().tell(|active| {
            active.look_for_stores(addr as usize, len);
            active.written_back(addr as usize, len, site);
        });
    }
    // SAFETY: the range is mapped and not empty: this function demands it.
    unsafe { processor::write_back(instruction, addr, len) };
    emulate(|| delay::write_back(processor::lines_touched(addr as usize, len) as u64));
}

#[cold]
pub(crate) fn fence(site: Site) {
    inject::wait_at(site);
    processor::fence();
    if super::active() {
        lock().tell(|active| active.fenced(site));
    }
    emulate(delay::fence);
}

/// Performs a file operation and has its success recorded.
pub(crate) fn file<T>(
    perform: impl FnOnce() -> io::Result<T>,
    record: impl FnOnce(&mut dyn Watcher, &T),
) -> io::Result<T> {
    file_or_error(perform, |active, result| {
        if let Ok(value) = result {
            record(active, value);
        }
    })
}

/// Performs a file operation and has its outcome recorded.
pub(crate) fn file_or_error<T>(
    perform: impl FnOnce() -> io::Result<T>,
    record: impl FnOnce(&mut dyn Watcher, &io::Result<T>),
) -> io::Result<T> {
    if !super::active() {
        return perform();
    }
    let mut global = lock();
    let result = perform();
    global.tell(|active| record(active, &result));
    result
}

fn before_store(global: &mut Global, addr: usize, len: usize) {
    global.tell(|active| active.look_for_stores(addr, len));
}

fn stored(global: &mut Global, addr: usize, bytes: &[u8]) {
    global.tell(|active| active.stored(addr, bytes));
}

fn emulate(wait: impl FnOnce()) {
    if state::load() & state::DELAYED != 0 {
        wait();
    }
}
