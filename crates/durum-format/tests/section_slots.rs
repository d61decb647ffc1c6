//! Slots of a puddle of sections: which record counts, what a crash tears, and what is refused.

mod common;

use common::slots::{Image, SLOT, STACK_WORDS, STORE, bytes, code, in_section, salt, seal, slot};
use durum_format::DEFAULT_BASE;
use durum_format::section::{
    BANK_WORDS, Bits, BitsChange, Damage, Flaw, FrameLink, LIVE_INS_MAX, LOCKS_MAX, Lock,
    RecordWriter, Redo, SEQUENCE_END, StackTop, State, bank_of,
};

/// One of the two banks.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Case {
    Nothing,
    Torn,
    Whole(u64),
    /// A whole record that names a frame that is not there.
    WithoutFrame(u64),
}

fn put(image: &mut Image, bank: usize, case: Case) {
    match case {
        Case::Nothing => {}
        Case::Torn => image.banks[bank][1] = 7,
        Case::Whole(sequence) | Case::WithoutFrame(sequence) => {
            let link = FrameLink {
                index: 3,
                checksum: 5,
            };
            let frame = (case != Case::Whole(sequence)).then_some(link);
            let top = StackTop { free: 20, frame };
            let words = &mut image.banks[bank];
            let writer = RecordWriter::new(words, sequence, code(1)).stack(top);
            writer.finish(&salt()).unwrap();
        }
    }
}

/// What two banks come to, as docs/format/section.md tells it: every pair of cases.
#[test]
fn every_pair_of_banks_is_read_as_the_rule_says() {
    let cases: Vec<Case> = [Case::Nothing, Case::Torn]
        .into_iter()
        .chain((1..=6).flat_map(|number| [Case::Whole(number), Case::WithoutFrame(number)]))
        .collect();
    let pairs = cases
        .iter()
        .flat_map(|first| cases.iter().map(move |second| [*first, *second]));
    for pair in pairs {
        let mut image = Image::default();
        put(&mut image, 0, pair[0]);
        put(&mut image, 1, pair[1]);
        let bytes = image.bytes();
        let found = slot(&bytes).current();
        let numbers = pair.map(|case| match case {
            Case::Whole(number) | Case::WithoutFrame(number) => Some(number),
            _ => None,
        });
        let other_bank = (0..2).find(|bank| numbers[*bank].is_some_and(|n| bank_of(n) != *bank));
        let whole = pair.iter().filter_map(|case| match case {
            Case::Whole(number) => Some(*number),
            _ => None,
        });
        if let Some(bank) = other_bank {
            let Err(Damage::OtherBank { bank: named, .. }) = found else {
                panic!("{pair:?}: {found:?}");
            };
            assert_eq!(named, bank);
        } else if let [Some(even), Some(odd)] = numbers
            && even.abs_diff(odd) != 1
        {
            assert!(
                matches!(found, Err(Damage::Apart { .. })),
                "{pair:?}: {found:?}"
            );
        } else if let Some(number) = whole.max() {
            assert_eq!(in_section(found).sequence, number, "{pair:?}");
        } else if pair[0] == Case::Nothing {
            assert!(matches!(found, Ok(State::Unused)), "{pair:?}: {found:?}");
        } else {
            let Err(Damage::NoRecord { flaws, .. }) = found else {
                panic!("{pair:?}: {found:?}");
            };
            let expected = pair.map(|case| match case {
                Case::Nothing => Flaw::Missing,
                Case::WithoutFrame(_) => Flaw::Frame(3),
                _ => Flaw::Record,
            });
            assert_eq!(flaws, expected, "{pair:?}");
        }
    }
}

/// Which record counts of what the words of `old`, some of which became those of `new`, are: every mixture.
fn torn_between(old: &Image, new: &Image, expected: u64) {
    let (before, after) = (old.words(), new.words());
    let changed: Vec<usize> = (0..before.len())
        .filter(|at| before[*at] != after[*at])
        .collect();
    assert!(
        (1..=16).contains(&changed.len()),
        "{} words change",
        changed.len()
    );
    let all = (1u32 << changed.len()) - 1;
    for mask in 0..=all {
        let mut words = before.clone();
        for (bit, at) in changed.iter().enumerate() {
            if mask >> bit & 1 == 1 {
                words[*at] = after[*at];
            }
        }
        let bytes = bytes(&words);
        let found = slot(&bytes).current().map(|state| state.sequence());
        let sequence = if mask == all { expected } else { expected - 1 };
        assert_eq!(found, Ok(sequence), "{mask:b}");
    }
}

