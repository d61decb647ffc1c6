//! The page of a run: one HTML file that holds its tables and plots and what they come from. It needs no network and no
//! script, and is readable on light and dark screens.

use super::bars::{self, Length};
use super::html::escape;
use super::machine::Description;
use super::percentiles;
use super::table::Table;
use crate::measured::Measured;

/// What a program has measured.
#[derive(Clone, Debug)]
pub struct Page {
    /// What ran.
    pub title: String,
    /// Machine, commit, load and all else that figures come from.
    pub description: Description,
    /// In the order in which they are read.
    pub parts: Vec<Part>,
}

/// A suite, or another part of a run.
#[derive(Clone, Debug, Default)]
pub struct Part {
    /// Its heading; "" where the page's says it.
    pub title: String,
    /// What to know of it; "" for nothing.
    pub about: String,
    /// As [`super::bars`] and [`super::percentiles`] draw them.
    pub plots: Vec<String>,
    /// Its tables.
    pub tables: Vec<Table>,
    /// Lines of text that are no table.
    pub text: String,
}

impl Part {
    /// Of a suite: its bars, its percentiles where operations were timed one by one, and its table.
    pub fn of_suite(
        title: &str,
        length: Length,
        all: &[Measured],
        table: Table,
        caption: &[String],
    ) -> Part {
        let mut plots = vec![bars::format(title, length, all, caption)];
        let latencies = format!("{title}: latency");
        plots.extend(percentiles::format(&latencies, all, caption));
        Part {
            title: title.to_owned(),
            plots,
            tables: vec![table],
            ..Part::default()
        }
    }
}

/// Around what [`join`] takes out of a page.
const BEGIN: &str = "<!-- a run begins -->\n";
const END: &str = "<!-- a run ends -->\n";

const STYLE: &str = "\
:root { color-scheme: light dark; --page: #fff; --ink: #1b1f24; --soft: #59636e; --grid: #e4e8ec; --even: #f6f8fa; }
@media (prefers-color-scheme: dark) {
  :root { --page: #0d1117; --ink: #e6edf3; --soft: #9aa4af; --grid: #252c35; --even: #151b23; }
}
body { margin: 0 auto; padding: 1.5rem; max-width: 76rem; background: var(--page); color: var(--ink);
  font: 15px/1.5 system-ui, 'Segoe UI', 'DejaVu Sans', Helvetica, Arial, sans-serif; }
h1 { font-size: 1.6rem; } h2 { font-size: 1.3rem; margin-top: 2.5rem; } h3 { font-size: 1.1rem; margin-top: 2rem; }
p, figcaption, small, dt { color: var(--soft); }
dl { display: grid; grid-template-columns: max-content 1fr; gap: .1rem 1rem; margin: 0; }
dd { margin: 0; overflow-wrap: anywhere; }
figure { margin: 1rem 0; overflow-x: auto; } svg { max-width: 100%; height: auto; }
.table { overflow-x: auto; margin: 1rem 0; }
table { border-collapse: collapse; font-size: .87rem; font-variant-numeric: tabular-nums; }
caption { text-align: left; color: var(--soft); padding-bottom: .3rem; }
th, td { padding: .15rem .6rem; text-align: right; white-space: nowrap; } thead th { vertical-align: bottom; }
thead small { display: block; font-weight: normal; } .word { text-align: left; }
tr.first > * { border-top: 1px solid var(--grid); } tbody tr:hover { background: var(--even); }
pre { overflow-x: auto; font-size: .85rem; }
";

/// The whole file, of what a program has printed.
pub fn of_text(title: &str, text: String) -> String {
    let part = Part {
        text,
        ..Part::default()
    };
    format(&Page {
        title: title.to_owned(),
        description: Description::of([]),
        parts: vec![part],
    })
}

/// The whole file.
pub fn format(page: &Page) -> String {
    let mut body = format!("<section>\n<h2>{}</h2>\n", escape(&page.title));
    for part in &page.parts {
        body += &of_part(part);
    }
    let facts = page.description.facts();
    let facts =
        facts.map(|(name, fact)| format!("<dt>{}</dt><dd>{}</dd>\n", escape(name), escape(fact)));
    let facts: String = facts.collect();
    if !facts.is_empty() {
        body += &format!("<h3>What the figures come from</h3>\n<dl>\n{facts}</dl>\n");
    }
    around(&(body + "</section>\n"))
}

/// One page of all runs of which these are the pages.
pub fn join(pages: &[String]) -> String {
    let run = |page: &'_ String| {
        let (_, rest) = page.split_once(BEGIN)?;
        Some(rest.split_once(END)?.0.to_owned())
    };
    let runs: Vec<String> = pages.iter().filter_map(run).collect();
    around(&runs.concat())
}

const TITLE: &str = "Benchmarks of durum";

fn around(body: &str) -> String {
    format!(
        "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'\">\n\
         <title>{TITLE}</title>\n<style>\n{STYLE}</style>\n</head>\n<body>\n<main>\n<h1>{TITLE}</h1>\n\
         {BEGIN}{body}{END}</main>\n</body>\n</html>\n"
    )
}

