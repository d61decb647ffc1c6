//! Types of allocations in heaps of NVL-C. Where no pointer says what it leads to, they are found by their names; those
//! of arrays, whose names have what is in them, by what they are.

use std::collections::BTreeMap;

use super::{Refusal, Rules};
use crate::nvl;
use crate::types::{Descriptor, Struct, Type};

/// Whether an allocation's type, which has the name of an array, may become one of another such name.
pub(super) fn is_of_array(was: &str, is: &str) -> bool {
    let is_it = |name: &str| {
        let element = name.strip_prefix(nvl::PREFIX);
        element.is_some_and(|element| element.starts_with('[') || element.starts_with("type "))
    };
    is_it(was) && is_it(is)
}

/// What allocations of arrays become: those of as many elements, whose structs are the ones that these have become.
pub(super) fn partner<'d>(
    old: &Descriptor,
    others: &'d [Descriptor],
    rules: &Rules,
) -> Option<&'d Descriptor> {
    let was = nvl::element(old)?;
    let is_it = |new: &&Descriptor| {
        matches!(was, Type::Array { .. })
            && nvl::element(new).is_some_and(|is| becomes(was, is, rules))
    };
    others.iter().find(is_it)
}

fn becomes(was: &Type<usize>, is: &Type<usize>, rules: &Rules) -> bool {
    match (was, is) {
        (
            Type::Array { element, count },
            Type::Array {
                element: is,
                count: has,
            },
        ) => count == has && becomes(element, is, rules),
        (Type::Struct(was), Type::Struct(is)) => now(&was.name, rules) == is.name,
        _ => without_targets(was) == without_targets(is),
    }
}

/// What a struct is called now.
fn now<'n>(was: &'n str, rules: &'n Rules) -> &'n str {
    let rule = rules.types.get(was);
    let now = rule.and_then(|rule| rule.now.as_deref());
    now.unwrap_or(was)
}

/// What keeps allocations from staying what they are of which the program says nothing: a struct in them that it has
/// otherwise.
pub(super) fn changed(old: &Descriptor, others: &[Descriptor], rules: &Rules) -> Option<Refusal> {
    let element = nvl::element(old)?;
    let mut known = BTreeMap::new();
    for other in others.iter().filter_map(nvl::element) {
        visit(other, &mut |it| {
            known.insert(it.name.clone(), Type::Struct(it.clone()));
        });
    }
    let mut found = None;
    visit(element, &mut |it| {
        let name = now(&it.name, rules);
        let is_other = known.get(name).is_some_and(|is| {
            let was = Type::Struct(it.clone());
            name != it.name || without_targets(&was) != without_targets(is)
        });
        if is_other && found.is_none() {
            let why = format!(
                "the program has another {name}, and does not say that it allocates this; name it among its types"
            );
            found = Some(Refusal::new(old.called(), why));
        }
    });
    found
}

fn visit(ty: &Type<usize>, see: &mut impl FnMut(&Struct<usize>)) {
    match ty {
        Type::Struct(it) => {
            see(it);
            it.fields.iter().for_each(|field| visit(&field.ty, see));
        }
        Type::Array { element, .. } => visit(element, see),
        _ => {}
    }
}

/// Pointers in heaps lead to anything, or to proxies, whichever line that is.
fn without_targets(ty: &Type<usize>) -> Option<Type<()>> {
    let mapped: Result<Type<()>, ()> = ty.map_targets(&mut |_: &usize| Ok(()));
    mapped.ok()
}
