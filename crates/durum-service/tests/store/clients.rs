//! Several clients of one store: a pool is one client's at a time, and who is gone is recovered while others work.

use std::path::Path;
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use durum_format::UNIT;
use durum_persist::record::note;
use durum_persist::simulate::Plan;
use durum_persist::{Site, inject};
use durum_service::{
    Embedded, EngineKind, Error, Host, PoolSpec, PuddleKind, PuddleOwner, Service, check,
};

use crate::recovery::{assert_recovered, interrupt};
use crate::support::{
    Space, create_options, open, open_options, put, recorder, root, sampled, scratch, snapshot,
    spec, survives, word,
};
use crate::together::Company;

fn host(path: &Path) -> Arc<Host> {
    Host::create(path, &create_options()).unwrap()
}

/// Work of a client that goes on: a log, and a pool of its own.
fn work(store: &Embedded, name: &str) {
    let pool = store.create_pool(name, &spec()).unwrap();
    let mut space = Space::new(store);
    let mut log = space.log(store, 0xb1);
    let puddle = root(&pool);
    put(puddle, 0x10000, &5_u64.to_le_bytes());
    log.undo(puddle.address + 0x10000, &5_u64.to_le_bytes());
    put(puddle, 0x10000, &6_u64.to_le_bytes());
}

#[test]
fn a_pool_is_one_clients_at_a_time() {
    let directory = scratch();
    let host = host(&directory.path().join("store"));
    let (first, second) = (host.client().unwrap(), host.client().unwrap());
    assert_ne!(first.info().client, second.info().client);
    let pool = first.create_pool("a", &spec()).unwrap();
    let is_busy = |error| matches!(error, Error::PoolBusy { name } if name == "a");
    assert!(is_busy(second.open_pool("a").unwrap_err()));
    assert!(is_busy(second.remove_pool("a").unwrap_err()));
    // What is the first one's is nothing to the second.
    let owner = PuddleOwner::Pool(pool.uuid);
    let refused = second.create_puddle(owner, PuddleKind::Data, UNIT);
    assert!(matches!(refused, Err(Error::PoolNotOpen { .. })));
    let refused = second.close_pool(pool.uuid);
    assert!(matches!(refused, Err(Error::PoolNotOpen { .. })));
    let log = first
        .create_puddle(PuddleOwner::Client, PuddleKind::Log, UNIT)
        .unwrap();
    let refused = second.remove_puddle(log.uuid);
    assert!(matches!(refused, Err(Error::PuddleRefused { .. })));
    first.close_pool(pool.uuid).unwrap();
    assert_eq!(second.open_pool("a").unwrap().uuid, pool.uuid);
    assert!(is_busy(first.open_pool("a").unwrap_err()));
    // The end of one is not the end of the store.
    second.close().unwrap();
    first.open_pool("a").unwrap();
}

#[test]
fn the_last_of_several_clients_leaves_a_clean_store() {
    let directory = scratch();
    let path = directory.path().join("store");
    let host = host(&path);
    let (first, second) = (host.client().unwrap(), host.client().unwrap());
    work(&first, "a");
    second.create_pool("b", &spec()).unwrap();
    first.close().unwrap();
    first.close().unwrap();
    assert!(matches!(first.open_pool("b"), Err(Error::PoolBusy { .. })));
    second.close().unwrap();
    host.close().unwrap();
    drop(host);
    assert!(open(&path).recovery_report().was_clean);
}

