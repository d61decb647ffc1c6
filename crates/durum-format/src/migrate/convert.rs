//! An object of the new type, made of one of the old type.

use super::Refusal;
use super::parts::{Became, Conversion, Part};
use super::values::is_strong;
use crate::types::{PointerAt, Step, count_elements, is_value, read_unsigned, says, walk};

/// The functions of the program, and who is told what is wrong with objects.
pub trait Program {
    /// Makes the new bytes, zero before, of the old ones. The old ones begin at `at` in their object.
    ///
    /// # Errors
    /// What the function says.
    fn make(&mut self, function: usize, at: u64, old: &[u8], new: &mut [u8]) -> Result<(), String>;

    /// Whether an object is to be checked, which takes longer: what is wrong with it is told by
    /// [`Program::refuse`].
    fn checks(&self) -> bool;

    /// Something stands in the way.
    fn refuse(&mut self, refusal: Refusal);
}

/// An object that does not fit its type.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Wrong {
    /// Where in the object.
    pub at: u64,
    /// What is there.
    pub what: String,
}

impl Conversion {
    /// The old type.
    pub fn old(&self) -> &crate::types::Descriptor {
        &self.old
    }

    /// The new one.
    pub fn new_type(&self) -> &crate::types::Descriptor {
        &self.new
    }

    /// The bytes of the new object where the old one has so many by its type; the largest number where there is none.
    pub fn size(&self, old: u64) -> u64 {
        let (was, is) = (self.old.layout(), self.new.layout());
        if let Some(tail) = self.tail {
            let elements = old.saturating_sub(tail.from) / tail.stride.max(1);
            let elements = elements.saturating_mul(tail.to_stride);
            return is.size.max(tail.to.saturating_add(elements));
        }
        match was.has_tail || was.size == 0 {
            true => is.size,
            false => (old / was.size).saturating_mul(is.size),
        }
    }

    /// Makes a new object, which is zero, of an old one.
    ///
    /// # Errors
    /// [`Wrong`] where the old one does not fit its type.
    pub fn convert(
        &self,
        old: &[u8],
        new: &mut [u8],
        program: &mut impl Program,
    ) -> Result<(), Wrong> {
        let row = self.old.row(old).map_err(|error| Wrong {
            at: 0,
            what: error.to_string(),
        })?;
        let (stride, to_stride) = (self.old.layout().size, self.new.layout().size);
        for index in 0..row {
            let mut run = Run {
                old,
                new: &mut *new,
                program: &mut *program,
                among: match row {
                    0 | 1 => Among::Fields,
                    _ => Among::Places,
                },
            };
            run.parts(&self.parts, index * stride, index * to_stride)?;
        }
        Ok(())
    }
}

struct Run<'r, P> {
    old: &'r [u8],
    new: &'r mut [u8],
    program: &'r mut P,
    among: Among,
}

/// What the parts lie among that are made.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Among {
    /// Fields of an object.
    Fields,
    /// Places of an array, in which may be nothing.
    Places,
    /// Entries of a map, in places that are taken.
    Entries,
}

fn range(at: u64, size: u64) -> std::ops::Range<usize> {
    let at = usize::try_from(at).unwrap_or(usize::MAX);
    at..at.saturating_add(usize::try_from(size).unwrap_or(usize::MAX))
}

