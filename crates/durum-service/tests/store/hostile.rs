//! What a hostile client writes costs its own pools, and nothing else: the store opens, others are recovered, and they
//! go on. A client has files of pools, logs and log spaces open for writing, and may change any byte and the length.

use std::thread;

use durum_format::log::{LOG_AREA_OFFSET, LogHeader};
use durum_format::log_space;
use durum_format::record;
use durum_format::twin::STATE_OFFSET;
use durum_format::{UNIT, Uuid};
use durum_persist::Site;
use durum_persist::file::MediaFile;
use durum_persist::inject::{self, Operation};
use durum_service::{CreateOptions, PuddleGrant, PuddleKind, PuddleOwner, Service};
use rustix::fs::FallocateFlags;

use crate::scene::Fate::{self, Opens, Quarantined, Refused, Unreadable};
use crate::scene::{Hostile, PLACE, POOLS, Scene, assert_others, fate};
use crate::support::{Log, Space, create_options, heap, open, put, root, scratch, spec, word};

/// Tries an attack, with a store that goes on and with one that is opened again, and expects the same of both.
fn assert_costs(what: &str, expected: [Fate; 3], attack: &dyn Fn(&mut Hostile)) {
    let directory = scratch();
    let scenes = ["goes on", "opened again"].map(|way| directory.path().join(way));
    let [goes_on, again] = scenes
        .each_ref()
        .map(|path| Scene::new(path, |client| attack(client)));
    goes_on.recover();
    let found = POOLS.map(|pool| fate(&goes_on.works, pool));
    assert_eq!(found, expected, "{what}");
    let store = again.restart(&scenes[1]);
    let found = POOLS.map(|pool| fate(&store, pool));
    assert_eq!(found, expected, "{what}, opened again");
    // What stays is no obstacle later.
    drop(store);
    assert_others(&open(&scenes[1]));
}

const ALL_QUARANTINED: [Fate; 3] = [Quarantined; 3];

fn punch(file: &MediaFile, from: u64, length: u64) {
    let flags = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
    rustix::fs::fallocate(file, flags, from, length).unwrap();
}

/// The files whose bytes recovery has to read to know what is to be done.
fn of_logs(client: &Hostile) -> [&PuddleGrant; 3] {
    [
        &client.log.parts[0],
        &client.space.grant,
        &client.records.grant,
    ]
}

#[test]
fn another_version_in_any_header() {
    for index in 0..3 {
        assert_costs("a puddle's header", ALL_QUARANTINED, &|client| {
            put(of_logs(client)[index], 8, &[9]);
        });
    }
    for index in 0..2 {
        assert_costs("what is in the puddle", ALL_QUARANTINED, &|client| {
            let puddle = of_logs(client)[index];
            put(puddle, heap(puddle) + 8, &[9]);
        });
    }
    let expected = [Refused, Refused, Refused];
    assert_costs("data", expected, &|client| {
        for pool in [&client.hybrid, &client.twin, &client.shadow] {
            put(root(pool), 8, &[9]);
        }
    });
}

/// It is kept, for a durum that knows it.
#[test]
fn a_log_of_a_newer_version_is_replayed_by_those_who_can_read_it() {
    let directory = scratch();
    let path = directory.path().join("store");
    let mut file = String::new();
    let scene = Scene::new(&path, |client| {
        let log = &client.log.parts[0];
        put(log, heap(log) + 8, &[9]);
        put(root(&client.hybrid), PLACE, &2_u64.to_le_bytes());
        file = log.uuid.to_string();
    });
    let store = scene.restart(&path);
    let note = &store.recovery_report().quarantined[0];
    assert!(note.reason.contains("version 9"), "{}", note.reason);
    let kept = path.join("quarantine").join(file);
    let mut bytes = std::fs::read(&kept).unwrap();
    bytes[4096 + 8] = 1;
    std::fs::write(kept, bytes).unwrap();
    let report = store.retry_quarantined("hybrid").unwrap();
    assert!(report.quarantined.is_empty(), "{report:?}");
    let pool = store.open_pool("hybrid").unwrap();
    assert_eq!(word(root(&pool), PLACE), 1);
}