#[test]
fn a_client_that_is_gone_is_recovered_while_others_work() {
    let directory = scratch();
    let path = directory.path().join("store");
    let host = host(&path);
    let other = host.client().unwrap();
    work(&other, "other");
    let gone = interrupt(host.client().unwrap());
    let id = gone.info().client;
    drop(gone);
    assert!(matches!(
        other.open_pool("words"),
        Err(Error::PoolBusy { .. })
    ));
    let before = snapshot(&path);
    let report = host.recover_client(id).unwrap();
    assert_eq!(
        (report.rolled_back, report.rolled_forward),
        (3, 1),
        "{report:?}"
    );
    let pool = other.open_pool("words").unwrap();
    assert_recovered(|offset| word(root(&pool), offset)).unwrap();
    // Nobody touched what the other one has under way.
    let held = other
        .pools()
        .unwrap()
        .into_iter()
        .find(|pool| pool.name == "other")
        .unwrap();
    let file = Path::new("puddles").join(held.root_puddle.to_string());
    assert_eq!(snapshot(&path)[&file], before[&file]);
    // Again, and of a client that never was: nothing.
    assert_eq!(host.recover_client(id).unwrap().logs, 0);
    drop((other, host));
    let store = open(&path);
    assert_eq!(store.recovery_report().rolled_back, 1);
    let pool = store.open_pool("other").unwrap();
    assert_eq!(word(root(&pool), 0x10000), 5);
}

/// The pool is there for others before the files of the logs go; and who finds the disk full waits for these.
#[test]
fn who_waits_for_a_pool_does_not_wait_for_the_end_of_log_files() {
    let directory = scratch();
    let path = directory.path().join("store");
    let host = host(&path);
    let other = host.client().unwrap();
    let gone = interrupt(host.client().unwrap());
    let id = gone.info().client;
    drop(gone);
    let files = || std::fs::read_dir(path.join("puddles")).unwrap().count();
    let before = files();
    let ended = host.end_client(id).unwrap();
    assert_eq!((ended.report().rolled_back, files()), (3, before));
    let pool = other.open_pool("words").unwrap();
    assert_recovered(|offset| word(root(&pool), offset)).unwrap();
    thread::scope(|scope| {
        let full = inject::fail_after(inject::Operation::Grow, 0, &path);
        let made = scope
            .spawn(|| other.create_puddle(PuddleOwner::Pool(pool.uuid), PuddleKind::Data, UNIT));
        // It finds that there is no room.
        thread::sleep(Duration::from_millis(100));
        assert!(!made.is_finished());
        drop(full);
        ended.clear_up().unwrap();
        made.join().unwrap().unwrap();
    });
    assert!(files() < before);
    // Nobody is waited for now.
    let _full = inject::fail_after(inject::Operation::Grow, 0, &path);
    let made = other.create_puddle(PuddleOwner::Pool(pool.uuid), PuddleKind::Data, UNIT);
    assert!(matches!(made, Err(Error::StorageFull { .. })));
}

/// A store that ends waits for files that are being removed, and no longer.
#[test]
fn a_store_ends_while_files_of_a_gone_client_are_removed() {
    let directory = scratch();
    let path = directory.path().join("store");
    let host = host(&path);
    let gone = interrupt(host.client().unwrap());
    let id = gone.info().client;
    drop(gone);
    let ended = host.end_client(id).unwrap();
    let closing = {
        let host = host.clone();
        thread::spawn(move || host.close())
    };
    thread::sleep(Duration::from_millis(100));
    assert!(!closing.is_finished());
    ended.clear_up().unwrap();
    ends(closing);
}

/// A request that works on files when the store begins to end is waited for, and no longer.
#[test]
fn a_store_ends_when_the_last_request_has_ended() {
    let directory = scratch();
    let host = host(&directory.path().join("store"));
    let client = host.client().unwrap();
    let pool = client.create_pool("pool", &spec()).unwrap().uuid;
    let held = inject::hold(Site("new puddle"));
    let making = thread::spawn(move || {
        inject::volunteer();
        client.create_puddle(PuddleOwner::Pool(pool), PuddleKind::Data, UNIT)
    });
    held.wait();
    let closing = {
        let host = host.clone();
        thread::spawn(move || host.close())
    };
    thread::sleep(Duration::from_millis(100));
    assert!(!closing.is_finished());
    drop(held);
    assert!(making.join().unwrap().is_err());
    ends(closing);
}

