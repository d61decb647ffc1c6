//! Words that records tell of are written.

use std::path::Path;
use std::sync::Arc;

use durum_format::UNIT;
use durum_format::section::{BANK_WORDS, Bits, BitsChange, RecordWriter, Redo, bank_of};
use durum_service::{Error, Host, PoolGrant, PuddleGrant, PuddleKind, PuddleOwner, Service};

use super::{DONE, OLD, PLACE, code, head, record, sections_of};
use crate::support::{create, heap, open, open_options, put, root, scratch, spec, word};

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
