//! The programs of a pair do the same. The durable ones go on where they were, whether they ended or were killed.

mod support;

use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use support::{Random, assert_comes_back, assert_nothing_is_lost};

struct Pair {
    volatile: &'static str,
    durum: &'static str,
    /// The store that the durable one makes in its working directory.
    store: &'static str,
    /// A command.
    draw: fn(&mut Random) -> String,
}

const LIST: Pair = Pair {
    volatile: env!("CARGO_BIN_EXE_list_volatile"),
    durum: env!("CARGO_BIN_EXE_list_durum"),
    store: "list.store",
    draw: |random| {
        let (at, value) = (random.below(8), random.below(40));
        match random.below(40) {
            0..8 => format!("push {value}"),
            8..16 => format!("append {value}"),
            16..24 => format!("insert {at} {value}"),
            24..28 => "pop".to_owned(),
            28..34 => format!("remove {value}"),
            34..36 => format!("find {value}"),
            36..38 => "reverse".to_owned(),
            38 => "print".to_owned(),
            _ => ["sum", "length", "clear", "nonsense"][random.below(4)].to_owned(),
        }
    },
};

const TREE: Pair = Pair {
    volatile: env!("CARGO_BIN_EXE_tree_volatile"),
    durum: env!("CARGO_BIN_EXE_tree_durum"),
    store: "tree.store",
    draw: |random| {
        let (key, value) = (random.below(60), random.below(1000));
        match random.below(40) {
            0..20 => format!("insert {key} {value}"),
            20..30 => format!("remove {key}"),
            30..32 => format!("find {key}"),
            32..34 => format!("after {key}"),
            34..36 => format!("range {key} {value}"),
            36 => "print".to_owned(),
            _ => {
                ["first", "last", "length", "depth", "length", "clear"][random.below(6)].to_owned()
            }
        }
    },
};

const MAP: Pair = Pair {
    volatile: env!("CARGO_BIN_EXE_map_volatile"),
    durum: env!("CARGO_BIN_EXE_map_durum"),
    store: "map.store",
    draw: |random| {
        let (key, value) = (random.below(80), random.below(1000));
        match random.below(40) {
            0..16 => format!("insert {key} {value}"),
            16..24 => format!("add {key} {value}"),
            24..32 => format!("remove {key}"),
            32..37 => format!("find {key}"),
            37 => "print".to_owned(),
            _ => ["sum", "length", "length", "clear"][random.below(4)].to_owned(),
        }
    },
};

const BTREE: Pair = Pair {
    volatile: env!("CARGO_BIN_EXE_btree_volatile"),
    durum: env!("CARGO_BIN_EXE_btree_durum"),
    store: "btree.store",
    draw: |random| {
        let (key, value) = (random.below(300), random.below(1000));
        match random.below(100) {
            0..50 => format!("insert {key} {value}"),
            50..85 => format!("remove {key}"),
            85..90 => format!("find {key}"),
            90..95 => format!("range {key} {value}"),
            95..99 => ["print", "length", "depth"][random.below(3)].to_owned(),
            _ => ["length", "length", "length", "clear"][random.below(4)].to_owned(),
        }
    },
};

const STORE: Pair = Pair {
    volatile: env!("CARGO_BIN_EXE_store_volatile"),
    durum: env!("CARGO_BIN_EXE_store_durum"),
    store: "store.store",
    draw: |random| {
        let (key, other) = (random.below(50), random.below(50));
        match random.below(60) {
            0..20 => format!("put k{key} the value {}", "of many words ".repeat(other)),
            20..28 => format!("append k{key} and {other}"),
            28..36 => format!("rename k{key} k{other}"),
            36..46 => format!("delete k{key}"),
            46..52 => format!("get k{key}"),
            52..56 => format!("keys k{}", key % 10),
            56..59 => "print".to_owned(),
            _ => ["length", "length", "length", "clear"][random.below(4)].to_owned(),
        }
    },
};

fn start(program: &str, dir: &Path) -> Child {
    Command::new(program)
        .current_dir(dir)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap()
}

