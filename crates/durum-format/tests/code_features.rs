//! What an executable was compiled for: the names in a section of it, of which nothing is believed.

mod common;

use common::elf::executable;
use durum_format::code::features;
use proptest::prelude::*;

#[test]
fn names_are_found_each_once_in_order() {
    let code = executable(&[
        (".text", b"sse3\0"),
        ("durum_features_not", b"sse4a\0"),
        ("durum_features", b"bmi2\0avx2\0\0sse4.1\0avx2\0"),
    ]);
    assert_eq!(features(&code).unwrap(), ["avx2", "bmi2", "sse4.1"]);
    let none = executable(&[(".text", b"avx2\0")]);
    assert_eq!(features(&none).unwrap(), [""; 0]);
    assert_eq!(features(b"#!/bin/sh\n").unwrap(), [""; 0]);
    assert_eq!(features(b"").unwrap(), [""; 0]);
}

#[test]
fn what_no_compiler_calls_a_feature_is_refused() {
    let long = [b'a'; 33];
    let many: Vec<u8> = (0..300)
        .flat_map(|at| format!("a{at}\0").into_bytes())
        .collect();
    for names in [&b"avx2\0\x1b[2J\0"[..], b"\xff\0", b"avx 2\0", &long, &many] {
        let error = features(&executable(&[("durum_features", names)])).unwrap_err();
        assert!(
            error.to_string().starts_with("features of code: number "),
            "{error}"
        );
    }
}

proptest! {
    #[test]
    fn any_bytes_give_names_or_an_error(
        mut code in prop::collection::vec(any::<u8>(), 0..300),
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..6),
        is_made: bool,
    ) {
        if is_made {
            code = executable(&[("durum_features", b"avx2\0bmi\0"), (".text", &code)]);
        }
        for (at, byte) in changes {
            if !code.is_empty() {
                let at = at.index(code.len());
                code[at] = byte;
            }
        }
        for name in features(&code).unwrap_or_default() {
            prop_assert!(!name.is_empty() && name.len() <= 32);
            prop_assert!(name.bytes().all(|byte| byte.is_ascii_graphic()));
        }
    }
}
