//! What lies in the pool: the database, its leaves, and the records that hold keys and values.
//!
//! docs/tutorials/kv.md shows how they hang together. Everything has a type descriptor, so `durum inspect`, `check` and
//! `gc` see all of it.
//!
//! Addresses and lengths come from media, which may be damaged: [`Media`] follows a pointer only when what it leads to
//! lies in the pool.

use std::borrow::Cow;
use std::fmt;
use std::mem::offset_of;

use durum::types::{Count, Field, Primitive, Type};
use durum::{Announce, Described, Pool, Tx, Walk};
use durum_format::crc::Crc;

use crate::error::{Error, Result};

/// The layout that this version writes: the lower half of [`Database::layout`].
pub(crate) const LAYOUT: u32 = 2;
/// That of databases without guides, which earlier versions have made: opening them takes time for each leaf.
pub(crate) const LAYOUT_WITHOUT_GUIDES: u32 = 1;
/// In the upper half: writes that say nothing are buffered. A version that does not know it refuses the database, as a
/// layout that is newer. Never renumber.
pub(crate) const BUFFERED: u64 = 1 << 32;
/// In the upper half: slots of leaves may be marked as stale. In a database without guides it is never set, and says
/// nothing. Never renumber.
pub(crate) const HAS_STALE: u64 = 1 << 33;

/// Records of one leaf. With its extent's header a leaf takes 512 bytes.
pub(crate) const SLOTS: usize = 59;

/// Records from this size on are given to the engine as a whole.
const FILLED_MIN: usize = 32 << 10;

/// A new value is put into a record that is there, if that has up to so many bytes.
const REWRITTEN_MAX: usize = 4 << 10;

/// The pool's root in a database without guides, and what that of one with guides begins with.
#[repr(C)]
pub(crate) struct Database {
    /// 0: the database is being made. The layout's number otherwise, with [`BUFFERED`] and [`HAS_STALE`] if they are
    /// set.
    pub layout: u64,
    /// The leaf of the smallest keys.
    pub first: *mut Leaf,
    /// The name of the comparator that orders the keys.
    pub comparator: *mut Text,
    /// No record has a larger sequence number, and the next opener begins here.
    pub sequence_max: u64,
}
durum::describe!(Database as "kv database" { layout, first, comparator, sequence_max });

/// The pool's root in a database with guides.
#[repr(C)]
pub(crate) struct GuidedDatabase {
    pub layout: u64,
    pub first: *mut Leaf,
    pub comparator: *mut Text,
    pub sequence_max: u64,
    /// The first one; null where there is none yet.
    pub guides: *mut Guide,
}
durum::describe!(GuidedDatabase as "kv database" { layout, first, comparator, sequence_max, guides });

/// Starts of one guide. With its extent's header it takes 4,096 bytes.
pub(crate) const STARTS: usize = 84;

/// Leaves of which each begins a part of the row, in no order: whoever looks for a key goes on from there.
#[repr(C)]
pub(crate) struct Guide {
    /// Where it is itself: what a pointer leads to that is damaged does not say so.
    pub own: *mut Guide,
    /// The next guide, null in the last one.
    pub next: *mut Guide,
    pub starts: [Start; STARTS],
}
durum::describe!(Guide as "kv guide" { own, next, starts });

/// Bounds up to this length are in the guide itself.
const SHORT: usize = 31;

/// A leaf that is not the first one, with the same bound that it has itself. All is zero where there is none.
#[derive(Clone, Copy)]
#[repr(C)]
pub(crate) struct Start {
    pub leaf: *mut Leaf,
    pub low: *mut Text,
    /// The bytes of a short bound, so that whoever opens the database need not look for them all over the pool.
    short: [u8; SHORT],
    /// How many; more than there is room for if it is longer.
    short_len: u8,
}
durum::describe!(Start as "kv start" { leaf, low, short, short_len });

impl Start {
    pub(crate) const NONE: Self = Self {
        leaf: std::ptr::null_mut(),
        low: std::ptr::null_mut(),
        short: [0; SHORT],
        short_len: 0,
    };

    /// Of a leaf with the bound `low`, whose bytes are these.
    pub(crate) fn of(leaf: *mut Leaf, low: *mut Text, bytes: &[u8]) -> Self {
        let mut start = Self {
            leaf,
            low,
            ..Self::NONE
        };
        match start.short.get_mut(..bytes.len()) {
            Some(short) => {
                short.copy_from_slice(bytes);
                start.short_len = bytes.len() as u8;
            }
            None => start.short_len = u8::MAX,
        }
        start
    }

    /// The bytes of the bound.
    pub(crate) fn bound<'s>(&'s self, media: &Media) -> Result<&'s [u8]> {
        match self.short.get(..usize::from(self.short_len)) {
            Some(short) => Ok(short),
            None => media.text(self.low),
        }
    }
}

