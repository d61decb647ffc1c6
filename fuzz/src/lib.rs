//! What is fuzzed: one function for each parser, used by `fuzz_targets` (coverage guided, nightly) and by
//! `crates/durum-format/tests/corpus.rs` (committed corpora and mutations of them, stable). A function fails by
//! panicking.
//!
//! Inputs are tried as they are and, where a checksum would stop them at the door, once more with the checksum put
//! right.

mod code;
mod content;
mod dump;
mod sections;
mod successors;

use durum_format::catalog::Catalog;
use durum_format::consts::{GRANULE, UNIT};
use durum_format::crc::{Crc, crc32c};
use durum_format::export as manifests;
use durum_format::extent::{self, HeapBytes, HeapError, Place};
use durum_format::home::Answer;
use durum_format::log::{self, LogArea, LogHeader, Plan, RangeWord, Salt, Write};
use durum_format::log_space::LogSpace;
use durum_format::puddle::{self, PuddleHeader, PuddleKind};
use durum_format::reach::Reach;
use durum_format::record::{self, Change, Entries, HEADER_WORDS, RING_HEAD_SIZE, Ring, RingSalt};
use durum_format::registry::{self, Parsed, Room};
use durum_format::store::StoreHeader;
use durum_format::twin::{SEAL_SIZE, Seal, State, Suspect, Suspects, parse_suspects};
use durum_format::types::{Descriptor, Type};
use durum_format::{FormatError, Uuid};
use zerocopy::IntoBytes;

pub use code::code;
pub use content::content;
pub use dump::dump;
pub use sections::sections;
pub use successors::successors_of as successors;

/// A function to fuzz.
pub type Target = fn(&[u8]);

/// All of them, by the names of their corpora.
pub const TARGETS: [(&str, Target); 17] = [
    ("puddle_header", puddle_header),
    ("heap", heap),
    ("log_bytes", log_bytes),
    ("log_entries", log_entries),
    ("log_space", log_space),
    ("records", records),
    ("sections", sections),
    ("code", code),
    ("types", types),
    ("content", content),
    ("successors", successors),
    ("dump", dump),
    ("catalog", catalog),
    ("registry", registry),
    ("export", export),
    ("store", store),
    ("twin", twin),
];

/// `bytes` with the CRC-32C of those before `at` at `at`, if there are so many.
fn with_checksum(bytes: &[u8], at: usize) -> Vec<u8> {
    let mut bytes = bytes.to_vec();
    if bytes.len() >= at + 4 {
        let checksum = crc32c(&bytes[..at]).to_le_bytes();
        bytes[at..at + 4].copy_from_slice(&checksum);
    }
    bytes
}

/// What is accepted is what would have been written, and errors can be shown.
fn same_or_error<T>(parsed: Result<T, FormatError>, accepted: impl FnOnce(T)) {
    match parsed {
        Ok(parsed) => accepted(parsed),
        Err(error) => assert!(!error.to_string().is_empty()),
    }
}

/// The puddle header.
pub fn puddle_header(data: &[u8]) {
    for bytes in [data.to_vec(), with_checksum(data, 68)] {
        let size = bytes.get(56..64).map_or(0, |size| {
            u64::from_le_bytes(size.try_into().unwrap_or_default())
        });
        for file_len in [size, size.wrapping_mul(2), bytes.len() as u64] {
            same_or_error(puddle::parse(&bytes, file_len), |header| {
                assert_eq!(
                    puddle::encode(&header).as_slice(),
                    &bytes[..puddle::ENCODED_SIZE]
                );
                assert_eq!(header.file_size(), file_len);
            });
        }
    }
}

/// A puddle whose bitmap begins with some bytes and whose heap repeats others.
struct SparseHeap<'a> {
    bitmap: &'a [u8],
    heap: &'a [u8],
}

impl HeapBytes for SparseHeap<'_> {
    type Error = ();

    fn read(&self, offset: u64, buf: &mut [u8]) -> Result<(), ()> {
        for (at, byte) in (offset..).zip(buf.iter_mut()) {
            let heap_offset = puddle::heap_offset(UNIT);
            *byte = match at.checked_sub(heap_offset) {
                Some(at) => self
                    .heap
                    .get(at as usize % self.heap.len().max(1))
                    .copied()
                    .unwrap_or(0),
                None => at
                    .checked_sub(1024)
                    .and_then(|at| self.bitmap.get(at as usize).copied())
                    .unwrap_or(0),
            };
        }
        if offset + buf.len() as u64 <= UNIT {
            Ok(())
        } else {
            Err(())
        }
    }
}

