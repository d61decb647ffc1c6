//! Puddles of redo records, and which of them count.

use durum_format::Uuid;
use durum_format::consts::UNIT;
use durum_format::home::Answer;
use durum_format::puddle::{self, PuddleHeader, PuddleKind};
use durum_format::record::{self, Change, Entries, HEADER_WORDS, RING_HEAD_SIZE, Ring, RingSalt};
use zerocopy::IntoBytes;

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
