//! Clients that were in sections when they ended: their logs are replayed and retired, their pools wait for whoever
//! completes the sections, or for a person who accepts them half done.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use durum_format::UNIT;
use durum_format::section::{
    BANK_WORDS, Bits, BitsChange, Code, Head, RecordWriter, Redo, bank_of,
};
use durum_service::{
    CloneOptions, Embedded, Error, ErrorKind, Host, PoolGrant, PuddleGrant, PuddleKind,
    PuddleOwner, ReadOnlyStore, Service, check, clone_store,
};

use crate::support::{
    Space, create, heap, open, open_options, put, root, scratch, snapshot, spec, word,
};

pub const PLACE: u64 = 0x10000;
pub const OLD: u64 = 1;
pub const TORN: u64 = 2;
pub const DONE: u64 = 3;
const STACK: u32 = 256;

pub(crate) fn code() -> Code {
    Code::new(0xaaaa_bbbb_cccc, 7).unwrap()
}

fn head(client: durum_service::Uuid) -> Head {
    Head {
        client,
        salt: 0x5a17,
        slots: 4,
        stack_size: STACK,
    }
}

/// A puddle of sections of a client.
pub fn sections_of(store: &Embedded) -> PuddleGrant {
    let owner = PuddleOwner::Client;
    let grant = store
        .create_puddle(owner, PuddleKind::Sections, UNIT)
        .unwrap();
    put(&grant, heap(&grant), &head(store.id()).encode());
    grant
}

/// Writes a record of a slot: of a section, or of none.
pub fn record(
    grant: &PuddleGrant,
    client: durum_service::Uuid,
    slot: u32,
    sequence: u64,
    is_in: bool,
) {
    let (head, mut bank) = (head(client), [0; BANK_WORDS]);
    let salt = head.slot_salt(slot);
    let written = match is_in {
        true => RecordWriter::new(&mut bank, sequence, code())
            .live_ins(&[5])
            .finish(&salt),
        false => RecordWriter::idle(&mut bank, sequence).finish(&salt),
    };
    let bytes: Vec<u8> = bank.iter().flat_map(|word| word.to_le_bytes()).collect();
    let at = heap(grant) + head.bank_offset(slot, bank_of(sequence));
    put(grant, at, &bytes[..written.unwrap().bytes]);
}

/// What a client has left.
pub struct Left {
    pub client: durum_service::Uuid,
    pub sections: PuddleGrant,
    /// The word of pool `a` that its log is about.
    pub word: u64,
}

/// A store whose client has ended with pools `a` and `b` open, a transaction under way in `a`, and slot 2 in a section
/// if it says so. Pool `c` was closed.
pub fn left(path: &Path, is_in: bool) -> Left {
    let store = create(path);
    let [a, _, c] = ["a", "b", "c"].map(|name| store.create_pool(name, &spec()).unwrap());
    store.close_pool(c.uuid).unwrap();
    let mut log = Space::new(&store).log(&store, 0xf1);
    let target = root(&a).address + PLACE;
    put(root(&a), PLACE, &OLD.to_le_bytes());
    log.undo(target, &OLD.to_le_bytes());
    put(root(&a), PLACE, &TORN.to_le_bytes());
    let sections = sections_of(&store);
    record(&sections, store.id(), 0, 1, false);
    record(&sections, store.id(), 2, 1, true);
    if !is_in {
        record(&sections, store.id(), 2, 2, false);
    }
    Left {
        client: store.id(),
        sections,
        word: target,
    }
}

pub fn names(store: &Embedded) -> Vec<String> {
    let pools = store.pools().unwrap().into_iter().map(|pool| pool.name);
    let opened = pools.filter(|name| match store.open_pool(name) {
        Ok(grant) => store.close_pool(grant.uuid).is_ok(),
        Err(Error::PoolInterrupted { .. }) => false,
        Err(error) => panic!("{error}"),
    });
    opened.collect()
}

pub fn files(path: &Path) -> usize {
    std::fs::read_dir(path.join("puddles")).unwrap().count()
}

fn value(store: &Embedded, pool: &str) -> u64 {
    let grant = store.open_pool(pool).unwrap();
    let value = word(root(&grant), PLACE);
    store.close_pool(grant.uuid).unwrap();
    value
}

#[test]
fn records_of_no_section_go_with_their_client() {
    let directory = scratch();
    let path = directory.path().join("store");
    left(&path, false);
    let store = open(&path);
    assert_eq!(names(&store), ["a", "b", "c"]);
    assert_eq!(value(&store, "a"), OLD);
    assert_eq!(files(&path), 3);
    assert!(store.interrupted().unwrap().is_empty());
}

