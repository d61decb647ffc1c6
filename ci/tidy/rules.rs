//! The rules, as functions from a file's text to findings.

use crate::Finding;
use crate::floors::Floors;
use crate::source::{self, Line, is_word};

/// Source files longer than this are worth a second look.
pub const LINES_HINT: usize = 600;

/// How long a comment's line may be, in characters.
const COMMENT_WIDTH: usize = 120;

/// How far above a fence its `ORDER:` comment may begin.
const ORDER_REACH_LINES: usize = 10;

/// How far below a write-back the `ORDER:` comment of its fence may begin, which then speaks for both.
const ORDER_AHEAD_LINES: usize = 4;

/// Calls that order or complete media writes, in the words of `durum-persist`.
const ORDERING_CALLS: [&str; 4] = ["fence", "write_back", "sync", "sync_dir"];

/// Checks one file. `exists` tells whether a path from the repository's top leads anywhere.
pub fn check(
    path: &str,
    text: &str,
    exists: &dyn Fn(&str) -> bool,
    floors: &mut Floors,
    findings: &mut Vec<Finding>,
) {
    let mut report = |rule, index: usize, advice| {
        let text = text.lines().nth(index).unwrap_or_default().to_owned();
        findings.push(Finding {
            rule,
            path: path.to_owned(),
            line: index + 1,
            text,
            advice,
        });
    };
    // Not ours to word: the licence's text, what cargo writes, and the manual that the command writes.
    if path.starts_with("LICENSE") || path.ends_with("Cargo.lock") || path.starts_with("docs/man/")
    {
        return;
    }
    // The rules name what they forbid.
    if !path.starts_with("ci/tidy/") {
        check_text(text, &mut report);
    }
    if is_code(path) {
        check_comments(text, &mut report);
    }
    if path.ends_with(".md") {
        check_links(path, text, exists, &mut report);
    }
    if path.ends_with(".rs") {
        let lines = source::lines(text);
        if is_product(path) {
            check_product(path, &lines, &mut report);
        }
        floors.add(path, text, lines);
    }
}

/// Whether `path` is a source file written by hand.
pub fn is_code(path: &str) -> bool {
    [".rs", ".c", ".h", ".hpp", ".cpp", ".sh"]
        .iter()
        .any(|end| path.ends_with(end))
}

/// Whether a Rust file is part of what users run, apart from the tests inside it.
fn is_product(path: &str) -> bool {
    let test = path
        .split('/')
        .any(|part| matches!(part, "tests" | "tests.rs" | "benches" | "examples"))
        || path.ends_with("_tests.rs")
        || path.ends_with("_test.rs");
    path.starts_with("crates/") && path.contains("/src/") && !test
}

type Report<'a> = dyn FnMut(&'static str, usize, &'static str) + 'a;

fn check_text(text: &str, report: &mut Report) {
    for (index, line) in text.lines().enumerate() {
        if ["TODO", "FIXME", "XXX"]
            .iter()
            .any(|mark| has_word(line, mark))
        {
            report(
                "unfinished",
                index,
                "finish it, or file it where work is planned",
            );
        }
        if ["/work/", "/home/", "/root/"]
            .iter()
            .any(|path| has_absolute(line, path))
        {
            report(
                "private-path",
                index,
                "a path of one machine means nothing on another",
            );
        }
    }
}

/// Lines that are a comment and nothing else. What tests expect of a compiler is one line, however long.
fn check_comments(text: &str, report: &mut Report) {
    for (index, line) in text.lines().enumerate() {
        let comment = line.trim_start();
        let is_comment = ["// ", "//! ", "/// ", "# ", "* "]
            .iter()
            .any(|start| comment.starts_with(start));
        let is_expected = ["CHECK", "RUN:"].iter().any(|mark| has_word(line, mark));
        if is_comment && !is_expected && line.chars().count() > COMMENT_WIDTH {
            report(
                "comment",
                index,
                "break the comment's line at 120 characters",
            );
        }
    }
}

fn check_product(path: &str, lines: &[Line], report: &mut Report) {
    // The seam carries out what its callers order; it has no order of its own.
    if path.starts_with("crates/durum-persist/") {
        return;
    }
    for (index, line) in lines.iter().enumerate().filter(|(_, line)| !line.in_test) {
        for name in ORDERING_CALLS {
            for column in calls(&line.code, name) {
                if !is_forwarded(lines, index, column)
                    && !has_order(lines, index, name == "write_back")
                {
                    report(
                        "order",
                        index,
                        "an // ORDER: comment says what must be durable before what, and which crash breaks it otherwise",
                    );
                }
            }
        }
    }
}