#[test]
fn a_record_that_a_crash_tears_leaves_the_one_before() {
    let lock = |index| Lock::named(index);
    let mut image = Image::default();
    // One line, over nothing.
    for sequence in 1..=4 {
        let old = image.clone();
        image.record(sequence, |writer| {
            writer.live_ins(&[sequence; 4]).lock(lock(sequence))
        });
        torn_between(&old, &image, sequence);
    }
    // A longer one over a shorter one, then a shorter one over that, then none.
    let old = image.clone();
    image.record(5, |writer| {
        let redo = Redo {
            address: DEFAULT_BASE,
            bytes: Redo::WHOLE,
            value: 4,
        };
        let bits = Bits {
            address: DEFAULT_BASE + 64,
            mask: 2,
            change: BitsChange::Taken,
        };
        let writer = writer.live_ins(&[9; 5]).lock(lock(3)).lock(lock(4));
        writer
            .stack(StackTop {
                free: 3,
                frame: None,
            })
            .redo(redo)
            .bits(bits)
    });
    torn_between(&old, &image, 5);
    for sequence in [6, 7, 8] {
        let old = image.clone();
        image.idle(sequence);
        torn_between(&old, &image, sequence);
    }
    let old = image.clone();
    image.section(9);
    torn_between(&old, &image, 9);
}

/// One fence makes a record durable with the frame that it names.
#[test]
fn a_record_counts_with_its_frames_or_not_at_all() {
    let mut image = Image::default();
    image.section(1);
    let old = image.clone();
    let below = StackTop {
        free: 2,
        frame: None,
    };
    let outer = image.frame(2, below, &[1, 2]);
    let top = StackTop {
        free: 10,
        frame: Some(outer),
    };
    image.record(2, |writer| writer.live_ins(&[7]).stack(top));
    torn_between(&old, &image, 2);
    // Two at a time, and the words of an older frame.
    image.section(3);
    let old = image.clone();
    let outer = image.frame(2, below, &[3, 2]);
    let inner = image.frame(
        7,
        StackTop {
            free: 7,
            frame: Some(outer),
        },
        &[],
    );
    let top = StackTop {
        free: 12,
        frame: Some(inner),
    };
    image.record(4, |writer| writer.stack(top));
    torn_between(&old, &image, 4);
    // What the older record names was written over meanwhile.
    image.section(5);
    image.frame(2, below, &[4, 4]);
    let bytes = image.bytes();
    assert_eq!(in_section(slot(&bytes).current()).sequence, 5);
}

/// A bit of the newest record changes: nobody can tell that from a record that a crash tore. One of the other record,
/// which nobody needs, changes: nothing happens. One of each: that is damage.
#[test]
fn a_changed_bit_leaves_the_other_record_and_two_are_damage() {
    let mut image = Image::default();
    image.record(8, |writer| writer.live_ins(&[1, 2]).lock(Lock::named(3)));
    image.record(9, |writer| {
        writer.live_ins(&[1, 2, 3, 4]).lock(Lock::named(3))
    });
    let flip = |image: &mut Image, bank: usize, bit: usize| {
        image.banks[bank][bit / 64] ^= 1 << (bit % 64);
    };
    for (bank, bits, left) in [(1, 8 * 64, 8), (0, 6 * 64, 9)] {
        for bit in 0..bits {
            let mut changed = image.clone();
            flip(&mut changed, bank, bit);
            let bytes = changed.bytes();
            assert_eq!(
                in_section(slot(&bytes).current()).sequence,
                left,
                "bit {bit}"
            );
            flip(&mut changed, 1 - bank, bit % 256);
            let damage = slot(&changed.bytes()).current().unwrap_err();
            assert!(matches!(damage, Damage::NoRecord { slot: SLOT, .. }));
            assert_eq!(damage.slot(), SLOT);
        }
    }
}

/// Counts that no thread writes, behind checksums that fit, never lead anywhere.
#[test]
fn forged_counts_are_refused() {
    let mut image = Image::default();
    image.section(1);
    for word in 4..BANK_WORDS {
        image.banks[1][word] = Lock::named(word as u64).to_word();
    }
    let limits = [LOCKS_MAX, LIVE_INS_MAX, 0, 0].map(|max| max as u64);
    let mut refused = 0;
    let mut try_counts = |counts: [u8; 4]| {
        let [locks, live_ins, redo, more] = counts.map(u64::from);
        let bits = more & 0x1f;
        let others = locks.saturating_sub(1);
        let words = 4 + live_ins + others + (more >> 7) + 2 * (redo + bits);
        image.banks[1][0] = u64::from(u32::from_le_bytes(counts)) << 32;
        image.banks[1][3] = if locks == 0 {
            0
        } else {
            Lock::named(3).to_word()
        };
        let is_room = words <= BANK_WORDS as u64;
        if is_room {
            image.seal_record(1, words as usize);
        }
        let bytes = image.bytes();
        let found = slot(&bytes).current();
        let fits = locks <= limits[0] && live_ins <= limits[1] && redo <= 8 && bits <= 16;
        match found {
            Ok(State::InSection(record)) => {
                assert!(is_room && fits && more & 0x60 == 0);
                let found = (
                    record.locks().count() as u64,
                    record.live_ins().len() as u64,
                );
                assert_eq!(found, (locks, live_ins));
            }
            // Longer than its bank: no checksum can fit.
            Ok(State::Unused) => assert!(!is_room),
            Err(Damage::Record { .. }) => {
                assert!(is_room);
                refused += 1;
            }
            other => panic!("{counts:?}: {other:?}"),
        }
    };
    for byte in 0..=u8::MAX {
        try_counts([byte, 0, 0, 0]);
        try_counts([0, byte, 0, 0]);
        try_counts([0, 0, byte, 0]);
        try_counts([0, 0, 0, byte]);
        try_counts([byte, 128, 8, 0x90]);
        try_counts([64, byte, 8, 0x90]);
        try_counts([64, 128, byte, 0x90]);
        try_counts([64, 128, 8, byte]);
        try_counts([byte; 4]);
    }
    assert!(refused > 500);
}

