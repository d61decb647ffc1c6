//! Puddles of sections: images, heads, and what a thread writes is what is read.

mod common;

use common::slots::{
    Image, SALT, SLOT, STACK_WORDS, STORE, bytes, code, head, in_section, salt, slot,
};
use common::{flips, hex, uuid};
use durum_format::puddle::{PuddleHeader, PuddleKind, heap_size};
use durum_format::section::{
    BANK_WORDS, BITS_MAX, Bits, BitsChange, Code, FRAME_HEAD_WORDS, FrameLink, FrameWriter, Head,
    LIVE_INS_MAX, LOCKS_MAX, Lock, RECORD_HEAD_WORDS, RECORD_WORDS_MAX, REDO_MAX, RecordWriter,
    Redo, SEQUENCE_END, SLOTS_OFFSET, STACK_SIZE_DEFAULT, STACK_SIZE_MAX, Sections, Slot, SlotSalt,
    StackTop, State, bank_of, slot_size, slots_max,
};
use durum_format::{DEFAULT_BASE, Fault, FormatError, UNIT};
use proptest::prelude::*;

/// Put together by hand from docs/format/section.md: a head.
const HEAD: &str = "
    445552554d5345430100000000000000202122232425262728292a2b2c2d2e2f
    a8a7a6a5a4a3a2a10200000000010000000000000000000000000000a8fa2cab";
/// A record of one line, in slot 1 of that puddle.
const LINE: &str = "
    341f2dc1010400000700000000000000ddddccccbbbbaaaa4000200000200000
    0100000000000000020000000000000003000000000000000400000000000000";
/// A record that has something of everything, and the frame that it names, at word 2 of the stack.
const ALL: &str = "
    6b6b2afd0201018108000000000000000100ccccbbbbaaaa5500000000000080
    9900000000000000440020000020000009000300f49a4b5c48002000002000ff
    341200000000000000042000002000000000000000010000";
const FRAME: &str = "
    f49a4b5c02000000020000000000000004003333222211110700000000000000
    0800000000000000";
/// A record of no section.
const IDLE: &str = "0c267f1e00000000090000000000000000000000000000000000000000000000";
/// One that has freed something.
const IDLE_FREED: &str = "
    a3ae5302000000010a0000000000000000000000000000000000000000000000
    01042000002000000000000000010000";

fn words(image: &str) -> Vec<u64> {
    let bytes = hex(image);
    let words = bytes.as_chunks::<8>().0.iter();
    words.map(|word| u64::from_le_bytes(*word)).collect()
}

fn puddle() -> PuddleHeader {
    PuddleHeader {
        kind: PuddleKind::Sections,
        uuid: uuid(1),
        owner: head().client,
        address: DEFAULT_BASE,
        size: UNIT,
        is_root: false,
    }
}

fn read<'a>(puddle: &PuddleHeader, heap: &'a [u8]) -> Result<Sections<'a>, FormatError> {
    Sections::of(puddle, heap, heap.len() as u64, STORE)
}

/// A heap that begins so.
fn heap(beginning: &[u8]) -> Vec<u8> {
    let mut heap = beginning.to_vec();
    heap.resize(heap_size(UNIT) as usize, 0);
    heap
}

