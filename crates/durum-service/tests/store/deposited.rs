//! Code that a client has deposited, to complete its sections: it is there as long as they are.

use std::path::Path;

use durum_format::code::places::{Function, Places};
use durum_format::code::{HEAD_SIZE, Head, size_for};
use durum_service::{Embedded, Error, PuddleGrant, PuddleKind, PuddleOwner, Service, Uuid, check};

use crate::sections::{self, files, record, sections_of};
use crate::support::{create, heap, open, put, scratch, spec};

fn code() -> Vec<u8> {
    (0..3_000_000u32).map(|at| (at / 7) as u8).collect()
}

/// A client of which a pool is open, which is in a section if it says so, and its code.
fn left(path: &Path, is_in: bool) -> (Uuid, PuddleGrant) {
    left_with(path, is_in, &code(), b"")
}

fn left_with(path: &Path, is_in: bool, code: &[u8], places: &[u8]) -> (Uuid, PuddleGrant) {
    let (store, deposit, sections) = at_work(path, code, places);
    record(&sections, store.id(), 0, 1, is_in);
    (store.id(), deposit)
}

/// A client of which a pool is open, what it has deposited, and its puddle of sections.
fn at_work(path: &Path, code: &[u8], places: &[u8]) -> (Embedded, PuddleGrant, PuddleGrant) {
    let store = create(path);
    store.create_pool("heap", &spec()).unwrap();
    let (head, size) = (
        Head::of(code, places),
        size_for((code.len() + places.len()) as u64),
    );
    let deposit = store.create_puddle(PuddleOwner::Client, PuddleKind::Code, size);
    let deposit = deposit.unwrap();
    put(&deposit, heap(&deposit), &head.encode());
    put(&deposit, heap(&deposit) + HEAD_SIZE as u64, code);
    put(&deposit, heap(&deposit) + head.places_offset(), places);
    let sections = sections_of(&store);
    (store, deposit, sections)
}

fn code_of(store: &Embedded, client: Uuid) -> durum_service::Result<Option<Vec<u8>>> {
    store.host().code_of(client)
}

#[test]
fn code_is_there_until_the_sections_have_ended() {
    let directory = scratch();
    let path = directory.path().join("store");
    let (client, _) = left(&path, true);
    let store = open(&path);
    assert_eq!(code_of(&store, client).unwrap(), Some(code()));
    // The pool's root, sections, code.
    assert_eq!(files(&path), 3);
    drop(store);
    let store = open(&path);
    let taken = store.take_over(client).unwrap();
    assert_eq!(code_of(&store, client).unwrap(), Some(code()));
    record(&taken.puddles[0], client, 0, 2, false);
    store.sections_done(client).unwrap();
    assert_eq!(code_of(&store, client).unwrap(), None);
    assert_eq!(files(&path), 1);
}

#[test]
fn code_of_a_client_in_no_section_goes_with_it() {
    let directory = scratch();
    let path = directory.path().join("store");
    let (client, _) = left(&path, false);
    let store = open(&path);
    assert_eq!(code_of(&store, client).unwrap(), None);
    assert_eq!(files(&path), 1);
}

#[test]
fn code_that_is_not_whole_is_not_given() {
    let directory = scratch();
    let path = directory.path().join("store");
    let (client, deposit) = left(&path, true);
    let store = open(&path);
    let (base, head) = (heap(&deposit), Head::of(&code(), b""));
    let changed = base + HEAD_SIZE as u64 + 2_345_678;
    put(&deposit, changed, &[0xff]);
    let error = code_of(&store, client).unwrap_err();
    assert!(matches!(error, Error::Damaged { .. }), "{error}");
    assert!(
        error.to_string().contains("run the program itself"),
        "{error}"
    );
    drop(store);
    let report = check(&path, &Default::default()).unwrap();
    let mut texts = report.findings.iter().map(|finding| finding.text.as_str());
    assert!(
        texts.any(|text| text.contains("code that completes sections")),
        "{report:?}"
    );
    let store = open(&path);
    let longer = Head {
        length: deposit.size,
        ..head
    };
    for forged in [longer.encode(), [0; HEAD_SIZE]] {
        put(&deposit, base, &forged);
        let error = code_of(&store, client).unwrap_err();
        assert!(matches!(error, Error::Format { .. }), "{error}");
    }
    // Shorter code has another sum.
    let shorter = Head {
        length: head.length - 1,
        ..head
    };
    put(&deposit, base, &shorter.encode());
    assert!(code_of(&store, client).is_err());
    // What it is needed for waits as ever.
    assert_eq!(store.interrupted().unwrap().len(), 1);
    let file = path.join("puddles").join(deposit.uuid.to_string());
    std::fs::remove_file(file).unwrap();
    let error = code_of(&store, client).unwrap_err();
    assert!(matches!(error, Error::FileMissing { .. }), "{error}");
    drop(store);
    let report = check(&path, &Default::default()).unwrap();
    let mut texts = report.findings.iter().map(|finding| finding.text.as_str());
    assert!(texts.any(|text| text.contains("missing")), "{report:?}");
}

/// An executable of ELF that needs these of the processor.
fn executable_for(features: &[u8]) -> Vec<u8> {
    let names = b"\0durum_features\0";
    let (names_at, features_at) = (64, 64 + names.len());
    let table_at = features_at + features.len();
    let mut file = b"\x7fELF\x02\x01".to_vec();
    file.resize(40, 0);
    file.extend((table_at as u64).to_le_bytes());
    file.resize(58, 0);
    file.extend([64, 0, 2, 0, 0, 0]);
    file.extend(names);
    file.extend(features);
    for (name, at, size) in [
        (0u32, names_at, names.len()),
        (1, features_at, features.len()),
    ] {
        file.extend(name.to_le_bytes());
        file.extend([0; 20]);
        file.extend((at as u64).to_le_bytes());
        file.extend((size as u64).to_le_bytes());
        file.extend([0; 24]);
    }
    file
}

