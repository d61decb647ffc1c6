//! New types, made of old ones by rules alone.
//!
//! A type keeps its places but where something in it has other bytes than before: then its fields lie as C lays them
//! out, one behind the other, each at a multiple of its alignment.

use std::collections::BTreeMap;

use super::{NewLayout, Refusal, Rule, Rules, Source};
use crate::types::{
    Count, Descriptor, Field, Layout, Primitive, Strength, Struct, Type, TypeError, Variants,
    parse_line,
};

/// Types by the ids of the old ones.
type Known = BTreeMap<u64, Type<u64>>;

/// What becomes of each of these types, by its id; and what stands in the way.
pub(super) fn retyped(
    objects: &[Descriptor],
    rules: &Rules,
) -> (BTreeMap<u64, Descriptor>, Vec<Refusal>) {
    let mut known = Known::new();
    for object in objects {
        for line in 0..object.lines() {
            let Ok(target) = object.target(line) else {
                continue;
            };
            let id = |line: &usize| object.target(*line).map(|target| target.id());
            let with_ids = object
                .line(line)
                .map(|ty| ty.map_targets(&mut |line| id(line)));
            if let Some(Ok(ty)) = with_ids {
                known.insert(target.id(), ty);
            }
        }
    }
    let mut retyping = Retyping {
        known: &known,
        rules,
        refusals: Vec::new(),
    };
    let new: Known = known
        .iter()
        .map(|(id, ty)| (*id, retyping.ty(ty)))
        .collect();
    for name in rules.types.keys() {
        if !known.values().any(|ty| names_in(ty, name)) {
            let why = "no object of the pool has such a type, nor leads to one".to_owned();
            retyping.refusals.push(Refusal::new(name, why));
        }
    }
    let mut all = BTreeMap::new();
    for object in objects {
        let made = Descriptor::close(object.id(), |id, _| {
            let missing = TypeError::Undeclared {
                name: format!("{id:#x}"),
                referrer: object.title().to_owned(),
            };
            new.get(id).cloned().ok_or(missing)
        });
        match made {
            Ok(made) => _ = all.insert(object.id(), made),
            Err(error) => retyping
                .refusals
                .push(Refusal::new(object.title(), error.to_string())),
        }
    }
    let mut refusals = retyping.refusals;
    refusals.sort();
    refusals.dedup();
    (all, refusals)
}

fn names_in(ty: &Type<u64>, name: &str) -> bool {
    let in_fields = |fields: &[Field<u64>]| fields.iter().any(|field| names_in(&field.ty, name));
    ty.name() == Some(name)
        || match ty {
            Type::Struct(it) => in_fields(&it.fields),
            Type::Variants(it) => it.cases.iter().any(|case| in_fields(&case.fields)),
            Type::Array { element, .. } => names_in(element, name),
            _ => false,
        }
}

struct Retyping<'r> {
    known: &'r Known,
    rules: &'r Rules,
    refusals: Vec<Refusal>,
}

/// Bytes and alignment, where a type with a tail has those before it.
fn layout(ty: &Type<u64>) -> Layout {
    // An array whose length is a field is none without that.
    let alone = |ty: &Type<u64>| match ty {
        Type::Array { element, .. } => {
            let align = element.layout().map_or(1, |layout| layout.align);
            Layout {
                size: 0,
                align,
                has_tail: true,
            }
        }
        _ => Layout {
            size: 0,
            align: 1,
            has_tail: false,
        },
    };
    ty.layout().unwrap_or_else(|_| alone(ty))
}

