//! Rules in a file, for programs whose types nobody compiles: `docs/how-to/change-types.md`.

use serde_json::{Map, Value};

use super::{NewLayout, Rule, Rules, Source};

/// The version that this build reads.
pub const VERSION: u64 = 1;

/// Reads a map.
///
/// # Errors
/// What is wrong with it, in words.
pub fn parse(text: &str) -> Result<Rules, String> {
    let whole: Value = serde_json::from_str(text).map_err(|error| error.to_string())?;
    let whole = object(&whole, "the map")?;
    only(whole, &["durum-map", "types"], "the map")?;
    match whole.get("durum-map").and_then(Value::as_u64) {
        Some(VERSION) => {}
        _ => return Err(format!("its first member is not \"durum-map\": {VERSION}")),
    }
    let types = whole.get("types").ok_or("it has no \"types\"")?;
    let mut rules = Rules::default();
    for (name, said) in object(types, "\"types\"")? {
        let rule = rule(said, name).map_err(|why| format!("type \"{name}\": {why}"))?;
        rules.types.insert(name.clone(), rule);
    }
    Ok(rules)
}

fn rule(said: &Value, name: &str) -> Result<Rule, String> {
    let said = object(said, "what becomes of it")?;
    only(said, &["now", "fields", "forget", "size", "align"], name)?;
    let mut rule = Rule {
        now: said.get("now").map(text).transpose()?,
        ..Rule::default()
    };
    for field in said
        .get("forget")
        .map(list)
        .transpose()?
        .into_iter()
        .flatten()
    {
        rule.forget.insert(text(field)?);
    }
    let number = |name: &str| match said.get(name) {
        None => Ok(None),
        Some(value) => {
            let number = value.as_u64();
            number.map(Some).ok_or(format!("\"{name}\" is no number"))
        }
    };
    let Some(fields) = said.get("fields") else {
        if said.contains_key("size") || said.contains_key("align") {
            return Err("\"size\" and \"align\" go with \"fields\"".to_owned());
        }
        return Ok(rule);
    };
    let mut layout = NewLayout {
        fields: Vec::new(),
        size: number("size")?,
        align: number("align")?,
    };
    if layout.align.is_some_and(|align| !align.is_power_of_two()) {
        return Err("\"align\" is no power of two".to_owned());
    }
    for field in list(fields)? {
        if let Value::String(name) = field {
            layout.fields.push((name.clone(), None));
            continue;
        }
        let field = object(field, "a field")?;
        only(field, &["name", "was", "type", "default"], "a field")?;
        let name = text(field.get("name").ok_or("a field has no \"name\"")?)?;
        let source = match (field.get("was"), field.get("default")) {
            (Some(_), Some(_)) => {
                return Err(format!(
                    "field \"{name}\" has a \"default\", and \"was\" another"
                ));
            }
            (Some(was), None) => Some(Source::Field(text(was)?)),
            (None, Some(value)) => Some(Source::Value(value.to_string())),
            (None, None) => None,
        };
        rule.fields
            .extend(source.map(|source| (name.clone(), source)));
        let ty = field.get("type").map(text).transpose()?;
        layout.fields.push((name, ty));
    }
    rule.layout = Some(layout);
    Ok(rule)
}

fn object<'v>(value: &'v Value, what: &str) -> Result<&'v Map<String, Value>, String> {
    value
        .as_object()
        .ok_or_else(|| format!("{what} is no object of JSON"))
}

fn list(value: &Value) -> Result<&Vec<Value>, String> {
    value
        .as_array()
        .ok_or_else(|| format!("{value} is no array"))
}

fn text(value: &Value) -> Result<String, String> {
    let text = value.as_str().map(str::to_owned);
    text.ok_or_else(|| format!("{value} is no string"))
}

/// Whoever writes a name wrongly is told.
fn only(found: &Map<String, Value>, known: &[&str], what: &str) -> Result<(), String> {
    match found.keys().find(|name| !known.contains(&name.as_str())) {
        None => Ok(()),
        Some(name) => Err(format!(
            "\"{name}\" says nothing in {what}; there are {}",
            known.join(", ")
        )),
    }
}
