//! Rust source, line by line, with code and comments told apart: a rule about code must not stumble
//! over a string or a comment that talks about it.

/// One line of a Rust file.
#[derive(Debug, Default)]
pub struct Line {
    /// The line with comments and the contents of strings replaced by blanks.
    pub code: String,
    /// The comments on the line.
    pub comment: String,
    /// Whether the line belongs to an item under `#[cfg(test)]`.
    pub in_test: bool,
}

#[derive(Clone, Copy, PartialEq)]
enum State {
    Code,
    LineComment,
    /// Block comments nest.
    BlockComment(usize),
    Text,
    /// The number of `#` that close a raw string.
    RawText(usize),
}

/// Splits `text` into lines.
pub fn lines(text: &str) -> Vec<Line> {
    let mut lines = split(text);
    mark_tests(&mut lines);
    lines
}

fn split(text: &str) -> Vec<Line> {
    let chars: Vec<char> = text.chars().collect();
    let at = |index: usize| chars.get(index).copied().unwrap_or('\0');
    let mut lines = vec![Line::default()];
    let mut state = State::Code;
    let mut i = 0;
    while i < chars.len() {
        let c = chars[i];
        if c == '\n' {
            if state == State::LineComment {
                state = State::Code;
            }
            lines.push(Line::default());
            i += 1;
            continue;
        }
        let last = lines.len() - 1;
        let line = &mut lines[last];
        // How many characters this step takes, and whether they are code or comment.
        let mut taken = 1;
        let (mut is_code, mut is_comment) = (false, false);
        match state {
            State::Code => match c {
                '/' if at(i + 1) == '/' => {
                    state = State::LineComment;
                    is_comment = true;
                }
                '/' if at(i + 1) == '*' => {
                    state = State::BlockComment(1);
                    (taken, is_comment) = (2, true);
                }
                '"' => state = State::Text,
                'r' if !is_word(at(i.wrapping_sub(1))) || at(i.wrapping_sub(1)) == 'b' => {
                    let hashes = (i + 1..).take_while(|&k| at(k) == '#').count();
                    if at(i + 1 + hashes) == '"' {
                        state = State::RawText(hashes);
                        taken = hashes + 2;
                    } else {
                        is_code = true;
                    }
                }
                '\'' => match char_literal(&chars[i..]) {
                    Some(len) => taken = len,
                    None => is_code = true, // a lifetime
                },
                _ => is_code = true,
            },
            State::LineComment => is_comment = true,
            State::BlockComment(depth) => {
                is_comment = true;
                if c == '*' && at(i + 1) == '/' {
                    taken = 2;
                    state = if depth == 1 {
                        State::Code
                    } else {
                        State::BlockComment(depth - 1)
                    };
                } else if c == '/' && at(i + 1) == '*' {
                    taken = 2;
                    state = State::BlockComment(depth + 1);
                }
            }
            State::Text => match c {
                // A backslash before a line break leaves the break to the next step.
                '\\' if at(i + 1) != '\n' => taken = 2,
                '"' => state = State::Code,
                _ => {}
            },
            State::RawText(hashes) => {
                if c == '"' && (1..=hashes).all(|k| at(i + k) == '#') {
                    taken = hashes + 1;
                    state = State::Code;
                }
            }
        }
        for k in i..i + taken {
            line.code.push(if is_code { at(k) } else { ' ' });
            if is_comment {
                line.comment.push(at(k));
            }
        }
        i += taken;
    }
    lines
}

/// The length of the character literal that `chars` starts with, or `None` at a lifetime.
fn char_literal(chars: &[char]) -> Option<usize> {
    match chars.get(1)? {
        '\\' => chars.iter().skip(3).position(|&c| c == '\'').map(|n| n + 4),
        _ => (chars.get(2) == Some(&'\'')).then_some(3),
    }
}

/// Whether `c` can be part of an identifier.
pub fn is_word(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

/// Marks the items under `#[cfg(test)]`: up to the closing brace, or the semicolon if none opens. A field takes those
/// behind it along.
fn mark_tests(lines: &mut [Line]) {
    let mut index = 0;
    while index < lines.len() {
        let compact: String = lines[index].code.split_whitespace().collect();
        let Some(start) = ["#[cfg(test)]", "#[cfg(all(test,", "#[test]"]
            .iter()
            .find_map(|mark| compact.find(mark))
        else {
            index += 1;
            continue;
        };
        // A statement or item ends where its braces and brackets are closed again.
        let (mut depth, mut opened, mut end) = (0usize, false, lines.len() - 1);
        'item: for (k, line) in lines.iter().enumerate().skip(index) {
            let code: String = if k == index {
                compact[start..].to_owned()
            } else {
                line.code.clone()
            };
            for c in code.chars() {
                match c {
                    '{' => (depth, opened) = (depth + 1, true),
                    // Of what the item is a part of.
                    '}' if depth == 0 => {
                        end = index.max(k - 1);
                        break 'item;
                    }
                    '}' => depth -= 1,
                    _ => {}
                }
                if depth == 0 && (c == ';' || (c == '}' && opened)) {
                    end = k;
                    break 'item;
                }
            }
        }
        for line in &mut lines[index..=end] {
            line.in_test = true;
        }
        index = end + 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn code(text: &str) -> Vec<String> {
        lines(text)
            .into_iter()
            .map(|line| line.code.trim_end().to_owned())
            .collect()
    }

    #[test]
    fn strings_and_comments_are_not_code() {
        assert_eq!(
            code("a(\"x.unwrap()\"); // y.unwrap()"),
            ["a(            );"]
        );
        assert_eq!(code("a /* b\n c */ d"), ["a", "      d"]);
        assert_eq!(code("a /* b /* c */ d */ e"), ["a                   e"]);
        assert_eq!(code("r#\"a\" b\"# c"), ["          c"]);
        assert_eq!(code("\"a\\\"b\" c"), ["       c"]);
        assert_eq!(code("\"a\\\nb\" c"), ["", "   c"]);
    }

    #[test]
    fn a_quote_is_a_character_or_a_lifetime() {
        assert_eq!(code("'\"' a<'b>(c)"), ["    a<'b>(c)"]);
        assert_eq!(code("'\\'' a"), ["     a"]);
        assert_eq!(code("'\\u{7f}' a"), ["         a"]);
    }

    #[test]
    fn comments_are_kept_apart() {
        assert_eq!(lines("a(); // ORDER: b")[0].comment, "// ORDER: b");
    }

    #[test]
    fn tests_end_with_their_brace_or_semicolon() {
        let text = "a\n#[cfg(test)]\nmod tests {\n fn x() { }\n}\nb\n#[cfg(test)]\nmod more;\nc";
        let marked: Vec<bool> = lines(text).iter().map(|line| line.in_test).collect();
        assert_eq!(
            marked,
            [false, true, true, true, true, false, true, true, false]
        );
        let text = "struct A {\n    #[cfg(test)]\n    a: u8,\n}\nb";
        let marked: Vec<bool> = lines(text).iter().map(|line| line.in_test).collect();
        assert_eq!(marked, [false, true, true, false, false]);
    }
}
