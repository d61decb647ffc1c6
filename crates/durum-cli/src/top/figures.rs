//! What is shown of metrics.

use std::collections::BTreeMap;
use std::io::{self, Write};
use std::time::Duration;

use serde_json::{Value, json};

use super::samples::Sample;
use crate::failure::Failure;
use crate::output::{self, count, grouped, size, time};

/// The figures of a service at a moment; all counts are since its start.
#[derive(Debug, Default)]
pub(super) struct Figures {
    version: String,
    clients: u64,
    recovering: u64,
    connections: u64,
    pools: u64,
    store_bytes: u64,
    received: u64,
    sent: u64,
    recovered: u64,
    not_recovered: u64,
    refused: BTreeMap<String, u64>,
    requests: BTreeMap<String, Requests>,
}

/// Requests of one kind.
#[derive(Debug, Default)]
struct Requests {
    count: u64,
    seconds: f64,
    failed: u64,
    /// How many took at most so long, in the order of their bounds.
    within: Vec<(f64, u64)>,
}

impl Requests {
    fn mean(&self) -> Option<Duration> {
        (self.count > 0)
            .then(|| Duration::try_from_secs_f64(self.seconds / self.count as f64).ok())?
    }

    /// A time that this part of the requests did not exceed: the bound above it. `None` above all bounds.
    fn quantile(&self, part: f64) -> Option<Duration> {
        let wanted = (self.count as f64 * part).ceil() as u64;
        let reached = |&&(_, within): &&(f64, u64)| self.count > 0 && within >= wanted;
        let (bound, _) = self.within.iter().find(reached)?;
        Duration::try_from_secs_f64(*bound).ok()
    }
}

/// What was recovered.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Recovered {
    pub(crate) rolled_back: u64,
    pub(crate) rolled_forward: u64,
    pub(crate) quarantined: u64,
    /// All of it together.
    pub(crate) time: Duration,
}

impl Recovered {
    pub(super) fn of(samples: &[Sample]) -> Recovered {
        let mut recovered = Recovered::default();
        for sample in samples {
            let outcome = sample.labels.get("outcome").map(String::as_str);
            let whole = sample.value as u64;
            match (sample.name.as_str(), outcome) {
                ("durum_recovered_logs_total", Some("rolled_back")) => {
                    recovered.rolled_back = whole
                }
                ("durum_recovered_logs_total", Some("rolled_forward")) => {
                    recovered.rolled_forward = whole
                }
                ("durum_recovered_logs_total", Some("quarantined")) => {
                    recovered.quarantined = whole
                }
                ("durum_recovery_seconds_sum", _) => {
                    recovered.time = Duration::try_from_secs_f64(sample.value).unwrap_or_default();
                }
                _ => {}
            }
        }
        recovered
    }
}

impl Figures {
    pub(super) fn of(samples: &[Sample]) -> Result<Figures, Failure> {
        let mut figures = Figures::default();
        let mut is_durum = false;
        for sample in samples {
            let Some(name) = sample.name.strip_prefix("durum_") else {
                continue;
            };
            is_durum = true;
            let whole = sample.value as u64;
            let label = |name: &str| sample.labels.get(name).cloned().unwrap_or_default();
            let requests = || label("request");
            match name {
                "build_info" => figures.version = label("version"),
                "clients" => figures.clients = whole,
                "clients_recovering" => figures.recovering = whole,
                "connections" => figures.connections = whole,
                "pools" => figures.pools = whole,
                "store_bytes" => figures.store_bytes = whole,
                "received_bytes_total" => figures.received = whole,
                "sent_bytes_total" => figures.sent = whole,
                "recovery_seconds_count" => figures.recovered = whole,
                "recovery_failures_total" => figures.not_recovered = whole,
                "refusals_total" => drop(figures.refused.insert(label("reason"), whole)),
                "request_failures_total" => figures.of_kind(requests()).failed = whole,
                "request_seconds_count" => figures.of_kind(requests()).count = whole,
                "request_seconds_sum" => figures.of_kind(requests()).seconds = sample.value,
                "request_seconds_bucket" => {
                    let bound = label("le").parse().unwrap_or(f64::INFINITY);
                    figures.of_kind(requests()).within.push((bound, whole));
                }
                _ => {}
            }
        }
        match is_durum {
            true => Ok(figures),
            false => Err(Failure::Refused(
                "these are no metrics of durumd".to_owned(),
            )),
        }
    }

    fn of_kind(&mut self, request: String) -> &mut Requests {
        self.requests.entry(request).or_default()
    }

    /// Requests of a kind a second, since an earlier moment.
    fn rate(&self, kind: &str, since: Option<(Duration, &Figures)>) -> Option<f64> {
        let (time, before) = since?;
        let count = |figures: &Figures| figures.requests.get(kind).map_or(0, |of| of.count);
        // A service that was started again counts anew.
        let new = count(self)
            .checked_sub(count(before))
            .unwrap_or(count(self));
        Some(new as f64 / time.as_secs_f64().max(1e-3))
    }