/// Records of neighbouring keys, in no order.
#[repr(C)]
pub(crate) struct Leaf {
    /// The leaf of the next larger keys; null in the last one.
    pub next: *mut Leaf,
    /// No key of this leaf is smaller, and none of the leaves before is as large. Null in the first leaf: it has no
    /// bound.
    pub low: *mut Text,
    /// Bit i: the record of slot i has older versions, or says that its key was deleted.
    pub stale: u64,
    /// The newest record of each key; null where there is none.
    pub slots: [*mut Record; SLOTS],
}
durum::describe!(Leaf as "kv leaf" { next, low, stale, slots });

/// Where a leaf has the address of a record.
pub(crate) fn slot_of(leaf: *mut Leaf, slot: usize) -> *mut *mut Record {
    // SAFETY: the leaf is live, and slots are below SLOTS.
    unsafe { (&raw mut (*leaf).slots).cast::<*mut Record>().add(slot) }
}

/// Announces a word and stores it.
pub(crate) fn store<T: Copy>(tx: &Tx, target: *mut T, value: T) -> Result<()> {
    // SAFETY: callers give a word of a live object, which only the writer changes.
    unsafe {
        tx.add(target)?;
        target.write(value);
    }
    Ok(())
}

/// A version of a key: its value, or that it was deleted. The bytes of key and value follow.
#[repr(C)]
pub(crate) struct Record {
    /// The version before, as long as a snapshot needs it. The only field that changes while somebody sees the record.
    pub previous: *mut Record,
    /// Twice the number of the commit that made it; plus 1 if that deleted the key.
    pub version: u64,
    /// Bytes of key and value.
    pub len: u64,
    /// Bytes of the key.
    pub key_len: u32,
    /// CRC-32C of version, len, key_len and the bytes.
    pub check: u32,
}

/// Some bytes with their length.
#[repr(C)]
pub(crate) struct Text {
    /// How many bytes follow.
    pub len: u64,
}

/// `u8` elements behind a struct, as many as its field `len` says.
fn tail(offset: usize) -> Field<String> {
    let bytes = Type::Primitive(Primitive::U8).array(Count::Field("len".into()));
    Field::new("bytes", offset as u64, bytes)
}

// SAFETY: the fields are measured by the compiler; `alloc` allocates the bytes behind them.
unsafe impl Described for Record {
    fn name() -> Option<Cow<'static, str>> {
        Some(Cow::Borrowed("kv record"))
    }

    fn layout(walk: &mut Walk) -> Type<String> {
        let fields = vec![
            walk.field("previous", 0, |record: &Record| &record.previous),
            walk.field("version", 8, |record: &Record| &record.version),
            walk.field("len", 16, |record: &Record| &record.len),
            walk.field("key_len", 24, |record: &Record| &record.key_len),
            walk.field("check", 28, |record: &Record| &record.check),
            tail(size_of::<Record>()),
        ];
        Type::structure("kv record", 32, 8, fields)
    }
}

// SAFETY: as for `Record`.
unsafe impl Described for Text {
    fn name() -> Option<Cow<'static, str>> {
        Some(Cow::Borrowed("kv text"))
    }

    fn layout(walk: &mut Walk) -> Type<String> {
        let fields = vec![
            walk.field("len", 0, |text: &Text| &text.len),
            tail(size_of::<Text>()),
        ];
        Type::structure("kv text", 8, 8, fields)
    }
}

const _: () = {
    assert!(size_of::<Leaf>() == 496 && size_of::<Record>() == 32 && size_of::<Text>() == 8);
    assert!(
        size_of::<Guide>() == 4048 && offset_of!(GuidedDatabase, guides) == size_of::<Database>()
    );
    assert!(
        REWRITTEN_MAX < FILLED_MIN,
        "what is given to the engine as a whole does not change"
    );
    assert!(SLOTS <= u64::BITS as usize, "stale has a bit for each slot");
};

impl Record {
    /// The number of the commit that made it.
    pub(crate) fn sequence(&self) -> u64 {
        self.version >> 1
    }

    pub(crate) fn is_deletion(&self) -> bool {
        self.version & 1 == 1
    }

    /// The bytes of key and value.
    ///
    /// # Safety
    /// The record was made by [`Media::alloc_record`] or found by [`Media::record`], and is not freed while the slice
    /// lives.
    unsafe fn bytes<'a>(this: *const Record) -> &'a [u8] {
        // SAFETY: `len` bytes follow the struct, as the caller promises.
        unsafe {
            let len = (*this).len as usize;
            std::slice::from_raw_parts(this.add(1).cast(), len)
        }
    }

