//! Puddles of sections: the head, and the slot of a thread.

use durum_format::section::{
    BANK_WORDS, FrameWriter, Head, RecordWriter, Slot, SlotSalt, StackTop, State,
};
use durum_format::{DEFAULT_BASE, SPACE_SIZE, UNIT};

/// The head of a puddle of sections; and a slot: how many lines its stack has, how many words its banks begin with, and
/// these words. Once more with checksums that fit.
pub fn sections(data: &[u8]) {
    for bytes in [data.to_vec(), super::with_checksum(data, 60)] {
        super::same_or_error(Head::parse(&bytes, UNIT), |head| {
            assert_eq!(head.encode().as_slice(), &bytes[..64]);
            assert!(head.slot_offset(head.slots) <= durum_format::puddle::heap_size(UNIT));
        });
    }
    let [lines, even, odd, data @ ..] = data else {
        return;
    };
    let mut given = data.as_chunks::<8>().0.iter();
    let mut take = |count: usize, size: usize| {
        let words = given
            .by_ref()
            .take(count)
            .map(|word| u64::from_le_bytes(*word));
        let mut words: Vec<u64> = words.collect();
        words.resize(size, 0);
        words
    };
    let mut banks = [usize::from(*even), usize::from(*odd)].map(|count| take(count, BANK_WORDS));
    let size = (1 + usize::from(lines % 32)) * 8;
    let mut stack = take(size, size);
    let salt = SlotSalt::new(7, 3);
    check(&banks, &stack, salt);
    for bank in &mut banks {
        seal_all(bank, &mut stack, salt);
    }
    check(&banks, &stack, salt);
}

fn bytes(words: &[u64]) -> Vec<u8> {
    words.iter().flat_map(|word| word.to_le_bytes()).collect()
}

/// The frame that a word names which says how the stack is used.
fn frame_of(word: u64) -> Option<usize> {
    usize::from((word >> 16) as u16).checked_sub(1)
}

/// Puts right the checksums of a record and of the frames that it names, the outermost one first.
fn seal_all(bank: &mut [u64], stack: &mut [u64], salt: SlotSalt) {
    let [locks, live_ins, redo, more] = ((bank[0] >> 32) as u32).to_le_bytes().map(usize::from);
    let top = 4 + live_ins + locks.saturating_sub(1);
    let has_stack = more >> 7;
    let words = top + has_stack + 2 * (redo + (more & 0x1f));
    if words > bank.len() {
        return;
    }
    let mut frames = Vec::new();
    let mut next = (has_stack == 1).then(|| frame_of(bank[top])).flatten();
    while let Some(index) = next
        && index + 3 <= stack.len()
        && frames.last().is_none_or(|last| index < *last)
    {
        frames.push(index);
        next = frame_of(stack[index + 1]);
    }
    let with = |word: u64, checksum: u32| word & 0xffff_ffff | u64::from(checksum) << 32;
    let mut before = None;
    for index in frames.into_iter().rev() {
        if let Some(checksum) = before {
            stack[index + 1] = with(stack[index + 1], checksum);
        }
        let end = index + 3 + usize::from((stack[index] >> 32) as u8);
        let frame = &mut stack[index..];
        let frame = match frame.get_mut(..end - index) {
            Some(frame) => frame,
            None => return,
        };
        let checksum = salt.checksum(&bytes(frame));
        frame[0] = frame[0] >> 32 << 32 | u64::from(checksum);
        before = Some(checksum);
    }
    if let Some(checksum) = before {
        bank[top] = with(bank[top], checksum);
    }
    let checksum = salt.checksum(&bytes(&bank[..words]));
    bank[0] = bank[0] >> 32 << 32 | u64::from(checksum);
}

/// What is accepted is what would have been written, and frames lead downwards.
fn check(banks: &[Vec<u64>; 2], stack: &[u64], salt: SlotSalt) {
    let slot = bytes(&[&banks[0], &banks[1], stack].concat());
    let store = DEFAULT_BASE..DEFAULT_BASE + SPACE_SIZE;
    let slot = Slot::of(3, salt, &slot, store).expect("it has two banks");
    let mut bank = [0; BANK_WORDS];
    let (written, sequence) = match slot.current() {
        Err(damage) => {
            assert_eq!(damage.slot(), 3);
            return assert!(!damage.to_string().is_empty());
        }
        Ok(State::Unused) => return,
        Ok(State::Idle(idle)) => {
            let writer = RecordWriter::idle(&mut bank, idle.sequence);
            let writer = idle.bits().fold(writer, RecordWriter::bits);
            (writer.finish(&salt), idle.sequence)
        }
        Ok(State::InSection(record)) => {
            let live_ins: Vec<u64> = record.live_ins().collect();
            let writer = RecordWriter::new(&mut bank, record.sequence, record.code);
            let mut writer = writer.live_ins(&live_ins);
            writer = record.locks().fold(writer, RecordWriter::lock);
            writer = record.stack.into_iter().fold(writer, RecordWriter::stack);
            writer = record.redo().fold(writer, RecordWriter::redo);
            writer = record.bits().fold(writer, RecordWriter::bits);
            check_frames(
                record.frames(),
                record.stack.unwrap_or_default(),
                stack,
                salt,
            );
            (writer.finish(&salt), record.sequence)
        }
    };
    let words = written.expect("what is accepted can be written").bytes / 8;
    let found = &banks[durum_format::section::bank_of(sequence)];
    assert_eq!(bank[..words], found[..words]);
}

fn check_frames(
    frames: durum_format::section::Frames<'_>,
    top: StackTop,
    stack: &[u64],
    salt: SlotSalt,
) {
    let (mut link, mut end) = (top.frame, usize::from(top.free));
    for frame in frames {
        let named = link.expect("nothing but what is named is found");
        assert_eq!(frame.index, named.index);
        let live_ins: Vec<u64> = frame.live_ins().collect();
        let mut place = vec![0; 3 + live_ins.len()];
        let writer = FrameWriter::new(&mut place, frame.code, frame.stack).live_ins(&live_ins);
        let written = writer
            .finish(&salt)
            .expect("what is accepted can be written");
        assert_eq!(written.checksum, named.checksum);
        let start = usize::from(frame.index);
        assert!(start + place.len() <= end);
        assert_eq!(place, stack[start..start + place.len()]);
        (link, end) = (frame.stack.frame, start.min(frame.stack.free.into()));
    }
    assert_eq!(link, None, "all that are named are found");
}
