//! Each command of `durum`, on a store that is served and on its directory: they say the same.

use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Stdio};

use durum_remote::Remote;
use durum_service::Service;

use crate::support::{Served, text, until};

const ARGUMENTS: &str = "DURUM_TEST_ARGUMENTS";
const BEGIN: &str = "-- what the command prints";

/// What a run of the command gave.
pub struct Run {
    pub code: i32,
    pub out: String,
    pub err: String,
}

/// Runs `durum` in a process of its own: this binary, started again.
pub fn durum(arguments: &[&str]) -> Run {
    durum_as(None, arguments)
}

/// The same by a user, if one is given.
fn durum_as(user: Option<u32>, arguments: &[&str]) -> Run {
    durum_from(Stdio::null(), user, arguments)
}

/// The same with an input.
fn durum_from(input: Stdio, user: Option<u32>, arguments: &[&str]) -> Run {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.stdin(input);
    if let Some(user) = user {
        command.uid(user).gid(user);
    }
    command
        .args(["commands::command", "--exact", "--nocapture", "--ignored"])
        .env(ARGUMENTS, arguments.join("\n"));
    let output = command.output().unwrap();
    let out = String::from_utf8(output.stdout).unwrap();
    let (_, out) = out
        .split_once(&format!("{BEGIN}\n"))
        .expect("the command has begun");
    Run {
        code: output.status.code().expect("it was killed"),
        out: out.to_owned(),
        err: String::from_utf8(output.stderr).unwrap(),
    }
}

#[test]
#[ignore = "it is a command that other tests start"]
fn command() {
    let Ok(arguments) = std::env::var(ARGUMENTS) else {
        return;
    };
    println!("{BEGIN}");
    let arguments = std::iter::once("durum").chain(arguments.split('\n'));
    let code = durum_cli::main(arguments.map(Into::into));
    let code = (0..=255).find(|number| code == std::process::ExitCode::from(*number));
    std::process::exit(code.map_or(99, i32::from));
}

fn succeeds(arguments: &[&str]) -> String {
    let run = durum(arguments);
    assert_eq!(run.code, 0, "{arguments:?}: {}{}", run.out, run.err);
    run.out
}

fn fails(arguments: &[&str], code: i32, text: &str) {
    let run = durum(arguments);
    assert_eq!(run.code, code, "{arguments:?}: {}{}", run.out, run.err);
    assert!(run.err.contains(text), "{text:?} is not in: {}", run.err);
}

/// A served store with two pools that nobody has open.
fn served() -> Served {
    let served = Served::start();
    let mut client = served.client("client");
    client.expect("here");
    for pool in ["one", "two"] {
        assert_eq!(client.ask(&format!("open {pool}")), "0 0");
        assert_eq!(client.ask("add 5"), "5");
    }
    client.end();
    served
}

