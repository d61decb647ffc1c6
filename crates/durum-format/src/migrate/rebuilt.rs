//! Maps whose keys may change, because the program builds them anew: where they are in new objects.

use std::cell::Cell;
use std::collections::{BTreeMap, BTreeSet};

use super::parts::{Conversion, MapAt};
use super::templates::{MAP, STRING, VECTOR};
use super::values::is_same;
use super::{Rebuilt, Refusal, Rules};
use crate::types::{Descriptor, Step, Strength, Type, ValueError, compile_by, walk};

impl Rules {
    /// The functions that build maps anew, in the order in which they do that: maps that keys hold are built before
    /// those whose keys these are.
    pub fn rebuilt(&self) -> Vec<usize> {
        self.in_order().0
    }

    /// What is in the way where keys of maps hold such maps in a circle.
    pub(super) fn circle(&self) -> Option<Refusal> {
        let (_, circle) = self.in_order();
        let why = "it is to be built anew, and its keys hold maps whose keys hold it: none can be the first";
        Some(Refusal::new(circle?, why))
    }

    /// Also a map that is one of a circle, if there is any.
    fn in_order(&self) -> (Vec<usize>, Option<&str>) {
        let mut waiting = BTreeMap::new();
        for (was, rule) in &self.types {
            if let Some(Rebuilt::Map(function)) = rule.rebuilt {
                let name = rule.now.as_deref().unwrap_or(was);
                let now = rule.made_of.as_deref().map(|(_, now)| now);
                let held = now.map_or_else(BTreeSet::new, |now| {
                    in_keys(
                        now,
                        &format!("{}.slot", now.name().unwrap_or_default()),
                        "key",
                    )
                });
                waiting.insert(function, (name, held));
            }
        }
        for (name, map) in &self.maps {
            let [_, entry] = &map.parts;
            waiting.insert(map.function, (name, in_keys(&map.ty, entry, "first")));
        }
        let (mut order, mut circle) = (Vec::new(), None);
        while let Some((first, (name, _))) = waiting.first_key_value() {
            let names: BTreeSet<&str> = waiting.values().map(|(name, _)| *name).collect();
            let is_next = |(_, held): &(&str, BTreeSet<&str>)| held.is_disjoint(&names);
            let next = waiting.iter().find(|(_, map)| is_next(map));
            if next.is_none() {
                circle = circle.or(Some(*name));
            }
            let next = next.map_or(*first, |(function, _)| *function);
            waiting.remove(&next);
            order.push(next);
        }
        (order, circle)
    }
}

/// Names of the types in the keys of a map, and of those that these lead to: in the entries of such a name its field of
/// that name.
fn in_keys<'m>(map: &'m Descriptor, entry: &str, key: &str) -> BTreeSet<&'m str> {
    let (mut keys, mut names) = (Vec::new(), BTreeSet::new());
    reach(map, map.root(), &mut |ty| match ty {
        Type::Struct(it) if it.name == entry => {
            keys.extend(it.fields.iter().find(|field| field.name == key));
        }
        _ => {}
    });
    for key in keys {
        reach(map, &key.ty, &mut |ty| names.extend(ty.name()));
    }
    names
}

/// Goes over all that is in a type, and that owning pointers in it lead to.
fn reach<'d>(of: &'d Descriptor, ty: &'d Type<usize>, visit: &mut impl FnMut(&'d Type<usize>)) {
    let mut seen = BTreeSet::new();
    let mut waiting = vec![ty];
    while let Some(ty) = waiting.pop() {
        visit(ty);
        match ty {
            Type::Struct(it) => waiting.extend(it.fields.iter().map(|field| &field.ty)),
            Type::Variants(it) => {
                let fields = it.cases.iter().flat_map(|case| &case.fields);
                waiting.extend(fields.map(|field| &field.ty));
            }
            Type::Array { element, .. } => waiting.push(element),
            Type::Pointer {
                strength: Strength::Strong,
                target: Some(line),
            } if seen.insert(*line) => waiting.extend(of.line(*line)),
            _ => {}
        }
    }
}

/// Whether keys that stay what they are by their type are others to `Hash` or `Ord`: where a function makes what is in
/// them, or what they own, or a map there is built anew, whose entries come in another order.
pub(super) fn changes_keys(rules: &Rules, of: &Descriptor, key: &Type<usize>) -> bool {
    let mut changes = false;
    reach(of, key, &mut |ty| {
        changes |= rules.of(ty).is_some_and(|rule| {
            rule.made_by.is_some() || matches!(rule.rebuilt, Some(Rebuilt::Map(_)))
        });
        changes |= ty.name().is_some_and(|name| rules.maps.contains_key(name));
    });
    changes
}

/// Why an old type is not built anew as the rules say: it becomes a type of another name, of which no function is
/// told, or it is another type than the one of which they say so.
pub(super) fn becomes_another(
    rules: &Rules,
    old: (&Descriptor, &Type<usize>),
    is: &str,
) -> Option<String> {
    let was = old.1.name()?;
    let rule = rules.of(old.1).filter(|rule| rule.rebuilt.is_some())?;
    let now = rule.now.as_deref().unwrap_or(was);
    if now != is {
        return Some(format!("it is built anew as {now}, and is to be {is} here"));
    }
    let (wanted, _) = rule.made_of.as_deref()?;
    (!is_same(old, (wanted, wanted.root()))).then(|| another(was))
}

