//! The rule `floors`: the modules of a crate have an order, in which each imports only those before it, and so have its
//! files. So no import leads, over whatever others, back to the module or the file that it stands in.
//!
//! A module is what lies directly below `src`: a file, or a folder with all that is in it. The root is none, since it
//! only names the others; among the files it is one.

use std::collections::{BTreeMap, BTreeSet};

use crate::Finding;
use crate::imports::{File, Files, Import, Modules};
use crate::source::Line;

/// The files of the crates in which the order holds.
#[derive(Debug, Default)]
pub struct Floors {
    /// By the folder of a crate.
    crates: BTreeMap<String, Files>,
}

impl Floors {
    /// Takes a file, if it is of a crate whose order is kept.
    pub fn add(&mut self, path: &str, text: &str, lines: Vec<Line>) {
        let Some((folder, _)) = path.split_once("/src/") else {
            return;
        };
        if folder.starts_with("crates/") || folder.starts_with("bench/") {
            let files = self.crates.entry(folder.to_owned()).or_default();
            let text = text.to_owned();
            files.insert(path.to_owned(), File { text, lines });
        }
    }

    /// An import for each step of each circle.
    pub fn check(&self, findings: &mut Vec<Finding>) {
        for (folder, files) in &self.crates {
            for root in files.keys().filter(|path| is_root(folder, path)) {
                let modules = Modules::of(root, files);
                for (imports, advice) in [
                    (
                        modules.of_files(),
                        "this file is imported by the one that it imports; move what both need to one below them",
                    ),
                    (
                        modules.of_modules(),
                        "this module is imported by the one that it imports; move what both need below them",
                    ),
                ] {
                    for import in circles(imports) {
                        let mut lines = files[import.file].text.lines();
                        let finding = Finding {
                            rule: "floors",
                            path: import.file.to_owned(),
                            line: import.line + 1,
                            text: lines.nth(import.line).unwrap_or_default().to_owned(),
                            advice,
                        };
                        // Circles of modules mostly are of files, too.
                        let place =
                            |finding: &Finding| (finding.rule, finding.path.clone(), finding.line);
                        if !findings.iter().any(|other| place(other) == place(&finding)) {
                            findings.push(finding);
                        }
                    }
                }
            }
        }
    }
}

/// Whether a file is the root of a library or of a program.
fn is_root(folder: &str, path: &str) -> bool {
    let file = path[folder.len()..].trim_start_matches("/src/");
    matches!(file, "lib.rs" | "main.rs") || file.starts_with("bin/")
}

/// The first import of each step that a circle takes.
fn circles(mut imports: Vec<Import>) -> Vec<Import> {
    imports.sort();
    imports.dedup_by_key(|import| (import.by, import.of));
    let arrows: BTreeSet<_> = imports
        .iter()
        .map(|import| (import.by, import.of))
        .collect();
    imports.retain(|import| leads(&arrows, import.of, import.by));
    imports
}

