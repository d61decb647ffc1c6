//! Types as a program declares them: by name, in any order.

use std::collections::BTreeMap;

use super::check::{TypeError, check_name};
use super::descriptor::Descriptor;
use super::tree::{Primitive, Struct, Type, Variants};

/// Declared types by name. Pointers may name types that are declared later.
#[derive(Clone, Debug, Default)]
pub struct Declarations {
    types: BTreeMap<String, Type<String>>,
}

impl Declarations {
    /// None yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// Declares a struct or variants under its own name, and all named types inside it under theirs. Declaring the same
    /// again changes nothing.
    ///
    /// # Errors
    /// An impossible type; a name that is declared otherwise. Nothing is declared then.
    pub fn declare(&mut self, ty: Type<String>) -> Result<(), TypeError> {
        // None is an empty one, and refused as such.
        let name = ty.name().unwrap_or_default().to_owned();
        self.declare_as(&name, ty)
    }

    /// Declares a type that has no name of its own (an array, a pointer, bytes), so that pointers can name it.
    ///
    /// # Errors
    /// As [`Declarations::declare`]; also a name other than its own for a struct or variants, and a primitive's name.
    pub fn declare_as(&mut self, name: &str, mut ty: Type<String>) -> Result<(), TypeError> {
        check_name(name)?;
        ty.normalize();
        ty.layout()?;
        let conflict = || TypeError::Conflict { name: name.into() };
        if ty.name().is_some_and(|own| own != name) || Primitive::from_name(name).is_some() {
            return Err(conflict());
        }
        let mut found = BTreeMap::new();
        named(&ty, &mut found)?;
        if ty.name().is_none() {
            found.insert(name.into(), ty);
        }
        for (name, ty) in &found {
            if self.types.get(name).is_some_and(|known| known != ty) {
                return Err(TypeError::Conflict { name: name.clone() });
            }
        }
        self.types.extend(found);
        Ok(())
    }

    /// The declared type with this name, or the primitive.
    pub fn declared(&self, name: &str) -> Option<Type<String>> {
        let primitive = || Primitive::from_name(name).map(Type::Primitive);
        self.types.get(name).cloned().or_else(primitive)
    }

    /// Names of the declared types.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.types.keys().map(String::as_str)
    }

    /// The complete descriptor of the type with this name.
    ///
    /// # Errors
    /// [`TypeError::Undeclared`] where it, or a type that it can reach, is not declared.
    pub fn resolve(&self, name: &str) -> Result<Descriptor, TypeError> {
        Descriptor::close(name.to_owned(), |wanted, referrer| {
            self.declared(wanted).ok_or_else(|| TypeError::Undeclared {
                name: wanted.clone(),
                referrer: referrer.map_or_else(|| wanted.clone(), String::clone),
            })
        })
    }
}

/// All structs and variants in `ty`, by name.
fn named(ty: &Type<String>, found: &mut BTreeMap<String, Type<String>>) -> Result<(), TypeError> {
    let fields: Vec<&Type<String>> = match ty {
        Type::Array { element, .. } => vec![element],
        Type::Struct(Struct { fields, .. }) => fields.iter().map(|field| &field.ty).collect(),
        Type::Variants(Variants { cases, .. }) => cases
            .iter()
            .flat_map(|case| case.fields.iter().map(|field| &field.ty))
            .collect(),
        Type::Primitive(_)
        | Type::Pointer { .. }
        | Type::Opaque { .. }
        | Type::Volatile { .. }
        | Type::Reserved { .. } => vec![],
    };
    for field in fields {
        named(field, found)?;
    }
    if let Some(name) = ty.name() {
        if Primitive::from_name(name).is_some() {
            return Err(TypeError::Conflict { name: name.into() });
        }
        match found.insert(name.into(), ty.clone()) {
            Some(other) if other != *ty => return Err(TypeError::Conflict { name: name.into() }),
            _ => {}
        }
    }
    Ok(())
}
