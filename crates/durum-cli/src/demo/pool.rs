//! What the demo keeps in its pool: the text, how far each piece of it was counted, and the counts.

use std::path::Path;

use durum::{Engine, Pool, PoolOptions, Store, StoreOptions, describe};

use super::map::WordMap;
use super::text::{self, words};
use crate::failure::Failure;

/// The name of the pool.
pub(crate) const POOL: &str = "words";

/// Bytes of text in a piece: so that a piece takes 4 KiB.
const PIECE_BYTES: usize = 4096 - 32;

/// A piece of the text. One thread at a time counts it.
#[repr(C)]
pub(crate) struct Piece {
    /// The piece before this one.
    before: *mut Piece,
    /// Words of it that were counted, over all passes: changed by the transactions that change their counts.
    counted: u64,
    /// Words in it.
    words: u64,
    /// Bytes of `text` in use.
    len: u64,
    text: [u8; PIECE_BYTES],
}
describe!(Piece as "text_piece" { before, counted, words, len, text });

/// The root object. All zeros is the beginning.
#[repr(C)]
pub(crate) struct Root {
    /// Of the whole text; 0 until all of it is stored.
    checksum: u64,
    /// Pieces stored so far.
    piece_count: u64,
    last_piece: *mut Piece,
    map: WordMap,
}
describe!(Root as "word_counts" { checksum, piece_count, last_piece, map });

/// The opened pool of a demo.
pub(crate) struct DemoPool {
    pub(crate) inner: Pool,
    root: *mut Root,
}

/// A piece of the text, seen from a thread.
#[derive(Clone, Copy)]
pub(crate) struct PieceRef(*mut Piece);

// SAFETY: the pool stays open while threads have pieces, and `PieceRef::set_counted` tells who may change one.
unsafe impl Send for PieceRef {}
// SAFETY: a shared reference changes nothing but by `PieceRef::set_counted`, which tells who may.
unsafe impl Sync for PieceRef {}

impl DemoPool {
    /// Opens the store and its pool, or makes them. The text is not yet stored in a new one.
    pub(crate) fn open(path: &Path, engine: Option<Engine>) -> Result<(Store, Self), Failure> {
        let store = Store::open_or_create(path, StoreOptions::new())?;
        let mut options = PoolOptions::new();
        if let Some(engine) = engine {
            options = options.engine(engine);
        }
        let pool = store.open_or_create_pool(POOL, options)?;
        let root = pool.root::<Root>()?;
        Ok((store, Self { inner: pool, root }))
    }

    /// Opens what is there; `None` if the store has no such pool yet.
    pub(crate) fn open_existing(path: &Path) -> Result<Option<(Store, Self)>, Failure> {
        let store = Store::open(path, StoreOptions::new())?;
        let pool = match store.open_pool(POOL, PoolOptions::new()) {
            Err(durum::Error::Store(durum_service::Error::PoolMissing { .. })) => return Ok(None),
            pool => pool?,
        };
        let root = pool.root::<Root>()?;
        Ok(Some((store, Self { inner: pool, root })))
    }

    /// The map of counts.
    pub(crate) fn map(&self) -> *mut WordMap {
        // SAFETY: the root is mapped as long as the pool is open.
        unsafe { &raw mut (*self.root).map }
    }

    /// The checksum of the text; `None` if it is not stored completely.
    pub(crate) fn checksum(&self) -> Option<u64> {
        // SAFETY: the root is mapped as long as the pool is open; the field changes in `store_text` only, which needs
        // `&mut self`.
        let checksum = unsafe { (*self.root).checksum };
        (checksum != 0).then_some(checksum)
    }

    /// Stores the text, or what a process that was killed has not yet stored of it: a transaction for each piece.
    pub(crate) fn store_text(&mut self, whole: &[u8]) -> Result<(), Failure> {
        let root = self.root;
        // SAFETY: the root is mapped, and this is the only thread.
        let stored = unsafe { (*root).piece_count } as usize;
        for piece in text::pieces(whole, PIECE_BYTES).skip(stored) {
            self.inner.transaction(|tx| {
                let new = tx.alloc_zeroed::<Piece>()?;
                // SAFETY: `new` is fresh, the root is mapped, and this is the only thread. The root changes when the
                // transaction commits.
                unsafe {
                    (*new).before = (*root).last_piece;
                    (*new).words = words(piece).count() as u64;
                    (*new).len = piece.len() as u64;
                    (&mut (*new).text)[..piece.len()].copy_from_slice(piece);
                    tx.set(&raw mut (*root).last_piece, new)?;
                    tx.set(&raw mut (*root).piece_count, (*root).piece_count + 1)
                }
            })?;
        }
        if text::checksum(&self.text()) != text::checksum(whole) {
            return Err(text::other());
        }
        Ok(self.inner.transaction(|tx| {
            // SAFETY: the root is mapped, and this is the only thread.
            unsafe { tx.set(&raw mut (*root).checksum, text::checksum(whole)) }
        })?)
    }

    /// The pieces, in the order of the text.
    pub(crate) fn pieces(&self) -> Vec<PieceRef> {
        let mut pieces = Vec::new();
        // SAFETY: the root is mapped; the list changes in `store_text` only.
        let mut piece = unsafe { (*self.root).last_piece };
        while !piece.is_null() {
            pieces.push(PieceRef(piece));
            // SAFETY: pieces are never freed.
            piece = unsafe { (*piece).before };
        }
        pieces.reverse();
        pieces
    }

    /// The text as it is stored.
    pub(crate) fn text(&self) -> Vec<u8> {
        self.pieces()
            .iter()
            .flat_map(|piece| piece.text().iter().copied())
            .collect()
    }
}

impl PieceRef {
    /// Its text, which never changes.
    pub(crate) fn text(&self) -> &[u8] {
        // SAFETY: the pool is open, and nobody changes this field once the piece is in the list.
        let (text, len) = unsafe { (&(*self.0).text, (*self.0).len) };
        &text[..(len as usize).min(PIECE_BYTES)]
    }

    /// Words in it.
    pub(crate) fn words(&self) -> u64 {
        // SAFETY: as for the text.
        unsafe { (*self.0).words }
    }

    /// Words of it that were counted, over all passes.
    pub(crate) fn counted(&self) -> u64 {
        // SAFETY: the pool is open; callers are the thread that counts this piece, or no thread counts.
        unsafe { (*self.0).counted }
    }

    /// Lets `counted` be `value` when the transaction commits.
    ///
    /// # Safety
    /// This thread is the only one that counts the piece, until the transaction has returned.
    pub(crate) unsafe fn set_counted(&self, tx: &durum::Tx, value: u64) -> durum::Result<()> {
        // SAFETY: as the caller promises.
        unsafe { tx.set(&raw mut (*self.0).counted, value) }
    }
}
