//! Bytes forged at random in the files of one gone client, beside one that works and one that left honest logs: the
//! pools of others are right byte for byte, and the store opens with little memory.
//!
//! The forger knows the structures: checksums are right more often than not, and numbers are those that mean something
//! somewhere. A case is told by its number and can be tried alone: `DURUM_TEST_FORGED=17..18`.

use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::path::Path;

use durum_format::crc::crc32c;
use durum_format::log::{EntryFlags, EntryKind, LOG_AREA_OFFSET, Order, RangeWord};
use durum_format::log_space::{self, LogSpaceEntry};
use durum_format::puddle;
use durum_format::record::header::PARTS_MAX;
use durum_format::record::{self, Operation, RecordHeader, RingSalt};
use durum_format::twin::{self, Seal, SealRange, Stage, State, Suspect};
use durum_format::{UNIT, Uuid};
use durum_service::{
    CheckOptions, Embedded, Error, PoolSummary, PuddleGrant, PuddleKind, PuddleOwner, Service,
    check,
};

use crate::scene::{Hostile, PLACE, POOLS, Scene, assert_others};
use crate::support::{Log, heap, limit_memory, open, put, root, scratch, word};

const CASES: &str = "DURUM_TEST_FORGED";

/// What a case draws.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut bits = self.0;
        bits = (bits ^ bits >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        bits = (bits ^ bits >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        bits ^ bits >> 31
    }

    fn below(&mut self, end: u64) -> u64 {
        self.next() % end
    }

    fn one_in(&mut self, of: u64) -> bool {
        self.below(of) == 0
    }

    fn one<T: Copy>(&mut self, of: &[T]) -> T {
        of[self.below(of.len() as u64) as usize]
    }

    fn number(&mut self) -> u64 {
        let near = self.one(&[
            0,
            1,
            2,
            64,
            4096,
            UNIT,
            1 << 16,
            1 << 31,
            1 << 32,
            1 << 47,
            1 << 48,
            1 << 63,
        ]);
        match self.below(4) {
            0 => near.wrapping_sub(1 + self.below(3)),
            1 => self.next() >> self.below(64),
            _ => near.wrapping_add(self.below(3)),
        }
    }

    fn length(&mut self) -> usize {
        self.one(&[0, 1, 7, 8, 9, 64, 100, 4096, 5000])
    }
}

/// What the client has to forge with.
struct Forger<'c> {
    random: Random,
    client: &'c mut Hostile,
    /// Logs besides that of the client, in any state.
    logs: Vec<Log>,
    /// Addresses that mean something: of its own puddles, of those of others, of one that is free.
    addresses: Vec<u64>,
    uuids: Vec<Uuid>,
}

