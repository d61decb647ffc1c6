//! The text to count: which files, and what a word is.

use std::collections::HashSet;
use std::fs;
use std::path::{Path, PathBuf};

use super::map::{WORD_MAX, Word, fnv_1a};
use crate::failure::Failure;

/// All of the text, and where it came from.
#[derive(Default)]
pub(crate) struct Text {
    pub(crate) bytes: Vec<u8>,
    /// Files read, those with equal contents counted once.
    pub(crate) files: usize,
}

/// Reads what the user named. Every file has to be readable.
pub(crate) fn named(paths: &[PathBuf]) -> Result<Text, Failure> {
    let unreadable = |path: &Path, error| {
        Failure::Refused(format!("{}: cannot be read: {error}", path.display()))
    };
    let mut files = Vec::new();
    for path in paths {
        collect(path, &mut files).map_err(|error| unreadable(path, error))?;
    }
    let mut contents = Vec::new();
    for path in files {
        let bytes = fs::read(&path).map_err(|error| unreadable(&path, error))?;
        // Named itself, not found in a directory: then it is not left out in silence.
        if bytes.contains(&0) && paths.contains(&path) {
            return Err(Failure::Refused(format!(
                "{}: is not text: it has bytes that are 0",
                path.display()
            )));
        }
        contents.push(bytes);
    }
    join(contents)
}

/// Reads the text that most machines have: the licenses of Debian, and the README and docs below the current directory.
/// What is missing or unreadable is left out.
pub(crate) fn default() -> Result<Text, Failure> {
    let mut files = Vec::new();
    for path in ["/usr/share/common-licenses", "README.md", "docs"] {
        let _ = collect(Path::new(path), &mut files);
    }
    let contents = files.into_iter().filter_map(|path| fs::read(path).ok());
    join(contents.collect())
}

/// All files below a path, in the order of their names.
fn collect(path: &Path, files: &mut Vec<PathBuf>) -> std::io::Result<()> {
    if !fs::metadata(path)?.is_dir() {
        files.push(path.to_owned());
        return Ok(());
    }
    let below = fs::read_dir(path)?.map(|entry| Ok(entry?.path()));
    let mut below = below.collect::<std::io::Result<Vec<_>>>()?;
    below.sort();
    for path in below {
        // A link to a directory may lead in a circle; what cannot be read is left out.
        if !(path.is_symlink() && path.is_dir()) {
            let _ = collect(&path, files);
        }
    }
    Ok(())
}

fn join(contents: Vec<Vec<u8>>) -> Result<Text, Failure> {
    let mut seen = HashSet::new();
    let mut text = Text::default();
    for bytes in contents {
        // Binary files would be counted all right, but are no text.
        if !bytes.contains(&0) && seen.insert(bytes.clone()) {
            text.bytes.extend_from_slice(&bytes);
            text.bytes.push(b'\n');
            text.files += 1;
        }
    }
    if words(&text.bytes).next().is_none() {
        return Err(Failure::Refused(
            "there are no words to count; name files with text: `durum demo book.txt`".into(),
        ));
    }
    Ok(text)
}

fn is_of_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte >= 0x80
}

/// The words of a text: letters and digits in a row, and whatever is not ASCII. A longer row than the longest word
/// counts as several words.
pub(crate) fn words(text: &[u8]) -> impl Iterator<Item = Word> + '_ {
    text.split(|byte| !is_of_word(*byte))
        .flat_map(|row| row.chunks(WORD_MAX))
        .map(Word::new)
}

/// Cuts a text into pieces of at most `len_max` bytes, so that their words are its words.
pub(crate) fn pieces(text: &[u8], len_max: usize) -> impl Iterator<Item = &[u8]> {
    let mut rest = text;
    std::iter::from_fn(move || {
        if rest.is_empty() {
            return None;
        }
        let mut len = rest.len().min(len_max);
        if len < rest.len() {
            let row = rest[..len]
                .iter()
                .rev()
                .take_while(|byte| is_of_word(**byte))
                .count();
            if row < len {
                len -= row;
            } else {
                // One row longer than a piece: cut between two of the words that it counts as.
                len -= len % WORD_MAX;
            }
        }
        let (piece, others) = rest.split_at(len);
        rest = others;
        Some(piece)
    })
}

/// A checksum of a text, never 0.
pub(crate) fn checksum(text: &[u8]) -> u64 {
    fnv_1a(text).max(1)
}

/// Why a text is not counted in a store.
pub(crate) fn other() -> Failure {
    Failure::Refused(
        "the store counts another text; choose another store, or remove that one with `durum rm`"
            .into(),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spelled(text: &[u8]) -> Vec<String> {
        words(text).map(|word| word.to_string()).collect()
    }

    #[test]
    fn words_are_rows_of_letters_and_digits_in_small_letters() {
        assert_eq!(spelled(b"The 2nd, the-END!"), ["the", "2nd", "the", "end"]);
        assert_eq!(spelled("Für".as_bytes()), ["für"]);
        assert_eq!(
            spelled(&[b'x'; 100])
                .iter()
                .map(String::len)
                .collect::<Vec<_>>(),
            [48, 48, 4]
        );
        assert_eq!(spelled(b"  "), Vec::<String>::new());
    }

    #[test]
    fn pieces_have_the_words_of_the_whole() {
        let mut text = b"some words and a ".to_vec();
        text.extend([b'l'; 500]);
        text.extend(b" row. Then more words, and an end");
        for len_max in [48, 49, 64, 100, 1000] {
            let together: Vec<String> = pieces(&text, len_max).flat_map(spelled).collect();
            assert_eq!(together, spelled(&text), "pieces of {len_max} bytes");
            assert!(pieces(&text, len_max).all(|piece| piece.len() <= len_max));
            assert_eq!(
                pieces(&text, len_max).map(<[u8]>::len).sum::<usize>(),
                text.len()
            );
        }
    }

    #[test]
    fn equal_files_count_once_and_binary_ones_not_at_all() {
        let text = join(vec![
            b"a b".to_vec(),
            b"a b".to_vec(),
            b"\0c".to_vec(),
            b"d".to_vec(),
        ])
        .unwrap();
        assert_eq!(
            (text.bytes.as_slice(), text.files),
            (b"a b\nd\n".as_slice(), 2)
        );
        assert_eq!(join(vec![b"--".to_vec()]).err().unwrap().exit_code(), 2);
    }
}