/// The columns at which `code` calls a function or method called `name`.
fn calls<'a>(code: &'a str, name: &'a str) -> impl Iterator<Item = usize> + 'a {
    code.match_indices(name)
        .map(|(at, _)| at)
        .filter(move |&at| {
            let before = code[..at].trim_end();
            let whole = !code[..at].ends_with(is_word);
            whole && !before.ends_with("fn") && code[at + name.len()..].starts_with('(')
        })
}

/// Whether the call hands on the site that its own caller gave (who then owes the reason), or is the
/// fence of `std::sync::atomic`, which orders processors and not media.
fn is_forwarded(lines: &[Line], index: usize, column: usize) -> bool {
    let arguments = arguments(lines, index, column);
    let last = arguments
        .trim_end_matches(',')
        .rsplit(',')
        .next()
        .unwrap_or_default();
    last == "site" || arguments.contains("Ordering::")
}

/// The arguments of the call at `column`, over line ends, without blanks.
fn arguments(lines: &[Line], index: usize, column: usize) -> String {
    let mut depth = 0;
    let mut arguments = String::new();
    let first = &lines[index].code[column..];
    for c in std::iter::once(first)
        .chain(lines[index + 1..].iter().map(|line| line.code.as_str()))
        .flat_map(str::chars)
    {
        if c == ')' {
            depth -= 1;
            if depth == 0 {
                break;
            }
        }
        if depth > 0 && !c.is_whitespace() {
            arguments.push(c);
        }
        if c == '(' {
            depth += 1;
        }
    }
    arguments
}

fn has_order(lines: &[Line], index: usize, also_ahead: bool) -> bool {
    let ahead = if also_ahead { ORDER_AHEAD_LINES } else { 0 };
    let end = (index + ahead).min(lines.len() - 1);
    lines[index.saturating_sub(ORDER_REACH_LINES)..=end]
        .iter()
        .any(|line| line.comment.contains("ORDER:"))
}

/// Relative links of Markdown, outside of code.
fn check_links(path: &str, text: &str, exists: &dyn Fn(&str) -> bool, report: &mut Report) {
    let folder = path.rsplit_once('/').map_or("", |(folder, _)| folder);
    let mut in_code = false;
    for (index, line) in text.lines().enumerate() {
        in_code ^= line.trim_start().starts_with("```");
        if in_code {
            continue;
        }
        // Every second part lies between backticks.
        let prose: String = line.split('`').step_by(2).collect::<Vec<_>>().join("`");
        // Pictures with a light and a dark form are HTML.
        let links = ["](", " src=\"", " srcset=\""]
            .iter()
            .flat_map(|start| prose.match_indices(start));
        for (at, start) in links {
            let target = prose[at + start.len()..]
                .split([')', ' ', '#', '"'])
                .next()
                .unwrap_or_default();
            if target.is_empty() || target.contains("://") || target.starts_with("mailto:") {
                continue;
            }
            let full = if folder.is_empty() {
                target.to_owned()
            } else {
                format!("{folder}/{target}")
            };
            if !exists(&full) {
                report("link", index, "the link leads nowhere");
            }
        }
    }
}

fn has_word(line: &str, word: &str) -> bool {
    line.match_indices(word).any(|(at, _)| {
        !line[..at].ends_with(is_word) && !line[at + word.len()..].starts_with(is_word)
    })
}