impl Forger<'_> {
    /// An address: mostly where the client may write.
    fn target(&mut self) -> u64 {
        let random = &mut self.random;
        let inside = random.one(&[0, 8, 1023, 1024, 4096, PLACE, PLACE + 4090, UNIT - 8, UNIT]);
        match random.below(8) {
            0 => random.number(),
            1 => random.one(&self.addresses).wrapping_add(inside),
            _ => {
                let pool = match random.below(3) {
                    0 => &self.client.hybrid,
                    1 => &self.client.twin,
                    _ => &self.client.shadow,
                };
                root(pool).address + PLACE + random.below(512)
            }
        }
    }

    fn any_file<R>(&mut self, with: impl FnOnce(&mut Random, &PuddleGrant) -> R) -> R {
        let Forger {
            random,
            client,
            logs,
            ..
        } = self;
        let files = [
            &client.space.grant,
            &client.records.grant,
            root(&client.hybrid),
            root(&client.twin),
            root(&client.shadow),
        ];
        let parts = client
            .log
            .parts
            .iter()
            .chain(logs.iter().flat_map(|log| &log.parts));
        let files: Vec<&PuddleGrant> = files.into_iter().chain(parts).collect();
        let file = random.one(&files);
        with(random, file)
    }

    fn forge(&mut self) {
        match self.random.below(13) {
            0 => self.header(),
            1 => self.bytes(),
            2 => self.length(),
            3 | 4 => self.log_entry(),
            5 => self.range_word(),
            6 => self.seal(),
            7 => self.chain(),
            8 => self.log_space_entry(),
            9 | 10 => self.record(),
            11 => self.watermark(),
            _ => self.twin(),
        }
    }

    /// A field of a header, mostly under a checksum that is right.
    fn header(&mut self) {
        self.any_file(|random, file| {
            let (start, checked) = match random.below(3) {
                0 => (0, 68),
                _ => (heap(file), 60),
            };
            let mut header = [0; 128];
            file.file
                .read_exact_at(&mut header, start)
                .unwrap_or_default();
            let at = random.below(18) as usize * 4;
            let bytes = random.number().to_le_bytes();
            let length = random.one(&[1, 4, 8]);
            header[at..at + length].copy_from_slice(&bytes[..length]);
            if !random.one_in(3) {
                let sum = crc32c(&header[..checked]).to_le_bytes();
                header[checked..checked + 4].copy_from_slice(&sum);
            }
            put(file, start, &header);
        });
    }

    /// Bytes where something may lie.
    fn bytes(&mut self) {
        self.any_file(|random, file| {
            let start = random.one(&[
                0,
                960,
                1024,
                heap(file),
                heap(file) + LOG_AREA_OFFSET,
                heap(file) + 4096,
            ]);
            let bytes: Vec<u8> = (0..random.length()).map(|_| random.next() as u8).collect();
            put(file, start + random.below(256), &bytes);
        });
    }

    /// The length of a file, or a hole in it.
    fn length(&mut self) {
        self.any_file(|random, file| {
            let length = random.one(&[0, 64, 4096, UNIT - 1, UNIT, UNIT + 1, 2 * UNIT, 1 << 40]);
            file.file.set_len(length).unwrap();
            if random.one_in(2) {
                // What lay behind is a hole now.
                let copies = if file.kind == PuddleKind::Twin { 2 } else { 1 };
                file.file.set_len(copies * UNIT).unwrap();
            }
        });
    }

    fn log(&mut self) -> &mut Log {
        let at = self.random.below(self.logs.len() as u64 + 1) as usize;
        match self.logs.get_mut(at) {
            Some(log) => log,
            None => &mut self.client.log,
        }
    }

    fn log_entry(&mut self) {
        let (target, random) = (self.target(), &mut self.random);
        let kinds = [
            EntryKind::Copy,
            EntryKind::Copy,
            EntryKind::SetBits,
            EntryKind::ClearBits,
            EntryKind::Seal,
            EntryKind::Chain,
        ];
        let kind = random.one(&kinds);
        let order = random.one(&[Order::Forward, Order::Reverse]);
        let flags = random.one(&[EntryFlags::NONE, EntryFlags::FENCED, EntryFlags::VOLATILE]);
        let sequence = random.one(&[0, 1, 1, 3, 3, 4, 255]);
        let length = match kind {
            EntryKind::SetBits | EntryKind::ClearBits if !random.one_in(4) => 8,
            _ => random.length(),
        };
        let data = vec![random.next() as u8; length];
        self.log()
            .forge(kind, order, flags, sequence, target, &data);
    }

    fn range_word(&mut self) {
        let random = &mut self.random;
        let (lo, hi) = random.one(&[(0, 2), (2, 4), (4, 4), (4, 0), (0, 255)]);
        let generation = random.one(&[0, 1, 2, 17, 1 << 47, (1 << 48) - 1]);
        self.log().set_range(RangeWord { generation, lo, hi });
    }

    fn seal(&mut self) {
        let count = self.random.one(&[0, 1, 2, 16, 1100]);
        let ranges: Vec<(u64, u64)> = (0..count)
            .map(|_| (self.target(), self.random.one(&[0, 8, 8, 8, UNIT, 1 << 40])))
            .collect();
        match self.random.one_in(2) {
            // It holds: what is there is not known, but for places where nobody wrote.
            true => {
                let address = root(&self.client.hybrid).address + 0x8_0000;
                self.log().seal(&[(address, &[0; 64])]);
            }
            false => self.log().seal_over(&ranges, 0),
        }
    }

    fn chain(&mut self) {
        let address = self.random.one(&self.addresses);
        self.log().chain_to(address);
    }

    fn log_space_entry(&mut self) {
        let entry = LogSpaceEntry {
            log_id: self.random.one(&[0xdead, 0xbeef, 1, 0]),
            puddle: self.random.one(&self.uuids),
            address: self.random.one(&self.addresses),
        };
        let slot = self.random.below(6);
        let mut bytes = entry.encode();
        if self.random.one_in(4) {
            bytes[self.random.below(64) as usize] ^= 1;
        }
        let space = &self.client.space.grant;
        put(space, heap(space) + log_space::entry_offset(slot), &bytes);
    }

    fn record(&mut self) {
        let mut entries = Vec::new();
        for _ in 0..self.random.below(5) {
            let target = self.target() & ((1 << 56) - 1);
            let data = vec![self.random.next() as u8; self.random.length().max(1)];
            let operation =
                self.random
                    .one(&[Operation::Store, Operation::SetBits, Operation::ClearBits]);
            match self.random.below(5) {
                0 => record::push_copy(&mut entries, target, &data),
                1 => record::push_fresh(&mut entries, target, &[0; 8]),
                2 => {
                    let length = self.random.one(&[1, UNIT as usize, 1 << 31]);
                    record::push_fresh_sum(&mut entries, target, length, 0);
                }
                3 if self.random.one_in(4) => entries.push(self.random.number()),
                _ => record::push_word(&mut entries, operation, target & !7, 7),
            }
        }
        let (random, records) = (&mut self.random, &mut self.client.records);
        if random.one_in(2) {
            let far = 1 + random.below(1 << 33);
            let stamp = random.one(&[1, 2, 3, records.next.stamp.max(1), far, u64::MAX]);
            records.next = RecordHeader {
                stamp,
                watermark: random.one(&[0, 0, 0, stamp - 1, stamp, u64::MAX]),
                previous: random.one(&[0, 1, stamp - 1, stamp, 9]),
                log: random.one(&[0, 0, 1, u32::MAX]),
                part: random.one(&[0, 0, 1, PARTS_MAX]),
                more: random.one_in(3),
                fenced: random.one_in(2),
            };
        }
        if random.one_in(6) {
            // Behind a gap.
            records.offset += 64;
        }
        records.append(&entries);
    }

    fn watermark(&mut self) {
        let (random, grant) = (&mut self.random, &self.client.records.grant);
        let offset = record::watermark_offset(UNIT, random.below(2) as usize);
        let watermark = random.one(&[0, 1, 2, 3, u64::MAX]);
        let words = record::watermark_words(watermark, &RingSalt::new(grant.uuid), offset);
        let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_ne_bytes()).collect();
        put(grant, offset, &bytes);
    }

    fn twin(&mut self) {
        let count = self.random.below(4);
        let ranges: Vec<SealRange> = (0..count)
            .filter_map(|_| SealRange::new(self.target(), self.random.length()))
            .collect();
        let random = &mut self.random;
        let generation = random.one(&[0, 1, 2, 3, u64::MAX >> 5]);
        let puddle = root(&self.client.twin);
        let state = State {
            generation,
            stage: random.one(&[Stage::Idle, Stage::Changing, Stage::Copying]),
            is_settled: random.one_in(2),
            is_listed: random.one_in(2),
        };
        let state = match random.one_in(5) {
            true => random.next(),
            false => state.to_word(),
        };
        put(puddle, twin::STATE_OFFSET, &state.to_le_bytes());
        let mut place = [0; twin::SEAL_SIZE];
        let zeros = |crc: &mut durum_format::crc::Crc| {
            ranges
                .iter()
                .for_each(|range| crc.update(&vec![0; range.length()]))
        };
        Seal::encode(generation, &ranges, zeros, &mut place);
        let of = generation.wrapping_sub(random.below(2));
        put(puddle, twin::seal_offset(UNIT, of), &place);
        let list: Vec<u8> = (0..twin::SUSPECT_WORDS)
            .map(|_| match random.one_in(8) {
                true => Suspect::new(random.next() as u32 % (1 << 27), random.next() as u16),
                false => Suspect::new(
                    (puddle.address / twin::GROUP_SIZE) as u32 + random.below(3) as u32,
                    random.one(&[1, 3, u16::MAX]),
                ),
            })
            .flat_map(|suspect| suspect.to_word().to_le_bytes())
            .collect();
        let words = random.below(3) as usize * twin::SUSPECT_WORDS / 2;
        put(puddle, twin::suspects_offset(UNIT), &list[..8 * words]);
        // The heap, too: it says how far the copies are compared.
        put(
            puddle,
            puddle::BITMAP_OFFSET + random.below(1000),
            &[random.next() as u8],
        );
    }
}