/// Whoever is never told would wait for ever.
fn ends(closing: thread::JoinHandle<Result<(), Error>>) {
    for _ in 0..1000 {
        if closing.is_finished() {
            return closing.join().unwrap().unwrap();
        }
        thread::sleep(Duration::from_millis(10));
    }
    panic!("the store does not end");
}

#[test]
fn logs_of_a_gone_client_that_are_damaged_cost_its_pools_alone() {
    let directory = scratch();
    let path = directory.path().join("store");
    let host = host(&path);
    let other = host.client().unwrap();
    work(&other, "other");
    let gone = host.client().unwrap();
    let pool = gone.create_pool("words", &spec()).unwrap();
    let mut space = Space::new(&gone);
    let mut log = space.log(&gone, 0xc1);
    // Over another client's pool.
    let others = other
        .pools()
        .unwrap()
        .into_iter()
        .find(|pool| pool.name == "other")
        .unwrap();
    let grant = other
        .create_puddle(PuddleOwner::Pool(others.uuid), PuddleKind::Data, UNIT)
        .unwrap();
    log.undo(root(&pool).address + 0x10000, &1_u64.to_le_bytes());
    log.undo(grant.address + 0x10000, &1_u64.to_le_bytes());
    let id = gone.info().client;
    drop(gone);
    let report = host.recover_client(id).unwrap();
    assert_eq!(report.quarantined.len(), 1, "{report:?}");
    assert_eq!(word(&grant, 0x10000), 0, "nothing of it was applied");
    assert!(matches!(
        other.open_pool("words"),
        Err(Error::PoolQuarantined { .. })
    ));
    assert!(path.join(&report.quarantined[0].log).exists());
    other.create_pool("more", &spec()).unwrap();
    other.accept_quarantined("words").unwrap();
    other.open_pool("words").unwrap();
    other.close().unwrap();
    host.close().unwrap();
    drop(host);
    assert!(check(&path, &Default::default()).unwrap().is_sound());
}

/// The first recovery of a client is held up before its data is durable. Another one of the same client waits for it,
/// and finds nothing to do; one of another client does not wait.
#[test]
fn each_client_is_recovered_once_and_beside_the_others() {
    let directory = scratch();
    let host = host(&directory.path().join("store"));
    let slow = interrupt(host.client().unwrap()).info().client;
    let other = host.client().unwrap();
    work(&other, "other");
    let quick = other.info().client;
    drop(other);
    let threads = Mutex::new(Vec::new());
    let works = host.client().unwrap();
    let recover = |client| host.recover_client(client).unwrap();
    thread::scope(|scope| {
        let company = Company::gather_at(Site("recovered data"), scope, &threads, || {
            assert_eq!(recover(slow).rolled_back, 3);
        });
        let again = company.comes(|| recover(slow));
        assert_eq!(recover(quick).rolled_back, 1);
        let pool = works.open_pool("other").unwrap();
        assert_eq!(word(root(&pool), 0x10000), 5);
        let busy = works.open_pool("words");
        assert!(matches!(busy, Err(Error::PoolBusy { .. })));
        company.go();
        let report = again.join().unwrap();
        assert_eq!((report.was_clean, report.logs), (true, 0), "{report:?}");
    });
    works.open_pool("words").unwrap();
}

/// A pool is refused until what is in its way is gone, and not longer.
#[test]
fn a_gone_client_whose_file_is_back_is_recovered_again() {
    let directory = scratch();
    let path = directory.path().join("store");
    let host = host(&path);
    let gone = interrupt(host.client().unwrap());
    let (id, pools) = (gone.info().client, gone.pools().unwrap());
    drop(gone);
    let file = path.join("puddles").join(pools[0].root_puddle.to_string());
    let aside = path.join("puddles/aside");
    std::fs::rename(&file, &aside).unwrap();
    assert_eq!(host.recover_client(id).unwrap().refused.len(), 1);
    let works = host.client().unwrap();
    let refused = works.open_pool("words");
    assert!(matches!(refused, Err(Error::PoolRefused { .. })));
    std::fs::rename(&aside, &file).unwrap();
    assert!(host.recover_client(id).unwrap().refused.is_empty());
    let pool = works.open_pool("words").unwrap();
    assert_recovered(|offset| word(root(&pool), offset)).unwrap();
}

