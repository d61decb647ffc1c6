//! `durum explore`: a page of a store, as a file and served, which only reads and believes nothing.

mod support;

use durum::{PoolOptions, Store, StoreOptions};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use support::page::{Page, answers_in, make_hostile};
use support::*;

/// The addresses to which pointers in a tree lead.
fn leads_to(tree: &Value, found: &mut BTreeSet<String>) {
    match tree {
        Value::Object(members) => {
            if let Some(start) = members.get("start") {
                found.insert(start.as_str().unwrap().to_owned());
            }
            members.values().for_each(|it| leads_to(it, found));
        }
        Value::Array(items) => items.iter().for_each(|it| leads_to(it, found)),
        _ => {}
    }
}

#[test]
fn what_the_page_is_told_is_what_inspect_stat_and_check_say() {
    let dir = scratch();
    let path = dir.path().join("store");
    make_store(&path);
    let before = contents(&path);
    let page = Page::of(&[text(&path)]);
    let asked = |arguments: &[&str]| succeeds(&[arguments, &["--json"]].concat()).json();

    let overview = page.get("overview");
    assert_eq!(overview["store"], asked(&["stat", text(&path)]));
    let mut pool = overview["pools"][0].clone();
    assert_eq!(pool["state"], "ok");
    pool.as_object_mut().unwrap().remove("state");
    assert_eq!(pool, asked(&["ls", text(&path)])["pools"][0]);
    let pool = format!("pool={}", pool["uuid"].as_str().unwrap());

    let heap = page.get(&format!("heap?{pool}"));
    let inspected = asked(&["inspect", text(&path), "things", "--heap"])["heap"].clone();
    assert_eq!(heap["types"], inspected["types"]);
    assert_eq!(heap["free_blocks"], inspected["free_blocks"]);
    assert_eq!(heap["free_elements"], inspected["free_elements"]);
    let mut puddle = heap["puddles"][0].clone();
    let of_puddle = puddle.as_object_mut().unwrap().remove("types").unwrap();
    puddle.as_object_mut().unwrap().remove("types_more");
    assert_eq!(puddle, inspected["puddles"][0]);
    // By puddle and as a whole the same: there is one puddle.
    let sum = |types: &Value, what: &str| -> u64 {
        let types = types.as_array().unwrap().iter();
        types.map(|it| it[what].as_u64().unwrap()).sum()
    };
    assert_eq!(sum(&of_puddle, "objects"), sum(&heap["types"], "objects"));
    assert_eq!(heap["objects"], sum(&heap["types"], "objects"));

    // Each type's objects are those that `--find` finds, and say the same.
    for name in ["node", "leaf", "root"] {
        let types = heap["by_type"].as_array().unwrap();
        let ty = types.iter().find(|ty| ty["name"] == name).unwrap();
        let id = ty["id"].as_str().unwrap();
        let listed = page.get(&format!("objects?{pool}&type={id}"));
        let found = asked(&["inspect", text(&path), "things", "--find", name]);
        let of = |all: &Value| -> Vec<(Value, Value)> {
            let all = all.as_array().unwrap().iter();
            all.map(|it| (it["address"].clone(), it["bytes"].clone()))
                .collect()
        };
        assert_eq!(of(&listed["objects"]), of(&found["objects"]));
        assert_eq!(listed["next"], Value::Null);
    }
    let node = succeeds(&[
        "inspect",
        text(&path),
        "things",
        "--find",
        "node",
        "--depth",
        "0",
    ])
    .out;
    // Its path, which the page does not look for, stands before the address; of the last one no pointer has one.
    let last = node.lines().find(|line| line.contains("33")).unwrap();
    let (_, first) = last.split_once(" at ").unwrap();
    let (address, rest) = first.split_once(", ").unwrap();
    let object = page.get(&format!("object?{pool}&address={address}"));
    assert_eq!(object["type"], "node");
    assert_eq!(object["tree"]["items"][0][0], "value");
    let line = object["line"].as_str().unwrap();
    assert!(rest.ends_with(line), "{line} in {rest}");

    // From the root one comes to all objects by their pointers, as the program does.
    let root = heap["root"].as_str().unwrap().to_owned();
    let mut waiting = vec![root.clone()];
    let mut known = BTreeSet::from([root]);
    while let Some(address) = waiting.pop() {
        let object = page.get(&format!("object?{pool}&address={address}"));
        assert_eq!(object["address"], address.as_str());
        let mut next = BTreeSet::new();
        leads_to(&object["tree"], &mut next);
        waiting.extend(next.into_iter().filter(|it| known.insert(it.clone())));
    }
    assert_eq!(known.len() as u64, heap["objects"].as_u64().unwrap());

    let to = page.get(&format!("referrers?{pool}&address={address}"));
    let inspected = asked(&["inspect", text(&path), "things", "--to", address]);
    // The way from the root is looked for by `inspect` alone.
    let mut pointers = inspected["pointers"].clone();
    for pointer in pointers.as_array_mut().unwrap() {
        let path = pointer.as_object_mut().unwrap().remove("path").unwrap();
        assert!(path.as_str().unwrap().starts_with("root."), "{path}");
    }
    assert_eq!(to["pointers"], pointers);
    assert_eq!(to["count"], inspected["count"]);

    let check = page.check("");
    let checked = asked(&["check", text(&path)]);
    for what in ["sound", "findings", "pools", "damaged_pools"] {
        assert_eq!(check[what], checked[what], "{what}");
    }
    assert_eq!(page.get("logs")["logs"], json!([]));
    assert_eq!(contents(&path), before, "nothing is written");
}

