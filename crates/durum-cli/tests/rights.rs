//! `durum chmod`, `chown`, `revoke`, and what needs a service: on a store that this user opens by its path.

#[path = "support/mod.rs"]
mod support;

use support::{durum, fails, make_store, scratch, succeeds, text};

#[test]
fn a_pools_mode_and_owner_are_changed_and_listed() {
    let directory = scratch();
    let store = directory.path().join("store");
    make_store(&store);
    let store = text(&store);
    let listed = |of: &str| succeeds(&["ls", store, "--json"]).json()["pools"][0][of].clone();
    assert_eq!(listed("mode"), "0600");
    let changed = succeeds(&["chmod", "0640", store, "things"]).out;
    assert!(
        changed.starts_with("pool \"things\": rw-r----- "),
        "{changed}"
    );
    assert_eq!(listed("mode"), "0640");
    succeeds(&["chmod", "g+w,o=r", store, "things"]);
    assert_eq!(listed("mode"), "0664");
    // The directory's rights are all that count for one who opens it by its path.
    succeeds(&["chmod", "0", store, "things"]);
    let changed = succeeds(&["chown", "61001:62001", store, "things"]).out;
    assert_eq!(changed, "pool \"things\": --------- 61001:62001\n");
    assert_eq!(
        (listed("uid"), listed("gid")),
        (61_001.into(), 62_001.into())
    );
    succeeds(&["chown", ":61002", store, "things"]);
    assert_eq!(
        (listed("uid"), listed("gid")),
        (61_001.into(), 61_002.into())
    );
    succeeds(&["inspect", store, "things"]);
    for (arguments, problem) in [
        (["chmod", "0750", store, "things"], "r and w for owner"),
        (["chmod", "u+x", store, "things"], "is no mode"),
        (["chmod", "0600", store, "nothing"], "no pool \"nothing\""),
        (["chown", "nobody of this name", store, "things"], "no user"),
        (["chown", ":", store, "things"], "name a user"),
    ] {
        fails(&arguments, 2, problem);
    }
    fails(&["chmod", "0600", store], 2, "name a pool");
}

#[test]
fn a_revoked_pool_is_as_it_was() {
    let directory = scratch();
    let store = directory.path().join("store");
    make_store(&store);
    let seen = || succeeds(&["inspect", text(&store), "things"]).out;
    let before = seen();
    succeeds(&["revoke", text(&store), "things"]);
    assert_eq!(seen(), before);
    succeeds(&["check", text(&store)]);
    fails(&["revoke", text(&store), "nothing"], 2, "no pool");
}

#[test]
fn what_only_a_service_tells_is_refused_of_a_directory() {
    let directory = scratch();
    let store = directory.path().join("store");
    make_store(&store);
    fails(&["clients", text(&store)], 2, "name the service");
    fails(&["kick", "27e9f244", text(&store)], 2, "name the service");
    let nobody = format!("durum+unix:{}", directory.path().join("sock").display());
    assert_eq!(durum(&["clients", &nobody]).code, 1);
}