#[test]
fn commands_that_look_say_the_same_of_a_served_store_and_of_its_directory() {
    let mut served = served();
    let (address, store) = (served.address(), served.store());
    let pool = format!("{address}:one");
    let scratch = tempfile::tempdir().unwrap();
    let page = scratch.path().join("page.html");
    // What a page of the store has of its pools.
    let explored = |store: &str, objects: u64| {
        succeeds(&["explore", store, "--html", text(&page)]);
        let page = std::fs::read_to_string(&page).unwrap();
        let (_, answers) = page.split_once("id=\"answers\">").unwrap();
        let (answers, _) = answers.split_once("</script>").unwrap();
        let answers: serde_json::Value = serde_json::from_str(answers).unwrap();
        assert_eq!(answers["objects"], objects, "{answers}");
        serde_json::to_string_pretty(&answers["pools"]).unwrap()
    };
    let of_service = [
        explored(&address, 2),
        succeeds(&["ls", &address, "--json"]),
        succeeds(&["inspect", &address]),
        succeeds(&["inspect", &address, "one", "--json"]),
        succeeds(&["inspect", &pool, "--heap"]),
        succeeds(&["check", &address, "--json"]),
        succeeds(&["gc", &address, "--dry-run", "--json"]),
    ];
    explored(&pool, 1);
    assert!(succeeds(&["ls", &address]).contains("one"));
    let stat = succeeds(&["stat", &address]);
    assert!(
        stat.contains(&format!("served at {address}")) && stat.contains("2 pools"),
        "{stat}"
    );
    let one = succeeds(&["check", &pool]);
    assert!(
        one.contains("pool \"one\"") && !one.contains("two"),
        "{one}"
    );
    assert!(succeeds(&["recover", &address]).contains("clean"));
    let domain = succeeds(&["stat", &address, "--domain"]);
    served.end();
    let store = text(&store);
    assert_eq!(succeeds(&["stat", store, "--domain"]), domain);
    let of_directory = [
        explored(store, 2),
        succeeds(&["ls", store, "--json"]),
        succeeds(&["inspect", store]),
        succeeds(&["inspect", store, "one", "--json"]),
        succeeds(&["inspect", store, "one", "--heap"]),
        succeeds(&["check", store, "--json"]),
        succeeds(&["gc", store, "--dry-run", "--json"]),
    ];
    for (service, directory) in of_service.iter().zip(of_directory) {
        assert_eq!(*service, directory);
    }
}

/// Nobody else can enter the directory, and it is in use: what is to be done is done where the user came to the store.
#[test]
fn what_to_do_names_the_service_that_was_asked() {
    let served = served();
    let (address, store) = (served.address(), served.store());
    let commands: [&[&str]; 5] = [
        &["rm", &address, "none", "--yes"],
        &["chmod", "0644", &address, "none"],
        &["inspect", &address, "none"],
        &["recover", &address, "--give-up", "one"],
        &["recover", &address, "--retry", "two"],
    ];
    for arguments in commands {
        let run = durum(arguments);
        assert_eq!(run.code, 2, "{arguments:?}: {}", run.err);
        assert!(
            run.err.contains(&format!(" {address}` ")) && !run.err.contains(text(&store)),
            "{arguments:?}: {}",
            run.err
        );
    }
    // The file is named where it lies, and the cure where it can be had.
    let one = std::fs::read_dir(store.join("puddles")).unwrap().next();
    std::fs::remove_file(one.unwrap().unwrap().path()).unwrap();
    for pool in ["one", "two"] {
        let run = durum(&["inspect", &address, pool]);
        let cure = format!("`durum rm {address} {pool}`");
        assert!(run.code == 0 || run.err.contains(&cure), "{}", run.err);
        assert!(
            run.code == 0 || run.err.contains(text(&store)),
            "{}",
            run.err
        );
    }
}

/// What keeps a program from a service that is there is another thing than one that is not.
#[test]
fn who_may_not_come_to_the_socket_is_told_so() {
    use std::os::unix::fs::PermissionsExt;
    if !rustix::process::geteuid().is_root() {
        println!("skipped: only root can start programs as other users");
        return;
    }
    let served = Served::start_with(&[]);
    let above = served.socket().parent().unwrap().to_owned();
    let mode = |mode| std::fs::set_permissions(&above, PermissionsExt::from_mode(mode)).unwrap();
    mode(0o700);
    let run = durum_as(Some(61002), &["ls", &served.address()]);
    mode(0o711);
    assert_eq!(run.code, 1, "{}", run.out);
    assert!(run.err.contains("enter each directory"), "{}", run.err);
}

