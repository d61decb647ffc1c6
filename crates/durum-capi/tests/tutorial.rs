//! The code in `docs/c.md` is code of the examples, which are compiled, run and killed.

use std::fs;
use std::path::Path;

#[test]
fn the_tutorial_shows_code_of_the_examples() {
    let top = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let tutorial = fs::read_to_string(top.join("docs/c.md")).unwrap();
    let examples: Vec<String> = fs::read_dir(top.join("examples/c"))
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|end| end == "c"))
        .map(|path| fs::read_to_string(path).unwrap())
        .collect();
    assert!(examples.len() >= 3);
    let blocks: Vec<&str> = tutorial
        .split("```c\n")
        .skip(1)
        .map(|rest| rest.split("```").next().unwrap())
        .collect();
    assert!(blocks.len() >= 7, "the tutorial has lost its code");
    for block in blocks {
        assert!(
            examples.iter().any(|example| example.contains(block)),
            "no example has this code any more:\n{block}"
        );
    }
}