    /// # Safety
    /// As for [`Record::bytes`].
    #[inline]
    pub(crate) unsafe fn key<'a>(this: *const Record) -> &'a [u8] {
        // SAFETY: the key comes first, and `key_len` is at most `len`.
        unsafe {
            let len = (*this).key_len as usize;
            std::slice::from_raw_parts(this.add(1).cast(), len)
        }
    }

    /// # Safety
    /// As for [`Record::bytes`].
    #[inline]
    pub(crate) unsafe fn value<'a>(this: *const Record) -> &'a [u8] {
        // SAFETY: as for `key`.
        unsafe {
            let key_len = (*this).key_len as usize;
            Self::bytes(this).get_unchecked(key_len..)
        }
    }

    /// The bytes that it takes in the pool, without what the allocator rounds up.
    pub(crate) fn size(&self) -> u64 {
        size_of::<Record>() as u64 + self.len
    }

    /// The checksum of a record with these bytes, the key's and the value's.
    #[inline]
    fn sum(&self, key: &[u8], value: &[u8]) -> u32 {
        let mut head = [0; 20];
        head[..8].copy_from_slice(&self.version.to_le_bytes());
        head[8..16].copy_from_slice(&self.len.to_le_bytes());
        head[16..].copy_from_slice(&self.key_len.to_le_bytes());
        let mut sum = Crc::new();
        sum.update(&head);
        sum.update(key);
        sum.update(value);
        sum.value()
    }

    /// Puts another value into a record, if it is as long as the one that it has, and the key the same to the byte.
    /// Whether it was.
    ///
    /// # Safety
    /// As for [`Record::bytes`]. Nobody looks at the record until the transaction has ended, and nobody who has looked
    /// at it before looks again.
    #[inline]
    pub(crate) unsafe fn rewrite(
        tx: &Tx,
        this: *mut Record,
        key: &[u8],
        value: &[u8],
        sequence: u64,
    ) -> Result<bool> {
        // SAFETY: as the caller promises.
        let has_room = unsafe {
            (*this).len <= REWRITTEN_MAX as u64
                && Self::key(this) == key
                && Self::value(this).len() == value.len()
        };
        if !has_room {
            return Ok(false);
        }
        // SAFETY: as the caller promises; all that changes is announced before.
        unsafe {
            let start: *mut u64 = &raw mut (*this).version;
            let head = size_of::<Record>() - offset_of!(Record, version);
            let len = head + key.len() + value.len();
            tx.add_bytes(start.cast(), len, Announce::Backup)?;
            start.write(2 * sequence);
            (*this).check = (*this).sum(key, value);
            let place: *mut u8 = this.add(1).cast();
            place
                .add(key.len())
                .copy_from_nonoverlapping(value.as_ptr(), value.len());
        }
        Ok(true)
    }

    /// Whether the record is as it was made.
    ///
    /// # Safety
    /// As for [`Record::bytes`].
    pub(crate) unsafe fn verify(this: *const Record) -> Result<()> {
        // SAFETY: as the caller promises.
        let (record, key, value) = unsafe { (&*this, Self::key(this), Self::value(this)) };
        if record.check == record.sum(key, value) {
            return Ok(());
        }
        Err(Error::damaged(
            this.addr(),
            "a record's checksum does not match its contents",
        ))
    }
}

/// Makes objects in the pool, and follows pointers that were read there.
pub(crate) struct Media {
    pool: Pool,
    record_type: u64,
    text_type: u64,
    /// Leaves that were not looked at since the pool was read have records with no larger sequence number.
    pub(crate) sequence_max: u64,
    /// They may have marks, which were noted then.
    pub(crate) has_stale: bool,
}

impl fmt::Debug for Media {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Media").finish_non_exhaustive()
    }
}

impl Media {
    pub(crate) fn new(pool: Pool) -> Result<Self> {
        Ok(Self {
            sequence_max: 0,
            has_stale: false,
            record_type: pool.ensure_described(Record::description())?,
            text_type: pool.ensure_described(Text::description())?,
            pool,
        })
    }

    pub(crate) fn pool(&self) -> &Pool {
        &self.pool
    }

