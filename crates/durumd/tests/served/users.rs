//! Programs of several users: each has its own pools, and what their owners give it, and so much of everything.
//!
//! These tests start programs as other users, which only root may. Others skip them, and say so.

use std::time::Duration;

use durum_remote::{Remote, Waiting};
use durum_service::{Error, Service};

use crate::support::{Served, until};

pub const ALICE: &str = "61001,61001,62001";
pub const BOB: &str = "61002,61002,62001";
const CAROL: &str = "61003,61003";

pub fn is_root() -> bool {
    let is_root = rustix::process::geteuid().is_root();
    if !is_root {
        println!("skipped: only root can start programs as other users");
    }
    is_root
}

/// A client of a user that was let in.
fn client(served: &Served, user: &str) -> crate::support::Client {
    let mut client = served.client_of(user);
    client.expect("here");
    client
}

/// As in a container into which only the socket leads.
#[test]
fn a_program_that_does_not_see_the_directory_makes_room_in_a_pool() {
    if !is_root() {
        return;
    }
    let served = Served::start_with(&[]);
    let empty = tempfile::tempdir().unwrap();
    let mut client = served.client("client");
    client.expect("here");
    assert_eq!(client.ask("open words"), "0 0");
    let hide = format!("hide {}", empty.path().display());
    assert_eq!(client.ask(&hide), "hidden");
    assert_eq!(client.ask("grow 4000000"), "grown");
    assert_eq!(client.ask("add 5"), "5");
    client.end();
}

#[test]
fn a_pool_is_its_users_until_the_mode_says_otherwise() {
    if !is_root() {
        return;
    }
    let mut served = Served::start_with(&[]);
    // More groups than fit where the service asks first.
    let many: String = (63_000..63_040).map(|group| format!(",{group}")).collect();
    let bob = BOB.replacen(",62001", &format!("{many},62001"), 1);
    let [mut alice, mut bob, mut carol] = [ALICE, &bob, CAROL].map(|user| client(&served, user));
    assert_eq!(alice.ask("open words"), "0 0");
    assert_eq!(alice.ask("add 5"), "5");
    let refusal = "pool \"words\" may not be opened by user 61002";
    assert!(bob.ask("open words").contains(refusal));
    assert_eq!(bob.ask("pools"), "0");
    assert_eq!(alice.ask("pools"), "1");
    assert!(bob.ask("mode words 666").contains("given another mode"));
    // A group that both are in besides their own.
    assert_eq!(alice.ask("close"), "closed");
    assert_eq!(alice.ask("group words 62001"), "changed");
    assert!(alice.ask("group words 62002").contains("given away"));
    // For reading first.
    assert_eq!(alice.ask("mode words 0640"), "changed");
    assert_eq!(bob.ask("read words"), "5 5");
    assert!(carol.ask("read words").contains("user 61003"));
    assert_eq!(bob.ask("unread"), "read no more");
    assert!(bob.ask("open words").contains("user 61002"));
    assert_eq!(alice.ask("mode words 0660"), "changed");
    assert_eq!(bob.ask("open words"), "5 5");
    assert_eq!(bob.ask("add 5"), "10");
    // Its own allocations, too; it is told when it comes again after the service was away.
    assert_eq!(bob.ask("grow 4000000"), "grown");
    served.kill();
    served.start_again();
    assert_eq!(bob.ask("add 5"), "15");
    assert_eq!(bob.ask("grow 8000000"), "grown");
    assert!(carol.ask("open words").contains("user 61003"));
    assert_eq!(carol.ask("pools"), "0");
    assert_eq!(bob.ask("close"), "closed");
    assert_eq!(alice.ask("open words"), "15 15");
    for client in [alice, bob, carol] {
        client.end();
    }
    served.end();
}

#[test]
fn a_client_has_descriptors_and_no_way_to_the_files() {
    if !is_root() {
        return;
    }
    let served = Served::start_with(&[]);
    let mut alice = client(&served, ALICE);
    assert_eq!(alice.ask("open words"), "0 0");
    // The directory is closed to it; it has files of it, and cannot open them another time.
    let reach = format!("reach {}", served.store().display());
    assert_eq!(alice.ask(&reach), "true true false");
    alice.end();
}