#[test]
fn code_for_another_processor_is_not_given_to_be_run() {
    let directory = scratch();
    let base = match cfg!(target_arch = "x86_64") {
        true => "sse2",
        false => "neon",
    };
    let common = executable_for(format!("{base}\0").as_bytes());
    let path = directory.path().join("common");
    let (client, _) = left_with(&path, true, &common, b"");
    assert_eq!(code_of(&open(&path), client).unwrap(), Some(common));

    let rare = executable_for(format!("{base}\0telepathy\0avx1024\0").as_bytes());
    let path = directory.path().join("rare");
    let (client, _) = left_with(&path, true, &rare, b"");
    let error = code_of(&open(&path), client).unwrap_err();
    let Error::ProcessorLacks { features, .. } = &error else {
        panic!("{error}");
    };
    assert_eq!(features, &["avx1024", "telepathy"]);
    // Nothing is wrong with the store.
    let report = check(&path, &Default::default()).unwrap();
    let mut texts = report.findings.iter().map(|finding| &finding.text);
    assert!(!texts.any(|text| text.contains("processor")), "{report:?}");

    let (others, name) = match cfg!(target_arch = "x86_64") {
        true => (183u16, "the architecture aarch64"),
        false => (62, "the architecture x86_64"),
    };
    let mut elsewhere = executable_for(format!("{base}\0telepathy\0").as_bytes());
    elsewhere[18..20].copy_from_slice(&others.to_le_bytes());
    let path = directory.path().join("elsewhere");
    let (client, _) = left_with(&path, true, &elsewhere, b"");
    let error = code_of(&open(&path), client).unwrap_err();
    let Error::ProcessorLacks { features, .. } = &error else {
        panic!("{error}");
    };
    assert_eq!(features, &[name]);

    let strange = executable_for(b"\x1b[2J\0");
    let path = directory.path().join("strange");
    let (client, _) = left_with(&path, true, &strange, b"");
    let error = code_of(&open(&path), client).unwrap_err();
    assert!(matches!(error, Error::Format { .. }), "{error}");
}

/// What a program tells of the function of these sections, in the line 66.
fn places() -> Vec<u8> {
    let code = sections::code();
    let mut lines = vec![0; code.region().into()];
    lines.extend([67]);
    lines[usize::from(code.region()) - 1] = 66;
    let function = Function {
        hash: code.function(),
        name: "push",
        file: "src/queue.c",
        lines,
    };
    let places = Places {
        program: "queue\u{7}",
        build: "3f2a81",
        functions: vec![function],
    };
    places.encode()
}

/// They are kept for each client that has left sections, and anybody may have written them.
#[test]
fn words_of_strangers_have_a_bound() {
    let directory = scratch();
    let path = directory.path().join("store");
    let long = "\u{10ffff}".repeat(256);
    let function = Function {
        hash: sections::code().function(),
        name: &long,
        file: &long,
        lines: vec![],
    };
    let functions = vec![function];
    let places = Places {
        functions,
        ..Places::default()
    };
    let (store, _, sections) = at_work(&path, &code(), &places.encode());
    for slot in 0..4 {
        record(&sections, store.id(), slot, 1, true);
    }
    drop(store);
    let told = &open(&path).interrupted().unwrap()[0].places;
    let known = sections::code().to_string();
    let are_known: Vec<bool> = told.iter().map(|place| *place == known).collect();
    assert_eq!(are_known, [false, false, false, true]);
}

#[test]
fn a_person_is_told_function_line_and_build() {
    let directory = scratch();
    let path = directory.path().join("store");
    let places = places();
    let (client, deposit) = left_with(&path, true, &code(), &places);
    let told = "a program ended in a section (the first at push, src/queue.c:66; it was queue\\u{7}, build 3f2a81)";
    let store = open(&path);
    let error = store.open_pool("heap").unwrap_err();
    let begin = format!("pool \"heap\" is interrupted: {told}; run the program that left that");
    assert!(error.to_string().starts_with(&begin), "{error}");
    let left = store.interrupted().unwrap();
    assert_eq!(left[0].reason(), told);
    assert_eq!(left[0].places, ["push, src/queue.c:66"]);
    assert_eq!(code_of(&store, client).unwrap(), Some(code()));
    drop(store);
    let told_by_check = |text: &str| {
        let report = check(&path, &Default::default()).unwrap();
        let found = report
            .findings
            .iter()
            .any(|finding| finding.text.contains(text));
        (found, report)
    };
    let (found, report) = told_by_check(told);
    assert!(found, "{report:?}");

    // It is a stranger's word, and what cannot be read is not said.
    let at = heap(&deposit) + Head::of(&code(), &places).places_offset();
    let torn = vec![0xff; places.len()];
    let other = Places::default().encode();
    let known = sections::code().to_string();
    for (forged, is_damage) in [(torn, true), (other, false), (Vec::new(), false)] {
        put(&deposit, at, &forged);
        let head = match is_damage {
            true => Head::of(&code(), &places),
            false => Head::of(&code(), &forged),
        };
        put(&deposit, heap(&deposit), &head.encode());
        let store = open(&path);
        let reason = store.interrupted().unwrap()[0].reason();
        assert!(
            reason.contains(&format!("(the first at {known}")),
            "{reason}"
        );
        drop(store);
        let (found, report) = told_by_check("places of code");
        assert_eq!(found, is_damage, "{report:?}");
    }
}
