//! A store as large as somebody likes: lists of small records, of which each fifth has a note of some pages.

use std::path::Path;
use std::ptr::null_mut;

use durum::{PoolOptions, Result, Store, StoreOptions, Tx};

const LANES: usize = 4096;
/// Bytes of a note: with four records for each note, objects have 1 KiB on the average.
const NOTE: usize = 4864;
/// Objects of a transaction.
const AT_ONCE: u64 = 5000;
/// Notes that nothing leads to.
pub const LOST: u64 = 150;

#[repr(C)]
pub struct Shelf {
    records: u64,
    lanes: [*mut Record; LANES],
}
durum::describe!(Shelf as "shelf" { records, lanes });

#[repr(C)]
pub struct Record {
    next: *mut Record,
    note: *mut Note,
    number: u64,
    name: [u8; 40],
}
durum::describe!(Record as "record" { next, note, number, name });

#[repr(C)]
pub struct Note {
    about: *mut Record,
    text: [u8; NOTE - 8],
}
durum::describe!(Note as "note" { about, text });

/// A closed store with a pool "shelf" of so many objects, of 1 KiB each on the average, and [`LOST`] notes among them
/// that nothing leads to.
pub fn make_large(path: &Path, objects: u64) {
    let store = Store::create(path, StoreOptions::new()).unwrap();
    let pool = store.create_pool("shelf", PoolOptions::new()).unwrap();
    let shelf = pool.root::<Shelf>().unwrap();
    let mut made = 1;
    while made < objects {
        let end = objects.min(made + AT_ONCE);
        pool.transaction(|tx| {
            while made < end {
                let with_note = made % 5 == 1 && made + 1 < end;
                let note = if with_note { add_note(tx)? } else { null_mut() };
                made += u64::from(with_note);
                // SAFETY: the root is this pool's, and this thread is alone.
                unsafe { add_record(tx, shelf, made, note)? };
                made += 1;
            }
            Ok::<_, durum::Error>(())
        })
        .unwrap();
    }
    let lost = pool.transaction(|tx| (0..LOST).try_for_each(|_| add_note(tx).map(drop)));
    lost.unwrap();
}

fn add_note(tx: &Tx) -> Result<*mut Note> {
    let note = tx.alloc::<Note>()?;
    // SAFETY: fresh.
    unsafe {
        (*note).about = null_mut();
        (&mut (*note).text)[..64].fill(b'n');
        (&mut (*note).text)[64..].fill(0);
    }
    Ok(note)
}

/// # Safety
/// The shelf is of the pool that the transaction began in, and nobody else uses it.
unsafe fn add_record(tx: &Tx, shelf: *mut Shelf, number: u64, note: *mut Note) -> Result<()> {
    let record = tx.alloc::<Record>()?;
    let mut name = [0; 40];
    let text = format!("record {number}");
    name[..text.len()].copy_from_slice(text.as_bytes());
    // SAFETY: fresh; as promised.
    unsafe {
        let lane = &raw mut (*shelf).lanes[number as usize % LANES];
        record.write(Record {
            next: *lane,
            note,
            number,
            name,
        });
        if !note.is_null() {
            (*note).about = record;
        }
        tx.add(lane)?;
        lane.write(record);
        let records = &raw mut (*shelf).records;
        tx.add(records)?;
        *records += 1;
    }
    Ok(())
}

/// How many objects a store is to have: what `DURUM_LARGE_OBJECTS` says, if it says anything.
pub fn objects_wanted(otherwise: u64) -> u64 {
    let wanted = std::env::var("DURUM_LARGE_OBJECTS");
    wanted.map_or(otherwise, |wanted| wanted.parse().unwrap())
}
