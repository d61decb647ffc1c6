//! What an object means, as JSON that keeps apart what the page shows in different ways. `inspect --json` is for
//! programs: there a struct with a field `pointer` looks like a pointer.

use durum_format::content::{Content, Cuts, List, ListKind, Look, Shown, Target};
use durum_format::types::Strength;
use serde_json::{Value as Json, json};

use crate::output::grouped;

/// The tree of a content.
pub(super) fn of(content: &Content) -> Json {
    match content {
        Content::Struct { name, fields } => with_fields(name.clone(), fields),
        Content::Case { name, case, fields } => with_fields(format!("{name}::{case}"), fields),
        Content::List(list) => of_list(list),
        Content::Map { count, entries } => {
            let items = entries
                .iter()
                .map(|(key, value)| json!([of(key), of(value)]));
            json!({
                "kind": "map",
                "head": format!("map of {}", grouped(*count)),
                "items": items.collect::<Vec<_>>(),
                "more": count.saturating_sub(entries.len() as u64),
            })
        }
        Content::Pointer {
            address,
            strength,
            target,
        } => {
            let mut pointer = json!({
                "kind": "pointer",
                "address": hex(*address),
                "weak": *strength == Strength::Weak,
            });
            match target {
                Target::Here { content } => pointer["value"] = of(content),
                Target::Elsewhere {
                    start,
                    type_name,
                    part,
                } => {
                    pointer["start"] = json!(hex(*start));
                    pointer["type"] = json!(type_name);
                    pointer["part"] = json!(part);
                }
                Target::There { what, .. } | Target::Other(what) => {
                    pointer["leads_to"] = json!(what);
                }
            }
            pointer
        }
        Content::Told { shown, .. } => of(shown),
        Content::Untyped { content, .. } if matches!(&**content, Content::List(_)) => of(content),
        plain => json!({ "kind": kind_of(plain), "text": as_text(plain) }),
    }
}

/// Where the pointers in a content lead that are not followed in it, with those that own nothing.
pub(super) fn starts(content: &Content, found: &mut Vec<u64>) {
    match content {
        Content::Struct { fields, .. } | Content::Case { fields, .. } => {
            fields.iter().for_each(|(_, it)| starts(it, found));
        }
        Content::List(list) => {
            list.elements.iter().for_each(|(_, it)| starts(it, found));
            if let ListKind::Chain { end: Some(end), .. } = &list.kind {
                starts(end, found);
            }
        }
        Content::Map { entries, .. } => entries.iter().for_each(|(key, value)| {
            starts(key, found);
            starts(value, found);
        }),
        Content::Told { whole, .. } => starts(whole, found),
        Content::Pointer { target, .. } => match target {
            Target::Here { content } => starts(content, found),
            Target::Elsewhere { start, .. } => found.push(*start),
            Target::There { .. } | Target::Other(_) => {}
        },
        _ => {}
    }
}

pub(super) fn hex(address: u64) -> String {
    format!("{address:#x}")
}

fn with_fields(name: String, fields: &[(String, Content)]) -> Json {
    let fields = fields.iter().map(|(name, value)| json!([name, of(value)]));
    json!({ "kind": "fields", "head": name, "items": fields.collect::<Vec<_>>() })
}

fn of_list(list: &List) -> Json {
    let count = grouped(list.count);
    let head = match &list.kind {
        ListKind::Array | ListKind::Vector | ListKind::Row => {
            let elements = if list.count == 1 {
                "element"
            } else {
                "elements"
            };
            format!("{count} {elements}")
        }
        ListKind::Objects => "objects of the program".to_owned(),
        ListKind::Chain { by, .. } => format!("chain by {by}"),
    };
    let items = list.elements.iter();
    let mut tree = json!({
        "kind": "list",
        "head": head,
        "items": items.map(|(at, it)| json!([at.to_string(), of(it)])).collect::<Vec<_>>(),
        "vacant": list.vacant,
        "cut": list.is_cut,
    });
    if let ListKind::Chain { end: Some(end), .. } = &list.kind {
        tree["end"] = of(end);
    }
    tree
}

fn kind_of(plain: &Content) -> &'static str {
    match plain {
        Content::Unsigned(_)
        | Content::Word(_)
        | Content::Signed(_)
        | Content::Float(_)
        | Content::Single(_) => "number",
        Content::Text { .. } | Content::Char(_) => "text",
        Content::Bytes { .. } => "bytes",
        Content::Invalid(_) => "invalid",
        _ => "word",
    }
}

/// As `inspect` prints it.
fn as_text(plain: &Content) -> String {
    let look = Look {
        content: plain.clone(),
        type_name: String::new(),
        address: 0,
        shown: Shown::new(),
        damages: Vec::new(),
        cut: 0,
        cuts: Cuts::default(),
    };
    look.to_string()
}