/// What stands at which word, and what the refusal says. All checksums fit.
#[test]
fn each_field_with_an_impossible_value_is_refused_by_its_name() {
    let mut image = Image::default();
    let (lock, redo) = (Lock::at(DEFAULT_BASE + 4).unwrap(), DEFAULT_BASE + 0x100);
    let outer = image.frame(
        2,
        StackTop {
            free: 2,
            frame: None,
        },
        &[],
    );
    let top = StackTop {
        free: 9,
        frame: Some(outer),
    };
    image.record(1, |writer| {
        let writer = writer
            .live_ins(&[1])
            .lock(lock)
            .lock(Lock::named(2))
            .stack(top);
        let writer = writer.redo(Redo {
            address: redo,
            bytes: Redo::WHOLE,
            value: 1,
        });
        writer.bits(Bits {
            address: redo + 8,
            mask: 1,
            change: BitsChange::Taken,
        })
    });
    let idle_counts = image.banks[1][0];
    let expect = |word: usize, value: u64, message: &str| {
        let mut changed = image.clone();
        changed.banks[1][word] = value;
        changed.seal_record(1, 11);
        let refused = slot(&changed.bytes()).current().unwrap_err().to_string();
        assert!(
            refused.contains(message),
            "word {word}, {value:#x}: {refused}"
        );
    };
    expect(0, idle_counts | 0x20 << 56, "counts in word 0 of bank 1");
    expect(1, SEQUENCE_END + 1, "sequence number in word 1");
    expect(1, 2, "record 2 lies in bank 1");
    expect(2, 0, "counts in word 0 of bank 1");
    for wrong in [0, 2, DEFAULT_BASE + 1, 1 << 47, 1 << 62] {
        expect(3, wrong, "lock in word 3");
        expect(5, wrong, "lock in word 5");
    }
    let stack = |free: u64, frame: u64, checksum: u64| free | frame << 16 | checksum << 32;
    let sum = u64::from(outer.checksum);
    expect(
        6,
        stack(STACK_WORDS as u64 + 1, 3, sum),
        "a first free word in the stack",
    );
    expect(6, stack(9, 0, 1), "no checksum of no frame");
    expect(6, stack(4, 3, sum), "a frame below the first free word");
    expect(6, stack(9, 8, sum), "a frame below the first free word");
    let outside = [
        0,
        8,
        redo + 4,
        STORE.start - 8,
        STORE.end - 4,
        STORE.end,
        u64::MAX - 7,
    ];
    for wrong in outside {
        expect(7, wrong, "address of a word to write again in word 7");
        expect(9, wrong, "address of a word of a bitmap in word 9");
    }
    expect(7, redo, "bytes to write again in word 7");
    // A lock where there is none.
    let mut idle = Image::default();
    idle.section(1);
    idle.banks[1][3] = 4;
    idle.seal_record(1, 5);
    let refused = slot(&idle.bytes()).current().unwrap_err().to_string();
    assert!(refused.contains("first lock in word 3"), "{refused}");
    idle.idle(1);
    idle.banks[1][3] = 4;
    seal(&mut idle.banks[1][..4]);
    assert!(slot(&idle.bytes()).current().is_err());
    // What no section takes, and what lies elsewhere.
    for (address, message) in [
        (redo, "bits that are freed"),
        (redo + 3, "a multiple of 8"),
        (STORE.end + 1, "in the store's range"),
    ] {
        let mut idle = Image::default();
        idle.idle(1);
        idle.banks[1][0] |= 1 << 56;
        idle.banks[1][4..6].copy_from_slice(&[address, 1]);
        seal(&mut idle.banks[1][..6]);
        let refused = slot(&idle.bytes()).current().unwrap_err().to_string();
        assert!(refused.contains("word of a bitmap in word 4"), "{refused}");
        assert!(refused.contains(message), "{refused}");
    }
}