fn of_part(part: &Part) -> String {
    let mut html = String::new();
    if !part.title.is_empty() {
        html += &format!("<h3>{}</h3>\n", escape(&part.title));
    }
    if !part.about.is_empty() {
        html += &format!("<p>{}</p>\n", escape(&part.about));
    }
    for plot in &part.plots {
        html += &format!("<figure>\n{plot}</figure>\n");
    }
    for table in &part.tables {
        html += &table.html();
    }
    if !part.text.is_empty() {
        html += &format!("<pre tabindex=\"0\">{}</pre>\n", escape(&part.text));
    }
    html
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::measure::Sample;
    use crate::measured::Column;
    use crate::report::by_side;
    use crate::side::Role;
    use crate::workload::Row;

    const HOSTILE: &str = "<script src=\"https://example.org/x.js\">'&\u{1b}";

    fn rows() -> Vec<Measured> {
        let column = |side: &str, role, ns: f64| Column {
            side: side.to_owned(),
            role,
            domain: "dram".to_owned(),
            samples: vec![Sample {
                ns,
                fences: 1.0,
                latencies: (1..=20_000).map(|each| each * ns as u64).collect(),
                ..Sample::default()
            }],
        };
        let row = |name: &'static str| Measured {
            suite: "core",
            row: Row {
                name,
                one_op: "one of them",
            },
            columns: vec![
                column("pmdk", Role::Peer, 900.0),
                column(HOSTILE, Role::Engine, 200.0),
                column("flush1", Role::Limit, 100.0),
            ],
        };
        vec![row("add_8"), row("swap_1"), row(HOSTILE)]
    }

    fn page() -> Page {
        let (measured, caption) = (rows(), [HOSTILE.to_owned()]);
        let title = "core <&>";
        let table = by_side::format(&measured);
        let suite = Part::of_suite(title, Length::Time, &measured, table, &caption);
        assert_eq!(suite.plots.len(), 2);
        Page {
            title: title.to_owned(),
            description: Description::of([("commit", HOSTILE.to_owned())]),
            parts: vec![Part {
                title: HOSTILE.to_owned(),
                about: HOSTILE.to_owned(),
                text: HOSTILE.to_owned(),
                ..suite
            }],
        }
    }

    /// How often `part` stands in `text`.
    fn count(text: &str, part: &str) -> usize {
        text.matches(part).count()
    }

    #[test]
    fn a_page_holds_each_row_in_its_table_and_in_both_plots() {
        let page = format(&page());
        for row in ["add_8", "swap_1"] {
            assert_eq!(
                count(
                    &page,
                    &format!("<th scope=\"row\" class=\"word\">{row}</th>")
                ),
                1
            );
            assert_eq!(count(&page, &format!("\n{row}\n</text>")), 2);
        }
        // Units, a title for each plot, and its figures for those who do not see it.
        assert!(page.contains("<th scope=\"col\">p99 <small>\u{b5}s</small></th>"));
        assert_eq!(count(&page, "<title>core &lt;&amp;&gt;</title>"), 1);
        for plot in ["core &lt;&amp;&gt;", "core &lt;&amp;&gt;: latency"] {
            let begin =
                format!("role=\"img\" aria-label=\"{plot}\">\n<title>{plot}</title>\n<desc>");
            assert_eq!(count(&page, &begin), 1, "{plot}");
        }
        assert!(page.contains("add_8: pmdk 900 ns, "));
        assert!(page.contains("add_8: pmdk 50 % in 9.00 ms, 90 %"), "{page}");
        assert!(page.contains("swap_1") && page.contains("prefers-color-scheme: dark"));
    }

    #[test]
    fn names_of_a_run_are_text_and_nothing_is_loaded() {
        let page = format(&page());
        assert_eq!(count(&page, "<script"), 0);
        // The name is there: each time as text.
        assert!(
            count(
                &page,
                "&lt;script src=&quot;https://example.org/x.js&quot;&gt;"
            ) >= 8
        );
        assert_eq!(count(&page, "\u{1b}"), 0);
        let quoted = page.replace("&lt;script src=&quot;https://example.org/x.js", "");
        // A namespace is a name and no address.
        let quoted = quoted.replace("xmlns=\"http://www.w3.org/2000/svg\"", "");
        for reference in [
            "http:", "https:", "//", "src=", "href", "url(", "@import", "<link", "<img", "<iframe",
        ] {
            assert_eq!(count(&quoted, reference), 0, "{reference}");
        }
        for (open, close) in [
            ("<svg", "</svg>"),
            ("<table", "</table>"),
            ("<figure", "</figure>"),
        ] {
            assert_eq!(count(&page, open), count(&page, close), "{open}");
        }
    }

    #[test]
    fn pages_of_several_programs_become_one() {
        let other = Page {
            title: "another".to_owned(),
            ..page()
        };
        let text = of_text("recovery.txt", HOSTILE.to_owned());
        let pages = [format(&page()), format(&other), text, "no page".to_owned()];
        let joined = join(&pages);
        assert_eq!(count(&joined, "<h1>"), 1);
        assert_eq!(count(&joined, "<section>"), 3);
        assert!(joined.contains("<h2>recovery.txt</h2>\n<pre") && count(&joined, "<script") == 0);
        assert!(
            joined.contains("<h2>another</h2>") && joined.contains("<h2>core &lt;&amp;&gt;</h2>")
        );
        assert_eq!(count(&joined, "</html>"), 1);
    }
}