#[test]
fn files_that_are_cut_short_lengthened_or_full_of_holes() {
    for index in 0..3 {
        for length in [0, 100, UNIT - 1, UNIT + 1, 1 << 40] {
            let what = format!("file {index} of {length} bytes");
            assert_costs(&what, ALL_QUARANTINED, &|client| {
                of_logs(client)[index].file.set_len(length).unwrap();
            });
        }
        let what = format!("file {index}, a hole altogether");
        assert_costs(&what, ALL_QUARANTINED, &|client| {
            punch(&of_logs(client)[index].file, 0, UNIT);
        });
    }
    // Without their headers these are no logs, and without their contents there is nothing to do.
    assert_costs("a hole in a log", [Opens; 3], &|client| {
        let log = &client.log.parts[0];
        punch(&log.file, heap(log) + LOG_AREA_OFFSET, UNIT / 2);
    });
    for length in [0, 100, UNIT - 1, 1 << 40] {
        assert_costs("data", [Refused; 3], &|client| {
            for pool in [&client.hybrid, &client.twin, &client.shadow] {
                root(pool).file.set_len(length).unwrap();
            }
        });
    }
    // The registry knows what the files are; a heap that is gone is its owner's loss.
    assert_costs("holes in data", [Opens; 3], &|client| {
        for pool in [&client.hybrid, &client.twin, &client.shadow] {
            punch(&root(pool).file, 4096, UNIT - 4096);
        }
    });
    assert_costs("unused data", [Opens, Opens, Unreadable], &|client| {
        let owner = PuddleOwner::Pool(client.shadow.uuid);
        let more = client.store.create_puddle(owner, PuddleKind::Data, UNIT);
        let more = more.unwrap();
        // Its record is home already.
        client.records.next.watermark = client.records.next.stamp - 1;
        client.records.append(&[]);
        more.file.set_len(0).unwrap();
    });
}

#[test]
fn a_state_of_a_twin_pool_that_nobody_writes() {
    for state in [3, u64::MAX, 1, 9 << 3 | 1] {
        assert_costs("a state", [Opens, Refused, Opens], &|client| {
            put(root(&client.twin), STATE_OFFSET, &state.to_le_bytes());
        });
    }
    assert_costs("a seal", [Opens; 3], &|client| {
        let twin = root(&client.twin);
        put(twin, heap(twin) - 2048, &[0xff; 2048]);
    });
}

/// Names a puddle in the log space.
fn name(client: &mut Hostile, log_id: u64, puddle: Uuid, address: u64) {
    let entry = log_space::LogSpaceEntry {
        log_id,
        puddle,
        address,
    };
    let space = &mut client.space;
    let offset = heap(&space.grant) + log_space::entry_offset(space.used);
    put(&space.grant, offset, &entry.encode());
    space.used += 1;
}

#[test]
fn a_log_space_that_names_what_is_no_log_or_names_one_twice() {
    assert_costs("itself", ALL_QUARANTINED, &|client| {
        let (uuid, address) = (client.space.grant.uuid, client.space.grant.address);
        name(client, 1, uuid, address);
    });
    assert_costs("data", ALL_QUARANTINED, &|client| {
        let (uuid, address) = (root(&client.hybrid).uuid, root(&client.hybrid).address);
        name(client, 1, uuid, address);
    });
    assert_costs("a log twice", ALL_QUARANTINED, &|client| {
        let (uuid, address) = (client.log.parts[0].uuid, client.log.parts[0].address);
        name(client, client.log.log_id, uuid, address);
    });
    assert_costs("another client's log", ALL_QUARANTINED, &|client| {
        let other = client.store.host().client().unwrap();
        let log = Space::new(&other).log(&other, 1);
        name(client, 1, log.parts[0].uuid, log.parts[0].address);
    });
    assert_costs("two logs of one id", ALL_QUARANTINED, &|client| {
        let log = Log::new(&client.store, client.log.log_id);
        client.space.list(&log);
    });
}

#[test]
fn a_log_that_goes_on_in_itself() {
    assert_costs("a circle", ALL_QUARANTINED, &|client| {
        let Hostile { store, log, .. } = client;
        log.chain(store);
        log.chain_to(log.parts[1].address);
    });
    assert_costs("another log", ALL_QUARANTINED, &|client| {
        let Hostile {
            store, space, log, ..
        } = client;
        let other = space.log(store, 7);
        log.chain_to(other.parts[0].address);
    });
    assert_costs("a continuation of nothing", [Opens; 3], &|client| {
        let log = Log::new(&client.store, 8);
        let header = LogHeader::new(8, client.store.info().client, UNIT, true);
        put(&log.parts[0], heap(&log.parts[0]), &header.encode());
    });
}

