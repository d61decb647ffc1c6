//! Objects of a pool: one of them, those of a type, and what leads to one.

use std::time::Instant;

use durum_format::GRANULE;
use durum_format::content::{self, At, Content, Limits, Look, Object, Objects};
use durum_format::extent;
use serde_json::{Value as Json, json};

use super::tree::{self, hex};
use crate::failure::Failure;
use crate::inspect::damages::Damages;
use crate::inspect::pool::{PoolView, damaged};
use crate::inspect::referrers::Search;

/// Objects of a type that are told of at once, and pointers to one.
pub(super) const AT_ONCE: usize = 200;
/// Elements of a collection that are shown unless more are asked for, and at most.
pub(super) const ELEMENTS: usize = 200;
pub(super) const ELEMENTS_MAX: usize = 10_000;
/// Elements and characters of an object's line in a list.
const LINE_ELEMENTS: usize = 4;
const LINE_CHARS: usize = 160;

/// An object, as the page shows it, and where its pointers lead.
pub(super) struct Shown {
    pub(super) json: Json,
    pub(super) leads_to: Vec<u64>,
}

/// The object at an address, or around it.
pub(super) fn at(
    pool: &PoolView<'_>,
    address: u64,
    elements: usize,
    redact: bool,
) -> Result<Shown, Failure> {
    let object = match pool.at(address) {
        At::Object(object) => object,
        At::Other(what) => {
            return Err(Failure::Refused(format!(
                "at {address:#x} is no object: {what}"
            )));
        }
        At::Damaged(why) => return Err(Failure::Damaged(why)),
    };
    let mut look = look_at(pool, &object, elements, redact);
    let mut leads_to = Vec::new();
    tree::starts(&look.content, &mut leads_to);
    let puddle = pool.view_at(object.start);
    let puddle = puddle.and_then(|view| view.path().file_name());
    Ok(Shown {
        json: json!({
            "address": hex(object.start),
            "offset": address - object.start,
            "bytes": object.size,
            "type": look.type_name,
            "type_id": hex(object.type_id),
            "puddle": puddle.map(|name| name.to_string_lossy()),
            "is_root": pool.root()? == Some(object.start),
            "tree": tree::of(&look.content),
            "line": line(&mut look),
            "elements": elements,
            "damages": look.damages,
        }),
        leads_to,
    })
}

fn look_at(pool: &PoolView<'_>, object: &Object, elements: usize, redact: bool) -> Look {
    // The page follows pointers one by one.
    let limits = Limits {
        depth: 0,
        objects: 0,
        elements,
    };
    let mut look = content::of_object(pool, object.start, "this", &limits);
    if redact {
        let content = std::mem::replace(&mut look.content, Content::Hidden);
        look.content = content.redact();
        look.shown.clear();
    }
    look
}

/// What an object is, in a line that is cut where it is long.
fn line(look: &mut Look) -> String {
    shorten(&mut look.content);
    let text = look.to_string();
    let text: Vec<&str> = text.lines().map(str::trim).collect();
    let text = text.join(" ");
    match text.char_indices().nth(LINE_CHARS) {
        Some((end, _)) => format!("{}…", text.get(..end).unwrap_or_default()),
        None => text,
    }
}

/// Leaves off elements: a line has no room for them, and there may be many.
fn shorten(content: &mut Content) {
    match content {
        Content::Struct { fields, .. } | Content::Case { fields, .. } => {
            fields.iter_mut().for_each(|(_, it)| shorten(it));
        }
        Content::List(list) => {
            list.is_cut |= list.elements.len() > LINE_ELEMENTS;
            list.elements.truncate(LINE_ELEMENTS);
            list.elements.iter_mut().for_each(|(_, it)| shorten(it));
        }
        Content::Map { entries, .. } => entries.truncate(LINE_ELEMENTS),
        _ => {}
    }
}

