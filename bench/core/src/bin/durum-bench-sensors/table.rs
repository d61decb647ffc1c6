//! What comes out: a line for each number of variables and side, and what it is beside libpmemobj.

use std::time::Duration;

use durum_bench_core::measured::{Column, Measured};
use durum_bench_core::report::bars::GOAL;
use durum_bench_core::report::table;
use durum_bench_core::side::Role;
use durum_bench_core::workload::Row;

use crate::expected::Expected;
use crate::side::Times;

/// How many times faster than libpmemobj this project wants to be, by the number of variables, and what the paper says
/// that it was.
const GOALS: [(u64, f64); 2] = [(100, 8.0), (1600, 5.0)];
/// As many nodes as the paper has: with fewer these say nothing.
const NODES_MIN: u64 = 200;
/// The side that others are compared with.
const PEER: &str = "pmdk";

/// A figure.
#[derive(Clone, Debug)]
pub(crate) struct Line {
    nodes: u64,
    variables: u64,
    side: &'static str,
    /// The round of which the total is the median.
    times: Times,
    /// The totals of all rounds, the shortest first.
    totals: Vec<Duration>,
    /// libpmemobj's total as a multiple of ours, the median over the rounds.
    speedup: Option<f64>,
}

/// Sums up the rounds of all sides.
pub(crate) fn lines<'s>(
    expected: &Expected,
    sides: impl Iterator<Item = (&'static str, Vec<Times>)> + 's,
) -> Vec<Line> {
    let sides: Vec<_> = sides.collect();
    let peer = sides
        .iter()
        .find(|(name, _)| *name == PEER)
        .map(|(_, times)| times.clone());
    let of_side = |(side, mut rounds): (&'static str, Vec<Times>)| {
        let ratio =
            |(peer, own): (&Times, &Times)| peer.total().as_secs_f64() / own.total().as_secs_f64();
        let peer = peer.as_ref().filter(|_| side != PEER);
        let mut ratios: Vec<f64> = peer
            .into_iter()
            .flat_map(|peer| peer.iter().zip(&rounds))
            .map(ratio)
            .collect();
        ratios.sort_by(f64::total_cmp);
        rounds.sort_by_key(Times::total);
        Line {
            nodes: expected.nodes,
            variables: expected.variables,
            side,
            times: rounds[rounds.len() / 2],
            totals: rounds.iter().map(Times::total).collect(),
            speedup: ratios.get(ratios.len() / 2).copied(),
        }
    };
    sides.into_iter().map(of_side).collect()
}

fn millis(time: Duration) -> f64 {
    time.as_secs_f64() * 1e3
}

/// All figures of a run.
#[derive(Debug, Default)]
pub(crate) struct Table(Vec<Line>);

impl Table {
    pub(crate) fn extend(&mut self, lines: Vec<Line>) {
        self.0.extend(lines);
    }

    pub(crate) fn csv(&self) -> String {
        let mut text =
            "nodes,variables,side,ms,best_ms,import_ms,rewriting_ms,rest_ms,speedup\n".to_owned();
        for line in &self.0 {
            let Times {
                import,
                rewriting,
                rest,
            } = line.times;
            let times = [line.times.total(), line.totals[0], import, rewriting, rest];
            let times = times.map(|time| format!("{:.3}", millis(time))).join(",");
            let speedup = line
                .speedup
                .map_or(String::new(), |speedup| format!("{speedup:.3}"));
            text += &format!(
                "{},{},{},{times},{speedup}\n",
                line.nodes, line.variables, line.side
            );
        }
        text
    }

    /// The totals, with a row for each number of variables.
    pub(crate) fn bars(&self) -> Vec<Measured> {
        let rows = self
            .0
            .chunk_by(|one, other| (one.nodes, one.variables) == (other.nodes, other.variables));
        let of_row = |lines: &[Line]| {
            let name = format!("{} variables", lines[0].variables);
            let columns = lines.iter().map(|line| {
                let role = if line.side == PEER {
                    Role::Peer
                } else {
                    Role::Engine
                };
                let totals = line.totals.iter().map(|total| total.as_secs_f64() * 1e9);
                Column::of_times(line.side, role, "dram", totals)
            });
            let limit = lines
                .iter()
                .find(|line| line.side == PEER)
                .and_then(|peer| {
                    let most = millis(peer.times.total()) * 1e6 / peer.goal()?;
                    Some(Column::of_times(GOAL, Role::Limit, "dram", [most]))
                });
            Measured {
                suite: "sensors",
                row: Row {
                    // Of a program that ends soon.
                    name: name.leak(),
                    one_op: format!("the results of {} nodes", lines[0].nodes).leak(),
                },
                columns: columns.chain(limit).collect(),
            }
        };
        rows.map(of_row).collect()
    }

    /// For people.
    pub(crate) fn report(&self) -> table::Table {
        let mut table = table::Table::new(HEADS);
        table.words = 3;
        table.lines = self.0.iter().map(Line::cells).collect();
        table
    }
}

const HEADS: [(&str, &str); 10] = [
    ("nodes", ""),
    ("variables", "of a node"),
    ("side", ""),
    ("ms", "median"),
    ("best", "ms"),
    ("import", "ms"),
    ("rewriting", "ms"),
    ("rest", "ms"),
    ("speedup", "pmdk / ours"),
    ("goal", ""),
];

impl Line {
    /// How many times faster than libpmemobj a side is to be here.
    fn goal(&self) -> Option<f64> {
        let mut goals = GOALS.iter();
        let goal = goals.find(|(variables, _)| *variables == self.variables);
        goal.filter(|_| self.nodes >= NODES_MIN)
            .map(|(_, goal)| *goal)
    }

    fn cells(&self) -> Vec<String> {
        let Times {
            import,
            rewriting,
            rest,
        } = self.times;
        let times = [self.times.total(), self.totals[0], import, rewriting, rest];
        let met = |(speedup, goal): (f64, f64)| {
            let met = if speedup >= goal { "met" } else { "MISSED" };
            format!("{goal}: {met}")
        };
        let words = [
            self.nodes.to_string(),
            self.variables.to_string(),
            self.side.to_owned(),
        ];
        let times = times.map(|time| format!("{:.1}", millis(time)));
        let beside = [
            (self.speedup).map_or(String::new(), |speedup| format!("{speedup:.2}")),
            self.speedup.zip(self.goal()).map_or(String::new(), met),
        ];
        words.into_iter().chain(times).chain(beside).collect()
    }
}
