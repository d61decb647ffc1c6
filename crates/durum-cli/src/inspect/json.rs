//! Objects as JSON: a flat list, so that a program need not search a tree for what a pointer leads to.

use durum_format::types::{Strength, Value};
use serde_json::{Map, Value as Json, json};

use super::graph::{Graph, Link};

/// Adds `root`, `objects` and `pointers_cut`.
pub(super) fn add(graph: &Graph, value: &mut Json) {
    let mut order: Vec<usize> = (0..graph.nodes.len()).collect();
    order.sort_unstable_by_key(|index| graph.number(*index));
    let objects = order.into_iter().map(|index| {
        let found = &graph.nodes[index].found;
        json!({
            "object": graph.number(index),
            "address": format!("{:#x}", found.address),
            "type": found.type_name,
            "bytes": found.size,
            "value": to_json(graph, index, &found.value),
        })
    });
    value["objects"] = objects.collect();
    value["root"] = match graph.nodes.first() {
        Some(_) => json!(graph.number(0)),
        None => Json::Null,
    };
    value["pointers_cut"] = json!(graph.cut);
}

fn to_json(graph: &Graph, index: usize, value: &Value) -> Json {
    match value {
        Value::Struct { fields, .. } => object(graph, index, fields),
        Value::Case { case, fields, .. } => json!({ case: object(graph, index, fields) }),
        Value::Array { elements, omitted } => {
            let mut elements: Vec<Json> = elements
                .iter()
                .map(|value| to_json(graph, index, value))
                .collect();
            if *omitted > 0 {
                elements.push(json!({ "omitted": omitted }));
            }
            Json::Array(elements)
        }
        Value::Pointer {
            address, strength, ..
        } if *address != 0 => pointer(graph, index, *address, *strength),
        leaf => leaf.to_json(),
    }
}

fn object(graph: &Graph, index: usize, fields: &[(String, Value)]) -> Json {
    let fields = fields
        .iter()
        .map(|(name, value)| (name.clone(), to_json(graph, index, value)));
    Json::Object(fields.collect::<Map<_, _>>())
}

fn pointer(graph: &Graph, index: usize, address: u64, strength: Strength) -> Json {
    let kind = match strength {
        Strength::Strong => "pointer",
        Strength::Weak => "weak",
    };
    let mut json = json!({ kind: format!("{address:#x}") });
    match graph.link(index, address, strength) {
        Link::Node {
            index: child,
            offset,
            ..
        } => {
            json["object"] = json!(graph.number(child));
            if offset > 0 {
                json["offset"] = json!(offset);
            }
            if strength == Strength::Strong && graph.is_ancestor(child, index) {
                json["cycle"] = json!(true);
            }
        }
        Link::Cut => json["cut"] = json!(true),
        Link::Other(what) => json["leads_to"] = json!(what),
    }
    json
}
