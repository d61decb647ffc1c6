//! A database and the log of its events: two pools, changed in one transaction, with pointers from one to the other
//! (Puddles, EuroSys'24, Figure 3). Whoever may read the log alone finds the committed transactions in it.
//!
//!     events STORE write COUNT    changes rows of the database and notes each change in the log; tells each number
//!     events STORE read           reads the log alone: how many events there are
//!     events STORE rows           reads the database: how many rows have changed; a row leads to its last event
//!     events STORE last           reads the log: the value of the row that the last event leads to
//!
//! STORE is a directory, or a service (`durum:`, `durum+unix:SOCKET`).

#![allow(
    clippy::undocumented_unsafe_blocks,
    reason = "the one program that writes a pool has one thread, and objects are never freed"
)]

use std::error::Error;
use std::ptr;

use durum::{Follow, Pool, PoolOptions, Store, StoreOptions};

/// What the programs say when something is not as a transaction left it.
type Result<T> = std::result::Result<T, Box<dyn Error>>;

const ROWS: usize = 64;

#[repr(C)]
struct Database {
    rows: [Row; ROWS],
}
durum::describe!(Database as "events database" { rows });

#[repr(C)]
struct Row {
    value: u64,
    /// The event that says so: in the log's pool.
    event: *const Event,
}
durum::describe!(Row as "events row" { value, event });

#[repr(C)]
struct Log {
    events: u64,
    last: *const Event,
}
durum::describe!(Log as "events log" { events, last });

#[repr(C)]
struct Event {
    number: u64,
    value: u64,
    /// In the database's pool.
    row: *const Row,
    before: *const Event,
}
durum::describe!(Event as "events event" { number, value, row, before });

/// What a row is changed to by the event of a number.
fn value_of(number: u64) -> u64 {
    number * number
}

/// Changes as many rows, each in a transaction with its event. Tells the number of each event that is durable.
pub fn write(store: &str, options: PoolOptions, count: u64, told: impl Fn(u64)) -> Result<()> {
    let store = Store::open_or_create(store, StoreOptions::new())?;
    let database = store.open_or_create_pool("database", options.clone())?;
    let events = store.open_or_create_pool("events", options)?;
    let (rows, log) = (database.root::<Database>()?, events.root::<Log>()?);
    for _ in 0..count {
        database.transaction(|tx| change(tx, rows, log, &events))?;
        told(unsafe { (*log).events });
    }
    Ok(())
}

/// Changes the next row, and notes it: in whichever transaction, begun on whichever of both pools.
fn change(
    tx: &durum::Tx,
    database: *mut Database,
    log: *mut Log,
    events: &Pool,
) -> durum::Result<()> {
    unsafe {
        let number = (*log).events + 1;
        let row = &raw mut (*database).rows[number as usize % ROWS];
        let event = tx.alloc_in::<Event>(events)?;
        tx.add(event)?;
        event.write(Event {
            number,
            value: value_of(number),
            row,
            before: (*log).last,
        });
        tx.add(log)?;
        log.write(Log {
            events: number,
            last: event,
        });
        tx.add(row)?;
        row.write(Row {
            value: value_of(number),
            event,
        });
        Ok(())
    }
}

/// Begins a change, with the log reached through a row of the database alone, and runs `in_the_middle` before it is
/// committed.
pub fn begin(store: &str, in_the_middle: impl FnOnce()) -> Result<()> {
    let store = Store::open(store, StoreOptions::new().follow(Follow::Writing))?;
    let database = store.open_pool("database", PoolOptions::new())?;
    let rows = database.root::<Database>()?;
    database.transaction(|tx| unsafe {
        for row in &mut (*rows).rows {
            tx.add(row)?;
            row.value = 1;
            let event = row.event.cast_mut();
            tx.add(event)?;
            (*event).value = 1;
        }
        in_the_middle();
        Ok::<_, durum::Error>(())
    })?;
    Ok(())
}

fn open_to_read(store: &str, pool: &str) -> Result<(Store, Pool)> {
    let store = Store::open(store, StoreOptions::new().follow(Follow::Reading))?;
    let pool = store.open_pool(pool, PoolOptions::new().read_only(true))?;
    Ok((store, pool))
}

/// Reads the log alone, and looks at each event. How many there are.
pub fn read(store: &str) -> Result<u64> {
    let (_store, events) = open_to_read(store, "events")?;
    let log = events.root::<Log>()?;
    let (found, mut at) = unsafe { ((*log).events, (*log).last) };
    for number in (1..=found).rev() {
        let Event {
            number: noted,
            value,
            before,
            ..
        } = unsafe { at.read() };
        if (noted, value) != (number, value_of(number)) {
            return Err(format!("event {number} says {noted} and {value}").into());
        }
        at = before;
    }
    match at.is_null() {
        true => Ok(found),
        false => Err("there are more events than the log counts".into()),
    }
}

/// Reads the database: each row is as its last event says. How many have changed.
pub fn rows(store: &str) -> Result<u64> {
    let (_store, database) = open_to_read(store, "database")?;
    let rows = unsafe { &(*database.root::<Database>()?).rows };
    let mut changed = 0;
    for (index, row) in rows.iter().enumerate() {
        // A row that leads to an event opens the log.
        if let Some(event) = unsafe { row.event.as_ref() } {
            let is_its = ptr::eq(event.row, row) && event.number as usize % ROWS == index;
            if !is_its || row.value != event.value || row.value != value_of(event.number) {
                return Err(format!("row {index} has {}, {}", row.value, event.value).into());
            }
            changed += 1;
        }
    }
    Ok(changed)
}

/// The value of the row that the last event leads to: that opens the database, for those who may read it.
pub fn last(store: &str) -> Result<u64> {
    let (_store, events) = open_to_read(store, "events")?;
    let last = unsafe { (*events.root::<Log>()?).last };
    match unsafe { last.as_ref() } {
        Some(event) => Ok(unsafe { (*event.row).value }),
        None => Err("there is no event".into()),
    }
}

fn main() -> Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match arguments[..] {
        [store, "write", count] => {
            let told = |number| println!("{number}");
            write(store, PoolOptions::new(), count.parse()?, told)?;
        }
        [store, "read"] => println!("{}", read(store)?),
        [store, "rows"] => println!("{}", rows(store)?),
        [store, "last"] => println!("{}", last(store)?),
        _ => return Err("events STORE write COUNT | read | rows | last".into()),
    }
    Ok(())
}
