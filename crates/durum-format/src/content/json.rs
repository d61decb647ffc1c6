//! Contents as JSON.

use serde_json::{Map, Value as Json, json};

use super::{Content, List, ListKind, Look, Target};
use crate::types::Strength;

/// Whole numbers beyond this are text: most readers of JSON round them.
const EXACT_MAX: u64 = 1 << 53;

/// An unsigned number, as text where readers would round it.
pub(crate) fn unsigned(number: u64) -> Json {
    match number <= EXACT_MAX {
        true => json!(number),
        false => json!(number.to_string()),
    }
}

/// A signed one.
pub(crate) fn signed(number: i64) -> Json {
    match number.unsigned_abs() <= EXACT_MAX {
        true => json!(number),
        false => json!(number.to_string()),
    }
}

impl Look {
    /// What was read, as JSON.
    pub fn to_json(&self) -> Json {
        self.json(&self.content)
    }

    fn fields(&self, fields: &[(String, Content)]) -> Json {
        let fields = fields.iter();
        let fields = fields.map(|(name, value)| (name.clone(), self.json(value)));
        Json::Object(fields.collect::<Map<_, _>>())
    }

    fn json(&self, content: &Content) -> Json {
        match content {
            Content::Unsigned(number) => unsigned(*number),
            Content::Signed(number) => signed(*number),
            // JSON has no infinities and no NaN.
            Content::Float(number) if number.is_finite() => json!(number),
            Content::Float(number) => json!(number.to_string()),
            Content::Single(number) if number.is_finite() => {
                // The shortest digits that say it, and not those of the same number in 64 bits.
                let digits = number.to_string();
                digits
                    .parse::<f64>()
                    .map_or(Json::Null, |number| json!(number))
            }
            Content::Single(number) => json!(number.to_string()),
            Content::Bool(value) => json!(value),
            Content::Char(char) => json!(char),
            Content::Text { text, omitted: 0 } => json!(text),
            Content::Text { text, omitted } => json!({ "text": text, "omitted": omitted }),
            Content::Bytes { bytes, omitted } => {
                let hex: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
                match omitted {
                    0 => json!({ "hex": hex }),
                    omitted => json!({ "hex": hex, "omitted": omitted }),
                }
            }
            Content::Told { shown, whole } => {
                let mut json = self.json(whole);
                if let Json::Object(members) = &mut json {
                    members.insert("means".to_owned(), self.json(shown));
                }
                json
            }
            Content::Word(number) => unsigned(*number),
            // Bytes, however they are shown to people.
            Content::Untyped { size, content } => match &**content {
                Content::List(list) => {
                    let words = list.elements.iter().map(|(_, word)| match word {
                        Content::Word(number) => number.swap_bytes(),
                        _ => 0,
                    });
                    let hex: String = words.map(|word| format!("{word:016x}")).collect();
                    match size.saturating_sub(hex.len() as u64 / 2) {
                        0 => json!({ "hex": hex }),
                        omitted => json!({ "hex": hex, "omitted": omitted }),
                    }
                }
                content => self.json(content),
            },
            Content::Struct { fields, .. } => self.fields(fields),
            Content::Case { case, fields, .. } => json!({ case: self.fields(fields) }),
            Content::List(list) => self.list(list),
            Content::Map { count, entries } => {
                let shown = entries.iter();
                let shown = shown.map(|(key, value)| json!([self.json(key), self.json(value)]));
                json!({ "count": unsigned(*count), "map": shown.collect::<Vec<_>>() })
            }
            Content::Pointer {
                address,
                strength,
                target,
            } => self.pointer(*address, *strength, target),
            Content::Null { .. } | Content::Nothing => Json::Null,
            Content::Gone => json!({ "gone": true }),
            Content::Volatile => json!({ "volatile": true }),
            Content::Cut => json!({ "cut": true }),
            Content::Invalid(why) => json!({ "invalid": why }),
            Content::Hidden => json!({ "hidden": true }),
        }
    }

    fn list(&self, list: &List) -> Json {
        let elements = list.elements.iter();
        // One that leads to nothing is just that, with its link.
        if let (ListKind::Chain { by, end: None }, [(_, only)], false) =
            (&list.kind, &list.elements[..], list.is_cut)
        {
            let mut json = self.json(only);
            if json.is_object() {
                json[by] = Json::Null;
            }
            return json;
        }
        let is_dense = !list.is_cut && list.vacant == 0;
        let mut json = match &list.kind {
            ListKind::Chain { .. } => json!({
                "chain": elements.map(|(_, it)| self.json(it)).collect::<Vec<_>>(),
            }),
            _ if is_dense && list.elements.len() as u64 == list.count => {
                return elements.map(|(_, it)| self.json(it)).collect();
            }
            _ => json!({
                "count": unsigned(list.count),
                "elements": elements
                    .map(|(at, it)| json!([at, self.json(it)]))
                    .collect::<Vec<_>>(),
            }),
        };
        if let ListKind::Chain { end: Some(end), .. } = &list.kind {
            json["end"] = self.json(end);
        }
        if list.vacant > 0 || list.is_cut {
            json["count"] = unsigned(list.count);
            json["filled"] = unsigned(list.filled);
        }
        if list.is_at_least {
            json["at_least"] = json!(true);
        }
        if list.is_cut {
            json["cut"] = json!(true);
        }
        json
    }

    fn pointer(&self, address: u64, strength: Strength, target: &Target) -> Json {
        let kind = match strength {
            Strength::Strong => "pointer",
            Strength::Weak => "weak",
        };
        let mut json = json!({ kind: format!("{address:#x}") });
        match target {
            Target::Here { content } => json["value"] = self.json(content),
            Target::Elsewhere {
                start,
                type_name,
                part,
            } => {
                json["type"] = json!(type_name);
                if let Some(path) = self.shown.get(start) {
                    json["path"] = json!(path);
                }
                if !part.is_empty() {
                    json["part"] = json!(part);
                }
            }
            Target::There { way, what } => {
                json["leads_to"] = json!(what);
                json["pool"] = json!(way.pool);
                json["path"] = json!(way.path);
            }
            Target::Other(what) => json["leads_to"] = json!(what),
        }
        json
    }
}