/// The audit tells who had whom leave.
#[test]
fn who_uses_a_store_is_shown_and_made_to_leave() {
    let served = served();
    let (address, pool) = (served.address(), format!("{}:one", served.address()));
    assert_eq!(succeeds(&["clients", &address]), "no clients\n");
    let mut writer = served.client("writer");
    writer.expect("here");
    assert_eq!(writer.ask("open one"), "5 5");
    let shown = succeeds(&["clients", &address, "--json"]);
    let shown: serde_json::Value = serde_json::from_str(&shown).unwrap();
    let client = &shown["clients"][0];
    assert_eq!(client["pid"], writer.process.id());
    assert_eq!(client["holds"], serde_json::json!(["one"]));
    let name = client["client"].as_str().unwrap();
    let line = succeeds(&["clients", &address]);
    assert!(line.contains(name) && line.contains("one"), "{line}");
    fails(&["revoke", &pool], 2, "used by another program");
    fails(&["kick", "ffffffff-0000", &address], 2, "ffffffff-0000");
    // It does not listen to what it is asked, and is ended.
    let kicked = succeeds(&["kick", &name[..8], &address, "--grace", "0"]);
    assert!(kicked.contains("has left"), "{kicked}");
    assert!(writer.process.wait().unwrap().code().is_none());
    assert_eq!(succeeds(&["clients", &address]), "no clients\n");
    assert!(succeeds(&["revoke", &pool]).contains("new files"));
    assert!(succeeds(&["check", &pool]).contains("sound"));
    let log = served.log();
    assert!(
        log.contains("asked to leave") && log.contains(name),
        "{log}"
    );
}

/// Who may read a pool, and not the list of all types, sees in it what the service's user sees.
#[test]
fn a_reader_of_a_pool_is_told_its_types() {
    if !rustix::process::geteuid().is_root() {
        println!("skipped: only root can start programs as other users");
        return;
    }
    let served = Served::start_with(&[]);
    let mut alice = served.client_of("61001,61001");
    alice.expect("here");
    assert_eq!(alice.ask("open words"), "0 0");
    assert_eq!(alice.ask("add 5"), "5");
    assert_eq!(alice.ask("close"), "closed");
    let pool = format!("{}:words", served.address());
    let bob = Some(61002);
    let refused = durum_as(bob, &["inspect", &pool]);
    assert_ne!(refused.code, 0, "{}", refused.out);
    assert_eq!(alice.ask("mode words 0644"), "changed");
    for command in [["inspect", &pool, "--json"], ["check", &pool, "--json"]] {
        let (read, all) = (durum_as(bob, &command), succeeds(&command));
        assert_eq!((read.code, read.out), (0, all), "{command:?}: {}", read.err);
    }
    let shown = durum_as(bob, &["inspect", &pool, "--raw"]).out;
    assert!(shown.contains("[u64;2]"), "{shown}");
    // Pointers of a type that is not known would lead into the source: a copy has all types, too.
    let place = tempfile::tempdir_in("/dev/shm").unwrap();
    let open = std::os::unix::fs::PermissionsExt::from_mode(0o777);
    std::fs::set_permissions(place.path(), open).unwrap();
    let copy = place.path().join("copy");
    let cloned = durum_as(bob, &["clone", &pool, text(&copy)]);
    assert_eq!(cloned.code, 0, "{}", cloned.err);
    assert!(succeeds(&["inspect", text(&copy), "words", "--raw"]).contains("[u64;2]"));
    alice.end();
}

#[test]
fn a_pool_in_quarantine_looks_the_same_by_a_service_and_on_its_path() {
    let mut served = served();
    let mut writer = served.client_on("writer", "hybrid");
    writer.expect("here");
    assert_eq!(writer.ask("open words"), "0 0");
    assert_eq!(writer.ask("add 5"), "5");
    served.quarantine(writer);
    std::fs::write(served.store().join("notes.txt"), "mine").unwrap();
    let shown = |store: &str| {
        [
            durum(&["inspect", store, "words", "--json"]),
            durum(&["inspect", store, "words"]),
            durum(&["inspect", store, "words", "--heap"]),
            durum(&["inspect", store, "one", "--log"]),
            durum(&["inspect", store, "words", "--log", "--json"]),
            durum(&["check", store, "--json"]),
            durum(&["check", store]),
        ]
    };
    let by_service = shown(&served.address());
    served.end();
    let on_path = shown(text(&served.store()));
    for (service, path) in by_service.iter().zip(&on_path) {
        assert_eq!(
            (service.code, &service.out),
            (path.code, &path.out),
            "{}",
            service.err
        );
    }
    let [json, inspected, .., checked] = &by_service;
    assert!(json.out.contains("\"reason\""), "{}", json.out);
    assert!(
        inspected.out.contains("the pool is in quarantine"),
        "{}",
        inspected.out
    );
    assert_eq!(checked.code, 3);
    assert!(checked.out.contains("notes.txt"), "{}", checked.out);
    assert!(
        checked.out.contains("pool \"words\": 1 object"),
        "{}",
        checked.out
    );
}

