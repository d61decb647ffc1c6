//! The page of the manual, made from the definition of the flags.

use clap_mangen::Man;

use crate::flags;

/// `durum-kv-bench.1`.
pub fn page() -> String {
    let mut page = Vec::new();
    let man = Man::new(flags::definition())
        .source(concat!("durum ", env!("CARGO_PKG_VERSION")))
        .manual("durum")
        .date("");
    man.render(&mut page)
        .expect("nothing fails that is written to memory");
    String::from_utf8_lossy(&page).replace(".SH EXTRA\n", ".SH NOTES\n")
}
