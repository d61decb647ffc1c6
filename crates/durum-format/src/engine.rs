//! Engines, as the registry names them.

use serde::{Deserialize, Serialize};

use crate::puddle::PuddleKind;

/// Which engine runs the transactions of a pool: a property of the pool, chosen when it is made.
///
/// The names are on the media, the numbers in `durum.h`: they are never given a second meaning.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
#[repr(u32)]
pub enum EngineKind {
    /// Undo and redo logs, changes in place.
    Hybrid = 1,
    /// Two copies, main and back.
    Twin = 2,
    /// Private pages and one redo record for each commit.
    Shadow = 3,
}

impl EngineKind {
    /// The engine of a number, or `None`: a newer durum gave it.
    pub fn from_number(number: u32) -> Option<EngineKind> {
        [EngineKind::Hybrid, EngineKind::Twin, EngineKind::Shadow]
            .into_iter()
            .find(|engine| *engine as u32 == number)
    }

    /// The engine of that name.
    pub fn from_name(name: &str) -> Option<EngineKind> {
        [EngineKind::Hybrid, EngineKind::Twin, EngineKind::Shadow]
            .into_iter()
            .find(|engine| engine.name() == name)
    }

    /// What the puddles of a pool with this engine hold.
    pub fn puddle_kind(self) -> PuddleKind {
        match self {
            EngineKind::Twin => PuddleKind::Twin,
            EngineKind::Hybrid | EngineKind::Shadow => PuddleKind::Data,
        }
    }

    /// The name used in commands, in the registry and in messages.
    pub fn name(self) -> &'static str {
        match self {
            EngineKind::Hybrid => "hybrid",
            EngineKind::Twin => "twin",
            EngineKind::Shadow => "shadow",
        }
    }
}
