//! What an executable was compiled for: the names in a section of it, of which nothing is believed.

use durum_format::code::features;
use proptest::prelude::*;

const FILE_SIZE: usize = 64;

/// A file of ELF with sections of these names and bytes, the first of which has the names.
fn executable(sections: &[(&str, &[u8])]) -> Vec<u8> {
    let mut names = vec![0];
    let mut table = Vec::new();
    let mut bytes: Vec<u8> = Vec::new();
    let mut enter = |name: u32, size: usize, at: usize| {
        table.extend(name.to_le_bytes());
        table.extend([0; 20]);
        table.extend((at as u64).to_le_bytes());
        table.extend((size as u64).to_le_bytes());
        table.extend([0; 24]);
    };
    let mut starts = Vec::new();
    for (name, _) in sections {
        starts.push(names.len() as u32);
        names.extend(name.bytes());
        names.push(0);
    }
    enter(0, names.len(), FILE_SIZE);
    bytes.extend(&names);
    for ((_, content), name) in sections.iter().zip(starts) {
        enter(name, content.len(), FILE_SIZE + bytes.len());
        bytes.extend(*content);
    }
    let mut file = b"\x7fELF\x02\x01".to_vec();
    file.resize(40, 0);
    file.extend(((FILE_SIZE + bytes.len()) as u64).to_le_bytes());
    file.resize(58, 0);
    file.extend(64u16.to_le_bytes());
    file.extend((sections.len() as u16 + 1).to_le_bytes());
    file.extend(0u16.to_le_bytes());
    assert_eq!(file.len(), FILE_SIZE);
    file.extend(bytes);
    file.extend(table);
    file
}

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