/// A client forges what it can. It knows where its neighbours are.
fn forge(number: u64, client: &mut Hostile) {
    let mut random = Random(number);
    let mut logs = Vec::new();
    for log_id in [0xbeef, 0xdead, 3] {
        if random.one_in(2) {
            let log = Log::new(&client.store, log_id);
            if !random.one_in(3) {
                client.space.list(&log);
            }
            logs.push(log);
        }
    }
    if random.one_in(3) {
        client.log.chain(&client.store);
    }
    let owner = PuddleOwner::Pool(client.hybrid.uuid);
    let freed = client
        .store
        .create_puddle(owner, PuddleKind::Data, UNIT)
        .unwrap();
    client.store.remove_puddle(freed.uuid).unwrap();
    let (mut addresses, mut uuids) = (vec![freed.address, 0], vec![freed.uuid]);
    let puddles = client.store.info().path.join("puddles");
    for entry in std::fs::read_dir(puddles).unwrap() {
        let file = std::fs::File::open(entry.unwrap().path()).unwrap();
        let mut bytes = [0; 1024];
        file.read_exact_at(&mut bytes, 0).unwrap();
        let header = puddle::parse(&bytes, file.metadata().unwrap().len()).unwrap();
        addresses.push(header.address);
        uuids.push(header.uuid);
    }
    let count = 1 + random.below(12);
    let mut forger = Forger {
        random,
        client,
        logs,
        addresses,
        uuids,
    };
    (0..count).for_each(|_| forger.forge());
}

