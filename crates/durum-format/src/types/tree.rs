//! The tree of a type.

/// Numbers and the like.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Primitive {
    /// Unsigned, 8 bits.
    U8,
    /// Unsigned, 16 bits.
    U16,
    /// Unsigned, 32 bits.
    U32,
    /// Unsigned, 64 bits. Sizes and lengths of the machine are this.
    U64,
    /// Signed, 8 bits.
    I8,
    /// Signed, 16 bits.
    I16,
    /// Signed, 32 bits.
    I32,
    /// Signed, 64 bits.
    I64,
    /// IEEE 754, 32 bits.
    F32,
    /// IEEE 754, 64 bits.
    F64,
    /// One byte, 0 or 1.
    Bool,
    /// A Unicode scalar value in 32 bits.
    Char,
}

impl Primitive {
    /// All of them.
    pub const ALL: [Self; 12] = [
        Self::U8,
        Self::U16,
        Self::U32,
        Self::U64,
        Self::I8,
        Self::I16,
        Self::I32,
        Self::I64,
        Self::F32,
        Self::F64,
        Self::Bool,
        Self::Char,
    ];

    /// Its name in texts.
    pub const fn name(self) -> &'static str {
        match self {
            Self::U8 => "u8",
            Self::U16 => "u16",
            Self::U32 => "u32",
            Self::U64 => "u64",
            Self::I8 => "i8",
            Self::I16 => "i16",
            Self::I32 => "i32",
            Self::I64 => "i64",
            Self::F32 => "f32",
            Self::F64 => "f64",
            Self::Bool => "bool",
            Self::Char => "char",
        }
    }

    /// The one with this name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL
            .into_iter()
            .find(|primitive| primitive.name() == name)
    }

    /// Its bytes; also its alignment.
    pub const fn size(self) -> u64 {
        match self {
            Self::U8 | Self::I8 | Self::Bool => 1,
            Self::U16 | Self::I16 => 2,
            Self::U32 | Self::I32 | Self::F32 | Self::Char => 4,
            Self::U64 | Self::I64 | Self::F64 => 8,
        }
    }

    /// Whether it can say how many elements an array has.
    pub const fn is_unsigned(self) -> bool {
        matches!(self, Self::U8 | Self::U16 | Self::U32 | Self::U64)
    }
}

/// Whether a pointer owns what it points to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Strength {
    /// What it points to is reachable through it.
    Strong,
    /// It does not keep what it points to.
    Weak,
}

/// How many elements an array has.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Count {
    /// Always this many.
    Fixed(u64),
    /// As many as fit between here and the end of the object.
    Tail,
    /// As many as the unsigned field with this name says, an earlier field of the same struct.
    Field(String),
}

/// A named struct.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Struct<T> {
    /// Its language-neutral name.
    pub name: String,
    /// Names that it had before.
    pub was: Vec<String>,
    /// Its bytes, a multiple of `align`; elements of a tail are not counted.
    pub size: u64,
    /// Its alignment.
    pub align: u64,
    /// Its fields by offset. Bytes that no field covers are padding.
    pub fields: Vec<Field<T>>,
}

/// A field.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Field<T> {
    /// Its name.
    pub name: String,
    /// Names that it had before.
    pub was: Vec<String>,
    /// Where it begins, from the start of the struct or variants it belongs to.
    pub offset: u64,
    /// Its type.
    pub ty: Type<T>,
    /// It may take the place of reserved bytes: zero is a value of its type.
    pub is_in_reserved: bool,
}

/// A type whose contents depend on a tag in it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Variants<T> {
    /// Its language-neutral name.
    pub name: String,
    /// Names that it had before.
    pub was: Vec<String>,
    /// Its bytes, a multiple of `align`.
    pub size: u64,
    /// Its alignment.
    pub align: u64,
    /// Where the tag lies.
    pub tag_offset: u64,
    /// Bytes of the tag: 1, 2, 4 or 8.
    pub tag_width: u64,
    /// What the tag can say.
    pub cases: Vec<Case<T>>,
}

/// One case of a [`Variants`].
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Case<T> {
    /// The tag's bits, zero-extended. `None`: whatever else the tag says; then fields may lie over it.
    pub discriminant: Option<u64>,
    /// Its name.
    pub name: String,
    /// Names that it had before.
    pub was: Vec<String>,
    /// Its fields by offset, counted from the start of the variants.
    pub fields: Vec<Field<T>>,
}

/// A type. Pointers name their targets by a `T`: a name in a declaration, a line of the text in a descriptor.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Type<T> {
    /// A number or the like.
    Primitive(Primitive),
    /// A named struct.
    Struct(Struct<T>),
    /// Elements in a row.
    Array {
        /// The type of each.
        element: Box<Type<T>>,
        /// How many.
        count: Count,
    },
    /// One of several.
    Variants(Variants<T>),
    /// An 8-byte address, or 0 for nothing.
    Pointer {
        /// Whether it owns its target.
        strength: Strength,
        /// What it points to; `None` for anything.
        target: Option<T>,
    },
    /// Bytes about which no more is known than that they hold no pointers.
    Opaque {
        /// How many.
        size: u64,
        /// Their alignment.
        align: u64,
    },
    /// Lock words and the like: bytes that mean nothing after the program has ended.
    Volatile {
        /// How many.
        size: u64,
        /// Their alignment.
        align: u64,
    },
    /// Bytes that are zero until a later version of the type has fields there.
    Reserved {
        /// How many.
        size: u64,
        /// Their alignment.
        align: u64,
    },
}

impl<T> Variants<T> {
    /// The case that a tag says.
    pub fn case_of(&self, tag: u64) -> Option<&Case<T>> {
        self.cases.iter().find(|case| says(case.discriminant, tag))
    }
}