#[test]
fn the_images_of_version_1_are_read_and_written() {
    assert_eq!(head().encode().as_slice(), hex(HEAD));
    assert_eq!(Head::parse(&hex(HEAD), UNIT), Ok(head()));
    let mut image = Image::default();

    // What a thread writes.
    let lock = Lock::at(DEFAULT_BASE + 0x20_0040).unwrap();
    let writer = RecordWriter::new(&mut image.banks[1], 7, code(0xdddd));
    let line = writer
        .live_ins(&[1, 2])
        .live_ins(&[3, 4])
        .lock(lock)
        .finish(&salt());
    assert_eq!(line.unwrap().bytes, 64, "one line");
    assert_eq!(image.banks[1][..8], words(LINE));
    let inner = Code::new(0x1111_2222_3333, 4).unwrap();
    let below = StackTop {
        free: 2,
        frame: None,
    };
    let writer = FrameWriter::new(&mut image.stack[2..], inner, below);
    let frame = writer.live_ins(&[7, 8]).finish(&salt()).unwrap();
    assert_eq!(
        (frame.bytes, image.stack[2..7].to_vec()),
        (40, words(FRAME))
    );
    let link = FrameLink {
        index: 2,
        checksum: frame.checksum,
    };
    let top = StackTop {
        free: 9,
        frame: Some(link),
    };
    let locks = [
        Lock::named(0x55),
        Lock::at(DEFAULT_BASE + 0x20_0044).unwrap(),
    ];
    let redo = Redo {
        address: DEFAULT_BASE + 0x20_0048,
        bytes: Redo::WHOLE,
        value: 0x1234,
    };
    let bits = Bits {
        address: DEFAULT_BASE + 0x20_0400,
        mask: 1 << 40,
        change: BitsChange::Taken,
    };
    let writer = RecordWriter::new(&mut image.banks[0], 8, code(1)).live_ins(&[0x99]);
    let writer = writer
        .lock(locks[0])
        .lock(locks[1])
        .stack(top)
        .redo(redo)
        .bits(bits);
    assert_eq!(writer.finish(&salt()).unwrap().bytes, 88);
    assert_eq!(image.banks[0][..11], words(ALL));

    // What is read of it.
    let written = image.bytes();
    let found = in_section(slot(&written).current());
    assert_eq!(
        (found.sequence, found.code, found.stack),
        (8, code(1), Some(top))
    );
    assert!(found.live_ins().eq([0x99]) && found.locks().eq(locks));
    assert!(found.redo().eq([redo]) && found.bits().eq([bits]));
    let frames: Vec<_> = found.frames().collect();
    assert_eq!(frames.len(), 1);
    assert_eq!(
        (frames[0].index, frames[0].code, frames[0].stack),
        (2, inner, below)
    );
    assert!(frames[0].live_ins().eq([7, 8]));

    let writer = RecordWriter::idle(&mut image.banks[1], 9);
    assert_eq!(writer.finish(&salt()).unwrap().bytes, 32);
    assert_eq!(image.banks[1][..4], words(IDLE));
    let state = slot(&image.bytes()).current().unwrap().sequence();
    assert_eq!(state, 9);
    let freed = Bits {
        change: BitsChange::Freed,
        ..bits
    };
    let writer = RecordWriter::idle(&mut image.banks[0], 10).bits(freed);
    assert_eq!(writer.finish(&salt()).unwrap().bytes, 48);
    assert_eq!(image.banks[0][..6], words(IDLE_FREED));
    let bytes = image.bytes();
    let Ok(State::Idle(found)) = slot(&bytes).current() else {
        panic!("it is in no section");
    };
    assert!(found.sequence == 10 && found.bits().eq([freed]));
}

#[test]
fn every_changed_byte_of_the_head_is_refused() {
    let mut whole = heap(&head().encode());
    whole[SLOTS_OFFSET as usize + 8] = 1;
    assert!(read(&puddle(), &whole).is_ok());
    for at in 0..SLOTS_OFFSET as usize {
        for mask in [1, 0x80, 0xff] {
            whole[at] ^= mask;
            let refused = read(&puddle(), &whole);
            assert!(refused.is_err(), "byte {at}");
            whole[at] ^= mask;
        }
    }
    whole[8] = 2;
    let newer = read(&puddle(), &whole).unwrap_err();
    assert_eq!(newer.fault(), Fault::OtherVersion);
    for (at, changed) in flips(&head().encode()) {
        assert!(Head::parse(&changed, UNIT).is_err(), "byte {at}");
    }
}

#[test]
fn slots_that_do_not_fit_are_refused() {
    assert_eq!(slots_max(UNIT, STACK_SIZE_DEFAULT), 31);
    let with = |slots, stack_size| {
        let head = Head {
            slots,
            stack_size,
            ..head()
        };
        Head::parse(&head.encode(), UNIT)
    };
    for (slots, stack_size) in [
        (1, 64),
        (31, STACK_SIZE_DEFAULT),
        (3, STACK_SIZE_MAX),
        (494, 128),
    ] {
        let head = with(slots, stack_size).unwrap();
        let end = head.slot_offset(slots - 1) + slot_size(stack_size);
        assert!(end <= heap_size(UNIT));
    }
    for (slots, stack_size) in [
        (0, 64),
        (32, STACK_SIZE_DEFAULT),
        (4, STACK_SIZE_MAX),
        (u32::MAX, 64),
        (1, 0),
        (1, 8),
        (1, STACK_SIZE_MAX + 64),
        (1, u32::MAX),
    ] {
        assert!(matches!(
            with(slots, stack_size),
            Err(FormatError::Field { .. })
        ));
    }
}

