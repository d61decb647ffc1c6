//! How long durumcc compiles beside Clang: a file of the kernels, repeated with other names.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use super::compile::{command, run as run_compiler};
use super::plan::Plan;
use super::suite::Suite;
use crate::error::{Error, Result};
use crate::measure::Sample;
use crate::measured::{Column, Measured};
use crate::side::Role;
use crate::workload::Row;

/// The row.
pub(super) const ROW: Row = Row {
    name: "compile",
    one_op: "a file of about 5,000 lines at -O2, in processor time",
};
const LINES_MIN: usize = 5000;
const ROUNDS: usize = 5;

pub(super) fn run(suite: &Suite, plan: &Plan) -> Result<Measured> {
    let text = text(suite, plan, if plan.quick { 1 } else { LINES_MIN })?;
    let file = plan.work_dir.join("compile.c");
    fs::write(&file, text).map_err(Error::file(&file))?;
    let sides = [Role::Peer, Role::Engine]
        .into_iter()
        .zip(suite.compile.builds);
    let mut columns: Vec<Column> = sides
        .map(|(role, build)| Column {
            side: build.name.to_owned(),
            role,
            domain: "none".to_owned(),
            samples: Vec::new(),
        })
        .collect();
    for _ in 0..if plan.quick { 1 } else { ROUNDS } {
        for (column, build) in columns.iter_mut().zip(suite.compile.builds) {
            let object = plan.work_dir.join("compile.o");
            let mut command = command(suite, plan, build, &[&file]);
            // What the linker would be told, and static functions that one copy does not use.
            command.args(["-Wno-unused", "-Qunused-arguments", "-c", "-o"]);
            command.arg(object);
            let before = children_ns();
            run_compiler(&mut command)?;
            column.samples.push(Sample {
                ns: children_ns() - before,
                ..Sample::default()
            });
        }
    }
    Ok(Measured {
        suite: suite.name,
        row: ROW,
        columns,
    })
}

/// The kernels, again and again.
fn text(suite: &Suite, plan: &Plan, lines_min: usize) -> Result<String> {
    let mut text = String::new();
    for header in suite.compile.headers {
        text.push_str(&format!("#include {header}\n"));
    }
    let mut copy = 0;
    while text.lines().count() < lines_min {
        for program in suite.programs {
            let mut kernel = String::new();
            for file in suite.compile.sources {
                let file = plan
                    .repository
                    .join(file.replace("{program}", program.name));
                if file.exists() {
                    kernel.push_str(&read(&file)?);
                }
            }
            text.push_str(&renamed(&kernel, &format!("_{}_{copy}", program.name)));
        }
        copy += 1;
    }
    Ok(text)
}

fn read(path: &Path) -> Result<String> {
    fs::read_to_string(path).map_err(Error::file(path))
}

/// The text without its includes, with what follows behind each name that it defines.
fn renamed(text: &str, suffix: &str) -> String {
    let names = defined(text);
    let mut result = String::new();
    for line in text.lines().filter(|line| !line.starts_with("#include")) {
        let mut rest = line;
        while !rest.is_empty() {
            let is_word = |c: char| c.is_ascii_alphanumeric() || c == '_';
            let begins = rest.starts_with(is_word);
            let end = rest.find(|c| is_word(c) != begins).unwrap_or(rest.len());
            let (token, behind) = rest.split_at(end);
            result.push_str(token);
            if names.contains(token) {
                result.push_str(suffix);
            }
            rest = behind;
        }
        result.push('\n');
    }
    result
}

/// What a file defines: of lines that begin at the left, the word before the first sign that ends a name.
fn defined(text: &str) -> BTreeSet<&str> {
    let lines = text
        .lines()
        .filter(|line| line.starts_with(|c: char| c.is_ascii_alphabetic()));
    let of_line =
        |line: &'_ str| -> usize { line.find(['(', '[', ';', '=', '{']).unwrap_or(line.len()) };
    let names = lines.filter_map(|line| {
        let head = line[..of_line(line)].trim_end();
        head.rsplit([' ', '*']).next()
    });
    let macros = text.lines().filter_map(|line| {
        let name = line.strip_prefix("#define ")?;
        name.split([' ', '(']).next()
    });
    names
        .chain(macros)
        .filter(|name| !name.is_empty())
        .collect()
}

/// Processor time of children that have ended.
fn children_ns() -> f64 {
    // SAFETY: all zeros is a value of this struct of numbers.
    let mut usage: libc::rusage = unsafe { std::mem::zeroed() };
    // SAFETY: a struct of our own.
    unsafe { libc::getrusage(libc::RUSAGE_CHILDREN, &raw mut usage) };
    let ns = |time: libc::timeval| time.tv_sec as f64 * 1e9 + time.tv_usec as f64 * 1e3;
    ns(usage.ru_utime) + ns(usage.ru_stime)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_copy_has_names_of_its_own() {
        let text = "#include <a.h>\n#define N 8\nstruct node {\n    struct node *next;\n};\nstatic long size;\n\
                    static struct node *nvl *find(long key) {\n    return key == N + size ? 0 : find(key);\n}\n";
        let expected = "#define N_1 8\nstruct node_1 {\n    struct node_1 *next;\n};\nstatic long size_1;\n\
                        static struct node_1 *nvl *find_1(long key) {\n    return key == N_1 + size_1 ? 0 : find_1(key);\n}\n";
        assert_eq!(renamed(text, "_1"), expected);
    }
}
