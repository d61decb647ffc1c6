//! Headers of puddles, and the walk over a heap.

use durum_format::Uuid;
use durum_format::consts::{GRANULE, UNIT};
use durum_format::extent::{self, HeapBytes, HeapError, Place};
use durum_format::puddle::{self, PuddleHeader, PuddleKind};

use super::{same_or_error, with_checksum};

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
