//! The seeds: what durum writes, one set for each target.

use durum_format::code::Head;
use durum_format::code::places::{Function, Places};
use durum_format::extent::{self, ExtentHeader, ExtentKind, SlabHeader};
use durum_format::log::{EntryFlags, Order};
use durum_format::log_space::{self, LogSpaceEntry};
use durum_format::puddle::{self, PuddleHeader, PuddleKind};
use durum_format::record::{self, Operation, RecordHeader, RingSalt};
use durum_format::registry::{encode_changes, encode_snapshot};
use durum_format::section::{
    self, Bits, BitsChange, Code, FrameLink, FrameWriter, Lock, RecordWriter, Redo, StackTop,
};
use durum_format::twin::{self, SEAL_RANGE_MAX, SEAL_SIZE, Seal, SealRange, Stage};
use durum_format::{DEFAULT_BASE, UNIT};

use crate::common::{LogWriter, uuid};
use crate::files::{catalog, manifest, registry, registry_changes, store_header};
use crate::{common, contents};

pub const TYPES: [&str; 4] = [
    "u64\n",
    "struct \"Node\"(16,8){0:\"value\":i64;8:\"next\":*0;}\n",
    "struct \"T\"(16,8){0:\"len\":u16;8:\"any\":~any;16:\"p\":[*1;field \"len\"];}\n[char;tail]\n",
    "variants \"V\"(24,8,tag 0,1){0:\"A\"{}1:\"B\"{8:\"x\":[*0;2];}}\n",
];

/// Types, and what they may become.
const CHANGES: [(&str, &str); 3] = [
    (
        "struct \"Q\"(8,8){0:\"first\":*1;}\nstruct \"T\"(24,8){0:\"n\":u64;8:\"later\":reserved(16,1);}\n",
        "struct \"Q\"(8,8){0:\"first\":*1;}\nstruct \"J\" was \"T\"(24,8){0:\"m\" was \"n\":u64;8:\"p\":*1 in reserved;16:\"later\":reserved(8,1);}\n",
    ),
    (
        "variants \"V\"(16,8,tag 0,1){0:\"A\"{}3:\"B\"{8:\"x\":*0;}}\n",
        "variants \"V\"(16,8,tag 0,1){0:\"Z\" was \"A\"{}1:\"C\"{8:\"y\":~0;}3:\"B\"{8:\"x\":*0;}}\n",
    ),
    (
        "struct \"P<T>\"(8,8){0:\"n\":u32;8:\"a\":[*1;field \"n\"];}\nstruct \"T\"(1,1){0:\"x\":reserved(1,1);}\n",
        "struct \"P<J>\"(8,8){0:\"m\" was \"n\":u32;8:\"a\":[*1;field \"m\"];}\nstruct \"J\" was \"T\"(1,1){0:\"x\":bool in reserved;}\n",
    ),
];

