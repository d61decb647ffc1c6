//! From two types to what has to be done with each object.

use std::sync::Arc;

use super::partners::{became, cases, named, sources};
use super::parts::{Became, Conversion, Part, Tail, Taken, Target, joined};
use super::rebuilt::{
    becomes_another, changes_keys, compares_addresses, is_rebuilt, keys_change,
    keys_lead_elsewhere, maps,
};
use super::values::{default_of, holds_pointers, is_same, is_zero_at_first, place_of, widened};
use super::{MadeBy, Refusal, Rule, Rules, Source, heaps, templates};
use crate::types::{
    BYTES, Count, Descriptor, Field, PointerAt, Primitive, Renames, Repeats, Step, Struct, Type,
    Variants, all_are_values, compile, value_in_bytes, was_bytes,
};

/// Whether types with this name have keys, which are found by their contents.
fn has_keys(name: &str) -> bool {
    ["PHashMap<", "PBTreeMap<", templates::MAP]
        .iter()
        .any(|begin| name.starts_with(begin))
}

impl Rules {
    pub(super) fn of(&self, ty: &Type<usize>) -> Option<&Rule> {
        self.types.get(ty.name()?)
    }
}

/// How objects of `old` become such of `new`.
pub(super) fn conversion(
    old: Descriptor,
    new: Descriptor,
    rules: &Arc<Rules>,
    renames: &Renames<'_>,
    is_of_map: bool,
) -> Conversion {
    // One that is built anew finds its keys whatever they are.
    let rebuilds = |old: &Descriptor, new: &Descriptor| {
        is_rebuilt(rules, old.root()) || new.name().is_some_and(|now| rules.builds(now))
    };
    let is_of_map = is_of_map && !rebuilds(&old, &new);
    let (mut parts, mut compiler) = (
        Vec::new(),
        Compiler {
            old: &old,
            new: &new,
            rules,
            renames,
            is_of_map,
            refusals: Vec::new(),
            targets: Vec::new(),
            tail: None,
            is_in_array: false,
            is_map_part: false,
        },
    );
    let title = old.called();
    compiler.part(
        (old.root(), 0, &[]),
        (new.root(), 0, &[]),
        &title,
        &mut parts,
    );
    if old.layout().has_tail && compiler.tail.is_none() && old.root().is_open_array() {
        let why = "its elements would be gone";
        compiler.refuse(&title, why.to_owned());
    }
    let maps = maps(rules, &new).unwrap_or_else(|why| {
        compiler.refuse(&title, why);
        Vec::new()
    });
    let Compiler {
        refusals,
        targets,
        tail,
        ..
    } = compiler;
    let is_map = is_of_map || (old.name().is_some_and(has_keys) && !rebuilds(&old, &new));
    Conversion {
        maps,
        parts: joined(parts),
        tail,
        rules: rules.clone(),
        refusals,
        targets,
        is_map,
        old,
        new,
    }
}

struct Compiler<'c> {
    old: &'c Descriptor,
    new: &'c Descriptor,
    rules: &'c Rules,
    renames: &'c Renames<'c>,
    is_of_map: bool,
    refusals: Vec<Refusal>,
    targets: Vec<Target>,
    tail: Option<Tail>,
    is_in_array: bool,
    /// The type whose fields are gone through is a part of a map that begins where its object, or an element does.
    is_map_part: bool,
}

/// A type, where it begins, and the fields that it lies among.
type At<'t> = (&'t Type<usize>, u64, &'t [Field<usize>]);

impl<'c> Compiler<'c> {
    fn refuse(&mut self, path: &str, why: String) {
        self.refusals.push(Refusal::new(path, why));
    }

    fn differ(&mut self, (old, ..): At<'_>, (new, ..): At<'_>, path: &str) {
        let (old, new) = (self.old.short(old), self.new.short(new));
        self.refuse(
            path,
            format!("{old}, now {new}: only the program can say how the one becomes the other"),
        );
    }

