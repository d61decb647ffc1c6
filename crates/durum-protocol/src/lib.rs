//! The messages between the service of a store and its clients in other processes.
//!
//! This crate does no I/O. `docs/format/protocol.md` tells the same for a second implementation.
//!
//! Reading order: [`frame`] (how a message is cut into packets), [`message`] (what is asked and answered), [`failure`]
//! (errors), [`address`] (how a program names a service), [`watching`] (what is asked of a program that observes
//! itself).

#![warn(clippy::unwrap_used)]

pub mod address;
pub mod failure;
pub mod frame;
pub mod message;
pub mod watching;
mod words;

pub use address::Address;
pub use failure::{Failure, Names};
pub use frame::{Frame, FrameError, Kind, Parts};
pub use message::{Answer, Grant, Hello, Note, Request, Welcome};
