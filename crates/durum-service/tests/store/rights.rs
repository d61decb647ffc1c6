//! Whose pools are, who else may use them, and what the others hear: nothing. All of it is in the registry.

use std::path::Path;
use std::sync::Arc;

use durum_format::registry::{self, Room, State, encode_changes, encode_snapshot, parse};
use durum_persist::record::note;
use durum_persist::simulate::{CrashPoint, Plan, Rules, explore_with_recovery};
use durum_service::{
    Caller, Embedded, Error, ErrorKind, GarbageOptions, Host, PuddleKind, PuddleOwner,
    ReadOnlyStore, Rights, Service, check,
};

use crate::support::{
    Space, create, create_options, open, open_options, put, recorder, root, sampled, scratch,
    small_type, spec, survives, word,
};

const ALICE: u32 = 61_001;
const BOB: u32 = 61_002;
const STAFF: u32 = 62_001;

fn client(host: &Arc<Host>, uid: u32, groups: &[u32]) -> Embedded {
    let caller = Caller::new(uid, uid, groups.to_vec());
    host.client_elsewhere(caller).unwrap().0
}

fn host(path: &Path) -> Arc<Host> {
    Host::create(path, &create_options()).unwrap()
}

fn rights_of(path: &Path, name: &str) -> Rights {
    let pools = ReadOnlyStore::open(path).unwrap().pools();
    let found = pools.into_iter().find(|pool| pool.name == name);
    found.unwrap().rights
}

#[track_caller]
fn assert_not_permitted<T>(result: Result<T, Error>) {
    let Err(error) = result else {
        panic!("it is permitted");
    };
    assert!(matches!(error, Error::NotPermitted { .. }), "{error}");
    assert_eq!(error.kind(), ErrorKind::System);
}

#[test]
fn a_pool_is_its_makers_and_others_hear_nothing_of_it() {
    let directory = scratch();
    let path = directory.path().join("store");
    let host = host(&path);
    let (alice, bob) = (client(&host, ALICE, &[]), client(&host, BOB, &[STAFF]));
    let pool = alice.create_pool("a", &spec()).unwrap().uuid;
    let own = Rights {
        uid: ALICE,
        gid: ALICE,
        mode: 0o600,
    };
    assert_eq!(alice.pools().unwrap()[0].rights, own);
    assert_eq!(bob.pools().unwrap(), []);
    // Not that it is in use either, nor whose it is.
    let refusal = bob.open_pool("a").unwrap_err().to_string();
    assert!(refusal.contains("may not be opened by user 61002"));
    assert!(!refusal.contains(&ALICE.to_string()), "{refusal}");
    alice.close_pool(pool).unwrap();
    assert_not_permitted(bob.open_pool("a"));
    assert_not_permitted(bob.remove_pool("a"));
    assert_not_permitted(bob.set_mode("a", 0o666));
    assert_not_permitted(bob.set_owner("a", Some(BOB), None));
    assert_not_permitted(bob.give_up("a").map(drop));
    assert_not_permitted(bob.accept_quarantined("a"));
    assert_not_permitted(bob.retry_quarantined("a").map(drop));
    assert_not_permitted(bob.find_garbage(&GarbageOptions::default()).map(drop));
    assert!(matches!(bob.open_pool("b"), Err(Error::PoolMissing { .. })));
    // Types: by id only, which nobody knows who has neither the text nor an object.
    let made = small_type("of alice");
    alice.register_type(made.id(), made.text()).unwrap();
    assert_not_permitted(bob.types());
    assert!(bob.type_text(made.id()).unwrap().is_some());
    // Root may all, and so may the store's own user.
    let root = client(&host, 0, &[]);
    assert_eq!(root.pools().unwrap().len(), 1);
    assert_eq!(root.open_pool("a").unwrap().uuid, pool);
    root.close_pool(pool).unwrap();
    let own = rustix::process::geteuid().as_raw();
    assert!(client(&host, own, &[]).open_pool("a").is_ok());
}

