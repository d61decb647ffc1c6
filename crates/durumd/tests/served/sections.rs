//! Sections of programs that a service serves: whoever comes after a program that was in some completes them, or gives
//! them up. A section is a record here, and completing it is another one.

use std::sync::Arc;
use std::time::Duration;

use durum_format::puddle::heap_offset;
use durum_format::section::{BANK_WORDS, Code, Head, RecordWriter, bank_of};
use durum_remote::Remote;
use durum_service::{
    EngineKind, Error, ExportOptions, PoolSpec, PuddleGrant, PuddleKind, PuddleOwner,
    ReadOnlyStore, Service, TakenOver, export_served,
};

use crate::commands::durum;
use crate::support::{Served, text, until};

const UNIT: u64 = 2 << 20;

pub fn come(served: &Served) -> Remote {
    Remote::open(&served.socket(), Default::default()).unwrap()
}

fn code() -> Code {
    Code::new(0xaaaa_bbbb_cccc, 7).unwrap()
}

/// Writes the next record of a thread: that it is in a section, or in none.
pub fn record(puddle: &PuddleGrant, client: durum_format::Uuid, sequence: u64, is_in: bool) {
    let head = Head {
        client,
        salt: 0x5a17,
        slots: 4,
        stack_size: 256,
    };
    let heap = heap_offset(puddle.size);
    puddle.file.write_all_at(&head.encode(), heap).unwrap();
    let (mut bank, salt) = ([0; BANK_WORDS], head.slot_salt(0));
    let written = match is_in {
        true => RecordWriter::new(&mut bank, sequence, code())
            .live_ins(&[5])
            .finish(&salt),
        false => RecordWriter::idle(&mut bank, sequence).finish(&salt),
    };
    let bytes: Vec<u8> = bank.iter().flat_map(|word| word.to_le_bytes()).collect();
    let place = heap + head.bank_offset(0, bank_of(sequence));
    let bytes = &bytes[..written.unwrap().bytes];
    puddle.file.write_all_at(bytes, place).unwrap();
}

/// A program has ended in a section, with this pool open.
fn left(served: &Served, pool: &str) -> durum_format::Uuid {
    let program = come(served);
    let client = program.info().client;
    program
        .create_pool(pool, &PoolSpec::new(EngineKind::Hybrid))
        .unwrap();
    let owner = PuddleOwner::Client;
    let puddle = program.create_puddle(owner, PuddleKind::Sections, UNIT);
    record(&puddle.unwrap(), client, 1, true);
    client
}

/// Waits until the service has seen the end of who had the pool, and says that it is interrupted.
fn ensure_interrupted(client: &Remote, pool: &str) {
    let Err(Error::PoolInterrupted {
        store,
        pool: named,
        sections: 1,
        first,
        ..
    }) = client.open_pool(pool)
    else {
        panic!("it is not interrupted");
    };
    assert_eq!((named.as_str(), first), (pool, Some(code())));
    assert_eq!(store, client.info().path);
}

fn complete(client: &Remote, gone: durum_format::Uuid, taken: &TakenOver) {
    record(&taken.puddles[0], gone, 2, false);
    client.sections_done(gone).unwrap();
}

#[test]
fn who_comes_next_completes_them() {
    let served = Served::start();
    let gone = left(&served, "heap");
    let [next, other] = [(); 2].map(|()| come(&served));
    ensure_interrupted(&next, "heap");
    assert_eq!(next.interrupted().unwrap()[0].client, gone);
    assert_eq!(next.recovery().unwrap().interrupted.len(), 1);
    let taken = next.take_over(gone).unwrap();
    assert_eq!(taken.pools[0].name, "heap");
    assert!(matches!(other.take_over(gone), Err(Error::PoolBusy { .. })));
    assert!(matches!(
        other.abandon_sections("heap"),
        Err(Error::PoolBusy { .. })
    ));
    assert!(matches!(
        next.sections_done(gone),
        Err(Error::PoolInterrupted { sections: 1, .. })
    ));
    complete(&next, gone, &taken);
    assert!(other.interrupted().unwrap().is_empty());
    next.close_pool(taken.pools[0].uuid).unwrap();
    other.open_pool("heap").unwrap();
}

#[test]
fn who_completes_them_and_ends_leaves_them_to_the_next_one() {
    let served = Served::start();
    let gone = left(&served, "heap");
    let first = come(&served);
    ensure_interrupted(&first, "heap");
    first.take_over(gone).unwrap();
    drop(first);
    let next = come(&served);
    // It waits until the service has seen the end of the first one.
    let taken = next.take_over(gone).unwrap();
    complete(&next, gone, &taken);
    next.close().unwrap();
    come(&served).open_pool("heap").unwrap();
}

