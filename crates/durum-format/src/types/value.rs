//! The contents of an object as a plain tree, for printing.

use std::fmt;

use super::descriptor::Descriptor;
use super::steps::{ValueError, case_at, count_elements, read_unsigned, repeats, slice};
use super::tree::{Field, Primitive, Strength, Struct, Type};

/// What an object, or a part of it, holds.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    /// An unsigned number.
    Unsigned(u64),
    /// A signed number.
    Signed(i64),
    /// A number with a fraction.
    Float(f64),
    /// A truth value.
    Bool(bool),
    /// A character.
    Char(char),
    /// Bytes of an opaque part or of an array of `u8`; `omitted` of them were left off at the end.
    Bytes {
        /// Those shown.
        bytes: Vec<u8>,
        /// How many are not.
        omitted: u64,
    },
    /// A struct's fields.
    Struct {
        /// Its name.
        name: String,
        /// Names and values.
        fields: Vec<(String, Value)>,
    },
    /// The case that the tag says.
    Case {
        /// The name of the type.
        name: String,
        /// The name of the case.
        case: String,
        /// Names and values.
        fields: Vec<(String, Value)>,
    },
    /// Elements; `omitted` of them were left off at the end.
    Array {
        /// Those shown.
        elements: Vec<Value>,
        /// How many are not.
        omitted: u64,
    },
    /// A pointer.
    Pointer {
        /// Where it points; 0 for nothing.
        address: u64,
        /// Whether it owns its target.
        strength: Strength,
        /// The line of the descriptor's text with the type that it points to.
        target: Option<usize>,
    },
    /// A part that means nothing after the program has ended.
    Volatile,
    /// A part whose bytes do not fit its type: which, and why.
    Invalid(String),
    /// A part that is not to be shown.
    Redacted,
}

impl Descriptor {
    /// The contents of an object of this type, with at most `elements_max` elements (or bytes) of each array. Parts
    /// whose bytes do not fit their type become [`Value::Invalid`]. An object that is longer than its type, which then
    /// has no tail, is shown as an array.
    pub fn value(&self, bytes: &[u8], elements_max: usize) -> Value {
        let reader = Reader {
            bytes,
            elements_max,
        };
        match self.row(bytes) {
            Err(error) => Value::Invalid(error.to_string()),
            Ok(1) => reader.value(self.root(), 0, (&[], 0)),
            Ok(row) => reader.array(self.root(), 0, self.layout().size, row),
        }
    }
}

struct Reader<'a> {
    bytes: &'a [u8],
    elements_max: usize,
}

