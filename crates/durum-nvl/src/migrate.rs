//! A heap whose types have changed, made anew under those that the program has now (`docs/how-to/change-types.md`).
//!
//! Pointers in a heap lead to anything: allocations say their types themselves. So types are found by names, among all
//! that the descriptors of the program's root, and of what it says besides, lead to. What a pointer leads to says the
//! program's own descriptor of the element that it lies in.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use durum::StoreError;
use durum::migration::{ByProgram, Make, MigrateOptions, MigrateReport, NewHeap, NewTypes};
use durum_format::migrate::{MadeBy, Rule, Rules, Source};
use durum_format::types::{Declarations, Descriptor, Field, Struct, Type};

use crate::layout::{HEAP_TYPE, PREFIX};
use crate::open::resolve;
use crate::open_error::OpenError;
use crate::types::{Head, allocation, convert, proxy, short_name};

/// What becomes of a type. Descriptors are those of compiled code.
pub struct ChangedType<'m> {
    /// What the heap calls it; what `was` is called, without.
    pub name: Option<&'m str>,
    /// What it was.
    pub was: Option<&'m str>,
    /// What it becomes.
    pub now: &'m str,
    /// Makes elements, by old addresses, of zeros.
    pub make: Option<Make<'m>>,
}

impl std::fmt::Debug for ChangedType<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ChangedType")
            .field("name", &self.name)
            .field("was", &self.was)
            .field("now", &self.now)
            .finish_non_exhaustive()
    }
}

/// What becomes of a field.
#[derive(Clone, Copy, Debug)]
pub struct ChangedField<'m> {
    /// Its type's name, as the heap has it.
    pub ty: &'m str,
    /// Its name: that of the new field, or of the old one, which is forgotten.
    pub name: &'m str,
    /// Where it comes from.
    pub from: Origin<'m>,
}

/// Where a field comes from.
#[derive(Clone, Copy, Debug)]
pub enum Origin<'m> {
    /// The old field of this name.
    Field(&'m str),
    /// This value, as in a dump.
    Value(&'m str),
    /// The old field goes though it holds pointers.
    Nowhere,
}

/// How a heap is made anew.
#[derive(Debug)]
pub struct HeapMigration<'m> {
    /// The descriptor of its root.
    pub root: &'m str,
    /// What becomes of types, and what others there are now to which the root does not lead.
    pub types: Vec<ChangedType<'m>>,
    /// What becomes of fields.
    pub fields: Vec<ChangedField<'m>>,
}

/// Makes the heap at `path` anew, which nobody has open, or tells what that would do.
///
/// # Errors
/// What stands in the way, all at once. The heap is what it was.
pub fn migrate(
    path: &Path,
    how: HeapMigration<'_>,
    is_plan: bool,
) -> Result<MigrateReport, OpenError> {
    let (store, pool) = resolve(path);
    let by = by_program(how).map_err(|reason| OpenError::Refused(libc::EINVAL, reason))?;
    let report = by.run(&store, &pool, is_plan).map_err(|error| {
        let error = match error {
            durum::Error::Store(error) => durum::Error::Store(in_words(error)),
            other => other,
        };
        OpenError::of_open(path, error)
    })?;
    let possible = report.ensure_possible(&store);
    possible.map_err(|error| durum::Error::Store(in_words(error)))?;
    Ok(report)
}

/// Bytes at whose multiples elements of a descriptor lie.
///
/// # Errors
/// What is wrong with the descriptor.
pub fn align_of(descriptor: &str) -> Result<u64, String> {
    Head::of(descriptor).map(|head| head.align)
}

/// What stands in the way, by the names of elements: of their allocations the program knows nothing.
fn in_words(mut error: StoreError) -> StoreError {
    if let StoreError::MigrationRefused { reasons, .. } = &mut error {
        for reason in reasons {
            let Some(element) = reason.strip_prefix(PREFIX) else {
                continue;
            };
            let element = match element.contains(".data[]") {
                true => element.replacen(".data[]", "", 1),
                // A pointer into one of them.
                false => element.replacen(".data.", ".", 1),
            };
            *reason = element.replace(" of a nvl ", " of a ");
        }
    }
    error
}