#[test]
fn sections_of_another_client_and_what_is_cut_short_are_refused() {
    let mut image = heap(&head().encode());
    image[SLOTS_OFFSET as usize..][..4096 + 256].copy_from_slice(&Image::default().bytes());
    let refusal = |puddle: &PuddleHeader, heap: &[u8]| read(puddle, heap).unwrap_err().to_string();
    let other = PuddleHeader {
        owner: uuid(3),
        ..puddle()
    };
    assert!(refusal(&other, &image).contains("client"));
    let other = PuddleHeader {
        kind: PuddleKind::Records,
        ..puddle()
    };
    assert!(refusal(&other, &image).contains("kind"));
    let end = head().slot_offset(2) as usize;
    let sections = read(&puddle(), &image[..end]).unwrap();
    assert_eq!(sections.slots().count(), 2);
    assert!(sections.slot(2).is_none());
    // Slots in which nothing lies are not given.
    let with = |used: u64| Sections::of(&puddle(), &image, used, STORE).unwrap();
    for (used, slots) in [
        (0, 0),
        (4096, 0),
        (4097, 1),
        (8448, 1),
        (8449, 2),
        (1 << 40, 2),
    ] {
        assert_eq!(with(used).slots().count(), slots);
    }
    for len in [end - 1, SLOTS_OFFSET as usize, 64, 63, 0] {
        assert!(
            refusal(&puddle(), &image[..len]).contains("cut short"),
            "{len}"
        );
    }
}

/// The crash: the head of a new puddle reaches the media in part, and no slot was used. All 256 of them.
#[test]
fn a_head_that_was_torn_as_it_was_made_has_no_slots() {
    let whole = head().encode();
    for mask in 0..1u32 << 8 {
        let mut torn = [0; 64];
        for word in (0..8).filter(|word| mask >> word & 1 == 1) {
            torn[word * 8..][..8].copy_from_slice(&whole[word * 8..][..8]);
        }
        let mut torn = heap(&torn);
        let sections = read(&puddle(), &torn).unwrap();
        let is_whole = torn[..64] == whole;
        assert_eq!(sections.head().is_some(), is_whole);
        assert_eq!(sections.slots().count(), if is_whole { 2 } else { 0 });
        // Somebody has used one.
        let bank = head().bank_offset(0, 1) as usize;
        torn[bank + 8] = 1;
        assert_eq!(read(&puddle(), &torn).is_ok(), is_whole, "{mask:b}");
    }
}

#[test]
fn slots_do_not_meet_and_each_has_a_salt_of_its_own() {
    let mut image = heap(&head().encode());
    let mut written = Image::default();
    written.section(1);
    for number in [0, 1] {
        let at = head().slot_offset(number) as usize;
        image[at..][..slot_size(head().stack_size) as usize].copy_from_slice(&written.bytes());
    }
    assert_eq!(head().stack_offset(0) + 256, head().slot_offset(1));
    let sections = read(&puddle(), &image).unwrap();
    let states: Vec<_> = sections
        .slots()
        .map(|slot| (slot.number(), slot.current()))
        .collect();
    // Written for slot 1: in slot 0 it is what a crash has torn.
    assert!(matches!(
        states[..],
        [(0, Ok(State::Unused)), (1, Ok(State::InSection(_)))]
    ));
    let bytes = written.bytes();
    let stale = Slot::of(SLOT, SlotSalt::new(SALT + 1, SLOT), &bytes, STORE).unwrap();
    assert!(matches!(stale.current(), Ok(State::Unused)));
    assert!(Slot::of(SLOT, salt(), &bytes[..4095], STORE).is_none());
}