/// Its logs wait for a file that is missing.
#[test]
fn logs_that_are_kept_look_the_same_by_a_service_and_on_their_path() {
    let mut served = served();
    let mut writer = served.client("writer");
    writer.expect("here");
    assert_eq!(writer.ask("open words"), "0 0");
    assert_eq!(writer.ask("add 500"), "500");
    let remote = Remote::open(&served.socket(), Default::default()).unwrap();
    let pools = remote.pools().unwrap();
    let words = pools.iter().find(|pool| pool.name == "words").unwrap();
    let file = format!("puddles/{}", words.root_puddle);
    std::fs::remove_file(served.store().join(file)).unwrap();
    writer.kill();
    until("its logs are kept", || {
        !remote.refused_pools().unwrap().is_empty()
    });
    remote.close().unwrap();
    let shown = |store: &str| {
        [
            succeeds(&["inspect", store, "one", "--log"]),
            succeeds(&["inspect", store, "one", "--log", "--json"]),
        ]
    };
    let by_service = shown(&served.address());
    served.end();
    assert_eq!(by_service, shown(text(&served.store())));
    assert!(by_service[0].contains("RECORDS OF"), "{}", by_service[0]);
}

/// Who may read a pool sees it in quarantine, too; who may not hears nothing of it.
#[test]
fn a_reader_sees_a_pool_in_quarantine_as_root_does() {
    if !rustix::process::geteuid().is_root() {
        println!("skipped: only root can start programs as other users");
        return;
    }
    let served = Served::start_with(&[]);
    let mut alice = served.client_of_on("61001,61001", "hybrid");
    alice.expect("here");
    assert_eq!(alice.ask("open words"), "0 0");
    assert_eq!(alice.ask("add 5"), "5");
    assert_eq!(alice.ask("mode words 0640"), "changed");
    served.quarantine(alice);
    std::fs::write(served.store().join("notes.txt"), "mine").unwrap();
    let pool = format!("{}:words", served.address());
    for command in [["inspect", &pool, "--json"], ["check", &pool, "--json"]] {
        let all = durum(&command);
        let own = durum_as(Some(61001), &command);
        assert_eq!((own.code, own.out), (all.code, all.out), "{}", own.err);
        let other = durum_as(Some(61002), &command);
        assert!(other.code != 0 && other.out.is_empty(), "{}", other.out);
        assert!(!other.err.contains("quarantine"), "{}", other.err);
    }
    let all = durum_as(Some(61001), &["check", &served.address()]);
    assert!(!all.out.contains("notes.txt"), "{}", all.out);
    let logs = durum_as(Some(61001), &["inspect", &pool, "--log"]);
    assert_eq!(logs.code, 1, "{}", logs.out);
    assert!(logs.err.contains("may not be shown"), "{}", logs.err);
    // Nothing is held when a command has ended.
    let accepted = durum_as(
        Some(61001),
        &[
            "recover",
            &served.address(),
            "--accept-quarantined",
            "words",
        ],
    );
    assert_eq!(accepted.code, 0, "{}", accepted.err);
}

