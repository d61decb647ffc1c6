//! Extents and slabs: images, the walk against a model, and damage.

mod common;

use std::cell::Cell;
use std::collections::BTreeMap;

use common::{flips, hex, uuid};
use durum_format::consts::{GRANULE, UNIT};
use durum_format::extent::{
    self, ExtentHeader, ExtentKind, HeapBytes, HeapError, Place, SlabHeader, extents, locate,
    object_extent, objects, slab_geometry,
};
use durum_format::puddle::{self, PuddleHeader, PuddleKind};
use proptest::prelude::*;

fn header(units: u64) -> PuddleHeader {
    PuddleHeader {
        kind: PuddleKind::Data,
        uuid: uuid(1),
        owner: uuid(2),
        address: 0x2000_4000_0000,
        size: units * UNIT,
        is_root: false,
    }
}

/// A puddle in memory and what it should hold.
struct Puddle {
    header: PuddleHeader,
    bytes: Vec<u8>,
}

impl Puddle {
    fn new(units: u64) -> Self {
        let header = header(units);
        let mut bytes = vec![0; header.size as usize];
        bytes[..128].copy_from_slice(&puddle::encode(&header));
        Self { header, bytes }
    }

    fn word(&mut self, offset: u64, word: u64) {
        self.bytes[offset as usize..][..8].copy_from_slice(&word.to_le_bytes());
    }

    fn flip(&mut self, granule: u64) {
        self.bytes[(1024 + granule / 8) as usize] ^= 1 << (granule % 8);
    }

    fn offset(&self, granule: u64) -> u64 {
        puddle::heap_offset(self.header.size) + granule * GRANULE
    }

    fn extent(&mut self, granule: u64, header: ExtentHeader) -> u64 {
        let offset = self.offset(granule);
        for (index, word) in (0..).zip(extent::encode(&header)) {
            self.word(offset + index * 8, word);
        }
        self.flip(granule);
        offset
    }

    fn object(&mut self, granule: u64, type_id: u64, size: u64, data_offset: u64) -> u64 {
        self.extent(
            granule,
            ExtentHeader {
                type_id,
                kind: ExtentKind::Object { size, data_offset },
            },
        )
    }

    fn slab(&mut self, granule: u64, type_id: u64, size: u64, elements: &[u64]) -> u64 {
        let slab = SlabHeader::new(size).unwrap();
        let extent_size = slab.geometry().extent_size;
        let offset = self.extent(
            granule,
            ExtentHeader {
                type_id,
                kind: ExtentKind::Slab { extent_size },
            },
        );
        self.word(offset + 16, slab.encode());
        for element in elements {
            self.bytes[(offset + 24 + element / 8) as usize] |= 1 << (element % 8);
        }
        offset
    }

    /// What a walk finds, which is the same where reads are slow.
    fn walk(&self) -> Vec<Result<extent::Extent, HeapError<extent::OutOfBounds>>> {
        let found: Vec<_> = extents(self.bytes.as_slice(), &self.header).collect();
        let slow = Slow::of(&self.bytes);
        assert!(extents(&slow, &self.header).eq(found.iter().cloned()));
        found
    }

    fn only_error(&self) -> HeapError<extent::OutOfBounds> {
        let mut errors: Vec<_> = self.walk().into_iter().filter_map(Result::err).collect();
        assert_eq!(errors.len(), 1, "{errors:?}");
        errors.remove(0)
    }
}

/// Bytes of which each read costs much, and how many there were.
struct Slow<'a> {
    bytes: &'a [u8],
    reads: Cell<u64>,
}

impl Slow<'_> {
    fn of(bytes: &[u8]) -> Slow<'_> {
        Slow {
            bytes,
            reads: Cell::new(0),
        }
    }
}

impl HeapBytes for Slow<'_> {
    type Error = extent::OutOfBounds;

    fn read(&self, offset: u64, buf: &mut [u8]) -> Result<(), extent::OutOfBounds> {
        self.reads.set(self.reads.get() + 1);
        self.bytes.read(offset, buf)
    }

    fn is_slow(&self) -> bool {
        true
    }
}

