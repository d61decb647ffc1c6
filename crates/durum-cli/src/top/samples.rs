//! Reads the text form of metrics, as far as the service writes it: a name, labels, a value.

use std::collections::BTreeMap;

use crate::failure::Failure;

/// A value at the moment.
#[derive(Debug, PartialEq)]
pub(super) struct Sample {
    pub(super) name: String,
    pub(super) labels: BTreeMap<String, String>,
    pub(super) value: f64,
}

/// All samples of a text.
pub(super) fn parse(text: &str) -> Result<Vec<Sample>, Failure> {
    let lines = text.lines().filter(|line| !line.starts_with('#'));
    lines
        .filter(|line| !line.trim().is_empty())
        .map(|line| sample(line).ok_or_else(|| Failure::Refused(format!("{line:?} is no metric"))))
        .collect()
}

fn sample(line: &str) -> Option<Sample> {
    let (name, rest) = line.split_at(line.find(['{', ' '])?);
    let (labels, rest) = match rest.strip_prefix('{') {
        Some(rest) => labels(rest)?,
        None => (BTreeMap::new(), rest),
    };
    let value = rest.split_whitespace().next()?;
    Some(Sample {
        name: name.to_owned(),
        labels,
        value: value.parse().ok()?,
    })
}

/// The labels up to the closing brace, and what is behind it.
fn labels(mut rest: &str) -> Option<(BTreeMap<String, String>, &str)> {
    let mut labels = BTreeMap::new();
    loop {
        if let Some(behind) = rest.strip_prefix('}') {
            return Some((labels, behind));
        }
        let (name, quoted) = rest.split_once("=\"")?;
        let mut value = String::new();
        let mut characters = quoted.char_indices();
        let end = loop {
            match characters.next()? {
                (at, '"') => break at,
                (_, '\\') => match characters.next()?.1 {
                    'n' => value.push('\n'),
                    other => value.push(other),
                },
                (_, other) => value.push(other),
            }
        };
        labels.insert(name.to_owned(), value);
        rest = quoted.get(end + 1..)?;
        rest = rest.strip_prefix(',').unwrap_or(rest);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_labels_and_values_are_read() {
        let text =
            "# HELP a b\na 1\nb{x=\"1\",le=\"+Inf\"} 2.5\nc{x=\"q\\\"}\\n\"} +Inf # {} 1\n# EOF\n";
        let samples = parse(text).unwrap();
        assert_eq!(samples.len(), 3);
        assert_eq!((samples[0].name.as_str(), samples[0].value), ("a", 1.0));
        assert_eq!(samples[1].labels["le"], "+Inf");
        assert_eq!(samples[2].labels["x"], "q\"}\n");
        assert_eq!(samples[2].value, f64::INFINITY);
    }

    #[test]
    fn what_is_no_metric_is_refused() {
        for bad in ["a", "a b", "a{", "a{x=\"1} 2", "a{x} 1", "<html>"] {
            assert!(parse(bad).is_err(), "{bad}");
        }
    }
}
