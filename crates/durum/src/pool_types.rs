//! What an open pool knows of types.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError, RwLock, RwLockReadGuard};

use durum_format::types::Meanings;

use crate::described::Description;
use crate::primitive::locked;

/// What an open pool says of types.
#[derive(Debug)]
pub(crate) struct PoolTypes {
    meanings: RwLock<Meanings>,
    /// Texts that the store does not have, because who only reads leaves none behind.
    unregistered: Mutex<BTreeMap<u64, String>>,
}

impl PoolTypes {
    /// Of a pool in which ids have these meanings.
    pub(crate) fn new(meanings: Meanings) -> Self {
        Self {
            meanings: RwLock::new(meanings),
            unregistered: Mutex::default(),
        }
    }

    /// Remembers a type that is not registered.
    pub(crate) fn note(&self, description: &Description) {
        locked(&self.unregistered).extend(description.texts.iter().cloned());
    }

    /// The text of a type that was noted.
    pub(crate) fn noted(&self, id: u64) -> Option<String> {
        locked(&self.unregistered).get(&id).cloned()
    }

    /// What ids mean.
    pub(crate) fn meanings(&self) -> RwLockReadGuard<'_, Meanings> {
        let meanings = self.meanings.read();
        meanings.unwrap_or_else(PoisonError::into_inner)
    }

    /// They mean something else from now on.
    pub(crate) fn change(&self, changed: Meanings) {
        let meanings = self.meanings.write();
        *meanings.unwrap_or_else(PoisonError::into_inner) = changed;
    }
}