#[test]
fn what_lies_close_together_is_read_at_once_where_reads_are_slow() {
    // One extent in so many granules, and reads for 4 MiB of them: 64 KiB at once, or each by itself, and the bitmap.
    for (stride, reads_max) in [(1, 80), (4, 80), (8, 200), (16, 1100)] {
        let mut puddle = Puddle::new(2);
        let granules = puddle::granules(puddle.header.size);
        for granule in (0..granules).step_by(stride) {
            puddle.object(granule, 7, 200, 16);
        }
        assert_eq!(puddle.walk().len() as u64, granules.div_ceil(stride as u64));
        let slow = Slow::of(&puddle.bytes);
        let found = extents(&slow, &puddle.header).filter(Result::is_ok);
        assert_eq!(found.count() as u64, granules.div_ceil(stride as u64));
        let reads = slow.reads.get();
        assert!(reads <= reads_max, "{reads} with one in {stride}");
    }
}

#[test]
fn what_is_cut_off_is_told_where_it_is_missing_though_reads_are_slow() {
    let mut puddle = Puddle::new(1);
    let granules = puddle::granules(puddle.header.size);
    for granule in 0..granules {
        puddle.object(granule, 7, 200, 16);
    }
    puddle.bytes.truncate(puddle.offset(5000) as usize);
    let found = puddle.walk();
    assert!(found[..5000].iter().all(Result::is_ok));
    let missing = found[5000..].iter();
    assert!(missing.clone().count() as u64 == granules - 5000);
    for error in missing {
        assert!(matches!(error, Err(HeapError::Read(_))), "{error:?}");
    }
    // No block is tried once for each extent in it.
    let slow = Slow::of(&puddle.bytes);
    assert_eq!(extents(&slow, &puddle.header).count() as u64, granules);
    let blocks = granules / 256 + 2;
    let reads = slow.reads.get();
    assert!(reads <= granules - 5000 + 256 + blocks + 4, "{reads}");
}

/// Put together by hand from docs/format/heap.md.
#[test]
fn the_images_of_version_1_are_read_and_written() {
    let object = ExtentHeader {
        type_id: 0x1122_3344_5566_7788,
        kind: ExtentKind::Object {
            size: 1000,
            data_offset: 16,
        },
    };
    let slab = ExtentHeader {
        kind: ExtentKind::Slab { extent_size: 4096 },
        ..object
    };
    for (header, image) in [
        (object, "8877665544332211 e803000000000104"),
        (slab, "8877665544332211 0010000000000200"),
    ] {
        let bytes: Vec<u8> = extent::encode(&header)
            .into_iter()
            .flat_map(u64::to_le_bytes)
            .collect();
        assert_eq!(bytes, hex(image));
        assert_eq!(extent::parse(extent::encode(&header)).unwrap(), header);
    }
    assert_eq!(
        SlabHeader::new(24)
            .unwrap()
            .encode()
            .to_le_bytes()
            .as_slice(),
        hex("1800a80030000000")
    );
    assert_eq!(object.granules(), 4);
    assert_eq!(slab.granules(), 16);
}

/// Computed apart from the code: element size, extent size, capacity, data offset.
const GEOMETRIES: [[u64; 4]; 32] = [
    [8, 4096, 501, 88],
    [16, 4096, 252, 64],
    [24, 4096, 168, 48],
    [32, 4096, 126, 64],
    [40, 4096, 101, 40],
    [48, 4096, 84, 48],
    [56, 4096, 72, 40],
    [64, 4096, 63, 64],
    [72, 16384, 226, 56],
    [80, 16384, 204, 64],
    [88, 16384, 185, 48],
    [96, 16384, 170, 64],
    [104, 16384, 157, 48],
    [112, 16384, 145, 48],
    [120, 16384, 136, 48],
    [128, 16384, 127, 128],
    [136, 16384, 120, 40],
    [144, 16384, 113, 48],
    [152, 16384, 107, 40],
    [160, 16384, 102, 64],
    [168, 16384, 97, 40],
    [176, 16384, 92, 48],
    [184, 16384, 88, 40],
    [192, 16384, 85, 64],
    [200, 16384, 81, 40],
    [208, 16384, 78, 48],
    [216, 16384, 75, 40],
    [224, 16384, 72, 64],
    [232, 16384, 70, 40],
    [240, 16384, 68, 48],
    [248, 16384, 65, 40],
    [256, 16384, 63, 256],
];

