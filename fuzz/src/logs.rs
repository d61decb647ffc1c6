//! Logs, what recovery plans from them, and the log space.

use durum_format::Uuid;
use durum_format::crc::{Crc, crc32c};
use durum_format::home::Answer;
use durum_format::log::{self, LogArea, LogHeader, Plan, RangeWord, Salt, Write};
use durum_format::log_space::LogSpace;
use durum_format::reach::Reach;

use super::{same_or_error, with_checksum};

/// A log puddle's heap as it is, and with its header put right.
pub fn log_bytes(data: &[u8]) {
    let mut fixed = data.to_vec();
    if fixed.len() >= log::LOG_AREA_OFFSET as usize {
        let log_id = u64::from_le_bytes(data[16..24].try_into().unwrap_or_default());
        let capacity = (data.len() - log::LOG_AREA_OFFSET as usize) as u64;
        let is_continuation = data[12] & 1 == 1;
        let header = LogHeader {
            log_id,
            capacity,
            owner: Uuid([3; 16]),
            is_continuation,
        };
        fixed[..64].copy_from_slice(&header.encode());
    }
    // The same with a reach that fits.
    let mut reaching = fixed.clone();
    if let Some(word) = reaching.get_mut(log::REACH_OFFSET as usize..log::LOG_AREA_OFFSET as usize)
    {
        let lines = (data.len() as u64 - log::LOG_AREA_OFFSET) / 64;
        let reach = Reach {
            bytes: u64::from(data[13]) % (lines + 1) * 64,
            is_chained: data[14] & 1 == 1,
        };
        word[..8].copy_from_slice(&reach.to_u64().to_le_bytes());
    }
    for heap in [data, &fixed, &reaching] {
        same_or_error(LogArea::parse(heap), |area| recover(area, heap.len()));
    }
}

/// A log made of entries whose checksums are right and whose fields are the input's: what a hostile client could write.
pub fn log_entries(data: &[u8]) {
    const CAPACITY: usize = 4096;
    let [generation, lo, hi, data @ ..] = data else {
        return;
    };
    let word = RangeWord {
        generation: u64::from(*generation % 8),
        lo: *lo,
        hi: *hi,
    };
    let header = |is_continuation| {
        LogHeader {
            log_id: 7,
            capacity: CAPACITY as u64,
            owner: Uuid([3; 16]),
            is_continuation,
        }
        .encode()
    };
    let mut heap = vec![0; log::LOG_AREA_OFFSET as usize + CAPACITY];
    heap[..64].copy_from_slice(&header(false));
    for generation in 1..=word.generation {
        let word = if generation == word.generation {
            word
        } else {
            RangeWord::undo(generation)
        };
        let at = log::slot_offset(generation) as usize;
        heap[at..at + 8].copy_from_slice(&word.to_u64().to_le_bytes());
    }
    let entries = &mut heap[log::LOG_AREA_OFFSET as usize..];
    let mut at = 0;
    let mut rest = data;
    while let Some((fields, after)) = rest.split_first_chunk::<16>() {
        let [
            stale,
            len,
            step,
            sequence,
            order,
            kind,
            flags,
            reach,
            target @ ..,
        ] = *fields;
        let len = usize::from(len).min(after.len());
        let (data, after) = after.split_at(len);
        rest = after;
        let salt = Salt::new(7, word.generation.wrapping_sub(u64::from(stale % 4)));
        let size = if reach == 0xff { u32::MAX } else { len as u32 };
        let words = [
            u64::from_le_bytes(target),
            u64::from(size)
                | u64::from(sequence) << 32
                | u64::from(order) << 40
                | u64::from(kind) << 48
                | u64::from(flags) << 56,
        ];
        let tail = u64::from(salt.generation_low()) | u64::from(salt.checksum(words, data)) << 32;
        let Some(place) = entries.get_mut(at..at + log::entry_size(len)) else {
            break;
        };
        for (place, word) in place
            .as_chunks_mut::<8>()
            .0
            .iter_mut()
            .zip([words[0], words[1], tail])
        {
            *place = word.to_le_bytes();
        }
        place[log::ENTRY_HEADER_SIZE..log::ENTRY_HEADER_SIZE + len].copy_from_slice(data);
        at += log::entry_size(len).next_multiple_of(if step & 1 == 1 { 64 } else { 8 })
            + usize::from(step & 2) * 32;
    }
    same_or_error(LogArea::parse(&heap), |area| recover(area, heap.len()));
}

/// Reads the log (a chain leads to a continuation with the same entries), plans, and checks what must hold of any plan.
fn recover(head: LogArea<'_>, heap_len: usize) {
    let mut continuation = vec![0; heap_len];
    let header = LogHeader {
        is_continuation: true,
        ..*head.header()
    };
    continuation[..64].copy_from_slice(&header.encode());
    let entries = head.entries();
    continuation[log::LOG_AREA_OFFSET as usize..][..entries.len()].copy_from_slice(entries);
    let chain = |address: u64| match LogArea::parse(&continuation) {
        Ok(area) if !address.is_multiple_of(3) => Ok(area),
        _ => Err(format!("no puddle at {address:#x}")),
    };
    let log = match log::parse(head, chain) {
        Ok(log) => log,
        Err(error) => return assert!(!error.to_string().is_empty()),
    };
    let _ = log.check_unreached(&head);
    let contents = |target: u64, len: u64, crc: &mut Crc| {
        if len > 4096 {
            return Err("too long");
        }
        crc.update(&vec![target as u8; len as usize]);
        Ok(match target % 5 {
            3 => Answer::Waits,
            4 => Answer::GivenUp,
            _ => Answer::Seen,
        })
    };
    let granted = |target: u64, len: u64| target >= 1024 && target.checked_add(len).is_some();
    let planned = log::sealed(&log, contents)
        .and_then(|sealed| log::plan(&log, sealed.unwrap_or_default(), granted));
    let plan = match planned {
        Ok(plan) => plan,
        Err(error) => return assert!(!error.to_string().is_empty()),
    };
    assert_eq!(plan.writes().is_empty(), plan == Plan::Nothing);
    assert!(plan.writes().len() <= log.entries.len());
    for write in plan.writes() {
        let (target, len) = write.range();
        assert!(granted(target, len));
        assert!(matches!(write, Write::Copy { .. }) || target.is_multiple_of(8));
    }
}

/// The log space.
pub fn log_space(data: &[u8]) {
    let mut fixed = with_checksum(data, 60);
    for line in fixed.chunks_exact_mut(64).skip(1) {
        let checksum = crc32c(&line[8..]).to_le_bytes();
        line[4..8].copy_from_slice(&checksum);
    }
    for bytes in [data, &fixed] {
        same_or_error(LogSpace::parse(bytes), |space| {
            let header = durum_format::log_space::encode_header(space.client());
            assert_eq!(header.as_slice(), &bytes[..64]);
            for (index, entry) in space.entries() {
                let at = durum_format::log_space::entry_offset(*index) as usize;
                assert_eq!(entry.encode().as_slice(), &bytes[at..at + 64]);
            }
            for index in space.unfinished() {
                assert!(*index < durum_format::log_space::capacity(bytes.len() as u64));
            }
        });
    }
}
