//! Programs that must not compile, and what the compiler must say about each.
//!
//! Every file in `refused/` is a program. Its comments `//~ text` say what has to be in the compiler's messages about
//! it; `//~ 1 error`, how many there are; `//~ in the build`, that `cargo check` lets it pass; `//~ panic = "abort"`,
//! that it is compiled with that. Messages of the compiler itself change with its version, so it is not the whole
//! output that is compared: what names the cause and the cure is durum's.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

struct Case {
    path: PathBuf,
    expected: Vec<String>,
    /// The number of errors, where it matters.
    errors: Option<usize>,
    way: Way,
}

/// What the compiler says about a program.
#[derive(Default)]
struct Told {
    text: String,
    errors: usize,
}

fn cases() -> BTreeMap<String, Case> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/refused");
    let mut found = BTreeMap::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let text = fs::read_to_string(&path).unwrap();
        let mut expected: Vec<_> = text
            .lines()
            .filter_map(|line| line.trim().strip_prefix("//~ ").map(str::to_owned))
            .collect();
        let mut has = |mark: &str| {
            let found = expected.iter().position(|text| text == mark);
            found.map(|at| expected.remove(at)).is_some()
        };
        let errors = has("1 error").then_some(1);
        let way = match (has("in the build"), has("panic = \"abort\"")) {
            (true, _) => Way::Build,
            (_, true) => Way::Abort,
            _ => Way::Check,
        };
        let name = path.file_stem().unwrap().to_str().unwrap().to_owned();
        let case = Case {
            path,
            expected,
            errors,
            way,
        };
        found.insert(name, case);
    }
    found
}

/// How a program is looked at.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
enum Way {
    /// By `cargo check`, as editors do.
    #[default]
    Check,
    /// By `cargo build`: what constants in generic code refuse shows where code is made.
    Build,
    /// By `cargo check`, for a program whose panics abort.
    Abort,
}

/// A package with these programs.
fn package(name: &str, cases: &BTreeMap<String, Case>) -> PathBuf {
    let crate_folder = Path::new(env!("CARGO_MANIFEST_DIR"));
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    fs::create_dir_all(&folder).unwrap();
    let mut manifest = format!(
        "[package]\nname = \"refused\"\nversion = \"0.0.0\"\nedition = \"2024\"\n[workspace]\n[profile.dev]\ndebug = false\nincremental = false\n[dependencies]\ndurum = {{ path = {crate_folder:?} }}\n"
    );
    for (name, case) in cases {
        manifest += &format!("[[bin]]\nname = \"{name}\"\npath = {:?}\n", case.path);
    }
    fs::write(folder.join("Cargo.toml"), manifest).unwrap();
    fs::copy(
        crate_folder.join("../../Cargo.lock"),
        folder.join("Cargo.lock"),
    )
    .unwrap();
    folder
}

/// What the compiler says about each program.
fn messages(package_name: &str, cases: &BTreeMap<String, Case>) -> BTreeMap<String, Told> {
    let folder = package(package_name, cases);
    let mut told = BTreeMap::<String, Told>::new();
    let mut ask = |way: Way, arguments: &[&str]| {
        let of_way = |name: &str| cases.get(name).is_some_and(|case| case.way == way);
        let output = Command::new(env!("CARGO"))
            .args(arguments)
            .current_dir(&folder)
            .env("CARGO_TARGET_DIR", folder.join("target"))
            .output()
            .unwrap();
        for line in String::from_utf8_lossy(&output.stdout).lines() {
            let Ok(message) = serde_json::from_str::<Value>(line) else {
                continue;
            };
            if message["reason"] == "compiler-message" && message["message"]["level"] == "error" {
                let target = message["target"]["name"].as_str().unwrap().to_owned();
                if !of_way(&target) {
                    continue;
                }
                let rendered = message["message"]["rendered"].as_str().unwrap();
                let told = told.entry(target).or_default();
                told.text += rendered;
                // The last message counts those before.
                told.errors += usize::from(!rendered.starts_with("error: aborting due to"));
            }
        }
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(
            told.keys().any(|name| of_way(name)),
            "nothing was compiled: {errors}"
        );
    };
    let json = "--message-format=json";
    if cases.values().any(|case| case.way == Way::Check) {
        ask(Way::Check, &["check", "--bins", "--keep-going", json]);
    }
    for (name, case) in cases {
        match case.way {
            Way::Check => {}
            Way::Build => ask(case.way, &["build", "--bin", name, json]),
            Way::Abort => {
                let profile = ["rustc", "--profile", "check", "--bin", name, json];
                let flags = ["--", "-C", "panic=abort"];
                ask(case.way, &[&profile[..], &flags].concat());
            }
        }
    }
    told
}

#[test]
fn each_is_refused_with_its_reason() {
    let mut cases = cases();
    cases.retain(|_, case| case.way != Way::Build);
    assert!(cases.len() > 20);
    are_refused("refused", &cases);
}

#[test]
#[ignore = "compiles the client once more"]
fn what_is_refused_in_the_build_is_so_with_its_reason() {
    let mut cases = cases();
    cases.retain(|_, case| case.way == Way::Build);
    are_refused("refused-in-the-build", &cases);
}

fn are_refused(package_name: &str, cases: &BTreeMap<String, Case>) {
    let told = messages(package_name, cases);
    let mut wrong = Vec::new();
    for (name, case) in cases {
        let Some(told) = told.get(name) else {
            wrong.push(format!("{name} compiles"));
            continue;
        };
        // Lines are broken where the compiler likes.
        let joined = told.text.split_whitespace().collect::<Vec<_>>().join(" ");
        for text in &case.expected {
            if !joined.contains(text) {
                wrong.push(format!("{name}: no \"{text}\" in:\n{}", told.text));
            }
        }
        if let Some(errors) = case.errors
            && told.errors != errors
        {
            wrong.push(format!("{name}: {} errors:\n{}", told.errors, told.text));
        }
        if case.expected.is_empty() {
            wrong.push(format!("{name} does not say why:\n{}", told.text));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