/// A store that others could enter is made private before anybody is served.
#[test]
fn a_store_that_others_may_enter_is_made_private() {
    use std::os::unix::fs::PermissionsExt;
    let mut served = Served::start_with(&[]);
    served.end();
    let mode = || {
        let found = std::fs::metadata(served.store()).unwrap();
        found.permissions().mode() & 0o777
    };
    assert_eq!(mode(), 0o700);
    std::fs::set_permissions(served.store(), std::fs::Permissions::from_mode(0o755)).unwrap();
    assert_eq!(mode(), 0o755);
    served.start_again();
    let found = std::fs::metadata(served.store()).unwrap();
    assert_eq!(found.permissions().mode() & 0o777, 0o700);
}

#[test]
fn only_named_users_come_where_some_are_named() {
    if !is_root() {
        return;
    }
    let served = Served::start_with(&["--user", "61001"]);
    client(&served, ALICE).end();
    let mut bob = served.client_of(BOB);
    assert!(bob.hear().contains("user 61002 may not use this store"));
}

#[test]
fn a_user_has_what_its_quota_says_also_after_the_service_was_away() {
    if !is_root() {
        return;
    }
    let mut served = Served::start_with(&["--quota", "bytes=6M", "--quota", "61002:bytes=1G"]);
    let (mut alice, mut bob) = (client(&served, ALICE), client(&served, BOB));
    assert_eq!(alice.ask("open words"), "0 0");
    assert_eq!(bob.ask("open others"), "0 0");
    assert_eq!(bob.ask("grow 20000000"), "grown");
    let refused = |said: String| {
        assert!(said.contains("user 61001 has"), "{said}");
        assert!(said.contains("of 6291456 bytes"), "{said}");
    };
    refused(alice.ask("grow 20000000"));
    assert_eq!(alice.ask("add 5"), "5");
    served.kill();
    served.start_again();
    refused(alice.ask("grow 20000000"));
    alice.end();
    // A new client of the same user has no more.
    let mut alice = client(&served, ALICE);
    assert_eq!(alice.ask("open words"), "5 5");
    refused(alice.ask("grow 20000000"));
    // A pool counts for its owner, whoever makes it grow.
    assert_eq!(alice.ask("close"), "closed");
    assert_eq!(alice.ask("group words 62001"), "changed");
    assert_eq!(alice.ask("mode words 0660"), "changed");
    assert_eq!(bob.ask("open words"), "5 5");
    refused(bob.ask("grow 20000000"));
}

#[test]
fn logs_clients_and_descriptors_have_quotas_too() {
    if !is_root() {
        return;
    }
    let options = [
        "log-bytes=0",
        "61002:log-bytes=1G",
        "clients=3",
        "descriptors=10",
    ];
    let options: Vec<&str> = options
        .iter()
        .flat_map(|limit| ["--quota", limit])
        .collect();
    let served = Served::start_with(&options);
    let mut alice = client(&served, ALICE);
    let said = alice.ask("open words");
    assert!(said.contains("of 0 log-bytes"), "{said}");
    let mut bobs: Vec<_> = (0..3).map(|_| client(&served, BOB)).collect();
    assert_eq!(bobs[0].ask("open others"), "0 0");
    let mut fourth = served.client_of(BOB);
    let said = fourth.hear();
    assert!(said.contains("user 61002 has 3 of 3 clients"), "{said}");
    bobs.pop().unwrap().end();
    client(&served, BOB).end();
    let said = bobs[1].ask("hoard 40");
    let (taken, refused) = said.split_once(' ').unwrap();
    let (taken, refused): (u64, u64) = (taken.parse().unwrap(), refused.parse().unwrap());
    assert!(refused > 0 && taken >= 8, "{said}");
    assert_eq!(taken / 2 + refused, 40);
}