impl Reader<'_> {
    fn value(&self, ty: &Type<usize>, base: u64, siblings: (&[Field<usize>], u64)) -> Value {
        self.try_value(ty, base, siblings)
            .unwrap_or_else(|error| Value::Invalid(error.to_string()))
    }

    fn try_value(
        &self,
        ty: &Type<usize>,
        base: u64,
        (siblings, struct_base): (&[Field<usize>], u64),
    ) -> Result<Value, ValueError> {
        Ok(match ty {
            Type::Primitive(primitive) => self.primitive(*primitive, base)?,
            Type::Volatile { size, .. } => {
                slice(self.bytes, base, *size)?;
                Value::Volatile
            }
            Type::Opaque { size, .. } | Type::Reserved { size, .. } => {
                self.row_of_bytes(base, *size)?
            }
            Type::Pointer { strength, target } => Value::Pointer {
                address: read_unsigned(self.bytes, base, 8)?,
                strength: *strength,
                target: *target,
            },
            Type::Struct(Struct { name, fields, .. }) => Value::Struct {
                name: name.clone(),
                fields: self.fields(fields, base),
            },
            Type::Variants(variants) => {
                let case = case_at(variants, self.bytes, base)?;
                Value::Case {
                    name: variants.name.clone(),
                    case: case.name.clone(),
                    fields: self.fields(&case.fields, base),
                }
            }
            Type::Array { element, count } => {
                let stride = element.layout().map_or(1, |layout| layout.size);
                let Ok(repeats) = repeats(count, siblings, struct_base) else {
                    return Ok(Value::Invalid("its length field is missing".into()));
                };
                let count = count_elements(repeats, 0, base, stride, self.bytes)?;
                if **element == Type::Primitive(Primitive::U8) {
                    return self.row_of_bytes(base, count);
                }
                self.array(element, base, stride, count)
            }
        })
    }

    /// Elements of `stride` bytes each, which have no siblings.
    fn array(&self, ty: &Type<usize>, base: u64, stride: u64, count: u64) -> Value {
        let shown = count.min(self.elements_max as u64);
        let elements = (0..shown).map(|index| self.value(ty, base + index * stride, (&[], 0)));
        Value::Array {
            elements: elements.collect(),
            omitted: count - shown,
        }
    }

    /// Nothing is told of reserved bytes.
    fn fields(&self, fields: &[Field<usize>], base: u64) -> Vec<(String, Value)> {
        let named = |field: &Field<usize>| {
            let value = self.value(&field.ty, base + field.offset, (fields, base));
            (field.name.clone(), value)
        };
        let has_value = |field: &&Field<usize>| !matches!(field.ty, Type::Reserved { .. });
        fields.iter().filter(has_value).map(named).collect()
    }

    fn row_of_bytes(&self, base: u64, len: u64) -> Result<Value, ValueError> {
        let bytes = slice(self.bytes, base, len)?;
        let shown = bytes.get(..self.elements_max).unwrap_or(bytes);
        Ok(Value::Bytes {
            bytes: shown.to_vec(),
            omitted: (bytes.len() - shown.len()) as u64,
        })
    }

    fn primitive(&self, primitive: Primitive, base: u64) -> Result<Value, ValueError> {
        let raw = read_unsigned(self.bytes, base, primitive.size())?;
        Ok(match primitive {
            Primitive::U8 | Primitive::U16 | Primitive::U32 | Primitive::U64 => {
                Value::Unsigned(raw)
            }
            Primitive::I8 | Primitive::I16 | Primitive::I32 | Primitive::I64 => {
                let unused = 64 - 8 * primitive.size();
                Value::Signed((raw << unused) as i64 >> unused)
            }
            Primitive::F32 => Value::Float(f64::from(f32::from_bits(raw as u32))),
            Primitive::F64 => Value::Float(f64::from_bits(raw)),
            Primitive::Bool if raw < 2 => Value::Bool(raw == 1),
            Primitive::Bool => Value::Invalid(format!("{raw} is no truth value")),
            Primitive::Char => match char::from_u32(raw as u32) {
                Some(char) => Value::Char(char),
                None => Value::Invalid(format!("{raw:#x} is no character")),
            },
        })
    }
}

impl Value {
    /// The same tree without the program's data: numbers, bytes and cases are hidden; structure, counts and pointers
    /// stay.
    #[must_use]
    pub fn redact(self) -> Self {
        let redact = |fields: Vec<(String, Self)>| {
            let fields = fields.into_iter();
            fields.map(|(name, value)| (name, value.redact())).collect()
        };
        match self {
            Self::Struct { name, fields } => Self::Struct {
                name,
                fields: redact(fields),
            },
            Self::Case { name, fields, .. } => Self::Case {
                name,
                case: "?".into(),
                fields: redact(fields),
            },
            Self::Array { elements, omitted } => Self::Array {
                elements: elements.into_iter().map(Self::redact).collect(),
                omitted,
            },
            Self::Pointer { .. } | Self::Volatile => self,
            _ => Self::Redacted,
        }
    }