#[test]
fn the_largest_record_fits_and_nothing_more_is_written() {
    let lock = |index: usize| Lock::named(index as u64);
    let redo = Redo {
        address: DEFAULT_BASE,
        bytes: Redo::WHOLE,
        value: 1,
    };
    let bits = Bits {
        address: DEFAULT_BASE + 8,
        mask: 1,
        change: BitsChange::Taken,
    };
    // How much of each part, and whether that is written.
    let write = |[live_ins, locks, redos, bitses]: [usize; 4]| {
        let mut image = Image::default();
        let mut writer = RecordWriter::new(&mut image.banks[1], 1, code(1));
        writer = writer.live_ins(&vec![3; live_ins]);
        writer = (0..locks).fold(writer, |writer, index| writer.lock(lock(index)));
        writer = writer.stack(StackTop::default());
        writer = (0..redos).fold(writer, |writer, _| writer.redo(redo));
        writer = (0..bitses).fold(writer, |writer, _| writer.bits(bits));
        let written = writer.finish(&salt())?;
        let bytes = image.bytes();
        let found = in_section(slot(&bytes).current());
        let counts = [
            found.live_ins().len(),
            found.locks().count(),
            found.redo().len(),
            found.bits().len(),
        ];
        assert_eq!(counts, [live_ins, locks, redos, bitses]);
        Some(written.bytes)
    };
    let most = [LIVE_INS_MAX, LOCKS_MAX, REDO_MAX, BITS_MAX];
    assert_eq!(write(most), Some(RECORD_WORDS_MAX * 8));
    assert_eq!(write([0; 4]), Some(40));
    for part in 0..4 {
        let mut more = most;
        for _ in 0..300 {
            more[part] += 1;
            assert_eq!(write(more), None);
            let mut alone = [0; 4];
            alone[part] = more[part];
            assert_eq!(write(alone), None);
        }
    }
}

/// A program stores them there, and the record is made around them.
#[test]
fn live_ins_that_lie_in_their_places_are_as_if_they_were_written() {
    let (given, lock) = ([3, 1, 4, 1, 5], Lock::at(DEFAULT_BASE + 0x40).unwrap());
    let (mut written, mut placed) = ([0; BANK_WORDS], [0; BANK_WORDS]);
    placed[RECORD_HEAD_WORDS..][..given.len()].copy_from_slice(&given);
    let record = RecordWriter::new(&mut written, 1, code(1)).live_ins(&given);
    let same = RecordWriter::new(&mut placed, 1, code(1)).live_ins_in_place(given.len());
    let record = record.lock(lock).lock(Lock::named(1)).finish(&salt());
    assert_eq!(record, same.lock(lock).lock(Lock::named(1)).finish(&salt()));
    assert_eq!(written, placed);
    let many = RecordWriter::new(&mut placed, 1, code(1)).live_ins_in_place(LIVE_INS_MAX + 1);
    assert_eq!(many.finish(&salt()), None);

    let below = StackTop::default();
    let (mut written, mut placed) = ([0; 8], [0; 8]);
    placed[FRAME_HEAD_WORDS..].copy_from_slice(&given);
    let frame = FrameWriter::new(&mut written, code(1), below).live_ins(&given);
    let same = FrameWriter::new(&mut placed, code(1), below).live_ins_in_place(given.len());
    assert_eq!(frame.finish(&salt()), same.finish(&salt()));
    assert_eq!(written, placed);
    let many = FrameWriter::new(&mut placed, code(1), below).live_ins_in_place(given.len() + 1);
    assert_eq!(many.finish(&salt()), None);
}

