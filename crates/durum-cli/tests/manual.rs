//! The manual pages in docs/man are those of the command as it is.

use std::collections::BTreeSet;
use std::path::Path;

#[test]
fn the_manual_pages_are_current() {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/man");
    let cure = "make them anew: `cargo run -p durum-cli -- manual docs/man`";
    let mut names = BTreeSet::new();
    for (name, bytes) in durum_cli::manual::pages().unwrap() {
        let found = std::fs::read(directory.join(&name)).unwrap_or_default();
        assert!(found == bytes, "docs/man/{name} is not current; {cure}");
        names.insert(name);
    }
    for entry in std::fs::read_dir(&directory).unwrap() {
        let name = entry.unwrap().file_name().into_string().unwrap();
        // Other programs', whose tests look at them.
        if ["durum-kv-bench.1", "durumcc.1", "durumd.8"].contains(&&*name) {
            continue;
        }
        assert!(
            names.contains(&name),
            "docs/man/{name} belongs to no command; remove it"
        );
    }
}
