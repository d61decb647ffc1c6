//! What nodes have found comes together in the benchmark as it does in the example, on both engines, and on the peer if
//! it is built; each answer is compared with that of a plain program before anything is told.

use std::process::Command;

#[test]
fn each_side_has_a_line_for_each_number_of_variables() {
    let out = tempfile::tempdir().unwrap();
    let output = Command::new(env!("CARGO_BIN_EXE_durum-bench-sensors"))
        .args(["--quick", "--out"])
        .arg(out.path())
        .output()
        .unwrap();
    let told = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{told}");
    let table = String::from_utf8(output.stdout).unwrap();
    let csv = std::fs::read_to_string(out.path().join("sensors.csv")).unwrap();
    let peer = cfg!(feature = "peers").then_some("pmdk");
    for side in peer
        .into_iter()
        .chain(["hybrid", "shadow", "shadow_copies"])
    {
        for variables in [20, 100] {
            let row = format!("5,{variables},{side},");
            assert!(
                csv.lines().any(|line| line.starts_with(&row)),
                "{row}: {csv}"
            );
        }
        assert!(table.contains(side), "{side}: {table}");
    }
    let page = std::fs::read_to_string(out.path().join("sensors.html")).unwrap();
    let drawn = std::fs::read_to_string(out.path().join("sensors.svg")).unwrap();
    assert!(page.contains(&drawn) && drawn.contains("load average "));
    let (_, plot) = page.split_once("<svg").unwrap();
    for bar in ["20 variables", "100 variables", "shadow_copies"] {
        assert!(plot.contains(&format!("\n{bar}\n")), "{bar}: {plot}");
    }
}