/// Who may read the pool of a database, and not write it, may get what is in it, also while others do.
#[test]
fn a_database_is_read_by_those_who_may_only_read() {
    if !rustix::process::geteuid().is_root() {
        println!("skipped: only root can start programs as other users");
        return;
    }
    let served = Served::start_with(&[]);
    let names = format!("{}:names", served.address());
    let (alice, bob) = (Some(61001), Some(61002));
    let made = durum_as(alice, &["kv", "put", &names, "color", "red", "--create"]);
    assert_eq!(made.code, 0, "{}", made.err);
    let get = ["kv", "get", &names, "color"];
    let refused = durum_as(bob, &get);
    assert!(
        refused.code == 1 && refused.err.contains("chmod"),
        "{}",
        refused.err
    );
    let opened = durum_as(alice, &["chmod", "0644", &names]);
    assert_eq!(opened.code, 0, "{}", opened.err);
    let reader = durum::Store::open(served.address(), Default::default()).unwrap();
    let options = durum_kv::Options::new().read_only(true);
    let held = durum_kv::Db::open_in(&reader, "names", options).unwrap();
    assert_eq!(durum_as(bob, &get).out, "red\n");
    assert_eq!(durum_as(bob, &["kv", "scan", &names]).out, "color\tred\n");
    let stats = durum_as(bob, &["kv", "stats", &names, "--json"]);
    assert!(
        stats.out.contains("\"entries\": 1"),
        "{}{}",
        stats.out,
        stats.err
    );
    drop(held);
    let refused = durum_as(bob, &["kv", "put", &names, "color", "blue"]);
    assert!(
        refused.code == 1 && refused.err.contains("chmod"),
        "{}",
        refused.err
    );
    assert_eq!(durum_as(bob, &get).out, "red\n");
}

/// While the service waits for programs to close the store, it is seen who they are, and nobody gets a pool.
#[test]
fn who_holds_up_the_end_of_a_service_is_seen() {
    let mut served = Served::prepare(Path::new("/dev/shm")).with(&["--drain"]);
    served.start_again();
    let address = served.address();
    let (mut one, mut two) = (served.client("one"), served.client("two"));
    for (client, pool) in [(&mut one, "one"), (&mut two, "two")] {
        client.expect("here");
        assert_eq!(client.ask(&format!("open {pool}")), "0 0");
    }
    assert_eq!(two.ask("close"), "closed");
    served.signal(libc::SIGTERM);
    until("it gives no pool any more", || {
        let said = two.ask("open two");
        said.contains("the service ends") || two.ask("close") != "closed"
    });
    two.end();
    assert_eq!(one.ask("add 5"), "5");
    assert!(succeeds(&["clients", &address]).contains("one"));
    one.end();
    served.ends();
    assert!(!served.socket().exists());
}

#[test]
fn commands_that_write_do_so_by_the_service() {
    let served = served();
    let address = served.address();
    let pool = format!("{address}:one");
    let copy = served.store().with_file_name("copy");
    let copied = succeeds(&["clone", &address, text(&copy)]);
    assert!(copied.contains("2 puddles"), "{copied}");
    assert!(succeeds(&["check", text(&copy)]).contains("sound"));
    let one = served.store().with_file_name("one");
    succeeds(&["clone", &pool, text(&one)]);
    assert!(!succeeds(&["ls", text(&one)]).contains("two"));
    succeeds(&["gc", &address]);
    succeeds(&["gc", &pool]);
    // What is dumped is loaded as another pool, by the service as by its directory.
    let dumped = succeeds(&["dump", &pool]);
    let lines = served.store().with_file_name("lines");
    std::fs::write(&lines, &dumped).unwrap();
    let input = std::fs::File::open(&lines).unwrap();
    let again = format!("{address}:again");
    let loaded = durum_from(input.into(), None, &["load", &again]);
    assert_eq!(loaded.code, 0, "{}{}", loaded.out, loaded.err);
    let behind_head = |lines: &str| lines.split_once('\n').unwrap().1.to_owned();
    assert_eq!(
        behind_head(&succeeds(&["dump", &again])),
        behind_head(&dumped)
    );
    succeeds(&["rm", &again, "--yes"]);
    succeeds(&["rm", &pool, "--yes"]);
    assert!(!succeeds(&["ls", &address]).contains("one"));
    fails(&["rm", &pool, "--yes"], 2, "no pool \"one\"");
    succeeds(&["rm", &address, "two", "--yes"]);
    assert_eq!(succeeds(&["ls", &address]), "no pools\n");
}