#[test]
fn nobody_else_is_answered_and_no_question_writes() {
    let dir = scratch();
    let path = dir.path().join("store");
    make_store(&path);
    let before = contents(&path);
    let mut page = Page::of(&[text(&path)]);
    let port = page.port;
    let own = page.path.clone();
    assert_eq!(own.len(), 34, "a token of 128 bits: {own}");
    let refused = |status: &str, (head, body): (String, String)| {
        assert!(
            head.starts_with(&format!("HTTP/1.1 {status}")),
            "{status}: {head}"
        );
        assert!(!body.contains("things") && !head.contains(&own) && !body.contains(&own));
        assert!(
            head.contains("Content-Security-Policy: default-src 'none'"),
            "{head}"
        );
    };
    // Who does not know the token, whatever it asks.
    let wrong = own.replace(|char: char| char.is_ascii_hexdigit(), "0");
    let cut = own[..own.len() - 2].to_owned() + "/";
    for path in ["/", "/overview", &wrong, &cut, "//", "*", "/0/overview"] {
        refused("404", page.ask("GET", path, ""));
    }
    // A name that leads here is somebody else's page; so is a question that another page asks.
    let overview = format!("{own}overview");
    let from = |lines: &str| page.send(&format!("GET {overview} HTTP/1.1\r\n{lines}\r\n"));
    for host in [
        "",
        "Host: evil.example\r\n",
        "Host: 127.0.0.1\r\n",
        "Host: 127.0.0.1:1\r\n",
    ] {
        refused("403", from(host));
    }
    refused("403", from(&format!("Host: evil.example:{port}\r\n")));
    refused(
        "403",
        from(&format!("Host: 127.0.0.1.evil.example:{port}\r\n")),
    );
    refused(
        "403",
        from(&format!("Host: 127.0.0.1:{port}\r\nHost: evil.example\r\n")),
    );
    for site in ["cross-site", "same-site"] {
        refused(
            "403",
            page.ask("GET", &overview, &format!("Sec-Fetch-Site: {site}\r\n")),
        );
    }
    for method in ["POST", "PUT", "DELETE", "OPTIONS", "PATCH", "CONNECT"] {
        let answer = page.ask(method, &overview, "Content-Length: 2\r\n");
        assert!(answer.0.contains("Allow: GET, HEAD"), "{}", answer.0);
        refused("405", answer);
    }
    refused("400", page.send("\0\u{1}\r\n\r\n"));
    refused("431", page.ask("GET", &overview, &"A: b\r\n".repeat(100)));
    refused(
        "404",
        page.ask("GET", &format!("{own}../../etc/passwd"), ""),
    );

    // What may be asked, and the head alone.
    let local = from(&format!(
        "Host: localhost:{port}\r\nSec-Fetch-Site: same-origin\r\n"
    ));
    assert!(local.0.starts_with("HTTP/1.1 200 OK"), "{}", local.0);
    let (head, body) = page.ask("GET", &own, "");
    for line in [
        "Content-Type: text/html; charset=utf-8",
        "X-Content-Type-Options: nosniff",
        "X-Frame-Options: DENY",
        "Referrer-Policy: no-referrer",
        "Cross-Origin-Resource-Policy: same-origin",
        "Cross-Origin-Opener-Policy: same-origin",
        "Cache-Control: no-store",
    ] {
        assert!(head.lines().any(|it| it == line), "{line}: {head}");
    }
    let policy = head
        .lines()
        .find(|it| it.starts_with("Content-Security-Policy: "))
        .unwrap();
    for part in [
        "default-src 'none'; ",
        "connect-src 'self'",
        "base-uri 'none'",
        "frame-ancestors 'none'",
        "trusted-types 'none'",
    ] {
        assert!(policy.contains(part), "{part}: {policy}");
    }
    assert!(!policy.contains("unsafe"), "{policy}");
    let nonce = policy
        .split("'nonce-")
        .nth(1)
        .unwrap()
        .split('\'')
        .next()
        .unwrap();
    assert!(body.contains(&format!("<script nonce=\"{nonce}\">")));
    let (head, body) = page.ask("HEAD", &own, "");
    assert!(
        head.starts_with("HTTP/1.1 200 OK") && body.is_empty(),
        "{head}{body}"
    );

    // Words that make no sense are told, as is what is not there.
    let pool = page.get("overview")["pools"][0]["uuid"]
        .as_str()
        .unwrap()
        .to_owned();
    for (what, why) in [
        ("object".to_owned(), "which pool?"),
        (format!("object?pool={pool}"), "which address?"),
        (
            format!("object?pool={pool}&address=zz"),
            "no hexadecimal number",
        ),
        (format!("object?pool={pool}&address=0x10"), "is no object"),
        (
            format!("objects?pool={pool}&type=%00"),
            "no hexadecimal number",
        ),
        ("heap?pool=things".to_owned(), "no such pool"),
    ] {
        let (head, body) = page.ask("GET", &format!("{own}{what}"), "");
        assert!(head.starts_with("HTTP/1.1 409"), "{what}: {head}");
        let body: Value = serde_json::from_str(&body).unwrap();
        assert!(body["error"].as_str().unwrap().contains(why), "{body}");
    }
    assert_eq!(contents(&path), before, "nothing is written");

    // A program may have the store meanwhile; of what it writes nothing is told.
    let store = Store::open(&path, StoreOptions::new()).unwrap();
    let (head, body) = page.ask("GET", &format!("{own}heap?pool={pool}"), "");
    assert!(
        head.starts_with("HTTP/1.1 409") && body.contains("the store is in use by"),
        "{head}{body}"
    );
    store.create_pool("more", PoolOptions::new()).unwrap();
    drop(store);
    assert_eq!(
        page.get("overview")["pools"].as_array().unwrap().len(),
        2,
        "it looks anew"
    );

    assert_eq!(page.interrupt(), 130);
}

