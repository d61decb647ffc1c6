//! `include/durum.h` is what cbindgen makes of the sources. Where it is not, make it so with
//! `DURUM_WRITE_HEADER=1 cargo test -p durum-capi --test header`.

use std::path::Path;

/// The order in which a C programmer meets the declarations.
const SOURCES: [&str; 14] = [
    "code", "guard", "types", "store", "pool", "ship", "migrate", "object", "level", "tx",
    "shared", "block", "log", "stats",
];

fn generated(top: &Path) -> String {
    let part = |name: &str| std::fs::read_to_string(top.join("header").join(name)).unwrap();
    let mut config = cbindgen::Config::from_file(top.join("cbindgen.toml")).unwrap();
    config.header = Some(part("conventions.h.in"));
    config.trailer = Some(part("macros.h.in"));
    let mut builder = cbindgen::Builder::new().with_config(config);
    for source in SOURCES {
        builder = builder.with_src(top.join("src").join(format!("{source}.rs")));
    }
    let mut text = Vec::new();
    builder.generate().unwrap().write(&mut text);
    let text = String::from_utf8(text).unwrap();
    text.lines()
        .map(|line| format!("{}\n", line.trim_end()))
        .collect()
}

#[test]
fn the_header_says_what_the_sources_say() {
    let top = Path::new(env!("CARGO_MANIFEST_DIR"));
    let path = top.join("include/durum.h");
    let text = generated(top);
    if std::env::var_os("DURUM_WRITE_HEADER").is_some() {
        std::fs::write(&path, &text).unwrap();
    }
    let found = std::fs::read_to_string(&path).unwrap_or_default();
    let differs = text
        .lines()
        .zip(found.lines())
        .position(|(new, old)| new != old);
    assert!(
        text == found,
        "durum.h is not current (line {}); write it with DURUM_WRITE_HEADER=1 cargo test -p durum-capi --test header",
        differs.map_or(text.lines().count().min(found.lines().count()), |at| at) + 1
    );
}
