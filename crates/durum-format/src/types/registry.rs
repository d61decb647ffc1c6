//! Descriptors by id.

use std::collections::BTreeMap;

use super::check::TypeError;
use super::descriptor::Descriptor;

/// The descriptors that a store knows, by id. Whatever a descriptor's pointers reach is known too.
#[derive(Clone, Debug, Default)]
pub struct Registry {
    types: BTreeMap<u64, Descriptor>,
}

/// Two texts with the same id.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("type id {id:#018x} belongs to {known:?} and to {new:?}: rename one of the types")]
pub struct IdCollision {
    /// The id.
    pub id: u64,
    /// The text that has it.
    pub known: String,
    /// The text that would have it too.
    pub new: String,
}

/// Why a text was not registered.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum RegisterError {
    /// The text is not a descriptor's.
    #[error(transparent)]
    Type(#[from] TypeError),
    /// Its id is taken.
    #[error(transparent)]
    Collision(#[from] IdCollision),
}

impl Registry {
    /// An empty one.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a descriptor and all that its pointers reach; gives those that were new. Adding what is known changes
    /// nothing.
    ///
    /// # Errors
    /// [`RegisterError::Collision`]; nothing was added then.
    pub fn register(&mut self, descriptor: &Descriptor) -> Result<Vec<u64>, RegisterError> {
        let mut new = Vec::new();
        for line in 0..descriptor.lines() {
            let reached = descriptor.target(line)?;
            match self.types.get(&reached.id()) {
                Some(known) if *known == reached => {}
                Some(known) => {
                    return Err(RegisterError::Collision(IdCollision {
                        id: reached.id(),
                        known: known.text().into(),
                        new: reached.text().into(),
                    }));
                }
                None => new.push(reached),
            }
        }
        let ids = new.iter().map(Descriptor::id).collect();
        let new = new.into_iter();
        self.types
            .extend(new.map(|descriptor| (descriptor.id(), descriptor)));
        Ok(ids)
    }

    /// Reads a text and adds it.
    ///
    /// # Errors
    /// [`RegisterError`]; nothing was added then.
    pub fn register_text(&mut self, text: &str) -> Result<u64, RegisterError> {
        let descriptor = Descriptor::parse(text)?;
        self.register(&descriptor)?;
        Ok(descriptor.id())
    }

    /// The descriptor with this id.
    pub fn by_id(&self, id: u64) -> Option<&Descriptor> {
        self.types.get(&id)
    }

    /// All ids and descriptors, by id.
    pub fn iter(&self) -> impl Iterator<Item = (u64, &Descriptor)> {
        self.types.iter().map(|(id, descriptor)| (*id, descriptor))
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.types.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.types.is_empty()
    }
}