#[test]
fn numbers_at_the_end_of_their_range() {
    assert_costs("an undo behind all addresses", ALL_QUARANTINED, &|client| {
        client.log.undo(u64::MAX - 7, &[1; 7]);
    });
    assert_costs("a seal of everything", ALL_QUARANTINED, &|client| {
        let address = root(&client.hybrid).address;
        client
            .log
            .seal_over(&[(address + PLACE, u64::MAX), (address, u64::MAX)], 0);
    });
    for (stamp, watermark) in [(u64::MAX, 0), (u64::MAX, u64::MAX - 1), (2, u64::MAX)] {
        let what = format!("stamp {stamp:#x}, watermark {watermark:#x}");
        assert_costs(&what, [Opens; 3], &|client| {
            let address = root(&client.shadow).address + PLACE;
            let next = &mut client.records.next;
            (next.stamp, next.watermark, next.fenced) = (stamp, watermark, false);
            client.records.store(address, 3);
        });
    }
    for (target, len) in [(u64::MAX >> 8, 1 << 31), (0, 1), (PLACE, 1 << 31)] {
        assert_costs("fresh bytes elsewhere", ALL_QUARANTINED, &|client| {
            let mut entries = Vec::new();
            record::push_fresh_sum(&mut entries, target, len, 0);
            client.records.append(&entries);
        });
    }
    assert_costs("an entry of no kind", ALL_QUARANTINED, &|client| {
        client.records.append(&[u64::MAX]);
    });
    assert_costs("a stamp twice", ALL_QUARANTINED, &|client| {
        client.records.next.stamp = 1;
        client
            .records
            .store(root(&client.shadow).address + PLACE, 3);
    });
}

/// A child of a client that is gone has its files, and changes them while they are read.
#[test]
fn files_that_are_cut_short_while_a_client_is_recovered() {
    type Cut = fn(&Hostile) -> Vec<&PuddleGrant>;
    let cuts: [(Cut, [Fate; 3]); 2] = [
        (
            |client| vec![root(&client.hybrid), root(&client.shadow)],
            [Refused, Opens, Refused],
        ),
        // The Twin pool needs none of them.
        (
            |client| of_logs(client).to_vec(),
            [Quarantined, Opens, Quarantined],
        ),
    ];
    for (cut, expected) in cuts {
        let directory = scratch();
        let path = directory.path().join("store");
        let (scene, client) = Scene::keeping(&path, &create_options(), |_| {});
        let client = &client;
        let held = inject::hold(Site("logs that are replayed"));
        thread::scope(|scope| {
            let recovery = scope.spawn(|| {
                inject::volunteer();
                scene.host.recover_client(scene.hostile).unwrap()
            });
            held.wait();
            cut(client)
                .iter()
                .for_each(|puddle| puddle.file.set_len(8).unwrap());
            drop(held);
            assert_eq!(recovery.join().unwrap().refused.len(), 2);
        });
        scene.recover();
        assert_eq!(POOLS.map(|pool| fate(&scene.works, pool)), expected);
    }
}

#[test]
fn files_that_the_media_do_not_give_back_or_take() {
    type File = fn(&Hostile) -> &PuddleGrant;
    let log: File = |client| &client.log.parts[0];
    let data: File = |client| root(&client.hybrid);
    for (operation, file, expected) in [
        (Operation::Read, log, ALL_QUARANTINED),
        (Operation::Sync, log, [Refused, Opens, Refused]),
        (Operation::Read, data, [Refused, Opens, Opens]),
        (Operation::Write, data, [Refused, Opens, Opens]),
        (Operation::Sync, data, [Refused, Opens, Opens]),
    ] {
        let directory = scratch();
        let path = directory.path().join("store");
        let (scene, client) = Scene::keeping(&path, &create_options(), |_| {});
        let file = path.join("puddles").join(file(&client).uuid.to_string());
        let fails = inject::fail_after(operation, 0, &file);
        scene.recover();
        let found = POOLS.map(|pool| fate(&scene.works, pool));
        assert_eq!(found, expected, "{operation:?} of {}", file.display());
        drop(fails);
    }
}

