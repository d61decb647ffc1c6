//! Parts of objects, and the way from one to those in it.

use super::memory::Memory;
use super::shape::{self, Shape};
use super::{At, ListKind, Object, Objects};
use crate::nvl;
use crate::types::{Case, Count, Descriptor, Field, Primitive, Struct, Type, Variants};

/// Objects that a program of C++ has put in a pool, at most.
const OBJECTS_MAX: u64 = 1024;

/// A value: an object or a part of one.
#[derive(Clone, Copy, Debug)]
pub(super) struct Place<'d> {
    /// The descriptor in whose text its type stands.
    pub(super) of: &'d Descriptor,
    pub(super) ty: &'d Type<usize>,
    /// How many of that type lie in a row here; 1 but for an object that was allocated as several.
    row: u64,
    pub(super) address: u64,
    /// Where its object ends.
    pub(super) end: u64,
    /// The fields of the struct that it lies in, and where that begins.
    siblings: (&'d [Field<usize>], u64),
}

/// Elements in a row.
#[derive(Clone, Debug)]
pub(super) struct Elements<'d> {
    pub(super) kind: ListKind,
    pub(super) count: u64,
    /// Bytes from one to the next.
    pub(super) stride: u64,
    /// The first one.
    first: Place<'d>,
    pub(super) is_text: bool,
}

impl<'d> Elements<'d> {
    pub(super) fn at(&self, index: u64) -> Place<'d> {
        let address = self.first.address + index * self.stride;
        Place {
            address,
            ..self.first
        }
    }

    pub(super) fn element(&self) -> &'d Type<usize> {
        self.first.ty
    }
}

impl<'d> Place<'d> {
    /// A whole object.
    pub(super) fn of_object(object: &Object, descriptor: &'d Descriptor) -> Result<Self, String> {
        let layout = descriptor.layout();
        let size = object.size_by(descriptor);
        if size < layout.size {
            return Err(format!(
                "the object has {size} bytes, and its type {}",
                layout.size
            ));
        }
        let row = match layout.has_tail || layout.size == 0 {
            true => 1,
            false => size / layout.size,
        };
        Ok(Self {
            of: descriptor,
            ty: descriptor.root(),
            row,
            address: object.start,
            end: object.start.saturating_add(size),
            siblings: (&[], 0),
        })
    }

    /// An object as the row of elements that a vector has allocated, which knows itself how many it has.
    fn of_row(object: &Object, descriptor: &'d Descriptor) -> Result<Self, String> {
        let whole = Object {
            is_element: false,
            ..*object
        };
        Self::of_object(&whole, descriptor)
    }

    /// What type it is, where it is one value.
    pub(super) fn shape(&self) -> Shape<'d> {
        match self.row {
            1 => shape::shape(self.ty, self.of),
            _ => Shape::Plain,
        }
    }

    /// A field of it.
    pub(super) fn field(&self, field: &'d Field<usize>) -> Self {
        let siblings: &[Field<usize>] = match self.ty {
            Type::Struct(Struct { fields, .. }) => fields,
            _ => &[],
        };
        Self {
            ty: &field.ty,
            row: 1,
            address: self.address.saturating_add(field.offset),
            siblings: (siblings, self.address),
            ..*self
        }
    }

    pub(super) fn part(&self, ty: &'d Type<usize>, address: u64) -> Self {
        Self {
            ty,
            row: 1,
            address,
            siblings: (&[], 0),
            ..*self
        }
    }

    pub(super) fn is_row(&self) -> bool {
        self.row != 1
    }
}

impl<'o, O: Objects + ?Sized> Memory<'o, O> {
    /// A word of a place.
    pub(super) fn word(&mut self, place: &Place<'_>, offset: u64) -> Result<u64, String> {
        self.unsigned(place.address.saturating_add(offset), place.end, 8)
    }

    /// Where the weak pointer leads for which an object of NVL-C's runtime stands.
    pub(super) fn behind_proxy(&mut self, object: &Object) -> Option<u64> {
        let descriptor = self.objects.descriptor(object.type_id)?;
        let is_proxy = nvl::Kind::of(descriptor) == Some(nvl::Kind::Proxy);
        let place = is_proxy.then(|| Place::of_object(object, descriptor).ok());
        self.word(&place.flatten()?, 0).ok()
    }

    /// What lies at an address as a place, if it is an object of known type.
    pub(super) fn object(&self, address: u64) -> Option<(Object, &'o Descriptor)> {
        match self.objects.at(address) {
            At::Object(object) => {
                let descriptor = self.objects.descriptor(object.type_id)?;
                Some((object, descriptor))
            }
            _ => None,
        }
    }