    fn part(&mut self, old: At<'c>, new: At<'c>, path: &str, parts: &mut Vec<Part>) {
        let ((from, to), size) = ((old.1, new.1), old.0.layout().map_or(0, |it| it.size));
        match (old.0, new.0) {
            (Type::Primitive(was), Type::Primitive(is)) => match widened(*was, *is) {
                _ if was == is => parts.push(Part::Copy { from, to, size }),
                Some(is_signed) => parts.push(Part::Number {
                    from: (from, was.size()),
                    to: (to, is.size()),
                    is_signed,
                }),
                None if (*was, *is) == (Primitive::F32, Primitive::F64) => {
                    parts.push(Part::Float { from, to });
                }
                None => self.differ(old, new, path),
            },
            (
                Type::Pointer { strength, target },
                Type::Pointer {
                    strength: is,
                    target: leads_to,
                },
            ) if strength == is && (target.is_some() || leads_to.is_none()) => {
                if let (Some(old), Some(new)) = (*target, *leads_to) {
                    let path = format!("{path}->");
                    self.targets.push(Target { old, new, path });
                }
                parts.push(Part::Copy { from, to, size });
            }
            (
                Type::Opaque { size, align },
                Type::Opaque {
                    size: is,
                    align: aligned,
                },
            ) if (size, align) == (is, aligned) => {
                let size = *size;
                parts.push(Part::Copy { from, to, size });
            }
            (Type::Volatile { .. } | Type::Reserved { .. }, Type::Volatile { .. })
            | (Type::Volatile { .. } | Type::Reserved { .. }, Type::Reserved { .. }) => {}
            (Type::Array { .. }, Type::Array { .. }) => self.array(old, new, path, parts),
            (Type::Struct(was), Type::Struct(is)) => {
                if let Some(why) = becomes_another(self.rules, (self.old, old.0), &is.name) {
                    self.refuse(path, why);
                } else if let Some(rule) = self.named(old.0, (&was.name, &is.name, &is.was), path) {
                    self.structure((was, from), (is, to), rule, path, parts);
                } else if let Some(by) = self.rules.of(old.0).and_then(|rule| rule.made_by) {
                    self.made(by, old, new, path, parts);
                }
            }
            (Type::Variants(was), Type::Variants(is)) => {
                if self
                    .named(old.0, (&was.name, &is.name, &is.was), path)
                    .is_some()
                {
                    self.variants((was, from), (is, to), path, parts);
                } else if let Some(by) = self.rules.of(old.0).and_then(|rule| rule.made_by) {
                    self.made(by, old, new, path, parts);
                }
            }
            (Type::Struct(was), Type::Variants(is))
                if was_bytes(was, is) && self.rules.of(old.0).is_none() =>
            {
                self.named(old.0, (&was.name, &is.name, &is.was), path);
                parts.push(Part::Copy { from, to, size });
            }
            _ => match self.rules.of(old.0).and_then(|rule| rule.made_by) {
                Some(by) => self.made(by, old, new, path, parts),
                None if matches!(old.0, Type::Struct(it) if value_in_bytes(it).is_some()) => {
                    let (old, new) = (self.old.short(old.0), self.new.short(new.0));
                    self.refuse(
                        path,
                        format!("{old}, now {new}: {BYTES}; a function makes it"),
                    );
                }
                None => self.differ(old, new, path),
            },
        }
    }