/// The walk over a heap.
pub fn heap(data: &[u8]) {
    let [kind, bitmap_len, data @ ..] = data else {
        return;
    };
    let (bitmap, heap) = data.split_at(usize::from(*bitmap_len).min(data.len()));
    let heap = SparseHeap { bitmap, heap };
    let header = PuddleHeader {
        kind: PuddleKind::Data,
        uuid: Uuid([1; 16]),
        owner: Uuid([2; 16]),
        address: UNIT,
        size: UNIT,
        is_root: kind & 1 == 1,
    };
    let mut end = puddle::heap_offset(UNIT);
    for extent in extent::extents(&heap, &header) {
        let extent = match extent {
            Ok(extent) => extent,
            Err(HeapError::Read(())) => panic!("a walk reads inside the puddle only"),
            Err(_) => continue,
        };
        assert!(
            extent.offset() >= end,
            "extents come in order and lie apart"
        );
        end = extent.offset() + extent.granules() * GRANULE;
        assert!(end <= UNIT);
        let mut objects = 0;
        for object in extent.objects() {
            objects += 1;
            assert!(
                object.offset >= extent.offset() + extent::EXTENT_HEADER_SIZE
                    && object.offset + object.size <= end
            );
            let found = extent::locate(&heap, &header, UNIT + object.offset)
                .ok()
                .flatten();
            let found = found.map(|location| location.place);
            assert!(
                matches!(found, Some(Place::Object { object: other, offset: 0 }) if other == object)
            );
        }
        assert_eq!(objects, extent.allocated());
    }
    let places = kind.wrapping_mul(31);
    for address in [
        0,
        UNIT,
        UNIT + 4096 + u64::from(places) * GRANULE,
        2 * UNIT - 1,
        2 * UNIT,
        u64::MAX,
    ] {
        let found = extent::locate(&heap, &header, address);
        assert!(!matches!(found, Err(HeapError::Read(()))));
    }
}

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

/// A puddle of redo records: the watermark slots, then what lies in the first segment.
pub fn records(data: &[u8]) {
    let header = PuddleHeader {
        kind: PuddleKind::Records,
        uuid: Uuid([1; 16]),
        owner: Uuid([2; 16]),
        address: UNIT,
        size: UNIT,
        is_root: false,
    };
    let heap_start = puddle::heap_offset(UNIT);
    let (slots, segment) = data.split_at(data.len().min(128));
    let mut heap = vec![0u64; (RING_HEAD_SIZE as usize + segment.len()).div_ceil(8)];
    let bytes = heap.as_mut_bytes();
    bytes[..slots.len()].copy_from_slice(slots);
    bytes[RING_HEAD_SIZE as usize..][..segment.len()].copy_from_slice(segment);
    check_records(&header, &heap);
    // The same with checksums that fit.
    let salt = RingSalt::new(header.uuid);
    for (slot, words) in heap.chunks_exact_mut(8).take(2).enumerate() {
        let offset = record::watermark_offset(UNIT, slot);
        let fixed = record::watermark_words(u64::from_le(words[0]), &salt, offset);
        words[..2].copy_from_slice(&fixed);
    }
    let mut at = RING_HEAD_SIZE as usize / 8;
    while at + HEADER_WORDS <= heap.len() {
        let size = (u64::from_le(heap[at]) >> 32) as usize / 8 % 64;
        let end = (at + HEADER_WORDS + size).min(heap.len());
        let words = &mut heap[at..end];
        let size = (words.len() - HEADER_WORDS) as u64 * 8;
        words[0] = (size << 32).to_le();
        let offset = heap_start + at as u64 * 8;
        let checksum = salt.checksum(offset, &words.as_bytes()[4..]);
        words[0] = (size << 32 | u64::from(checksum)).to_le();
        at = end.next_multiple_of(8);
    }
    check_records(&header, &heap);
}

