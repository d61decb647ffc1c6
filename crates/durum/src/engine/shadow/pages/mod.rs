//! The private pages in which the program works: which there are, and how they are given back.

mod ahead;
pub(super) mod budget;
pub(super) mod chunk_stamps;
#[cfg(test)]
mod private_pages;
pub(super) mod puddle;
pub(super) mod reclaim;
