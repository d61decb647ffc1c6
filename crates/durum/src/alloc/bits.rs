//! Bits on the media that say what is allocated, as a commit changes them.

use std::ptr::NonNull;

use durum_format::extent::slab::SLAB_BITMAP_WORDS_MAX;

use super::puddle::Puddle;

/// One word of a bitmap on the media, and the bits of it that change.
#[derive(Clone, Copy, Debug)]
pub(crate) struct BitChange {
    pub(crate) puddle: NonNull<Puddle>,
    pub(crate) word: usize,
    pub(crate) mask: u64,
    pub(crate) set: bool,
}

/// The whole bitmap of a slab that this transaction publishes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Bitmap {
    pub(crate) puddle: NonNull<Puddle>,
    pub(crate) address: usize,
    pub(crate) words: [u64; SLAB_BITMAP_WORDS_MAX],
    pub(crate) len: usize,
}
