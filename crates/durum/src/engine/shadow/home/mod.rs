//! Home: the places where records lead in the end, behind the program's back.

pub(super) mod checkpoint;
pub(super) mod deferred_pages;
pub(super) mod files;
mod line_set;
pub(super) mod mapped;
pub(super) mod pending;
pub(super) mod places;