fn check_records(header: &PuddleHeader, heap: &[u64]) {
    let ring = Ring::of(header, heap.as_bytes()).expect("words are aligned");
    // Home as it is where nothing was ever written: a checksum of 0 fits.
    let nothing = |_, _, _: &mut _| Ok::<_, &str>(Answer::Seen);
    let replay = match record::replay(std::slice::from_ref(&ring), &[], nothing) {
        Ok(replay) => replay,
        Err(error) => return assert!(!error.to_string().is_empty()),
    };
    // Where home cannot be read that is told, or nobody asked.
    let waits = |_, _, _: &mut _| Ok::<_, &str>(Answer::Waits);
    if let Ok(waiting) = record::replay(std::slice::from_ref(&ring), &[], waits) {
        assert!(waiting.records.len() <= replay.records.len());
        assert!(
            waiting.verdicts.is_empty(),
            "nobody saw what would tell of one"
        );
    }
    // With the verdicts of then nobody asks home again, and the same records count.
    let again = record::replay(
        std::slice::from_ref(&ring),
        &replay.verdicts,
        |_, _, _: &mut _| Err("asked"),
    );
    if let Ok(again) = again {
        let stamps = |replay: &record::Replay<'_>| -> Vec<u64> {
            let records = replay.records.iter();
            records.map(|record| record.header.stamp).collect()
        };
        assert_eq!(stamps(&again), stamps(&replay));
    } else {
        panic!("home is asked about what is known");
    }
    for range in record::fresh_at_home(&replay.records) {
        assert!(range.len > 0);
    }
    match record::replay(&[ring], &[], |_, _, _: &mut _| Err("gone")) {
        Ok(same) => assert_eq!(same.records.len(), replay.records.len()),
        Err(error) => assert!(error.to_string().ends_with("gone")),
    }
    let mut last = replay.watermark;
    for record in &replay.records {
        assert!(record.header.stamp > last, "in the order of stamps");
        last = record.header.stamp;
        let mut words = 0;
        for change in Entries::new(record.body) {
            match change {
                Ok(Change::Words {
                    line,
                    mask,
                    words: found,
                    ..
                }) => {
                    assert!(line.is_multiple_of(64) && mask.count_ones() as usize == found.len());
                    words += 1 + found.len();
                }
                Ok(Change::Copy { data, .. }) => {
                    assert!(!data.is_empty());
                    words += 2 + data.len().div_ceil(8);
                }
                Ok(Change::Fresh { len, .. }) => {
                    assert!(len > 0);
                    words += 3;
                }
                Err(error) => {
                    assert!(error.at >= words);
                    words = record.body.len();
                }
            }
        }
        assert_eq!(words, record.body.len());
    }
}

/// A type's text, then a zero byte, then an object of that type.
pub fn types(data: &[u8]) {
    let mut parts = data.splitn(2, |byte| *byte == 0);
    let Some(Ok(text)) = parts.next().map(std::str::from_utf8) else {
        return;
    };
    let descriptor = match Descriptor::parse(text) {
        Ok(descriptor) => descriptor,
        Err(error) => return assert!(!error.to_string().is_empty()),
    };
    assert_eq!(descriptor.text(), text);
    for line in 0..descriptor.lines().min(8) {
        let target = descriptor.target(line).expect("each line is a type");
        assert_eq!(Descriptor::parse(target.text()).as_ref(), Ok(&target));
    }
    let object = parts.next().unwrap_or_default();
    let _ = descriptor.value(object, 3).to_string();
    let _ = descriptor.value(object, 3).redact().to_json().to_string();
    for offset in [0, object.len() as u64 / 2, object.len() as u64, u64::MAX] {
        let _ = descriptor.path(object, offset);
    }
    if let Ok(pointers) = descriptor.pointers(object) {
        for pointer in pointers.take(64) {
            assert!(pointer.offset + 8 <= object.len() as u64);
            if let Ok(path) = descriptor.path(object, pointer.offset) {
                assert!(matches!(path.ty, Type::Pointer { .. }) && path.offset == pointer.offset);
            }
        }
    }
}

/// The catalog.
pub fn catalog(data: &[u8]) {
    let mut wrapped =
        format!("durum catalog 1 {} {:#010x}\n", data.len(), crc32c(data)).into_bytes();
    wrapped.extend_from_slice(data);
    for bytes in [data, &wrapped] {
        same_or_error(Catalog::parse(bytes), |catalog| {
            let encoded = catalog.encode().expect("what is accepted can be written");
            assert_eq!(Catalog::parse(&encoded), Ok(catalog));
        });
    }
}

