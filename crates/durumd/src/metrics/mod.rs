//! What the service counts, and how it is shown: OpenMetrics text, encoded by `prometheus-client`. No name of a pool or
//! of a user is in it: whoever may read metrics need not know what others keep. [`http`] serves it.

pub(crate) mod http;

use std::time::Duration;

use prometheus_client::encoding::{EncodeLabelSet, text};
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::{Histogram, exponential_buckets};
use prometheus_client::metrics::info::Info;
use prometheus_client::registry::{Metric, Registry};

use durum_protocol::Request;
use durum_service::RecoveryReport;

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct OfRequest {
    request: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Because {
    reason: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct With {
    outcome: &'static str,
}

/// All that is counted.
#[derive(Debug)]
pub(crate) struct Metrics {
    registry: Registry,
    requests: Family<OfRequest, Histogram, fn() -> Histogram>,
    failures: Family<OfRequest, Counter>,
    received: Counter,
    sent: Counter,
    refusals: Family<Because, Counter>,
    recoveries: Histogram,
    log_work: Histogram,
    recoveries_failed: Counter,
    transactions: Family<With, Counter>,
    completions: Family<With, Counter>,
    clients: Gauge,
    recovering: Gauge,
    connections: Gauge,
    pools: Gauge,
    store_bytes: Gauge,
}

/// What is so at the moment.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Now {
    pub(crate) clients: usize,
    pub(crate) recovering: usize,
    pub(crate) connections: usize,
    pub(crate) pools: usize,
    pub(crate) store_bytes: u64,
}

/// From 4 microseconds to 17 seconds: what is in memory, what waits for a disk, and what waits for others.
fn times() -> Histogram {
    Histogram::new(exponential_buckets(4e-6, 2.0, 23))
}

/// A metric that is shown by this name; what is given counts for the same.
fn shown<M: Metric + Clone>(
    all: &mut Registry,
    name: &'static str,
    help: &'static str,
    metric: M,
) -> M {
    all.register(name, help, metric.clone());
    metric
}

impl Metrics {
    pub(crate) fn new() -> Metrics {
        let mut registry = Registry::with_prefix("durum");
        let version = Info::new([("version", env!("CARGO_PKG_VERSION"))]);
        registry.register("build", "The service", version);
        let all = &mut registry;
        Metrics {
            requests: shown(
                all,
                "request_seconds",
                "Requests by kind: from the last byte of the request to the last of the answer",
                Family::new_with_constructor(times as fn() -> Histogram),
            ),
            failures: shown(
                all,
                "request_failures",
                "Requests that were answered with an error",
                Family::default(),
            ),
            received: shown(
                all,
                "received_bytes",
                "Bytes of requests",
                Counter::default(),
            ),
            sent: shown(all, "sent_bytes", "Bytes of answers", Counter::default()),
            refusals: shown(
                all,
                "refusals",
                "Programs that were not let in",
                Family::default(),
            ),
            recoveries: shown(
                all,
                "recovery_seconds",
                "Recoveries of clients that were gone",
                times(),
            ),
            log_work: shown(
                all,
                "recovery_log_seconds",
                "The part of each recovery that reads logs and brings home what they say",
                times(),
            ),
            recoveries_failed: shown(
                all,
                "recovery_failures",
                "Recoveries that did not succeed, and are tried again",
                Counter::default(),
            ),
            transactions: shown(
                all,
                "recovered_logs",
                "Logs of clients that were gone, by what became of them",
                Family::default(),
            ),
            completions: shown(
                all,
                "completions",
                "Clients that were gone and had left sections, by what came of their code",
                Family::default(),
            ),
            clients: shown(
                all,
                "clients",
                "Programs that use the store",
                Gauge::default(),
            ),
            recovering: shown(
                all,
                "clients_recovering",
                "Clients that are gone and being recovered",
                Gauge::default(),
            ),
            connections: shown(
                all,
                "connections",
                "Connections, those included that have not greeted",
                Gauge::default(),
            ),
            pools: shown(all, "pools", "Pools in the store", Gauge::default()),
            store_bytes: shown(all, "store_bytes", "Bytes of all puddles", Gauge::default()),
            registry,
        }
    }

    /// A request was answered.
    pub(crate) fn answered(&self, request: &'static str, took: Duration, has_failed: bool) {
        let of = OfRequest { request };
        self.requests.get_or_create(&of).observe(took.as_secs_f64());
        if has_failed {
            self.failures.get_or_create(&of).inc();
        }
    }

    /// A request came, and its answer went: their bytes.
    pub(crate) fn transferred(&self, received: usize, sent: usize) {
        self.received.inc_by(received as u64);
        self.sent.inc_by(sent as u64);
    }

    /// A program was not let in.
    pub(crate) fn refused(&self, reason: &'static str) {
        self.refusals.get_or_create(&Because { reason }).inc();
    }

    /// A client was recovered, or not; how long that took.
    pub(crate) fn recovered(&self, report: Option<&RecoveryReport>, took: Duration) {
        let Some(report) = report else {
            self.recoveries_failed.inc();
            return;
        };
        self.recoveries.observe(took.as_secs_f64());
        self.log_work.observe(report.log_time.as_secs_f64());
        for (outcome, count) in [
            ("rolled_back", report.rolled_back),
            ("rolled_forward", report.rolled_forward),
            ("quarantined", report.quarantined.len() as u64),
        ] {
            self.transactions
                .get_or_create(&With { outcome })
                .inc_by(count);
        }
    }

    /// Code was to complete what a client has left.
    pub(crate) fn completed(&self, outcome: &'static str) {
        self.completions.get_or_create(&With { outcome }).inc();
    }

    /// All of it as text.
    pub(crate) fn text(&self, now: Now) -> String {
        let whole = |number: usize| i64::try_from(number).unwrap_or(i64::MAX);
        self.clients.set(whole(now.clients));
        self.recovering.set(whole(now.recovering));
        self.connections.set(whole(now.connections));
        self.pools.set(whole(now.pools));
        self.store_bytes
            .set(i64::try_from(now.store_bytes).unwrap_or(i64::MAX));
        let mut shown = String::new();
        // Nothing fails that is written to memory.
        let _ = text::encode(&mut shown, &self.registry);
        shown
    }
}

/// The name of a request in metrics.
pub(crate) fn kind(request: &Request) -> &'static str {
    request.into()
}