#[test]
fn the_mode_says_who_opens_a_pool_and_who_has_it_open_keeps_it() {
    let directory = scratch();
    let path = directory.path().join("store");
    let host = host(&path);
    let (alice, bob) = (client(&host, ALICE, &[STAFF]), client(&host, BOB, &[STAFF]));
    let pool = alice.create_pool("a", &spec()).unwrap().uuid;
    alice.close_pool(pool).unwrap();
    alice.set_owner("a", None, Some(STAFF)).unwrap();
    alice.set_mode("a", 0o640).unwrap();
    assert_eq!(bob.pools().unwrap().len(), 1);
    assert_not_permitted(bob.open_pool("a"));
    alice.set_mode("a", 0o660).unwrap();
    bob.open_pool("a").unwrap();
    alice.set_mode("a", 0o600).unwrap();
    let owner = PuddleOwner::Pool(pool);
    let more = bob.create_puddle(owner, PuddleKind::Data, durum_format::UNIT);
    bob.remove_puddle(more.unwrap().uuid).unwrap();
    bob.close_pool(pool).unwrap();
    assert_not_permitted(bob.open_pool("a"));
    // Others, too, if the mode says so; and the owner not, if it does not.
    alice.set_mode("a", 0o066).unwrap();
    assert!(client(&host, BOB, &[]).open_pool("a").is_ok());
    assert_not_permitted(alice.open_pool("a"));
    for mode in [0o700, 0o1600, 0o661] {
        let refused = alice.set_mode("a", mode);
        assert!(matches!(refused, Err(Error::ModeRefused { .. })));
    }
    // Nothing is given away, nor to a group that one is not in; root may both.
    assert_not_permitted(alice.set_owner("a", Some(BOB), None));
    assert_not_permitted(alice.set_owner("a", None, Some(STAFF + 1)));
    let root = client(&host, 0, &[]);
    root.set_owner("a", Some(BOB), Some(STAFF + 1)).unwrap();
    assert_not_permitted(alice.set_mode("a", 0o600));
    host.close().unwrap();
    let kept = Rights {
        uid: BOB,
        gid: STAFF + 1,
        mode: 0o066,
    };
    assert_eq!(rights_of(&path, "a"), kept);
}

#[test]
fn reports_of_recovery_tell_each_user_of_its_own_pools() {
    let directory = scratch();
    let path = directory.path().join("store");
    let host = host(&path);
    let alice = client(&host, ALICE, &[]);
    let pool = alice.create_pool("a", &spec()).unwrap();
    let mut space = Space::new(&alice);
    let mut log = space.log(&alice, 0xb1);
    let puddle = root(&pool);
    put(puddle, 0x10000, &5_u64.to_le_bytes());
    log.undo(puddle.address + 0x10000, &5_u64.to_le_bytes());
    let file = path.join(format!("puddles/{}", puddle.uuid));
    drop((pool, log, space, alice));
    host.close().unwrap();
    drop(host);
    std::fs::remove_file(&file).unwrap();
    let host = Host::open(&path, open_options()).unwrap();
    let (alice, bob) = (client(&host, ALICE, &[]), client(&host, BOB, &[]));
    let told = |client: &Embedded| {
        let report = client.recovery().unwrap();
        (
            client.refused_pools().unwrap().len(),
            report.refused.len(),
            report.logs + report.log_spaces,
        )
    };
    assert_eq!(told(&host.client().unwrap()), (1, 1, 2));
    assert_eq!(told(&alice), (1, 1, 0));
    assert_eq!(told(&bob), (0, 0, 0));
    assert!(matches!(
        alice.open_pool("a"),
        Err(Error::PoolRefused { .. })
    ));
    assert_not_permitted(bob.open_pool("a"));
}