fn another(name: &str) -> String {
    format!("what is built anew is another type of the name {name}")
}

/// Whether keys of a map of C++ hold pointers, which compare by where they lead. Strings and maps own what they lead
/// to, and compare by that; of vectors the elements count.
pub(super) fn compares_addresses(of: &Descriptor, key: &Type<usize>) -> bool {
    let mut seen = BTreeSet::new();
    let mut waiting = vec![key];
    while let Some(ty) = waiting.pop() {
        match ty {
            Type::Pointer { .. } => return true,
            Type::Array { element, .. } => waiting.push(element),
            Type::Variants(it) => {
                let fields = it.cases.iter().flat_map(|case| &case.fields);
                waiting.extend(fields.map(|field| &field.ty));
            }
            Type::Struct(it) if it.name == STRING || it.name.starts_with(MAP) => {}
            Type::Struct(it) => {
                let is_vector = it.name.starts_with(VECTOR);
                for field in &it.fields {
                    match &field.ty {
                        Type::Pointer { target, .. } if is_vector => {
                            let line = target.filter(|line| seen.insert(*line));
                            waiting.extend(line.and_then(|line| of.line(line)));
                        }
                        ty => waiting.push(ty),
                    }
                }
            }
            _ => {}
        }
    }
    false
}

/// What is in the way where nobody builds a map anew.
pub(super) fn keys_change(part: &str) -> String {
    format!("the keys of a map change: {}", only_anew(part))
}

/// The same of keys that hold pointers.
pub(super) fn keys_lead_elsewhere(part: &str) -> String {
    format!(
        "the keys of a map hold pointers, which lead to other addresses then: {}",
        only_anew(part)
    )
}

fn only_anew(part: &str) -> String {
    let cure = match part {
        _ if part.starts_with("PHashMap<") || part.starts_with("PBTreeMap<") => {
            "only the program builds it anew, by its `Hash` or `Ord`: `P::migrate`, with `Migration::rebuild`"
        }
        _ if part.starts_with(MAP) => {
            "only the program builds it anew, by its `operator<`: `durum::migration`, with `rebuild`"
        }
        _ => "the program has to take its entries out before",
    };
    format!("it finds them no more; {cure}")
}

/// Whether an old type is a map that is built anew, or a row of parts of one.
pub(super) fn is_rebuilt(rules: &Rules, old: &Type<usize>) -> bool {
    match old {
        Type::Array { element, .. } => is_rebuilt(rules, element),
        ty => rules.of(ty).is_some_and(|rule| rule.rebuilt.is_some()),
    }
}

/// Where such maps are in a new type.
///
/// # Errors
/// Why they are not built: one is another type than its function is for.
pub(super) fn maps(rules: &Rules, new: &Descriptor) -> Result<Vec<Step<MapAt>>, String> {
    let now = rules.maps.iter();
    let now = now.map(|(name, map)| (name.as_str(), (map.function, Some(&map.ty))));
    let mut functions: BTreeMap<_, _> = now.collect();
    for (was, rule) in &rules.types {
        if let Some(Rebuilt::Map(function)) = rule.rebuilt {
            let wanted = rule.made_of.as_deref().map(|(_, now)| now);
            functions.insert(
                rule.now.as_ref().unwrap_or(was).as_str(),
                (function, wanted),
            );
        }
    }
    if functions.is_empty() {
        return Ok(Vec::new());
    }
    let wrong = Cell::new(None);
    let found = compile_by(new.root(), &|ty, offset| {
        let Type::Struct(it) = ty else {
            return None;
        };
        let (function, wanted) = functions.get(it.name.as_str())?;
        if wanted.is_some_and(|wanted| !is_same((new, ty), (wanted, wanted.root()))) {
            wrong.set(Some(another(&it.name)));
        }
        Some(MapAt {
            offset,
            size: it.size,
            function: *function,
        })
    });
    match wrong.into_inner() {
        Some(why) => Err(why),
        None => found.map_err(|error| error.to_string()),
    }
}

impl Conversion {
    /// Whether there may be maps in new objects that the program builds anew.
    pub fn has_rebuilt(&self) -> bool {
        !self.maps.is_empty()
    }

    /// Gives the maps in a new object that the program builds anew: where each begins, and by which function. Not those
    /// that are all zero, which have no entries.
    ///
    /// # Errors
    /// [`ValueError`] where the bytes do not fit the new type.
    pub fn visit_rebuilt(
        &self,
        new: &[u8],
        mut visit: impl FnMut(u64, usize),
    ) -> Result<(), ValueError> {
        if self.maps.is_empty() {
            return Ok(());
        }
        for index in 0..self.new.row(new)? {
            walk(
                &self.maps,
                index * self.new.layout().size,
                new,
                &mut |map: MapAt| {
                    let bytes = new.get(map.offset as usize..(map.offset + map.size) as usize);
                    if bytes.is_some_and(|bytes| bytes.iter().any(|byte| *byte != 0)) {
                        visit(map.offset, map.function);
                    }
                },
            )?;
        }
        Ok(())
    }
}