    /// The tree as JSON: structs are objects, a case is an object with one member, null pointers are `null`, other
    /// pointers `{"pointer": "0x…"}`, bytes `{"hex": "…"}`, left off elements a last member `{"omitted": n}`.
    pub fn to_json(&self) -> serde_json::Value {
        use serde_json::{Value as Json, json};
        let object = |fields: &[(String, Self)]| {
            let fields = fields.iter();
            Json::Object(
                fields
                    .map(|(name, value)| (name.clone(), value.to_json()))
                    .collect(),
            )
        };
        match self {
            Self::Unsigned(number) => json!(number),
            Self::Signed(number) => json!(number),
            // JSON has no infinities and no NaN.
            Self::Float(number) if number.is_finite() => json!(number),
            Self::Float(number) => json!(number.to_string()),
            Self::Bool(value) => json!(value),
            Self::Char(char) => json!(char),
            Self::Bytes { bytes, omitted: 0 } => json!({ "hex": hex(bytes) }),
            Self::Bytes { bytes, omitted } => json!({ "hex": hex(bytes), "omitted": omitted }),
            Self::Struct { fields, .. } => object(fields),
            Self::Case { case, fields, .. } => json!({ case: object(fields) }),
            Self::Array { elements, omitted } => {
                let mut elements: Vec<Json> = elements.iter().map(Self::to_json).collect();
                if *omitted > 0 {
                    elements.push(json!({ "omitted": omitted }));
                }
                Json::Array(elements)
            }
            Self::Pointer { address: 0, .. } => Json::Null,
            Self::Pointer {
                address,
                strength: Strength::Strong,
                ..
            } => json!({ "pointer": format!("{address:#x}") }),
            Self::Pointer { address, .. } => json!({ "weak": format!("{address:#x}") }),
            Self::Volatile => json!({ "volatile": true }),
            Self::Invalid(why) => json!({ "invalid": why }),
            Self::Redacted => json!({ "redacted": true }),
        }
    }

    fn write(&self, f: &mut fmt::Formatter<'_>, indent: usize) -> fmt::Result {
        let lines = |f: &mut fmt::Formatter<'_>, fields: &[(String, Self)]| {
            for (name, value) in fields {
                write!(f, "\n{:width$}{name}: ", "", width = indent + 2)?;
                value.write(f, indent + 2)?;
            }
            Ok(())
        };
        match self {
            Self::Unsigned(number) => write!(f, "{number}"),
            Self::Signed(number) => write!(f, "{number}"),
            Self::Float(number) => write!(f, "{number:?}"),
            Self::Bool(value) => write!(f, "{value}"),
            Self::Char(char) => write!(f, "{char:?}"),
            Self::Bytes { bytes, omitted } => {
                match text_of(bytes) {
                    Some(text) => write!(f, "{text:?}")?,
                    None => f.write_str(&hex(bytes))?,
                }
                if *omitted > 0 {
                    write!(f, " ... {omitted} more bytes")
                } else {
                    Ok(())
                }
            }
            Self::Struct { name, fields } => {
                f.write_str(name)?;
                lines(f, fields)
            }
            Self::Case { name, case, fields } => {
                write!(f, "{name}.{case}")?;
                lines(f, fields)
            }
            Self::Array { elements, omitted } => {
                write!(f, "[{}]", elements.len() as u64 + *omitted)?;
                for (index, element) in elements.iter().enumerate() {
                    write!(f, "\n{:width$}{index}: ", "", width = indent + 2)?;
                    element.write(f, indent + 2)?;
                }
                if *omitted > 0 {
                    write!(f, "\n{:width$}... {omitted} more", "", width = indent + 2)?;
                }
                Ok(())
            }
            Self::Pointer { address: 0, .. } => f.write_str("null"),
            Self::Pointer {
                address,
                strength: Strength::Strong,
                ..
            } => write!(f, "-> {address:#x}"),
            Self::Pointer { address, .. } => write!(f, "~> {address:#x}"),
            Self::Volatile => f.write_str("(volatile)"),
            Self::Invalid(why) => write!(f, "(invalid: {why})"),
            Self::Redacted => f.write_str("(redacted)"),
        }
    }
}

impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.write(f, 0)
    }
}

/// Bytes as text where they are text, zeros at the end aside: how C keeps strings.
fn text_of(bytes: &[u8]) -> Option<&str> {
    let last = bytes.iter().rposition(|&byte| byte != 0)?;
    let text = std::str::from_utf8(bytes.get(..=last)?).ok()?;
    let is_readable = |char: char| !char.is_control() || char == '\n' || char == '\t';
    text.chars().all(is_readable).then_some(text)
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
