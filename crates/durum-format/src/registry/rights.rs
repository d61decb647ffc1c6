//! Whose a pool is, and who else may use it.

use serde::{Deserialize, Serialize};

use crate::text::octal;

/// The owner, group and mode of a pool, as a file has them. What they mean for whom is for the service to say.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Rights {
    /// The user.
    pub uid: u32,
    /// The group.
    pub gid: u32,
    /// The bits `r` and `w` of owner, group and others; no other bit.
    #[serde(with = "octal")]
    pub mode: u16,
}

impl Rights {
    /// The bits that a mode may have.
    pub const MODE_MAX: u16 = 0o666;
    /// What nobody but the owner may use.
    pub const PRIVATE: u16 = 0o600;

    /// Whether the mode has no other bits than a pool's has.
    pub fn is_valid(&self) -> bool {
        self.mode & !Self::MODE_MAX == 0
    }
}