#[test]
fn a_file_has_what_is_there_as_text_and_says_what_it_leaves_out() {
    let dir = scratch();
    let path = dir.path().join("store");
    make_hostile(&path);
    let before = contents(&path);
    let file = dir.path().join("store.html");
    let write = |more: &[&str]| {
        let all = [&["explore", text(&path), "--html", text(&file)], more].concat();
        let run = succeeds(&all);
        (run.out, std::fs::read_to_string(&file).unwrap())
    };
    let (out, html) = write(&[]);
    assert!(out.contains("with 21 of 21 objects\n"), "{out}");
    let (answers, page) = answers_in(&html);
    for part in ["alert(", "onerror", "<img"] {
        assert!(!page.contains(part), "{part} outside of the answers");
    }
    assert_eq!(html.matches("</script>").count(), 3);
    assert!(
        !html.contains(['\u{1b}', '\u{202e}']),
        "controls are escaped"
    );
    let pool = &answers["overview"]["pools"][0];
    assert_eq!(pool["name"], "<script>alert('pool')\\u{202e}");
    let of_pool = &answers["pools"][pool["uuid"].as_str().unwrap()];
    let root = &of_pool["objects"][of_pool["heap"]["root"].as_str().unwrap()];
    assert_eq!(root["type"], "</script><img src=x onerror=alert(1)>");
    let shown = root["tree"].to_string();
    assert!(
        shown.contains("</script><script>alert(1)</script><!-- "),
        "{shown}"
    );
    // Which objects nothing leads to, by puddle and type, as the page finds them when it is served.
    let leaks = &answers["leaks"][pool["uuid"].as_str().unwrap()];
    let page = Page::of(&[text(&path)]);
    let found = page.check(&format!("pool={}", pool["uuid"].as_str().unwrap()));
    assert_eq!(leaks, &found["found"]);
    let heap = &of_pool["heap"];
    let sum = |objects: u64| json!({ "objects": objects, "bytes": objects * root["bytes"].as_u64().unwrap() });
    let puddle = heap["puddles"][0]["address"].as_str().unwrap();
    let ty = root["type_id"].as_str().unwrap();
    let none = json!({ "type": sum(0), "puddle": sum(0) });
    assert_eq!(
        leaks,
        &json!({ "type": { ty: sum(19) }, "puddle": { puddle: sum(19) }, "rest": none })
    );
    let of_none = page.check("")["found"].clone();
    assert_eq!(of_none, json!({ "type": {}, "puddle": {}, "rest": none }));
    // The same policy as when it is served, but that it may not even ask.
    let policy = html
        .split("Content-Security-Policy\" content=\"")
        .nth(1)
        .unwrap();
    let policy = policy.split('"').next().unwrap();
    assert!(
        policy.starts_with("default-src 'none'; script-src 'nonce-"),
        "{policy}"
    );
    assert!(!policy.contains("connect-src"), "{policy}");

    let (out, html) = write(&["--objects", "5"]);
    assert!(out.contains("with 5 of 21 objects (--objects)"), "{out}");
    let (answers, _) = answers_in(&html);
    assert_eq!(answers["objects"], 5);
    assert_eq!(answers["all_objects"], 21);
    let of_pool = answers["pools"]
        .as_object()
        .unwrap()
        .values()
        .next()
        .unwrap();
    let objects = of_pool["objects"].as_object().unwrap();
    assert_eq!(objects.len(), 5);
    assert!(
        objects.contains_key(of_pool["heap"]["root"].as_str().unwrap()),
        "the root comes first"
    );
    assert_eq!(answers["check"]["sound"], true);

    // Data can be hidden, and then is not there.
    let (_, html) = write(&["--redact"]);
    let (answers, _) = answers_in(&html);
    assert!(
        !answers["pools"]
            .to_string()
            .contains("alert(1)</script><!--")
    );

    // Nothing is put into the store, nor over a file of it.
    let inside = path.join("store.html");
    fails(
        &["explore", text(&path), "--html", text(&inside)],
        2,
        "this is in the store",
    );
    let there = puddle_file(&path);
    fails(
        &["explore", text(&path), "--html", text(&there)],
        2,
        "this is in the store",
    );
    fails(
        &["explore", text(&dir.path().join("none"))],
        2,
        "durum init",
    );
    assert_eq!(contents(&path), before, "nothing is written");

    // A damaged store has its page all the same.
    let empty = vec![0xff; 64];
    overwrite(&there, 4096, &empty);
    let run = durum(&["explore", text(&path), "--html", text(&file)]);
    assert_eq!(run.code, 3, "{}{}", run.out, run.err);
    let (answers, _) = answers_in(&std::fs::read_to_string(&file).unwrap());
    assert_eq!(answers["check"]["sound"], false);
}

