//! The code in docs/tutorials/kv.md is compiled and run: here.

mod support;

use std::fs;
use std::path::Path;

use durum_kv::{Db, Durability, Options, ReadOptions, WriteBatch, WriteOptions};

#[test]
fn the_tutorial_runs() -> durum_kv::Result<()> {
    let (_dir, path) = support::place();

    let db = Db::open(&path, Options::new().create_if_missing(true))?;
    db.put(b"color", b"red")?;
    assert_eq!(db.get(b"color")?.as_deref(), Some(&b"red"[..]));

    let mut batch = WriteBatch::new();
    batch.put(b"shape", b"round");
    batch.delete(b"color");
    db.write(&batch)?;

    assert_eq!(db.get(b"color")?, None);
    let mut transaction = db.transaction()?;
    let stock = transaction.get(b"apples")?.map_or(0, |value| value[0]);
    if stock < 10 {
        transaction.put(b"apples", &[stock + 1]);
    }
    transaction.commit()?;

    let before = db.snapshot();
    db.put(b"apples", &[200])?;
    let mut entries = db.iter_with(&ReadOptions::new().snapshot(&before))?;
    let mut is_there = entries.seek(b"a")?;
    while is_there {
        println!("{:?} = {:?}", entries.key(), entries.value());
        is_there = entries.next()?;
    }
    assert!(entries.seek(b"a")? && entries.value() == Some(&[1]));

    let quick = WriteOptions::new().durability(Durability::Buffered);
    for number in 0..1000u32 {
        db.put_with(&number.to_be_bytes(), b"seen", &quick)?;
    }
    db.sync()?; // from here on no crash takes any of them

    db.multi_put(&[("plums", "blue"), ("pears", "green")])?; // durable, as by `put`
    let colors = db.multi_get(&["pears", "plums", "grapes"])?;
    assert_eq!(colors[0].as_deref(), Some(&b"green"[..]));
    assert_eq!(colors[2], None);

    let first = db.put_begin(b"grapes", b"red")?;
    let second = db.put_begin(b"figs", b"brown")?; // the first one is durable
    assert!(db.get(b"figs")?.is_some());
    second.wait()?; // and from here on this one, too
    first.wait()?; // has nothing to wait for

    assert_eq!(support::contents(&db).len(), 1006);
    Ok(())
}

/// Without what differs in a tutorial: how deep the code is indented.
fn lines(text: &str) -> String {
    text.lines()
        .map(|line| line.trim().to_owned() + "\n")
        .collect()
}

#[test]
fn the_tutorial_shows_this_code() {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    let code = lines(&fs::read_to_string(here.join("tests/tutorial.rs")).unwrap());
    let tutorial = fs::read_to_string(here.join("../../docs/tutorials/kv.md")).unwrap();
    let blocks: Vec<&str> = tutorial
        .split("```rust\n")
        .skip(1)
        .map(|rest| rest.split("```").next().unwrap())
        .collect();
    assert!(blocks.len() >= 5, "the tutorial has lost its code");
    for block in blocks {
        assert!(
            code.contains(&lines(block)),
            "no test has this code:\n{block}"
        );
    }
}