/// The answers of a program to commands.
fn answers(program: &str, dir: &Path, commands: &[String]) -> Vec<String> {
    let mut child = start(program, dir);
    let mut input = child.stdin.take().unwrap();
    let text = commands.join("\n") + "\n";
    let feeder = std::thread::spawn(move || input.write_all(text.as_bytes()));
    let output = child.wait_with_output().unwrap();
    feeder.join().unwrap().unwrap();
    assert!(output.status.success(), "{program}: {}", output.status);
    let text = String::from_utf8(output.stdout).unwrap();
    text.lines().map(str::to_owned).collect()
}

fn draw(pair: &Pair, count: usize, random: &mut Random) -> Vec<String> {
    (0..count).map(|_| (pair.draw)(random)).collect()
}

/// The durable one does in three processes what the other one does in one.
fn behave_alike(pair: &Pair) {
    let dir = tempfile::tempdir_in("/dev/shm").unwrap();
    let commands = draw(pair, 3000, &mut Random(1));
    let expected = answers(pair.volatile, dir.path(), &commands);
    let parts = commands.chunks(1000);
    let found: Vec<String> = parts
        .flat_map(|part| answers(pair.durum, dir.path(), part))
        .collect();
    assert_eq!(found.len(), commands.len());
    for (at, command) in commands.iter().enumerate() {
        assert_eq!(found[at], expected[at], "after {at} commands: {command}");
    }
    assert_nothing_is_lost(&dir.path().join(pair.store));
    assert_comes_back(&dir.path().join(pair.store));
}

/// Feeds a durable program until it has given so many answers, and kills it. Gives the answers.
fn kill_after(program: &str, dir: &Path, commands: &[String], count: usize) -> Vec<String> {
    let mut child = start(program, dir);
    let mut input = child.stdin.take().unwrap();
    let text = commands.join("\n") + "\n";
    // It fails when the program is gone.
    let feeder = std::thread::spawn(move || drop(input.write_all(text.as_bytes())));
    let mut output = BufReader::new(child.stdout.take().unwrap());
    let mut told = Vec::new();
    let mut answer = String::new();
    while output.read_line(&mut answer).unwrap() > 0 {
        // One that was cut off was not given.
        if answer.ends_with('\n') {
            told.push(answer.trim_end().to_owned());
        }
        answer.clear();
        if told.len() == count {
            child.kill().unwrap();
        }
    }
    child.wait().unwrap();
    feeder.join().unwrap();
    assert!(told.len() < commands.len(), "it was not killed");
    told
}

/// Whenever it is killed: what it has answered was done, the next command perhaps, and none else.
fn survives_kills(pair: &Pair) {
    let dir = tempfile::tempdir_in("/dev/shm").unwrap();
    let mut random = Random(2);
    let mut done: Vec<String> = Vec::new();
    let print = ["print".to_owned()];
    for round in 0..8 {
        // So many that their answers do not fit into the pipe: it cannot come to the end by itself.
        let commands = draw(pair, 30_000, &mut random);
        let count = 1 + random.below(700);
        let told = kill_after(pair.durum, dir.path(), &commands, count).len();
        let found = answers(pair.durum, dir.path(), &print);
        let mut expected = Vec::new();
        for more in [told, told + 1] {
            let upto = commands.len().min(more);
            let all = [&done[..], &commands[..upto], &print].concat();
            expected.extend(answers(pair.volatile, dir.path(), &all).pop());
        }
        let Some(extra) = expected.iter().position(|one| found == [one.as_str()]) else {
            panic!("round {round}, killed after {told} answers: {found:?}, not {expected:#?}");
        };
        done.extend_from_slice(&commands[..commands.len().min(told + extra)]);
        assert_nothing_is_lost(&dir.path().join(pair.store));
    }
}

macro_rules! pairs {
    ($($name:ident: $pair:ident;)*) => { $(
        mod $name {
            #[test]
            fn both_behave_alike() {
                super::behave_alike(&super::$pair);
            }

            #[test]
            fn the_durable_one_survives_kills() {
                super::survives_kills(&super::$pair);
            }
        }
    )* };
}

pairs! {
    list: LIST;
    tree: TREE;
    map: MAP;
    btree: BTREE;
    store: STORE;
}
