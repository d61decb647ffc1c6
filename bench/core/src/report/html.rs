//! Text in HTML and SVG.

/// With the characters replaced that mean something there, also between the quotes of an attribute.
pub(super) fn escape(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for character in without_controls(text).chars() {
        match character {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            '\'' => escaped.push_str("&#39;"),
            other => escaped.push(other),
        }
    }
    escaped
}

/// With marks in place of characters that neither a page nor an SVG may hold.
pub(super) fn without_controls(text: &str) -> String {
    let is_told = |it: &char| !it.is_control() || matches!(it, '\n' | '\t');
    text.chars()
        .map(|it| if is_told(&it) { it } else { '\u{fffd}' })
        .collect()
}