#[test]
fn pools_with_sections_under_way_are_refused_and_others_open() {
    let directory = scratch();
    let path = directory.path().join("store");
    let left = left(&path, true);
    let store = open(&path);
    assert_eq!(names(&store), ["c"]);
    for (name, other) in [("a", "b"), ("b", "a")] {
        for refused in [
            store.open_pool(name).map(drop),
            store.read_pool(name).map(drop),
            store.remove_pool(name),
        ] {
            let error = refused.unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Data);
            assert!(
                error
                    .to_string()
                    .contains("region 7 of function 0xaaaabbbbcccc"),
                "{error}"
            );
            let cure = format!(
                "`durum recover {} --abandon-sections {name}`",
                path.display()
            );
            assert!(error.to_string().contains(&cure), "{error}");
            let Error::PoolInterrupted {
                pool,
                sections,
                first,
                details,
                others,
                ..
            } = error
            else {
                panic!("{error}");
            };
            assert_eq!(
                (pool.as_str(), sections, first, details.damage),
                (name, 1, Some(code()), None)
            );
            assert_eq!(others, [other]);
        }
    }
    let listed = store.interrupted().unwrap();
    assert_eq!(listed.len(), 1);
    assert_eq!((listed[0].client, listed[0].sections), (left.client, 1));
    assert_eq!(listed[0].pools, ["a", "b"]);
    assert_eq!(store.recovery().unwrap().interrupted, listed);
    store.close().unwrap();
    drop(store);

    // The logs are gone, and nothing is left to be done.
    assert_eq!(files(&path), 4);
    let before = snapshot(&path);
    let store = open(&path);
    assert_eq!(names_without_opening(&store), ["a", "b"]);
    drop(store);
    assert!(
        snapshot(&path) == before,
        "nothing can be done, so nothing is written"
    );
    let report = check(&path, &Default::default()).unwrap();
    assert_eq!(report.kept, ["a".to_owned(), "b".to_owned()].into());
    let texts: Vec<String> = report
        .findings
        .iter()
        .map(|finding| finding.text.clone())
        .collect();
    assert_eq!(
        texts
            .iter()
            .filter(|text| text.contains("is interrupted"))
            .count(),
        2,
        "{texts:?}"
    );
    assert_eq!(texts.len(), 2, "{texts:?}");
    let clone = clone_store(
        &path,
        &directory.path().join("copy"),
        &CloneOptions::default(),
    );
    let Err(Error::PartsKept { mut pools, .. }) = clone else {
        panic!("{clone:?}");
    };
    pools.sort_unstable();
    assert_eq!(pools, ["a", "b"]);
}

fn names_without_opening(store: &Embedded) -> Vec<String> {
    store.interrupted().unwrap().remove(0).pools
}

/// Writes a record that tells of words, of a section or of none.
fn record_of_words(
    client: durum_service::Uuid,
    sections: &PuddleGrant,
    [slot, sequence]: [u32; 2],
    words: [u64; 4],
    is_in: bool,
) {
    let (head, mut bank) = (head(client), [0; BANK_WORDS]);
    let sequence = u64::from(sequence);
    let bits = |address, change| Bits {
        address,
        mask: 0b110,
        change,
    };
    let [taken, freed, redo, other] = words;
    let mut writer = RecordWriter::idle(&mut bank, sequence);
    if is_in {
        writer = RecordWriter::new(&mut bank, sequence, code()).live_ins(&[5]);
        writer = writer.redo(Redo {
            address: redo,
            bytes: Redo::WHOLE,
            value: DONE,
        });
        writer = writer.bits(bits(taken, BitsChange::Taken));
    }
    let writer = writer
        .bits(bits(freed, BitsChange::Freed))
        .bits(bits(other, BitsChange::Freed));
    let written = writer.finish(&head.slot_salt(slot)).unwrap();
    let bytes: Vec<u8> = bank.iter().flat_map(|word| word.to_le_bytes()).collect();
    put(
        sections,
        heap(sections) + head.bank_offset(slot, bank_of(sequence)),
        &bytes[..written.bytes],
    );
}