/// Makes the registry of a closed store that of an older durum, which knew of no rights: the last commit is a record
/// behind the snapshot.
fn make_older(path: &Path) {
    let bytes = std::fs::read(path.join("registry")).unwrap();
    let mut state: State = parse(&bytes).unwrap().state;
    state.users.clear();
    for pool in state.pools.values_mut() {
        pool.rights = None;
    }
    let mut older = encode_snapshot(&state).unwrap();
    let end = Room::of(&older).unwrap().end;
    let change = registry::Change::Cursor(state.cursor);
    older.extend(encode_changes(
        state.store.uuid,
        state.sequence + 1,
        &[change],
    ));
    older.resize(end as usize, 0);
    older["durum registry ".len()] = b'1';
    assert_eq!(parse(&older).unwrap().version, 1);
    std::fs::write(path.join("registry"), &older).unwrap();
    std::fs::write(path.join("registry.copy"), &older).unwrap();
}

fn older_store(path: &Path) {
    let store = create(path);
    let pool = store.create_pool("a", &spec()).unwrap();
    store.close_pool(pool.uuid).unwrap();
    store.close().unwrap();
    drop(store);
    make_older(path);
}

#[test]
fn pools_of_an_older_store_are_those_of_the_owner_of_its_directory() {
    let directory = scratch();
    let path = directory.path().join("store");
    older_store(&path);
    let found = std::fs::metadata(&path).unwrap();
    let rights = || rights_of(&path, "a");
    use std::os::unix::fs::MetadataExt;
    assert_eq!(
        (rights().uid, rights().gid, rights().mode),
        (found.uid(), found.gid(), 0o600)
    );
    if found.uid() == 0 {
        std::os::unix::fs::chown(&path, Some(ALICE), Some(STAFF)).unwrap();
        assert_eq!((rights().uid, rights().gid), (ALICE, STAFF));
        let host = Host::open(&path, open_options()).unwrap();
        assert_not_permitted(client(&host, BOB, &[]).open_pool("a"));
        let alice = client(&host, ALICE, &[]);
        alice.set_mode("a", 0o640).unwrap();
        host.close().unwrap();
        // Said once, it stays.
        std::os::unix::fs::chown(&path, Some(0), Some(0)).unwrap();
        assert_eq!(
            (rights().uid, rights().gid, rights().mode),
            (ALICE, STAFF, 0o640)
        );
    } else {
        println!("not root: nothing is given to another user");
        open(&path).close().unwrap();
    }
    let bytes = std::fs::read(path.join("registry")).unwrap();
    assert_eq!(parse(&bytes).unwrap().version, registry::VERSION_RIGHTS);
}

/// The modes that the pool gets, one after the other.
const MODES: [u16; 4] = [0o640, 0o660, 0o000, 0o604];

fn change_all(store: &Embedded) {
    for (step, mode) in (1..).zip(MODES) {
        store.set_mode("a", mode).unwrap();
        note("mode", step);
    }
    store.set_owner("a", Some(ALICE), Some(STAFF)).unwrap();
    note("owner", 1);
    store.close().unwrap();
}

/// The pool has the rights that were acknowledged last, or the next ones.
fn check_rights(path: &Path, point: &CrashPoint<'_>) -> Result<(), String> {
    let text = |error: Error| error.to_string();
    let store = Embedded::open(path, open_options()).map_err(text)?;
    let pools = store.pools().map_err(text)?;
    let [pool] = pools.as_slice() else {
        return Err(format!("{} pools", pools.len()));
    };
    let step = point.last_note("mode").unwrap_or(0) as usize;
    let seen = match pool.rights.mode {
        0o600 => 0,
        mode => {
            1 + MODES
                .iter()
                .position(|known| *known == mode)
                .ok_or("another mode")?
        }
    };
    if !(step..=step + 1).contains(&seen) {
        return Err(format!("mode {seen} after {step} were acknowledged"));
    }
    let is_given = (pool.rights.uid, pool.rights.gid) == (ALICE, STAFF);
    if is_given && step < MODES.len() || !is_given && point.last_note("owner").is_some() {
        return Err(format!("{:?} after {step}", pool.rights));
    }
    store.open_pool("a").map_err(text)?;
    store.close().map_err(text)?;
    drop(store);
    let report = check(path, &Default::default()).map_err(text)?;
    match report.findings.as_slice() {
        [] => Ok(()),
        findings => Err(format!("{findings:?}")),
    }
}