#[test]
fn slabs_are_divided_as_documented_and_elements_are_aligned() {
    for [size, extent_size, capacity, data_offset] in GEOMETRIES {
        let slab = slab_geometry(size);
        assert_eq!(
            [slab.extent_size, slab.capacity, slab.data_offset],
            [extent_size, capacity, data_offset]
        );
        assert_eq!(slab.bitmap_words, capacity.div_ceil(64));
        assert!(24 + slab.bitmap_words * 8 <= slab.data_offset);
        assert!(slab.data_offset + capacity * size <= extent_size);
        let align = 1 << size.trailing_zeros();
        assert!(slab.data_offset.is_multiple_of(align) && size.is_multiple_of(align));
        let header = SlabHeader::new(size).unwrap();
        assert_eq!(
            SlabHeader::parse(header.encode(), extent_size).unwrap(),
            header
        );
    }
    assert_eq!(slab_geometry(0), slab_geometry(8));
    assert_eq!(slab_geometry(17), slab_geometry(24));
    assert_eq!(slab_geometry(u64::MAX), slab_geometry(256));
    assert_eq!(
        [0, 1, 8, 9, 256, 257].map(extent::element_size),
        [Some(8), Some(8), Some(8), Some(16), Some(256), None]
    );
}

/// A changed slab word is refused: all of it follows from the element size. A changed extent header is refused or reads
/// as another size, alignment or type; nothing in the header can tell those from true ones, so the walk's checks
/// against bitmap and puddle, and the type registry, are what is left. No change makes a walk read beyond the puddle.
#[test]
fn every_changed_byte_of_a_slab_header_is_refused_and_no_changed_extent_leaves_the_puddle() {
    let word = SlabHeader::new(24).unwrap().encode();
    for (at, changed) in flips(&word.to_le_bytes()) {
        let changed = u64::from_le_bytes(changed.try_into().unwrap());
        assert!(SlabHeader::parse(changed, 4096).is_err(), "byte {at}");
    }
    let mut puddle = Puddle::new(1);
    let offset = puddle.object(0, 5, 1000, 16);
    puddle.slab(16, 6, 24, &[3]);
    let whole = puddle.bytes[offset as usize..][..16].to_vec();
    for (at, changed) in flips(&whole) {
        puddle.bytes[offset as usize..][..16].copy_from_slice(&changed);
        for extent in puddle.walk().into_iter().flatten() {
            assert!(
                extent.offset() + extent.header().bytes_used() <= UNIT,
                "byte {at}"
            );
        }
    }
}

#[test]
fn objects_get_the_alignment_and_the_room_that_they_ask_for() {
    assert_eq!(object_extent(1000, 8), Some((16, 4)));
    assert_eq!(object_extent(240, 16), Some((16, 1)));
    assert_eq!(object_extent(241, 16), Some((16, 2)));
    assert_eq!(object_extent(0, 1), Some((16, 1)));
    assert_eq!(object_extent(64, 64), Some((64, 1)));
    assert_eq!(object_extent(1, UNIT), Some((UNIT, 8193)));
    for (size, align) in [(1, 0), (1, 3), (1, 2 * UNIT), (1 << 48, 8), (u64::MAX, 8)] {
        assert_eq!(object_extent(size, align), None, "{size} {align}");
    }
}