/// What sections have taken is taken before they go on. What they have freed is taken as long as any is under way, and
/// free then. Pools that their client could not write are left alone.
#[test]
fn words_that_records_tell_of_are_written() {
    for is_in in [false, true] {
        let directory = scratch();
        let path = directory.path().join("store");
        let store = create(&path);
        let [a, c] = ["a", "c"].map(|name| store.create_pool(name, &spec()).unwrap());
        store.close_pool(c.uuid).unwrap();
        let place = |number: u64| PLACE + 8 * number;
        let address = |number| root(&a).address + place(number);
        let (taken, freed, redo, freed_idle) = (0, 1, 2, 3);
        for (number, value) in [(taken, 1), (freed, 7), (redo, OLD), (freed_idle, 1)] {
            put(root(&a), place(number), &u64::to_le_bytes(value));
        }
        put(root(&c), PLACE, &u64::to_le_bytes(7));
        let other = root(&c).address + PLACE;
        let sections = sections_of(&store);
        let words = [freed_idle, freed, redo].map(address);
        let of_idle = [0, words[0], 0, other];
        record_of_words(store.id(), &sections, [0, 1], of_idle, false);
        let of_section = [address(taken), words[1], words[2], other];
        record_of_words(store.id(), &sections, [1, 1], of_section, is_in);
        let client = store.id();
        drop((store, sections));
        let expected = match is_in {
            true => [7, 7, DONE, 7],
            false => [1, 1, OLD, 1],
        };
        let found = |a: &PuddleGrant| [0, 1, 2, 3].map(|number| word(a, place(number)));
        let store = open(&path);
        if is_in {
            // Again and again.
            drop(store);
            let store = open(&path);
            let left = store.take_over(client).unwrap();
            assert_eq!(found(&left.pools[0].root), expected);
        } else {
            assert_eq!(found(root(&store.open_pool("a").unwrap())), expected);
        }
        assert_eq!(word(root(&c), PLACE), 7);
    }
}

/// A client was in a section, and who has taken it over is gone, too, and has recorded words of the pool `a`.
struct LeftTwice {
    host: Arc<Host>,
    client: durum_service::Uuid,
    a: PoolGrant,
    /// A puddle of `a` that no record is about.
    other: PuddleGrant,
}

impl LeftTwice {
    fn new(path: &Path) -> LeftTwice {
        create(path).close().unwrap();
        let host = Host::open(path, open_options()).unwrap();
        let [gone, second] = [(); 2].map(|()| host.client().unwrap());
        let a = gone.create_pool("a", &spec()).unwrap();
        let owner = PuddleOwner::Pool(a.uuid);
        let other = gone.create_puddle(owner, PuddleKind::Data, UNIT).unwrap();
        let sections = sections_of(&gone);
        record(&sections, gone.id(), 0, 1, true);
        let client = gone.id();
        drop(gone);
        host.recover_client(client).unwrap();
        let left = second.take_over(client).unwrap();
        let words = [0, 1, 2, 3].map(|number| root(&a).address + PLACE + 8 * number);
        record_of_words(client, &left.puddles[0], [0, 2], words, true);
        let by = second.id();
        drop((second, left));
        host.recover_client(by).unwrap();
        LeftTwice {
            host,
            client,
            a,
            other,
        }
    }

    fn found(&self) -> [u64; 4] {
        [0, 1, 2, 3].map(|number| word(root(&self.a), PLACE + 8 * number))
    }
}

const WRITTEN: [u64; 4] = [0b110, 0b110, DONE, 0b110];

/// Who has taken sections over and is gone has recorded more.
#[test]
fn words_are_written_again_for_the_next_one() {
    let directory = scratch();
    let path = directory.path().join("store");
    let left = LeftTwice::new(&path);
    assert_eq!(left.found(), [0; 4]);
    let third = left.host.client().unwrap();
    // Nothing goes on where they cannot be written.
    let file = path.join("puddles").join(left.other.uuid.to_string());
    let away = directory.path().join("away");
    std::fs::rename(&file, &away).unwrap();
    let refused = third.take_over(left.client);
    assert!(
        matches!(refused, Err(Error::PoolRefused { .. })),
        "{refused:?}"
    );
    assert_eq!(left.found(), [0; 4]);
    std::fs::rename(&away, &file).unwrap();
    third.take_over(left.client).unwrap();
    assert_eq!(left.found(), WRITTEN);
}

/// Memory that is in use is not free, whoever goes on with the pool.
#[test]
fn words_are_written_before_a_pool_is_accepted_half_done() {
    let directory = scratch();
    let left = LeftTwice::new(&directory.path().join("store"));
    let third = left.host.client().unwrap();
    assert_eq!(third.abandon_sections("a").unwrap(), [""; 0]);
    assert_eq!(left.found(), WRITTEN);
    third.open_pool("a").unwrap();
}

