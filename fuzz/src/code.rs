//! Deposits of code: the head, what the code needs of the processor, and where sections go on.

use durum_format::code::places::Places;
use durum_format::code::{HEAD_SIZE, Head, features, room};
use durum_format::puddle::{PuddleHeader, PuddleKind};
use durum_format::section::Code;
use durum_format::{DEFAULT_BASE, UNIT, Uuid};

/// A head, or an executable, or places. Nothing that they say reaches a terminal as it is.
pub fn code(data: &[u8]) {
    let puddle = PuddleHeader {
        kind: PuddleKind::Code,
        uuid: Uuid([1; 16]),
        owner: Uuid([2; 16]),
        address: DEFAULT_BASE,
        size: UNIT,
        is_root: false,
    };
    for bytes in [data.to_vec(), super::with_checksum(data, 60)] {
        super::same_or_error(Head::parse(&puddle, &bytes), |head| {
            assert_eq!(head.encode().as_slice(), &bytes[..HEAD_SIZE]);
            assert!(head.length + head.places_length <= room(UNIT));
        });
    }
    super::same_or_error(features(data), |names| {
        assert!(
            names
                .iter()
                .all(|name| name.bytes().all(|byte| byte.is_ascii_graphic()))
        );
    });
    super::same_or_error(Places::parse(data), |places| {
        assert!(!places.told().contains(char::is_control));
        for function in &places.functions {
            for region in [1, function.lines.len() as u16, u16::MAX] {
                let code = Code::new(function.hash, region).expect("it was accepted");
                let place = places.find(code).expect("it is there");
                assert!(!place.to_string().contains(char::is_control));
            }
        }
        assert_eq!(places.encode(), data);
    });
}