/// Whether `line` has a path that starts with `prefix`, not one that only contains it.
fn has_absolute(line: &str, prefix: &str) -> bool {
    line.match_indices(prefix).any(|(at, _)| {
        let named = line[at + prefix.len()..].starts_with(is_word);
        named
            && !line[..at]
                .ends_with(|c: char| is_word(c) || matches!(c, '.' | '-' | '~' | '}' | ')' | '*'))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const PRODUCT: &str = "crates/durum/src/log.rs";

    fn rules(path: &str, text: &str) -> Vec<(&'static str, usize)> {
        let mut findings = Vec::new();
        check(
            path,
            text,
            &|target| target == "docs/there.md",
            &mut Floors::default(),
            &mut findings,
        );
        findings
            .iter()
            .map(|finding| (finding.rule, finding.line))
            .collect()
    }

    #[test]
    fn a_fence_needs_its_reason() {
        let call = "fn f() {\n    line::fence(COMMIT);\n}\n";
        assert_eq!(rules(PRODUCT, call), [("order", 2)]);
        assert_eq!(
            rules(
                PRODUCT,
                "fn f() {\n    // ORDER: a before b.\n    line::fence(COMMIT);\n}\n"
            ),
            []
        );
        assert_eq!(
            rules(
                PRODUCT,
                "fn f(x: X) {\n    x.media.write_back(\n        a,\n        COMMIT,\n    );\n}\n"
            ),
            [("order", 2)]
        );
        assert_eq!(
            rules(PRODUCT, "fn f() {\n    file.sync(Site(\"name\"))?;\n}\n"),
            [("order", 2)]
        );
        assert_eq!(rules("crates/durum-persist/src/line.rs", call), []);
        assert_eq!(rules("crates/durum/tests/log.rs", call), []);
    }

    #[test]
    fn an_order_comment_reaches_a_few_lines_only() {
        let far = format!(
            "// ORDER: a before b.\n{}line::fence(COMMIT);\n",
            "\n".repeat(ORDER_REACH_LINES)
        );
        assert_eq!(rules(PRODUCT, &far), [("order", ORDER_REACH_LINES + 2)]);
        // In a string it is no comment.
        assert_eq!(
            rules(PRODUCT, "f(\"// ORDER: x\");\nline::fence(COMMIT);\n"),
            [("order", 2)]
        );
    }

    #[test]
    fn a_fence_may_speak_for_the_write_back_before_it() {
        let both = "line::write_back(a, 8, ENTRY);\n// ORDER: a before b.\nline::fence(ENTRY);\n";
        assert_eq!(rules(PRODUCT, both), []);
        let late = format!(
            "line::write_back(a, 8, ENTRY);\n{}{both}",
            "\n".repeat(ORDER_AHEAD_LINES)
        );
        assert_eq!(rules(PRODUCT, &late), [("order", 1)]);
        assert_eq!(
            rules(PRODUCT, "line::fence(ENTRY);\n// ORDER: too late.\n"),
            [("order", 1)]
        );
    }

    #[test]
    fn who_hands_a_site_on_owes_no_reason() {
        assert_eq!(
            rules(
                PRODUCT,
                "fn fence(site: Site) {\n    line::fence(site)\n}\n"
            ),
            []
        );
        assert_eq!(
            rules(
                PRODUCT,
                "fn f(site: Site) {\n    x.write_back(\n        a,\n        b(c),\n        site,\n    )\n}\n"
            ),
            []
        );
        assert_eq!(rules(PRODUCT, "atomic::fence(Ordering::SeqCst);\n"), []);
        assert_eq!(rules(PRODUCT, "use std::sync::atomic;\nresync(a);\n"), []);
    }

    #[test]
    fn unfinished_work_shows() {
        assert_eq!(rules("docs/a.md", "a TODO b\n"), [("unfinished", 1)]);
        assert_eq!(rules("docs/a.md", "TODOS\n"), []);
    }

    #[test]
    fn paths_of_one_machine_show() {
        assert_eq!(
            rules("docs/a.md", "see /home/jo/x\n"),
            [("private-path", 1)]
        );
        assert_eq!(rules("docs/a.md", "cd /work/main\n"), [("private-path", 1)]);
        assert_eq!(rules("docs/a.md", "in src/home/x and ~/work/y\n"), []);
    }

    #[test]
    fn a_long_comment_shows_and_long_code_does_not() {
        let words = "word ".repeat(23);
        assert_eq!(
            rules("a.sh", &format!("# {words}word-word\n")),
            [("comment", 1)]
        );
        assert_eq!(rules("a.sh", &format!("# {words}end\n")), []);
        assert_eq!(
            rules("a.rs", &format!("    call(\"{words}{words}\");\n")),
            []
        );
        assert_eq!(rules("a.c", &format!("// CHECK: {words}{words}end\n")), []);
    }

    #[test]
    fn links_lead_somewhere() {
        assert_eq!(
            rules("docs/a.md", "[x](there.md#part) [y](gone.md)\n"),
            [("link", 1)]
        );
        assert_eq!(
            rules(
                "README.md",
                "[x](docs/there.md) [y](https://a.b) [z](#part)\n"
            ),
            []
        );
        assert_eq!(
            rules("docs/a.md", "`[x](gone.md)`\n```\n[x](gone.md)\n```\n"),
            []
        );
        assert_eq!(
            rules(
                "docs/a.md",
                "<img src=\"gone.svg\">\n<img src=\"there.md\">\n"
            ),
            [("link", 1)]
        );
    }

    #[test]
    fn licences_are_left_alone() {
        assert_eq!(rules("LICENSE-APACHE", "a TODO b\n"), []);
    }
}
