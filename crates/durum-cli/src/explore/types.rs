//! Types, as the page shows them: fields with their places, and how they differ from what they were.

use std::collections::BTreeMap;

use durum_format::types::{Count, Descriptor, Field, Struct, Type, Variants, differences};
use serde_json::{Value as Json, json};

use super::tree::hex;
use crate::inspect::names;
use crate::inspect::pool::PoolView;

/// Changed types that are told of.
const CHANGED_MAX: usize = 1000;
/// Fields of a type, those of structs in it included.
const FIELDS_MAX: usize = 500;
/// Structs in structs.
const DEPTH_MAX: usize = 8;

/// The types of which there are so many objects with so many bytes.
pub(super) fn used(pool: &PoolView<'_>, used: &BTreeMap<u64, (u64, u64)>) -> Json {
    let types = used.iter().map(|(id, (objects, bytes))| {
        let each = pool.types.by_id(*id).map(|known| known.layout().size);
        json!({
            "id": hex(*id),
            "name": pool.type_name(*id),
            "bytes": each,
            "objects": objects,
            "object_bytes": bytes,
        })
    });
    types.collect()
}

/// What is known of a type.
pub(super) fn details(pool: &PoolView<'_>, id: u64) -> Json {
    let mut told = match pool.types.by_id(id) {
        Some(descriptor) => describe(descriptor),
        None => json!({ "fields": [] }),
    };
    told["id"] = json!(hex(id));
    told["name"] = json!(pool.type_name(id));
    told
}

/// The types of a pool that its program has changed, and how.
pub(super) fn changed(pool: &PoolView<'_>) -> Json {
    let changed = pool.meanings().iter().take(CHANGED_MAX);
    let changed = changed.map(|(old, new)| {
        let both = (pool.types.by_id(old), pool.types.by_id(new));
        let told = match both {
            (Some(was), Some(is)) => {
                let all = differences(was, is);
                let each = all.all.iter().map(ToString::to_string);
                each.chain(all.rest()).collect()
            }
            _ => Vec::new(),
        };
        json!({ "old": hex(old), "new": hex(new), "name": pool.type_name(new), "differences": told })
    });
    changed.collect()
}

fn describe(descriptor: &Descriptor) -> Json {
    let layout = descriptor.layout();
    let mut rows = Vec::new();
    add_fields(descriptor.root(), descriptor, "", 0, 0, &mut rows);
    json!({
        "bytes": layout.size,
        "align": layout.align,
        "has_tail": layout.has_tail,
        "fields": rows,
        "is_cut": rows.len() >= FIELDS_MAX,
    })
}

/// The fields of a type, and behind a field those of the struct that it is.
fn add_fields(
    ty: &Type<usize>,
    of: &Descriptor,
    path: &str,
    base: u64,
    depth: usize,
    rows: &mut Vec<Json>,
) {
    if depth > DEPTH_MAX {
        return;
    }
    let mut add = |fields: &[Field<usize>], path: &str| {
        for field in fields {
            if rows.len() >= FIELDS_MAX {
                return;
            }
            let path = format!("{path}{}", field.name);
            let offset = base + field.offset;
            rows.push(json!({
                "name": path,
                "offset": offset,
                "type": in_words(&field.ty, of),
                "was": field.was,
                "in_reserved": field.is_in_reserved,
            }));
            add_fields(&field.ty, of, &(path + "."), offset, depth + 1, rows);
        }
    };
    match ty {
        Type::Struct(Struct { fields, .. }) => add(fields, path),
        Type::Variants(Variants { cases, .. }) => {
            for case in cases {
                add(&case.fields, &format!("{path}({}).", case.name));
            }
        }
        _ => {}
    }
}

/// A type, as it stands in the text of a descriptor.
fn in_words(ty: &Type<usize>, of: &Descriptor) -> String {
    match ty {
        Type::Primitive(primitive) => primitive.name().to_owned(),
        Type::Struct(Struct { name, .. }) => names::for_people(name),
        Type::Variants(variants) => {
            let cases: Vec<&str> = variants
                .cases
                .iter()
                .map(|case| case.name.as_str())
                .collect();
            format!(
                "{}, one of {}",
                names::for_people(&variants.name),
                cases.join(", ")
            )
        }
        Type::Array { element, count } => {
            let count = match count {
                Count::Fixed(count) => count.to_string(),
                Count::Tail => "up to the end".to_owned(),
                Count::Field(name) => format!("as many as {name}"),
            };
            format!("[{}; {count}]", in_words(element, of))
        }
        Type::Pointer { strength, target } => {
            let target = target.and_then(|line| of.line(line));
            let target = match target {
                // The fields of a target are its own type's.
                Some(Type::Struct(Struct { name, .. })) => names::for_people(name),
                Some(Type::Variants(variants)) => names::for_people(&variants.name),
                Some(Type::Pointer { .. }) => "a pointer".to_owned(),
                Some(Type::Array { .. }) => "an array".to_owned(),
                Some(other) => in_words(other, of),
                None => "anything".to_owned(),
            };
            let arrow = match strength {
                durum_format::types::Strength::Strong => "->",
                durum_format::types::Strength::Weak => "~>",
            };
            format!("{arrow} {target}")
        }
        Type::Opaque { size, .. } => format!("{size} bytes"),
        Type::Volatile { size, .. } => {
            format!("{size} bytes that mean nothing once the program has ended")
        }
        Type::Reserved { size, .. } => format!("{size} bytes reserved"),
    }
}
