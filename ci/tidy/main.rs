//! House rules that no compiler knows, checked over the files named on standard input.
//!
//! | rule | what it asks |
//! | --- | --- |
//! | `unfinished` | no marks of unfinished work |
//! | `private-path` | no path of somebody's own machine |
//! | `order` | a fence, write-back or sync in product code has an `ORDER:` comment above it |
//! | `unwrap` | product code outside tests does not `unwrap()` |
//! | `comment` | a line that is a comment has 120 characters at most |
//! | `floors` | the modules of a crate import downward only, and no files import each other in a circle |
//! | `link` | a relative link or picture in Markdown leads to a file. lychee does that, too, but brings 400 crates |
//!
//! Files of more than 600 lines are listed, as a hint. Exceptions stand with their reasons in
//! `allow.txt`; one that nothing needs any more is an error. One file, no dependencies: `rustc` is enough.

mod allow;
mod floors;
mod imports;
mod rules;
mod source;

use std::io::Read;
use std::path::Path;
use std::process::ExitCode;

/// One breach of a rule.
#[derive(Debug, PartialEq, Eq)]
pub struct Finding {
    pub rule: &'static str,
    pub path: String,
    /// Counted from 1.
    pub line: usize,
    /// The line itself, for the reader and for the allow list.
    pub text: String,
    pub advice: &'static str,
}

fn main() -> ExitCode {
    let mut list = String::new();
    if let Err(error) = std::io::stdin().read_to_string(&mut list) {
        eprintln!("tidy: the list of files cannot be read: {error}");
        return ExitCode::FAILURE;
    }
    let mut allowed = match allow::parse(include_str!("allow.txt")) {
        Ok(allowed) => allowed,
        Err(message) => {
            eprintln!("ci/tidy/allow.txt: {message}");
            return ExitCode::FAILURE;
        }
    };

    let mut findings = Vec::new();
    let mut floors = floors::Floors::default();
    let mut checked = 0;
    for path in list.lines() {
        // Inputs of fuzzers are what they are.
        if path.contains("/corpus/") {
            continue;
        }
        let Ok(bytes) = std::fs::read(path) else {
            continue;
        };
        // Not text: an image, a recorded store.
        let Ok(text) = String::from_utf8(bytes) else {
            continue;
        };
        if text.contains('\0') {
            continue;
        }
        checked += 1;
        rules::check(
            path,
            &text,
            &|target| Path::new(target).exists(),
            &mut floors,
            &mut findings,
        );
        let lines = text.lines().count();
        if rules::is_code(path) && lines > rules::LINES_HINT {
            println!("hint: {path} has {lines} lines: one subject?");
        }
    }

    floors.check(&mut findings);

    let mut failed = false;
    for finding in &findings {
        if allowed.iter_mut().any(|entry| entry.covers(finding)) {
            continue;
        }
        failed = true;
        println!(
            "{}:{}: {}: {}",
            finding.path, finding.line, finding.rule, finding.advice
        );
        println!("    {}", finding.text.trim());
    }
    for entry in allowed.iter().filter(|entry| !entry.used) {
        failed = true;
        println!(
            "ci/tidy/allow.txt:{}: nothing needs this exception any more",
            entry.line
        );
    }
    println!("tidy: {checked} files checked");
    if failed {
        ExitCode::FAILURE
    } else {
        ExitCode::SUCCESS
    }
}