/// Objects in the order of their addresses: those from an address on, of a type or of all, as long as `visit` wants and
/// there is time. Gives where the rest begins, if time was over. What is damaged goes into `damages`, once where the
/// rest is asked for, too, and what lies behind it is visited all the same.
pub(super) fn each(
    pool: &PoolView<'_>,
    from: u64,
    type_id: Option<u64>,
    until: Option<Instant>,
    damages: &mut Damages,
    mut visit: impl FnMut(&Object, &mut Damages) -> bool,
) -> Option<u64> {
    let mut clock = Clock { until, done: 0 };
    for view in &pool.puddles {
        let header = view.header();
        if header.end() <= from {
            continue;
        }
        // Who has come to `from` before was told of what is damaged in front of it.
        let mut is_new = header.address >= from;
        for extent in extent::extents(view, header) {
            let extent = match extent {
                Ok(extent) => extent,
                Err(error) => {
                    if is_new {
                        damages.add(damaged(view, error));
                    }
                    continue;
                }
            };
            let begin = header.address + extent.offset();
            is_new |= begin + extent.granules() * GRANULE > from;
            let meaning = pool.meaning(extent.type_id());
            if type_id.is_some_and(|wanted| wanted != meaning) {
                clock.count(0);
                if begin > from && clock.is_over() {
                    return Some(begin);
                }
                continue;
            }
            for object in extent.objects() {
                let start = header.address + object.offset;
                let object = Object {
                    start,
                    size: object.size,
                    type_id: meaning,
                    is_element: object.element.is_some(),
                };
                if start < from {
                    continue;
                }
                if start > from && clock.is_over() {
                    return Some(start);
                }
                clock.count(object.size);
                if !visit(&object, damages) {
                    return None;
                }
            }
        }
    }
    None
}

/// The time for a part of an answer. The clock is looked at now and then: the sooner the more there was to read.
struct Clock {
    until: Option<Instant>,
    /// Work since it was looked at.
    done: u64,
}

impl Clock {
    /// About as much as can be done before somebody notices.
    const WORK_MAX: u64 = 16;
    /// Bytes that take about as long to read as an object takes to look at.
    const BYTES: u64 = 4096;

    /// Counts an object or extent, and what is read of it.
    fn count(&mut self, bytes: u64) {
        self.done = self.done.saturating_add(1 + bytes / Self::BYTES);
    }

    fn is_over(&mut self) -> bool {
        if self.done < Self::WORK_MAX {
            return false;
        }
        self.done = 0;
        self.until.is_some_and(|until| Instant::now() >= until)
    }
}

/// The objects of a type from an address on, as many as are found in the time.
pub(super) fn of_type(
    pool: &PoolView<'_>,
    type_id: u64,
    from: u64,
    redact: bool,
    until: Instant,
) -> Result<Json, Failure> {
    let (mut found, mut next) = (Vec::new(), None);
    let mut damages = Damages::default();
    let rest = each(
        pool,
        from,
        Some(type_id),
        Some(until),
        &mut damages,
        |object, _| {
            if found.len() == AT_ONCE {
                next = Some(hex(object.start));
                return false;
            }
            let mut look = look_at(pool, object, LINE_ELEMENTS, redact);
            found.push(json!({
                "address": hex(object.start),
                "bytes": object.size,
                "line": line(&mut look),
            }));
            true
        },
    );
    let next = next.or(rest.map(hex));
    Ok(json!({ "objects": found, "next": next, "damages": damages.in_words() }))
}

/// The pointers that lead to an address, or into the object there, in objects from an address on, as many of them as
/// can be read in the time.
pub(super) fn leading_to(
    pool: &PoolView<'_>,
    address: u64,
    from: u64,
    redact: bool,
    until: Instant,
) -> Result<Json, Failure> {
    let mut of_target = Vec::new();
    let mut search = Search::of(pool, address, AT_ONCE, &mut of_target);
    let mut damages = Damages::default();
    if from == 0 {
        of_target.into_iter().for_each(|text| damages.add(text));
    }
    let next = each(
        pool,
        from,
        None,
        Some(until),
        &mut damages,
        |object, damages| {
            if let Err(failure) = search.visit(object) {
                damages.add(failure.to_string());
            }
            true
        },
    );
    let mut found = search.found();
    if redact {
        found.redact();
    }
    let before = pool.puddles.iter();
    let before = before.filter(|view| next.is_none_or(|next| view.header().end() <= next));
    let mut json = json!({
        "damages": damages.in_words(),
        "next": next.map(hex),
        "puddles": before.count(),
        "all_puddles": pool.puddles.len(),
    });
    found.add_to(&mut json);
    Ok(json)
}