fn explore(older: bool) {
    let directory = scratch();
    let path = directory.path().join("store");
    older_store(&path);
    if !older {
        open(&path).close().unwrap();
    }
    let recorder = recorder(directory.path(), None);
    change_all(&open(&path));
    let trace = recorder.stop();
    assert_eq!(trace.bypassed(), [] as [&str; 0]);
    let plan = Plan {
        random_images: 4,
        single_units_max: 6,
        exhaustive_max: 8,
        nested_one_in: 20,
        nested_depth: 1,
        nested_points_max: Some(6),
        ..Plan::new(Rules::Sectors, 31)
    };
    let look = |path: &Path| match ReadOnlyStore::open(path) {
        Ok(_) => Ok(()),
        Err(error) => Err(error.to_string()),
    };
    survives(&trace, &plan, look, check_rights);
}

/// Whoever has kept a descriptor of the old files has no way to the new ones.
#[test]
fn a_revoked_pool_has_other_files_that_say_the_same() {
    let directory = scratch();
    let path = directory.path().join("store");
    let host = host(&path);
    let (alice, bob) = (client(&host, ALICE, &[]), client(&host, BOB, &[]));
    let pool = alice.create_pool("a", &spec()).unwrap();
    let owner = PuddleOwner::Pool(pool.uuid);
    let more = alice
        .create_puddle(owner, PuddleKind::Data, 4 << 20)
        .unwrap();
    put(&pool.root, 0x10000, &5_u64.to_le_bytes());
    put(&more, 0x30_0000, &6_u64.to_le_bytes());
    assert!(matches!(
        alice.revoke_pool("a"),
        Err(Error::PoolOpen { .. })
    ));
    let root = client(&host, 0, &[]);
    assert!(matches!(root.revoke_pool("a"), Err(Error::PoolBusy { .. })));
    alice.close_pool(pool.uuid).unwrap();
    assert_not_permitted(bob.revoke_pool("a"));
    alice.revoke_pool("a").unwrap();
    put(&pool.root, 0x10000, &7_u64.to_le_bytes());
    put(&more, 0x30_0000, &8_u64.to_le_bytes());
    let again = alice.open_pool("a").unwrap();
    assert_eq!(word(&again.root, 0x10000), 5);
    let others = alice.open_puddles(pool.uuid, &[more.uuid]).unwrap();
    assert_eq!(word(&others[0], 0x30_0000), 6);
    alice.close_pool(pool.uuid).unwrap();
    host.close().unwrap();
    let report = check(&path, &Default::default()).unwrap();
    assert!(report.findings.is_empty(), "{:?}", report.findings);
}

#[test]
fn a_pool_that_is_revoked_keeps_its_contents_through_power_cuts() {
    let directory = scratch();
    let path = directory.path().join("store");
    let store = create(&path);
    let pool = store.create_pool("a", &spec()).unwrap();
    let owner = PuddleOwner::Pool(pool.uuid);
    let more = store
        .create_puddle(owner, PuddleKind::Data, durum_format::UNIT)
        .unwrap();
    put(&pool.root, 0x10000, &5_u64.to_le_bytes());
    put(&more, 0x20000, &6_u64.to_le_bytes());
    store.close_pool(pool.uuid).unwrap();
    store.close().unwrap();
    drop(store);
    let uuid = more.uuid;
    let recorder = recorder(directory.path(), None);
    let store = open(&path);
    store.revoke_pool("a").unwrap();
    note("revoked", 1);
    store.close().unwrap();
    drop(store);
    let trace = recorder.stop();
    assert_eq!(trace.bypassed(), [] as [&str; 0]);
    let plan = Plan {
        random_images: 4,
        single_units_max: 6,
        exhaustive_max: 8,
        nested_one_in: 20,
        nested_depth: 1,
        nested_points_max: Some(6),
        ..Plan::new(Rules::Sectors, 41)
    };
    let text = |error: Error| error.to_string();
    let recover = |image: &Path| {
        Embedded::open(&image.join("store"), open_options())
            .map(drop)
            .map_err(text)
    };
    let explored = explore_with_recovery(&trace, &plan, recover, |image, _| {
        let path = image.join("store");
        let store = Embedded::open(&path, open_options()).map_err(text)?;
        let pool = store.open_pool("a").map_err(text)?;
        let others = store.open_puddles(pool.uuid, &[uuid]).map_err(text)?;
        let words = (word(&pool.root, 0x10000), word(&others[0], 0x20000));
        if words != (5, 6) {
            return Err(format!("{words:?}"));
        }
        store.close_pool(pool.uuid).map_err(text)?;
        store.close().map_err(text)?;
        drop(store);
        let report = check(&path, &Default::default()).map_err(text)?;
        match report.findings.as_slice() {
            [] => Ok(()),
            findings => Err(format!("{findings:?}")),
        }
    });
    match explored {
        Ok(report) => assert!(report.images > 20, "{report:?}"),
        Err(failure) => panic!("{failure}"),
    }
}

