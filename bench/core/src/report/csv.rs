//! The CSV: one line for each row and side of ours, with the peer's time beside it.

use std::fmt::Write;

use crate::run::Measured;
use crate::side::Role;

/// The first line. Later runs are compared with earlier ones by these names: never rename or reorder.
pub const HEADER: &str = "suite,row,engine,domain,ns,peer,peer_ns,speedup,floor_ratio,fences,writebacks,bytes,\
                          fences_bg,writebacks_bg";

/// The whole file. A field that nothing was measured for is empty.
pub fn format(all: &[Measured]) -> String {
    let mut text = format!("{HEADER}\n");
    for measured in all {
        let (peer, limit) = (measured.role(Role::Peer), measured.role(Role::Limit));
        for column in measured
            .columns
            .iter()
            .filter(|column| column.role != Role::Peer)
        {
            let speedup = peer.and_then(|peer| peer.ratio_to(column));
            let floor_ratio = limit.and_then(|limit| column.ratio_to(limit));
            // Writing to a string cannot fail.
            let _ = writeln!(
                text,
                "{},{},{},{},{},{},{},{},{},{},{},{},{},{}",
                measured.suite,
                measured.row.name,
                column.side,
                column.domain,
                number(Some(column.ns().median)),
                peer.map_or("", |peer| &peer.side),
                number(peer.map(|peer| peer.ns().median)),
                number(speedup.map(|spread| spread.median)),
                number(floor_ratio.map(|spread| spread.median)),
                number(Some(column.median(|sample| sample.fences))),
                number(Some(column.median(|sample| sample.write_backs))),
                number(Some(column.median(|sample| sample.bytes))),
                number(Some(column.median(|sample| sample.fences_background))),
                number(Some(column.median(|sample| sample.write_backs_background))),
            );
        }
    }
    text
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
    use crate::measure::Sample;
    use crate::run::Column;
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
             core,add_8,hybrid,dram,200,pmdk,300,2,2,1,0,0,0,0\n\
             core,add_8,flush1,dram,50,pmdk,300,4,1,1,0,0,0,0\n"
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
        assert!(format(&[measured]).ends_with("core,floor,hybrid,dram,50,,,,,1,0,0,0,0\n"));
    }
}
