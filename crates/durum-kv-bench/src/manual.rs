//! The page of the manual, made from what the program knows.

use std::fmt::Write;

use crate::flags::{BENCHMARKS, FLAGS, IGNORED};

/// `durum-kv-bench.1`.
pub fn page() -> String {
    let mut page = format!(
        ".TH durum-kv-bench 1 \"\" \"durum {}\" durum\n",
        env!("CARGO_PKG_VERSION")
    );
    page += &[
        ".SH NAME",
        "durum\\-kv\\-bench \\- time the key\\-value store as LevelDB's db_bench does",
        ".SH SYNOPSIS",
        "\\fBdurum\\-kv\\-bench\\fR [\\fB\\-\\-\\fIFLAG\\fB=\\fIVALUE\\fR ...]",
        ".SH DESCRIPTION",
        "Runs benchmarks on a database and prints the time of one operation. Names, flags, work and output are those of LevelDB's db_bench;",
        "the database at \\-\\-db is removed first, unless \\-\\-use_existing_db is given. Results go to the standard output, lines about store and machine to the standard error.",
        ".SH FLAGS",
        "",
    ]
    .join("\n");
    for (name, value, meaning) in FLAGS {
        let sign = if value.is_empty() { "" } else { "=" };
        let name = escape(name);
        let _ = write!(
            page,
            ".TP\n\\fB\\-\\-{name}{sign}\\fI{value}\\fR\n{}\n",
            escape(meaning)
        );
    }
    page += ".PP\nWithout effect:";
    for (at, name) in IGNORED.iter().enumerate() {
        let _ = write!(
            page,
            "{}\n\\fB\\-\\-{name}\\fR",
            if at == 0 { "" } else { "," }
        );
    }
    page += "\n.SH BENCHMARKS\n";
    for (name, meaning) in BENCHMARKS {
        let _ = write!(page, ".TP\n\\fB{name}\\fR\n{}\n", escape(meaning));
    }
    page += ".SH EXAMPLE\n.nf\ndurum\\-kv\\-bench \\-\\-benchmarks=fillseq,readrandom \\-\\-num=1000000 \\-\\-db=/mnt/pmem/bench\n.fi\n";
    page
}

fn escape(text: &str) -> String {
    text.replace('-', "\\-")
}