/// Clients of two users come, make something and go, one of them without an end.
fn life_of_users(path: &Path) {
    let host = host(path);
    note("made", 1);
    let alice = client(&host, ALICE, &[]);
    let pool = alice.create_pool("a", &spec()).unwrap().uuid;
    note("a", 1);
    let bob = client(&host, BOB, &[]);
    let log = bob.create_puddle(PuddleOwner::Client, PuddleKind::Log, durum_format::UNIT);
    log.unwrap();
    note("log", 1);
    alice.set_mode("a", 0o604).unwrap();
    note("mode", 1);
    alice.close_pool(pool).unwrap();
    alice.close().unwrap();
    host.recover_client(bob.info().client).unwrap();
    note("log", 2);
    host.close().unwrap();
}

/// The users that the registry of an image names: there is one of each client that is there.
fn users(path: &Path) -> Result<usize, String> {
    let Ok(bytes) = std::fs::read(path.join("registry")) else {
        return Ok(0);
    };
    let state = parse(&bytes).map_err(|error| error.to_string())?.state;
    match state.users.keys().eq(&state.clients) {
        true => Ok(state.users.len()),
        false => Err(format!("{:?} of {:?}", state.users, state.clients)),
    }
}

/// Each has what it was told, after a recovery.
fn check_users(path: &Path, point: &CrashPoint<'_>) -> Result<(), String> {
    let text = |error: Error| error.to_string();
    if point.last_note("made").is_none() {
        return Ok(());
    }
    let host = Host::open(path, open_options()).map_err(text)?;
    let (alice, bob) = (client(&host, ALICE, &[]), client(&host, BOB, &[]));
    match (
        point.last_note("a"),
        alice.pools().map_err(text)?.as_slice(),
    ) {
        (None, []) => {}
        (_, [pool]) if pool.rights.uid == ALICE => {
            let sees = bob.pools().map_err(text)?.len() == 1;
            if sees != (pool.rights.mode == 0o604) || !sees && point.last_note("mode").is_some() {
                return Err(format!(
                    "{:?}, and the other one sees it: {sees}",
                    pool.rights
                ));
            }
        }
        (_, pools) => return Err(format!("{pools:?}")),
    }
    host.close().map_err(text)?;
    drop(host);
    match users(path)? {
        0 => Ok(()),
        more => Err(format!("{more} users of clients that are gone")),
    }
}

#[test]
fn clients_of_users_survive_power_cuts() {
    let directory = scratch();
    let recorder = recorder(directory.path(), None);
    life_of_users(&directory.path().join("store"));
    let trace = recorder.stop();
    let look = |path: &Path| users(path).map(drop);
    survives(&trace, &sampled(37), look, check_users);
}

#[test]
fn changes_of_rights_survive_power_cuts() {
    explore(false);
}

#[test]
fn the_step_from_an_older_registry_can_be_interrupted_anywhere() {
    explore(true);
}