#[test]
fn who_holds_a_pool_is_seen_and_kicked_by_those_who_may_end_it() {
    if !is_root() {
        return;
    }
    let served = Served::start_with(&[]);
    let [mut alice, mut other, mut bob] = [ALICE, ALICE, BOB].map(|user| client(&served, user));
    assert_eq!(alice.ask("open words"), "0 0");
    assert_eq!(alice.ask("add 7"), "7");
    // Another user does not see it.
    assert_eq!(bob.ask("kick words 0"), "no holder is seen");
    let root = Remote::open(&served.socket(), Waiting::default()).unwrap();
    let clients = root.clients().unwrap();
    let holder = clients
        .iter()
        .find(|client| client.holds == ["words"])
        .unwrap();
    assert_eq!(holder.pid, alice.process.id());
    assert_eq!((holder.uid, holder.is_connected), (Some(61_001), true));
    // It is asked, and may leave by itself.
    assert_eq!(alice.ask("asked"), "false");
    let (id, socket) = (holder.client, served.socket());
    let kick = std::thread::spawn(move || {
        let root = Remote::open(&socket, Waiting::default()).unwrap();
        root.kick(id, Duration::from_secs(30))
    });
    until("it is asked", || alice.ask("asked") == "true");
    alice.end();
    kick.join().unwrap().unwrap();
    // One that does not is killed, and recovered before the answer comes.
    let mut stubborn = client(&served, ALICE);
    assert_eq!(stubborn.ask("open words"), "7 7");
    assert_eq!(stubborn.ask("half"), "half");
    assert_eq!(other.ask("kick words 100"), "kicked");
    assert!(!stubborn.process.wait().unwrap().success());
    assert_eq!(other.ask("open words"), "7 7");
    // Unknown is what nobody may hear of.
    let unknown = root.kick(id, Duration::ZERO);
    assert!(matches!(unknown, Err(Error::ClientUnknown { .. })));
    root.close().unwrap();
}

#[test]
fn a_writer_is_recovered_without_its_program_and_its_rights_while_others_work() {
    if !is_root() {
        return;
    }
    let mut served = Served::start_with(&[]);
    let mut others: Vec<_> = (0..8).map(|_| client(&served, BOB)).collect();
    for (number, other) in others.iter_mut().enumerate() {
        assert_eq!(other.ask(&format!("open {number}")), "0 0");
    }
    let program = served.store().with_extension("program");
    std::fs::copy(std::env::current_exe().unwrap(), &program).unwrap();
    let mut writer = served.client_from(&program, ALICE);
    writer.expect("here");
    assert_eq!(writer.ask("open words"), "0 0");
    assert_eq!(writer.ask("add 5"), "5");
    assert_eq!(writer.ask("half"), "half");
    let mut root = served.client("root");
    root.expect("here");
    assert_eq!(root.ask("mode words 000"), "changed");
    std::fs::remove_file(&program).unwrap();
    writer.kill();
    assert_eq!(root.ask("open words"), "5 5");
    assert!(
        client(&served, ALICE)
            .ask("open words")
            .contains("user 61001")
    );
    for other in &mut others {
        assert_eq!(other.ask("add 10"), "10");
    }
    served.end();
}

#[test]
fn who_looks_at_a_pool_in_quarantine_has_its_owner_wait_until_it_is_gone() {
    if !is_root() {
        return;
    }
    let mut served = Served::start_with(&[]);
    let mut writer = served.client_of_on(ALICE, "hybrid");
    writer.expect("here");
    assert_eq!(writer.ask("open words"), "0 0");
    assert_eq!(writer.ask("add 5"), "5");
    assert_eq!(writer.ask("mode words 0644"), "changed");
    served.quarantine(writer);
    let [mut alice, mut bob] = [ALICE, BOB].map(|user| client(&served, user));
    assert!(bob.ask("read words").contains("quarantine"));
    assert_eq!(bob.ask("look words"), "looks");
    assert!(bob.ask("accept words").contains("user 61002"));
    let busy = "used by another program";
    for _ in 0..2 {
        for decision in ["retry", "accept", "remove"] {
            let said = alice.ask(&format!("{decision} words"));
            assert!(said.contains(busy), "{decision}: {said}");
        }
        // It looks yet.
        served.kill();
        served.start_again();
    }
    bob.kill();
    assert_eq!(alice.ask("retry words"), "1 are invalid");
    assert_eq!(alice.ask("accept words"), "accepted");
    assert!(alice.ask("open words").ends_with(" 5"));
    alice.end();
    served.end();
}