    /// A new record, which no other thread knows of.
    pub(crate) fn alloc_record(
        &self,
        tx: &Tx,
        key: &[u8],
        value: Option<&[u8]>,
        sequence: u64,
        previous: *mut Record,
    ) -> Result<*mut Record> {
        let key_len = u32::try_from(key.len()).map_err(|_| Error::KeyTooLong { len: key.len() })?;
        let is_deletion = value.is_none();
        let value = value.unwrap_or_default();
        let len = key.len() + value.len();
        let mut record = Record {
            previous,
            version: 2 * sequence + u64::from(is_deletion),
            len: len as u64,
            key_len,
            check: 0,
        };
        record.check = record.sum(key, value);
        if len >= FILLED_MIN {
            // SAFETY: the struct has no padding.
            let head = unsafe {
                std::slice::from_raw_parts((&raw const record).cast(), size_of::<Record>())
            };
            let parts = [head, key, value];
            // SAFETY: a record does not change in the transaction that makes it, unless another change of its key comes
            // behind: that frees it, or leads to it.
            let place = unsafe { tx.alloc_filled(&self.pool, self.record_type, &parts, 8)? };
            return Ok(place.cast());
        }
        let size = size_of::<Record>() + len;
        let place: *mut Record = tx
            .alloc_bytes(&self.pool, self.record_type, size, 8)?
            .cast();
        // SAFETY: the object was just allocated with room for the struct and `len` bytes.
        unsafe {
            place.write(record);
            let bytes: *mut u8 = place.add(1).cast();
            bytes.copy_from_nonoverlapping(key.as_ptr(), key.len());
            bytes
                .add(key.len())
                .copy_from_nonoverlapping(value.as_ptr(), value.len());
        }
        Ok(place)
    }

    pub(crate) fn alloc_text(&self, tx: &Tx, bytes: &[u8]) -> Result<*mut Text> {
        let size = size_of::<Text>() + bytes.len();
        let place: *mut Text = tx.alloc_bytes(&self.pool, self.text_type, size, 8)?.cast();
        // SAFETY: as in `alloc_record`.
        unsafe {
            (*place).len = bytes.len() as u64;
            let target: *mut u8 = place.add(1).cast();
            target.copy_from_nonoverlapping(bytes.as_ptr(), bytes.len());
        }
        Ok(place)
    }

    /// Checks that a `T` with `more` bytes behind it can be where a pointer leads.
    fn check<T>(&self, pointer: *const T, more: u64, what: &'static str) -> Result<()> {
        let size = usize::try_from(more)
            .ok()
            .and_then(|more| more.checked_add(size_of::<T>()));
        let lies_in_pool = size.is_some_and(|size| self.pool.holds(pointer.cast(), size));
        match lies_in_pool && pointer.addr().is_multiple_of(align_of::<T>()) {
            true => Ok(()),
            false => Err(Error::damaged(pointer.addr(), what)),
        }
    }

    /// A leaf that a pointer in the pool leads to.
    pub(crate) fn leaf(&self, pointer: *mut Leaf) -> Result<*mut Leaf> {
        self.check(pointer, 0, "a pointer to a leaf leads out of the pool")?;
        Ok(pointer)
    }

    /// A guide that a pointer in the pool leads to.
    pub(crate) fn guide(&self, pointer: *mut Guide) -> Result<*mut Guide> {
        self.check(pointer, 0, "a pointer to a guide leads out of the pool")?;
        // SAFETY: it lies in the pool; any bytes are a `Guide`.
        if unsafe { (*pointer).own } != pointer {
            // New starts would be written there.
            let reason = "a pointer to a guide leads to something else";
            return Err(Error::damaged(pointer.addr(), reason));
        }
        Ok(pointer)
    }

    /// A record that a pointer in the pool leads to: its lengths are possible.
    pub(crate) fn record(&self, pointer: *mut Record) -> Result<*mut Record> {
        self.check(pointer, 0, "a pointer to a record leads out of the pool")?;
        // SAFETY: it lies in the pool; any bytes are a `Record`.
        let record = unsafe { &*pointer };
        let lengths = "a record is longer than its place";
        self.check(pointer, record.len, lengths)?;
        match u64::from(record.key_len) <= record.len {
            true => Ok(pointer),
            false => Err(Error::damaged(pointer.addr(), lengths)),
        }
    }

    /// Checks the newest record of a key in a leaf that nobody has changed since the pool was read.
    pub(crate) fn check_newest(&self, record: &Record, is_stale: bool) -> Result<()> {
        let reason = if record.sequence() > self.sequence_max {
            "a record's sequence number was never given"
        } else if !is_stale && (record.is_deletion() || !record.previous.is_null()) {
            "a record has older versions that its leaf does not know of"
        } else {
            return Ok(());
        };
        Err(Error::damaged((&raw const *record).addr(), reason))
    }

    /// The bytes of a text that a pointer in the pool leads to; they stay until it is freed.
    pub(crate) fn text<'a>(&self, pointer: *mut Text) -> Result<&'a [u8]> {
        self.check(pointer, 0, "a pointer to a text leads out of the pool")?;
        // SAFETY: it lies in the pool; any bytes are a `Text`.
        let len = unsafe { (*pointer).len };
        self.check(pointer, len, "a text is longer than its place")?;
        // SAFETY: `len` bytes behind the struct lie in the pool.
        Ok(unsafe { std::slice::from_raw_parts(pointer.add(1).cast(), len as usize) })
    }
}