fn by_program(how: HeapMigration<'_>) -> Result<ByProgram<'_>, String> {
    let mut found = Found::default();
    let head = Head::of(how.root)?;
    let root = found.learn(&head)?;
    let mut names = BTreeMap::new();
    for said in &how.types {
        if let (Some(name), Some(was)) = (said.name, said.was) {
            let was = Head::of(was)?;
            names.insert(short_name(&was.element), name.to_owned());
        }
    }
    let mut rules = Rules::default();
    let mut functions = Vec::new();
    for said in how.types {
        let now = Head::of(said.now)?;
        found.learn(&now)?;
        let was = said.was.map(Head::of).transpose()?;
        let Some(name) = (said.name.map(str::to_owned))
            .or_else(|| was.as_ref().map(|was| short_name(&was.element)))
        else {
            if said.make.is_some() {
                return Err("a function makes nothing of no type".to_owned());
            }
            continue;
        };
        let becomes = short_name(&now.element);
        becomes_one(&mut rules, &name, &becomes)?;
        becomes_one(
            &mut rules,
            &format!("nvl {name}"),
            &format!("nvl {becomes}"),
        )?;
        let Some(make) = said.make else {
            continue;
        };
        let was = was.ok_or_else(|| {
            format!("a function makes {becomes} of {name}, and nobody says what that was")
        })?;
        let made_of = (
            element(&was.element, &names)?,
            element(&now.element, &BTreeMap::new())?,
        );
        let rule = rules.types.entry(name.clone()).or_default();
        if rule.made_by.is_some() {
            return Err(format!("it is said twice what becomes of {name}"));
        }
        rule.made_by = Some(MadeBy {
            function: functions.len(),
            // Allocations are zero from the start.
            zero_is_value: true,
        });
        rule.made_of = Some(Box::new(made_of));
        functions.push(make);
    }
    for said in how.fields {
        let rule = rules.types.entry(said.ty.to_owned()).or_default();
        let source = match said.from {
            Origin::Field(name) => Source::Field(name.to_owned()),
            Origin::Value(json) => Source::Value(json.to_owned()),
            Origin::Nowhere => {
                rule.forget.insert(said.name.to_owned());
                continue;
            }
        };
        if rule.fields.insert(said.name.to_owned(), source).is_some() {
            return Err(format!(
                "it is said twice where {}.{} comes from",
                said.ty, said.name
            ));
        }
    }
    let heap = NewHeap {
        root,
        checksum: head.checksum,
        elements: found.elements(),
    };
    let heap_type = Descriptor::parse(HEAP_TYPE).map_err(|error| error.to_string())?;
    Ok(ByProgram {
        rules,
        types: NewTypes {
            roots: vec![heap_type],
            others: found.all.into_values().collect(),
            pointers_are_typed: false,
            heap: Some(Arc::new(heap)),
        },
        functions,
        rebuilds: Vec::new(),
        options: MigrateOptions::default(),
    })
}

fn becomes_one(rules: &mut Rules, was: &str, now: &str) -> Result<(), String> {
    let rule: &mut Rule = rules.types.entry(was.to_owned()).or_default();
    match &rule.now {
        Some(known) if known != now => Err(format!("it is said twice what becomes of {was}")),
        _ => {
            rule.now = Some(now.to_owned());
            Ok(())
        }
    }
}

/// The types of allocations that the program has now, by their names.
#[derive(Default)]
struct Found {
    all: BTreeMap<String, Descriptor>,
    /// What their elements are for the program, by the ids of allocations; `None` where it has several for one.
    elements: BTreeMap<u64, Option<Descriptor>>,
}

impl Found {
    /// The allocations of a descriptor, and of what it leads to. That of itself.
    fn learn(&mut self, head: &Head) -> Result<Descriptor, String> {
        let first = allocation(&head.element, head.size, head.align)?;
        self.add(&first, &head.element)?;
        for line in 1..head.element.lines() {
            let element = head.element.target(line);
            let element = element.map_err(|error| error.to_string())?;
            // What cannot be allocated is nowhere in a heap.
            let layout = convert(element.root()).and_then(|it| {
                let layout = it.layout();
                layout.map_err(|error| error.to_string())
            });
            if let Ok(layout) = layout
                && let Ok(whole) = allocation(&element, layout.size, layout.align)
            {
                self.add(&whole, &element)?;
            }
        }
        Ok(first)
    }

    fn add(&mut self, whole: &Descriptor, element: &Descriptor) -> Result<(), String> {
        let name = whole.name().unwrap_or_default().to_owned();
        let known = self.all.entry(name).or_insert_with(|| whole.clone());
        if known.id() != whole.id() {
            let name = short_name(element);
            return Err(format!("the program has two types {name}"));
        }
        let known = self.elements.entry(whole.id());
        known
            .and_modify(|known| {
                let is_same = |is: &Descriptor| is.text() == element.text();
                if !known.as_ref().is_some_and(is_same) {
                    *known = None;
                }
            })
            .or_insert_with(|| Some(element.clone()));
        Ok(())
    }

    fn elements(&self) -> BTreeMap<u64, Descriptor> {
        let known = self.elements.iter();
        let known = known.filter_map(|(id, element)| Some((*id, element.clone()?)));
        known.collect()
    }
}

/// An element as a part of an allocation, under the names that the heap has.
fn element(of: &Descriptor, names: &BTreeMap<String, String>) -> Result<Descriptor, String> {
    let text = |error: durum_format::types::TypeError| error.to_string();
    let element = renamed(convert(of.root())?, names);
    let Some(name) = element.name().map(str::to_owned) else {
        return Err(format!(
            "a function makes structs, and {} is none",
            short_name(of)
        ));
    };
    let mut declarations: Declarations = proxy().map_err(text)?;
    declarations.declare(element).map_err(text)?;
    declarations.resolve(&name).map_err(text)
}

fn renamed(ty: Type<String>, names: &BTreeMap<String, String>) -> Type<String> {
    match ty {
        Type::Struct(it) => {
            let fields = it.fields.into_iter().map(|field| Field {
                ty: renamed(field.ty, names),
                ..field
            });
            Type::Struct(Struct {
                name: names.get(&it.name).cloned().unwrap_or(it.name),
                fields: fields.collect(),
                ..it
            })
        }
        Type::Array { element, count } => renamed(*element, names).array(count),
        other => other,
    }
}
