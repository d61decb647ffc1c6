//! The canonical text: writing it, and reading it back. The grammar is in `docs/format/types.md`.

use std::fmt::Write as _;

use super::check::{DEPTH_MAX, TypeError};
use super::tree::{Case, Count, Field, Primitive, Strength, Struct, Type, Variants};

pub(crate) fn write(ty: &Type<usize>, out: &mut String) {
    // Writing into a String cannot fail.
    let _ = match ty {
        Type::Primitive(primitive) => write!(out, "{}", primitive.name()),
        Type::Opaque { size, align } => write!(out, "opaque({size},{align})"),
        Type::Volatile { size, align } => write!(out, "volatile({size},{align})"),
        Type::Reserved { size, align } => write!(out, "reserved({size},{align})"),
        Type::Pointer { strength, target } => {
            out.push(match strength {
                Strength::Strong => '*',
                Strength::Weak => '~',
            });
            match target {
                Some(line) => write!(out, "{line}"),
                None => write!(out, "any"),
            }
        }
        Type::Array { element, count } => {
            out.push('[');
            write(element, out);
            match count {
                Count::Fixed(count) => write!(out, ";{count}]"),
                Count::Tail => write!(out, ";tail]"),
                Count::Field(name) => write!(out, ";field \"{name}\"]"),
            }
        }
        Type::Struct(it) => {
            out.push_str("struct ");
            write_names(&it.name, &it.was, out);
            let _ = write!(out, "({},{}){{", it.size, it.align);
            write_fields(&it.fields, out);
            write!(out, "}}")
        }
        Type::Variants(it) => {
            out.push_str("variants ");
            write_names(&it.name, &it.was, out);
            let _ = write!(out, "({},{},", it.size, it.align);
            let _ = write!(out, "tag {},{}){{", it.tag_offset, it.tag_width);
            for case in &it.cases {
                let _ = match case.discriminant {
                    Some(number) => write!(out, "{number}:"),
                    None => write!(out, "{OTHER_CASE}"),
                };
                write_names(&case.name, &case.was, out);
                out.push('{');
                write_fields(&case.fields, out);
                out.push('}');
            }
            write!(out, "}}")
        }
    };
}

fn write_fields(fields: &[Field<usize>], out: &mut String) {
    for field in fields {
        let _ = write!(out, "{}:", field.offset);
        write_names(&field.name, &field.was, out);
        out.push(':');
        write(&field.ty, out);
        out.push_str(match field.is_in_reserved {
            true => " in reserved;",
            false => ";",
        });
    }
}

fn write_names(name: &str, was: &[String], out: &mut String) {
    let _ = write!(out, "\"{name}\"");
    for name in was {
        let _ = write!(out, " was \"{name}\"");
    }
}

/// What stands in place of a case's number, where it is whatever else the tag says.
const OTHER_CASE: &str = "else:";

/// Whether a case in a text has no number, which builds do not know from before there were such.
pub(crate) fn has_other_case(text: &str) -> bool {
    // Every other part is a name.
    let mut words = text.split('"').step_by(2);
    words.any(|word| word.ends_with(OTHER_CASE))
}

/// Whether there are words in a text that builds do not know which cannot follow types that change: former names, and
/// reserved bytes.
pub(crate) fn has_history(text: &str) -> bool {
    // Every other part is a name.
    let mut words = text.split('"').step_by(2);
    words.any(|word| word == " was " || word.contains("reserved"))
}

/// Reads one line, given without its line end.
pub(crate) fn parse(text: &str, line: usize) -> Result<Type<usize>, TypeError> {
    let mut reader = Reader {
        text,
        at: 0,
        line,
        depth: 0,
    };
    let ty = reader.parse_type()?;
    match reader.at == text.len() {
        true => Ok(ty),
        false => Err(reader.expected("the end of the line")),
    }
}

struct Reader<'a> {
    text: &'a str,
    at: usize,
    line: usize,
    depth: usize,
}