/// A log names places where its client may not write: none of it is applied, also what it may write.
#[test]
fn what_lies_outside_of_the_grants_is_not_written_by_any_engine() {
    type Attack = fn(&mut Hostile, u64);
    let attacks: [(&str, Attack); 6] = [
        ("an undo", |client, target| client.log.undo(target, &[7; 8])),
        ("a sealed redo", |client, target| {
            client.log.redo(target, &[7; 8]);
            client.log.seal(&[]);
        }),
        ("a sealed bit", |client, target| {
            client.log.bits(true, target, 7);
            client.log.seal(&[]);
        }),
        ("a seal over it", |client, target| {
            client.log.seal(&[(target, &[0; 8])]);
        }),
        ("a record", |client, target| client.records.store(target, 7)),
        ("fresh bytes", |client, target| {
            let mut entries = Vec::new();
            record::push_fresh(&mut entries, target, &[0; 8]);
            let granted = root(&client.shadow).address + PLACE;
            record::push_word(&mut entries, record::Operation::Store, granted, 7);
            client.records.append(&entries);
        }),
    ];
    for (what, attack) in attacks {
        assert_costs(what, ALL_QUARANTINED, &|client| {
            let pools = client.store.pools().unwrap();
            let victim = pools.iter().find(|pool| pool.name == "works").unwrap();
            let file = client
                .store
                .info()
                .path
                .join("puddles")
                .join(victim.root_puddle.to_string());
            let header = std::fs::read(file).unwrap();
            let address = u64::from_le_bytes(header[48..56].try_into().unwrap());
            attack(client, address + PLACE);
        });
    }
}

/// The two scenarios of Puddles' section 4.6: a client logs changes of a puddle, frees it, and dies.
#[test]
fn a_puddle_that_was_freed_is_written_only_where_its_next_owner_is_the_same_client() {
    type Attack = fn(&mut Hostile, u64);
    let attacks: [(&str, Attack, &str); 3] = [
        (
            "an undo",
            |client, target| client.log.undo(target, &7_u64.to_le_bytes()),
            "hybrid",
        ),
        (
            "a sealed redo",
            |client, target| {
                client.log.redo(target, &7_u64.to_le_bytes());
                client.log.seal(&[]);
            },
            "hybrid",
        ),
        (
            "a record",
            |client, target| client.records.store(target, 7),
            "shadow",
        ),
    ];
    for (what, attack, pool) in attacks {
        for next_owner in ["nobody", "another client", "itself"] {
            for is_restarted in [false, true] {
                freed(attack, pool, next_owner, is_restarted, what);
            }
        }
    }
}

fn freed(
    attack: fn(&mut Hostile, u64),
    pool: &str,
    next_owner: &str,
    is_restarted: bool,
    what: &str,
) {
    let directory = scratch();
    let path = directory.path().join("store");
    // So small that addresses come again soon.
    let options = CreateOptions {
        space_size: 32 * UNIT,
        ..create_options()
    };
    let mut next = None;
    let scene = Scene::with(&path, &options, |client| {
        let owner = match pool {
            "hybrid" => client.hybrid.uuid,
            _ => client.shadow.uuid,
        };
        let owner = PuddleOwner::Pool(owner);
        let freed = client.store.create_puddle(owner, PuddleKind::Data, UNIT);
        let freed = freed.unwrap();
        attack(client, freed.address + PLACE);
        client.store.remove_puddle(freed.uuid).unwrap();
        let (store, owner) = match next_owner {
            "nobody" => return,
            "itself" => (None, owner),
            _ => {
                let other = client.store.host().client().unwrap();
                let pool = other.create_pool("next", &spec()).unwrap();
                (Some(other), PuddleOwner::Pool(pool.uuid))
            }
        };
        let store = store.as_ref().unwrap_or(&client.store);
        // The search for an address goes around once.
        let mut made = (0..32).map(|_| store.create_puddle(owner, PuddleKind::Data, UNIT).unwrap());
        next = made.find(|made| made.address == freed.address);
        assert!(next.is_some());
    });
    let what = format!("{what}, {next_owner}, restarted: {is_restarted}");
    let (host, hostile) = (scene.host.clone(), scene.hostile);
    let reopened;
    let store = if is_restarted {
        drop(host);
        reopened = scene.restart(&path);
        &reopened
    } else {
        host.recover_client(hostile).unwrap();
        &scene.works
    };
    let (expected, written) = match next_owner {
        "itself" => (Opens, 7),
        _ => (Quarantined, 0),
    };
    assert_eq!(fate(store, pool), expected, "{what}");
    if let Some(next) = next {
        assert_eq!(word(&next, PLACE), written, "{what}");
    }
}
