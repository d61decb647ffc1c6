//! What ids mean in a pool whose program has changed its types.

use std::collections::BTreeMap;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::descriptor::Descriptor;
use super::successor::{Obstacle, successors};
use crate::text::Hex;

/// Old ids, and the ids of what they mean now. Objects keep the id with which they were allocated.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Meanings(BTreeMap<u64, u64>);

impl Meanings {
    /// All ids mean themselves.
    pub const NONE: Self = Self(BTreeMap::new());

    /// From old ids and new ones. Nothing where they contradict each other: what an id means, means itself.
    pub fn new(ids: BTreeMap<u64, u64>) -> Option<Self> {
        let is_last = |id: &u64| *id != 0 && !ids.contains_key(id);
        let is_sound = !ids.contains_key(&0) && ids.values().all(is_last);
        is_sound.then_some(Self(ids))
    }

    /// What the id means: itself, mostly.
    pub fn of(&self, id: u64) -> u64 {
        self.0.get(&id).copied().unwrap_or(id)
    }

    /// Whether the id means something else than itself: a program that has such a type is older than the pool.
    pub fn is_old(&self, id: u64) -> bool {
        self.0.contains_key(&id)
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Old ids and what they mean, in ascending order.
    pub fn iter(&self) -> impl Iterator<Item = (u64, u64)> {
        self.0.iter().map(|(old, new)| (*old, *new))
    }

    /// What ids mean once a program has come for which the pool's root is an `is`, that was a `was` up to now.
    ///
    /// # Errors
    /// `is` is no successor of `was`, or has a type in it that has become another one before.
    pub fn after(&self, was: &Descriptor, is: &Descriptor) -> Result<Self, Obstacle> {
        let step = successors(was, is)?;
        for line in 0..is.lines() {
            if let Ok(target) = is.target(line)
                && self.is_old(target.id())
            {
                let why = "it has become another type in this pool, and does not come back";
                return Err(Obstacle {
                    path: target.title().to_owned(),
                    why: why.to_owned(),
                });
            }
        }
        // Objects that the program keeps apart may lead to the same types.
        let mut others = step.iter().filter(|(old, _)| self.is_old(**old));
        if let Some((old, _)) = others.find(|(old, new)| self.of(**old) != **new) {
            let why = format!("the type {old:#018x} has become another one in this pool already");
            let path = was.title().to_owned();
            return Err(Obstacle { path, why });
        }
        let renewed = |id: &u64| step.get(id).copied().unwrap_or(*id);
        let mut ids: BTreeMap<u64, u64> = (self.0.iter())
            .map(|(old, new)| (*old, renewed(new)))
            .collect();
        ids.extend(step);
        Ok(Self(ids))
    }
}

impl Serialize for Meanings {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.iter().map(|(old, new)| (Hex(old), Hex(new))))
    }
}

impl<'de> Deserialize<'de> for Meanings {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let ids = <BTreeMap<Hex, Hex>>::deserialize(deserializer)?;
        let ids = ids.into_iter().map(|(old, new)| (old.0, new.0));
        let sound = Self::new(ids.collect());
        sound.ok_or_else(|| serde::de::Error::custom("what an id means, means something else"))
    }
}