impl Retyping<'_> {
    fn refuse(&mut self, path: &str, why: impl Into<String>) {
        self.refusals.push(Refusal::new(path, why));
    }

    fn ty(&mut self, ty: &Type<u64>) -> Type<u64> {
        match ty {
            Type::Array { element, count } => self.ty(element).array(count.clone()),
            Type::Struct(it) => Type::Struct(self.structure(it)),
            Type::Variants(it) => Type::Variants(self.variants(it)),
            other => other.clone(),
        }
    }

    /// Names of generic types have others in them.
    fn name(&self, old: &str) -> String {
        if let Some(now) = self.rules.types.get(old).and_then(|rule| rule.now.as_ref()) {
            return now.clone();
        }
        let is_of_word = |char: char| char.is_alphanumeric() || matches!(char, '_' | ':');
        let mut name = String::new();
        let mut word = String::new();
        for char in old.chars().chain([' ']) {
            if is_of_word(char) {
                word.push(char);
                continue;
            }
            let rule = self.rules.types.get(&word);
            let now = rule.and_then(|rule| rule.now.as_ref());
            name.push_str(now.unwrap_or(&word));
            word.clear();
            name.push(char);
        }
        name.pop();
        name
    }

    fn structure(&mut self, old: &Struct<u64>) -> Struct<u64> {
        let rule = self.rules.types.get(&old.name).cloned().unwrap_or_default();
        let mut new = Struct {
            name: self.name(&old.name),
            ..old.clone()
        };
        if let Some(layout) = &rule.layout {
            return self.laid_out(old, new, &rule, layout);
        }
        let mut has_moved = false;
        for (field, was) in new.fields.iter_mut().zip(&old.fields) {
            field.ty = self.ty(&was.ty);
            has_moved |= layout(&field.ty) != layout(&was.ty);
        }
        if has_moved && place(&mut new, old.align, None).is_none() {
            self.refuse(&old.name, TOO_LARGE);
        }
        new
    }

    /// A struct with the fields that a rule lists.
    fn laid_out(
        &mut self,
        old: &Struct<u64>,
        mut new: Struct<u64>,
        rule: &Rule,
        layout: &NewLayout,
    ) -> Struct<u64> {
        new.fields.clear();
        for (name, ty) in &layout.fields {
            let from = match rule.fields.get(name) {
                Some(Source::Field(from)) => from,
                _ => name,
            };
            let path = format!("{}.{name}", old.name);
            let was = old.fields.iter().find(|field| field.name == *from);
            let ty = match (ty, was) {
                (Some(text), _) => self.named(text).map_err(|why| self.refuse(&path, why)).ok(),
                (None, Some(was)) => Some(self.ty(&was.ty)),
                (None, None) => {
                    let why = "there was no such field, so its type has to be said";
                    self.refuse(&path, why);
                    None
                }
            };
            // An array is as long as a field says that may have another name now.
            let ty = ty.map(|ty| match ty {
                Type::Array {
                    element,
                    count: Count::Field(length),
                } => {
                    let is_it = |(_, source): &(&String, &Source)| {
                        matches!(source, Source::Field(from) if *from == length)
                    };
                    let now = rule.fields.iter().find(is_it).map(|(now, _)| now.clone());
                    Type::Array {
                        element,
                        count: Count::Field(now.unwrap_or(length)),
                    }
                }
                ty => ty,
            });
            new.fields
                .extend(ty.map(|ty| Field::new(name.as_str(), 0, ty)));
        }
        if place(&mut new, layout.align.unwrap_or(1), layout.size).is_none() {
            self.refuse(&old.name, TOO_LARGE);
        }
        new
    }

    fn variants(&mut self, old: &Variants<u64>) -> Variants<u64> {
        let mut new = Variants {
            name: self.name(&old.name),
            ..old.clone()
        };
        for (case, was) in new.cases.iter_mut().zip(&old.cases) {
            for (field, was) in case.fields.iter_mut().zip(&was.fields) {
                field.ty = self.ty(&was.ty);
                if layout(&field.ty) != layout(&was.ty) {
                    let path = format!("{}.{}", old.name, field.name);
                    let why = "what is in a case gets other bytes: only a program can say where it lies then";
                    self.refusals.push(Refusal::new(path, why));
                }
            }
        }
        new
    }

    /// A type as a map names it: `u64`, `[i8;16]`, `*task`, `~task`, `*any`, or a struct by its old name.
    fn named(&mut self, text: &str) -> Result<Type<u64>, String> {
        let text = text.trim();
        let pointers = [('*', Strength::Strong), ('~', Strength::Weak)];
        for (begin, strength) in pointers {
            let Some(name) = text.strip_prefix(begin) else {
                continue;
            };
            if name == "any" {
                let target = None;
                return Ok(Type::Pointer { strength, target });
            }
            let mut found = self.known.iter().filter(|(_, ty)| ty.name() == Some(name));
            return match (found.next(), found.next()) {
                (Some((id, _)), None) => Ok(Type::Pointer {
                    strength,
                    target: Some(*id),
                }),
                (None, _) => Err(format!(
                    "no object is a {name}, nor leads to one; say `*any`"
                )),
                _ => Err(format!(
                    "there are several types with the name {name}; say `*any`"
                )),
            };
        }
        if let Some(inner) = text.strip_prefix('[').and_then(|it| it.strip_suffix(']'))
            && let Some((element, count)) = inner.rsplit_once(';')
        {
            let element = self.named(element)?;
            let count = match count.trim() {
                "tail" => Count::Tail,
                number => Count::Fixed(
                    number
                        .parse()
                        .map_err(|_| format!("{number} is no number of elements"))?,
                ),
            };
            return Ok(element.array(count));
        }
        if let Some(primitive) = Primitive::from_name(text) {
            return Ok(Type::Primitive(primitive));
        }
        let is_plain = ["opaque(", "volatile(", "reserved("];
        if is_plain.iter().any(|begin| text.starts_with(begin)) {
            let parsed = parse_line(text, 1).map_err(|error| error.to_string())?;
            let none = &mut |_: &usize| Err("there are no pointers".to_owned());
            return parsed.map_targets(none);
        }
        let mut found = Vec::new();
        self.known
            .values()
            .for_each(|ty| structs(ty, text, &mut found));
        found.dedup();
        match found.as_slice() {
            [one] => Ok(self.ty(&one.clone())),
            [] => Err(format!("there is no type {text}")),
            _ => Err(format!("there are several types with the name {text}")),
        }
    }
}

fn structs(ty: &Type<u64>, name: &str, found: &mut Vec<Type<u64>>) {
    if ty.name() == Some(name) && !found.contains(ty) {
        found.push(ty.clone());
    }
    match ty {
        Type::Struct(it) => it
            .fields
            .iter()
            .for_each(|field| structs(&field.ty, name, found)),
        Type::Array { element, .. } => structs(element, name, found),
        Type::Variants(it) => {
            let fields = it.cases.iter().flat_map(|case| &case.fields);
            fields.for_each(|field| structs(&field.ty, name, found));
        }
        _ => {}
    }
}

const TOO_LARGE: &str = "it gets more bytes than there are";

/// Gives fields their places, one behind the other; `None` where there are not so many bytes.
fn place(new: &mut Struct<u64>, align: u64, size: Option<u64>) -> Option<()> {
    let (mut end, mut whole) = (0_u64, align.max(1));
    for field in &mut new.fields {
        let Layout { size, align, .. } = layout(&field.ty);
        field.offset = end.checked_next_multiple_of(align.max(1))?;
        end = field.offset.checked_add(size)?;
        whole = whole.max(align);
    }
    let size = end.max(size.unwrap_or(0)).checked_next_multiple_of(whole)?;
    (new.align, new.size) = (whole, size);
    Some(())
}