/// A Twin pool whose file was away while the others were recovered is recovered when it is opened.
#[test]
fn a_twin_pool_whose_file_is_put_back_is_made_whole_when_it_is_opened() {
    use durum_format::twin::{STATE_OFFSET, Stage, State};
    let directory = scratch();
    let path = directory.path().join("store");
    let store = Host::create(&path, &create_options())
        .unwrap()
        .client()
        .unwrap();
    let pool = store
        .create_pool("twin", &PoolSpec::new(EngineKind::Twin))
        .unwrap();
    let (puddle, size) = (root(&pool), root(&pool).size);
    let bitmap = durum_format::puddle::BITMAP_OFFSET;
    let main = word(puddle, bitmap);
    store.close_pool(pool.uuid).unwrap();
    let copying = State {
        stage: Stage::Copying,
        ..State::from_word(word(puddle, STATE_OFFSET)).unwrap()
    };
    put(puddle, STATE_OFFSET, &copying.to_word().to_le_bytes());
    put(puddle, size + bitmap, &(main | 1 << 40).to_le_bytes());
    let again = store.open_pool("twin").unwrap();
    assert_eq!(word(root(&again), size + bitmap), main);
    let state = State::from_word(word(root(&again), STATE_OFFSET)).unwrap();
    assert_eq!(state.stage, Stage::Idle);
}

/// Crashes the recovery of a client, whose process may have lived.
fn crash_recovery(may_live: bool) {
    let directory = scratch();
    let recorder = recorder(directory.path(), None);
    let path = directory.path().join("store");
    let store = host(&path);
    let other = store.client().unwrap();
    work(&other, "other");
    note("other", 1);
    let gone = interrupt(store.client().unwrap());
    let id = gone.info().client;
    drop(gone);
    note("gone", 1);
    if may_live {
        store.part_from(id).unwrap();
    }
    store.recover_client(id).unwrap();
    note("recovered", 1);
    drop((other, store));
    let trace = recorder.stop();
    let plan = Plan {
        nested_one_in: 60,
        ..sampled(31)
    };
    let text = |error: Error| error.to_string();
    survives(
        &trace,
        &plan,
        |_| Ok(()),
        |path, point| {
            if point.last_note("other").is_none() {
                return Ok(());
            }
            let store = Embedded::open(path, open_options()).map_err(text)?;
            let pool = store.open_pool("other").map_err(text)?;
            if word(root(&pool), 0x10000) != 5 {
                return Err("the other client's transaction is not undone".to_owned());
            }
            if point.last_note("gone").is_some() {
                let pool = store.open_pool("words").map_err(text)?;
                assert_recovered(|offset| word(root(&pool), offset))?;
            }
            Ok(())
        },
    );
}

#[test]
fn recovery_of_a_gone_client_survives_power_cuts() {
    crash_recovery(false);
}

#[test]
fn new_files_for_a_client_that_may_live_survive_power_cuts() {
    crash_recovery(true);
}

/// Whoever has kept files of the client writes to what nobody reads any more.
#[test]
fn a_client_that_may_live_writes_to_nothing_after_it_was_recovered() {
    let directory = scratch();
    let store = host(&directory.path().join("store"));
    let gone = interrupt(store.client().unwrap());
    let kept = gone.pool_again(|_, name| name == "words").unwrap().unwrap();
    store.part_from(gone.info().client).unwrap();
    store.recover_client(gone.info().client).unwrap();
    put(root(&kept), 0x10000, &77_u64.to_le_bytes());
    let next = store.client().unwrap();
    let pool = next.open_pool("words").unwrap();
    assert_recovered(|offset| word(root(&pool), offset)).unwrap();
}