/// Each kind of line; objects of the types, as bytes and as values.
fn dump_seeds() -> Vec<Vec<u8>> {
    let lines = [
        r#"{"durum-dump":1,"pool":"a b","engine":"twin","space":["0x200000000000","0x200000"],"objects":2,"root":true}"#,
        r#"{"type":1,"text":"struct \"a\"(8,8){0:\"p\":*0;}\n"}"#,
        r#"{"object":1,"type":1,"bytes":24,"align":64,"value":{"p":[1,8]}}"#,
        r#"{"end":1}"#,
    ];
    let numbers = "struct \"N\"(32,8){0:\"a\":u64;8:\"b\":f64;16:\"c\":i32;20:\"d\":char;24:\"e\":bool;25:\"f\":[u8;7];}\n";
    let values = [
        (TYPES[1], r#"{"value":-9007199254740993,"next":4}"#),
        (
            TYPES[1],
            r#"[{"value":"-1","next":[2,1]},{"value":0,"next":{"address":"0x3"}}]"#,
        ),
        (TYPES[3], r#"{"B":{"x":[null,1]}}"#),
        ("", r#"{"bytes":"ab","pointers":[[8,4],[16,[2,1]]]}"#),
        (
            numbers,
            r#"{"a":"18446744073709551615","b":1.5e300,"c":-7,"d":"\u00e4","e":true,"f":{"base64":"/w=="}}"#,
        ),
        (
            numbers,
            r#"{"a":1,"b":{"bits":"0x7ff0000000000001"},"c":0,"d":"x","e":{"bits":"0x2"},"f":"a\"b"}"#,
        ),
    ];
    let objects = TYPES.into_iter().chain([numbers, ""]);
    let objects =
        objects.map(|text| [text.as_bytes(), &[0, 1, 4, 0, 0, 0, 0, 0, 0, 5], &[0; 40]].concat());
    let values = values.map(|(text, value)| [text.as_bytes(), &[0], value.as_bytes()].concat());
    let lines = lines.map(|line| line.as_bytes().to_vec());
    lines.into_iter().chain(objects).chain(values).collect()
}

/// Seals the record that begins at `start`. The one with stamp 5 is the second part of the one with stamp 4.
fn seal(words: &mut Vec<u64>, start: usize, stamp: u64, salt: &RingSalt) {
    let header = RecordHeader {
        stamp,
        watermark: 2,
        previous: stamp - 1,
        log: 1,
        part: u32::from(stamp == 5),
        more: stamp == 4,
        fenced: stamp != 5,
    };
    let offset = puddle::heap_offset(UNIT) + 4096 + (start as u64 - 16) * 8;
    header.seal(&mut words[start..], salt, offset);
    words.resize(words.len().next_multiple_of(8), 0);
}

/// Small valid inputs, by target.
pub fn seeds(target: &str) -> Vec<Vec<u8>> {
    let header = PuddleHeader {
        kind: PuddleKind::Data,
        uuid: uuid(1),
        owner: uuid(2),
        address: DEFAULT_BASE,
        size: UNIT,
        is_root: true,
    };
    match target {
        "puddle_header" => {
            let log = PuddleHeader {
                kind: PuddleKind::Log,
                is_root: false,
                size: 4 * UNIT,
                ..header
            };
            let log_space = PuddleHeader {
                kind: PuddleKind::LogSpace,
                ..log
            };
            let twin = PuddleHeader {
                kind: PuddleKind::Twin,
                ..header
            };
            let sections = PuddleHeader {
                kind: PuddleKind::Sections,
                ..log
            };
            [header, log, log_space, twin, sections]
                .iter()
                .map(|header| puddle::encode(header).to_vec())
                .collect()
        }
        "records" => {
            let mut words = vec![0u64; 16];
            let salt = RingSalt::new(uuid(1));
            for stamp in 3..7 {
                let start = words.len();
                words.resize(start + record::HEADER_WORDS, 0);
                record::push_words(&mut words, Operation::Store, DEFAULT_BASE, 5, &[stamp; 8]);
                record::push_words(&mut words, Operation::SetBits, DEFAULT_BASE, 2, &[1; 8]);
                record::push_copy(&mut words, DEFAULT_BASE + 7, &[stamp as u8; 20]);
                seal(&mut words, start, stamp, &salt);
            }
            let bytes = |words: &[u64]| words.iter().flat_map(|word| word.to_le_bytes()).collect();
            let (all, some) = (bytes(&words), bytes(&words[..32]));
            // The last transaction of its log, in two parts, went home with a range each.
            let mut words = vec![0u64; 16];
            for stamp in 3..6 {
                let start = words.len();
                words.resize(start + record::HEADER_WORDS, 0);
                record::push_words(&mut words, Operation::Store, DEFAULT_BASE, 5, &[stamp; 8]);
                record::push_fresh(&mut words, DEFAULT_BASE + 2000 * stamp, &[7; 1500]);
                seal(&mut words, start, stamp, &salt);
            }
            vec![all, some, bytes(&words)]
        }
        "sections" => sections(),
        "code" => code(),
        "heap" => {
            let object = |size, data_offset| ExtentHeader {
                type_id: 5,
                kind: ExtentKind::Object { size, data_offset },
            };
            let words = |header: ExtentHeader| {
                extent::encode(&header)
                    .into_iter()
                    .flat_map(u64::to_le_bytes)
            };
            let mut objects = vec![0, 2, 0b0000_1001, 1];
            objects.extend(words(object(600, 64)));
            objects.resize(objects.len() + 240, 0);
            let slab_heap = |size| {
                let slab = SlabHeader::new(size).unwrap();
                let extent_size = slab.geometry().extent_size;
                let mut bytes = vec![0, 4, 1, 0, 1, 0];
                bytes.extend(words(ExtentHeader {
                    type_id: 6,
                    kind: ExtentKind::Slab { extent_size },
                }));
                bytes.extend(slab.encode().to_le_bytes());
                bytes.extend([0b1010_0101, 0xff, 0, 1]);
                bytes.resize(6 + 4096, 0);
                bytes
            };
            vec![objects, slab_heap(24), slab_heap(200), vec![1, 1, 1]]
        }
        "log_bytes" => {
            let mut empty = LogWriter::new(256);
            empty.at = 0;
            let mut sealed = LogWriter::at_generation(512, 20);
            sealed.undo(DEFAULT_BASE + 4096, b"hello");
            sealed.copy(Order::Reverse, EntryFlags::VOLATILE, 1, 64, b"volatile");
            sealed.redo(DEFAULT_BASE + 8192, &[1; 16]);
            sealed.bits(true, DEFAULT_BASE + 1024, 2);
            sealed.seal(EntryFlags::NONE, &[(DEFAULT_BASE, &[0; 8])]);
            let mut chained = LogWriter::at_generation(256, 3);
            chained.undo(DEFAULT_BASE + 4096, b"chained");
            chained.chain(DEFAULT_BASE + UNIT);
            vec![empty.heap, sealed.heap, chained.heap]
        }
        "log_entries" => {
            // generation, range; then per entry: stale, length, step, sequence, order, kind, flags, reach, target, data
            let entry = |sequence: u8, order: u8, kind: u8, flags: u8, target: u64, data: &[u8]| {
                let mut bytes = vec![
                    0,
                    data.len() as u8,
                    u8::from(flags & 2 != 0),
                    sequence,
                    order,
                    kind,
                    flags,
                    0,
                ];
                bytes.extend(target.to_le_bytes());
                bytes.extend(data);
                bytes
            };
            let undo = [
                entry(1, 1, 1, 2, 4096, b"first"),
                entry(1, 1, 1, 2, 8192, b"second"),
            ]
            .concat();
            let redo = [
                entry(3, 0, 1, 0, 4096, b"redo"),
                entry(3, 0, 2, 0, 1024, &[1; 8]),
            ]
            .concat();
            let seal = entry(0, 0, 4, 0, 0, &[[2, 0, 0, 0, 0, 0, 0, 0], [0; 8]].concat());
            let chain = entry(0, 0, 5, 2, DEFAULT_BASE, &[]);
            let with = |word: [u8; 3], parts: &[&[u8]]| [word.as_slice(), &parts.concat()].concat();
            vec![
                with([3, 0, 2], &[&undo]),
                with([3, 0, 2], &[&redo, &seal]),
                with([5, 2, 4], &[&redo]),
                with([1, 0, 2], &[&undo, &chain]),
                with([0, 0, 0], &[&undo]),
            ]
        }
        "log_space" => {
            let entry = LogSpaceEntry {
                log_id: 9,
                puddle: uuid(3),
                address: DEFAULT_BASE,
            };
            let mut space = log_space::encode_header(uuid(2)).to_vec();
            space.extend(entry.encode());
            space.extend([0; 64]);
            space.extend(
                LogSpaceEntry {
                    log_id: 10,
                    ..entry
                }
                .encode(),
            );
            vec![log_space::encode_header(uuid(2)).to_vec(), space]
        }
        "types" => {
            let object =
                |text: &str| [text.as_bytes(), &[0, 1, 0, 0, 0, 0, 0, 0, 0], &[0; 40]].concat();
            TYPES.into_iter().map(object).collect()
        }
        "dump" => dump_seeds(),
        "content" => contents::heaps()
            .into_iter()
            .map(|(data, _)| data)
            .collect(),
        "successors" => CHANGES
            .into_iter()
            .map(|(was, is)| {
                let object = [3, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0x20].repeat(6);
                [was.as_bytes(), &[0], is.as_bytes(), &[0], &object].concat()
            })
            .collect(),
        "catalog" => {
            let file = catalog().encode().unwrap();
            let body = file.iter().position(|byte| *byte == b'\n').unwrap() + 1;
            vec![file.clone(), file[body..].to_vec()]
        }
        "registry" => {
            let (state, changes) = (registry(), registry_changes());
            let file = encode_snapshot(&state).unwrap();
            let record = encode_changes(state.store.uuid, state.sequence + 1, &changes);
            let text = |bytes: &[u8]| {
                let line = bytes.iter().position(|byte| *byte == b'\n').unwrap() + 1;
                bytes[line..].to_vec()
            };
            let texts = [text(&file), text(&record), text(&record)].join(&0);
            vec![[&file[..], &record].concat(), texts]
        }
        "export" => {
            let file = manifest().encode().unwrap();
            let body = file.iter().position(|byte| *byte == b'\n').unwrap() + 1;
            vec![file.clone(), file[body..].to_vec()]
        }
        "store" => vec![store_header().encode().unwrap().into_bytes()],
        "twin" => {
            let state = |stage, is_listed| {
                let state = twin::State {
                    generation: 5,
                    stage,
                    is_settled: stage == Stage::Idle,
                    is_listed,
                };
                state.to_word().to_le_bytes()
            };
            let ranges = [(0, 8), (4096, 5), (UNIT, SEAL_RANGE_MAX)]
                .map(|(offset, length)| SealRange::new(DEFAULT_BASE + offset, length).unwrap());
            let mut place = [0; SEAL_SIZE];
            let used = Seal::encode(5, &ranges, |_| (), &mut place);
            let mut seeds = [Stage::Idle, Stage::Changing, Stage::Copying]
                .map(|stage| [&state(stage, false), &place[..used]].concat())
                .to_vec();
            // A list of suspects behind a word of it, and behind a state that says that there is one.
            let suspect = twin::Suspect::new((DEFAULT_BASE / twin::GROUP_SIZE) as u32, 5);
            let word = suspect.to_word().to_le_bytes();
            let mut list = [0; twin::SUSPECTS_SIZE];
            list[..8].copy_from_slice(&word);
            list[80..88].copy_from_slice(&twin::Suspect::EVERYTHING.to_word().to_le_bytes());
            seeds.push([&word[..], &list[..72]].concat());
            seeds.push([&state(Stage::Changing, true)[..], &list].concat());
            seeds
        }
        _ => Vec::new(),
    }
}

/// A head, what an executable needs, and places.
fn code() -> Vec<Vec<u8>> {
    let function = |hash, name, lines: &[u32]| Function {
        hash,
        name,
        file: "queue.c",
        lines: lines.to_vec(),
    };
    let places = Places {
        program: "queue",
        build: "3f2a81",
        functions: vec![function(4, "push", &[66, 67]), function(9, "pop", &[0])],
    };
    let places = places.encode();
    let code = common::elf::executable(&[("durum_features", b"avx2\0bmi\0"), (".text", b"code")]);
    vec![Head::of(&code, &places).encode().to_vec(), code, places]
}

/// A head; and slots whose stacks have four lines, and whose banks begin with so many words.
fn sections() -> Vec<Vec<u8>> {
    let head = section::Head {
        client: uuid(2),
        salt: 7,
        slots: 31,
        stack_size: section::STACK_SIZE_DEFAULT,
    };
    let salt = head.slot_salt(3);
    let code = |region| Code::new(0xaaaa_bbbb_cccc, region).unwrap();
    let slot = |words: [&[u64]; 3]| {
        let counts = [words[0].len() as u8, words[1].len() as u8];
        let words = words.concat();
        let words = words.iter().flat_map(|word| word.to_le_bytes());
        [3, counts[0], counts[1]].into_iter().chain(words).collect()
    };
    let mut banks = [[0; section::BANK_WORDS]; 2];
    let freed = Bits {
        address: DEFAULT_BASE + 256,
        mask: 5,
        change: BitsChange::Freed,
    };
    let lock = Lock::at(DEFAULT_BASE + 64).unwrap();
    let writer = RecordWriter::new(&mut banks[1], 5, code(1));
    let line = writer.live_ins(&[1, 2, 3, 4]).lock(lock).finish(&salt);
    let idle = RecordWriter::idle(&mut banks[0], 4)
        .bits(freed)
        .finish(&salt);
    let one = slot([
        &banks[0][..idle.unwrap().bytes / 8],
        &banks[1][..line.unwrap().bytes / 8],
        &[],
    ]);

    let mut stack = [0; 16];
    let mut below = StackTop::default();
    for index in [1, 6, 11] {
        let writer = FrameWriter::new(&mut stack[index..], code(2), below);
        let checksum = writer.live_ins(&[8, 9]).finish(&salt).unwrap().checksum;
        let index = index as u16;
        below = StackTop {
            free: index + 5,
            frame: Some(FrameLink { index, checksum }),
        };
    }
    let address = DEFAULT_BASE + 128;
    let writer = RecordWriter::new(&mut banks[0], 6, code(3)).live_ins(&[1]);
    let writer = writer.lock(lock).lock(Lock::named(9)).stack(below);
    let writer = writer.redo(Redo {
        address,
        bytes: Redo::WHOLE,
        value: 1,
    });
    let taken = Bits {
        address,
        mask: 2,
        change: BitsChange::Taken,
    };
    let all = writer.bits(taken).bits(freed).finish(&salt);
    let (even, odd) = banks.split_at(1);
    let words = all.unwrap().bytes / 8;
    let two = slot([&even[0][..words], &odd[0][..8], &stack]);
    vec![head.encode().to_vec(), one, two]
}
