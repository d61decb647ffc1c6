//! The rule `floors`: the modules of a crate have an order, in which each imports only those before it. So no import
//! leads, over whatever others, back to the module that it stands in.
//!
//! A module is what lies directly below `src`: a file, or a folder with all that is in it. Imports are paths that begin
//! with `crate::`, outside of tests and comments.

use std::collections::{BTreeMap, BTreeSet};

use crate::Finding;
use crate::source::{Line, is_word};

/// The crates in which the order holds.
const CRATES: [&str; 11] = [
    "durum",
    "durum-capi",
    "durum-cli",
    "durum-derive",
    "durum-format",
    "durum-kv",
    "durum-kv-bench",
    "durum-kv-capi",
    "durum-nvl",
    "durum-persist",
    "durum-service",
];

/// Where a module imports another one for the first time.
#[derive(Clone, Debug)]
struct Import {
    path: String,
    line: usize,
    text: String,
}

/// What the modules of the crates import.
#[derive(Debug, Default)]
pub struct Floors {
    /// Crate, module, imported module.
    imports: BTreeMap<(String, String, String), Import>,
}

impl Floors {
    /// Notes what a file of product code imports.
    pub fn add(&mut self, path: &str, text: &str, lines: &[Line]) {
        let Some((name, module)) = place(path) else {
            return;
        };
        let code: Vec<&str> = lines
            .iter()
            .map(|line| if line.in_test { "" } else { line.code.as_str() })
            .collect();
        for (line, imported) in imported(&code) {
            if imported == module {
                continue;
            }
            let key = (name.to_owned(), module.to_owned(), imported);
            self.imports.entry(key).or_insert_with(|| Import {
                path: path.to_owned(),
                line: line + 1,
                text: text.lines().nth(line).unwrap_or_default().to_owned(),
            });
        }
    }

    /// An import for each step of each circle.
    pub fn check(&self, findings: &mut Vec<Finding>) {
        for ((name, from, to), import) in &self.imports {
            if self.leads(name, to, from) {
                findings.push(Finding {
                    rule: "floors",
                    path: import.path.clone(),
                    line: import.line,
                    text: import.text.clone(),
                    advice: "this module is imported by the one that it imports; move what both need below them",
                });
            }
        }
    }

    /// Whether a module imports another one, or one that does.
    fn leads(&self, name: &str, from: &str, to: &str) -> bool {
        let mut seen = BTreeSet::from([from]);
        let mut next = vec![from];
        while let Some(module) = next.pop() {
            let imports = self.imports.keys();
            for (_, _, imported) in imports.filter(|(of, by, _)| of == name && by == module) {
                if imported == to {
                    return true;
                }
                if seen.insert(imported) {
                    next.push(imported);
                }
            }
        }
        false
    }
}

/// The crate and the module of a file that the rule holds for. The root of a crate only names its modules.
fn place(path: &str) -> Option<(&str, &str)> {
    let (name, file) = path.strip_prefix("crates/")?.split_once("/src/")?;
    let module = file.split('/').next()?.trim_end_matches(".rs");
    let is_root = matches!(file, "lib.rs" | "main.rs") || file.starts_with("bin/");
    (CRATES.contains(&name) && !is_root).then_some((name, module))
}

/// The first names behind each `crate::`, with their lines.
fn imported(code: &[&str]) -> Vec<(usize, String)> {
    let mut found = Vec::new();
    for (index, line) in code.iter().enumerate() {
        for (at, _) in line.match_indices("crate::") {
            if line[..at].ends_with(|c: char| is_word(c) || c == '$') {
                continue;
            }
            let rest = &line[at + "crate::".len()..];
            match rest.strip_prefix('{') {
                Some(list) => {
                    let all = std::iter::once((index, list));
                    let more = code[index + 1..].iter().zip(index + 1..);
                    heads(
                        all.chain(more.map(|(line, index)| (index, *line))),
                        &mut found,
                    );
                }
                None => found.extend(word(rest).map(|name| (index, name))),
            }
        }
    }
    found
}

/// The first name of each part of a list in braces.
fn heads<'l>(lines: impl Iterator<Item = (usize, &'l str)>, found: &mut Vec<(usize, String)>) {
    let (mut depth, mut is_first) = (1, true);
    for (index, line) in lines {
        for (at, c) in line.char_indices() {
            match c {
                '{' => depth += 1,
                '}' => depth -= 1,
                ',' if depth == 1 => is_first = true,
                c if is_first && is_word(c) => {
                    is_first = false;
                    found.extend(word(&line[at..]).map(|name| (index, name)));
                }
                _ => {}
            }
            if depth == 0 {
                return;
            }
        }
    }
}

fn word(text: &str) -> Option<String> {
    let name: String = text.chars().take_while(|&c| is_word(c)).collect();
    // Items of the root begin with a capital, or are functions and constants: none is a module.
    name.starts_with(|c: char| c.is_lowercase()).then_some(name)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::source;

    fn circles(files: &[(&str, &str)]) -> Vec<(String, usize)> {
        let mut floors = Floors::default();
        for (path, text) in files {
            let path = format!("crates/durum-kv/src/{path}");
            floors.add(&path, text, &source::lines(text));
        }
        let mut findings = Vec::new();
        floors.check(&mut findings);
        let place = |finding: Finding| {
            let file = finding.path.rsplit('/').next().unwrap_or_default();
            (file.to_owned(), finding.line)
        };
        findings.into_iter().map(place).collect()
    }

    #[test]
    fn modules_may_import_downward_and_within_themselves() {
        let files = [
            ("top.rs", "use crate::middle::A;\nuse crate::low::B;"),
            ("middle/mod.rs", "use crate::middle::part::C;"),
            ("middle/part.rs", "use crate::low::{D, E};"),
            ("low.rs", "// crate::top\nconst A: &str = \"crate::top\";"),
            ("lib.rs", "pub use crate::top::F;"),
        ];
        assert_eq!(circles(&files), []);
    }

    #[test]
    fn an_import_that_leads_back_is_found_with_each_step_of_its_circle() {
        let files = [
            ("a.rs", "use crate::b::X;"),
            ("b/part.rs", "\nuse crate::{\n    d, c::{self, a},\n};"),
            ("c.rs", "fn f() {\n    crate::a::f();\n}"),
            ("d.rs", ""),
        ];
        let found = circles(&files);
        assert_eq!(
            found,
            [
                ("a.rs".into(), 1),
                ("part.rs".into(), 3),
                ("c.rs".into(), 2)
            ]
        );
    }

    #[test]
    fn tests_may_import_anything() {
        let files = [
            ("a.rs", "use crate::b::X;"),
            ("b.rs", "#[cfg(test)]\nmod tests {\n    use crate::a::Y;\n}"),
        ];
        assert_eq!(circles(&files), []);
    }
}