/// Whether a tag says a case of this number. Cases stand in the order of their numbers, so one without is asked last.
pub(crate) fn says(discriminant: Option<u64>, tag: u64) -> bool {
    discriminant.is_none_or(|number| number == tag)
}

impl<T> Field<T> {
    /// A field.
    pub fn new(name: impl Into<String>, offset: u64, ty: Type<T>) -> Self {
        Self {
            name: name.into(),
            was: Vec::new(),
            offset,
            ty,
            is_in_reserved: false,
        }
    }

    /// The same field, which had these names before, too.
    #[must_use]
    pub fn was(mut self, names: &[&str]) -> Self {
        self.was.extend(owned(names));
        self
    }

    /// The same field, which may take the place of reserved bytes.
    #[must_use]
    pub fn in_reserved(self) -> Self {
        let is_in_reserved = true;
        Self {
            is_in_reserved,
            ..self
        }
    }
}

fn owned(names: &[&str]) -> impl Iterator<Item = String> {
    names.iter().copied().map(str::to_owned)
}

impl Type<String> {
    /// A struct.
    pub fn structure(
        name: impl Into<String>,
        size: u64,
        align: u64,
        fields: Vec<Field<String>>,
    ) -> Self {
        Self::Struct(Struct {
            name: name.into(),
            was: Vec::new(),
            size,
            align,
            fields,
        })
    }

    /// A strong pointer to the type with this name.
    pub fn pointer(target: impl Into<String>) -> Self {
        Self::Pointer {
            strength: Strength::Strong,
            target: Some(target.into()),
        }
    }

    /// A weak pointer to the type with this name.
    pub fn weak(target: impl Into<String>) -> Self {
        Self::Pointer {
            strength: Strength::Weak,
            target: Some(target.into()),
        }
    }

    /// A strong pointer to anything.
    pub fn pointer_to_any() -> Self {
        Self::Pointer {
            strength: Strength::Strong,
            target: None,
        }
    }
}

impl<T> Type<T> {
    /// Whether there are pointers in values of the type.
    pub fn has_pointers(&self) -> bool {
        let any = |fields: &[Field<T>]| fields.iter().any(|field| field.ty.has_pointers());
        match self {
            Self::Pointer { .. } => true,
            Self::Struct(it) => any(&it.fields),
            Self::Variants(it) => it.cases.iter().any(|case| any(&case.fields)),
            Self::Array { element, .. } => element.has_pointers(),
            Self::Primitive(_)
            | Self::Opaque { .. }
            | Self::Volatile { .. }
            | Self::Reserved { .. } => false,
        }
    }

    /// Elements of this type, as many as given.
    pub fn array(self, count: Count) -> Self {
        Self::Array {
            element: Box::new(self),
            count,
        }
    }

    /// The same struct or variants, which had these names before, too.
    #[must_use]
    pub fn was(mut self, names: &[&str]) -> Self {
        if let Self::Struct(Struct { was, .. }) | Self::Variants(Variants { was, .. }) = &mut self {
            was.extend(owned(names));
        }
        self
    }

    /// Whether it is an array that goes on to the end of the object, or as far as a length field says.
    pub(crate) fn is_open_array(&self) -> bool {
        matches!(
            self,
            Self::Array {
                count: Count::Tail | Count::Field(_),
                ..
            }
        )
    }

    /// The name of a struct or variants.
    pub fn name(&self) -> Option<&str> {
        match self {
            Self::Struct(Struct { name, .. }) | Self::Variants(Variants { name, .. }) => Some(name),
            _ => None,
        }
    }

    /// The same type with other names for the targets of pointers.
    pub(crate) fn map_targets<U, E>(
        &self,
        map: &mut impl FnMut(&T) -> Result<U, E>,
    ) -> Result<Type<U>, E> {
        fn fields<T, U, E>(
            fields: &[Field<T>],
            map: &mut impl FnMut(&T) -> Result<U, E>,
        ) -> Result<Vec<Field<U>>, E> {
            let mapped = |field: &Field<T>| {
                Ok(Field {
                    name: field.name.clone(),
                    was: field.was.clone(),
                    offset: field.offset,
                    ty: field.ty.map_targets(map)?,
                    is_in_reserved: field.is_in_reserved,
                })
            };
            fields.iter().map(mapped).collect()
        }
        Ok(match self {
            Self::Primitive(primitive) => Type::Primitive(*primitive),
            &Self::Opaque { size, align } => Type::Opaque { size, align },
            &Self::Volatile { size, align } => Type::Volatile { size, align },
            &Self::Reserved { size, align } => Type::Reserved { size, align },
            Self::Pointer { strength, target } => Type::Pointer {
                strength: *strength,
                target: target.as_ref().map(map).transpose()?,
            },
            Self::Array { element, count } => Type::Array {
                element: Box::new(element.map_targets(map)?),
                count: count.clone(),
            },
            Self::Struct(it) => Type::Struct(Struct {
                name: it.name.clone(),
                was: it.was.clone(),
                size: it.size,
                align: it.align,
                fields: fields(&it.fields, map)?,
            }),
            Self::Variants(it) => Type::Variants(Variants {
                name: it.name.clone(),
                was: it.was.clone(),
                size: it.size,
                align: it.align,
                tag_offset: it.tag_offset,
                tag_width: it.tag_width,
                cases: it
                    .cases
                    .iter()
                    .map(|case| {
                        Ok(Case {
                            discriminant: case.discriminant,
                            name: case.name.clone(),
                            was: case.was.clone(),
                            fields: fields(&case.fields, map)?,
                        })
                    })
                    .collect::<Result<_, E>>()?,
            }),
        })
    }
}
