//! What a run of the demo has shown, as a table and as JSON.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::Duration;

use durum::RecoveryReport;
use durum_persist::domain;
use serde_json::{Value, json};

use super::process::{Latest, Stopped};
use super::verify::Verdict;
use crate::failure::Failure;
use crate::output::{self, count, domain_name, grouped, millis, time};

/// Collected while the demo runs.
#[derive(Default)]
pub(super) struct Report {
    seed: u64,
    threads: u32,
    store: PathBuf,
    pub(super) files: u64,
    pub(super) text_bytes: u64,
    pub(super) plain_time: Duration,
    pub(super) kills: u64,
    pub(super) verdict: Verdict,
    kills_in_transactions: u64,
    rolled_back: u64,
    rolled_forward: u64,
    /// Logs read, entries applied.
    log_times: Vec<Duration>,
    /// All of opening and closing the store.
    open_times: Vec<Duration>,
    /// Words and time of workers, as far as they reported.
    words: u64,
    time: Duration,
    cost: Latest,
}

impl Report {
    pub(super) fn new(seed: u64, threads: u32, store: PathBuf) -> Self {
        Self {
            seed,
            threads,
            store,
            ..Self::default()
        }
    }

    pub(super) fn store(&self) -> &Path {
        &self.store
    }

    pub(super) fn add_run(&mut self, run: &Stopped) {
        self.words += run.latest.durable.saturating_sub(run.first_durable);
        self.time += run.time;
        self.cost.transactions += run.latest.transactions;
        self.cost.fences += run.latest.fences;
        self.cost.write_backs += run.latest.write_backs;
        self.cost.syncs += run.latest.syncs;
    }

    pub(super) fn add_recovery(&mut self, report: &RecoveryReport, open_time: Duration) {
        self.rolled_back += report.rolled_back;
        self.rolled_forward += report.rolled_forward;
        if report.rolled_back + report.rolled_forward > 0 {
            self.kills_in_transactions += 1;
        }
        self.log_times.push(report.log_time);
        self.open_times.push(open_time);
    }

    fn words_per_second(&self) -> u64 {
        rate(self.words, self.time)
    }

    fn per_transaction(&self, number: u64) -> f64 {
        let ratio = number as f64 / self.cost.transactions.max(1) as f64;
        (ratio * 100.0).round() / 100.0
    }

    /// `1 fence`, `0.5 fences`.
    fn each(&self, number: u64, thing: &str) -> String {
        let ratio = self.per_transaction(number);
        let plural = if ratio == 1.0 { "" } else { "s" };
        format!("{ratio} {thing}{plural}")
    }
}

fn rate(number: u64, time: Duration) -> u64 {
    (number as f64 / time.as_secs_f64().max(1e-9)) as u64
}

/// Minimum, median and maximum.
fn spread(times: &[Duration]) -> [Duration; 3] {
    let mut times = times.to_vec();
    times.sort_unstable();
    [0, times.len() / 2, times.len().saturating_sub(1)]
        .map(|at| times.get(at).copied().unwrap_or_default())
}

pub(super) fn print(
    report: &Report,
    as_json: bool,
    is_kept: bool,
    out: &mut dyn Write,
) -> Result<(), Failure> {
    let verdict = &report.verdict;
    let domain = domain::detect(&report.store).map_or("unknown", domain_name);
    if as_json {
        return Ok(output::json(out, &to_json(report, domain, is_kept))?);
    }
    let text = format!(
        "{} of {}, {} different",
        count(verdict.text_words, "word"),
        count(report.files, "file"),
        grouped(verdict.different)
    );
    let spread_text = |times: &[Duration]| spread(times).map(time).join(" / ");
    let mut facts = vec![
        ("text", text),
        (
            "counted",
            format!(
                "{} ({} over the text)",
                count(verdict.counted, "word"),
                count(verdict.passes, "pass")
            ),
        ),
        (
            "kills survived",
            format!(
                "{}, {} of them in the middle of transactions",
                report.kills, report.kills_in_transactions
            ),
        ),
        (
            "transactions",
            format!(
                "{}; recovery rolled {} back and {} forward",
                grouped(report.cost.transactions),
                grouped(report.rolled_back),
                grouped(report.rolled_forward)
            ),
        ),
    ];
    if report.kills > 0 {
        facts.push((
            "recovery of logs",
            format!(
                "{} (shortest / median / longest)",
                spread_text(&report.log_times)
            ),
        ));
        facts.push(("store open to closed", spread_text(&report.open_times)));
    }
    let syncs = match report.cost.syncs {
        0 => String::new(),
        syncs => format!(", {}", report.each(syncs, "sync")),
    };
    facts.extend([
        (
            "words per second",
            format!(
                "{} by {} (plain memory, 1 thread: {})",
                grouped(report.words_per_second()),
                count(report.threads.into(), "thread"),
                grouped(rate(verdict.text_words, report.plain_time))
            ),
        ),
        (
            "per transaction",
            format!(
                "{}, {}{syncs} (8 words each)",
                report.each(report.cost.fences, "fence"),
                report.each(report.cost.write_backs, "write-back")
            ),
        ),
        ("domain", domain.into()),
        ("seed", report.seed.to_string()),
    ]);
    if is_kept {
        facts.push(("store", report.store.display().to_string()));
    }
    output::facts(out, &facts)?;
    if report.kills > 0 && report.kills_in_transactions * 2 < report.kills {
        writeln!(
            out,
            "note: few kills met a transaction; a longer --pace gives them more to meet"
        )?;
    }
    writeln!(
        out,
        "all {} counts equal a count in plain memory",
        grouped(verdict.different)
    )?;
    Ok(())
}

fn to_json(report: &Report, domain: &str, is_kept: bool) -> Value {
    let verdict = &report.verdict;
    let times = |times: &[Duration]| {
        let [min, median, max] = spread(times).map(millis);
        json!({ "min": min, "median": median, "max": max })
    };
    json!({
        "files": report.files,
        "text_bytes": report.text_bytes,
        "text_words": verdict.text_words,
        "words_counted": verdict.counted,
        "words_different": verdict.different,
        "passes": verdict.passes,
        "kills": report.kills,
        "kills_in_transactions": report.kills_in_transactions,
        "transactions": report.cost.transactions,
        "rolled_back": report.rolled_back,
        "rolled_forward": report.rolled_forward,
        "recovery_log_ms": times(&report.log_times),
        "recovery_open_ms": times(&report.open_times),
        "threads": report.threads,
        "words_per_second": report.words_per_second(),
        "plain_words_per_second": rate(verdict.text_words, report.plain_time),
        "fences_per_transaction": report.per_transaction(report.cost.fences),
        "write_backs_per_transaction": report.per_transaction(report.cost.write_backs),
        "syncs_per_transaction": report.per_transaction(report.cost.syncs),
        "domain": domain,
        "seed": report.seed,
        "store": is_kept.then_some(&report.store),
        "equal": true,
    })
}