#[test]
fn a_pool_that_is_accepted_half_done_opens_and_its_client_ends_with_the_last_one() {
    let directory = scratch();
    let path = directory.path().join("store");
    left(&path, true);
    let store = open(&path);
    assert!(matches!(
        store.abandon_sections("c"),
        Err(Error::NothingKept { .. })
    ));
    assert!(matches!(
        store.abandon_sections("d"),
        Err(Error::PoolMissing { .. })
    ));
    assert_eq!(store.abandon_sections("a").unwrap(), ["b"]);
    assert_eq!(value(&store, "a"), OLD);
    assert_eq!(names(&store), ["a", "c"]);
    drop(store);
    let store = open(&path);
    assert_eq!(names(&store), ["a", "c"]);
    assert_eq!(files(&path), 4);
    assert_eq!(store.abandon_sections("b").unwrap(), [""; 0]);
    assert_eq!(names(&store), ["a", "b", "c"]);
    assert_eq!(files(&path), 3);
    store.close().unwrap();
    drop(store);
    assert!(ReadOnlyStore::open(&path).unwrap().is_clean());
}

#[test]
fn damaged_records_refuse_the_same_pools_and_nothing_is_lost() {
    type Damage = fn(&Left, &Path);
    let damages: [Damage; 4] = [
        |left, _| put(&left.sections, heap(&left.sections) + 20, &[0xff]),
        |left, _| {
            let head = head(left.client);
            let at = heap(&left.sections) + head.bank_offset(3, 0);
            put(&left.sections, at, &[0xff; 16]);
        },
        |left, path| {
            std::fs::remove_file(path.join("puddles").join(left.sections.uuid.to_string()))
                .unwrap();
        },
        |left, _| left.sections.file.set_len(UNIT / 2).unwrap(),
    ];
    for (number, damage) in damages.into_iter().enumerate() {
        let directory = scratch();
        let path = directory.path().join("store");
        let left = left(&path, false);
        damage(&left, &path);
        let store = open(&path);
        assert_eq!(names(&store), ["c"], "{number}");
        let error = store.open_pool("a").unwrap_err();
        assert!(
            error.to_string().contains("its records are damaged"),
            "{error}"
        );
        let listed = store.interrupted().unwrap();
        assert!(listed[0].damage.is_some());
        drop(store);
        let store = open(&path);
        assert_eq!(store.abandon_sections("a").unwrap(), ["b"]);
        assert_eq!(value(&store, "a"), OLD);
        store.abandon_sections("b").unwrap();
        assert_eq!(names(&store), ["a", "b", "c"]);
    }
}

pub fn host_lists_nothing(client: &Embedded) -> bool {
    client.interrupted().unwrap().is_empty()
}

/// One client is gone while others work.
#[test]
fn a_client_that_is_gone_keeps_its_pools_from_others() {
    let directory = scratch();
    let path = directory.path().join("store");
    create(&path).close().unwrap();
    let host = Host::open(&path, open_options()).unwrap();
    let [gone, other] = [(); 2].map(|()| host.client().unwrap());
    gone.create_pool("a", &spec()).unwrap();
    other.create_pool("b", &spec()).unwrap();
    let sections = sections_of(&gone);
    record(&sections, gone.id(), 1, 1, true);
    let client = gone.id();
    drop(gone);
    host.recover_client(client).unwrap();
    assert!(matches!(
        other.open_pool("a"),
        Err(Error::PoolInterrupted { .. })
    ));
    // Another time changes nothing, until the section has ended.
    host.recover_client(client).unwrap();
    assert_eq!(other.interrupted().unwrap().len(), 1);
    record(&sections, client, 1, 2, false);
    host.recover_client(client).unwrap();
    assert!(host_lists_nothing(&other));
    other.open_pool("a").unwrap();
}

/// A quarantined log and a section: both have to be settled.
#[test]
fn a_quarantined_log_does_not_lose_the_sections() {
    let directory = scratch();
    let path = directory.path().join("store");
    let store = create(&path);
    store.create_pool("a", &spec()).unwrap();
    let log = Space::new(&store).log(&store, 5);
    let damaged = heap(&log.parts[0]) + 16;
    let mut byte = [0];
    log.parts[0].file.read_exact_at(&mut byte, damaged).unwrap();
    put(&log.parts[0], damaged, &[byte[0] ^ 0xff]);
    let sections = sections_of(&store);
    let client = store.id();
    record(&sections, client, 0, 1, true);
    drop(store);
    let store = open(&path);
    assert!(matches!(
        store.open_pool("a"),
        Err(Error::PoolQuarantined { .. })
    ));
    assert!(matches!(
        store.take_over(client),
        Err(Error::PoolQuarantined { .. })
    ));
    drop(store);
    let before = snapshot(&path);
    let store = open(&path);
    assert_eq!(store.interrupted().unwrap().len(), 1);
    drop(store);
    assert!(
        snapshot(&path) == before,
        "nothing can be done, so nothing is written"
    );
    // The log is whole again.
    let file = path.join("quarantine").join(log.parts[0].uuid.to_string());
    let mut bytes = std::fs::read(&file).unwrap();
    bytes[damaged as usize] = byte[0];
    std::fs::write(&file, bytes).unwrap();
    let store = open(&path);
    store.retry_quarantined("a").unwrap();
    assert!(matches!(
        store.open_pool("a"),
        Err(Error::PoolInterrupted { .. })
    ));
    let taken = store.take_over(client).unwrap();
    record(&taken.puddles[0], client, 0, 2, false);
    store.sections_done(client).unwrap();
    store.close().unwrap();
    drop(store);
    assert_eq!(names(&open(&path)), ["a"]);
    assert_eq!(files(&path), 1);
}