    /// The value in a cell; where NVL-C has allocated one element, that.
    pub(super) fn inner<'d>(
        &mut self,
        place: &Place<'d>,
        value: &'d Field<usize>,
    ) -> Result<Place<'d>, String>
    where
        'o: 'd,
    {
        let inner = place.field(value);
        match (&value.ty, place.ty) {
            (Type::Array { .. }, Type::Struct(Struct { name, .. })) if name.starts_with("nvl ") => {
                let elements = self.elements(&inner)?;
                let one = elements.filter(|elements| elements.count == 1);
                Ok(one.map_or(inner, |elements| elements.at(0)))
            }
            _ => Ok(inner),
        }
    }

    /// The case that the tag says.
    pub(super) fn case<'d>(
        &mut self,
        place: &Place<'d>,
        variants: &'d Variants<usize>,
    ) -> Result<&'d Case<usize>, String> {
        let at = place.address.saturating_add(variants.tag_offset);
        let tag = self.unsigned(at, place.end, variants.tag_width)?;
        let found = variants.case_of(tag);
        found.ok_or_else(|| format!("its tag is {tag}, which is no case"))
    }

    /// The elements of a place, if it has any kind of them.
    pub(super) fn elements<'d>(&mut self, place: &Place<'d>) -> Result<Option<Elements<'d>>, String>
    where
        'o: 'd,
    {
        let size_of = |ty: &Type<usize>| ty.layout().map_or(0, |layout| layout.size);
        if place.is_row() {
            return Ok(Some(Elements {
                kind: ListKind::Row,
                count: place.row,
                stride: size_of(place.ty),
                first: place.part(place.ty, place.address),
                is_text: false,
            }));
        }
        if let Type::Array { element, count } = place.ty {
            let stride = size_of(element);
            let room = place.end.saturating_sub(place.address) / stride.max(1);
            let count = match count {
                Count::Fixed(count) => *count,
                Count::Tail => room,
                Count::Field(name) => self.length(place, name)?,
            };
            if count > room {
                return Err(format!("it has {count} elements, and room for {room}"));
            }
            return Ok(Some(Elements {
                kind: ListKind::Array,
                count,
                stride,
                first: place.part(element, place.address),
                is_text: false,
            }));
        }
        let Shape::Vector {
            buffer,
            len,
            line,
            is_text,
        } = place.shape()
        else {
            return Ok(None);
        };
        let (count, buffer) = (self.word(place, len)?, self.word(place, buffer)?);
        let none = Elements {
            kind: ListKind::Vector,
            count,
            stride: 0,
            first: *place,
            is_text,
        };
        let Some(line) = line.filter(|_| count > 0) else {
            return Ok(Some(none));
        };
        let (object, descriptor) = self.object_of_line(buffer, place.of, line)?;
        let row = Place::of_row(&object, descriptor)?;
        // A row of one is not seen as such.
        let one = Elements {
            kind: ListKind::Row,
            count: 1,
            stride: size_of(row.ty),
            first: row,
            is_text,
        };
        let elements = match row.ty {
            Type::Array { .. } => self.elements(&row)?,
            _ if row.is_row() => self.elements(&row)?,
            _ => Some(one),
        };
        match elements {
            Some(elements) if count <= elements.count => Ok(Some(Elements {
                kind: ListKind::Vector,
                count,
                is_text,
                ..elements
            })),
            elements => Err(format!(
                "it has {count} elements, and room for {}",
                elements.map_or(0, |elements| elements.count)
            )),
        }
    }

    /// What a program of C++ has put in the pool, with the numbers in the table of it.
    pub(super) fn objects_of<'d>(
        &mut self,
        table: &Place<'d>,
    ) -> Result<Vec<(u64, Place<'d>)>, String>
    where
        'o: 'd,
    {
        let Some(places) = self.elements(table)? else {
            return Ok(Vec::new());
        };
        // The library's table has 100: others are not believed.
        let numbers = 0..places.count.min(OBJECTS_MAX);
        let all = numbers.map(|at| (at, places.at(at)));
        Ok(all
            .filter(|(_, place)| !self.is_vacant(place, places.stride, &places.kind))
            .collect())
    }

    /// What the length field of an array says.
    fn length(&mut self, place: &Place<'_>, name: &str) -> Result<u64, String> {
        let (siblings, base) = place.siblings;
        match siblings.iter().find(|field| field.name == name) {
            Some(Field {
                offset,
                ty: Type::Primitive(primitive),
                ..
            }) => self.unsigned(base.saturating_add(*offset), place.end, primitive.size()),
            _ => Err("its length field is missing".to_owned()),
        }
    }

    /// Whether nothing is stored in an element: it is a null pointer, in an option or not; or it is a struct without a
    /// byte that is not zero, in an array, which has room for more than is in use. A vector has as many as it says, but
    /// for those that its collection keeps zero, though zero be no value of their type.
    pub(super) fn is_vacant(&mut self, place: &Place<'_>, stride: u64, kind: &ListKind) -> bool {
        match (place.ty, place.shape()) {
            (Type::Pointer { .. }, _) => self.word(place, 0) == Ok(0),
            (_, Shape::OptionalPointer(some)) => self.word(place, some.offset) == Ok(0),
            (_, Shape::Cell(value)) => {
                let size = value.ty.layout().map_or(0, |layout| layout.size);
                self.is_vacant(&place.field(value), size, kind)
            }
            (Type::Variants(variants), _) => {
                self.case(place, variants).is_err()
                    && self.is_zero(place.address, place.end, stride)
            }
            (Type::Struct(Struct { fields, .. }), _) => {
                let mut fields = fields.iter();
                let has_bad_tag = fields.any(|field| match &field.ty {
                    Type::Variants(variants) => self.case(&place.field(field), variants).is_err(),
                    _ => false,
                });
                (has_bad_tag || *kind != ListKind::Vector)
                    && self.is_zero(place.address, place.end, stride)
            }
            _ => false,
        }
    }
}

/// Whether elements of a type are bytes: those of a text in C or of any one.
pub(super) fn are_bytes(ty: &Type<usize>) -> Option<Primitive> {
    match ty {
        Type::Primitive(primitive @ (Primitive::U8 | Primitive::I8)) => Some(*primitive),
        _ => None,
    }
}
