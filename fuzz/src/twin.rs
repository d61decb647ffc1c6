//! Words, seals and lists of suspects of Twin pools.

use durum_format::crc::Crc;
use durum_format::twin::{SEAL_SIZE, Seal, State, Suspect, Suspects, parse_suspects};

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