/// A store whose program was killed: shown as recovery will leave it, with the logs, and left as it is.
#[test]
fn a_store_that_was_not_closed_is_shown_as_recovery_will_leave_it() {
    let dir = scratch();
    let path = dir.path().join("store");
    make_dirty_store(&path, "shadow");
    let before = contents(&path);
    let page = Page::of(&[text(&path)]);
    let logs = page.get("logs");
    let pool = page.get("overview")["pools"][0].clone();
    let arguments = [
        "inspect",
        text(&path),
        pool["name"].as_str().unwrap(),
        "--log",
        "--json",
    ];
    let inspected = succeeds(&arguments).json();
    assert_eq!(logs["clean"], false);
    assert_eq!(logs["records"], inspected["records"]);
    assert_eq!(logs["logs"], inspected["logs"]);
    assert!(
        logs["records"][0]["transactions"].as_u64().is_some(),
        "{logs}"
    );
    let heap = page.get(&format!("heap?pool={}", pool["uuid"].as_str().unwrap()));
    let heap_of = [
        "inspect",
        text(&path),
        pool["name"].as_str().unwrap(),
        "--heap",
        "--json",
    ];
    assert_eq!(heap["types"], succeeds(&heap_of).json()["heap"]["types"]);
    assert_eq!(contents(&path), before, "nothing is written");
}