/// The bytes of the pools of others, but for those that their transactions are about.
fn others(store: &Path, roots: &[Uuid]) -> Vec<Vec<u8>> {
    let read = |root: &Uuid| {
        let mut bytes = std::fs::read(store.join("puddles").join(root.to_string())).unwrap();
        bytes[PLACE as usize..PLACE as usize + 128].fill(0);
        bytes
    };
    roots.iter().map(read).collect()
}

/// What a person may decide about a pool is no obstacle for others either.
fn decide(random: &mut Random, store: &Embedded) {
    for pool in POOLS {
        let decided = match random.below(4) {
            0 => store.retry_quarantined(pool).map(drop),
            1 => store.accept_quarantined(pool),
            2 => store.give_up(pool).map(drop),
            _ => store.remove_pool(pool),
        };
        let may_be = matches!(
            decided,
            Ok(())
                | Err(Error::NothingKept { .. }
                    | Error::PoolNotQuarantined { .. }
                    | Error::PoolRefused { .. }
                    | Error::PoolMissing { .. }
                    | Error::PoolWaits { .. })
        );
        assert!(may_be, "{pool}: {decided:?}");
        match store.open_pool(pool) {
            Ok(grant) => store.close_pool(grant.uuid).unwrap(),
            // Named, whatever is in the way.
            Err(error) => assert!(error.to_string().contains(pool), "{error}"),
        }
    }
}

fn case(number: u64) {
    let directory = scratch();
    let path = directory.path().join("store");
    let mut random = Random(!number);
    let (mut roots, mut before) = (Vec::new(), Vec::new());
    let scene = Scene::new(&path, |client| {
        let pools = client.store.pools().unwrap();
        let is_other = |pool: &&PoolSummary| !POOLS.contains(&pool.name.as_str());
        roots = pools
            .iter()
            .filter(is_other)
            .map(|pool| pool.root_puddle)
            .collect();
        before = others(&path, &roots);
        forge(number, client);
    });
    assert_eq!(roots.len(), 2);
    let assert_untouched = || assert!(others(&path, &roots) == before, "bytes of others");
    if random.one_in(2) {
        scene.recover();
        assert_untouched();
        if random.one_in(2) {
            decide(&mut random, &scene.works);
            assert_others(&scene.works);
        }
        drop(scene);
    } else {
        let store = scene.restart(&path);
        assert_untouched();
        decide(&mut random, &store);
        assert_others(&store);
        drop(store);
    }
    for _ in 0..2 {
        let store = open(&path);
        assert_others(&store);
        assert_eq!(word(root(&store.open_pool("works").unwrap()), PLACE), 5);
        decide(&mut random, &store);
        assert_untouched();
        drop(store);
        check(&path, &CheckOptions::default()).unwrap();
    }
}

/// Not a test of its own: tries cases with little memory.
#[test]
fn process_that_forges() {
    let Ok(cases) = std::env::var(CASES) else {
        return;
    };
    let (first, end) = cases.split_once("..").unwrap();
    limit_memory(256 << 20);
    for number in first.parse().unwrap()..end.parse().unwrap() {
        println!("case {number}");
        case(number);
    }
}

fn try_cases(cases: Range<u64>) {
    let output = std::process::Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "forged::process_that_forges", "--nocapture"])
        .env(CASES, format!("{}..{}", cases.start, cases.end))
        .output()
        .unwrap();
    let told = String::from_utf8_lossy(&output.stdout);
    let last = told.lines().rfind(|line| line.starts_with("case"));
    assert!(
        output.status.success(),
        "{last:?}: {}",
        String::from_utf8_lossy(&output.stderr)
    );
    assert!(last.is_some(), "no case was tried");
}

#[test]
fn forged_bytes_cost_their_client_alone() {
    try_cases(0..50);
}

#[test]
#[ignore = "takes minutes"]
fn many_forged_bytes_cost_their_client_alone() {
    for first in (200..20_200).step_by(1000) {
        try_cases(first..first + 1000);
    }
}
