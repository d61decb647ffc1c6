//! The code in `docs/tutorials/c.md`, `docs/tutorials/cpp.md` and `docs/how-to/change-types.md` is code of the
//! examples, which are compiled, run and killed.

use std::fs;
use std::path::Path;

/// The blocks of a language in a page are code of the examples in folders.
fn shows_code(
    page: &str,
    language: &str,
    folders: &[&str],
    examples_min: usize,
    blocks_min: usize,
) {
    let top = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let tutorial = fs::read_to_string(top.join(page)).unwrap();
    let examples: Vec<String> = folders
        .iter()
        .flat_map(|folder| fs::read_dir(top.join(folder)).unwrap())
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|end| end == language))
        .map(|path| fs::read_to_string(path).unwrap())
        .collect();
    assert!(examples.len() >= examples_min);
    let blocks: Vec<&str> = tutorial
        .split(&format!("```{language}\n"))
        .skip(1)
        .map(|rest| rest.split("```").next().unwrap())
        .collect();
    assert!(blocks.len() >= blocks_min, "{page} has lost its code");
    for block in blocks {
        assert!(
            examples.iter().any(|example| example.contains(block)),
            "no example has this code any more:\n{block}"
        );
    }
}

#[test]
fn the_tutorial_shows_code_of_the_examples() {
    shows_code("docs/tutorials/c.md", "c", &["examples/c"], 3, 7);
}

#[test]
fn the_page_on_types_that_change_shows_code_of_the_examples() {
    let page = "docs/how-to/change-types.md";
    shows_code(page, "c", &["examples/c", "examples/nvl"], 3, 8);
    shows_code(page, "cpp", &["examples/cpp"], 3, 3);
}

#[test]
fn the_tutorial_in_cpp_shows_code_of_the_examples() {
    shows_code("docs/tutorials/cpp.md", "cpp", &["examples/cpp"], 3, 8);
}