/// A store whose client has ended in a section, with a transaction under way over `a` and `b`. The file of `b` is gone;
/// its path and bytes are returned.
fn without_b(path: &Path) -> (durum_service::Uuid, PathBuf, Vec<u8>) {
    let store = create(path);
    let [a, b] = ["a", "b"].map(|name| store.create_pool(name, &spec()).unwrap());
    let mut log = Space::new(&store).log(&store, 0xf1);
    for pool in [&a, &b] {
        put(root(pool), PLACE, &OLD.to_le_bytes());
        log.undo(root(pool).address + PLACE, &OLD.to_le_bytes());
        put(root(pool), PLACE, &TORN.to_le_bytes());
    }
    record(&sections_of(&store), store.id(), 0, 1, true);
    let client = store.id();
    let file = path.join("puddles").join(root(&b).uuid.to_string());
    drop((store, a, b, log));
    let bytes = std::fs::read(&file).unwrap();
    std::fs::remove_file(&file).unwrap();
    (client, file, bytes)
}

/// What was recovered of `a` is changed by nobody before all is: it may be recovered again.
#[test]
fn sections_wait_for_pools_whose_files_are_missing() {
    let directory = scratch();
    let path = directory.path().join("store");
    let (client, file, bytes) = without_b(&path);
    for _ in 0..2 {
        let store = open(&path);
        let opened = store.open_pool("a").map(drop);
        assert!(matches!(opened, Err(Error::PoolInterrupted { .. })));
        let abandoned = store.abandon_sections("b").map(drop);
        for refused in [
            store.open_pool("b").map(drop),
            abandoned,
            store.take_over(client).map(drop),
        ] {
            assert!(
                matches!(refused, Err(Error::PoolRefused { .. })),
                "{refused:?}"
            );
        }
    }
    let before = snapshot(&path);
    drop(open(&path));
    assert!(
        snapshot(&path) == before,
        "nothing can be done, so nothing is written"
    );
    std::fs::write(&file, &bytes).unwrap();
    let store = open(&path);
    let taken = store.take_over(client).unwrap();
    for pool in &taken.pools {
        assert_eq!(word(&pool.root, PLACE), OLD);
    }
    record(&taken.puddles[0], client, 0, 2, false);
    store.sections_done(client).unwrap();
    store.close().unwrap();
    drop(store);
    assert_eq!(names(&open(&path)), ["a", "b"]);
}

#[test]
fn sections_go_on_without_a_pool_whose_part_is_given_up() {
    let directory = scratch();
    let path = directory.path().join("store");
    let (client, _, _) = without_b(&path);
    drop(open(&path));
    let store = open(&path);
    store.give_up("b").unwrap();
    let opened = store.open_pool("a").map(drop);
    assert!(matches!(opened, Err(Error::PoolInterrupted { others, .. }) if others.is_empty()));
    let taken = store.take_over(client).unwrap();
    assert_eq!(taken.pools.len(), 1);
    assert_eq!(word(&taken.pools[0].root, PLACE), OLD);
    record(&taken.puddles[0], client, 0, 2, false);
    store.sections_done(client).unwrap();
    store.close().unwrap();
    assert_eq!(files(&path), 1);
    // And when the other one is accepted half done as well, nothing is left.
    let directory = scratch();
    let path = directory.path().join("store");
    without_b(&path);
    let store = open(&path);
    assert_eq!(store.abandon_sections("a").unwrap(), ["b"]);
    assert_eq!(value(&store, "a"), OLD);
    store.give_up("b").unwrap();
    assert!(host_lists_nothing(&store));
    assert_eq!(files(&path), 1);
}
