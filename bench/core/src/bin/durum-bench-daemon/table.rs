//! The table: a line for each figure, beside the paper's and the one that this project has set itself.

use std::time::Duration;

use durum_bench_core::measured::{Column, Measured};
use durum_bench_core::report::bars::GOAL;
use durum_bench_core::report::table;
use durum_bench_core::side::Role;
use durum_bench_core::workload::Row;

use crate::median;

/// A figure.
#[derive(Clone, Debug)]
pub(crate) struct Line {
    /// What was measured, and where: in memory or on a disk.
    pub(crate) row: String,
    pub(crate) place: &'static str,
    /// The figure in this unit.
    pub(crate) value: f64,
    pub(crate) unit: &'static str,
    /// The same of a bare program in the same run, or of what the row is compared with.
    pub(crate) beside: Option<f64>,
    /// What is at most to be reached.
    pub(crate) limit: Option<Limit>,
    /// The paper's figure, in the same unit.
    pub(crate) paper: Option<f64>,
    /// How long each one took of those that the figure is of, where they were timed one by one; and of those beside it.
    pub(crate) each: Vec<Duration>,
    pub(crate) each_beside: Vec<Duration>,
}

/// A bound.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Limit {
    /// Of the figure.
    Value(f64),
    /// Of its ratio to the one beside it.
    Ratio(f64),
}

impl Line {
    pub(crate) fn new(row: impl Into<String>, value: f64, unit: &'static str) -> Line {
        Line {
            row: row.into(),
            place: "memory",
            value,
            unit,
            beside: None,
            limit: None,
            paper: None,
            each: Vec::new(),
            each_beside: Vec::new(),
        }
    }

    pub(crate) fn micros(row: impl Into<String>, took: Duration) -> Line {
        Line::new(row, took.as_secs_f64() * 1e6, "us")
    }

    /// The median of these, which took so long.
    pub(crate) fn median_micros(row: impl Into<String>, each: Vec<Duration>) -> Line {
        let line = Line::micros(row, median(each.clone()));
        Line { each, ..line }
    }

    pub(crate) fn at(self, place: &'static str) -> Line {
        Line { place, ..self }
    }

    pub(crate) fn beside(self, value: f64) -> Line {
        let beside = Some(value);
        Line { beside, ..self }
    }

    pub(crate) fn limit(self, limit: Limit) -> Line {
        let limit = Some(limit);
        Line { limit, ..self }
    }

    pub(crate) fn paper(self, value: f64) -> Line {
        let paper = Some(value);
        Line { paper, ..self }
    }

    fn ratio(&self) -> Option<f64> {
        self.beside.map(|beside| self.value / beside)
    }

    /// Whether the bound is met, where there is one.
    fn is_met(&self) -> Option<bool> {
        match self.limit? {
            Limit::Value(most) => Some(self.value <= most),
            Limit::Ratio(most) => Some(self.ratio()? <= most),
        }
    }

    /// How many nanoseconds its unit has, if that is one of time.
    fn unit_ns(&self) -> Option<f64> {
        match self.unit {
            "ns" => Some(1.0),
            "us" => Some(1e3),
            "ms" => Some(1e6),
            "s" => Some(1e9),
            _ => None,
        }
    }

    /// Its times as bars; `None` where it is no time.
    fn bars(&self) -> Option<Measured> {
        let unit = self.unit_ns()?;
        let limit = match self.limit {
            Some(Limit::Value(most)) => Some(most),
            Some(Limit::Ratio(most)) => self.beside.map(|beside| beside * most),
            None => None,
        };
        let sides = [
            ("measured", Role::Engine, Some(self.value), &self.each),
            ("beside", Role::Peer, self.beside, &self.each_beside),
            ("paper", Role::Rival, self.paper, &Vec::new()),
            (GOAL, Role::Limit, limit, &Vec::new()),
        ];
        let column = |(side, role, value, each): (&str, Role, Option<f64>, &Vec<Duration>)| {
            let column = Column::of_times(side, role, self.place, [value? * unit]);
            let each = each.iter().map(|took| took.as_nanos() as u64);
            Some(column.with_latencies(each.collect()))
        };
        Some(Measured {
            suite: "daemon",
            row: Row {
                // Of a program that ends soon.
                name: self.row.clone().leak(),
                one_op: match self.place {
                    "disk" => "on a disk",
                    _ => "in memory",
                },
            },
            columns: sides.into_iter().filter_map(column).collect(),
        })
    }

    fn cells(&self) -> Vec<String> {
        let cell = |value: Option<f64>| value.map_or(String::new(), number);
        vec![
            self.row.clone(),
            self.place.to_owned(),
            format!("{} {}", number(self.value), self.unit),
            cell(self.beside),
            cell(self.ratio()),
            match self.limit {
                Some(Limit::Value(most)) => number(most),
                Some(Limit::Ratio(most)) => format!("{} times", number(most)),
                None => String::new(),
            },
            cell(self.paper),
            match self.is_met() {
                Some(true) => "met".to_owned(),
                Some(false) => "MISSED".to_owned(),
                None => String::new(),
            },
        ]
    }
}

fn number(value: f64) -> String {
    match value.abs() {
        v if v >= 100.0 || v == 0.0 => format!("{value:.0}"),
        v if v >= 10.0 => format!("{value:.1}"),
        _ => format!("{value:.2}"),
    }
}

/// All figures of a run.
#[derive(Debug, Default)]
pub(crate) struct Table(Vec<Line>);

const HEADS: [(&str, &str); 8] = [
    ("row", ""),
    ("place", ""),
    ("measured", ""),
    ("beside", "in the same unit"),
    ("ratio", "measured / beside"),
    ("limit", "at most"),
    ("paper", "in the same unit"),
    ("", ""),
];

impl Table {
    pub(crate) fn push(&mut self, line: Line) {
        self.0.push(line);
    }

    /// A line for each figure; limits that are ratios end with `x`.
    pub(crate) fn csv(&self) -> String {
        let mut text = "row,place,value,unit,beside,limit,paper\n".to_owned();
        let cell = |value: Option<f64>| value.map_or(String::new(), |value| format!("{value:.3}"));
        for line in &self.0 {
            let limit = match line.limit {
                Some(Limit::Value(most)) => format!("{most}"),
                Some(Limit::Ratio(most)) => format!("{most}x"),
                None => String::new(),
            };
            text += &format!(
                "{},{},{:.3},{},{},{limit},{}\n",
                line.row,
                line.place,
                line.value,
                line.unit,
                cell(line.beside),
                cell(line.paper)
            );
        }
        text
    }

    /// The figures that are times.
    pub(crate) fn bars(&self) -> Vec<Measured> {
        self.0.iter().filter_map(Line::bars).collect()
    }

    /// For people.
    pub(crate) fn report(&self) -> table::Table {
        let mut table = table::Table::new(HEADS);
        table.lines = self.0.iter().map(Line::cells).collect();
        table
    }
}
