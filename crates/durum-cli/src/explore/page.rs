//! The page: one document with its style and its program in it, which loads nothing from elsewhere.
//!
//! What a store says reaches the document as text nodes alone. Four things see to that: control characters are escaped
//! here ([`harmless`]); the answers in a file are JSON in which nothing can end its element; `page/elements.js` makes
//! elements by name and text by `textContent`; and the policy forbids whatever is not of this page, by a random word
//! (`nonce`) and by Trusted Types, so that text which became markup all the same would be inert.

use std::fmt::Write;

use durum_format::content::printable;
use durum_persist::random::fill;
use serde_json::Value as Json;

use crate::failure::Failure;

const STYLE: &str = include_str!("page.css");
/// One program of several files, in the order in which they are run.
const SCRIPT: &str = concat!(
    include_str!("page/elements.js"),
    "\n",
    include_str!("page/answers.js"),
    "\n",
    include_str!("page/parts.js"),
    "\n",
    include_str!("page/tree.js"),
    "\n",
    include_str!("page/views.js"),
    "\n",
    include_str!("page/ways.js"),
);

/// What an answer may load and run that is no page.
pub(super) const NOTHING: &str = "default-src 'none'; frame-ancestors 'none'";

/// A random word that nobody guesses.
pub(super) fn random() -> Result<String, Failure> {
    let mut bytes = [0; 16];
    fill(&mut bytes).map_err(|error| Failure::system("drawing a random number", error))?;
    let mut word = String::new();
    for byte in bytes {
        let _ = write!(word, "{byte:02x}");
    }
    Ok(word)
}

/// The page that asks for its answers, and its policy.
pub(super) fn served() -> Result<(String, String), Failure> {
    let nonce = random()?;
    let policy = format!(
        "{}; connect-src 'self'; frame-ancestors 'none'",
        policy(&nonce)
    );
    Ok((document(&nonce, "", ""), policy))
}

/// The page with its answers in it, each by the name of its element: the browser reads one when it is wanted, so that
/// none takes long.
pub(super) fn whole(answers: Vec<(String, Json)>) -> Result<String, Failure> {
    let nonce = random()?;
    // A policy for which no server stands.
    let meta = format!(
        "<meta http-equiv=\"Content-Security-Policy\" content=\"{}\">\n",
        policy(&nonce)
    );
    let mut data = String::new();
    for (name, answer) in answers {
        let _ = writeln!(
            data,
            "<script type=\"application/json\" id=\"{name}\">{}</script>",
            inert(&harmless(answer).to_string())
        );
    }
    Ok(document(&nonce, &meta, &data))
}

fn policy(nonce: &str) -> String {
    format!(
        "default-src 'none'; script-src 'nonce-{nonce}'; style-src 'nonce-{nonce}'; base-uri 'none'; form-action 'none'; \
         require-trusted-types-for 'script'; trusted-types 'none'"
    )
}

fn document(nonce: &str, meta: &str, data: &str) -> String {
    format!(
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n{meta}\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <meta name=\"color-scheme\" content=\"light dark\">\n\
         <meta name=\"referrer\" content=\"no-referrer\">\n\
         <title>durum explore</title>\n<style nonce=\"{nonce}\">\n{STYLE}</style>\n</head>\n<body>\n\
         <a class=\"skip\" href=\"#content\">To the content</a>\n\
         <header><nav id=\"ways\" aria-label=\"Store\"></nav></header>\n\
         <main id=\"content\" tabindex=\"-1\"><p>This page needs JavaScript.</p></main>\n\
         <footer id=\"foot\"></footer>\n\
         {data}<script nonce=\"{nonce}\">\n{SCRIPT}</script>\n</body>\n</html>\n"
    )
}

/// JSON in an element of HTML: outside of strings it has none of these characters, and in strings they may be escaped.
fn inert(json: &str) -> String {
    let mut out = String::with_capacity(json.len());
    for char in json.chars() {
        match char {
            '<' | '>' | '&' | '\u{2028}' | '\u{2029}' => {
                let _ = write!(out, "\\u{:04x}", u32::from(char));
            }
            char => out.push(char),
        }
    }
    out
}

/// The same with all characters escaped that control how text is shown, such as those that turn its direction.
pub(super) fn harmless(json: Json) -> Json {
    match json {
        Json::String(text) => Json::String(printable(&text)),
        Json::Array(items) => items.into_iter().map(harmless).collect(),
        Json::Object(members) => {
            let members = members.into_iter();
            members
                .map(|(name, it)| (printable(&name), harmless(it)))
                .collect()
        }
        plain => plain,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn what_a_store_says_stays_text() {
        let hostile = json!({
            "</script><script>alert(1)</script>": ["<!--<script>", "a\u{202e}b\u{1b}[2J\0\u{2028}&amp;", "\"\\'"],
        });
        let named = |answer: &Json| vec![("answers".to_owned(), answer.clone())];
        let page = whole(named(&hostile)).unwrap();
        let begin = "<script type=\"application/json\" id=\"answers\">";
        let (before, behind) = page.split_once(begin).unwrap();
        let (data, rest) = behind.split_once("</script>").unwrap();
        // Nothing in the data is markup, and reading it gives what was said.
        assert!(
            !data.contains(['<', '>', '&', '\u{1b}', '\u{202e}', '\0', '\u{2028}']),
            "{data}"
        );
        let read: Json = serde_json::from_str(data).unwrap();
        assert_eq!(read, harmless(hostile));
        let texts = &read["</script><script>alert(1)</script>"];
        assert_eq!(texts[0], "<!--<script>");
        assert_eq!(texts[1], "a\\u{202e}b\\u{1b}[2J\\0\\u{2028}&amp;");
        assert_eq!(texts[2], "\"\\'");
        // The two elements that run or style are the page's own, and the policy names their word.
        for part in [before, rest] {
            for element in ["<script", "<style"] {
                let own = part.matches(&format!("{element} nonce=\"")).count();
                assert_eq!(part.matches(element).count(), own, "{element}");
            }
        }
        let nonce = page.split("script-src 'nonce-").nth(1).unwrap();
        let nonce = nonce.split('\'').next().unwrap();
        assert_eq!(nonce.len(), 32);
        assert_eq!(page.matches(&format!(" nonce=\"{nonce}\"")).count(), 2);
        assert_ne!(whole(Vec::new()).unwrap(), whole(Vec::new()).unwrap());
    }

    /// What makes markup of text, or a program of it, or loads something.
    #[test]
    fn the_program_of_the_page_makes_no_markup_and_loads_nothing() {
        for word in [
            "innerHTML",
            "outerHTML",
            "insertAdjacent",
            "document.write",
            "eval(",
            "Function(",
            "srcdoc",
            "DOMParser",
            "createContextualFragment",
            "javascript:",
            "://",
            "import(",
            "localStorage",
        ] {
            assert!(!SCRIPT.contains(word), "{word}");
        }
        for word in ["url(", "@import", "://"] {
            assert!(!STYLE.contains(word), "{word}");
        }
        assert!(!SCRIPT.contains("</script") && !STYLE.contains("</style"));
        assert_eq!(SCRIPT.matches("fetch(").count(), 1);
    }
}