#[test]
fn a_pool_that_a_program_writes_is_left_alone() {
    let served = served();
    let (address, pool) = (served.address(), format!("{}:one", served.address()));
    let mut writer = served.client("writer");
    writer.expect("here");
    assert_eq!(writer.ask("open one"), "5 5");
    let busy = "used by another program";
    fails(&["check", &pool], 2, busy);
    fails(&["inspect", &pool], 2, busy);
    fails(&["dump", &pool], 2, busy);
    fails(&["rm", &pool, "--yes"], 2, busy);
    let copy = served.store().with_file_name("copy");
    fails(&["clone", &address, text(&copy)], 2, busy);
    assert!(!copy.exists());
    let all = succeeds(&["check", &address]);
    assert!(all.contains("note: ") && all.contains(busy), "{all}");
    // The page has the other pools, and says of which it has nothing.
    let page = served.store().with_file_name("page.html");
    let written = succeeds(&["explore", &address, "--html", text(&page)]);
    let left_out = format!("nothing of pool \"one\": pool \"one\" is {busy}");
    assert!(written.contains(&left_out), "{written}");
    assert!(!written.contains("pool \"two\""), "{written}");
    let told = succeeds(&["explore", &address, "--html", text(&page), "--json"]);
    let html = std::fs::read_to_string(&page).unwrap();
    for told in [told, html] {
        let (_, unread) = told.split_once("\"unread\":").unwrap();
        let unread = unread.trim_start_matches([' ', '\n', '{']);
        assert!(
            unread.starts_with("\"one\":") && unread.contains(busy),
            "{unread}"
        );
    }
    assert_eq!(writer.ask("add 1"), "6");
    // Nothing is held when a command has ended.
    assert_eq!(writer.ask("open two"), "5 5");
}

#[test]
fn what_a_service_does_not_do_is_refused() {
    let served = served();
    let address = served.address();
    let refused = "a service does not";
    fails(&["init", &address], 2, refused);
    fails(&["rm", &address, "--yes"], 2, refused);
    fails(&["check", &address, "--repair"], 2, refused);
    fails(&["clone", text(&served.store()), &address], 2, refused);
    let map = served.store().with_file_name("map");
    std::fs::write(&map, r#"{"durum-map": 1, "types": {}}"#).unwrap();
    let migrate = ["migrate", &address, "one", "--map", text(&map)];
    fails(&migrate, 2, "end it, name the directory");
    // Who names the directory is sent to the service.
    let directory = served.store();
    let directory = text(&directory);
    for command in [
        &["inspect", directory, "one"][..],
        &["dump", directory, "one"],
        &["load", directory, "new"],
        &["migrate", directory, "one", "--map", text(&map)],
        &["check", directory],
        &["gc", directory],
    ] {
        fails(
            command,
            2,
            "name the store by that service (durum:, or durum+unix:SOCKET)",
        );
    }
    fails(&["inspect", &address, "--heap"], 2, "name the pool");
    let demo = ["demo", "--store", &address];
    fails(&demo, 2, "the demo needs a store of its own");
    fails(&[&demo[..], &["--daemon"]].concat(), 2, "name a directory");
    fails(
        &["inspect", &format!("{address}:one"), "two"],
        2,
        "two pools are named",
    );
    fails(&["ls", "durum+unix:/nowhere"], 1, "cannot be reached");
}
