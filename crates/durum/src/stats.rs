//! `DURUM_STATS=1`: what a program's transactions cost, told on the standard error when a store closes.

use std::fmt;
use std::path::Path;

use durum_persist::count::{self, Counters};

/// What was counted in this process while a store was open.
#[derive(Debug)]
pub(crate) struct Meter {
    at_open: Counters,
    background_at_open: Counters,
}

impl Meter {
    /// Begins to count, if the environment asks for it.
    pub(crate) fn wanted() -> Option<Self> {
        let wanted =
            std::env::var_os("DURUM_STATS").is_some_and(|value| value != "0" && !value.is_empty());
        wanted.then(|| Self {
            at_open: count::all_counters(),
            background_at_open: count::background_counters(),
        })
    }

    /// Tells what was counted since.
    pub(crate) fn tell(&self, store: &Path, pages_given_back: u64) {
        let report = Report {
            own: count::all_counters() - self.at_open,
            background: count::background_counters() - self.background_at_open,
            pages_given_back,
        };
        eprintln!("durum: {}: {report}", store.display());
    }
}

struct Report {
    own: Counters,
    background: Counters,
    pages_given_back: u64,
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (commits, aborts) = (self.own.commits, self.own.aborts);
        let committed = number(commits, "transaction");
        write!(f, "{committed} committed, {aborts} rolled back; ")?;
        let transactions = commits + aborts;
        if transactions > 0 {
            let each = |total: u64| total as f64 / transactions as f64;
            write!(
                f,
                "each {:.2} fences, {:.2} lines, {:.0} bytes logged, {:.0} bytes written; ",
                each(self.own.fences),
                each(lines(&self.own)),
                each(self.own.bytes_logged),
                each(self.own.bytes_written),
            )?;
        }
        write!(f, "in all {}", Totals(&self.own))?;
        if self.background != Counters::default() {
            write!(f, "; in the background {}", Totals(&self.background))?;
        }
        if self.pages_given_back > 0 {
            write!(f, "; {} private pages given back", self.pages_given_back)?;
        }
        Ok(())
    }
}

fn lines(counters: &Counters) -> u64 {
    counters.write_backs + counters.streamed_lines
}

/// `1 fence`, `2 fences`.
fn number(number: u64, thing: &str) -> String {
    let plural = if number == 1 { "" } else { "s" };
    format!("{number} {thing}{plural}")
}

struct Totals<'a>(&'a Counters);

impl fmt::Display for Totals<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let counters = self.0;
        write!(
            f,
            "{}, {}, {}, {}, {}",
            number(counters.fences, "fence"),
            number(lines(counters), "line"),
            number(counters.syncs, "sync"),
            number(counters.file_writes, "file write"),
            number(counters.bytes_written, "byte"),
        )
    }
}
