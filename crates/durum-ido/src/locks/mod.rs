//! Locks: `pthread_mutex_*` and its kin for locks that lie in the heap, and the system's own for all others.
//!
//! A lock in the heap keeps its state in its own first bytes, beside the number of the opening (the *epoch*). What
//! bears another one was left by a crash, or by a program that has ended, and is free; so are zeros. Nothing of it is
//! written back for its own sake. What is to last of a lock, its kind, is.
//!
//! Reading order: [`deadline`], [`word`] and [`read_write`] (words that threads wait for), [`claims`] (what
//! interrupted sections hold), [`native`] (the system's functions), [`taking`] (what a lock has to do with sections),
//! [`mutex`], [`rwlock`], [`spin`], [`cond`], [`c11`].

pub(crate) mod c11;
pub(crate) mod claims;
pub(crate) mod cond;
pub(crate) mod deadline;
pub(crate) mod mutex;
pub(crate) mod native;
mod read_write;
pub(crate) mod rwlock;
pub(crate) mod spin;
mod taking;
mod word;
#[cfg(test)]
mod word_tests;