/// The service is killed while a program completes sections; it goes on, and nobody comes in between.
#[test]
fn a_service_that_comes_again_knows_who_completes_them() {
    for is_done in [false, true] {
        let mut served = Served::start();
        let gone = left(&served, "heap");
        let next = come(&served);
        ensure_interrupted(&next, "heap");
        let taken = next.take_over(gone).unwrap();
        if is_done {
            // All is done but to say so.
            record(&taken.puddles[0], gone, 2, false);
        }
        served.kill();
        served.start_again();
        let other = come(&served);
        assert!(matches!(other.take_over(gone), Err(Error::PoolBusy { .. })));
        assert!(matches!(
            other.open_pool("heap"),
            Err(Error::PoolInterrupted { .. })
        ));
        complete(&next, gone, &taken);
        next.close_pool(taken.pools[0].uuid).unwrap();
        other.open_pool("heap").unwrap();
    }
}

#[test]
fn the_pool_is_shown_half_done_and_given_up_by_a_command() {
    let mut served = Served::start();
    let gone = left(&served, "heap");
    let is_interrupted = |served: &Served| {
        let client = come(served);
        ensure_interrupted(&client, "heap");
        client.close().unwrap();
    };
    is_interrupted(&served);
    // Told when all is done, which is after others are told of the pool.
    let recovered =
        |line: &&str| line.contains("\"recovered\"") && line.contains(&gone.to_string());
    let told = |served: &Served| served.log().lines().find(recovered).map(str::to_owned);
    until("the recovery is told", || told(&served).is_some());
    let recovered = told(&served).unwrap();
    assert!(recovered.contains("sections=1"), "{recovered}");
    let (address, store) = (served.address(), served.store());
    let look = |place: &str| {
        let listed = durum(&["ls", place]);
        assert_eq!(listed.code, 3, "{}{}", listed.out, listed.err);
        for told in [&listed.out, &listed.err] {
            assert!(
                told.contains("in a section (the first at region 7"),
                "{told}"
            );
        }
        let cure = format!("`durum recover {place} --abandon-sections heap`");
        assert!(listed.err.contains(&cure), "{}", listed.err);
        let checked = durum(&["check", place]);
        assert_eq!(checked.code, 3, "{}{}", checked.out, checked.err);
        assert!(checked.out.contains("seen half done"), "{}", checked.out);
        let recovered = durum(&["recover", place]);
        assert_eq!(recovered.code, 3, "{}{}", recovered.out, recovered.err);
        assert!(
            recovered.out.contains("interrupted  \"heap\""),
            "{}",
            recovered.out
        );
    };
    look(&address);
    let named = format!("{address}:heap");
    let shown = durum(&["inspect", &named]);
    assert_eq!(shown.code, 0, "{}{}", shown.out, shown.err);
    assert!(shown.out.contains("half done"), "{}", shown.out);
    let copy = served.beside("copy");
    for refused in [
        durum(&["export", &named, text(&copy)]),
        durum(&["clone", &address, text(&copy)]),
    ] {
        assert_eq!(refused.code, 3, "{}{}", refused.out, refused.err);
        assert!(refused.err.contains("is interrupted"), "{}", refused.err);
    }
    let mut reader = ReadOnlyStore::of(Arc::new(come(&served))).unwrap();
    let options = ExportOptions {
        wait: Some(Duration::from_millis(10)),
        ..ExportOptions::default()
    };
    let exported = export_served(&mut reader, "heap", &copy, &options);
    assert!(matches!(exported, Err(Error::PoolInterrupted { .. })));
    drop(reader);
    // The same of the directory.
    served.end();
    look(text(&store));
    served.start_again();
    let unsure = durum(&["recover", &address, "--abandon-sections", "heap"]);
    assert_eq!(unsure.code, 2, "{}{}", unsure.out, unsure.err);
    is_interrupted(&served);
    let accepted = durum(&["recover", &address, "--abandon-sections", "heap", "--yes"]);
    assert_eq!(accepted.code, 0, "{}{}", accepted.out, accepted.err);
    assert!(
        accepted.out.contains("may be opened again"),
        "{}",
        accepted.out
    );
    come(&served).open_pool("heap").unwrap();
    let again = durum(&["recover", &address, "--abandon-sections", "heap", "--yes"]);
    assert!(
        again.err.contains("no section was interrupted"),
        "{}",
        again.err
    );
    assert_eq!(durum(&["ls", &address]).code, 0);
}