#[test]
fn damage_is_reported_where_it_is_and_the_walk_goes_on_behind_it() {
    let mut puddle = Puddle::new(1);
    let damaged = puddle.object(0, 1, 300, 16);
    puddle.object(2, 2, 300, 16);
    puddle.word(damaged + 8, 300 | 9 << 48 | 4 << 56);
    let found = puddle.walk();
    assert!(matches!(&found[0], Err(HeapError::Extent { offset, .. }) if *offset == damaged));
    assert_eq!(found[1].as_ref().unwrap().type_id(), 2);
    assert_eq!(found.len(), 2);

    let mut overlapping = Puddle::new(1);
    overlapping.object(0, 1, 300, 16);
    overlapping.object(1, 1, 10, 16);
    assert_eq!(
        overlapping.only_error(),
        HeapError::Overlap {
            offset: 4096,
            end: 4608,
            next: 4352
        }
    );

    let mut past_end = Puddle::new(1);
    let offset = past_end.object(8175, 1, 241, 16);
    assert_eq!(
        past_end.only_error(),
        HeapError::PastEnd {
            offset,
            end: UNIT + 1,
            size: UNIT
        }
    );

    let mut huge = Puddle::new(1);
    let offset = huge.object(0, 1, (1 << 48) - 1, UNIT);
    assert!(matches!(huge.only_error(), HeapError::PastEnd { offset: at, .. } if at == offset));

    let mut unaligned = Puddle::new(1);
    let offset = unaligned.slab(8, 1, 8, &[]);
    assert_eq!(unaligned.only_error(), HeapError::SlabAlignment { offset });

    let mut at_root = Puddle::new(1);
    let offset = at_root.slab(0, 1, 8, &[]);
    assert!(at_root.walk()[0].is_ok());
    at_root.header.is_root = true;
    assert_eq!(at_root.only_error(), HeapError::SlabAtRoot { offset });

    let mut bits = Puddle::new(1);
    let offset = bits.slab(0, 1, 64, &[0, 63]);
    assert_eq!(
        bits.only_error(),
        HeapError::SlabBits {
            offset,
            element: 63
        }
    );

    let mut tail = Puddle::new(1);
    tail.object(3, 1, 1, 16);
    tail.flip(8176);
    let found = tail.walk();
    assert_eq!(
        found.last().unwrap().as_ref().unwrap_err(),
        &HeapError::BitmapTail {
            offset: 1024 + 127 * 8
        }
    );

    let mut log = Puddle::new(1);
    log.header.kind = PuddleKind::Log;
    assert_eq!(log.only_error(), HeapError::NotData);

    let mut short = Puddle::new(1);
    short.object(100, 1, 1, 16);
    short.bytes.truncate(8192);
    assert!(matches!(short.only_error(), HeapError::Read(_)));
    short.bytes.truncate(100);
    assert!(matches!(short.only_error(), HeapError::Read(_)));
}

#[test]
fn an_address_leads_to_its_object() {
    let mut puddle = Puddle::new(2);
    puddle.object(0, 1, 1000, 64);
    let slab = puddle.slab(32, 2, 24, &[0, 5]);
    let at = |offset: u64| {
        locate(
            puddle.bytes.as_slice(),
            &puddle.header,
            puddle.header.address + offset,
        )
        .unwrap()
    };
    let heap = puddle::heap_offset(puddle.header.size);
    let place = |offset: u64| at(offset).unwrap().place;
    assert_eq!(place(heap), Place::Header);
    assert_eq!(place(heap + 63), Place::Header);
    assert!(matches!(place(heap + 64), Place::Object { object, offset: 0 } if object.size == 1000));
    assert!(matches!(
        place(heap + 1063),
        Place::Object { offset: 999, .. }
    ));
    assert_eq!(place(heap + 1064), Place::Tail);
    assert_eq!(at(heap + 5 * 256), None);
    assert!(
        matches!(place(slab + 48 + 5 * 24 + 7), Place::Object { object, offset: 7 } if object.element == Some(5))
    );
    assert_eq!(place(slab + 48 + 4 * 24), Place::FreeElement { element: 4 });
    assert_eq!(place(slab + 47), Place::Header);
    assert_eq!(place(slab + 48 + 168 * 24), Place::Tail);
    assert_eq!(at(slab + 4096), None);
    assert_eq!(at(0), None);
    assert_eq!(at(puddle.header.size), None);
    assert_eq!(
        locate(puddle.bytes.as_slice(), &puddle.header, 0).unwrap(),
        None
    );
    assert_eq!(
        locate(puddle.bytes.as_slice(), &puddle.header, u64::MAX).unwrap(),
        None
    );
}

