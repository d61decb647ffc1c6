//! Templates of `durum.hpp`, whose types are called what the compiler calls them: with all arguments, namespaces and
//! all. No name in one follows a type that changes, so in a migration they are known by the template alone; what is in
//! them is compared field by field, as everything is.

use std::borrow::Cow;

use super::Rules;
use crate::content::CELL;
use crate::types::{Descriptor, Type};

/// How the names of maps begin, and of what is in them.
pub(super) const MAP: &str = "N5durum3mapI";
/// How those of vectors begin.
pub(super) const VECTOR: &str = "N5durum6vectorI";
/// What strings are called.
pub(super) const STRING: &str = "N5durum6stringE";

/// Begins and ends of names, with the arguments between them.
const TEMPLATES: [(&str, &str); 5] = [
    (MAP, "E4nodeE"),
    (MAP, "E10value_typeE"),
    (MAP, "EE"),
    (VECTOR, "EE"),
    (CELL, "EE"),
];

/// Which template a type is of, if it is of one.
pub(super) fn template(name: &str) -> Option<usize> {
    let is_of = |(begin, end): &(&str, &str)| {
        let rest = name.strip_prefix(begin);
        rest.is_some_and(|rest| rest.ends_with(end))
    };
    TEMPLATES.iter().position(is_of)
}

/// Whether a type can be what another one was, as both are of one template. Entries of a map lie as its keys compare,
/// which the arguments say: so a map with others has to be built anew.
pub(super) fn can_be(rules: &Rules, was: &str, is: &str) -> bool {
    template(was).is_some_and(|of| template(is) == Some(of))
        && (!was.starts_with(MAP) || rules.builds(is))
}

/// Whether both are maps, or parts of such.
pub(super) fn is_map(was: &str, is: &str) -> bool {
    was.starts_with(MAP) && template(is).is_some() && template(is) == template(was)
}

/// A type without the arguments of templates, and whether it had any.
pub(super) fn without_arguments(ty: &Type<usize>) -> Cow<'_, Type<usize>> {
    match ty {
        Type::Struct(it) => {
            let mut it = it.clone();
            if let Some((begin, end)) = template(&it.name).and_then(|of| TEMPLATES.get(of)) {
                it.name = format!("{begin}{end}");
            }
            for field in &mut it.fields {
                field.ty = without_arguments(&field.ty).into_owned();
            }
            Cow::Owned(Type::Struct(it))
        }
        Type::Array { element, count } => Cow::Owned(Type::Array {
            element: Box::new(without_arguments(element).into_owned()),
            count: count.clone(),
        }),
        _ => Cow::Borrowed(ty),
    }
}

/// Whether a type of a template is anywhere in a descriptor.
pub(super) fn has_templates(descriptor: &Descriptor) -> bool {
    fn is_one(ty: &Type<usize>) -> bool {
        match ty {
            Type::Struct(it) => {
                template(&it.name).is_some() || it.fields.iter().any(|field| is_one(&field.ty))
            }
            Type::Array { element, .. } => is_one(element),
            _ => false,
        }
    }
    (0..descriptor.lines()).any(|line| descriptor.line(line).is_some_and(is_one))
}

/// The id that a type would have if templates had no arguments.
pub(super) fn id_without_arguments(of: &Descriptor) -> Option<u64> {
    let lines = |line: &usize, _: Option<&usize>| {
        Ok(without_arguments(of.line(*line).unwrap_or(of.root())).into_owned())
    };
    Some(Descriptor::close(0, lines).ok()?.id())
}

#[cfg(test)]
mod tests {
    use super::template;

    #[test]
    fn templates_are_known_by_what_is_around_their_arguments() {
        for (one, other) in [
            (
                "N5durum3mapI3daymSt4lessIvEEE",
                "N5durum3mapIttSt4lessIvEEE",
            ),
            (
                "N5durum3mapI3daymSt4lessIvEE4nodeE",
                "N5durum3mapIN6before3dayES2_St4lessIvEE4nodeE",
            ),
            ("N5durum6vectorI4taskEE", "N5durum6vectorIN6before4taskEEE"),
            ("N5durum6detail4cellIcEE", "N5durum6detail4cellI4taskEE"),
        ] {
            assert!(template(one).is_some(), "{one}");
            assert_eq!(template(one), template(other), "{one} {other}");
        }
        let map = template("N5durum3mapI3daymSt4lessIvEEE");
        for other in [
            // The last argument is called as a part of a map is.
            "N5durum3mapI3daymN4mine4nodeEEE",
            "N5durum3mapI3daymN4mineI1xE4nodeEEE",
        ] {
            assert_eq!(template(other), map, "{other}");
        }
        for other in [
            "N5durum3mapI3daymSt4lessIvEE4nodeE",
            "N5durum6stringE",
            "N5durum3mapI",
        ] {
            assert_ne!(template(other), map, "{other}");
        }
        assert_eq!(template("N5durum6stringE"), None);
    }
}