/// Whether one leads to another over the arrows.
fn leads(arrows: &BTreeSet<(&str, &str)>, from: &str, to: &str) -> bool {
    let mut seen = BTreeSet::from([from]);
    let mut next = vec![from];
    while let Some(at) = next.pop() {
        for &(_, of) in arrows.iter().filter(|(by, _)| *by == at) {
            if of == to {
                return true;
            }
            if seen.insert(of) {
                next.push(of);
            }
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::source;

    /// The lines that are found in a crate of these files, whose root names the files that lie directly below.
    fn circles(files: &[(&str, &str)]) -> Vec<String> {
        let mut floors = Floors::default();
        let mut add = |path: &str, text: &str| {
            floors.add(
                &format!("crates/some/src/{path}"),
                text,
                source::lines(text),
            );
        };
        let mut root = String::new();
        for (path, text) in files {
            add(path, text);
            let name = path.trim_end_matches("/mod.rs").trim_end_matches(".rs");
            if !name.contains('/') && name != "lib" {
                root += &format!("mod {name};\n");
            }
        }
        let more = files.iter().find(|(path, _)| *path == "lib.rs");
        add("lib.rs", &(root + more.map_or("", |(_, text)| text)));
        let mut findings = Vec::new();
        floors.check(&mut findings);
        let place = |finding: Finding| {
            let file = finding.path.trim_start_matches("crates/some/src/");
            format!("{file}:{}", finding.line)
        };
        findings.into_iter().map(place).collect()
    }

    #[test]
    fn modules_may_import_downward_and_within_themselves() {
        let files = [
            ("top.rs", "use crate::middle::A;\nuse crate::low::B;"),
            ("middle/mod.rs", "mod part;\nuse crate::middle::part::C;"),
            ("middle/part.rs", "use crate::low::{D, E};"),
            ("low.rs", "// crate::top\nconst A: &str = \"crate::top\";"),
            ("lib.rs", "pub use crate::top::F;"),
        ];
        assert_eq!(circles(&files), [""; 0]);
    }

    #[test]
    fn an_import_that_leads_back_is_found_with_each_step_of_its_circle() {
        let files = [
            ("a.rs", "use crate::b::X;"),
            ("b.rs", "mod part;"),
            (
                "b/part.rs",
                "\nuse crate::{\n    d, c::{self, a},\n};\npub struct X;",
            ),
            ("c.rs", "fn f() {\n    crate::a::f();\n}"),
            ("d.rs", ""),
        ];
        assert_eq!(circles(&files), ["a.rs:1", "b/part.rs:3", "c.rs:2"]);
    }

    #[test]
    fn tests_may_import_anything() {
        let files = [
            ("a.rs", "use crate::b::X;"),
            ("b.rs", "#[cfg(test)]\nmod tests {\n    use crate::a::Y;\n}"),
        ];
        assert_eq!(circles(&files), [""; 0]);
    }

    #[test]
    fn files_of_one_module_have_an_order_too() {
        let files = [
            ("m.rs", "mod a;\nmod b;\nmod c;\nuse a::f;"),
            ("m/a.rs", "use super::b;\nfn f() {\n    b::g();\n}"),
            ("m/b.rs", "use super::c::{H as I};"),
            ("m/c.rs", "struct H(super::a::J);"),
        ];
        assert_eq!(circles(&files), ["m/a.rs:3", "m/b.rs:1", "m/c.rs:1"]);
    }

    #[test]
    fn what_others_hand_on_is_of_the_file_that_has_it() {
        let files = [
            (
                "m.rs",
                "mod a;\nmod b;\npub use a::*;\npub(super) use b::{B, self as other};",
            ),
            (
                "m/a.rs",
                "use super::B;\nuse super::other::b;\npub struct A;",
            ),
            ("m/b.rs", "pub struct B;\nfn b() {\n    macro_made();\n}"),
            ("n.rs", "use crate::m::{A, B};\nfn f() -> crate::C {}"),
            ("lib.rs", "pub use n::N;\npub type C = m::A;"),
        ];
        assert_eq!(circles(&files), [""; 0]);
        let mut back = files;
        back[2].1 = "use super::A;\npub struct B;";
        assert_eq!(circles(&back), ["m/a.rs:1", "m/b.rs:1"]);
    }

    #[test]
    fn a_module_puts_together_what_is_in_it() {
        let files = [
            ("m.rs", "mod a;\nstruct M;\nfn f() {\n    a::g();\n}"),
            ("m/a.rs", "use super::M;\nuse std::m::f;"),
        ];
        assert_eq!(circles(&files), [""; 0]);
    }

    #[test]
    fn names_are_not_taken_for_others() {
        let files = [
            // A function that is called as a module is, and a type that begins as another crate does.
            (
                "a.rs",
                "use crate::b;\nfn f() {\n    b();\n    c::d();\n}\nstruct A;",
            ),
            (
                "b.rs",
                "fn f(a: &'static A, b: *const A) {}\nuse other::a::A;",
            ),
            ("lib.rs", "use b::b;"),
            // What a macro names is of those who call it.
            ("c.rs", "macro_rules! m {\n    () => { $crate::a::A };\n}"),
            ("d.rs", "use crate::c::X;\nuse d::d;"),
        ];
        assert_eq!(circles(&files), [""; 0]);
    }

    #[test]
    fn an_attribute_names_a_file() {
        let files = [
            ("m.rs", "#[path = \"m/x86.rs\"]\nmod own;\nmod other;"),
            ("m/x86.rs", "use super::other::A;"),
            ("m/other.rs", "use super::own::B;"),
        ];
        assert_eq!(circles(&files), ["m/other.rs:1", "m/x86.rs:1"]);
    }
}
