//! Maps whose keys may change, because the program builds them anew: where they are in new objects.

use std::collections::{BTreeMap, BTreeSet};

use super::parts::{Conversion, MapAt};
use super::{Rebuilt, Rules};
use crate::types::{Step, Type, ValueError, compile_by, walk};

impl Rules {
    /// The functions that build maps anew, in their order.
    pub fn rebuilt(&self) -> BTreeSet<usize> {
        let rules = self.0.values();
        let functions = rules.filter_map(|rule| match rule.rebuilt {
            Some(Rebuilt::Map(function)) => Some(function),
            _ => None,
        });
        functions.collect()
    }
}

/// What is in the way where nobody builds a map anew.
pub(super) fn keys_change(part: &str) -> String {
    let cure = match part.starts_with("PHashMap<") || part.starts_with("PBTreeMap<") {
        true => {
            "only the program builds it anew, by its `Hash` or `Ord`: `P::migrate`, with `Migration::rebuild`"
        }
        false => "the program has to take its entries out before",
    };
    format!("the keys of a map change: it finds them no more; {cure}")
}

/// Whether an old type is a map that is built anew, or a row of parts of one.
pub(super) fn is_rebuilt(rules: &Rules, old: &Type<usize>) -> bool {
    match old {
        Type::Array { element, .. } => is_rebuilt(rules, element),
        ty => rules.of(ty).is_some_and(|rule| rule.rebuilt.is_some()),
    }
}

/// Where such maps are in a new type.
pub(super) fn maps(rules: &Rules, new: &Type<usize>) -> Vec<Step<MapAt>> {
    let mut functions = BTreeMap::new();
    for (was, rule) in &rules.0 {
        if let Some(Rebuilt::Map(function)) = rule.rebuilt {
            functions.insert(rule.now.as_ref().unwrap_or(was).as_str(), function);
        }
    }
    if functions.is_empty() {
        return Vec::new();
    }
    let found = compile_by(new, &|ty, offset| {
        let Type::Struct(it) = ty else {
            return None;
        };
        let function = functions.get(it.name.as_str())?;
        Some(MapAt {
            offset,
            size: it.size,
            function: *function,
        })
    });
    found.unwrap_or_default()
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