impl<P: Program> Run<'_, P> {
    fn bytes(&self, at: u64, size: u64) -> Result<&[u8], Wrong> {
        self.old.get(range(at, size)).ok_or_else(|| Wrong {
            at,
            what: format!("it ends before {} bytes", at.saturating_add(size)),
        })
    }

    fn place(&mut self, at: u64, size: u64) -> Result<&mut [u8], Wrong> {
        self.new.get_mut(range(at, size)).ok_or_else(|| Wrong {
            at,
            what: "there is no room for it in the new object".to_owned(),
        })
    }

    fn copy(&mut self, from: u64, to: u64, size: u64) -> Result<(), Wrong> {
        let old = self.old;
        let bytes = old.get(range(from, size)).ok_or_else(|| Wrong {
            at: from,
            what: "it ends before".to_owned(),
        })?;
        self.place(to, size)?.copy_from_slice(bytes);
        Ok(())
    }

    fn word(&self, at: u64, width: u64) -> Result<u64, Wrong> {
        read_unsigned(self.old, at, width).map_err(|error| Wrong {
            at,
            what: error.to_string(),
        })
    }

    fn put(&mut self, at: u64, width: u64, word: u64) -> Result<(), Wrong> {
        let bytes = word.to_le_bytes();
        let part = bytes.get(..width as usize).unwrap_or_default();
        self.place(at, width)?.copy_from_slice(part);
        Ok(())
    }

    fn parts(&mut self, parts: &[Part], base: u64, to_base: u64) -> Result<(), Wrong> {
        parts
            .iter()
            .try_for_each(|part| self.part(part, base, to_base))
    }

    fn part(&mut self, part: &Part, base: u64, to_base: u64) -> Result<(), Wrong> {
        match part {
            Part::Copy { from, to, size } => self.copy(base + from, to_base + to, *size),
            Part::Number {
                from: (from, width),
                to: (to, to_width),
                is_signed,
            } => {
                let mut word = self.word(base + from, *width)?;
                if *is_signed {
                    let unused = 64 - 8 * *width as u32;
                    word = ((word << unused) as i64 >> unused) as u64;
                }
                self.put(to_base + to, *to_width, word)
            }
            Part::Float { from, to } => {
                let bits = self.word(base + from, 4)? as u32;
                self.put(to_base + to, 8, f64::from(f32::from_bits(bits)).to_bits())
            }
            Part::Bytes { to, bytes } => {
                self.place(to_base + to, bytes.len() as u64)?
                    .copy_from_slice(bytes);
                Ok(())
            }
            Part::Array {
                from,
                stride,
                to,
                to_stride,
                count,
                taken,
                parts,
            } => {
                let (from, to) = (base + from, to_base + to);
                let count = count_elements(*count, base, from, *stride, self.old);
                let count = count.map_err(|error| Wrong {
                    at: from,
                    what: error.to_string(),
                })?;
                if let [
                    Part::Copy {
                        from: 0,
                        to: 0,
                        size,
                    },
                ] = parts.as_slice()
                    && size == stride
                    && size == to_stride
                {
                    return self.copy(from, to, count * stride);
                }
                let (taken, among) = match taken {
                    Some(taken) => (taken.places(self.word(base, 8)?), Among::Entries),
                    None => (u64::MAX, Among::Places),
                };
                let was_among = std::mem::replace(&mut self.among, among);
                for index in (0..count).filter(|index| taken >> index.min(&63) & 1 != 0) {
                    self.parts(parts, from + index * stride, to + index * to_stride)?;
                }
                self.among = was_among;
                Ok(())
            }
            Part::Variants {
                from,
                size,
                tag: (tag, width),
                new_tag: (new_tag, new_width),
                cases,
                has_pointers,
            } => {
                let found = self.word(base + tag, *width)?;
                let case = cases.iter().find(|(number, _)| says(*number, found));
                match case {
                    Some((_, Became::Case(number, parts))) => {
                        if let Some(number) = number {
                            self.put(to_base + new_tag, *new_width, *number)?;
                        }
                        self.parts(parts, base, to_base)
                    }
                    Some((_, Became::Nothing(path))) => {
                        let why = "there is no such case any more, and an object has it";
                        self.program.refuse(Refusal::new(path, why));
                        Ok(())
                    }
                    // In a place of an array in which nothing is stored may be anything.
                    None if self.among == Among::Places && !has_pointers => Ok(()),
                    None if is_zero(self.bytes(base + from, *size)?) => Ok(()),
                    None => Err(Wrong {
                        at: base + tag,
                        what: format!("{found} is no case of its type"),
                    }),
                }
            }
            Part::Gone {
                from,
                pointers,
                path,
            } => {
                let found = self.pointers_of(pointers, base + from)?;
                if !found.is_empty() && self.program.checks() {
                    let why = "it goes, and has pointers: what they lead to would be lost, or have to be reached otherwise; say that it may be forgotten, if so";
                    self.program.refuse(Refusal::new(path, why));
                }
                Ok(())
            }
            Part::Made { .. } => self.made(part, base, to_base),
        }
    }

    fn made(&mut self, part: &Part, base: u64, to_base: u64) -> Result<(), Wrong> {
        let Part::Made {
            by,
            from,
            size,
            to,
            to_size,
            pointers,
            new_pointers,
            checked,
            path,
        } = part
        else {
            return Ok(());
        };
        let (from, to) = (base + from, to_base + to);
        let old = self.bytes(from, *size)?;
        let is_nothing = (!by.zero_is_value && is_zero(old))
            || checked.as_ref().is_some_and(|ty| !is_value(ty, old, 0));
        match self.among {
            // In a place of an array in which nothing is stored may be anything.
            Among::Places if is_nothing => return Ok(()),
            Among::Entries if is_nothing => {
                return Err(Wrong {
                    at: from,
                    what: "an entry of a map is no value of its type".to_owned(),
                });
            }
            _ => {}
        }
        let mut had = Vec::new();
        if self.program.checks() {
            had = self.pointers_of(pointers, from)?;
        }
        let old = self.old.get(range(from, *size)).unwrap_or_default();
        let new = self.new.get_mut(range(to, *to_size)).ok_or_else(|| Wrong {
            at: to,
            what: "there is no room for it in the new object".to_owned(),
        })?;
        if let Err(why) = self.program.make(by.function, from, old, new) {
            self.program.refuse(Refusal::new(path, why));
            return Ok(());
        }
        if self.program.checks() {
            let has = strong_in(new_pointers, new, 0).map_err(|what| Wrong { at: from, what })?;
            self.compare(had, has, path);
        }
        Ok(())
    }

    /// Each pointer that owns something is there once.
    fn compare(&mut self, mut had: Vec<u64>, mut has: Vec<u64>, path: &str) {
        had.sort_unstable();
        has.sort_unstable();
        if had == has {
            return;
        }
        let why = match (
            had.iter().find(|word| !has.contains(word)),
            has.iter().find(|word| !had.contains(word)),
        ) {
            (Some(_), _) => "its function forgets a pointer that owns something: `carry` it over",
            (_, Some(_)) => {
                "its function makes a pointer that its object has not: pointers are carried over from the same object"
            }
            _ => "its function carries a pointer over more than once that owns something",
        };
        self.program.refuse(Refusal::new(path, why));
    }

    /// What strong pointers of a part are, but for null.
    fn pointers_of(&self, steps: &[Step<PointerAt>], base: u64) -> Result<Vec<u64>, Wrong> {
        strong_in(steps, self.old, base).map_err(|what| Wrong { at: base, what })
    }
}

fn strong_in(steps: &[Step<PointerAt>], bytes: &[u8], base: u64) -> Result<Vec<u64>, String> {
    let mut found = Vec::new();
    let walked = walk(steps, base, bytes, &mut |pointer: PointerAt| {
        if is_strong(&pointer)
            && let Ok(word) = read_unsigned(bytes, pointer.offset, 8)
            && word != 0
        {
            found.push(word);
        }
    });
    walked.map_err(|error| error.to_string())?;
    Ok(found)
}

fn is_zero(bytes: &[u8]) -> bool {
    bytes.iter().all(|byte| *byte == 0)
}