impl<'a> Reader<'a> {
    fn rest(&self) -> &'a str {
        self.text.get(self.at..).unwrap_or_default()
    }

    fn expected(&self, expected: &'static str) -> TypeError {
        TypeError::Syntax {
            line: self.line,
            column: self.at + 1,
            expected,
        }
    }

    fn accept(&mut self, token: &str) -> bool {
        let found = self.rest().starts_with(token);
        if found {
            self.at += token.len();
        }
        found
    }

    fn expect(&mut self, token: &'static str) -> Result<(), TypeError> {
        let is_there = self.accept(token);
        is_there.then_some(()).ok_or_else(|| self.expected(token))
    }

    fn number(&mut self) -> Result<u64, TypeError> {
        let digits = self.rest().bytes().take_while(u8::is_ascii_digit).count();
        let (digits, _) = self.rest().split_at(digits);
        let canonical = digits == "0" || !digits.starts_with('0');
        match digits.parse() {
            Ok(number) if canonical => {
                self.at += digits.len();
                Ok(number)
            }
            _ => Err(self.expected("a decimal number below 2^64 without leading zeros")),
        }
    }

    fn name(&mut self) -> Result<String, TypeError> {
        self.expect("\"")?;
        let name = self.rest().split('"').next().unwrap_or_default();
        super::check::check_name(name)?;
        self.at += name.len();
        self.expect("\"")?;
        Ok(name.into())
    }

    /// A name and those that it was before.
    fn names(&mut self) -> Result<(String, Vec<String>), TypeError> {
        let name = self.name()?;
        let mut was = Vec::new();
        while self.accept(" was ") {
            was.push(self.name()?);
        }
        Ok((name, was))
    }

    fn parse_type(&mut self) -> Result<Type<usize>, TypeError> {
        self.depth += 1;
        if self.depth > DEPTH_MAX {
            return Err(TypeError::TooLarge {
                what: "the depth of nested types",
                limit: DEPTH_MAX,
            });
        }
        let ty = if self.accept("struct ") {
            let (name, was) = self.names()?;
            self.expect("(")?;
            let [size, align] = self.size_and_align()?;
            self.expect("){")?;
            Type::Struct(Struct {
                name,
                was,
                size,
                align,
                fields: self.fields()?,
            })
        } else if self.accept("variants ") {
            self.variants()?
        } else if self.accept("opaque(") {
            let [size, align] = self.size_and_align()?;
            self.expect(")")?;
            Type::Opaque { size, align }
        } else if self.accept("volatile(") {
            let [size, align] = self.size_and_align()?;
            self.expect(")")?;
            Type::Volatile { size, align }
        } else if self.accept("reserved(") {
            let [size, align] = self.size_and_align()?;
            self.expect(")")?;
            Type::Reserved { size, align }
        } else if self.accept("[") {
            let element = Box::new(self.parse_type()?);
            self.expect(";")?;
            let count = if self.accept("tail") {
                Count::Tail
            } else if self.accept("field ") {
                Count::Field(self.name()?)
            } else {
                Count::Fixed(self.number()?)
            };
            self.expect("]")?;
            Type::Array { element, count }
        } else if self.accept("*") {
            self.pointer(Strength::Strong)?
        } else if self.accept("~") {
            self.pointer(Strength::Weak)?
        } else {
            let rest = self.rest();
            let word = rest.bytes().take_while(u8::is_ascii_alphanumeric);
            let (word, _) = rest.split_at(word.count());
            let Some(primitive) = Primitive::from_name(word) else {
                return Err(self.expected("a type (or this text was written by a newer durum)"));
            };
            self.at += word.len();
            Type::Primitive(primitive)
        };
        self.depth -= 1;
        Ok(ty)
    }

    fn size_and_align(&mut self) -> Result<[u64; 2], TypeError> {
        let size = self.number()?;
        self.expect(",")?;
        Ok([size, self.number()?])
    }

    /// A pointer behind its first character.
    fn pointer(&mut self, strength: Strength) -> Result<Type<usize>, TypeError> {
        let target = match self.accept("any") {
            true => None,
            false => {
                let line = usize::try_from(self.number()?);
                Some(line.map_err(|_| self.expected("the number of a line"))?)
            }
        };
        Ok(Type::Pointer { strength, target })
    }

    /// Fields up to and with the closing brace.
    fn fields(&mut self) -> Result<Vec<Field<usize>>, TypeError> {
        let mut fields = Vec::new();
        while !self.accept("}") {
            let offset = self.number()?;
            self.expect(":")?;
            let (name, was) = self.names()?;
            self.expect(":")?;
            let ty = self.parse_type()?;
            let is_in_reserved = self.accept(" in reserved");
            self.expect(";")?;
            fields.push(Field {
                name,
                was,
                offset,
                ty,
                is_in_reserved,
            });
        }
        Ok(fields)
    }

    fn variants(&mut self) -> Result<Type<usize>, TypeError> {
        let (name, was) = self.names()?;
        self.expect("(")?;
        let [size, align] = self.size_and_align()?;
        self.expect(",tag ")?;
        let [tag_offset, tag_width] = self.size_and_align()?;
        self.expect("){")?;
        let mut cases = Vec::new();
        while !self.accept("}") {
            let discriminant = match self.accept(OTHER_CASE) {
                true => None,
                false => {
                    let number = self.number()?;
                    self.expect(":")?;
                    Some(number)
                }
            };
            let (name, was) = self.names()?;
            self.expect("{")?;
            cases.push(Case {
                discriminant,
                name,
                was,
                fields: self.fields()?,
            });
        }
        Ok(Type::Variants(Variants {
            name,
            was,
            size,
            align,
            tag_offset,
            tag_width,
            cases,
        }))
    }
}
