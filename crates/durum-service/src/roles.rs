//! What an object is by its type: one with counts, a reference that was dropped, or neither.
//!
//! The typed interface of the client makes such objects (`Prc`, `Parc`). They are known by their types:
//! `docs/format/types.md`.

use durum_format::types::{Descriptor, PointerAt, Primitive, Strength, Type};

/// How names of types begin whose objects are counted.
const COUNTED_PREFIX: &str = "counted ";
/// The name of the type of references that a pool's limbo holds.
const LOST_NAME: &str = "durum lost reference";

/// What an object is, beyond what the fields of its type say.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Role {
    Plain,
    /// It begins with its counts.
    Counted,
    /// A reference that somebody dropped and nobody has counted off yet.
    Lost {
        object: u64,
        is_weak: u64,
    },
}

impl Role {
    pub(crate) fn of(descriptor: &Descriptor) -> Role {
        match descriptor.name() {
            Some(LOST_NAME) => {
                let object = field(descriptor, "object", |ty| {
                    matches!(ty, Type::Pointer { .. })
                });
                match (object, field(descriptor, "is_weak", is_word)) {
                    (Some(object), Some(is_weak)) => Role::Lost { object, is_weak },
                    _ => Role::Plain,
                }
            }
            Some(name) if name.starts_with(COUNTED_PREFIX) => {
                let strong = field(descriptor, "strong", is_word);
                let weak = field(descriptor, "weak", is_word);
                match (strong, weak) {
                    (Some(Tally::STRONG), Some(Tally::WEAK)) => Role::Counted,
                    _ => Role::Plain,
                }
            }
            _ => Role::Plain,
        }
    }

    /// What a pointer in an object of this role is. A lost reference says in a word whether it is weak.
    pub(crate) fn strength(&self, pointer: &PointerAt, bytes: &[u8]) -> Strength {
        match *self {
            Role::Lost { object, is_weak }
                if pointer.offset == object && word_at(bytes, is_weak) == Some(1) =>
            {
                Strength::Weak
            }
            _ => pointer.strength,
        }
    }
}

fn is_word(ty: &Type<usize>) -> bool {
    *ty == Type::Primitive(Primitive::U64)
}

/// Where a field begins, if there is one of this name and kind.
fn field(descriptor: &Descriptor, name: &str, fits: fn(&Type<usize>) -> bool) -> Option<u64> {
    let Type::Struct(whole) = descriptor.root() else {
        return None;
    };
    let found = whole.fields.iter().find(|field| field.name == name)?;
    fits(&found.ty).then_some(found.offset)
}

/// The counts of an object.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Tally {
    pub(crate) strong: u64,
    pub(crate) weak: u64,
}

impl Tally {
    const STRONG: u64 = 0;
    const WEAK: u64 = 8;

    pub(crate) fn read(object: &[u8]) -> Option<Tally> {
        Some(Tally {
            strong: word_at(object, Self::STRONG)?,
            weak: word_at(object, Self::WEAK)?,
        })
    }

    /// The value is gone, and weak pointers are left that say so.
    pub(crate) fn is_husk(&self) -> bool {
        self.strong == 0
    }
}

/// The word at an offset.
pub(crate) fn word_at(bytes: &[u8], offset: u64) -> Option<u64> {
    let at = usize::try_from(offset).ok()?;
    let word = bytes.get(at..)?.first_chunk::<8>()?;
    Some(u64::from_le_bytes(*word))
}