/// The registry. An input is a file without the zeros at its end; and once more a snapshot's text and the texts of
/// changes, with a zero byte before each, whose lines and checksums are put right.
pub fn registry(data: &[u8]) {
    const LENGTH_MAX: u64 = 1 << 20;
    let whole = |mut bytes: Vec<u8>| {
        if let Ok(room) = Room::of(&bytes)
            && room.end <= LENGTH_MAX
            && bytes.len() as u64 <= room.end
        {
            bytes.resize(room.end as usize, 0);
        }
        bytes
    };
    let mut texts = data.split(|&byte| byte == 0);
    let body = texts.next().unwrap_or_default();
    let mut made = format!("durum registry 1 {} {:#010x}\n", body.len(), crc32c(body)).into_bytes();
    made.extend_from_slice(body);
    if let Ok(Parsed { state, .. }) = registry::parse(&whole(made.clone())) {
        for (sequence, text) in (state.sequence.wrapping_add(1)..).zip(texts) {
            let head = format!("change {sequence} {} ", text.len());
            let mut crc = Crc::new();
            for part in [&state.store.uuid.0, head.as_bytes(), text] {
                crc.update(part);
            }
            made.extend(format!("{head}{:#010x}\n", crc.value()).bytes());
            made.extend_from_slice(text);
        }
    }
    for bytes in [data.to_vec(), whole(data.to_vec()), whole(made)] {
        let salvaged = registry::salvage(None, &[&bytes]);
        same_or_error(registry::parse(&bytes), |parsed| {
            assert_eq!(parsed.room.end, bytes.len() as u64);
            assert_eq!(salvaged.as_ref(), Some(&parsed.state));
            let folded = registry::encode_snapshot(&parsed.state);
            let folded = whole(folded.expect("what is accepted can be written"));
            let again = registry::parse(&folded).expect("what was written is accepted");
            assert_eq!(again.state, parsed.state);
            assert!(!again.is_torn && again.end == again.room.snapshot_end);
        });
    }
}

/// The manifest of an export: a whole file, and once more the text behind its first line, with a line that is right.
pub fn export(data: &[u8]) {
    let mut made = format!("durum export 1 {} {:#010x}\n", data.len(), crc32c(data)).into_bytes();
    made.extend_from_slice(data);
    for bytes in [data, &made] {
        same_or_error(manifests::parse(bytes), |manifest| {
            let encoded = manifest.encode().expect("what is accepted can be written");
            assert_eq!(encoded, bytes);
        });
    }
}

/// The store file.
pub fn store(data: &[u8]) {
    let mut fixed = data.to_vec();
    if let Some(at) = data
        .windows(11)
        .rposition(|window| window == b"checksum = ")
    {
        fixed.truncate(at);
        let line = format!("checksum = {:#010x}\n", crc32c(&fixed));
        fixed.extend_from_slice(line.as_bytes());
    }
    for bytes in [data, &fixed] {
        same_or_error(StoreHeader::parse(bytes), |store| {
            let encoded = store.encode().expect("what is accepted can be written");
            assert_eq!(encoded.as_bytes(), bytes);
        });
    }
}

/// The state word of a Twin pool, or one of its list of suspects, and the place of a seal, or the list, behind it; a
/// seal once more with its checksum put right for ranges that hold no byte but zero.
pub fn twin(data: &[u8]) {
    let Some((word, place)) = data.split_first_chunk() else {
        return;
    };
    let word = u64::from_le_bytes(*word);
    if let Some(suspect) = Suspect::from_word(word) {
        assert_eq!(suspect.to_word(), word);
    }
    if let Some(Suspects::In(ranges)) = parse_suspects(place) {
        assert!(ranges.iter().all(|range| range.start < range.end));
    }
    let generation = match State::from_word(word) {
        Some(state) => {
            assert_eq!(state.to_word(), word);
            state.generation
        }
        None => 0,
    };
    let Some(seal) = Seal::parse(place, generation) else {
        return;
    };
    let zeros = |crc: &mut Crc| {
        for range in &seal.ranges {
            crc.update(&vec![0; range.length()]);
        }
    };
    let mut encoded = [0; SEAL_SIZE];
    let used = Seal::encode(generation, &seal.ranges, zeros, &mut encoded);
    // The checksum, at byte 12, is that of the input's only if its contents were zeros as well.
    assert_eq!(encoded[..12], place[..12]);
    assert_eq!(encoded[16..used], place[16..used]);
    let fixed = Seal::parse(&encoded, generation).expect("what was encoded is a seal");
    let read = |crc: &mut Crc| {
        zeros(crc);
        Ok::<_, ()>(())
    };
    assert_eq!(fixed.ranges, seal.ranges);
    assert_eq!(fixed.matches(read), Ok(true));
    assert_eq!(seal.matches(read), Ok(fixed == seal));
}
