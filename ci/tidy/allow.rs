//! The list of exceptions: which finding is meant to be as it is, and why.

use crate::Finding;

/// One exception.
#[derive(Debug)]
pub struct Entry {
    rule: String,
    path: String,
    /// Part of the offending line: an exception follows its line when others are inserted above.
    part: String,
    /// Line in the list, counted from 1.
    pub line: usize,
    /// Whether a finding needed it.
    pub used: bool,
}

impl Entry {
    /// Whether this exception is for `finding`; marks it as used if so.
    pub fn covers(&mut self, finding: &Finding) -> bool {
        let covers = self.rule == finding.rule
            && self.path == finding.path
            && finding.text.contains(&self.part);
        self.used |= covers;
        covers
    }
}

/// Parses `RULE | PATH | PART OF THE LINE | REASON` lines; `#` starts a comment line.
pub fn parse(text: &str) -> Result<Vec<Entry>, String> {
    let mut entries = Vec::new();
    for (index, line) in text.lines().enumerate() {
        if line.trim().is_empty() || line.starts_with('#') {
            continue;
        }
        // The part may contain the separator (closures do), so the fields are taken from both ends.
        let fields: Vec<&str> = line.split(" | ").map(str::trim).collect();
        if fields.len() < 4 || fields.iter().any(|field| field.is_empty()) {
            return Err(format!(
                "line {}: expected RULE | PATH | PART OF THE LINE | REASON",
                index + 1
            ));
        }
        entries.push(Entry {
            rule: fields[0].to_owned(),
            path: fields[1].to_owned(),
            part: fields[2..fields.len() - 1].join(" | "),
            line: index + 1,
            used: false,
        });
    }
    Ok(entries)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn finding(rule: &'static str, text: &str) -> Finding {
        Finding {
            rule,
            path: "a.rs".into(),
            line: 7,
            text: text.into(),
            advice: "",
        }
    }

    #[test]
    fn an_exception_covers_its_rule_path_and_line_only() {
        let mut entries =
            parse("# comment\n\norder | a.rs | line::fence(A) | its caller says why\n").unwrap();
        assert!(!entries[0].covers(&finding("comment", "line::fence(A)")));
        assert!(!entries[0].covers(&finding("order", "line::fence(B)")));
        assert!(!entries[0].used);
        assert!(entries[0].covers(&finding("order", "x; line::fence(A);")));
        assert!(entries[0].used);
    }

    #[test]
    fn an_exception_without_a_reason_is_refused() {
        assert!(parse("order | a.rs | line::fence(A)").is_err());
        assert!(parse("order | a.rs | line::fence(A) | ").is_err());
    }
}
