//! The head of code that completes sections: what is written is read, and nothing else.

use durum_format::code::places::PLACES_MAX;
use durum_format::code::{CODE_MAX, HEAD_SIZE, Head, room, size_for};
use durum_format::puddle::{PuddleHeader, PuddleKind};
use durum_format::{DEFAULT_BASE, FormatError, UNIT, Uuid};
use proptest::prelude::*;

fn puddle(kind: PuddleKind, size: u64) -> PuddleHeader {
    PuddleHeader {
        kind,
        uuid: Uuid([1; 16]),
        owner: Uuid([2; 16]),
        address: DEFAULT_BASE,
        size,
        is_root: false,
    }
}

fn parse(bytes: &[u8], size: u64) -> Result<Head, FormatError> {
    Head::parse(&puddle(PuddleKind::Code, size), bytes)
}

#[test]
fn a_changed_bit_is_noticed_anywhere() {
    let code = b"no executable";
    let head = Head::of(code, b"there");
    let bytes = head.encode();
    assert_eq!(parse(&bytes, UNIT).unwrap(), head);
    assert!(head.is_of(code) && !head.is_of(b"no executablf"));
    assert!(head.is_of_places(b"there") && !head.is_of_places(b"thera"));
    for bit in 0..HEAD_SIZE * 8 {
        let mut changed = bytes;
        changed[bit / 8] ^= 1 << (bit % 8);
        assert!(parse(&changed, UNIT).is_err(), "bit {bit}");
    }
    assert!(parse(&bytes[..HEAD_SIZE - 1], UNIT).is_err());
    assert!(Head::parse(&puddle(PuddleKind::Log, UNIT), &bytes).is_err());
}

/// Whoever reads it has a copy in memory.
#[test]
fn code_is_no_longer_than_that_however_much_room_there_is() {
    let head = |length| Head {
        length,
        sum: 7,
        places_length: 0,
        places_sum: 8,
    };
    let size = size_for(2 * CODE_MAX);
    assert_eq!(
        parse(&head(CODE_MAX).encode(), size).unwrap().length,
        CODE_MAX
    );
    let error = parse(&head(CODE_MAX + 1).encode(), size).unwrap_err();
    assert!(error.to_string().contains("up to 67108864"), "{error}");
}

proptest! {
    #[test]
    fn code_is_as_long_as_there_is_room(length in 0..20 * UNIT, more in 1..UNIT, behind in 0..PLACES_MAX) {
        let size = size_for(length);
        let head = Head { length, sum: 7, places_length: 0, places_sum: 8 };
        prop_assert_eq!(parse(&head.encode(), size).unwrap(), head);
        prop_assert!(size == UNIT || room(size - UNIT) < length);
        let longer = Head { length: room(size) + more, ..head };
        prop_assert!(parse(&longer.encode(), size).is_err());
        let size = size_for(length + behind);
        let with_places = Head { places_length: behind, ..head };
        prop_assert_eq!(parse(&with_places.encode(), size).unwrap(), with_places);
        let longer = Head { places_length: (room(size) - length).min(PLACES_MAX) + more, ..head };
        prop_assert!(parse(&longer.encode(), size).is_err());
    }

    #[test]
    fn any_bytes_are_code_or_an_error(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        let _ = parse(&bytes, UNIT);
    }
}