mod one {
    use durum::typed::*;

    durum::pool!(pub P);

    #[derive(PSafe, Root)]
    #[repr(C)]
    pub struct Job {
        pub tries: PCell<u64, P>,
        pub later: Reserved<8>,
    }
}

mod two {
    use durum::typed::*;

    durum::pool!(pub P);

    #[derive(PSafe, Root)]
    #[repr(C)]
    pub struct Job {
        #[durum(was = "tries")]
        pub attempts: PCell<u64, P>,
        #[durum(in_reserved)]
        pub deadline: PCell<u64, P>,
    }
}

#[test]
fn a_type_that_has_changed_says_how() {
    use durum::typed::{Flags, PoolType};
    let dir = scratch();
    let path = dir.path().join("store");
    let job = one::P::open::<one::Job>(&path, Flags::CREATE).unwrap();
    job.close().unwrap();
    let job = two::P::open::<two::Job>(&path, Flags::OPEN).unwrap();
    two::P::transaction(|j| job.deadline.set(9, j)).unwrap();
    job.close().unwrap();
    let file = dir.path().join("store.html");
    succeeds(&["explore", text(&path), "--html", text(&file)]);
    let (answers, _) = answers_in(&std::fs::read_to_string(&file).unwrap());
    let pool = answers["pools"]
        .as_object()
        .unwrap()
        .values()
        .next()
        .unwrap();
    let changed = &pool["heap"]["changed"][0];
    let told = changed["differences"].to_string();
    assert!(told.contains("+ deadline: PCell<u64>"), "{changed}");
    // Objects that the old program has made are of the new type.
    let types = pool["heap"]["by_type"].as_array().unwrap();
    let ty = types.iter().find(|ty| ty["id"] == changed["new"]).unwrap();
    assert_eq!(ty["objects"], 1);
    let fields = &pool["types"][changed["new"].as_str().unwrap()]["fields"];
    let fields = fields.as_array().unwrap();
    let attempts = fields
        .iter()
        .find(|it| it["name"].as_str().unwrap().ends_with("attempts"));
    assert_eq!(attempts.unwrap()["was"], json!(["tries"]));
}