    /// What is said of a type, if its fields are gone through: neither if a function makes it, nor if the new one is
    /// another one's successor.
    fn named(
        &mut self,
        old: &Type<usize>,
        (was, is, formers): (&str, &str, &[String]),
        path: &str,
    ) -> Option<Option<&'c Rule>> {
        let rule = self.rules.of(old);
        if rule.is_some_and(|rule| rule.made_by.is_some()) {
            return None;
        }
        let is_said = rule.is_some_and(|rule| rule.now.as_deref() == Some(is));
        let is_known = || {
            self.renames.can_be(was, is, formers)
                || templates::can_be(self.rules, was, is)
                || heaps::is_of_array(was, is)
        };
        if !is_said && !is_known() {
            let why = match templates::is_map(was, is) {
                true => keys_change(was),
                false => format!("{was}, now {is}, of which nobody says that it was {was}"),
            };
            self.refuse(path, why);
        }
        Some(rule)
    }

    fn made(&mut self, by: MadeBy, old: At<'c>, new: At<'c>, path: &str, parts: &mut Vec<Part>) {
        let (Ok(was), Ok(is)) = (old.0.layout(), new.0.layout()) else {
            return;
        };
        if was.has_tail || is.has_tail {
            let why = "a function makes no type with a tail".to_owned();
            return self.refuse(path, why);
        }
        let expected = self
            .rules
            .of(old.0)
            .and_then(|rule| rule.made_of.as_deref());
        if let Some((takes, makes)) = expected {
            for (ty, of, wanted, what) in [
                (
                    old.0,
                    self.old,
                    takes,
                    "takes another type than the pool has",
                ),
                (
                    new.0,
                    self.new,
                    makes,
                    "makes another type than the one that is wanted there",
                ),
            ] {
                if !is_same((of, ty), (wanted, wanted.root())) {
                    let why = format!("its function {what}, of the name {}", wanted.called());
                    return self.refuse(path, why);
                }
            }
        }
        let (Ok(pointers), Ok(new_pointers)) = (compile(old.0), compile(new.0)) else {
            return;
        };
        self.pair_targets(old.0, new.0, path);
        let checked = (self.is_in_array && !all_are_values(old.0)).then(|| Box::new(old.0.clone()));
        parts.push(Part::Made {
            by,
            from: old.1,
            size: was.size,
            to: new.1,
            to_size: is.size,
            pointers,
            new_pointers,
            checked,
            path: path.to_owned(),
        });
    }

    /// What pointers of fields lead to that have the same names before and after a function.
    fn pair_targets(&mut self, old: &'c Type<usize>, new: &'c Type<usize>, path: &str) {
        match (old, new) {
            (
                Type::Pointer {
                    target: Some(old), ..
                },
                Type::Pointer {
                    target: Some(new), ..
                },
            ) => self.targets.push(Target {
                old: *old,
                new: *new,
                path: format!("{path}->"),
            }),
            (Type::Struct(old), Type::Struct(new)) => {
                let rule = self.rules.types.get(&old.name);
                for (at, field) in old.fields.iter().enumerate() {
                    if let Some(other) = became(at, &old.fields, rule, &new.fields) {
                        let path = format!("{path}.{}", field.name);
                        self.pair_targets(&field.ty, &other.ty, &path);
                    }
                }
            }
            (Type::Variants(old), Type::Variants(new)) => {
                for (case, other) in old.cases.iter().zip(cases(old, new)) {
                    let Some(other) = other else {
                        continue;
                    };
                    for (at, field) in case.fields.iter().enumerate() {
                        if let Some(other) = became(at, &case.fields, None, &other.fields) {
                            let path = format!("{path}({}).{}", case.name, field.name);
                            self.pair_targets(&field.ty, &other.ty, &path);
                        }
                    }
                }
            }
            (Type::Array { element: old, .. }, Type::Array { element: new, .. }) => {
                self.pair_targets(old, new, &format!("{path}[]"));
            }
            _ => {}
        }
    }

    fn array(&mut self, old: At<'c>, new: At<'c>, path: &str, parts: &mut Vec<Part>) {
        let (
            Type::Array { element, count },
            Type::Array {
                element: is,
                count: has,
            },
        ) = (old.0, new.0)
        else {
            return;
        };
        let count = match (count, has) {
            (Count::Fixed(was), Count::Fixed(is_now)) if was == is_now => Repeats::Fixed(*was),
            (Count::Fixed(was), Count::Fixed(is_now))
                if was < is_now && matches!(**element, Type::Primitive(_)) && element == is =>
            {
                Repeats::Fixed(*was)
            }
            (Count::Tail, Count::Tail) => Repeats::Tail,
            (Count::Field(length), Count::Field(_)) => {
                let field = old.2.iter().find(|field| field.name == *length);
                match field.map(|field| (field.offset, &field.ty)) {
                    // A type with such a tail begins where the object does.
                    Some((offset, Type::Primitive(primitive))) => Repeats::Length {
                        offset,
                        width: primitive.size(),
                    },
                    _ => return self.differ(old, new, path),
                }
            }
            _ => return self.differ(old, new, path),
        };
        let (Ok(layout), Ok(is_layout)) = (element.layout(), is.layout()) else {
            return;
        };
        let (stride, to_stride) = (layout.size, is_layout.size);
        let taken = self.taken(old.2, count);
        let mut inner = Vec::new();
        let was_in_array = std::mem::replace(&mut self.is_in_array, true);
        self.part(
            (element, 0, &[]),
            (is, 0, &[]),
            &format!("{path}[]"),
            &mut inner,
        );
        self.is_in_array = was_in_array;
        if !matches!(count, Repeats::Fixed(_)) {
            self.tail = Some(Tail {
                from: old.1,
                stride,
                to: new.1,
                to_stride,
            });
        }
        parts.push(Part::Array {
            from: old.1,
            stride,
            to: new.1,
            to_stride,
            count,
            taken,
            parts: joined(inner),
        });
    }

    /// What says which places of a map's entries are taken, if the array is of these.
    fn taken(&self, fields: &[Field<usize>], count: Repeats) -> Option<Taken> {
        let first = fields.first().filter(|_| self.is_map_part)?;
        match (first.name.as_str(), count) {
            ("tags", Repeats::Fixed(7)) => Some(Taken::Tags),
            ("order", Repeats::Fixed(15)) => Some(Taken::Order),
            _ => None,
        }
    }

    fn structure(
        &mut self,
        (was, from): (&'c Struct<usize>, u64),
        (is, to): (&'c Struct<usize>, u64),
        rule: Option<&'c Rule>,
        path: &str,
        parts: &mut Vec<Part>,
    ) {
        let is_map_part = has_keys(&was.name) && from == 0;
        let outer = std::mem::replace(&mut self.is_map_part, is_map_part);
        self.fields((&was.fields, from), (&is.fields, to), rule, path, parts);
        self.is_map_part = outer;
        let place = |name| was.fields.iter().position(|field| field.name == name);
        if rule.is_some_and(|rule| rule.rebuilt.is_some()) || self.rules.builds(&is.name) {
            return;
        }
        let is_slot = has_keys(&was.name);
        let has_value = || place("value").or(place("second")).is_some();
        let key = place("key").or(place("first"));
        let Some(at) = key.filter(|_| is_slot || (self.is_of_map && has_value())) else {
            return;
        };
        let Some(key) = was.fields.get(at) else {
            return;
        };
        let other = became(at, &was.fields, rule, &is.fields);
        let stays = other.is_some_and(|other| is_same((self.old, &key.ty), (self.new, &other.ty)));
        let changes = changes_keys(self.rules, self.old, &key.ty)
            || other.is_some_and(|other| changes_keys(self.rules, self.new, &other.ty));
        if !stays || changes {
            self.refuse(&format!("{path}.{}", key.name), keys_change(&was.name));
        } else if was.name.starts_with(templates::MAP) && compares_addresses(self.old, &key.ty) {
            self.refuse(
                &format!("{path}.{}", key.name),
                keys_lead_elsewhere(&was.name),
            );
        }
    }

    fn fields(
        &mut self,
        (old, from): (&'c [Field<usize>], u64),
        (new, to): (&'c [Field<usize>], u64),
        rule: Option<&'c Rule>,
        path: &str,
        parts: &mut Vec<Part>,
    ) {
        let sources = sources(old, new, rule);
        for (field, source) in new.iter().zip(&sources) {
            let path = format!("{path}.{}", field.name);
            let at = to + field.offset;
            let said = rule.and_then(|rule| rule.fields.get(&field.name));
            match (said, source.and_then(|from| old.get(from))) {
                (Some(Source::Bytes(number, bytes)), _) => {
                    self.number((field, at), *number, bytes, &path, parts);
                }
                (Some(Source::Value(json)), _) => self.value((field, at), json, &path, parts),
                (_, Some(was)) => self.part(
                    (&was.ty, from + was.offset, old),
                    (&field.ty, at, new),
                    &path,
                    parts,
                ),
                (Some(Source::Field(name)), None) => self.no_source(old, name, &path),
                (None, None) => {
                    let mut names = field.was.iter().chain([&field.name]);
                    // What was there has become another field: nobody says that nothing was meant here.
                    match names.find(|name| named(old, name).is_some()) {
                        Some(name) => self.no_source(old, name, &path),
                        None if is_zero_at_first(field) => {}
                        None => self.refuse(&path, "it is new, and has no default".to_owned()),
                    }
                }
            }
        }
        for (at, field) in old.iter().enumerate() {
            if sources.contains(&Some(at))
                || rule.is_some_and(|rule| rule.forget.contains(&field.name))
            {
                continue;
            }
            let pointers: Vec<Step<PointerAt>> = compile(&field.ty).unwrap_or_default();
            if !pointers.is_empty() {
                parts.push(Part::Gone {
                    from: from + field.offset,
                    pointers,
                    path: format!("{path}.{}", field.name),
                });
            }
        }
        for name in rule.iter().flat_map(|rule| &rule.forget) {
            if !old.iter().any(|field| field.name == *name) {
                let why = "there was no such field to be forgotten".to_owned();
                self.refuse(&format!("{path}.{name}"), why);
            }
        }
    }

    fn no_source(&mut self, old: &[Field<usize>], name: &str, path: &str) {
        let why = match named(old, name) {
            Some(_) => format!("the field {name} becomes another one"),
            None => format!("there was no field {name}"),
        };
        self.refuse(path, why);
    }

    fn number(
        &mut self,
        (field, to): (&Field<usize>, u64),
        number: Primitive,
        bytes: &[u8],
        path: &str,
        parts: &mut Vec<Part>,
    ) {
        if let Some(at) = place_of(&field.ty, number)
            && bytes.len() as u64 == number.size()
        {
            let bytes = bytes.to_vec();
            return parts.push(Part::Bytes { to: to + at, bytes });
        }
        let is = self.new.short(&field.ty);
        let number = number.name();
        self.refuse(path, format!("its default is a {number}, and it is {is}"));
    }

    fn value(
        &mut self,
        (field, to): (&Field<usize>, u64),
        json: &str,
        path: &str,
        parts: &mut Vec<Part>,
    ) {
        match default_of(&field.ty, json) {
            Ok(bytes) => parts.push(Part::Bytes { to, bytes }),
            Err(why) => self.refuse(path, format!("its default: {why}")),
        }
    }

    fn variants(
        &mut self,
        (was, from): (&'c Variants<usize>, u64),
        (is, to): (&'c Variants<usize>, u64),
        path: &str,
        parts: &mut Vec<Part>,
    ) {
        let mut became = Vec::new();
        let mut has_pointers = false;
        for (case, other) in was.cases.iter().zip(cases(was, is)) {
            let path = format!("{path}({})", case.name);
            has_pointers |= case.fields.iter().any(|field| holds_pointers(&field.ty));
            let case_became = match other {
                None => Became::Nothing(path),
                Some(other) => {
                    let mut inner = Vec::new();
                    self.fields(
                        (&case.fields, from),
                        (&other.fields, to),
                        None,
                        &path,
                        &mut inner,
                    );
                    Became::Case(other.discriminant, joined(inner))
                }
            };
            became.push((case.discriminant, case_became));
        }
        parts.push(Part::Variants {
            from,
            size: was.size,
            tag: (from + was.tag_offset, was.tag_width),
            new_tag: (to + is.tag_offset, is.tag_width),
            cases: became,
            has_pointers,
        });
    }
}