#[test]
fn parts_come_in_their_order_and_numbers_are_numbers() {
    let mut bank = [0; BANK_WORDS];
    let top = StackTop::default();
    let redo = Redo {
        address: 8,
        bytes: Redo::WHOLE,
        value: 1,
    };
    let bits = Bits {
        address: 8,
        mask: 1,
        change: BitsChange::Taken,
    };
    let mut write = |sequence, parts: &dyn Fn(RecordWriter<'_>) -> RecordWriter<'_>| {
        parts(RecordWriter::new(&mut bank, sequence, code(1))).finish(&salt())
    };
    assert!(write(1, &|writer| writer.redo(redo).bits(bits)).is_some());
    assert!(write(1, &|writer| writer.bits(bits).redo(redo)).is_none());
    assert!(write(1, &|writer| writer.stack(top).lock(Lock::named(1))).is_none());
    assert!(write(1, &|writer| writer.lock(Lock::named(1)).live_ins(&[1])).is_none());
    assert!(write(1, &|writer| writer.stack(top).stack(top)).is_none());
    assert!(
        write(1, &|writer| writer.redo(Redo {
            address: 9,
            bytes: Redo::WHOLE,
            value: 1
        }))
        .is_none()
    );
    assert!(
        write(1, &|writer| writer.bits(Bits {
            address: 12,
            ..bits
        }))
        .is_none()
    );
    for sequence in [0, SEQUENCE_END, u64::MAX] {
        assert!(write(sequence, &|writer| writer).is_none());
        let mut bank = [0; BANK_WORDS];
        assert!(
            RecordWriter::idle(&mut bank, sequence)
                .finish(&salt())
                .is_none()
        );
    }
    assert!(write(SEQUENCE_END - 1, &|writer| writer).is_some());

    // Of no section.
    let mut write = |parts: &dyn Fn(RecordWriter<'_>) -> RecordWriter<'_>| {
        parts(RecordWriter::idle(&mut bank, 1)).finish(&salt())
    };
    let freed = Bits {
        change: BitsChange::Freed,
        ..bits
    };
    assert!(write(&|writer| writer.bits(freed).bits(freed)).is_some());
    assert!(write(&|writer| writer.bits(bits)).is_none());
    assert!(write(&|writer| writer.redo(redo)).is_none());
    assert!(write(&|writer| writer.stack(top)).is_none());
    assert!(write(&|writer| writer.lock(Lock::named(1))).is_none());
    assert!(write(&|writer| writer.live_ins(&[1])).is_none());
    assert!(write(&|writer| (0..=BITS_MAX).fold(writer, |writer, _| writer.bits(freed))).is_none());
}

#[derive(Clone, Debug)]
struct Contents {
    sequence: u64,
    code: u64,
    live_ins: Vec<u64>,
    locks: Vec<Lock>,
    redo: Vec<Redo>,
    bits: Vec<Bits>,
    free: Option<u16>,
}

fn contents() -> impl Strategy<Value = Contents> {
    let address = (0..durum_format::SPACE_SIZE / 8).prop_map(|word| DEFAULT_BASE + word * 8);
    let lock = prop_oneof![
        (1..1u64 << 45).prop_map(|word| Lock::at(word * 4).unwrap()),
        any::<u64>().prop_map(Lock::named),
    ];
    let locks = prop::collection::hash_set(lock, 0..=LOCKS_MAX);
    let change = prop_oneof![
        Just(BitsChange::Taken),
        Just(BitsChange::TakenBlank),
        Just(BitsChange::Freed)
    ];
    let bits = (address.clone(), any::<u64>(), change).prop_map(|(address, mask, change)| Bits {
        address,
        mask,
        change,
    });
    let redo = (address, 1..=u8::MAX, any::<u64>()).prop_map(|(address, bytes, value)| Redo {
        address,
        bytes,
        value,
    });
    let parts = (
        1..SEQUENCE_END,
        1..=u64::MAX,
        prop::collection::vec(any::<u64>(), 0..=LIVE_INS_MAX),
        locks,
        prop::collection::vec(redo, 0..=REDO_MAX),
        prop::collection::vec(bits, 0..=BITS_MAX),
        prop::option::of(0..=STACK_WORDS as u16),
    );
    parts.prop_map(
        |(sequence, code, live_ins, locks, redo, bits, free)| Contents {
            sequence,
            code,
            live_ins,
            locks: locks.into_iter().collect(),
            redo,
            bits,
            free,
        },
    )
}

proptest! {
    #[test]
    fn what_is_written_is_read(contents in contents()) {
        let mut image = Image::default();
        let code = Code::from_word(contents.code).unwrap();
        let bank = &mut image.banks[bank_of(contents.sequence)];
        let mut writer = RecordWriter::new(bank, contents.sequence, code).live_ins(&contents.live_ins);
        for lock in &contents.locks {
            writer = writer.lock(*lock);
        }
        let stack = contents.free.map(|free| StackTop { free, frame: None });
        if let Some(top) = stack {
            writer = writer.stack(top);
        }
        for redo in &contents.redo {
            writer = writer.redo(*redo);
        }
        for bits in &contents.bits {
            writer = writer.bits(*bits);
        }
        writer.finish(&salt()).unwrap();
        let bytes = image.bytes();
        let found = in_section(slot(&bytes).current());
        prop_assert_eq!((found.sequence, found.code, found.stack), (contents.sequence, code, stack));
        prop_assert!(found.live_ins().eq(contents.live_ins));
        prop_assert!(found.locks().eq(contents.locks));
        prop_assert!(found.redo().eq(contents.redo));
        prop_assert!(found.bits().eq(contents.bits));
        prop_assert_eq!(found.frames().count(), 0);
    }

    #[test]
    fn no_words_make_a_slot_fail(words in prop::collection::vec(any::<u64>(), 2 * BANK_WORDS + 8)) {
        let bytes = bytes(&words);
        let _ = slot(&bytes).current();
    }
}
