//! The measured rows as a table, as bars and as CSV.

use durum_bench_core::measured::{self, Column};
use durum_bench_core::report::table::Table;
use durum_bench_core::side::Role;
use durum_bench_core::workload;

use crate::{Measured, SIDES};

/// Two figures for each side: the operation alone, and with its share of the commit.
pub fn table(all: &[Measured]) -> Table {
    let mut heads = vec![
        ("ns per operation", ""),
        ("Optane", "ns, paper"),
        ("DRAM", "ns, paper"),
    ];
    for (name, ..) in SIDES {
        heads.extend([(name, "ns, alone"), ("", "ns, with commit")]);
    }
    heads.push(("DRAM/us", "paper / ours"));
    let mut table = Table::new(heads);
    table.words = 1;
    for measured in all {
        let row = measured.row;
        let mut line = vec![
            row.name.to_owned(),
            format!("{:.1}", row.optane),
            format!("{:.1}", row.dram),
        ];
        for side in 0..SIDES.len() {
            line.extend(measured.medians(side).map(|ns| format!("{ns:.1}")));
        }
        line.push(format!("{:.1}", row.dram / measured.medians(0)[0]));
        table.lines.push(line);
    }
    table
}

/// The operations alone, beside what the paper says; the limit of those that read and write is a `Box`, which takes so
/// many nanoseconds for either.
pub fn bars(all: &[Measured], plain: [f64; 2]) -> Vec<measured::Measured> {
    let of_row = |measured: &Measured| {
        let row = measured.row;
        let paper = [("paper, Optane", row.optane), ("paper, DRAM", row.dram)];
        let paper = paper
            .map(|(side, ns)| Column::of_times(side, Role::Rival, "", [ns]))
            .into_iter();
        let own = SIDES.iter().zip(&measured.samples);
        let own = own.map(|((side, ..), samples)| {
            let alone = samples.iter().map(|(alone, _)| *alone);
            Column::of_times(*side, Role::Engine, "dram", alone)
        });
        let limit = match row.name {
            name if name.starts_with("DerefMut") => Some(plain[1]),
            name if name.starts_with("Deref") => Some(plain[0]),
            _ => None,
        };
        let limit = limit.map(|ns| Column::of_times("Box", Role::Limit, "", [ns]));
        measured::Measured {
            suite: "operations",
            row: workload::Row {
                name: row.name,
                one_op: "the operation, without its share of the commit",
            },
            columns: paper.chain(own).chain(limit).collect(),
        }
    };
    all.iter().map(of_row).collect()
}

/// One line for each operation and side. The medium is `dram`, or the one that is emulated.
pub fn csv(all: &[Measured]) -> String {
    let mut text =
        "suite,operation,engine,medium,ns,committed_ns,paper_optane_ns,paper_dram_ns\n".to_owned();
    for Measured { row, .. } in all {
        assert!(!row.name.contains(','), "a name is one field");
    }
    for measured in all {
        let row = measured.row;
        for (side, (name, ..)) in SIDES.iter().enumerate() {
            let (engine, medium) = name.split_once(' ').unwrap_or((name, "dram"));
            let [alone, committed] = measured.medians(side);
            text += &format!(
                "operations,{},{engine},{medium},{alone:.2},{committed:.2},{},{}\n",
                row.name, row.optane, row.dram
            );
        }
    }
    text
}
