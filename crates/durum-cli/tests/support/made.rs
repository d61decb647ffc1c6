//! Pools of any types, without a program that has them.

use std::path::PathBuf;

use tempfile::TempDir;

use super::{fails, load, scratch, succeeds, text};

/// A store with pools that are made from lines of a dump: texts of types, and of each object the number of its type and
/// its value, or the size of one with a tail and the value. The first object is the root.
pub struct Made {
    _dir: TempDir,
    pub path: PathBuf,
}

impl Made {
    pub fn of(pool: &str, types: &[&str], objects: &[(usize, &str)]) -> Made {
        let dir = scratch();
        let path = dir.path().join("store");
        succeeds(&["init", text(&path)]);
        let made = Made { _dir: dir, path };
        let head = format!(
            "{{\"durum-dump\":1,\"pool\":\"{pool}\",\"engine\":\"shadow\",\
             \"space\":[\"0x200000000000\",\"0x10000000000\"],\"objects\":{},\"root\":true}}",
            objects.len()
        );
        let of_types = types.iter().zip(1..).map(|(text, number)| {
            let text = serde_json::Value::from(*text);
            format!("{{\"type\":{number},\"text\":{text}}}")
        });
        let of_objects = objects.iter().zip(1..).map(|((ty, value), number)| {
            let sized = value.strip_prefix("bytes ");
            let (bytes, value) = match sized.and_then(|sized| sized.split_once(' ')) {
                Some((bytes, value)) => (format!("\"bytes\":{bytes},"), value),
                None => (String::new(), *value),
            };
            let ty = match ty {
                0 => "null".to_owned(),
                ty => ty.to_string(),
            };
            format!("{{\"object\":{number},\"type\":{ty},{bytes}\"value\":{value}}}")
        });
        let end = format!("{{\"end\":{}}}", objects.len());
        let lines = std::iter::once(head).chain(of_types).chain(of_objects);
        let lines: Vec<String> = lines.chain([end]).collect();
        let lines = lines.join("\n") + "\n";
        let run = load(&[text(&made.path)], lines.as_bytes());
        assert_eq!(run.code, 0, "{lines}{}", run.err);
        made
    }

    pub fn inspect(&self, arguments: &[&str]) -> String {
        let all = [&["inspect", text(&self.path)], arguments].concat();
        succeeds(&all).out
    }

    pub fn refuses(&self, arguments: &[&str], why: &str) {
        let all = [&["inspect", text(&self.path)], arguments].concat();
        fails(&all, 2, why);
    }
}

pub const LEAD: &str = "struct \"lead\"(16,8){0:\"first\":*1;8:\"count\":u64;}\n\
    struct \"a thing\"(16,8){0:\"name\":[i8;8];8:\"next\":*1;}\n";
pub const THING: &str = "struct \"a thing\"(16,8){0:\"name\":[i8;8];8:\"next\":*0;}\n";

/// A chain of two.
pub fn things() -> Made {
    Made::of(
        "things",
        &[LEAD, THING],
        &[
            (1, r#"{"first":2,"count":2}"#),
            (2, r#"{"name":"one","next":3}"#),
            (2, r#"{"name":"two","next":null}"#),
        ],
    )
}
