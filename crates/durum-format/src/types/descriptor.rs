//! A complete type: everything reachable, canonical text, id.

use std::collections::HashMap;
use std::fmt::Debug;
use std::hash::Hash;

use super::check::{Layout, TypeError};
use super::steps::{PointerAt, ReservedAt, Step, VolatileAt, compile};
use super::text;
use super::tree::Type;

/// Bytes of a text.
pub const TEXT_MAX: usize = 1 << 20;

/// A type with all that its pointers can reach.
#[derive(Clone, Debug)]
pub struct Descriptor {
    text: String,
    id: u64,
    layout: Layout,
    types: Vec<Type<usize>>,
    pub(super) pointers: Vec<Step<PointerAt>>,
    pub(super) volatile: Vec<Step<VolatileAt>>,
    pub(super) reserved: Vec<Step<ReservedAt>>,
}

impl PartialEq for Descriptor {
    fn eq(&self, other: &Self) -> bool {
        self.text == other.text
    }
}

impl Eq for Descriptor {}

/// The id of the type with this canonical text: FNV-1a over its bytes, then mixed so that all bits count. Never 0.
pub fn type_id(text: &str) -> u64 {
    let mut hash: u64 = 0xcbf2_9ce4_8422_2325;
    for &byte in text.as_bytes() {
        hash = (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3);
    }
    hash = (hash ^ hash >> 33).wrapping_mul(0xff51_afd7_ed55_8ccd);
    hash = (hash ^ hash >> 33).wrapping_mul(0xc4ce_b9fe_1a85_ec53);
    hash ^= hash >> 33;
    // 0 says "untyped".
    hash.max(1)
}

/// The refusal of what a line begins with.
fn syntax(line: usize, expected: &'static str) -> TypeError {
    TypeError::Syntax {
        line,
        column: 1,
        expected,
    }
}

/// Refuses a text that is too long.
fn check_length(text: &str) -> Result<(), TypeError> {
    match text.len() > TEXT_MAX {
        false => Ok(()),
        true => Err(TypeError::TooLarge {
            what: "the length of the text",
            limit: TEXT_MAX,
        }),
    }
}

impl Descriptor {
    /// Reads a canonical text.
    ///
    /// # Errors
    /// A text that does not follow the grammar, speaks of an impossible type, or is not the canonical one.
    pub fn parse(text: &str) -> Result<Self, TypeError> {
        check_length(text)?;
        let mut types = Vec::new();
        for (index, line) in text.split_inclusive('\n').enumerate() {
            let line = line
                .strip_suffix('\n')
                .ok_or_else(|| syntax(index + 1, "a line end behind each type"))?;
            types.push(text::parse(line, index + 1)?);
        }
        if types.is_empty() {
            return Err(syntax(1, "a type"));
        }
        let descriptor = Self::close(0, |&line, _| {
            types
                .get(line)
                .cloned()
                .ok_or_else(|| syntax(types.len(), "pointers to lines of this text only"))
        })?;
        if descriptor.text != text {
            return Err(TypeError::NotCanonical {
                expected: descriptor.text,
            });
        }
        Ok(descriptor)
    }

    /// Follows pointers breadth first from `root`; `body` gives the type behind a key, and is told who points to it.
    pub(crate) fn close<K: Clone + Eq + Hash + Debug>(
        root: K,
        body: impl Fn(&K, Option<&K>) -> Result<Type<K>, TypeError>,
    ) -> Result<Self, TypeError> {
        let mut lines: HashMap<K, usize> = HashMap::from([(root.clone(), 0)]);
        let mut queue: Vec<(K, Option<K>)> = vec![(root, None)];
        let mut types = Vec::new();
        let mut text = String::new();
        while let Some((key, referrer)) = queue.get(types.len()).cloned() {
            let body = body(&key, referrer.as_ref())?;
            body.layout()?;
            let ty = body.map_targets(&mut |target: &K| {
                let next = lines.len();
                let line = *lines.entry(target.clone()).or_insert(next);
                if line == next {
                    queue.push((target.clone(), Some(key.clone())));
                }
                Ok::<_, TypeError>(line)
            })?;
            text::write(&ty, &mut text);
            text.push('\n');
            check_length(&text)?;
            types.push(ty);
        }
        let root = types.first().ok_or(syntax(1, "a type"))?;
        let layout = root.layout()?;
        let (pointers, volatile, reserved) = (compile(root)?, compile(root)?, compile(root)?);
        Ok(Self {
            id: type_id(&text),
            text,
            layout,
            types,
            pointers,
            volatile,
            reserved,
        })
    }

    /// The type's id.
    pub fn id(&self) -> u64 {
        self.id
    }

    /// The canonical text.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// The name of the type, if it has one.
    pub fn name(&self) -> Option<&str> {
        self.root().name()
    }

    /// What to call the type: its name, or what it is.
    pub fn title(&self) -> &str {
        let line = || self.text().lines().next().unwrap_or_default();
        self.name().unwrap_or_else(line)
    }

    /// Size and alignment.
    pub fn layout(&self) -> Layout {
        self.layout
    }

    /// The type itself. Pointers in it name lines of the text; see [`Descriptor::line`].
    pub fn root(&self) -> &Type<usize> {
        // There is always a first line; the fallback cannot be reached, and is no panic.
        const EMPTY: &Type<usize> = &Type::Opaque { size: 0, align: 1 };
        self.types.first().unwrap_or(EMPTY)
    }

    /// The type on a line of the text; line 0 is the type itself.
    pub fn line(&self, line: usize) -> Option<&Type<usize>> {
        self.types.get(line)
    }

    /// Number of lines of the text.
    pub fn lines(&self) -> usize {
        self.types.len()
    }

    /// The complete descriptor of the type on a line: what an object that a pointer leads to has.
    ///
    /// # Errors
    /// [`TypeError::Syntax`] where there is no such line.
    pub fn target(&self, line: usize) -> Result<Self, TypeError> {
        Self::close(line, |&line, _| {
            let missing = syntax(line, "a line of this text");
            self.types.get(line).cloned().ok_or(missing)
        })
    }

    /// Whether objects of this type can have reserved bytes.
    pub fn has_reserved(&self) -> bool {
        !self.reserved.is_empty()
    }

    /// Whether objects of this type can hold pointers.
    pub fn has_pointers(&self) -> bool {
        !self.pointers.is_empty()
    }
}
