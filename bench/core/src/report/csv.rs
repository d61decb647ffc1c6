//! The CSV: one line for each row and side, a side of ours with the peer's time beside it, once for each peer.

use std::fmt::Write;

use crate::measure::{Sample, Spread};
use crate::measured::{Column, Measured};
use crate::side::Role;

/// The first line. Later runs are compared with earlier ones by these names: never rename or reorder, add at the end.
pub const HEADER: &str = "suite,row,engine,domain,ns,peer,peer_ns,speedup,floor_ratio,fences,writebacks,bytes,\
                          fences_bg,writebacks_bg,syncs,scaling,p50_ns,p99_ns,p999_ns,p9999_ns,max_ns";

/// The whole file. A field that nothing was measured for is empty.
pub fn format(all: &[Measured]) -> String {
    let mut text = format!("{HEADER}\n");
    for measured in all {
        for column in &measured.columns {
            let peers: Vec<Option<&Column>> = match column.role {
                Role::Peer => Vec::new(),
                _ => measured.roles(Role::Peer).map(Some).collect(),
            };
            if peers.is_empty() {
                line(&mut text, measured, column, None);
            }
            for peer in peers {
                line(&mut text, measured, column, peer);
            }
        }
    }
    text
}

fn line(text: &mut String, measured: &Measured, column: &Column, peer: Option<&Column>) {
    let limit = measured.role(Role::Limit);
    let speedup = peer.and_then(|peer| peer.ratio_to(column));
    let floor_ratio = limit.and_then(|limit| column.ratio_to(limit));
    let median = |spread: Option<Spread>| spread.map(|spread| spread.median);
    // Peers have no counters of fences and lines: nothing was measured, which is not 0.
    let ours = |of: fn(&Sample) -> f64| (column.role != Role::Peer).then(|| column.median(of));
    let names = [
        measured.suite,
        measured.row.name,
        &column.side,
        &column.domain,
    ];
    let [p50, p99, p999, p9999, max] = column.percentiles([0.5, 0.99, 0.999, 0.9999, 1.0]);
    let numbers = [
        median(speedup),
        median(floor_ratio),
        ours(|sample| sample.fences),
        ours(|sample| sample.write_backs),
        ours(|sample| sample.bytes),
        ours(|sample| sample.fences_background),
        ours(|sample| sample.write_backs_background),
        Some(column.median(|sample| sample.syncs)),
        column.scaling(),
        p50,
        p99,
        p999,
        p9999,
        max,
    ];
    // Writing to a string cannot fail.
    let _ = writeln!(
        text,
        "{},{},{},{},{}",
        names.join(","),
        number(Some(column.ns().median)),
        peer.map_or("", |peer| &peer.side),
        number(peer.map(|peer| peer.ns().median)),
        numbers.map(number).join(","),
    );
}

/// Three decimals, without trailing zeros.
fn number(value: Option<f64>) -> String {
    match value {
        Some(value) if value.is_finite() => {
            let text = format!("{value:.3}");
            text.trim_end_matches('0').trim_end_matches('.').to_owned()
        }
        _ => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workload::Row;

    fn column(side: &str, role: Role, ns: &[f64]) -> Column {
        let sample = |ns: &f64| Sample {
            ns: *ns,
            fences: 1.0,
            ..Sample::default()
        };
        Column {
            side: side.to_owned(),
            role,
            domain: "dram".to_owned(),
            samples: ns.iter().map(sample).collect(),
        }
    }

    #[test]
    fn ratios_are_medians_of_pairs() {
        let measured = Measured {
            suite: "core",
            row: Row {
                name: "add_8",
                one_op: "",
            },
            columns: vec![
                column("pmdk", Role::Peer, &[100.0, 900.0, 300.0]),
                column("hybrid", Role::Engine, &[50.0, 300.0, 200.0]),
                column("flush1", Role::Limit, &[25.0, 300.0, 50.0]),
            ],
        };
        // Pairs 2, 3, 1.5 and 2, 1, 4; the ratios of the medians would be 1.5 and 4.
        let expected = format!(
            "{HEADER}\n\
             core,add_8,pmdk,dram,300,,,,4,,,,,,0,,,,,,\n\
             core,add_8,hybrid,dram,200,pmdk,300,2,2,1,0,0,0,0,0,,,,,,\n\
             core,add_8,flush1,dram,50,pmdk,300,4,1,1,0,0,0,0,0,,,,,,\n"
        );
        assert_eq!(format(&[measured]), expected);
    }

    #[test]
    fn without_a_peer_its_fields_are_empty() {
        let columns = vec![column("hybrid", Role::Engine, &[50.0])];
        let measured = Measured {
            suite: "core",
            row: Row {
                name: "floor",
                one_op: "",
            },
            columns,
        };
        assert!(format(&[measured]).ends_with("core,floor,hybrid,dram,50,,,,,1,0,0,0,0,0,,,,,,\n"));
    }

    #[test]
    fn a_side_has_a_line_for_each_peer_and_percentiles_over_all_rounds() {
        let mut ours = column("shadow", Role::Engine, &[100.0, 100.0]);
        ours.samples[0].latencies = (1..=99).collect();
        ours.samples[1].latencies = vec![5_000];
        ours.samples[1].scaling = Some(4.0);
        let measured = Measured {
            suite: "disk",
            row: Row {
                name: "put",
                one_op: "",
            },
            columns: vec![
                column("leveldb", Role::Peer, &[200.0, 200.0]),
                column("redb", Role::Peer, &[300.0, 300.0]),
                ours,
            ],
        };
        let text = format(&[measured]);
        for peer in ["leveldb,200,2", "redb,300,3"] {
            let line =
                format!("disk,put,shadow,dram,100,{peer},,1,0,0,0,0,0,4,50,99,5000,5000,5000\n");
            assert!(text.contains(&line), "{line}{text}");
        }
    }
}
