//! The code that tests run: inputs/code.c, which tries what it is told by its socket.

use std::path::Path;
use std::process::Command;
use std::sync::OnceLock;

use durum_runner::{Code, Hash};

/// The executable.
fn bytes() -> &'static [u8] {
    static BYTES: OnceLock<Vec<u8>> = OnceLock::new();
    BYTES.get_or_init(|| {
        let place = Path::new(env!("CARGO_TARGET_TMPDIR")).join(env!("CARGO_CRATE_NAME"));
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/inputs/code.c");
        let compiled = Command::new("cc")
            .args(["-O1", "-static", "-Wall", "-Wextra", "-Werror", "-pthread"])
            .arg(source)
            .arg("-o")
            .arg(&place)
            .status();
        assert!(compiled.unwrap().success());
        std::fs::read(place).unwrap()
    })
}

/// A copy of it that can be run.
pub fn code() -> Code {
    Code::copied(bytes(), Hash::of(bytes())).unwrap()
}