    pub(super) fn show(
        &self,
        address: &str,
        since: Option<(Duration, &Figures)>,
        out: &mut dyn Write,
    ) -> io::Result<()> {
        writeln!(out, "durumd {} at {address}", self.version)?;
        writeln!(
            out,
            "{}, {} being recovered, {}; {} in {}",
            count(self.clients, "client"),
            self.recovering,
            count(self.connections, "connection"),
            count(self.pools, "pool"),
            size(self.store_bytes),
        )?;
        let refused: u64 = self.refused.values().sum();
        let reasons = self.refused.iter();
        let reasons: Vec<String> = reasons
            .map(|(reason, many)| format!("{reason} {many}"))
            .collect();
        let reasons = match reasons.is_empty() {
            true => String::new(),
            false => format!(" ({})", output::list(reasons)),
        };
        writeln!(
            out,
            "since its start: {} recovered, {} not, {} refused{reasons}; {} received, {} sent",
            grouped(self.recovered),
            grouped(self.not_recovered),
            grouped(refused),
            size(self.received),
            size(self.sent),
        )?;
        writeln!(out)?;
        let mut rows = output::heading("REQUEST|ALL|A SECOND|FAILED|MEAN|HALF WITHIN|99 % WITHIN");
        let told = |time_taken: Option<Duration>| time_taken.map_or_else(|| "-".to_owned(), time);
        for (kind, requests) in &self.requests {
            let rate = self.rate(kind, since);
            rows.push(vec![
                kind.clone(),
                grouped(requests.count),
                rate.map_or_else(|| "-".to_owned(), |rate| format!("{rate:.1}")),
                grouped(requests.failed),
                told(requests.mean()),
                told(requests.quantile(0.5)),
                told(requests.quantile(0.99)),
            ]);
        }
        output::table(out, &rows, &[1, 2, 3, 4, 5, 6])
    }

    pub(super) fn to_json(&self, since: Option<(Duration, &Figures)>) -> Value {
        let micros =
            |time: Option<Duration>| time.map(|time| (time.as_secs_f64() * 1e9).round() / 1e3);
        let requests = self.requests.iter().map(|(kind, requests)| {
            let value = json!({
                "count": requests.count,
                "failed": requests.failed,
                "a_second": self.rate(kind, since),
                "mean_us": micros(requests.mean()),
                "half_within_us": micros(requests.quantile(0.5)),
                "most_within_us": micros(requests.quantile(0.99)),
            });
            (kind.clone(), value)
        });
        json!({
            "version": self.version,
            "clients": self.clients,
            "recovering": self.recovering,
            "connections": self.connections,
            "pools": self.pools,
            "store_bytes": self.store_bytes,
            "received_bytes": self.received,
            "sent_bytes": self.sent,
            "recovered": self.recovered,
            "not_recovered": self.not_recovered,
            "refused": self.refused,
            "requests": requests.collect::<serde_json::Map<_, _>>(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::super::samples;
    use super::*;

    const TEXT: &str = "\
durum_build_info{version=\"1.2\"} 1
durum_clients 2
durum_refusals_total{reason=\"user\"} 3
durum_request_seconds_count{request=\"ping\"} 4
durum_request_seconds_sum{request=\"ping\"} 0.004
durum_request_seconds_bucket{le=\"0.001\",request=\"ping\"} 2
durum_request_seconds_bucket{le=\"0.002\",request=\"ping\"} 3
durum_request_seconds_bucket{le=\"+Inf\",request=\"ping\"} 4
durum_request_failures_total{request=\"ping\"} 1
# EOF
";

    fn figures(text: &str) -> Figures {
        Figures::of(&samples::parse(text).unwrap()).unwrap()
    }

    #[test]
    fn figures_are_taken_from_metrics() {
        let before = figures(TEXT);
        let now = figures(&TEXT.replace("count{request=\"ping\"} 4", "count{request=\"ping\"} 14"));
        let since = Some((Duration::from_secs(2), &before));
        let value = now.to_json(since);
        assert_eq!(value["clients"], 2);
        assert_eq!(value["refused"]["user"], 3);
        assert_eq!(value["requests"]["ping"]["a_second"], 5.0);
        let value = before.to_json(None);
        assert_eq!(value["requests"]["ping"]["mean_us"], 1000.0);
        assert_eq!(value["requests"]["ping"]["half_within_us"], 1000.0);
        assert_eq!(value["requests"]["ping"]["most_within_us"], Value::Null);
        let mut shown = Vec::new();
        now.show("here", since, &mut shown).unwrap();
        let shown = String::from_utf8(shown).unwrap();
        assert!(
            shown.contains("2 clients") && shown.contains("(user 3)"),
            "{shown}"
        );
        assert!(Figures::of(&samples::parse("up 1").unwrap()).is_err());
    }
}
