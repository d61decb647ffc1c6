//! The operations of the typed interface run on every engine, also with a medium that is emulated, and their numbers
//! come with what they were measured on.

use std::process::Command;

/// The paper's Table 5, by names of our own where an allocation without a value is no operation of ours.
const OPERATIONS: usize = 29;
const SIDES: [(&str, &str); 6] = [
    ("shadow", "dram"),
    ("hybrid", "dram"),
    ("shadow", "STT"),
    ("hybrid", "STT"),
    ("shadow", "PCM"),
    ("hybrid", "PCM"),
];

#[test]
fn each_operation_has_a_line_for_each_side() {
    let out = tempfile::tempdir().unwrap();
    let output = Command::new(env!("CARGO_BIN_EXE_durum-bench-typed"))
        .args(["--tiny", "--out"])
        .arg(out.path())
        .output()
        .unwrap();
    let told = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{told}");
    let table = String::from_utf8(output.stdout).unwrap();
    let csv = std::fs::read_to_string(out.path().join("operations.csv")).unwrap();
    let mut lines = csv.lines();
    assert_eq!(
        lines.next(),
        Some("suite,operation,engine,medium,ns,committed_ns,paper_optane_ns,paper_dram_ns")
    );
    let lines: Vec<Vec<&str>> = lines.map(|line| line.split(',').collect()).collect();
    assert_eq!(lines.len(), OPERATIONS * SIDES.len());
    for of_operation in lines.chunks(SIDES.len()) {
        let name = of_operation[0][1];
        assert!(table.contains(name), "{name} is in the table");
        for (line, (engine, medium)) in of_operation.iter().zip(SIDES) {
            assert_eq!(line[..4], ["operations", name, engine, medium]);
            let numbers = line[4..].iter().map(|number| number.parse::<f64>());
            let numbers: Vec<f64> = numbers.collect::<Result<_, _>>().unwrap();
            // A read may cost nothing that a clock sees.
            assert!(
                numbers.len() == 4 && numbers[0] >= 0.0 && numbers[1..].iter().all(|ns| *ns > 0.0),
                "{line:?}"
            );
        }
    }
    for name in [
        "Alloc + init (256 B)",
        "Dealloc (256 B)",
        "Pbox::AtomicInit (8 B)",
    ] {
        assert!(lines.iter().any(|line| line[1] == name), "{name}");
    }
    let page = std::fs::read_to_string(out.path().join("operations.html")).unwrap();
    let drawn = std::fs::read_to_string(out.path().join("operations.svg")).unwrap();
    assert!(page.contains(&drawn) && drawn.contains("load average "));
    // Reads and writes have the limit beside them, the first writes too.
    assert_eq!(drawn.matches("\nBox\n").count(), 3, "{drawn}");
    let description = std::fs::read_to_string(out.path().join("operations.txt")).unwrap();
    for fact in ["commit", "cpu", "kernel", "tiny", "write-back"] {
        assert!(description.contains(fact), "{fact}: {description}");
    }
}