/// What the model thinks lies at a granule.
#[derive(Clone, Debug)]
enum Thing {
    Object {
        type_id: u64,
        size: u64,
        data_offset: u64,
    },
    Slab {
        type_id: u64,
        size: u64,
        elements: Vec<u64>,
    },
}

fn thing() -> impl Strategy<Value = (u64, Thing)> {
    let object = (
        0..8176u64 * 2,
        1..100u64,
        prop_oneof![1..2000u64, 1..600_000u64],
        4..12u32,
    )
        .prop_map(|(granule, type_id, size, shift)| {
            (
                granule,
                Thing::Object {
                    type_id,
                    size,
                    data_offset: 1 << shift,
                },
            )
        });
    let slab = (
        0..1022u64,
        1..100u64,
        1..=256u64,
        prop::collection::btree_set(0..501u64, 0..40),
    )
        .prop_map(|(page, type_id, size, elements)| {
            let capacity = slab_geometry(size).capacity;
            let elements = elements
                .into_iter()
                .filter(|element| *element < capacity)
                .collect();
            (
                page * 16,
                Thing::Slab {
                    type_id,
                    size,
                    elements,
                },
            )
        });
    prop_oneof![object, slab]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// The model places things wherever there is room; walk, objects and locate must tell the same.
    #[test]
    fn the_walk_finds_what_the_model_placed(things in prop::collection::vec(thing(), 0..60)) {
        let mut puddle = Puddle::new(2);
        let mut taken: BTreeMap<u64, u64> = BTreeMap::new();
        let mut model = BTreeMap::new();
        let mut model_objects = Vec::new();
        for (granule, thing) in things {
            let bytes = match &thing {
                Thing::Object { size, data_offset, .. } => size + data_offset,
                Thing::Slab { size, .. } => slab_geometry(*size).extent_size,
            };
            let end = granule + bytes.div_ceil(GRANULE);
            let free = taken.range(..end).next_back().is_none_or(|(_, taken_end)| *taken_end <= granule);
            if !free || end > 2 * 8176 {
                continue;
            }
            taken.insert(granule, end);
            model.insert(granule, thing);
        }
        for (granule, thing) in &model {
            match thing {
                Thing::Object { type_id, size, data_offset } => {
                    let offset = puddle.object(*granule, *type_id, *size, *data_offset);
                    model_objects.push((offset + data_offset, *type_id, *size));
                }
                Thing::Slab { type_id, size, elements } => {
                    let offset = puddle.slab(*granule, *type_id, *size, elements);
                    let step = extent::element_size(*size).unwrap();
                    let first = offset + slab_geometry(*size).data_offset;
                    model_objects.extend(elements.iter().map(|element| (first + element * step, *type_id, step)));
                }
            }
        }
        let found: Vec<_> = puddle.walk().into_iter().map(Result::unwrap).collect();
        prop_assert_eq!(found.iter().map(extent::Extent::granule).collect::<Vec<_>>(), model.keys().copied().collect::<Vec<_>>());
        for extent in &found {
            prop_assert_eq!(extent.granule() + extent.granules(), taken[&extent.granule()]);
        }
        let found: Vec<_> = objects(puddle.bytes.as_slice(), &puddle.header).map(Result::unwrap).collect();
        prop_assert_eq!(found.iter().map(|o| (o.offset, o.type_id, o.size)).collect::<Vec<_>>(), model_objects);
        for object in found {
            for inside in [0, object.size / 2, object.size - 1] {
                let address = puddle.header.address + object.offset + inside;
                let location = locate(puddle.bytes.as_slice(), &puddle.header, address).unwrap().unwrap();
                prop_assert_eq!(location.place, Place::Object { object, offset: inside });
            }
        }
    }
}
