//! Programs that must not compile, and what the compiler must say about each.
//!
//! Every file in `refused/` is a program. Its comments `//~ text` say what has to be in the compiler's messages about
//! it; `//~ 1 error`, how many there are; `//~ in the build`, that it is seen where code is made only; `//~ panic =
//! "abort"`, that it is compiled with that. Messages of the compiler itself change with its version, so it is not the
//! whole output that is compared: what names the cause and the cure is durum's.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Mutex;
use std::thread;

use serde_json::Value;

struct Case {
    path: PathBuf,
    expected: Vec<String>,
    /// The number of errors, where it matters.
    errors: Option<usize>,
    way: Way,
}

/// How a program is looked at.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Way {
    /// As `cargo check` does, and editors do.
    Check,
    /// As `cargo build` does: what constants in generic code refuse shows where code is made only.
    Build,
    /// As `cargo check` does, for a program whose panics abort.
    Abort,
}

/// What the compiler says about a program.
#[derive(Default)]
struct Told {
    text: String,
    errors: usize,
}

fn cases() -> Vec<Case> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("refused");
    let paths = fs::read_dir(folder).unwrap();
    paths.map(|entry| case(entry.unwrap().path())).collect()
}

fn case(path: PathBuf) -> Case {
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
    Case {
        path,
        expected,
        errors,
        way,
    }
}

/// The client as this test was built with it, or with other features of what it needs: of those that are there the last
/// one before this program was linked.
fn client() -> PathBuf {
    let this = env::current_exe().unwrap();
    let changed = |path: &Path| fs::metadata(path).unwrap().modified().unwrap();
    let is_client = |path: &PathBuf| {
        let name = path.file_name().unwrap().to_string_lossy();
        name.starts_with("libdurum-") && name.ends_with(".rlib") && changed(path) <= changed(&this)
    };
    let beside = fs::read_dir(this.parent().unwrap()).unwrap();
    beside
        .map(|entry| entry.unwrap().path())
        .filter(is_client)
        .max_by_key(|path| changed(path))
        .expect("the client lies beside its tests")
}

/// What the compiler says. It is called as cargo calls it: cargo itself would build the client once more.
fn compile(case: &Case, way: Way, client: &Path) -> Told {
    let made = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    // Beside cargo, which may be one of several.
    let beside = Path::new(env!("CARGO")).with_file_name("rustc");
    let rustc = Some(beside).filter(|path| path.exists());
    let mut command = Command::new(rustc.unwrap_or("rustc".into()));
    // Where cargo compiles the client, so that messages can show its lines.
    command.current_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join("../../.."));
    command.arg(&case.path);
    command.args(["--edition=2024", "--crate-type=bin", "--error-format=json"]);
    command.arg(format!("--extern=durum={}", client.display()));
    let beside = client.parent().unwrap();
    command.arg(format!("-Ldependency={}", beside.display()));
    // Where cargo was told for which target it builds, derives lie beside what is built for this machine.
    let of_this_machine = beside.join("../../../debug/deps");
    command.arg(format!("-Ldependency={}", of_this_machine.display()));
    command.arg(match way {
        Way::Build => "--emit=obj",
        Way::Check | Way::Abort => "--emit=metadata",
    });
    if way == Way::Abort {
        command.arg("-Cpanic=abort");
    }
    let output = command.arg("--out-dir").arg(made.path()).output().unwrap();
    let messages = String::from_utf8_lossy(&output.stderr);
    let mut told = Told::default();
    for line in messages.lines() {
        let Ok(message) = serde_json::from_str::<Value>(line) else {
            continue;
        };
        if message["level"] == "error" {
            let rendered = message["rendered"].as_str().unwrap();
            told.text += rendered;
            // The last message counts those before.
            told.errors += usize::from(!rendered.starts_with("error: aborting due to"));
        }
    }
    assert_eq!(output.status.success(), told.errors == 0, "{messages}");
    told
}

/// What is wrong with what the compiler says about the program.
fn mistakes(case: &Case, client: &Path) -> Vec<String> {
    let name = case.path.file_stem().unwrap().to_str().unwrap();
    let told = compile(case, case.way, client);
    let mut wrong = Vec::new();
    if told.errors == 0 {
        wrong.push(format!("{name} compiles"));
        return wrong;
    }
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
    if case.way == Way::Build && compile(case, Way::Check, client).errors > 0 {
        wrong.push(format!("{name} is refused before the build"));
    }
    wrong
}

#[test]
fn each_is_refused_with_its_reason() {
    let cases = cases();
    assert!(cases.len() > 20);
    let client = client();
    let wrong = Mutex::new(Vec::new());
    let next = Mutex::new(cases.iter());
    let work = || {
        while let Some(case) = { next.lock().unwrap().next() } {
            let of_case = mistakes(case, &client);
            wrong.lock().unwrap().extend(of_case);
        }
    };
    thread::scope(|scope| {
        for _ in 0..thread::available_parallelism().unwrap().get() {
            scope.spawn(work);
        }
    });
    let wrong = wrong.into_inner().unwrap();
    assert!(wrong.is_empty(), "with {client:?}: {}", wrong.join("\n"));
}
